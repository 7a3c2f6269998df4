//! The brief for a new conversation or a task.

use serde_json::Value;
use waggle_proto::wire::{PrimeReply, PrimeRequest};

use super::ToolCall;
use super::get_related::unseen;
use crate::fault::Fault;
use crate::mcp::result::{Answer, Attached, Item, Needs, Place};
use crate::mcp::translate::{self, Fields};
use crate::route::timed;

pub(super) async fn run(call: &ToolCall<'_>) -> Result<Answer, Fault> {
    let arguments = &call.arguments;
    let request = PrimeRequest {
        context: None,
        scope: Some(arguments.scope()),
        query: arguments.text("query").to_owned(),
        include_evidence: arguments.flag("include_evidence"),
        bounded: call.bounded,
        read_after_index: call.read_after,
    };
    let reply = call
        .app
        .cluster
        .memory(call.caller, &call.call, |mut client, context, left| {
            let request = timed(
                PrimeRequest {
                    context: Some(context),
                    ..request.clone()
                },
                left,
            );
            async move { client.prime(request).await }
        })
        .await?;
    Ok(answer(call, &reply))
}

fn answer(call: &ToolCall<'_>, reply: &PrimeReply) -> Answer {
    let mut answer = Answer::default();
    let count: usize = reply.sections.iter().map(|section| section.items.len()).sum();
    answer.put_some("project", reply.project.as_str());
    if call.walk.is_none() {
        answer.put("summary", summary(reply, count));
        if !reply.empty_reason.is_empty() {
            metrics::counter!("waggle_empty_results_total", "reason" => super::query_graph::reason_label(&reply.empty_reason))
                .increment(1);
        }
        answer.put_some("empty_reason", reply.empty_reason.as_str());
        answer.put_some("hint", reply.hint.as_str());
    }
    answer.put("total_nodes_in_graph", reply.total_in_scope);
    answer.put_some("warnings", reply.warnings.clone());
    if let Some(point) = &reply.read_at {
        answer.put("read_at", call.app.read_points.seal(point, call.tenant()));
        answer.read_stamp = point.stamp;
    }
    answer.lists = vec!["nodes", "conflicts"];
    answer.sections = reply.sections.iter().map(|section| section.title.clone()).collect();
    let (mut items, spoken) = section_lines(reply);
    let first_round = reply
        .sections
        .iter()
        .filter(|section| !section.items.is_empty())
        .count();
    let conflicts = reply.conflicts.iter().map(|link| Item {
        id: None,
        ..Item::listed("conflicts", translate::conflict(link), &link.id)
    });
    items.splice(first_round..first_round, conflicts);
    items.extend(nodes(reply, &spoken));
    items.extend(reply.turns.iter().map(|turn| Item {
        id: None,
        ..Item::listed("replay_hits", translate::turn_hit(turn), &turn.turn_id)
    }));
    answer.items = unseen(items, call.walk.as_ref());
    answer.attached = attached(reply);
    answer
}

fn summary(reply: &PrimeReply, count: usize) -> String {
    if count == 0 {
        return "nothing is known in this scope yet".to_owned();
    }
    let parts: Vec<String> = reply
        .sections
        .iter()
        .filter(|section| !section.items.is_empty())
        .map(|section| format!("{} {}", section.items.len(), section.title.to_lowercase()))
        .collect();
    parts.join(", ")
}

/// Every section's best line before any section's second.
fn section_lines(reply: &PrimeReply) -> (Vec<Item>, Vec<Vec<u8>>) {
    let longest = reply
        .sections
        .iter()
        .map(|section| section.items.len())
        .max()
        .unwrap_or(0);
    let mut lines = Vec::new();
    let mut spoken = Vec::new();
    for round in 0..longest {
        for (number, section) in reply.sections.iter().enumerate() {
            let Some(line) = section.items.get(round) else { continue };
            let value = Fields::default()
                .with("node_id", translate::id(&line.memory_id))
                .with("text", line.text.as_str())
                .value();
            let identity = [section.title.as_bytes(), b"\0", &line.memory_id, line.text.as_bytes()].concat();
            lines.push(Item {
                place: Place::Section(number),
                // Links attach to nodes, not to lines.
                id: None,
                ..Item::listed("sections", value, &identity)
            });
            spoken.push(line.memory_id.clone());
        }
    }
    (lines, spoken)
}

/// What sections quote is not said twice: such nodes come without their content.
fn nodes(reply: &PrimeReply, spoken: &[Vec<u8>]) -> Vec<Item> {
    let node = |hit: &waggle_proto::wire::NodeHit| {
        let memory = hit.memory.as_ref()?;
        let mut value = translate::node_hit(hit);
        if let (true, Value::Object(fields)) = (spoken.contains(&memory.id), &mut value) {
            fields.shift_remove("content");
            fields.shift_remove("content_truncated");
        }
        Some(Item::listed("nodes", value, &memory.id))
    };
    reply.nodes.iter().filter_map(node).collect()
}

fn attached(reply: &PrimeReply) -> Vec<Attached> {
    let edge = |link: &waggle_proto::wire::Link| Attached {
        list: "edges",
        value: translate::brief_edge(link).value(),
        needs: Needs::Both(translate::key(&link.source), translate::key(&link.target)),
    };
    reply.links.iter().map(edge).collect()
}
