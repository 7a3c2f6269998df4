//! canonicalize_node: merge memories into one by hand.

use std::sync::Arc;

use waggle_memory::command::{Canonicalize, Command};
use waggle_memory::outcome::Outcome;
use waggle_proto::wire::{self, CanonicalizeReply, CanonicalizeRequest};

use super::views;
use crate::call::Call;
use crate::engine::Engine;
use crate::error::CallError;

pub(super) async fn handle(engine: &Arc<Engine>, request: CanonicalizeRequest) -> Result<CanonicalizeReply, CallError> {
    let call = Call::new(engine, request.context)?;
    if request.ids.is_empty() || request.ids.len() > Canonicalize::MEMORIES_MAX {
        let why = format!("{} ids; 1 to {}", request.ids.len(), Canonicalize::MEMORIES_MAX);
        return Err(CallError::invalid("node_ids", why));
    }
    let memories = request.ids.iter().map(|id| wire::memory_id("node_ids", id));
    let command = Canonicalize {
        tenant: call.tenant.clone(),
        memories: memories.collect::<Result<_, _>>()?,
        canonical: wire::memory_id("canonical_id", &request.canonical)?,
    };
    let written = call.propose(Command::Canonicalize(command)).await?;
    let Outcome::Canonicalized(done) = written.outcome else {
        return Err(CallError::halted(
            "merge memories",
            &"the outcome is of another command",
        ));
    };
    call.read(move |engine, rows| {
        let memory = rows
            .resolved(done.id)
            .ok_or_else(|| CallError::not_found("memory", &done.id.to_string()))?;
        Ok(CanonicalizeReply {
            memory: Some(views::full(rows, &memory, engine.clock.wall())),
            merged: done.merged.iter().map(|id| id.bytes().to_vec()).collect(),
            links_moved: done.links_moved,
            links_dropped: done.links_dropped,
            aliases_added: done.aliases_added,
        })
    })
    .await
}
