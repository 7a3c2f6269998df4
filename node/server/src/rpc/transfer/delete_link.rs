//! Erases one link. Works on a full disk, too.

use std::sync::Arc;

use waggle_memory::command::Command;
use waggle_memory::outcome::Outcome;
use waggle_proto::wire::{self, DeleteLinkReply, DeleteLinkRequest};

use crate::call::Call;
use crate::engine::Engine;
use crate::error::CallError;

pub(super) async fn handle(engine: &Arc<Engine>, request: DeleteLinkRequest) -> Result<DeleteLinkReply, CallError> {
    let call = Call::new(engine, request.context)?;
    let id = wire::link_id("edge_id", &request.id)?;
    let written = call
        .propose_always(Command::DeleteLink {
            tenant: call.tenant.clone(),
            id,
        })
        .await?;
    match written.outcome {
        Outcome::LinkDeleted { deleted, .. } => Ok(DeleteLinkReply { deleted }),
        _ => Err(CallError::halted("delete a link", &"the outcome is of another command")),
    }
}
