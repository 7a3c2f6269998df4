//! Counts, from counters that the node keeps: constant cost.

use serde_json::{Map, Value, json};
use waggle_memory::kind::Kind;
use waggle_proto::wire::{StatsReply, StatsRequest};

use super::ToolCall;
use crate::app::App;
use crate::auth::Caller;
use crate::fault::Fault;
use crate::mcp::result::Answer;
use crate::mcp::translate;
use crate::route::{Call, timed};

pub(super) async fn run(call: &ToolCall<'_>) -> Result<Answer, Fault> {
    let reply = ask(call.app, call.caller, &call.call, call.arguments.text("project")).await?;
    Ok(Answer {
        head: stats_json(&reply),
        ..Answer::default()
    })
}

pub(crate) async fn ask(app: &App, caller: &Caller, call: &Call, project: &str) -> Result<StatsReply, Fault> {
    app.cluster
        .memory(caller, call, |mut client, context, left| {
            let request = timed(
                StatsRequest {
                    context: Some(context),
                    project: project.to_owned(),
                },
                left,
            );
            async move { client.stats(request).await }
        })
        .await
}

pub(crate) fn stats_json(reply: &StatsReply) -> Map<String, Value> {
    let mut kinds = Map::new();
    for kind in Kind::ALL {
        let count = reply
            .memories_by_kind
            .get(usize::from(kind.number()))
            .copied()
            .unwrap_or(0);
        if count > 0 {
            kinds.insert(kind.word().to_owned(), count.into());
        }
    }
    let mut links: Map<String, Value> = Map::new();
    for row in &reply.links_by_kind {
        let by_confidence = links
            .entry(translate::relationship(row.relationship))
            .or_insert_with(|| json!({}));
        if let Some(by_confidence) = by_confidence.as_object_mut() {
            by_confidence.insert(translate::confidence(row.confidence).to_owned(), row.count.into());
        }
    }
    let connected: Vec<Value> = reply
        .most_connected
        .iter()
        .take(10)
        .map(|memory| json!({"id": translate::id(&memory.id), "label": memory.label, "edges": memory.links}))
        .collect();
    let recent: Vec<Value> = reply
        .most_recent
        .iter()
        .take(10)
        .map(|memory| {
            json!({
                "id": translate::id(&memory.id),
                "label": memory.label,
                "node_type": translate::kind(memory.kind),
                "updated_at": translate::time(memory.updated_at),
            })
        })
        .collect();
    let status = json!({
        "total_nodes": reply.memories,
        "total_edges": reply.links,
        "node_type_breakdown": kinds,
        "edge_type_breakdown": links,
        "open_conflicts": reply.open_conflicts,
        "closed_nodes": reply.closed,
        "total_sessions": reply.sessions,
        "total_turns": reply.turns,
        "bytes": reply.text_bytes,
        "embedding_status": {"model": reply.embedding_model, "awaiting": reply.awaiting_vectors},
        "index_status": {
            "state": reply.index_state,
            "bytes": reply.index_bytes,
            "documents": reply.index_documents,
        },
        "project_known": reply.project_known,
        "most_connected_nodes": connected,
        "most_recent_nodes": recent,
    });
    match status {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}
