//! What a record must be before it may come in. Every byte of an import is somebody else's: the node asks before it
//! proposes, and apply asks again before it writes anything.

use crate::id::Principal;
use crate::memory::{Evidence, Memory, Version};
use crate::outcome::Rejection;
use crate::record::{MemoryRecord, Record};
use crate::scope::Scope;
use crate::statement::Statement;
use crate::time::Millis;
use crate::transcript::{Session, Turn};

/// Longest label in bytes.
pub const LABEL_BYTES_MAX: usize = 800;
/// Longest content, alias or turn in bytes.
pub const CONTENT_BYTES_MAX: usize = 65_536;
/// Longest turn in bytes.
pub const TURN_BYTES_MAX: usize = 1_048_576;
/// Longest note of the caller, reason or receipt in bytes.
pub const NOTE_BYTES_MAX: usize = 8_192;
/// Longest metadata in bytes, with what an import adds.
pub const METADATA_BYTES_MAX: usize = 20_480;
/// Longest author in bytes.
pub const PRINCIPAL_BYTES_MAX: usize = 1_024;
/// Most tags, bookkeeping tags included.
pub const TAGS_MAX: usize = 256;
/// Longest tag in bytes.
pub const TAG_BYTES_MAX: usize = 1_024;
/// Most words that a link names.
pub const SHARED_TERMS_MAX: usize = 64;
/// Year 1 to year 9999, so that every time can be written down.
const TIMES: std::ops::RangeInclusive<i64> = -62_135_596_800_000..=253_402_300_799_999;

type Checked = Result<(), Rejection>;

/// Whether a record may come in.
pub fn check(record: &Record) -> Checked {
    match record {
        Record::Session(session) => check_session(session),
        Record::Turn(turn, _) => check_turn(turn),
        Record::Memory(record) => check_memory(record),
        Record::Link(link) => {
            text("reason", &link.reason, NOTE_BYTES_MAX)?;
            texts("reason", &link.shared_terms, SHARED_TERMS_MAX, TAG_BYTES_MAX)?;
            principal(&link.author)?;
            times(&[link.created_at])?;
            version(link.version)?;
            let Some(resolution) = &link.resolution else {
                return Ok(());
            };
            text("reason", &resolution.note, NOTE_BYTES_MAX)?;
            resolution.by.iter().try_for_each(principal)?;
            times(&[resolution.at, resolution.loser_valid_to_before.flatten()].map(Option::unwrap_or_default))
        }
        Record::Redirect(_) => Ok(()),
        Record::Tombstone(_, tombstone) => {
            text("text", &tombstone.receipt, NOTE_BYTES_MAX)?;
            principal(&tombstone.author)?;
            times(&[tombstone.deleted_at])?;
            let Some(erased) = &tombstone.of else { return Ok(()) };
            scope(&erased.scope)?;
            times(&[erased.recorded_at])
        }
    }
}

fn check_session(session: &Session) -> Checked {
    text("project", &session.project, Scope::FIELD_BYTES_MAX)?;
    text("session_id", &session.session_id, Scope::FIELD_BYTES_MAX)?;
    text("text", &session.title, Session::TITLE_BYTES_MAX)?;
    texts("agent_id", &session.agents, Session::AGENTS_MAX, Scope::FIELD_BYTES_MAX)?;
    times(&[session.first_used_at, session.last_used_at])
}

fn check_turn(turn: &Turn) -> Checked {
    scope(&turn.scope)?;
    text("text", &turn.text, TURN_BYTES_MAX)?;
    principal(&turn.author)?;
    times(&[turn.observed_at, turn.recorded_at])?;
    count("memories", turn.memories.len(), Turn::MEMORIES_MAX)
}

fn check_memory(record: &MemoryRecord) -> Checked {
    let memory = &record.memory;
    scope(&memory.scope)?;
    text("namespace", &memory.namespace, Scope::FIELD_BYTES_MAX)?;
    shown("label", &memory.label, LABEL_BYTES_MAX)?;
    shown("content", &memory.content, CONTENT_BYTES_MAX)?;
    text("source_prompt", &memory.source_prompt, NOTE_BYTES_MAX)?;
    text("metadata", &memory.metadata, METADATA_BYTES_MAX)?;
    texts("tags", &memory.tags, TAGS_MAX, TAG_BYTES_MAX)?;
    principal(&memory.author)?;
    count("aliases", memory.aliases.len(), Memory::ALIASES_MAX)?;
    for alias in &memory.aliases {
        text("aliases", &alias.text, CONTENT_BYTES_MAX)?;
        principal(&alias.author)?;
        times(&[alias.added_at])?;
    }
    let ends = [memory.valid_to, memory.due].map(Option::unwrap_or_default);
    times(&[memory.valid_from, memory.recorded_at, memory.updated_at])?;
    times(&ends)?;
    if memory.valid_to.is_some_and(|to| to <= memory.valid_from) {
        return invalid("valid_to", format!("must lie after valid_from ({})", memory.valid_from));
    }
    version(memory.version)?;
    if !(1..=memory.version).contains(&memory.text_version) {
        let why = format!(
            "the text is of version {}, the memory of {}",
            memory.text_version, memory.version
        );
        return invalid("version", why);
    }
    check_statement(&memory.statement)?;
    check_evidence(memory, &record.evidence)?;
    check_versions(memory, &record.versions)
}

fn check_statement(statement: &Statement) -> Checked {
    let parts = [statement.general.len(), statement.claims.len(), statement.ends.len()];
    parts
        .into_iter()
        .try_for_each(|parts| count("content", parts, Statement::PARTS_MAX))?;
    for claim in &statement.claims {
        text("content", &claim.slot_text, CONTENT_BYTES_MAX)?;
        text("content", &claim.value_text, CONTENT_BYTES_MAX)?;
    }
    for end in &statement.ends {
        text("content", &end.value_text, CONTENT_BYTES_MAX)?;
        times(&[end.at.unwrap_or_default()])?;
    }
    Ok(())
}

fn check_evidence(memory: &Memory, evidence: &[(u32, Evidence)]) -> Checked {
    let kept = usize::try_from(Memory::EVIDENCE_KEPT_MAX).unwrap_or(usize::MAX);
    count("evidence", evidence.len(), kept)?;
    if evidence.is_empty() && memory.author.0.is_empty() {
        return invalid("evidence", "a memory rests on evidence or has an author".to_owned());
    }
    let mut before = 0;
    for (number, evidence) in evidence {
        if *number <= before || *number > memory.evidence_count {
            let why = format!("number {number} of {} is out of order", memory.evidence_count);
            return invalid("evidence", why);
        }
        before = *number;
        scope(&evidence.scope)?;
        text("evidence", &evidence.text, Evidence::TEXT_BYTES_MAX)?;
        principal(&evidence.author)?;
        times(&[evidence.observed_at])?;
        if evidence.turn.as_ref().is_some_and(|span| span.start > span.end) {
            return invalid("evidence", "a span ends before it begins".to_owned());
        }
    }
    Ok(())
}

fn check_versions(memory: &Memory, versions: &[Version]) -> Checked {
    let kept = usize::try_from(Memory::VERSIONS_KEPT_MAX).unwrap_or(usize::MAX);
    count("version", versions.len(), kept)?;
    let mut before = 0;
    for earlier in versions {
        if earlier.version <= before || earlier.version >= memory.version {
            let why = format!("version {} of {} is out of order", earlier.version, memory.version);
            return invalid("version", why);
        }
        before = earlier.version;
        text("label", &earlier.label, LABEL_BYTES_MAX)?;
        text("content", &earlier.content, CONTENT_BYTES_MAX)?;
        texts("tags", &earlier.tags, TAGS_MAX, TAG_BYTES_MAX)?;
        text("reason", &earlier.note, NOTE_BYTES_MAX)?;
        principal(&earlier.replaced_by)?;
        times(&[earlier.recorded_at, earlier.replaced_at, earlier.valid_from])?;
        times(&[earlier.valid_to.unwrap_or_default()])?;
    }
    Ok(())
}

fn scope(scope: &Scope) -> Checked {
    text("project", &scope.project, Scope::FIELD_BYTES_MAX)?;
    text("agent_id", &scope.agent_id, Scope::FIELD_BYTES_MAX)?;
    text("session_id", &scope.session_id, Scope::FIELD_BYTES_MAX)
}

fn principal(principal: &Principal) -> Checked {
    text("name", &principal.0, PRINCIPAL_BYTES_MAX)
}

fn version(version: u32) -> Checked {
    // The last number is kept free: a version follows every version.
    if (1..u32::MAX).contains(&version) {
        Ok(())
    } else {
        invalid("version", format!("{version} is no version"))
    }
}

fn shown(field: &'static str, value: &str, bytes_max: usize) -> Checked {
    if value.trim().is_empty() {
        return invalid(field, "must not be blank".to_owned());
    }
    text(field, value, bytes_max)
}

fn text(field: &'static str, value: &str, bytes_max: usize) -> Checked {
    if value.len() > bytes_max {
        return invalid(field, format!("{} bytes; at most {bytes_max}", value.len()));
    }
    if value.contains('\0') {
        return invalid(field, "must not hold a NUL character".to_owned());
    }
    Ok(())
}

fn texts(field: &'static str, values: &[String], count_max: usize, bytes_max: usize) -> Checked {
    count(field, values.len(), count_max)?;
    values.iter().try_for_each(|value| text(field, value, bytes_max))
}

fn count(field: &'static str, count: usize, count_max: usize) -> Checked {
    if count > count_max {
        return invalid(field, format!("{count} of them; at most {count_max}"));
    }
    Ok(())
}

fn times(all: &[Millis]) -> Checked {
    match all.iter().find(|at| !TIMES.contains(&at.0)) {
        Some(at) => invalid("observed_at", format!("{} is no time of the years 1 to 9999", at.0)),
        None => Ok(()),
    }
}

fn invalid(field: &'static str, why: String) -> Checked {
    Err(Rejection::Invalid { field, why })
}
