//! Memories and links in the words that agents know: node and edge. Empty and default values are left out; lists show
//! a brief form.

use serde_json::{Map, Value, json};
use uuid::Uuid;
use waggle_memory::kind::{Confidence, Kind, Origin, Relationship, Role};
use waggle_memory::time::Millis;
use waggle_proto::wire;

use crate::mcp::result::{is_empty, shorten};

/// Content in lists.
const BRIEF_CONTENT_BYTES: usize = 600;

/// Tags that the system keeps for itself; hidden in lists.
const BOOKKEEPING: [&str; 18] = [
    "observed",
    "decomposed",
    "category",
    "requirement",
    "constraint",
    "hedged",
    "conditional",
    "planned",
    "negated",
    "suggestion",
    "todo",
    "personal",
    "role",
    "schedule",
    "decision-rationale",
    "code-path",
    "value",
    "date",
];
const BOOKKEEPING_PREFIXES: [&str; 5] = ["speaker:", "choice:", "rejected:", "previous:", "category:"];

pub(crate) fn id(bytes: &[u8]) -> String {
    Uuid::from_slice(bytes).map_or_else(|_| String::new(), |uuid| uuid.to_string())
}

pub(crate) fn ids(list: &[Vec<u8>]) -> Vec<String> {
    list.iter().map(|bytes| id(bytes)).collect()
}

pub(crate) fn key(bytes: &[u8]) -> [u8; 16] {
    bytes.try_into().unwrap_or_default()
}

pub(crate) fn time(millis: i64) -> String {
    Millis(millis).to_string()
}

/// Thousandths as a number.
pub(crate) fn thousandths(value: u32) -> Value {
    json!(f64::from(value) / 1000.0)
}

/// A score with three decimals: more would only cost tokens.
pub(crate) fn score(value: f32) -> Value {
    let rounded = (f64::from(value) * 1000.0).round() / 1000.0;
    if rounded.is_finite() { json!(rounded) } else { json!(0) }
}

fn narrow(number: u32) -> u8 {
    u8::try_from(number).unwrap_or_default()
}

pub(crate) fn kind(number: u32) -> &'static str {
    Kind::from_number(narrow(number)).map_or("unknown", Kind::word)
}

pub(crate) fn confidence(number: u32) -> &'static str {
    Confidence::from_number(narrow(number)).map_or("unknown", Confidence::word)
}

pub(crate) fn relationship(number: u32) -> &'static str {
    Relationship::from_number(narrow(number)).map_or("unknown", Relationship::word)
}

fn origin(number: u32) -> &'static str {
    Origin::from_number(narrow(number)).map_or("unknown", Origin::word)
}

pub(crate) fn role(number: u32) -> &'static str {
    Role::from_number(narrow(number)).map_or("unknown", Role::word)
}

/// Collects fields and drops empty ones.
#[derive(Default)]
pub(crate) struct Fields(Map<String, Value>);

impl Fields {
    pub(crate) fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        let value = value.into();
        if !is_empty(&value) {
            self.0.insert(key.to_owned(), value);
        }
        self
    }

    /// Only where `shown` holds.
    pub(crate) fn with_if(self, shown: bool, key: &str, value: impl Into<Value>) -> Self {
        if shown { self.with(key, value) } else { self }
    }

    pub(crate) fn value(self) -> Value {
        Value::Object(self.0)
    }

    pub(crate) fn map(self) -> Map<String, Value> {
        self.0
    }
}

/// As lists show it.
pub(crate) fn brief_node(memory: &wire::Memory) -> Fields {
    let (content, cut) = shorten(&memory.content, BRIEF_CONTENT_BYTES);
    let tags: Vec<&String> = memory.tags.iter().filter(|tag| !is_bookkeeping(tag)).collect();
    Fields::default()
        .with("id", id(&memory.id))
        .with("label", memory.label.as_str())
        .with("content", content)
        .with_if(cut, "content_truncated", true)
        .with("node_type", kind(memory.kind))
        .with("tags", json!(tags))
        .with(
            "project",
            memory.scope.as_ref().map_or("", |scope| scope.project.as_str()),
        )
        .with_if(
            memory.confidence != u32::from(Confidence::Explicit.number()),
            "confidence",
            confidence(memory.confidence),
        )
        .with_if(memory.state != "current", "state", memory.state.as_str())
        .with_if(
            memory.valid_from != memory.recorded_at,
            "valid_from",
            time(memory.valid_from),
        )
        .with("valid_to", memory.valid_to.map(time))
        .with("due", memory.due.map(time))
        .with("superseded_by", id(&memory.superseded_by))
        .with("conflicts", conflict_marks(&memory.conflicts))
        .with("updated_by", updated_by(&memory.conflicts))
        .with("updated_at", time(memory.updated_at))
}

/// Everything that is known of it.
pub(crate) fn full_node(memory: &wire::Memory, tenant: &str) -> Fields {
    let scope = memory.scope.clone().unwrap_or_default();
    let aliases: Vec<Value> = memory
        .aliases
        .iter()
        .map(|alias| json!({"text": alias.text, "author": alias.author, "added_at": time(alias.added_at)}))
        .collect();
    Fields::default()
        .with("id", id(&memory.id))
        .with("tenant_id", tenant)
        .with("namespace", memory.namespace.as_str())
        .with("project", scope.project)
        .with("agent_id", scope.agent_id)
        .with("session_id", scope.session_id)
        .with("label", memory.label.as_str())
        .with("content", memory.content.as_str())
        .with("node_type", kind(memory.kind))
        .with("tags", json!(memory.tags))
        .with("aliases", aliases)
        .with("source_prompt", memory.source_prompt.as_str())
        .with("confidence", confidence(memory.confidence))
        .with("state", memory.state.as_str())
        .with("valid_from", time(memory.valid_from))
        .with("valid_to", memory.valid_to.map(time))
        .with("due", memory.due.map(time))
        .with("recorded_at", time(memory.recorded_at))
        .with("created_at", time(memory.recorded_at))
        .with("updated_at", time(memory.updated_at))
        .with("version", memory.version)
        .with("author", memory.author.as_str())
        .with("superseded_by", id(&memory.superseded_by))
        .with("conflicts", conflict_marks(&memory.conflicts))
        .with("updated_by", updated_by(&memory.conflicts))
        .with("evidence_count", memory.evidence_count)
        .with(
            "evidence_records",
            memory.evidence.iter().map(evidence).collect::<Vec<_>>(),
        )
        .with(
            "embedding_status",
            if memory.awaits_vector {
                "pending"
            } else if memory.has_vector {
                "ready"
            } else {
                "none"
            },
        )
}

/// What is left of an erased memory.
pub(crate) fn tombstone(tombstone: &wire::Tombstone) -> Value {
    let scope = tombstone.scope.clone().unwrap_or_default();
    let hash: String = tombstone.content_hash.iter().map(|byte| format!("{byte:02x}")).collect();
    Fields::default()
        .with("id", id(&tombstone.id))
        .with("deleted", true)
        .with("deleted_at", time(tombstone.deleted_at))
        .with("author", tombstone.author.as_str())
        .with("receipt", tombstone.receipt.as_str())
        .with("content_hash", hash)
        .with_if(tombstone.kind > 0, "node_type", kind(tombstone.kind))
        .with("project", scope.project)
        .with("agent_id", scope.agent_id)
        .with("session_id", scope.session_id)
        .value()
}

pub(crate) fn evidence(evidence: &wire::Evidence) -> Value {
    let turn = !evidence.turn_id.is_empty();
    let scope = evidence.scope.clone().unwrap_or_default();
    Fields::default()
        .with("evidence_id", id(&evidence.id))
        .with("kind", if turn { "turn" } else { "author" })
        .with("turn_id", id(&evidence.turn_id))
        .with_if(turn, "turn_index", evidence.turn_index)
        .with_if(turn, "source_role", role(evidence.role))
        .with("source_text", evidence.text.as_str())
        .with_if(turn, "source_span_start", evidence.span_start)
        .with_if(turn, "source_span_end", evidence.span_end)
        .with("session_id", scope.session_id)
        .with("agent_id", scope.agent_id)
        .with("observed_at", time(evidence.observed_at))
        .with("author", evidence.author.as_str())
        .value()
}

fn conflict_marks(marks: &[wire::ConflictMark]) -> Vec<Value> {
    let mark = |mark: &wire::ConflictMark| {
        json!({
            "edge_id": id(&mark.link_id),
            "relationship": relationship(mark.relationship),
            "with": id(&mark.with),
            "state": if mark.resolved { "resolved" } else { "open" },
        })
    };
    marks.iter().map(mark).collect()
}

/// The other end of an open `updates` link that would replace this memory.
fn updated_by(marks: &[wire::ConflictMark]) -> String {
    marks
        .iter()
        .find(|mark| mark.updated_by_other && !mark.resolved)
        .map_or_else(String::new, |mark| id(&mark.with))
}

fn is_bookkeeping(tag: &str) -> bool {
    BOOKKEEPING.contains(&tag) || BOOKKEEPING_PREFIXES.iter().any(|prefix| tag.starts_with(prefix))
}

/// As lists show it.
pub(crate) fn brief_edge(link: &wire::Link) -> Fields {
    Fields::default()
        .with("id", id(&link.id))
        .with("source_id", id(&link.source))
        .with("target_id", id(&link.target))
        .with("relationship", relationship(link.relationship))
        .with_if(
            link.weight_thousandths != 1000,
            "weight",
            thousandths(link.weight_thousandths),
        )
        .with("confidence", confidence(link.confidence))
        .with("reason", link.reason.as_str())
        .with("state", state(link))
}

/// Everything that is known of it.
pub(crate) fn full_edge(link: &wire::Link) -> Fields {
    let resolution = link.resolution.as_ref().map(|resolution| {
        Fields::default()
            .with("state", if resolution.resolved { "resolved" } else { "open" })
            .with("winner", id(&resolution.winner))
            .with("note", resolution.note.as_str())
            .with_if(
                resolution.resolved,
                "kind",
                if resolution.stated { "stated" } else { "decided" },
            )
            .with("by", resolution.by.as_str())
            .with("at", resolution.at.map(time))
            .value()
    });
    Fields::default()
        .with("id", id(&link.id))
        .with("source_id", id(&link.source))
        .with("target_id", id(&link.target))
        .with("relationship", relationship(link.relationship))
        .with("weight", thousandths(link.weight_thousandths))
        .with("confidence", confidence(link.confidence))
        .with("origin", origin(link.origin))
        .with("reason", link.reason.as_str())
        .with("shared_terms", json!(link.shared_terms))
        .with("author", link.author.as_str())
        .with("created_at", time(link.created_at))
        .with("version", link.version)
        .with("resolution", resolution.unwrap_or_default())
        .with("metadata", json!({"edge_confidence": confidence(link.confidence)}))
}

/// A conflict in the answer of a write or a query.
pub(crate) fn conflict(link: &wire::Link) -> Value {
    Fields::default()
        .with("edge_id", id(&link.id))
        .with("relationship", relationship(link.relationship))
        .with("source_id", id(&link.source))
        .with("target_id", id(&link.target))
        .with("state", if state(link).is_empty() { "open" } else { state(link) })
        .with("reason", link.reason.as_str())
        .value()
}

/// A conflict as one of its ends sees it.
pub(crate) fn conflict_seen_from(link: &wire::Link, own_id: &str) -> Value {
    let (source, target) = (id(&link.source), id(&link.target));
    let with = if source == own_id { target } else { source };
    Fields::default()
        .with("edge_id", id(&link.id))
        .with("relationship", relationship(link.relationship))
        .with("with", with)
        .with("state", if state(link).is_empty() { "open" } else { state(link) })
        .with("reason", link.reason.as_str())
        .value()
}

/// Of a conflict; other links have none.
fn state(link: &wire::Link) -> &'static str {
    let conflict = Relationship::from_number(narrow(link.relationship)).is_some_and(Relationship::is_conflict);
    match (&link.resolution, conflict) {
        (Some(resolution), _) if resolution.resolved => "resolved",
        (Some(_), _) | (None, true) => "open",
        (None, false) => "",
    }
}

pub(crate) fn possible_duplicate(duplicate: &wire::PossibleDuplicate) -> Value {
    json!({
        "id": id(&duplicate.id),
        "label": duplicate.label,
        "similarity": thousandths(duplicate.similarity_thousandths),
    })
}

pub(crate) fn turn_hit(hit: &wire::TurnHit) -> Value {
    let scope = hit.scope.clone().unwrap_or_default();
    Fields::default()
        .with("turn_id", id(&hit.turn_id))
        .with("session_id", scope.session_id)
        .with("turn_index", hit.turn_index)
        .with("role", role(hit.role))
        .with("text", hit.text.as_str())
        .with("observed_at", time(hit.observed_at))
        .with("node_ids", ids(&hit.memory_ids))
        .with("score", score(hit.score))
        .with("project", scope.project)
        .with_if(hit.superseded, "superseded", true)
        .with_if(hit.outside_period, "outside_period", true)
        .with("explain", hit.explain.as_ref().map(hit_explain))
        .value()
}

pub(crate) fn node_hit(hit: &wire::NodeHit) -> Value {
    let mut fields = hit.memory.as_ref().map(brief_node).unwrap_or_default();
    // An explained hit shows the bookkeeping as well.
    if let (Some(_), Some(memory)) = (&hit.explain, &hit.memory) {
        fields = fields.with("tags", json!(memory.tags));
    }
    fields
        // A brief ranks by section, not by score.
        .with_if(hit.score != 0.0, "score", score(hit.score))
        .with_if(hit.support, "support", true)
        .with("turn_ids", ids(&hit.turn_ids))
        .with_if(hit.learned_later, "learned_later", true)
        .with_if(hit.outside_period, "outside_period", true)
        .with("explain", hit.explain.as_ref().map(hit_explain))
        .value()
}

fn hit_explain(explain: &wire::HitExplain) -> Value {
    Fields::default()
        .with("lexical", score(explain.lexical))
        .with_if(explain.lexical_rank > 0, "lexical_rank", explain.lexical_rank)
        .with("dense", score(explain.dense))
        .with_if(explain.dense_rank > 0, "dense_rank", explain.dense_rank)
        .with("matched_words", json!(explain.matched_words))
        .with("matched_alias", explain.matched_alias.as_str())
        .with("path", ids(&explain.path))
        .with("scope_preference", explain.scope_preference.as_str())
        .value()
}

pub(crate) fn answer_explain(explain: &wire::AnswerExplain) -> Value {
    json!({
        "candidates": explain.candidates,
        "removed_by_scope": explain.removed_by_scope,
        "removed_by_state": explain.removed_by_state,
        "removed_by_type_or_tag": explain.removed_by_type_or_tag,
        "index_documents": explain.index_documents,
        "best_cosine": score(explain.best_cosine),
        "model": explain.model,
    })
}

pub(crate) fn interpretation(read: &wire::Interpretation) -> Value {
    // Open ends are left out.
    let closed = |at: &i64| *at != i64::MIN && *at != i64::MAX;
    Fields::default()
        .with("words", json!(read.words))
        .with("period_from", read.period_from.filter(closed).map(time))
        .with("period_to", read.period_to.filter(closed).map(time))
        .with("as_of", read.as_of.map(time))
        .with_if(read.period_empty, "period_empty", true)
        .with("order", read.order.as_str())
        .value()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_ends_of_a_period_are_left_out() {
        let read = wire::Interpretation {
            period_from: Some(0),
            period_to: Some(i64::MAX),
            ..wire::Interpretation::default()
        };
        let value = interpretation(&read);
        assert_eq!(value["period_from"], time(0));
        assert!(value.get("period_to").is_none(), "{value}");
    }
}
