//! The memory that a file about nothing known describes.

use waggle_memory::id::MemoryId;
use waggle_memory::kind::{Kind, Role};
use waggle_memory::scope::Scope;
use waggle_memory::time::Millis;

use super::changes::{check_content, check_label, check_tags};
use super::note::{BadField, Note, Said};
use super::plan::{ConflictReason, EvidenceClaim, StoreMemory};
use super::write::confidence_of;
use super::yaml::Yaml;
use crate::limits::{METADATA_BYTES_MAX, SOURCE_PROMPT_BYTES_MAX};

/// What the older product wrote in place of evidence.
const NO_EVIDENCE: &str = "no evidence recorded";

/// Why a file makes no memory; the reason where it is another than a broken limit.
pub(super) type BadStore = (BadField, Option<ConflictReason>);

/// The memory that a file describes.
pub(super) fn store_of(note: &Note, id: Option<MemoryId>) -> Result<StoreMemory, BadStore> {
    let bad = |field: &'static str, given: &str| {
        let given: String = given.chars().take(200).collect();
        move |why: String| (BadField { field, given, why }, None)
    };
    let label = note.label().to_owned();
    check_label(&label).map_err(bad("label", &label))?;
    let content = note
        .body
        .content
        .as_deref()
        .filter(|content| !content.trim().is_empty());
    let content = content.unwrap_or(&label).to_owned();
    check_content(&content).map_err(bad("content", &content))?;
    let tags = match note.tags() {
        Said::Value(tags) => tags,
        _ => Vec::new(),
    };
    check_tags(&tags).map_err(bad("tags", ""))?;
    let word = note.text("node_type").map(str::trim).filter(|word| !word.is_empty());
    let kind = match word {
        None => Kind::Note,
        Some(word) => word.parse().map_err(|e: waggle_memory::kind::UnknownWord| {
            let (bad, _) = bad("node_type", word)(e.to_string());
            (bad, Some(ConflictReason::UnknownWord))
        })?,
    };
    let time = |key| match note.time(key) {
        Ok(Said::Value(at)) => Ok(Some(at)),
        Ok(_) => Ok(None),
        Err(bad) => Err((bad, None)),
    };
    let (valid_from, valid_to): (Option<Millis>, Option<Millis>) = (time("valid_from")?, time("valid_to")?);
    if valid_from.zip(valid_to).is_some_and(|(from, to)| to <= from) {
        return Err(bad("valid_to", "")("must lie after valid_from".to_owned()));
    }
    let scope_field = |field: &'static str| {
        let text = note.text(field).unwrap_or_default();
        if text.len() > Scope::FIELD_BYTES_MAX || text.chars().any(char::is_control) {
            let why = format!(
                "must be at most {} bytes without control characters",
                Scope::FIELD_BYTES_MAX
            );
            return Err(bad(field, text)(why));
        }
        Ok(text.to_owned())
    };
    let source_prompt = note.text("source_prompt").unwrap_or_default();
    if source_prompt.len() > SOURCE_PROMPT_BYTES_MAX {
        return Err(bad("source_prompt", source_prompt)(format!(
            "must be at most {SOURCE_PROMPT_BYTES_MAX} bytes"
        )));
    }
    Ok(StoreMemory {
        key: 0,
        path: note.path.clone(),
        id,
        scope: Scope {
            project: scope_field("project")?,
            agent_id: scope_field("agent_id")?,
            session_id: scope_field("session_id")?,
        },
        label,
        content,
        kind,
        tags,
        aliases: aliases_of(note),
        source_prompt: source_prompt.to_owned(),
        metadata: metadata_of(note),
        confidence: confidence_of(note.text("confidence")),
        valid_from,
        valid_to,
        recorded_at: time("created_at")?,
        evidence: claims_of(note),
    })
}

/// An object of JSON that stands in a text, within its limit. Anything else is nothing: it is never interpreted.
fn metadata_of(note: &Note) -> String {
    let text = note.text("metadata").unwrap_or_default();
    let is_object = text.len() <= METADATA_BYTES_MAX
        && serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(text).is_ok();
    if is_object { text.to_owned() } else { String::new() }
}

fn aliases_of(note: &Note) -> Vec<String> {
    let aliases = note.records("aliases").iter();
    let texts = aliases.filter_map(|alias| alias.text().or_else(|| alias.text_of("text")));
    let usable = texts.filter(|text| check_content(text).is_ok());
    usable
        .take(waggle_memory::memory::Memory::ALIASES_MAX)
        .map(str::to_owned)
        .collect()
}

/// The evidence that a file states: its records, else its lines. "No evidence recorded." is none.
fn claims_of(note: &Note) -> Vec<EvidenceClaim> {
    let kept = waggle_memory::memory::Memory::EVIDENCE_KEPT_MAX as usize;
    let mut claims: Vec<EvidenceClaim> = note.records("evidence").iter().filter_map(claim_of_record).collect();
    if claims.is_empty() {
        claims = note
            .body
            .evidence
            .iter()
            .filter_map(|line| claim_of_line(line))
            .collect();
    }
    claims.truncate(kept);
    claims
}

fn claim_of_record(record: &Yaml) -> Option<EvidenceClaim> {
    let text = record.text_of("source_text").or_else(|| record.text())?;
    let owned = |key| record.text_of(key).unwrap_or_default().to_owned();
    is_evidence(text).then(|| EvidenceClaim {
        text: text.to_owned(),
        role: record.text_of("source_role").and_then(|word| word.parse().ok()),
        turn_index: record.text_of("turn_index").and_then(|n| n.parse().ok()),
        session_id: owned("session_id"),
        agent_id: owned("agent_id"),
        observed_at: record.text_of("observed_at").and_then(super::note::parse_time),
    })
}

/// `[user turn 3] text`.
fn claim_of_line(line: &str) -> Option<EvidenceClaim> {
    let (source, text) = match line.strip_prefix('[').and_then(|rest| rest.split_once("] ")) {
        Some((source, text)) => (source, text),
        None => ("", line),
    };
    let mut words = source.split(' ');
    let role: Option<Role> = words.next().and_then(|word| word.parse().ok());
    let turn_index = words.nth(1).and_then(|n| n.parse().ok());
    is_evidence(text).then(|| EvidenceClaim {
        text: text.to_owned(),
        role,
        turn_index,
        ..EvidenceClaim::default()
    })
}

fn is_evidence(text: &str) -> bool {
    let bare = text.trim().trim_matches(['_', '*', '.']).to_lowercase();
    !bare.is_empty() && bare != NO_EVIDENCE
}
