//! The free texts of a record, with the names that findings show.

use waggle_memory::link::Link;
use waggle_memory::memory::Evidence;
use waggle_memory::record::{MemoryRecord, Record};
use waggle_memory::statement::Statement;

use crate::limits::{
    CONTENT_BYTES_MAX, LABEL_BYTES_MAX, NOTE_BYTES_MAX, SHORT_BYTES_MAX, SOURCE_PROMPT_BYTES_MAX, TURN_BYTES_MAX,
};

pub(super) const LABEL: &str = "label";
pub(super) const CONTENT: &str = "content";
pub(super) const METADATA: &str = "metadata";

/// Gives every text to `visit`, which may change it.
pub(super) fn visit(record: &mut Record, visit: &mut impl FnMut(&str, &mut String)) {
    match record {
        Record::Session(session) => visit("title", &mut session.title),
        Record::Turn(turn, _) => visit("text", &mut turn.text),
        Record::Memory(record) => visit_memory(record, visit),
        Record::Link(link) => visit_link(link, visit),
        Record::Redirect(_) | Record::Tombstone(..) => {}
    }
}

/// How long a field may be.
pub(super) fn bytes_max(field: &str) -> usize {
    let last = field.rsplit('.').next().unwrap_or(field);
    match last {
        "label" => LABEL_BYTES_MAX,
        "source_prompt" => SOURCE_PROMPT_BYTES_MAX,
        "source_text" => Evidence::TEXT_BYTES_MAX,
        "content" => CONTENT_BYTES_MAX,
        "text" if field.starts_with("aliases") => CONTENT_BYTES_MAX,
        "text" => TURN_BYTES_MAX,
        "reason" | "note" | "slot_text" | "value_text" => NOTE_BYTES_MAX,
        _ => SHORT_BYTES_MAX,
    }
}

fn visit_memory(record: &mut MemoryRecord, visit: &mut impl FnMut(&str, &mut String)) {
    let memory = &mut record.memory;
    visit(LABEL, &mut memory.label);
    visit(CONTENT, &mut memory.content);
    list("tags", &mut memory.tags, visit);
    for (index, alias) in memory.aliases.iter_mut().enumerate() {
        visit(&format!("aliases[{index}].text"), &mut alias.text);
    }
    visit("source_prompt", &mut memory.source_prompt);
    if !memory.metadata.is_empty() {
        visit(METADATA, &mut memory.metadata);
    }
    visit_statement(&mut memory.statement, visit);
    for (index, (_, evidence)) in record.evidence.iter_mut().enumerate() {
        visit(&format!("evidence_records[{index}].source_text"), &mut evidence.text);
    }
    for (index, version) in record.versions.iter_mut().enumerate() {
        visit(&format!("versions[{index}].label"), &mut version.label);
        visit(&format!("versions[{index}].content"), &mut version.content);
        visit(&format!("versions[{index}].note"), &mut version.note);
        list(&format!("versions[{index}].tags"), &mut version.tags, visit);
    }
}

fn visit_statement(statement: &mut Statement, visit: &mut impl FnMut(&str, &mut String)) {
    for (index, claim) in statement.claims.iter_mut().enumerate() {
        visit(&format!("statement.claims[{index}].slot_text"), &mut claim.slot_text);
        visit(&format!("statement.claims[{index}].value_text"), &mut claim.value_text);
    }
    for (index, end) in statement.ends.iter_mut().enumerate() {
        visit(&format!("statement.ends[{index}].value_text"), &mut end.value_text);
    }
}

fn visit_link(link: &mut Link, visit: &mut impl FnMut(&str, &mut String)) {
    visit("reason", &mut link.reason);
    list("shared_terms", &mut link.shared_terms, visit);
    if let Some(resolution) = &mut link.resolution {
        visit("resolution.note", &mut resolution.note);
    }
}

fn list(field: &str, texts: &mut [String], visit: &mut impl FnMut(&str, &mut String)) {
    for (index, text) in texts.iter_mut().enumerate() {
        visit(&format!("{field}[{index}]"), text);
    }
}
