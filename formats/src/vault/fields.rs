//! The fields that are compared between base, file and graph, in the form in which a file shows them.

use waggle_memory::kind::Kind;
use waggle_memory::memory::{Memory, Version};
use waggle_memory::record::MemoryRecord;
use waggle_memory::time::Millis;

use super::body::one_line;
use super::note::{Note, Said};
use crate::redaction::Redactor;

/// Tags that say how a memory came to be: a caller's change of the tags leaves them.
const KEPT_TAGS: [&str; 4] = ["observed", "decomposed", "speaker:user", "speaker:assistant"];

/// A state of a memory as its file would show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fields {
    pub(super) label: String,
    pub(super) content: String,
    pub(super) tags: Vec<String>,
    pub(super) kind: Kind,
    pub(super) valid_from: Millis,
    pub(super) valid_to: Option<Millis>,
}

impl Fields {
    pub(super) fn of_memory(memory: &Memory, redactor: &Redactor) -> Self {
        Self {
            label: shown_label(&redactor.again(&memory.label)),
            content: redactor.again(&memory.content),
            tags: shown_tags(&memory.tags, redactor),
            kind: memory.kind,
            valid_from: memory.valid_from,
            valid_to: memory.valid_to,
        }
    }

    fn of_version(version: &Version, redactor: &Redactor) -> Self {
        Self {
            label: shown_label(&redactor.again(&version.label)),
            content: redactor.again(&version.content),
            tags: shown_tags(&version.tags, redactor),
            kind: version.kind,
            valid_from: version.valid_from,
            valid_to: version.valid_to,
        }
    }

    /// The state that a file was written from: `version`, if it is still kept. Files of the older product state no
    /// version; theirs is the one that was recorded at their `updated_at`.
    pub(super) fn of_base(
        note: &Note,
        version: Option<u32>,
        record: &MemoryRecord,
        redactor: &Redactor,
    ) -> Option<Self> {
        let recorded_at = match note.time("updated_at") {
            Ok(Said::Value(at)) => Some(at),
            _ => None,
        };
        let is_base = |number: u32, at: Millis| match version {
            Some(version) => number == version,
            None => Some(at) == recorded_at,
        };
        if is_base(record.memory.version, record.memory.updated_at) {
            return Some(Self::of_memory(&record.memory, redactor));
        }
        let kept = record.versions.iter().find(|v| is_base(v.version, v.recorded_at))?;
        Some(Self::of_version(kept, redactor))
    }
}

pub(super) fn shown_label(label: &str) -> String {
    one_line(label).trim().to_owned()
}

pub(super) fn shown_tags(tags: &[String], redactor: &Redactor) -> Vec<String> {
    let mut shown: Vec<String> = tags.iter().map(|tag| redactor.again(tag).trim().to_owned()).collect();
    shown.retain(|tag| !tag.is_empty());
    shown.sort();
    shown.dedup();
    shown
}

/// Editors change line ends and blank lines at the ends of a text; nobody means that as an edit.
pub(super) fn same_text(a: &str, b: &str) -> bool {
    a == b || plain_text(a) == plain_text(b)
}

/// A text as [`same_text`] compares it.
pub(super) fn plain_text(text: &str) -> String {
    text.replace("\r\n", "\n").trim().to_owned()
}

/// Equal but for the tags that no caller can remove.
pub(super) fn same_tags(a: &[String], b: &[String]) -> bool {
    let own = |tags: &[String]| -> Vec<String> {
        tags.iter()
            .filter(|t| !KEPT_TAGS.contains(&t.as_str()))
            .cloned()
            .collect()
    };
    a == b || own(a) == own(b)
}
