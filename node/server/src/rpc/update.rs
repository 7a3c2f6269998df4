//! update_node: a new version of one memory.

use std::sync::Arc;

use waggle_memory::command::{Command, UpdateMemory};
use waggle_memory::extract::RULES_VERSION;
use waggle_memory::id::MemoryId;
use waggle_memory::memory::Memory;
use waggle_memory::outcome::Outcome;
use waggle_memory::read::{StatementInput, read_statement};
use waggle_memory::time::Millis;
use waggle_proto::wire::{self, UpdateMemoryReply, UpdateMemoryRequest};

use super::store_memory::{CONTENT_BYTES_MAX, LABEL_BYTES_MAX, check_text, checked_tags, near_to, possible};
use super::views;
use crate::call::Call;
use crate::engine::Engine;
use crate::error::CallError;
use crate::plan;

/// Most attempts of one update against others at the same memory; then the caller hears of the conflict.
const ATTEMPTS_MAX: u32 = 64;

pub(super) async fn handle(engine: &Arc<Engine>, request: UpdateMemoryRequest) -> Result<UpdateMemoryReply, CallError> {
    let call = Call::new(engine, request.context.clone())?;
    let id = wire::memory_id("node_id", &request.id)?;
    if let Some(label) = &request.label {
        check_text("label", label, LABEL_BYTES_MAX)?;
    }
    if let Some(content) = &request.content {
        check_text("content", content, CONTENT_BYTES_MAX)?;
    }
    let mut attempt = 0;
    let (outcome, near) = loop {
        attempt += 1;
        // Each attempt has a request id of its own: a repetition of the call meets the refused ones again, and then the
        // one that was accepted.
        let step = if request.expected_version.is_some() {
            call.clone()
        } else {
            call.step(attempt)
        };
        match update_once(&step, request.clone(), id).await {
            // Whoever names no version means the newest, also when others write at the same time.
            Err(error)
                if error.is_version_conflict() && request.expected_version.is_none() && attempt < ATTEMPTS_MAX => {}
            done => break done?,
        }
    };
    let Outcome::Updated {
        id,
        previous_version,
        conflicts,
    } = outcome
    else {
        return Err(CallError::halted(
            "update a memory",
            &"the outcome is of another command",
        ));
    };
    call.read(move |engine, rows| {
        let memory = rows
            .memory(id)
            .ok_or_else(|| CallError::not_found("memory", &id.to_string()))?;
        Ok(UpdateMemoryReply {
            memory: Some(views::full(rows, &memory, engine.clock.wall())),
            previous_version,
            conflicts: views::links(rows, &conflicts),
            possible_duplicates: near.iter().filter(|near| near.memory.id != id).map(possible).collect(),
        })
    })
    .await
}

/// Reads the memory, plans the change and proposes it.
async fn update_once(
    call: &Call,
    request: UpdateMemoryRequest,
    id: MemoryId,
) -> Result<(Outcome, Vec<plan::Near>), CallError> {
    call.linearize().await?;
    let current = call
        .read(move |_, rows| {
            rows.resolved(id)
                .ok_or_else(|| CallError::not_found("memory", &id.to_string()))
        })
        .await?;
    let (command, near) = planned(call, request, current).await?;
    let written = call.propose(Command::UpdateMemory(Box::new(command))).await?;
    Ok((written.outcome, near))
}

async fn planned(
    call: &Call,
    request: UpdateMemoryRequest,
    current: Memory,
) -> Result<(UpdateMemory, Vec<plan::Near>), CallError> {
    let changes_text = request.label.is_some() || request.content.is_some();
    let label = request.label.as_deref().unwrap_or(&current.label);
    let content = request.content.as_deref().unwrap_or(&current.content);
    let now = call.engine.clock.wall();
    let mut near = Vec::new();
    let (mut statement, mut vector) = (None, None);
    if changes_text {
        let input = StatementInput {
            label,
            content,
            kind: current.kind,
            author: &call.principal.0,
            observed_at: now,
        };
        statement = Some(read_statement(&input));
        let drafts = call
            .engine
            .embedder
            .for_write(vec![plan::meaning_of(label, content)])
            .await;
        if let Some(draft) = drafts.into_iter().next() {
            let (found, draft) = near_to(call, &current.scope.project_key(), content, draft).await?;
            near = found;
            vector = Some(draft);
        }
    }
    let command = UpdateMemory {
        tenant: call.tenant.clone(),
        id: current.id,
        expected_version: request.expected_version,
        based_on_version: current.version,
        label: request.label,
        content: request.content,
        tags: request.tags.map(|list| checked_tags(list.tags)).transpose()?,
        valid_from: request.valid_from.map(Millis),
        valid_to: request.valid_to.map(Millis),
        statement,
        rules_version: RULES_VERSION,
        vector,
        note: request.note,
    };
    Ok((command, near))
}
