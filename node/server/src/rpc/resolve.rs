//! resolve_conflict: settle a contradiction or an update.

use std::sync::Arc;

use waggle_memory::command::{Command, ResolveConflict};
use waggle_memory::outcome::Outcome;
use waggle_memory::time::Millis;
use waggle_proto::wire::{self, ResolveConflictReply, ResolveConflictRequest};

use super::views;
use crate::call::Call;
use crate::engine::Engine;
use crate::error::CallError;

/// Longest note in bytes.
const NOTE_BYTES_MAX: usize = 4_096;

pub(super) async fn handle(
    engine: &Arc<Engine>,
    request: ResolveConflictRequest,
) -> Result<ResolveConflictReply, CallError> {
    let call = Call::new(engine, request.context)?;
    if request.note.len() > NOTE_BYTES_MAX {
        return Err(CallError::invalid(
            "resolution_note",
            format!("at most {NOTE_BYTES_MAX} bytes"),
        ));
    }
    let command = ResolveConflict {
        tenant: call.tenant.clone(),
        link: wire::link_id("edge_id", &request.link_id)?,
        winner: wire::optional_memory_id("winner", &request.winner)?,
        note: request.note,
        valid_to: request.valid_to.map(Millis),
    };
    let written = call.propose(Command::ResolveConflict(command)).await?;
    let Outcome::ConflictResolved { id } = written.outcome else {
        return Err(CallError::halted(
            "resolve a conflict",
            &"the outcome is of another command",
        ));
    };
    call.read(move |engine, rows| {
        let now = engine.clock.wall();
        let link = rows
            .link(id)
            .ok_or_else(|| CallError::not_found("edge", &id.to_string()))?;
        let end = |memory| rows.memory(memory).map(|memory| views::full(rows, &memory, now));
        Ok(ResolveConflictReply {
            link: Some(wire::link(&link)),
            source: end(link.source),
            target: end(link.target),
        })
    })
    .await
}
