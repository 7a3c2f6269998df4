//! Compares what a file says of a memory that is there: base, file and graph, field by field.

use std::collections::BTreeSet;
use std::str::FromStr;

use waggle_memory::id::MemoryId;
use waggle_memory::kind::Kind;
use waggle_memory::memory::Memory;
use waggle_memory::record::MemoryRecord;
use waggle_memory::scope::name_key;
use waggle_memory::time::Millis;

use super::fields::{Fields, plain_text, same_tags, same_text, shown_label};
use super::note::{BadField, Note, Said};
use super::plan::{Conflict, ConflictReason, UpdateMemory};
use super::write::evidence_line;
use super::yaml::Yaml;
use crate::limits::{CONTENT_BYTES_MAX, LABEL_BYTES_MAX};
use crate::redaction::Redactor;

/// Longest value that a conflict shows, in characters.
const SHOWN_CHARS_MAX: usize = 4_000;
/// Limits of the tags that callers may set.
const TAG_BYTES_MAX: usize = 64;
const TAGS_MAX: usize = 32;

/// What to do with one field.
enum Verdict {
    /// Nothing: the file says what it said, or what the graph says.
    Keep,
    /// The file alone changed.
    Write,
    /// Both changed, or nobody knows.
    Conflict(ConflictReason),
}

fn verdict<T>(base: Option<&T>, vault: &T, current: &T, same: impl Fn(&T, &T) -> bool) -> Verdict {
    if same(vault, current) || base.is_some_and(|base| same(vault, base)) {
        return Verdict::Keep;
    }
    match base {
        None => Verdict::Conflict(ConflictReason::NoBase),
        Some(base) if same(base, current) => Verdict::Write,
        Some(_) => Verdict::Conflict(ConflictReason::BothChanged),
    }
}

/// The comparison of one file with its memory.
pub(super) struct Comparison<'a> {
    note: &'a Note,
    memory: &'a Memory,
    record: &'a MemoryRecord,
    base: Option<Fields>,
    current: Fields,
    redactor: &'a Redactor,
    update: UpdateMemory,
    conflicts: Vec<Conflict>,
}

impl<'a> Comparison<'a> {
    /// Compares; `version` is the one of the merge base, if there is one.
    pub(super) fn of(
        note: &'a Note,
        record: &'a MemoryRecord,
        version: Option<u32>,
        redactor: &'a Redactor,
    ) -> (Option<UpdateMemory>, Vec<Conflict>) {
        let memory = &record.memory;
        let version = version.or_else(|| note.version());
        let mut this = Self {
            note,
            memory,
            record,
            base: Fields::of_base(note, version, record, redactor),
            current: Fields::of_memory(memory, redactor),
            redactor,
            update: UpdateMemory {
                id: memory.id,
                path: note.path.clone(),
                expected_version: memory.version,
                label: None,
                content: None,
                tags: None,
                valid_from: None,
                valid_to: None,
            },
            conflicts: Vec::new(),
        };
        this.compare_texts();
        this.compare_tags();
        this.compare_validity();
        this.compare_kind();
        this.compare_fixed();
        // Files of the older product show these in forms of their own.
        if note.version().is_some() {
            this.compare_additions();
        }
        let update = &this.update;
        let changes = update.label.is_some()
            || update.content.is_some()
            || update.tags.is_some()
            || update.valid_from.is_some()
            || update.valid_to.is_some();
        (changes.then_some(this.update), this.conflicts)
    }

    fn compare_texts(&mut self) {
        if let Some(label) = self.note.body.label.clone() {
            let base = self.base.as_ref().map(|base| base.label.clone());
            let current = self.current.label.clone();
            let checked = check_label(&label);
            let hidden = shown_label(&self.memory.label) != current;
            if self.judge("label", base, &label, &current, hidden, checked) {
                self.update.label = Some(label);
            }
        }
        if let Some(content) = self.note.body.content.clone() {
            let base = self.base.as_ref().map(|base| base.content.clone());
            let current = self.current.content.clone();
            let checked = check_content(&content);
            let hidden = self.memory.content != current;
            if self.judge("content", base, &content, &current, hidden, checked) {
                self.update.content = Some(content);
            }
        }
    }

    /// Whether the text is to be written.
    fn judge(
        &mut self,
        field: &'static str,
        base: Option<String>,
        vault: &String,
        current: &String,
        hidden: bool,
        checked: Result<(), String>,
    ) -> bool {
        let verdict = verdict(base.as_ref(), vault, current, |a, b| same_text(a, b));
        let reason = match (verdict, checked) {
            (Verdict::Keep, _) => return false,
            (Verdict::Conflict(reason), _) => reason,
            (Verdict::Write, Err(why)) => ConflictReason::Invalid(why),
            (Verdict::Write, Ok(())) if hidden => ConflictReason::Redacted,
            (Verdict::Write, Ok(())) => return true,
        };
        self.conflict(field, base, Some(vault.clone()), Some(current.clone()), reason);
        false
    }

    fn compare_tags(&mut self) {
        let Said::Value(tags) = self.note.tags() else { return };
        let base = self.base.as_ref().map(|base| base.tags.clone());
        let current = self.current.tags.clone();
        let hidden = self.memory.tags.iter().any(|tag| self.redactor.again(tag) != *tag);
        let reason = match (
            verdict(base.as_ref(), &tags, &current, |a, b| same_tags(a, b)),
            check_tags(&tags),
        ) {
            (Verdict::Keep, _) => return,
            (Verdict::Conflict(reason), _) => reason,
            (Verdict::Write, Err(why)) => ConflictReason::Invalid(why),
            (Verdict::Write, Ok(())) if hidden => ConflictReason::Redacted,
            (Verdict::Write, Ok(())) => {
                self.update.tags = Some(tags);
                return;
            }
        };
        let shown = |tags: &Vec<String>| tags.join(", ");
        self.conflict(
            "tags",
            base.as_ref().map(shown),
            Some(shown(&tags)),
            Some(shown(&current)),
            reason,
        );
    }

    fn compare_validity(&mut self) {
        let base = self.base.as_ref().map(|base| (Some(base.valid_from), base.valid_to));
        let from = self.time("valid_from");
        if let Some(Said::Value(from)) = from {
            let base_from = base.map(|(from, _)| from);
            self.update.valid_from =
                self.judge_time("valid_from", base_from, Some(from), Some(self.current.valid_from));
        }
        let to = match self.time("valid_to") {
            Some(Said::Value(to)) => Some(Some(to)),
            // An explicit null takes an end away; files of the older product have it everywhere.
            Some(Said::None) if self.note.version().is_some() => Some(None),
            _ => None,
        };
        if let Some(to) = to {
            self.update.valid_to = self.judge_time("valid_to", base.map(|(_, to)| to), to, self.current.valid_to);
        }
        let (from, to) = (self.update.valid_from, self.update.valid_to);
        let starts = from.unwrap_or(self.memory.valid_from);
        if (from.is_some() || to.is_some()) && to.or(self.memory.valid_to).is_some_and(|to| to <= starts) {
            (self.update.valid_from, self.update.valid_to) = (None, None);
            let field = if to.is_some() { "valid_to" } else { "valid_from" };
            let why = ConflictReason::Invalid("valid_to must lie after valid_from".to_owned());
            let shown = to.or(from).map(|at| at.to_string());
            self.conflict(field, None, shown, None, why);
        }
    }

    /// The time that is to be written.
    fn judge_time(
        &mut self,
        field: &'static str,
        base: Option<Option<Millis>>,
        vault: Option<Millis>,
        current: Option<Millis>,
    ) -> Option<Millis> {
        let reason = match (verdict(base.as_ref(), &vault, &current, |a, b| a == b), vault) {
            (Verdict::Keep, _) => return None,
            (Verdict::Conflict(reason), _) => reason,
            (Verdict::Write, Some(at)) => return Some(at),
            (Verdict::Write, None) => {
                ConflictReason::Invalid("an end cannot be taken away, only moved; give a later time".to_owned())
            }
        };
        let shown = |at: Option<Millis>| Some(at.map_or("null".to_owned(), |at| at.to_string()));
        self.conflict(field, base.and_then(shown), shown(vault), shown(current), reason);
        None
    }

    fn time(&mut self, field: &'static str) -> Option<Said<Millis>> {
        match self.note.time(field) {
            Ok(said) => Some(said),
            Err(bad) => {
                self.conflicts.push(bad_field(bad, self.note, Some(self.memory.id)));
                None
            }
        }
    }

    fn compare_kind(&mut self) {
        let Some(word) = self.note.text("node_type") else {
            return;
        };
        let base = self.base.as_ref().map(|base| base.kind);
        let reason = match Kind::from_str(word.trim()) {
            Err(_) => ConflictReason::UnknownWord,
            Ok(kind) => match verdict(base.as_ref(), &kind, &self.current.kind, |a, b| a == b) {
                Verdict::Keep => return,
                Verdict::Conflict(reason) => reason,
                Verdict::Write => ConflictReason::ReadOnly,
            },
        };
        let shown = |kind: Kind| kind.word().to_owned();
        self.conflict(
            "node_type",
            base.map(shown),
            Some(word.to_owned()),
            Some(shown(self.current.kind)),
            reason,
        );
    }

    /// Fields that never change: a file that says otherwise was edited.
    fn compare_fixed(&mut self) {
        let memory = self.memory;
        let prompt = self.redactor.again(&memory.source_prompt);
        let fixed = [
            ("namespace", memory.namespace.clone()),
            ("project", memory.scope.project.clone()),
            ("agent_id", memory.scope.agent_id.clone()),
            ("session_id", memory.scope.session_id.clone()),
            ("source_prompt", prompt),
        ];
        for (field, current) in fixed {
            let Some(vault) = self.note.text(field) else { continue };
            if name_key(vault) != name_key(&current) && !same_text(vault, &current) {
                let vault = Some(vault.to_owned());
                self.conflict(
                    field,
                    Some(current.clone()),
                    vault,
                    Some(current),
                    ConflictReason::ReadOnly,
                );
            }
        }
        if let Some(Said::Value(at)) = self.time("created_at")
            && at != memory.recorded_at
        {
            let current = Some(memory.recorded_at.to_string());
            self.conflict(
                "created_at",
                current.clone(),
                Some(at.to_string()),
                current,
                ConflictReason::ReadOnly,
            );
        }
    }

    /// Aliases and evidence come from what was said. What a person adds to them in a file is named, not taken.
    fn compare_additions(&mut self) {
        let aliases = self.memory.aliases.iter();
        let known: BTreeSet<String> = aliases
            .map(|alias| plain_text(&self.redactor.again(&alias.text)))
            .collect();
        let mut stated = self.note.records("aliases").iter().filter_map(Yaml::text);
        if let Some(alias) = stated.find(|alias| !known.contains(&plain_text(alias))) {
            let alias = Some(alias.to_owned());
            self.conflict("aliases", None, alias, None, ConflictReason::ReadOnly);
        }
        if self.memory.evidence_count as usize > self.record.evidence.len() {
            return;
        }
        let evidence = self.record.evidence.iter();
        let known: BTreeSet<String> = evidence
            .map(|(_, evidence)| evidence_line(evidence, &self.redactor.again(&evidence.text)))
            .collect();
        let added = self.note.body.evidence.iter().find(|line| !known.contains(*line));
        if let Some(line) = added.cloned() {
            self.conflict("evidence", None, Some(line), None, ConflictReason::ReadOnly);
        }
    }

    fn conflict(
        &mut self,
        field: &str,
        base: Option<String>,
        vault: Option<String>,
        current: Option<String>,
        reason: ConflictReason,
    ) {
        self.conflicts.push(Conflict {
            node_id: Some(self.memory.id),
            path: self.note.path.clone(),
            field: field.to_owned(),
            base: base.map(cut),
            vault: vault.map(cut),
            current: current.map(cut),
            reason,
        });
    }
}

/// A field that cannot be read, as an entry of the answer.
pub(super) fn bad_field(bad: BadField, note: &Note, id: Option<MemoryId>) -> Conflict {
    Conflict {
        node_id: id,
        path: note.path.clone(),
        field: bad.field.to_owned(),
        base: None,
        vault: Some(bad.given).filter(|given| !given.is_empty()),
        current: None,
        reason: ConflictReason::Invalid(bad.why),
    }
}

fn cut(text: String) -> String {
    match text.char_indices().nth(SHOWN_CHARS_MAX) {
        Some((at, _)) => format!("{}…", text.get(..at).unwrap_or_default()),
        None => text,
    }
}

pub(super) fn check_label(label: &str) -> Result<(), String> {
    check_text("label", label, LABEL_BYTES_MAX)
}

pub(super) fn check_content(content: &str) -> Result<(), String> {
    check_text("content", content, CONTENT_BYTES_MAX)
}

fn check_text(field: &str, text: &str, max: usize) -> Result<(), String> {
    if text.trim().is_empty() {
        return Err(format!("{field} must not be blank"));
    }
    if text.contains('\0') {
        return Err(format!("{field} must not hold a NUL character"));
    }
    if text.len() > max {
        return Err(format!("{field} has {} bytes; at most {max} are allowed", text.len()));
    }
    Ok(())
}

pub(super) fn check_tags(tags: &[String]) -> Result<(), String> {
    // Bookkeeping tags are not counted by the limit, and a file shows them too: allow as many again.
    if tags.len() > TAGS_MAX * 2 {
        return Err(format!("{} tags; at most {TAGS_MAX} are allowed", tags.len()));
    }
    match tags.iter().find(|tag| tag.len() > TAG_BYTES_MAX) {
        Some(tag) => Err(format!(
            "a tag has {} bytes; at most {TAG_BYTES_MAX} are allowed",
            tag.len()
        )),
        None => Ok(()),
    }
}
