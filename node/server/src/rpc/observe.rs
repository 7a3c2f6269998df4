//! observe_conversation: the verbatim turns first, then what the rules extract, in one command.

use std::sync::Arc;

use waggle_memory::command::{Command, NewLink, NewMemory, NewTurn, Remember};
use waggle_memory::extract::{ExtractInput, Extraction, Speaker, extract};
use waggle_memory::kind::{Origin, Role};
use waggle_memory::memory::VectorDraft;
use waggle_memory::outcome::{Outcome, Remembered};
use waggle_memory::time::Millis;
use waggle_proto::wire::{self, ObserveReply, ObserveRequest};

use super::views;
use crate::call::Call;
use crate::engine::Engine;
use crate::error::CallError;
use crate::plan;

/// Longest message in bytes.
const MESSAGE_BYTES_MAX: usize = 1024 * 1024;
/// How far `observed_at` may lie ahead.
const AHEAD_MAX: i64 = 5 * 60 * Millis::SECOND;

pub(super) async fn handle(engine: &Arc<Engine>, request: ObserveRequest) -> Result<ObserveReply, CallError> {
    let call = Call::new(engine, request.context)?;
    let scope = wire::scope_of(request.scope)?;
    let now = engine.clock.wall();
    let observed_at = checked_moment(request.observed_at, now)?;
    let messages = [
        (Speaker::User, Role::User, "user_message", request.user_message),
        (
            Speaker::Assistant,
            Role::Assistant,
            "assistant_response",
            request.assistant_response,
        ),
    ];
    for (_, _, field, text) in &messages {
        if text.len() > MESSAGE_BYTES_MAX {
            return Err(CallError::invalid(
                field,
                format!("{} bytes; at most {MESSAGE_BYTES_MAX}", text.len()),
            ));
        }
    }
    let said: Vec<_> = messages
        .into_iter()
        .filter(|(_, _, _, text)| !text.trim().is_empty())
        .collect();
    if said.is_empty() {
        return Err(CallError::invalid(
            "user_message",
            "user_message and assistant_response are both blank",
        ));
    }
    let text_of = |speaker: Speaker| {
        said.iter()
            .find(|(s, ..)| *s == speaker)
            .map_or("", |(.., text)| text.as_str())
    };
    let extraction = extracted(&call, text_of(Speaker::User), text_of(Speaker::Assistant), observed_at).await?;

    let mut texts: Vec<String> = said.iter().map(|(.., text)| text.clone()).collect();
    texts.extend(
        extraction
            .drafts
            .iter()
            .map(|draft| plan::meaning_of(&draft.label, &draft.content)),
    );
    let mut vectors = engine.embedder.for_write(texts).await.into_iter();
    let mut next_vector = || vectors.next().unwrap_or(VectorDraft::Pending);

    let turns: Vec<NewTurn> = said
        .iter()
        .map(|(_, role, _, text)| NewTurn {
            id: plan::new_turn_id(),
            role: *role,
            text: text.clone(),
            observed_at,
            vector: next_vector(),
        })
        .collect();
    let turn_of = |speaker: Speaker| {
        said.iter()
            .position(|(s, ..)| *s == speaker)
            .and_then(|position| u32::try_from(position).ok())
    };
    let over_limit = extraction.over_limit;
    let secrets_left_out = extraction.redactions;
    let links = extraction.links.iter().filter_map(new_link).collect();
    let memories: Vec<NewMemory> = extraction
        .drafts
        .into_iter()
        .map(|draft| {
            let text = text_of(draft.speaker);
            plan::drafted(draft, turn_of, text, observed_at, next_vector())
        })
        .collect();
    let memories = with_similar(&call, &scope.project_key(), memories, observed_at).await?;

    let pair = plan::new_pair_id();
    let command = Remember {
        tenant: call.tenant.clone(),
        namespace: super::store_memory::namespace_of(&scope.project),
        scope,
        origin: Origin::Observe,
        pair,
        turns,
        memories,
        links,
    };
    let written = call.propose(Command::Remember(Box::new(command))).await?;
    let Outcome::Remembered(remembered) = written.outcome else {
        return Err(CallError::halted("observe", &"the outcome is of another command"));
    };
    let mut reply = answer(&call, *remembered).await?;
    if over_limit {
        reply.extraction_errors.push("extraction_limit".to_owned());
    }
    reply.secrets_left_out = secrets_left_out;
    Ok(reply)
}

/// Reads the optional moment of a message.
pub(super) fn checked_moment(given: Option<i64>, now: Millis) -> Result<Millis, CallError> {
    let at = given.map_or(now, Millis);
    if at > now.plus(AHEAD_MAX) {
        return Err(CallError::invalid(
            "observed_at",
            format!("{at} lies in the future; at most 5 minutes ahead"),
        ));
    }
    Ok(at)
}

/// Extraction takes up to 50 ms for the longest texts, so it runs beside the async threads.
pub(super) async fn extracted(
    call: &Call,
    user: &str,
    assistant: &str,
    observed_at: Millis,
) -> Result<Extraction, CallError> {
    let (user, assistant, author) = (user.to_owned(), assistant.to_owned(), call.principal.0.clone());
    call.engine
        .blocking(move |_| {
            let input = ExtractInput {
                user_message: &user,
                assistant_response: &assistant,
                author: &author,
                observed_at,
            };
            Ok(extract(&input))
        })
        .await
}

/// The command form of a link between drafts.
pub(super) fn new_link(link: &waggle_memory::extract::DraftLink) -> Option<NewLink> {
    Some(NewLink {
        id: plan::new_link_id(),
        source: u32::try_from(link.source).ok()?,
        target: u32::try_from(link.target).ok()?,
        relationship: link.relationship,
        confidence: link.confidence,
        weight_thousandths: 1_000,
        reason: link.reason.clone(),
        shared_terms: link.shared_terms.clone(),
    })
}

/// Adds the duplicates that only similarity can find.
pub(super) async fn with_similar(
    call: &Call,
    project_key: &str,
    mut memories: Vec<NewMemory>,
    observed_at: Millis,
) -> Result<Vec<NewMemory>, CallError> {
    if memories
        .iter()
        .all(|memory| !matches!(memory.vector, VectorDraft::Ready(_)))
    {
        return Ok(memories);
    }
    let (project_key, author, shard) = (project_key.to_owned(), call.principal.0.clone(), call.shard);
    call.read(move |engine, rows| {
        for memory in &mut memories {
            let now = engine.clock.wall();
            let near = plan::near(engine, rows, shard, &project_key, &memory.content, &memory.vector, now);
            memory.similar = plan::similar(memory, &near, &author, observed_at);
        }
        Ok(memories)
    })
    .await
}

async fn answer(call: &Call, remembered: Remembered) -> Result<ObserveReply, CallError> {
    call.read(move |engine, rows| {
        let now = engine.clock.wall();
        let first = remembered.turns.first().and_then(|id| rows.turn(*id));
        let scope_note = match &first {
            Some(turn) if remembered.first_use_of_project => views::scope_note(rows, &turn.scope.project),
            _ => String::new(),
        };
        Ok(ObserveReply {
            pair_id: first.map(|turn| turn.pair.bytes().to_vec()).unwrap_or_default(),
            transcript_ids: remembered.turns.iter().map(|id| id.bytes().to_vec()).collect(),
            stored: remembered
                .memories
                .iter()
                .filter_map(|stored| super::store_memory::stored_view(rows, stored, now))
                .collect(),
            links: views::links(rows, &remembered.links),
            conflicts: views::links(rows, &remembered.conflicts),
            extraction_errors: Vec::new(),
            redactions: 0,
            secrets_left_out: 0,
            scope_note,
        })
    })
    .await
}
