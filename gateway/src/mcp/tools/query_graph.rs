//! Recall: memories and turns in one ranking, with the links among what is shown.

use serde_json::json;
use waggle_memory::kind::Kind;
use waggle_proto::wire::query_request::Mode;
use waggle_proto::wire::{self, QueryReply, QueryRequest};

use super::ToolCall;
use super::get_related::unseen;
use crate::cursor::Left;
use crate::fault::Fault;
use crate::mcp::result::{Answer, Attached, Count, Item, Needs, shorten};
use crate::mcp::translate;
use crate::route::timed;

/// As much of the question as is repeated.
const ECHO_BYTES_MAX: usize = 200;

pub(super) async fn run(call: &ToolCall<'_>) -> Result<Answer, Fault> {
    let request = request(call)?;
    let reply = call
        .app
        .cluster
        .memory(call.caller, &call.call, |mut client, context, left| {
            let request = timed(
                QueryRequest {
                    context: Some(context),
                    ..request.clone()
                },
                left,
            );
            async move { client.query(request).await }
        })
        .await?;
    Ok(answer(call, &reply))
}

fn request(call: &ToolCall<'_>) -> Result<QueryRequest, Fault> {
    let arguments = &call.arguments;
    let kinds: Vec<u32> = arguments
        .texts("node_types")
        .iter()
        .filter_map(|word| word.parse::<Kind>().ok())
        .map(|kind| u32::from(kind.number()))
        .collect();
    let query = arguments.text("query");
    if query.trim().is_empty() && kinds.is_empty() && arguments.texts("tags").is_empty() {
        return Err(Fault::validation(
            "query",
            "field 'query' is blank; ask something, or give node_types or tags",
        ));
    }
    let mode = match arguments.text("retrieval_mode") {
        "graph" => Mode::Graph,
        "replay" => Mode::Replay,
        _ => Mode::Fusion,
    };
    let walk = call.walk.as_ref();
    Ok(QueryRequest {
        context: None,
        scope: Some(arguments.scope()),
        query: query.to_owned(),
        max_nodes: arguments.count("max_nodes"),
        max_depth: arguments.count("max_depth"),
        expand_depth: arguments.count("expand_depth"),
        mode: mode.into(),
        include_invalidated: arguments.flag("include_invalidated"),
        as_of: arguments.optional_time("as_of").map(|at| at.0),
        known_at: arguments.optional_time("known_at").map(|at| at.0),
        kinds,
        tags: arguments.texts("tags").to_vec(),
        strict_scope: arguments.flag("strict_scope"),
        explain: arguments.flag("explain"),
        bounded: call.bounded,
        read_after_index: call.read_after,
        recorded_until: walk.map(|walk| walk.read_stamp).filter(|stamp| *stamp > 0),
        shown: walk.map(|walk| walk.position.shown().to_vec()).unwrap_or_default(),
    })
}

fn answer(call: &ToolCall<'_>, reply: &QueryReply) -> Answer {
    let arguments = &call.arguments;
    let mut answer = Answer {
        lists: vec!["nodes", "edges", "replay_hits"],
        ..Answer::default()
    };
    answer.put("query", shorten(arguments.text("query"), ECHO_BYTES_MAX).0);
    answer.put("retrieval_mode", arguments.text("retrieval_mode"));
    answer.put_some(
        "interpreted",
        reply
            .interpreted
            .as_ref()
            .map(translate::interpretation)
            .unwrap_or_default(),
    );
    answer.put("total_nodes_in_graph", reply.total_in_scope);
    let mut warnings = reply.warnings.clone();
    if arguments.optional_time("as_of").is_some() && arguments.flag("include_invalidated") {
        let both = "as_of_overrides_include_invalidated";
        if !warnings.iter().any(|known| known == both) {
            warnings.push(both.to_owned());
        }
    }
    answer.put_some("warnings", warnings);
    // On a later page an empty rest is the end, not a finding.
    if call.walk.is_none() && !reply.empty_reason.is_empty() {
        metrics::counter!("waggle_empty_results_total", "reason" => reason_label(&reply.empty_reason)).increment(1);
        answer.put("empty_reason", reply.empty_reason.as_str());
        answer.put_some("hint", reply.hint.as_str());
    }
    answer.put_some(
        "explain",
        reply
            .explain
            .as_ref()
            .map(translate::answer_explain)
            .unwrap_or_default(),
    );
    if let Some(point) = &reply.read_at {
        answer.put("read_at", call.app.read_points.seal(point, call.tenant()));
        answer.read_stamp = point.stamp;
    }
    answer.items = unseen(items(reply), call.walk.as_ref());
    if let Some(walk) = &call.walk {
        keep_what_is_left(&mut answer.items, walk.left);
    }
    answer.attached = attached(reply);
    answer
}

/// Hits in the order of their ranking; what the ranking does not name, such as supporting memories, comes after.
fn items(reply: &QueryReply) -> Vec<Item> {
    let mut nodes: Vec<Option<Item>> = reply
        .nodes
        .iter()
        .map(|hit| {
            let memory = hit.memory.as_ref()?;
            let item = Item::listed("nodes", translate::node_hit(hit), &memory.id);
            Some(Item {
                count: Count::Node,
                hash: wire::short_hash(false, &memory.id),
                ..item
            })
        })
        .collect();
    let mut turns: Vec<Option<Item>> = reply
        .turns
        .iter()
        .map(|turn| {
            let item = Item::listed("replay_hits", translate::turn_hit(turn), &turn.turn_id);
            Some(Item {
                id: None,
                count: Count::Turn,
                hash: wire::short_hash(true, &turn.turn_id),
                ..item
            })
        })
        .collect();
    let mut items = Vec::with_capacity(nodes.len() + turns.len());
    for (rank, hit) in reply.ranking.iter().enumerate() {
        let found = if hit.is_turn {
            reply
                .turns
                .iter()
                .position(|turn| turn.turn_id == hit.id)
                .and_then(|at| turns.get_mut(at))
        } else {
            let same = |node: &wire::NodeHit| node.memory.as_ref().is_some_and(|memory| memory.id == hit.id);
            reply.nodes.iter().position(same).and_then(|at| nodes.get_mut(at))
        };
        if let Some(mut item) = found.and_then(Option::take) {
            let kind = if hit.is_turn { "turn" } else { "node" };
            let row = json!({"rank": rank + 1, "kind": kind, "id": translate::id(&hit.id), "score": translate::score(hit.score)});
            item.also.push(("fusion_hits", row));
            items.push(item);
        }
    }
    // A node that shares a rank with its conflict partner must stay behind it: the order of `nodes` is the rank order.
    let unranked: Vec<Item> = nodes.into_iter().chain(turns).flatten().collect();
    items.extend(unranked);
    in_node_order(items, reply)
}

/// `nodes` is shown in the node's order whatever the ranking says.
fn in_node_order(items: Vec<Item>, reply: &QueryReply) -> Vec<Item> {
    let place = |item: &Item| {
        item.id.and_then(|id| {
            reply
                .nodes
                .iter()
                .position(|hit| hit.memory.as_ref().is_some_and(|memory| memory.id == id))
        })
    };
    let mut by_rank: Vec<(usize, Item)> = Vec::new();
    let mut rest: Vec<(usize, Item)> = Vec::new();
    for (slot, item) in items.into_iter().enumerate() {
        match place(&item) {
            Some(order) => by_rank.push((order, item)),
            None => rest.push((slot, item)),
        }
    }
    by_rank.sort_by_key(|(order, _)| *order);
    // Turns keep the slots that the ranking gave them; nodes fill the others in order.
    let mut merged: Vec<Item> = by_rank.into_iter().map(|(_, item)| item).collect();
    for (slot, item) in rest {
        let at = slot.min(merged.len());
        merged.insert(at, item);
    }
    merged
}

/// max_nodes holds across pages: the node fills every answer up to it, so a later one may bring more than the first
/// answer had.
fn keep_what_is_left(items: &mut Vec<Item>, mut left: Left) {
    items.retain(|item| {
        let left = match item.count {
            Count::None => return true,
            Count::Node => &mut left.nodes,
            Count::Turn => &mut left.turns,
        };
        let keep = *left > 0;
        *left = left.saturating_sub(1);
        keep
    });
}

fn attached(reply: &QueryReply) -> Vec<Attached> {
    let ends = |link: &wire::Link| (translate::key(&link.source), translate::key(&link.target));
    let conflicts = reply.conflicts.iter().map(|link| {
        let (source, target) = ends(link);
        Attached {
            list: "conflicts",
            value: translate::conflict(link),
            needs: Needs::Either(source, target),
        }
    });
    let edges = reply.links.iter().map(|link| {
        let (source, target) = ends(link);
        Attached {
            list: "edges",
            value: translate::brief_edge(link).value(),
            needs: Needs::Both(source, target),
        }
    });
    conflicts.chain(edges).collect()
}

/// The closed set of reasons, as a metric label.
pub(super) fn reason_label(reason: &str) -> &'static str {
    const REASONS: [&str; 8] = [
        "no_memories_in_scope",
        "scope_unknown",
        "all_closed",
        "before_first_record",
        "filtered_by_type_or_tag",
        "no_match",
        "query_has_no_words",
        "all_scheduled",
    ];
    REASONS
        .iter()
        .find(|known| **known == reason)
        .copied()
        .unwrap_or("other")
}
