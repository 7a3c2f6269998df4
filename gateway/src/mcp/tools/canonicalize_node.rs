//! Merges memories into one by hand.

use waggle_proto::wire::CanonicalizeRequest;

use super::ToolCall;
use crate::fault::Fault;
use crate::mcp::result::Answer;
use crate::mcp::translate;
use crate::route::timed;

pub(super) async fn run(call: &ToolCall<'_>) -> Result<Answer, Fault> {
    let ids = call.arguments.ids("node_ids");
    if ids.is_empty() {
        return Err(Fault::validation(
            "node_ids",
            "field 'node_ids' is empty; name the memories to merge into canonical_id",
        ));
    }
    let request = CanonicalizeRequest {
        context: None,
        ids: ids.to_vec(),
        canonical: call.arguments.id("canonical_id"),
    };
    let reply = call
        .app
        .cluster
        .history(call.caller, &call.call, |mut client, context, left| {
            let request = timed(
                CanonicalizeRequest {
                    context: Some(context),
                    ..request.clone()
                },
                left,
            );
            async move { client.canonicalize(request).await }
        })
        .await?;
    let mut answer = Answer::default();
    answer.put("merged_node_ids", translate::ids(&reply.merged));
    answer.put("edges_repointed", reply.links_moved);
    answer.put("edges_dropped", reply.links_dropped);
    answer.put("aliases_added", reply.aliases_added);
    if let Some(memory) = &reply.memory {
        answer.put("canonical_node", translate::full_node(memory, call.tenant()).value());
    }
    Ok(answer)
}
