//! Contradictions and replacements, newest first.

use waggle_proto::wire::{Conflict, ListConflictsReply, ListConflictsRequest};

use super::ToolCall;
use super::get_related::{named, unseen};
use crate::fault::Fault;
use crate::mcp::result::{Answer, Item};
use crate::mcp::translate::{self, Fields};
use crate::route::timed;

pub(super) async fn run(call: &ToolCall<'_>) -> Result<Answer, Fault> {
    let arguments = &call.arguments;
    let request = ListConflictsRequest {
        context: None,
        scope: Some(arguments.scope()),
        include_resolved: arguments.flag("include_resolved"),
        limit: arguments.count("limit"),
        until: call.walk.as_ref().map(|walk| walk.read_stamp).filter(|stamp| *stamp != 0),
    };
    let reply = call
        .app
        .cluster
        .history(call.caller, &call.call, |mut client, context, left| {
            let request = timed(
                ListConflictsRequest {
                    context: Some(context),
                    ..request.clone()
                },
                left,
            );
            async move { client.list_conflicts(request).await }
        })
        .await?;
    Ok(answer(call, &reply))
}

fn answer(call: &ToolCall<'_>, reply: &ListConflictsReply) -> Answer {
    let mut answer = Answer {
        lists: vec!["conflicts"],
        read_stamp: reply.until,
        ..Answer::default()
    };
    if reply.more {
        answer.put("warnings", vec!["list_cut"]);
    }
    answer.items = unseen(reply.conflicts.iter().filter_map(item).collect(), call.walk.as_ref());
    answer
}

fn item(conflict: &Conflict) -> Option<Item> {
    let link = conflict.link.as_ref()?;
    let resolution = link.resolution.clone().unwrap_or_default();
    let node = |memory: &Option<waggle_proto::wire::Memory>| memory.as_ref().map(|m| translate::brief_node(m).value());
    let fields = Fields::default()
        .with("state", if resolution.resolved { "resolved" } else { "open" })
        .with("edge", translate::brief_edge(link).value())
        .with("reason", link.reason.as_str())
        .with("created_at", translate::time(link.created_at))
        .with("source_node", node(&conflict.source))
        .with("target_node", node(&conflict.target))
        .with("winner", translate::id(&resolution.winner))
        .with("resolved_by", resolution.by)
        .with("resolved_at", resolution.at.map(translate::time));
    Some(named("conflicts", fields, &translate::id(&link.id)))
}
