//! delete_node: erase one memory. Works on a full disk, too.

use std::sync::Arc;

use waggle_memory::command::Command;
use waggle_memory::outcome::Outcome;
use waggle_proto::wire::{self, DeleteMemoryReply, DeleteMemoryRequest};

use crate::call::Call;
use crate::engine::Engine;
use crate::error::CallError;

pub(super) async fn handle(engine: &Arc<Engine>, request: DeleteMemoryRequest) -> Result<DeleteMemoryReply, CallError> {
    let call = Call::new(engine, request.context)?;
    let id = wire::memory_id("node_id", &request.id)?;
    let written = call
        .propose_always(Command::DeleteMemory {
            tenant: call.tenant.clone(),
            id,
        })
        .await?;
    let Outcome::Deleted {
        id,
        deleted,
        label,
        deleted_links,
        turns_kept,
        receipt,
    } = written.outcome
    else {
        return Err(CallError::halted(
            "delete a memory",
            &"the outcome is of another command",
        ));
    };
    Ok(DeleteMemoryReply {
        id: id.bytes().to_vec(),
        label,
        deleted,
        deleted_links,
        turns_kept,
        receipt,
    })
}
