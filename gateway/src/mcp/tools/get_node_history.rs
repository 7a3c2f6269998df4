//! A memory with everything that is known of its past, or the tombstone of an erased one.

use serde_json::{Value, json};
use waggle_proto::wire::{HistoryReply, HistoryRequest, Tombstone, Version};

use super::ToolCall;
use super::get_related::{named, unseen};
use crate::fault::Fault;
use crate::mcp::result::{Answer, Attached, Item, Needs};
use crate::mcp::translate::{self, Fields};
use crate::route::timed;

pub(super) async fn run(call: &ToolCall<'_>) -> Result<Answer, Fault> {
    let request = HistoryRequest {
        context: None,
        id: call.arguments.id("node_id"),
        max_depth: call.arguments.count("max_depth"),
    };
    let reply = call
        .app
        .cluster
        .history(call.caller, &call.call, |mut client, context, left| {
            let request = timed(
                HistoryRequest {
                    context: Some(context),
                    ..request.clone()
                },
                left,
            );
            async move { client.history(request).await }
        })
        .await?;
    Ok(answer(call, &reply))
}

fn answer(call: &ToolCall<'_>, reply: &HistoryReply) -> Answer {
    let mut answer = Answer {
        lists: vec!["versions", "evidence_records"],
        ..Answer::default()
    };
    answer.put_some("redirected_from", translate::id(&reply.redirected_from));
    if let Some(erased) = &reply.tombstone {
        answer.put("node", tombstone(erased));
        return answer;
    }
    if reply.more {
        answer.put("warnings", vec!["neighbourhood_cut"]);
    }
    if let Some(memory) = &reply.memory {
        // Later pages bring what the first one left out, and only the name of what they are about.
        let node = if call.walk.is_none() {
            let mut node = translate::full_node(memory, call.tenant()).map();
            // They have lists of their own, with everything.
            node.shift_remove("conflicts");
            if let Some(aliases) = node.shift_remove("aliases") {
                answer.head.insert("aliases".into(), aliases);
            }
            Value::Object(node)
        } else {
            json!({"id": translate::id(&memory.id)})
        };
        answer.head.insert("node".into(), node);
    }
    answer.items = unseen(items(reply), call.walk.as_ref());
    answer.attached = reply
        .links
        .iter()
        .map(|link| Attached {
            list: "edges",
            value: translate::brief_edge(link).value(),
            needs: Needs::Either(translate::key(&link.source), translate::key(&link.target)),
        })
        .collect();
    answer
}

fn items(reply: &HistoryReply) -> Vec<Item> {
    let mut items: Vec<Item> = reply
        .versions
        .iter()
        .map(|version| named("versions", version_fields(version), &version.version.to_string()))
        .collect();
    items.extend(reply.conflicts.iter().map(|link| {
        let fields = translate::full_edge(link).with("edge_id", translate::id(&link.id));
        named("conflicts", fields, &translate::id(&link.id))
    }));
    items.extend(reply.evidence.iter().map(|evidence| {
        let value = translate::evidence(evidence);
        Item {
            value,
            ..named("evidence_records", Fields::default(), &translate::id(&evidence.id))
        }
    }));
    items.extend(
        reply
            .related
            .iter()
            .map(|memory| Item::listed("related_nodes", translate::brief_node(memory).value(), &memory.id)),
    );
    items
}

fn version_fields(version: &Version) -> Fields {
    Fields::default()
        .with("version", version.version)
        .with("recorded_at", translate::time(version.recorded_at))
        .with("author", version.author.as_str())
        .with("change", version.reason.as_str())
        .with("reason", version.note.as_str())
        .with("changed", version.changed.clone())
        .with("label", version.label.as_str())
        .with("content", version.content.as_str())
        .with("node_type", translate::kind(version.kind))
        .with("tags", version.tags.clone())
        .with("valid_from", translate::time(version.valid_from))
        .with("valid_to", version.valid_to.map(translate::time))
        .with("superseded_by", translate::id(&version.superseded_by))
}

/// What is left of an erased memory.
pub(super) fn tombstone(tombstone: &Tombstone) -> Value {
    let scope = tombstone.scope.clone().unwrap_or_default();
    let hash: String = tombstone
        .content_hash
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    Fields::default()
        .with("id", translate::id(&tombstone.id))
        .with("deleted", true)
        .with("deleted_at", translate::time(tombstone.deleted_at))
        .with("author", tombstone.author.as_str())
        .with("receipt", tombstone.receipt.as_str())
        .with("content_hash", hash)
        .with_if(tombstone.kind > 0, "node_type", translate::kind(tombstone.kind))
        .with("project", scope.project)
        .with("agent_id", scope.agent_id)
        .with("session_id", scope.session_id)
        .value()
}
