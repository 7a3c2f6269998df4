//! A bundle as JSON.

use serde_json::{Map, Value, json};
use waggle_memory::link::Link;

use super::BundleRequest;
use super::fill::kept;
use super::tokens;
use super::view::{Change, Hit, Node, View};

/// Version of the members below.
const SCHEMA_VERSION: &str = "1.0.0";
/// Longest query that is repeated.
const QUERY_CHARS_MAX: usize = 120;
/// What the numbers and flags of `render_hints` may add to the empty frame.
const HINTS_BYTES: usize = 160;
/// The lists, in the order in which they get their share of the budget.
const ORDER: [&str; 5] = ["conflicts", "nodes", "edges", "replay_hits", "timeline"];

/// The text, and the members that were cut.
pub(super) fn render(
    view: &View<'_>,
    request: &BundleRequest<'_>,
    token_budget: usize,
) -> Result<(String, Vec<&'static str>), serde_json::Error> {
    let mut lists = [
        view.conflicts.iter().map(edge).collect::<Vec<Value>>(),
        view.nodes.iter().map(node).collect(),
        view.links.iter().map(edge).collect(),
        view.replay.iter().map(hit).collect(),
        view.changes.iter().map(|change| changed(change, view)).collect(),
    ];
    let frame = frame(view, request);
    let left = token_budget
        .saturating_mul(4)
        .saturating_sub(serde_json::to_string(&frame)?.len() + HINTS_BYTES);
    let mut sizes = Vec::new();
    for list in &lists {
        let mut of_list = Vec::new();
        for item in list {
            // With its comma.
            of_list.push(serde_json::to_string(item)?.len() + 1);
        }
        sizes.push(of_list);
    }
    let mut counts = kept(&sizes, left);
    let mut cut: Vec<&'static str> = Vec::new();
    let [_, node_list, ..] = &mut lists;
    if counts.get(1) == Some(&0)
        && let Some(first) = node_list.first_mut()
        && cut_content(first, left)?
    {
        counts = vec![0, 1, 0, 0, 0];
        cut.push("content_truncated");
    }
    let mut object = frame;
    for ((key, list), count) in ORDER.iter().zip(lists).zip(counts) {
        if count < list.len() {
            cut.push(key);
        }
        object.insert((*key).to_owned(), list.into_iter().take(count).collect());
    }
    finish(object, &cut).map(|text| (text, cut))
}

/// Sets the hints, which depend on everything else.
fn finish(mut object: Map<String, Value>, cut: &[&str]) -> Result<String, serde_json::Error> {
    if let Some(Value::Object(hints)) = object.get_mut("render_hints") {
        hints.insert("truncation_flags".to_owned(), json!(cut));
    }
    let bytes = serde_json::to_string(&object)?.len();
    if let Some(Value::Object(hints)) = object.get_mut("render_hints") {
        let digits = tokens(bytes).to_string().len().saturating_sub(1);
        hints.insert("token_estimate".to_owned(), json!(tokens(bytes + digits)));
    }
    serde_json::to_string(&object)
}

/// Everything but the items, in the order of the members.
fn frame(view: &View<'_>, request: &BundleRequest<'_>) -> Map<String, Value> {
    let kinds: Map<String, Value> = view
        .by_kind()
        .into_iter()
        .map(|(kind, count)| (kind.word().to_owned(), json!(count)))
        .collect();
    let open = view.conflicts.iter().filter(|link| link.is_open_conflict()).count();
    let frame = json!({
        "schema_version": SCHEMA_VERSION,
        "export_type": "context_bundle",
        "generated_at": request.generated_at.to_string(),
        "tenant_id": request.tenant.as_str(),
        "project": request.project,
        "mode": request.mode,
        "retrieval_mode": request.retrieval_mode,
        "audience": request.audience.word(),
        "query": request.query.chars().take(QUERY_CHARS_MAX).collect::<String>(),
        "summary": format!("{} current memories, {} links, {open} open conflicts", view.nodes.len(), view.links.len()),
        "nodes": [],
        "edges": [],
        "conflicts": [],
        "replay_hits": [],
        "timeline": [],
        "stats": {
            "total_nodes": view.nodes.len(),
            "total_edges": view.links.len() + view.conflicts.len(),
            "node_type_breakdown": kinds,
        },
        "render_hints": {
            "token_estimate": 0,
            "recommended_paste_order": ["summary", "conflicts", "nodes", "edges", "replay_hits", "timeline"],
            "truncation_flags": [],
            "chunk_count": 1,
        },
    });
    match frame {
        Value::Object(object) => object,
        _ => Map::new(),
    }
}

fn node(node: &Node<'_>) -> Value {
    let memory = node.memory;
    let mut object = Map::new();
    object.insert("id".to_owned(), json!(memory.id.to_string()));
    object.insert("label".to_owned(), json!(node.label));
    object.insert("content".to_owned(), json!(node.content));
    object.insert("node_type".to_owned(), json!(memory.kind.word()));
    let optional = [
        ("project", json!(memory.scope.project), memory.scope.project.is_empty()),
        ("tags", json!(node.tags), node.tags.is_empty()),
        ("aliases", json!(node.aliases), node.aliases.is_empty()),
    ];
    for (key, value, is_empty) in optional {
        if !is_empty {
            object.insert(key.to_owned(), value);
        }
    }
    object.insert("confidence".to_owned(), json!(memory.confidence.word()));
    object.insert("valid_from".to_owned(), json!(memory.valid_from.to_string()));
    if let Some(to) = memory.valid_to {
        object.insert("valid_to".to_owned(), json!(to.to_string()));
    }
    object.insert("updated_at".to_owned(), json!(memory.updated_at.to_string()));
    if !node.support.is_empty() {
        let support = node.support.iter();
        let support: Vec<Value> = support
            .map(|s| json!({"text": s.text, "said_by": s.said_by, "observed_at": s.at.to_string()}))
            .collect();
        object.insert("evidence".to_owned(), json!(support));
    }
    Value::Object(object)
}

fn edge(link: &Link) -> Value {
    let mut object = json!({
        "id": link.id.to_string(),
        "source_id": link.source.to_string(),
        "target_id": link.target.to_string(),
        "relationship": link.relationship.word(),
        "weight": f64::from(link.weight_thousandths) / 1_000.0,
        "confidence": link.confidence.word(),
    });
    if let (Some(resolution), Some(object)) = (&link.resolution, object.as_object_mut()) {
        let state = if resolution.resolved { "resolved" } else { "open" };
        object.insert("state".to_owned(), json!(state));
        if let Some(winner) = resolution.winner {
            object.insert("winner".to_owned(), json!(winner.to_string()));
        }
        if !resolution.note.is_empty() {
            object.insert("resolution_note".to_owned(), json!(resolution.note));
        }
    }
    object
}

fn hit(hit: &Hit) -> Value {
    json!({
        "turn_id": hit.turn_id,
        "session_id": hit.session_id,
        "turn_index": hit.turn_index,
        "role": hit.role.word(),
        "text": hit.text,
        "observed_at": hit.observed_at.to_string(),
        "node_ids": hit.memories.iter().map(ToString::to_string).collect::<Vec<_>>(),
    })
}

fn changed(change: &Change, view: &View<'_>) -> Value {
    json!({
        "timestamp": change.at.to_string(),
        "kind": if change.what == "recorded" { "node_created" } else { "node_updated" },
        "node_id": change.memory.to_string(),
        "label": view.label(change.memory),
    })
}

/// Cuts the content of a memory that is larger than everything there is; false if not even the rest of it fits.
fn cut_content(node: &mut Value, bytes_max: usize) -> Result<bool, serde_json::Error> {
    let Some(object) = node.as_object_mut() else {
        return Ok(false);
    };
    for key in ["evidence", "aliases", "tags"] {
        object.remove(key);
    }
    object.insert("content_truncated".to_owned(), json!(true));
    let content = match object.insert("content".to_owned(), json!("")) {
        Some(Value::String(content)) => content,
        _ => String::new(),
    };
    let Some(room) = bytes_max.checked_sub(serde_json::to_string(object)?.len() + 1) else {
        return Ok(false);
    };
    let mut bytes = 0;
    let mut kept = String::new();
    for c in content.chars() {
        bytes += serde_json::to_string(&c)?.len() - 2;
        if bytes > room {
            break;
        }
        kept.push(c);
    }
    object.insert("content".to_owned(), json!(kept));
    Ok(true)
}
