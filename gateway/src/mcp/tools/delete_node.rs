//! Erases a memory and leaves a tombstone.

use waggle_proto::wire::DeleteMemoryRequest;

use super::ToolCall;
use crate::fault::Fault;
use crate::mcp::result::Answer;
use crate::mcp::translate;
use crate::route::timed;

pub(super) async fn run(call: &ToolCall<'_>) -> Result<Answer, Fault> {
    let request = DeleteMemoryRequest {
        context: None,
        id: call.arguments.id("node_id"),
    };
    let reply = call
        .app
        .cluster
        .memory(call.caller, &call.call, |mut client, context, left| {
            let request = timed(
                DeleteMemoryRequest {
                    context: Some(context),
                    ..request.clone()
                },
                left,
            );
            async move { client.delete_memory(request).await }
        })
        .await?;
    let mut answer = Answer::default();
    answer.put("id", translate::id(&reply.id));
    answer.put_some("label", reply.label);
    answer.put("deleted", reply.deleted);
    answer.put("deleted_edges", reply.deleted_links);
    answer.put("turns_kept", reply.turns_kept);
    answer.put_some("receipt", reply.receipt);
    Ok(answer)
}
