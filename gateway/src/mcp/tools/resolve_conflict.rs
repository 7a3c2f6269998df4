//! Settles a conflict, with or without a winner.

use waggle_proto::wire::ResolveConflictRequest;

use super::ToolCall;
use crate::fault::Fault;
use crate::mcp::result::Answer;
use crate::mcp::translate;
use crate::route::timed;

pub(super) async fn run(call: &ToolCall<'_>) -> Result<Answer, Fault> {
    let arguments = &call.arguments;
    let request = ResolveConflictRequest {
        context: None,
        link_id: arguments.id("edge_id"),
        winner: arguments.id("winner"),
        note: arguments.text("resolution_note").to_owned(),
        valid_to: arguments.optional_time("valid_to").map(|at| at.0),
    };
    let reply = call
        .app
        .cluster
        .memory(call.caller, &call.call, |mut client, context, left| {
            let request = timed(
                ResolveConflictRequest {
                    context: Some(context),
                    ..request.clone()
                },
                left,
            );
            async move { client.resolve_conflict(request).await }
        })
        .await?;
    let mut answer = Answer::default();
    let resolution = reply
        .link
        .as_ref()
        .and_then(|link| link.resolution.clone())
        .unwrap_or_default();
    answer.put("resolved", resolution.resolved);
    answer.put_some("winner", translate::id(&resolution.winner));
    answer.put_some("resolution_note", resolution.note);
    answer.put_some("resolved_at", resolution.at.map(translate::time));
    answer.put_some("resolved_by", resolution.by);
    if let Some(link) = &reply.link {
        answer.put("edge", translate::full_edge(link).value());
    }
    for (name, memory) in [("source_node", &reply.source), ("target_node", &reply.target)] {
        if let Some(memory) = memory {
            answer.put(name, translate::brief_node(memory).value());
        }
    }
    Ok(answer)
}
