//! What happened, newest first.

use waggle_proto::wire::{TimelineItem, TimelineReply, TimelineRequest};

use super::ToolCall;
use super::get_related::{named, unseen};
use crate::fault::Fault;
use crate::mcp::result::{Answer, Item};
use crate::mcp::translate::{self, Fields};
use crate::route::timed;

pub(super) async fn run(call: &ToolCall<'_>) -> Result<Answer, Fault> {
    let arguments = &call.arguments;
    if arguments.optional_id("node_id").is_some() && !arguments.text("query").trim().is_empty() {
        return Err(Fault::validation(
            "query",
            "fields 'node_id' and 'query' exclude each other; leave one out",
        ));
    }
    let request = TimelineRequest {
        context: None,
        scope: Some(arguments.scope()),
        id: arguments.id("node_id"),
        query: arguments.text("query").to_owned(),
        limit: arguments.count("limit"),
        max_depth: arguments.count("max_depth"),
        include_evidence: arguments.flag("include_evidence"),
        since: arguments.optional_time("since").map(|at| at.0),
        until: call.walk.as_ref().map(|walk| walk.read_stamp).filter(|stamp| *stamp != 0),
    };
    let reply = call
        .app
        .cluster
        .history(call.caller, &call.call, |mut client, context, left| {
            let request = timed(
                TimelineRequest {
                    context: Some(context),
                    ..request.clone()
                },
                left,
            );
            async move { client.timeline(request).await }
        })
        .await?;
    Ok(answer(call, &reply))
}

fn answer(call: &ToolCall<'_>, reply: &TimelineReply) -> Answer {
    let arguments = &call.arguments;
    let mut answer = Answer {
        lists: vec!["items"],
        read_stamp: reply.until,
        ..Answer::default()
    };
    let scope = Fields::default()
        .with("node_id", translate::id(&arguments.id("node_id")))
        .with("query", arguments.text("query"))
        .with("project", arguments.text("project"))
        .with("agent_id", arguments.text("agent_id"))
        .with("session_id", arguments.text("session_id"));
    answer.put("scope", scope.value());
    if reply.more {
        answer.put("warnings", vec!["list_cut"]);
    }
    answer.items = unseen(reply.items.iter().map(item).collect(), call.walk.as_ref());
    answer
}

fn item(item: &TimelineItem) -> Item {
    let (node_id, edge_id) = (translate::id(&item.memory_id), translate::id(&item.link_id));
    let identity = format!("{} {} {node_id} {edge_id} {}", item.kind, item.at, item.number);
    let fields = Fields::default()
        .with("kind", item.kind.as_str())
        .with("timestamp", translate::time(item.at))
        .with("label", item.label.as_str())
        .with("summary", item.summary.as_str())
        .with("node_id", node_id)
        .with("edge_id", edge_id)
        .with("author", item.author.as_str());
    named("items", fields, &identity)
}
