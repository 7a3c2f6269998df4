//! What changed in a period.

use serde_json::json;
use waggle_memory::time::Millis;
use waggle_proto::wire::{DiffReply, DiffRequest, Link, Memory};

use super::ToolCall;
use super::get_node_history::tombstone;
use super::get_related::{named, unseen};
use crate::fault::Fault;
use crate::mcp::result::{Answer, Item};
use crate::mcp::translate::{self, Fields};
use crate::route::timed;

pub(super) async fn run(call: &ToolCall<'_>) -> Result<Answer, Fault> {
    let arguments = &call.arguments;
    let started = call.walk.as_ref().map_or(call.now, |walk| walk.started);
    let since = arguments.optional_time("since").unwrap_or(started.plus(-Millis::DAY));
    if since > started {
        return Err(Fault::validation(
            "since",
            format!("field 'since' ({since}) lies in the future; nothing has changed since then"),
        ));
    }
    // Later pages read the period of the first one.
    let read = call
        .walk
        .as_ref()
        .map(|walk| walk.read_stamp)
        .filter(|stamp| *stamp != 0);
    let until = read.or(arguments.optional_time("until").map(|at| at.0));
    if until.is_some_and(|until| until < since.0) {
        return Err(Fault::validation(
            "until",
            format!("field 'until' lies before since ({since}); exchange the two"),
        ));
    }
    let request = DiffRequest {
        context: None,
        scope: Some(arguments.scope()),
        since: since.0,
        until,
    };
    let reply = call
        .app
        .cluster
        .history(call.caller, &call.call, |mut client, context, left| {
            let request = timed(
                DiffRequest {
                    context: Some(context),
                    ..request.clone()
                },
                left,
            );
            async move { client.diff(request).await }
        })
        .await?;
    Ok(answer(call, started, &reply))
}

fn answer(call: &ToolCall<'_>, started: Millis, reply: &DiffReply) -> Answer {
    let mut answer = Answer {
        lists: vec!["added_nodes", "updated_nodes", "closed_nodes", "deleted_nodes"],
        read_stamp: reply.until,
        ..Answer::default()
    };
    answer.put("since", translate::time(reply.since));
    answer.put("until", translate::time(reply.until));
    answer.put("generated_at", translate::time(started.0));
    let counts = reply.counts.unwrap_or_default();
    answer.put(
        "counts",
        json!({
            "added_nodes": counts.added,
            "updated_nodes": counts.updated,
            "closed_nodes": counts.closed,
            "deleted_nodes": counts.deleted,
            "created_edges": counts.links,
            "contradiction_edges": counts.contradictions,
            "resolved_conflicts": counts.resolved,
        }),
    );
    let warnings = [(reply.more, "list_cut"), (reply.incomplete, "period_cut")];
    let warnings: Vec<&str> = warnings
        .into_iter()
        .filter(|(on, _)| *on)
        .map(|(_, word)| word)
        .collect();
    answer.put_some("warnings", warnings);
    answer.items = unseen(items(reply), call.walk.as_ref());
    answer
}

/// What needs attention first: conflicts, then what is gone, then what is new.
fn items(reply: &DiffReply) -> Vec<Item> {
    let nodes = |list: &'static str, memories: &[Memory]| -> Vec<Item> {
        let item = |memory: &Memory| named(list, translate::brief_node(memory), &translate::id(&memory.id));
        memories.iter().map(item).collect()
    };
    let edges = |list: &'static str, links: &[Link], show: fn(&Link) -> Fields| -> Vec<Item> {
        let item = |link: &Link| named(list, show(link), &translate::id(&link.id));
        links.iter().map(item).collect()
    };
    let deleted = reply.deleted.iter().map(|erased| {
        let id = translate::id(&erased.id);
        Item {
            value: tombstone(erased),
            ..named("deleted_nodes", Fields::default(), &id)
        }
    });
    let mut items = edges("contradiction_edges", &reply.contradictions, translate::brief_edge);
    items.extend(edges("resolved_conflicts", &reply.resolved, translate::full_edge));
    items.extend(deleted);
    items.extend(nodes("closed_nodes", &reply.closed));
    items.extend(nodes("updated_nodes", &reply.updated));
    items.extend(nodes("added_nodes", &reply.added));
    items.extend(edges("created_edges", &reply.links, translate::brief_edge));
    items
}
