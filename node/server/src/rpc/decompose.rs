//! decompose_and_store: a text of its author, piece by piece, in one command. Either all of it is stored or nothing.

use std::sync::Arc;

use waggle_memory::command::{Command, NewLink, NewMemory, Remember};
use waggle_memory::extract::{DraftLink, Extraction, PIECES_MAX, decompose};
use waggle_memory::kind::{Origin, Relationship};
use waggle_memory::memory::VectorDraft;
use waggle_memory::outcome::{Outcome, Rejection, Remembered};
use waggle_memory::time::Millis;
use waggle_proto::wire::{self, DecomposeReply, DecomposeRequest};

use super::observe::{new_link, with_similar};
use super::store_memory::{check_text, namespace_of, stored_view};
use super::views;
use crate::call::Call;
use crate::engine::Engine;
use crate::error::CallError;
use crate::plan;

/// Longest text in bytes.
const CONTENT_BYTES_MAX: usize = 1024 * 1024;
/// Longest context in bytes.
const ABOUT_BYTES_MAX: usize = 8_192;
/// Most links of one command.
const LINKS_MAX: usize = 2_000;

pub(super) async fn handle(engine: &Arc<Engine>, request: DecomposeRequest) -> Result<DecomposeReply, CallError> {
    let call = Call::new(engine, request.context)?;
    let scope = wire::scope_of(request.scope)?;
    check_text("content", &request.content, CONTENT_BYTES_MAX)?;
    if request.about.len() > ABOUT_BYTES_MAX || request.about.contains('\0') {
        return Err(CallError::invalid(
            "context",
            format!("at most {ABOUT_BYTES_MAX} bytes, without NUL characters"),
        ));
    }
    let now = engine.clock.wall();
    let (content, about) = (request.content, request.about);
    let extraction = taken_apart(&call, content.clone(), about.clone(), now).await?;
    let has_about = !about.trim().is_empty() && !extraction.drafts.is_empty();
    let redactions = extraction.redactions;
    if extraction.drafts.is_empty() {
        // Only code, quotes or secrets: no piece says anything that could be kept.
        return Ok(DecomposeReply {
            redactions,
            ..DecomposeReply::default()
        });
    }
    let (memories, links) = planned(&call, extraction, &content, now).await;
    let memories = with_similar(&call, &scope.project_key(), memories, now).await?;
    let command = Remember {
        tenant: call.tenant.clone(),
        namespace: namespace_of(&scope.project),
        scope: scope.clone(),
        origin: Origin::Decompose,
        pair: plan::new_pair_id(),
        turns: Vec::new(),
        memories,
        links,
    };
    let written = call.propose(Command::Remember(Box::new(command))).await?;
    let Outcome::Remembered(remembered) = written.outcome else {
        return Err(CallError::halted("decompose", &"the outcome is of another command"));
    };
    let mut reply = answer(&call, *remembered, scope.project, has_about).await?;
    reply.redactions = redactions;
    Ok(reply)
}

/// The pieces by the rules; they run beside the async threads.
async fn taken_apart(call: &Call, content: String, about: String, now: Millis) -> Result<Extraction, CallError> {
    let author = call.principal.0.clone();
    call.engine
        .blocking(move |_| {
            decompose(&content, &about, &author, now).map_err(|many| {
                let why = format!(
                    "content has at least {} pieces, the limit is {PIECES_MAX}; nothing was stored: split it into several calls",
                    many.pieces
                );
                CallError::from(Rejection::LimitExceeded { why })
            })
        })
        .await
}

/// The command form of the drafts. Their evidence is the author's word, since no turn is stored.
async fn planned(call: &Call, extraction: Extraction, content: &str, now: Millis) -> (Vec<NewMemory>, Vec<NewLink>) {
    let texts = extraction
        .drafts
        .iter()
        .map(|draft| plan::meaning_of(&draft.label, &draft.content))
        .collect();
    let mut vectors = call.engine.embedder.for_write(texts).await.into_iter();
    let links = chosen(extraction.links).iter().filter_map(new_link).collect();
    let memories = extraction
        .drafts
        .into_iter()
        .map(|draft| {
            // The context stands in no part of the text.
            let text = if draft.span == (0, 0) { None } else { Some(content) };
            let own = draft.content.clone();
            let vector = vectors.next().unwrap_or(VectorDraft::Pending);
            let mut memory = plan::drafted(draft, |_| None, text.unwrap_or_default(), now, vector);
            if text.is_none() {
                memory.evidence.text = own;
            }
            memory
        })
        .collect();
    (memories, links)
}

/// Every piece keeps its place in the context; shared words are the first to go when there are too many links.
fn chosen(mut links: Vec<DraftLink>) -> Vec<DraftLink> {
    if links.len() > LINKS_MAX {
        links.sort_by_key(|link| match link.relationship {
            Relationship::PartOf => 0,
            Relationship::RelatesTo => 2,
            _ => 1,
        });
        links.truncate(LINKS_MAX);
    }
    links
}

async fn answer(
    call: &Call,
    remembered: Remembered,
    project: String,
    has_about: bool,
) -> Result<DecomposeReply, CallError> {
    call.read(move |engine, rows| {
        let now = engine.clock.wall();
        let about = remembered.memories.last().filter(|_| has_about);
        Ok(DecomposeReply {
            stored: remembered
                .memories
                .iter()
                .filter_map(|stored| stored_view(rows, stored, now))
                .collect(),
            links: views::links(rows, &remembered.links),
            conflicts: views::links(rows, &remembered.conflicts),
            about_id: about.map(|stored| stored.id.bytes().to_vec()).unwrap_or_default(),
            redactions: 0,
            scope_note: if remembered.first_use_of_project {
                views::scope_note(rows, &project)
            } else {
                String::new()
            },
        })
    })
    .await
}

#[cfg(test)]
mod tests {
    use waggle_memory::kind::Confidence;

    use super::*;

    #[test]
    fn too_many_links_keep_every_piece_in_its_context() {
        let link = |source, relationship| DraftLink {
            source,
            target: 600,
            relationship,
            confidence: Confidence::Inferred,
            reason: String::new(),
            shared_terms: Vec::new(),
        };
        let mut links: Vec<DraftLink> = (0..2_000).map(|n| link(n, Relationship::RelatesTo)).collect();
        links.extend((0..500).map(|n| link(n, Relationship::PartOf)));
        links.push(link(7, Relationship::DependsOn));
        let kept = chosen(links);
        assert_eq!(kept.len(), LINKS_MAX);
        let count = |wanted| kept.iter().filter(|link| link.relationship == wanted).count();
        assert_eq!(count(Relationship::PartOf), 500);
        assert_eq!(count(Relationship::DependsOn), 1);
    }
}
