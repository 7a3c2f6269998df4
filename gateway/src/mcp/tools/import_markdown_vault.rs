//! Takes the edits of a vault in.

use serde_json::Value;

use super::ToolCall;
use super::import_graph_backup::{refuse_paths, set_used, source};
use crate::fault::Fault;
use crate::mcp::result::Answer;
use crate::transfer::vault_import;

pub(super) async fn run(call: &ToolCall<'_>) -> Result<Answer, Fault> {
    refuse_paths(&call.arguments)?;
    let dry_run = call.arguments.flag("dry_run");
    let source = source(call)?;
    let _permit = call.app.transfer.enter()?;
    let done = Box::pin(vault_import::run(call.app, call.caller, &call.call, source, dry_run)).await?;
    set_used(call);
    let mut answer = Answer::default();
    if let Value::Object(fields) = done.json(dry_run) {
        answer.head = fields;
    }
    Ok(answer)
}
