//! The neighbourhood of a memory, strongest first.

use waggle_memory::time::Millis;
use waggle_proto::wire::{RelatedReply, RelatedRequest};

use super::ToolCall;
use crate::cursor::{Position, Walk, item_hash};
use crate::fault::Fault;
use crate::mcp::result::{Answer, Attached, Item, Needs};
use crate::mcp::translate::{self, Fields};
use crate::route::timed;

/// Asked of the node at once; pages are cut from it.
const LIMIT: u32 = waggle_config::limits::NODES_MAX as u32;

pub(super) async fn run(call: &ToolCall<'_>) -> Result<Answer, Fault> {
    let request = RelatedRequest {
        context: None,
        id: call.arguments.id("node_id"),
        max_depth: call.arguments.count("max_depth"),
        include_invalidated: call.arguments.flag("include_invalidated"),
        limit: LIMIT,
    };
    let reply = call
        .app
        .cluster
        .memory(call.caller, &call.call, |mut client, context, left| {
            let request = timed(
                RelatedRequest {
                    context: Some(context),
                    ..request.clone()
                },
                left,
            );
            async move { client.related(request).await }
        })
        .await?;
    Ok(answer(&reply, call.walk.as_ref()))
}

fn answer(reply: &RelatedReply, walk: Option<&Walk>) -> Answer {
    let mut answer = Answer {
        lists: vec!["nodes", "edges"],
        ..Answer::default()
    };
    if reply.more {
        answer.put("warnings", vec!["neighbourhood_cut"]);
    }
    let items = reply.nodes.iter().filter_map(|related| {
        let memory = related.memory.as_ref()?;
        let value = translate::brief_node(memory)
            .with("depth", related.depth)
            .with("via_edge_id", translate::id(&related.via_link_id))
            .with("strength", translate::thousandths(related.strength_thousandths))
            .value();
        Some(Item::listed("nodes", value, &memory.id))
    });
    answer.items = unseen(items.collect(), walk);
    answer.attached = reply
        .links
        .iter()
        .map(|link| Attached {
            list: "edges",
            value: translate::brief_edge(link).value(),
            // The edge comes with its further end; the nearer one may be on an earlier page.
            needs: Needs::Either(translate::key(&link.source), translate::key(&link.target)),
        })
        .filter(|attached| both_known(reply, attached.needs))
        .collect();
    answer
}

/// No answer has an edge with an end that it never shows.
fn both_known(reply: &RelatedReply, needs: Needs) -> bool {
    let known = |id: [u8; 16]| {
        reply
            .nodes
            .iter()
            .any(|related| related.memory.as_ref().is_some_and(|memory| memory.id == id))
    };
    match needs {
        Needs::Both(one, two) | Needs::Either(one, two) => known(one) && known(two),
    }
}

/// Leaves out what earlier pages showed.
pub(super) fn unseen(items: Vec<Item>, walk: Option<&Walk>) -> Vec<Item> {
    match walk.map(|walk| &walk.position) {
        None => items,
        Some(Position::Shown(shown)) => items.into_iter().filter(|item| !shown.contains(&item.hash)).collect(),
        Some(Position::Offset(offset)) => items.into_iter().skip(*offset as usize).collect(),
        // No tool makes such a cursor, and those of others do not open here.
        Some(Position::Behind(..)) => Vec::new(),
    }
}

/// A row of a list that has a name instead of an id.
pub(super) fn named(list: &'static str, fields: Fields, identity: &str) -> Item {
    let mut item = Item::listed(list, fields.value(), identity.as_bytes());
    item.hash = item_hash(format!("{list}\0{identity}").as_bytes());
    item.id = None;
    item
}

/// Where time is unknown it is left out.
pub(super) fn last_used(at: i64) -> Option<String> {
    (at > 0).then(|| Millis(at).to_string())
}
