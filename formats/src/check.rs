//! What must hold for a record that comes from outside, whatever the format: bounds, and rules that a single record can
//! break. Exports check the same, so that what is written can be read back.

use waggle_memory::link::Link;
use waggle_memory::memory::{Evidence, Memory, Version};
use waggle_memory::record::{MemoryRecord, Record, Redirect};
use waggle_memory::scope::Scope;
use waggle_memory::statement::Statement;
use waggle_memory::time::Millis;
use waggle_memory::transcript::{Session, Turn};

use crate::json;
use crate::limits::{
    CONTENT_BYTES_MAX, LABEL_BYTES_MAX, METADATA_BYTES_MAX, METADATA_DEPTH_MAX, NOTE_BYTES_MAX, SHORT_BYTES_MAX,
    SOURCE_PROMPT_BYTES_MAX, TAGS_MAX, TERMS_MAX, TURN_BYTES_MAX,
};

/// What is wrong; names the field and the limit, never the value.
pub type Problem = String;

/// Sort and id of a record, for messages.
pub fn name(record: &Record) -> String {
    match record {
        Record::Session(_) => "session".to_owned(),
        Record::Turn(turn, _) => format!("turn {}", turn.id),
        Record::Memory(record) => format!("memory {}", record.memory.id),
        Record::Link(link) => format!("link {}", link.id),
        Record::Redirect(redirect) => format!("redirect {}", redirect.from),
        Record::Tombstone(id, _) => format!("tombstone {id}"),
    }
}

/// Checks one record.
pub fn check(record: &Record) -> Result<(), Problem> {
    match record {
        Record::Session(session) => check_session(session),
        Record::Turn(turn, _) => check_turn(turn),
        Record::Memory(record) => check_memory(record),
        Record::Link(link) => check_link(link),
        Record::Redirect(redirect) => check_redirect(redirect),
        Record::Tombstone(_, tombstone) => {
            short("author", &tombstone.author.0)?;
            short("receipt", &tombstone.receipt)
        }
    }
}

fn check_session(session: &Session) -> Result<(), Problem> {
    short("project", &session.project)?;
    short("session_id", &session.session_id)?;
    short("title", &session.title)?;
    count("agent_ids", session.agents.len(), Session::AGENTS_MAX)?;
    session.agents.iter().try_for_each(|agent| short("agent_ids", agent))
}

fn check_turn(turn: &Turn) -> Result<(), Problem> {
    check_scope(&turn.scope)?;
    bytes("text", &turn.text, TURN_BYTES_MAX)?;
    short("author", &turn.author.0)?;
    count("node_ids", turn.memories.len(), Turn::MEMORIES_MAX)
}

fn check_memory(record: &MemoryRecord) -> Result<(), Problem> {
    let memory = &record.memory;
    check_scope(&memory.scope)?;
    short("namespace", &memory.namespace)?;
    short("author", &memory.author.0)?;
    text(&memory.label, &memory.content, &memory.tags)?;
    validity(memory.valid_from, memory.valid_to)?;
    bytes("source_prompt", &memory.source_prompt, SOURCE_PROMPT_BYTES_MAX)?;
    check_metadata(&memory.metadata)?;
    if memory.version == 0 || memory.text_version > memory.version {
        return Err("version counts from 1, and text_version is not above it".to_owned());
    }
    count("aliases", memory.aliases.len(), Memory::ALIASES_MAX)?;
    for alias in &memory.aliases {
        bytes("aliases.text", &alias.text, CONTENT_BYTES_MAX)?;
        short("aliases.author", &alias.author.0)?;
    }
    check_statement(&memory.statement)?;
    count(
        "evidence_records",
        record.evidence.len(),
        most(Memory::EVIDENCE_KEPT_MAX),
    )?;
    record
        .evidence
        .iter()
        .try_for_each(|(_, evidence)| check_evidence(evidence))?;
    if !record.evidence.is_sorted_by(|(a, _), (b, _)| a < b) {
        return Err("evidence_records must be sorted by number, each number once".to_owned());
    }
    count("versions", record.versions.len(), most(Memory::VERSIONS_KEPT_MAX))?;
    record.versions.iter().try_for_each(check_version)?;
    let before = |version: &Version| version.version < memory.version;
    if !record.versions.is_sorted_by(|a, b| a.version < b.version) || !record.versions.iter().all(before) {
        return Err("versions must be sorted by version, each once, all before the current one".to_owned());
    }
    Ok(())
}

fn check_evidence(evidence: &Evidence) -> Result<(), Problem> {
    check_scope(&evidence.scope)?;
    bytes("evidence_records.source_text", &evidence.text, Evidence::TEXT_BYTES_MAX)?;
    short("evidence_records.author", &evidence.author.0)?;
    match &evidence.turn {
        Some(span) if span.start > span.end => Err("evidence_records.turn: the span ends before it starts".to_owned()),
        _ => Ok(()),
    }
}

fn check_version(version: &Version) -> Result<(), Problem> {
    text(&version.label, &version.content, &version.tags)?;
    validity(version.valid_from, version.valid_to)?;
    bytes("versions.note", &version.note, NOTE_BYTES_MAX)?;
    short("versions.replaced_by", &version.replaced_by.0)
}

fn check_statement(statement: &Statement) -> Result<(), Problem> {
    count("statement.general", statement.general.len(), Statement::PARTS_MAX)?;
    count("statement.claims", statement.claims.len(), Statement::PARTS_MAX)?;
    count("statement.ends", statement.ends.len(), Statement::PARTS_MAX)?;
    for claim in &statement.claims {
        bytes("statement.claims.slot_text", &claim.slot_text, NOTE_BYTES_MAX)?;
        bytes("statement.claims.value_text", &claim.value_text, NOTE_BYTES_MAX)?;
    }
    for end in &statement.ends {
        bytes("statement.ends.value_text", &end.value_text, NOTE_BYTES_MAX)?;
    }
    Ok(())
}

fn check_link(link: &Link) -> Result<(), Problem> {
    if link.source == link.target {
        return Err("source_id and target_id are the same memory".to_owned());
    }
    if link.weight_thousandths > 1_000 {
        return Err("weight_thousandths is above 1000".to_owned());
    }
    if link.relationship.is_conflict() != link.resolution.is_some() {
        return Err("resolution belongs to contradicts and updates, and only to them".to_owned());
    }
    bytes("reason", &link.reason, NOTE_BYTES_MAX)?;
    short("author", &link.author.0)?;
    count("shared_terms", link.shared_terms.len(), TERMS_MAX)?;
    link.shared_terms
        .iter()
        .try_for_each(|term| short("shared_terms", term))?;
    let Some(resolution) = &link.resolution else {
        return Ok(());
    };
    bytes("resolution.note", &resolution.note, NOTE_BYTES_MAX)?;
    if let Some(by) = &resolution.by {
        short("resolution.by", &by.0)?;
    }
    match resolution.winner {
        Some(winner) if winner != link.source && winner != link.target => {
            Err("resolution.winner is no end of the link".to_owned())
        }
        Some(_) if !resolution.resolved => Err("resolution.winner is set and resolved is false".to_owned()),
        _ => Ok(()),
    }
}

fn check_redirect(redirect: &Redirect) -> Result<(), Problem> {
    if redirect.from == redirect.to {
        return Err("a redirect leads to itself".to_owned());
    }
    Ok(())
}

/// Checks metadata: empty, or an object as canonical JSON within the bounds.
pub fn check_metadata(text: &str) -> Result<(), Problem> {
    if text.is_empty() {
        return Ok(());
    }
    bytes("metadata", text, METADATA_BYTES_MAX)?;
    let value: serde_json::Value = json::parse(text.as_bytes()).map_err(|why| format!("metadata: {why}"))?;
    if !value.is_object() {
        return Err("metadata must be an object".to_owned());
    }
    if json::depth(&value) > METADATA_DEPTH_MAX {
        return Err(format!("metadata is nested deeper than {METADATA_DEPTH_MAX}"));
    }
    if json::canonical(&value) != text {
        return Err("metadata must be canonical JSON: keys sorted, no blanks".to_owned());
    }
    Ok(())
}

fn check_scope(scope: &Scope) -> Result<(), Problem> {
    short("project", &scope.project)?;
    short("agent_id", &scope.agent_id)?;
    short("session_id", &scope.session_id)
}

fn text(label: &str, content: &str, tags: &[String]) -> Result<(), Problem> {
    if label.trim().is_empty() {
        return Err("label is blank".to_owned());
    }
    if content.trim().is_empty() {
        return Err("content is blank".to_owned());
    }
    bytes("label", label, LABEL_BYTES_MAX)?;
    bytes("content", content, CONTENT_BYTES_MAX)?;
    count("tags", tags.len(), TAGS_MAX)?;
    tags.iter().try_for_each(|tag| short("tags", tag))
}

fn validity(from: Millis, to: Option<Millis>) -> Result<(), Problem> {
    match to {
        Some(to) if to <= from => Err("valid_to is not after valid_from".to_owned()),
        _ => Ok(()),
    }
}

fn short(field: &str, text: &str) -> Result<(), Problem> {
    bytes(field, text, SHORT_BYTES_MAX)
}

fn bytes(field: &str, text: &str, limit: usize) -> Result<(), Problem> {
    if text.len() > limit {
        return Err(format!("{field} has {} bytes; the limit is {limit}", text.len()));
    }
    if text.contains('\0') {
        return Err(format!("{field} contains a NUL character"));
    }
    Ok(())
}

fn count(field: &str, count: usize, limit: usize) -> Result<(), Problem> {
    if count > limit {
        return Err(format!("{field} has {count} entries; the limit is {limit}"));
    }
    Ok(())
}

fn most(limit: u32) -> usize {
    usize::try_from(limit).unwrap_or(usize::MAX)
}
