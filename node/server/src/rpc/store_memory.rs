//! store_node: one memory as the caller gives it.

use std::sync::Arc;

use waggle_memory::command::{Command, Remember};
use waggle_memory::kind::{Kind, Origin};
use waggle_memory::memory::VectorDraft;
use waggle_memory::outcome::{Outcome, StoredMemory};
use waggle_memory::scope::name_key;
use waggle_memory::tables::typed::TenantRows;
use waggle_memory::time::Millis;
use waggle_proto::wire::{self, PossibleDuplicate, StoreMemoryReply, StoreMemoryRequest};

use super::views;
use crate::call::Call;
use crate::engine::Engine;
use crate::error::CallError;
use crate::plan::{self, Near};

/// Longest label in bytes.
pub(super) const LABEL_BYTES_MAX: usize = 800;
/// Longest content in bytes.
pub(super) const CONTENT_BYTES_MAX: usize = 65_536;
/// Longest note of the caller in bytes.
const SOURCE_PROMPT_BYTES_MAX: usize = 8_192;

pub(super) async fn handle(engine: &Arc<Engine>, request: StoreMemoryRequest) -> Result<StoreMemoryReply, CallError> {
    let call = Call::new(engine, request.context)?;
    let scope = wire::scope_of(request.scope)?;
    let now = engine.clock.wall();
    check_text("label", &request.label, LABEL_BYTES_MAX)?;
    check_text("content", &request.content, CONTENT_BYTES_MAX)?;
    if request.source_prompt.len() > SOURCE_PROMPT_BYTES_MAX {
        return Err(CallError::invalid(
            "source_prompt",
            format!("at most {SOURCE_PROMPT_BYTES_MAX} bytes"),
        ));
    }
    let kind = kind_of(request.kind)?;
    let meaning = plan::meaning_of(&request.label, &request.content);
    let vector = engine
        .embedder
        .for_write(vec![meaning])
        .await
        .pop()
        .unwrap_or(VectorDraft::Pending);
    let given = plan::Given {
        label: request.label,
        content: request.content,
        kind,
        tags: checked_tags(request.tags)?,
        source_prompt: request.source_prompt,
        valid_from: request.valid_from.map(Millis),
        valid_to: request.valid_to.map(Millis),
    };
    let mut memory = plan::given(given, &call.principal.0, now, vector);
    let (near, draft) = near_to(&call, &scope.project_key(), &memory.content, memory.vector.clone()).await?;
    memory.vector = draft;
    memory.similar = plan::similar(&memory, &near, &call.principal.0, now);
    let command = Remember {
        tenant: call.tenant.clone(),
        namespace: namespace_of(&scope.project),
        scope: scope.clone(),
        origin: Origin::Manual,
        pair: plan::new_pair_id(),
        turns: Vec::new(),
        memories: vec![memory],
        links: Vec::new(),
    };
    let written = call.propose(Command::Remember(Box::new(command))).await?;
    let Outcome::Remembered(remembered) = written.outcome else {
        return Err(CallError::halted(
            "store a memory",
            &"the outcome is of another command",
        ));
    };
    call.read(move |engine, rows| {
        let now = engine.clock.wall();
        let stored = remembered.memories.first();
        let stored_id = stored.map(|stored| stored.id);
        Ok(StoreMemoryReply {
            stored: stored.and_then(|stored| stored_view(rows, stored, now)),
            conflicts: views::links(rows, &remembered.conflicts),
            possible_duplicates: near
                .iter()
                .filter(|near| Some(near.memory.id) != stored_id)
                .map(possible)
                .collect(),
            scope_note: if remembered.first_use_of_project {
                views::scope_note(rows, &scope.project)
            } else {
                String::new()
            },
        })
    })
    .await
}

/// Near memories, together with the vector that was compared.
pub(super) async fn near_to(
    call: &Call,
    project_key: &str,
    text: &str,
    vector: VectorDraft,
) -> Result<(Vec<Near>, VectorDraft), CallError> {
    if !matches!(vector, VectorDraft::Ready(_)) {
        return Ok((Vec::new(), vector));
    }
    let (project_key, text, shard) = (project_key.to_owned(), text.to_owned(), call.shard);
    call.read(move |engine, rows| {
        let near = plan::near(engine, rows, shard, &project_key, &text, &vector, engine.clock.wall());
        Ok((near, vector))
    })
    .await
}

pub(super) fn possible(near: &Near) -> PossibleDuplicate {
    PossibleDuplicate {
        id: near.memory.id.bytes().to_vec(),
        label: near.memory.label.clone(),
        similarity_thousandths: near.similarity_thousandths,
    }
}

/// What became of one memory of a Remember, with the memory as it is now.
pub(super) fn stored_view(rows: TenantRows<'_>, stored: &StoredMemory, now: Millis) -> Option<wire::StoredMemory> {
    // A retried request may ask about a memory that was erased in the meantime: its id is still the answer.
    let view = match rows.memory(stored.id) {
        Some(memory) => views::full(rows, &memory, now),
        None => wire::Memory {
            id: stored.id.bytes().to_vec(),
            state: "deleted".to_owned(),
            ..wire::Memory::default()
        },
    };
    Some(wire::StoredMemory {
        memory: Some(view),
        created: stored.merged.is_none(),
        dedup_reason: stored.merged.map(|reason| reason.word().to_owned()).unwrap_or_default(),
        similarity_thousandths: stored.similarity_thousandths,
        alias_added: stored.alias_added,
        aliases_full: stored.aliases_full,
    })
}

pub(super) fn kind_of(number: u32) -> Result<Kind, CallError> {
    u8::try_from(number)
        .ok()
        .and_then(Kind::from_number)
        .ok_or_else(|| CallError::invalid("node_type", format!("{number} is not a kind")))
}

pub(super) fn check_text(field: &str, text: &str, bytes_max: usize) -> Result<(), CallError> {
    if text.trim().is_empty() {
        return Err(CallError::invalid(field, "must not be blank"));
    }
    if text.len() > bytes_max {
        return Err(CallError::invalid(
            field,
            format!("{} bytes; at most {bytes_max}", text.len()),
        ));
    }
    if text.contains('\0') {
        return Err(CallError::invalid(field, "must not hold a NUL character"));
    }
    Ok(())
}

/// At most 32 tags of 64 bytes, trimmed, without doubles.
pub(super) fn checked_tags(tags: Vec<String>) -> Result<Vec<String>, CallError> {
    if tags.len() > 32 {
        return Err(CallError::invalid("tags", format!("{} tags; at most 32", tags.len())));
    }
    let mut checked = Vec::new();
    for tag in tags {
        let tag = tag.trim().to_owned();
        if tag.is_empty() || tag.len() > 64 || tag.contains('\0') {
            return Err(CallError::invalid("tags", "each tag has 1 to 64 bytes and no NUL"));
        }
        if !checked.contains(&tag) {
            checked.push(tag);
        }
    }
    Ok(checked)
}

/// The namespace of a project: its name if that is a legal path, else `default`.
pub(crate) fn namespace_of(project: &str) -> String {
    let key = name_key(project);
    let segments: Vec<&str> = key.split('/').collect();
    let legal_segment = |segment: &&str| {
        !segment.is_empty()
            && *segment != "."
            && *segment != ".."
            && segment
                .chars()
                .all(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | '.'))
    };
    if !key.is_empty() && key.len() <= 256 && segments.len() <= 8 && segments.iter().all(legal_segment) {
        key
    } else {
        "default".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_project_that_is_a_path_is_its_own_namespace() {
        let cases = [
            ("payments", "payments"),
            ("team/Payments", "team/payments"),
            ("", "default"),
            ("a//b", "default"),
        ];
        for (project, namespace) in cases {
            assert_eq!(namespace_of(project), namespace, "{project}");
        }
        assert_eq!(namespace_of("my project!"), "default");
        assert_eq!(namespace_of("a/../b"), "default");
    }
}
