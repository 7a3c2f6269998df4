//! Links two memories.

use waggle_memory::kind::Relationship;
use waggle_proto::wire::StoreLinkRequest;

use super::ToolCall;
use crate::fault::Fault;
use crate::mcp::result::Answer;
use crate::mcp::translate;
use crate::route::timed;

pub(super) async fn run(call: &ToolCall<'_>) -> Result<Answer, Fault> {
    let arguments = &call.arguments;
    if arguments.optional_id("source_id") == arguments.optional_id("target_id") {
        return Err(Fault::validation(
            "target_id",
            "field 'target_id' is the source itself; link two different memories",
        ));
    }
    let relationship: Relationship = arguments.text("relationship").parse().map_err(|_| Fault::internal())?;
    let request = StoreLinkRequest {
        context: None,
        source: arguments.id("source_id"),
        target: arguments.id("target_id"),
        relationship: u32::from(relationship.number()),
        // Checked to lie between 0 and 1.
        weight_thousandths: (arguments.number("weight") * 1000.0).round() as u32,
    };
    let reply = call
        .app
        .cluster
        .memory(call.caller, &call.call, |mut client, context, left| {
            let request = timed(
                StoreLinkRequest {
                    context: Some(context),
                    ..request.clone()
                },
                left,
            );
            async move { client.store_link(request).await }
        })
        .await?;
    let mut answer = Answer {
        head: reply.link.as_ref().map(translate::full_edge).unwrap_or_default().map(),
        ..Answer::default()
    };
    answer.put("created", reply.created);
    Ok(answer)
}
