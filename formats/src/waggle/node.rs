//! Memories as lines of Waggle.

use std::str::FromStr;

use serde_json::{Value, json};
use waggle_memory::extract::RULES_VERSION;
use waggle_memory::id::{EvidenceId, MemoryId, Principal};
use waggle_memory::kind::{Confidence, Kind};
use waggle_memory::memory::{Alias, Evidence, Memory};
use waggle_memory::read::{StatementInput, read_statement};
use waggle_memory::record::MemoryRecord;
use waggle_memory::scope::Scope;
use waggle_memory::statement::Statement;

use super::fields::{self, Object, cut, derived, needed, take, text, texts, time, uuid};
use super::{Changes, Importer, OURS};
use crate::check::check_metadata;
use crate::json::{canonical, why};
use crate::limits::{CONTENT_BYTES_MAX, LABEL_BYTES_MAX, SOURCE_PROMPT_BYTES_MAX};
use crate::shape::memory::MemoryShape;

/// Fields that both have.
const SHARED: [&str; 11] = [
    "agent_id",
    "content",
    "id",
    "label",
    "node_type",
    "project",
    "session_id",
    "source_prompt",
    "tags",
    "valid_from",
    "valid_to",
];
/// Most tags and bytes of one that an import brings.
const TAGS_MAX: usize = 64;
const TAG_BYTES_MAX: usize = 256;
/// What Waggle writes where a memory has no evidence.
const PLACEHOLDER: &str = "No evidence recorded";
/// Tags that Waggle's extraction sets.
const EXTRACTED: [&str; 3] = ["observed", "decomposed", "inferred"];

/// The line of a memory.
pub(crate) fn to_line(record: &MemoryRecord, tenant: &str) -> Result<Value, String> {
    let shape = serde_json::to_value(MemoryShape::from(record)).map_err(|error| why(&error))?;
    let mut rest = fields::object(shape)?;
    let mut line = Object::new();
    take(&mut rest, &SHARED, &mut line);
    let memory = &record.memory;
    let mut metadata = match rest.shift_remove("metadata") {
        Some(Value::Object(members)) => members,
        _ => Object::new(),
    };
    if metadata.is_empty() && !memory.metadata.is_empty() {
        // An empty object is not the same as none.
        rest.insert("metadata".to_owned(), json!({}));
    }
    metadata.insert(OURS.to_owned(), Value::Object(rest));
    let aliases: Vec<&str> = memory.aliases.iter().map(|alias| alias.text.as_str()).collect();
    let evidence: Vec<Value> = record
        .evidence
        .iter()
        .map(|(_, evidence)| evidence_line(evidence))
        .collect();
    let more = json!({
        "access_count": 0,
        "aliases": aliases,
        "created_at": memory.recorded_at.to_string(),
        "embedding_b64": "",
        "embedding_dim": 0,
        "embedding_model_id": "",
        "evidence_records": evidence,
        "metadata": metadata,
        "source_turn_pair_id": "",
        "tenant_id": tenant,
        "updated_at": memory.updated_at.to_string(),
    });
    line.extend(fields::object(more)?);
    Ok(Value::Object(line))
}

fn evidence_line(evidence: &Evidence) -> Value {
    let span = evidence.turn.as_ref();
    json!({
        "evidence_id": evidence.id.to_string(),
        "observed_at": evidence.observed_at.to_string(),
        "session_id": evidence.scope.session_id,
        "source_role": span.map_or("", |span| span.role.word()),
        "source_span_end": span.map(|span| span.end),
        "source_span_start": span.map(|span| span.start),
        "source_text": evidence.text,
        "turn_index": span.map_or(0, |span| span.turn_index),
    })
}

/// The memory of a line.
pub(crate) fn from_line(line: Value, importer: &Importer, changes: &mut Changes) -> Result<MemoryRecord, String> {
    let mut line = fields::object(line)?;
    let mut metadata = fields::metadata(&line);
    if let Some(Value::Object(ours)) = metadata.shift_remove(OURS) {
        return from_ours(&mut line, ours, metadata);
    }
    let given = needed(&line, "id")?;
    let id = MemoryId::from_uuid(uuid(&given, changes));
    let label = needed(&line, "label")?.replace(['\n', '\r'], " ");
    let label = cut(label, LABEL_BYTES_MAX, changes);
    let content = cut(needed(&line, "content")?, CONTENT_BYTES_MAX, changes);
    let word = needed(&line, "node_type")?;
    let kind = Kind::from_str(word.trim().to_lowercase().as_str()).unwrap_or(Kind::Note);
    if id.to_string() != given.trim().to_lowercase() {
        metadata.insert("waggle_id".to_owned(), Value::String(given));
    }
    if kind.word() != word.trim().to_lowercase() {
        metadata.insert("waggle_node_type".to_owned(), Value::String(word));
    }
    let claimed = text(&line, "author")?;
    if !claimed.is_empty() {
        metadata.insert("claimed_author".to_owned(), Value::String(claimed));
    }
    let recorded_at = time(&line, "created_at")?.unwrap_or(importer.at);
    let stated = time(&line, "valid_from")?;
    let valid_from = stated.unwrap_or(recorded_at);
    let scope = Scope {
        project: cut(text(&line, "project")?, Scope::FIELD_BYTES_MAX, changes),
        agent_id: cut(text(&line, "agent_id")?, Scope::FIELD_BYTES_MAX, changes),
        session_id: cut(text(&line, "session_id")?, Scope::FIELD_BYTES_MAX, changes),
    };
    let tags = tags_of(&line, changes)?;
    let extracted = tags.iter().any(|tag| EXTRACTED.contains(&tag.as_str()));
    let read = |label: &str, content: &str| -> Statement {
        read_statement(&StatementInput {
            label,
            content,
            kind,
            author: &importer.author.0,
            observed_at: recorded_at,
        })
    };
    let aliases = aliases_of(&line, &content, importer, changes, |text| read(&label, text))?;
    let evidence = evidence_of(&line, id, &scope, importer, changes)?;
    let memory = Memory {
        id,
        namespace: String::new(),
        statement: read(&label, &content),
        label,
        content,
        kind,
        tags,
        aliases,
        source_prompt: cut(text(&line, "source_prompt")?, SOURCE_PROMPT_BYTES_MAX, changes),
        metadata: metadata_of(metadata, changes),
        evidence_count: u32::try_from(evidence.len()).unwrap_or(u32::MAX),
        confidence: if extracted {
            Confidence::Inferred
        } else {
            Confidence::Explicit
        },
        valid_from,
        valid_from_stated: stated.is_some_and(|at| at != recorded_at),
        valid_to: time(&line, "valid_to")?.filter(|to| *to > valid_from),
        recorded_at,
        updated_at: time(&line, "updated_at")?.unwrap_or(recorded_at).max(recorded_at),
        version: 1,
        text_version: 1,
        author: importer.author.clone(),
        due: None,
        // A note of it without a resolved link closes nothing.
        superseded_by: None,
        rules_version: RULES_VERSION,
        link_count: 0,
        open_conflict_count: 0,
        scope,
    };
    Ok(MemoryRecord {
        memory,
        evidence,
        versions: Vec::new(),
    })
}

/// A line that we wrote: the shared fields from the line, all others from our member.
fn from_ours(line: &mut Object, ours: Object, metadata: Object) -> Result<MemoryRecord, String> {
    let mut shape = ours;
    take(line, &SHARED, &mut shape);
    if !metadata.is_empty() {
        shape.insert("metadata".to_owned(), Value::Object(metadata));
    }
    let shape: MemoryShape =
        serde_json::from_value(Value::Object(shape)).map_err(|error| format!("metadata.{OURS}: {}", why(&error)))?;
    Ok(shape.into())
}

fn tags_of(line: &Object, changes: &mut Changes) -> Result<Vec<String>, String> {
    let mut tags: Vec<String> = texts(line, "tags")?
        .into_iter()
        .map(|tag| cut(tag, TAG_BYTES_MAX, changes))
        .collect();
    tags.sort();
    tags.dedup();
    if tags.len() > TAGS_MAX {
        changes.cut += 1;
        tags.truncate(TAGS_MAX);
    }
    Ok(tags)
}

fn aliases_of(
    line: &Object,
    content: &str,
    importer: &Importer,
    changes: &mut Changes,
    read: impl Fn(&str) -> Statement,
) -> Result<Vec<Alias>, String> {
    let mut wordings = texts(line, "aliases")?;
    wordings.retain(|text| text != content);
    wordings.dedup();
    if wordings.len() > Memory::ALIASES_MAX {
        changes.cut += 1;
        wordings.truncate(Memory::ALIASES_MAX);
    }
    let added_at = time(line, "updated_at")?.unwrap_or(importer.at);
    Ok(wordings
        .into_iter()
        .map(|text| {
            let text = cut(text, CONTENT_BYTES_MAX, changes);
            Alias {
                exact: Some(read(&text).reading()),
                text,
                author: importer.author.clone(),
                added_at,
            }
        })
        .collect())
}

/// Evidence of the line; a memory without any rests on whoever imports it.
fn evidence_of(
    line: &Object,
    id: MemoryId,
    scope: &Scope,
    importer: &Importer,
    changes: &mut Changes,
) -> Result<Vec<(u32, Evidence)>, String> {
    let created = time(line, "created_at")?.unwrap_or(importer.at);
    let items = match line.get("evidence_records") {
        Some(Value::Array(items)) => items.as_slice(),
        _ => &[],
    };
    let mut evidence = Vec::new();
    let most = usize::try_from(Memory::EVIDENCE_KEPT_MAX).unwrap_or(usize::MAX);
    // The newest are kept.
    changes.cut += u64::from(items.len() > most);
    for item in items.iter().skip(items.len().saturating_sub(most)) {
        let Value::Object(item) = item else {
            return Err("evidence_records: expected objects".to_owned());
        };
        let words = text(item, "source_text")?;
        if words.trim().trim_end_matches('.') == PLACEHOLDER {
            changes.evidence_dropped += 1;
            continue;
        }
        let given = text(item, "evidence_id")?;
        let given = if given.is_empty() {
            format!("{id}/evidence/{}", evidence.len())
        } else {
            given
        };
        let mut scope = scope.clone();
        let session = text(item, "session_id")?;
        if !session.is_empty() {
            scope.session_id = cut(session, Scope::FIELD_BYTES_MAX, changes);
        }
        evidence.push(Evidence {
            id: EvidenceId::from_uuid(uuid(&given, &mut Changes::default())),
            // The line names a position, no turn.
            turn: None,
            scope,
            text: cut(words, Evidence::TEXT_BYTES_MAX, changes),
            observed_at: time(item, "observed_at")?.unwrap_or(created),
            author: importer.author.clone(),
        });
    }
    if evidence.is_empty() {
        evidence.push(by_author(id, scope, &importer.author, created));
    }
    Ok((1..).zip(evidence).collect())
}

fn by_author(id: MemoryId, scope: &Scope, author: &Principal, at: waggle_memory::time::Millis) -> Evidence {
    Evidence {
        id: EvidenceId::from_uuid(derived(&format!("{id}/author"))),
        turn: None,
        scope: scope.clone(),
        text: String::new(),
        observed_at: at,
        author: author.clone(),
    }
}

/// Metadata that is beyond the bounds is left out; what this import noted in it stays.
fn metadata_of(metadata: Object, changes: &mut Changes) -> String {
    if metadata.is_empty() {
        return String::new();
    }
    let text = canonical(&Value::Object(metadata.clone()));
    if check_metadata(&text).is_ok() {
        return text;
    }
    changes.cut += 1;
    let kept: Object = metadata
        .into_iter()
        .filter(|(key, value)| {
            let noted = matches!(key.as_str(), "waggle_id" | "waggle_node_type" | "claimed_author");
            noted
                && value
                    .as_str()
                    .is_some_and(|text| text.len() <= 1_024 && !text.contains('\0'))
        })
        .collect();
    if kept.is_empty() {
        String::new()
    } else {
        canonical(&Value::Object(kept))
    }
}
