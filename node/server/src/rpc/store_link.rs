//! store_edge: a link that somebody draws.

use std::sync::Arc;

use waggle_memory::command::{Command, StoreLink};
use waggle_memory::kind::Relationship;
use waggle_memory::outcome::Outcome;
use waggle_proto::wire::{self, StoreLinkReply, StoreLinkRequest};

use crate::call::Call;
use crate::engine::Engine;
use crate::error::CallError;
use crate::plan;

pub(super) async fn handle(engine: &Arc<Engine>, request: StoreLinkRequest) -> Result<StoreLinkReply, CallError> {
    let call = Call::new(engine, request.context)?;
    let relationship = u8::try_from(request.relationship)
        .ok()
        .and_then(Relationship::from_number)
        .ok_or_else(|| {
            CallError::invalid(
                "relationship",
                format!("{} is not a relationship", request.relationship),
            )
        })?;
    if request.weight_thousandths > 1_000 {
        return Err(CallError::invalid("weight", "must lie between 0 and 1"));
    }
    let command = StoreLink {
        tenant: call.tenant.clone(),
        id: plan::new_link_id(),
        source: wire::memory_id("source_id", &request.source)?,
        target: wire::memory_id("target_id", &request.target)?,
        relationship,
        weight_thousandths: request.weight_thousandths,
    };
    let written = call.propose(Command::StoreLink(command)).await?;
    let Outcome::LinkStored { id, created } = written.outcome else {
        return Err(CallError::halted("store a link", &"the outcome is of another command"));
    };
    call.read(move |_, rows| {
        // Somebody may have erased an end in between: then the link is gone with it.
        let link = rows
            .link(id)
            .ok_or_else(|| CallError::not_found("edge", &id.to_string()))?;
        Ok(StoreLinkReply {
            link: Some(wire::link(&link)),
            created,
        })
    })
    .await
}
