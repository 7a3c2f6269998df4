//! Takes the files of a vault one by one and makes a plan of them.
//!
//! A file whose bytes are those of the merge base is done at once and not kept; the others are kept, read, until all
//! are there, because a relation may name a memory of any file.

use std::collections::{BTreeMap, BTreeSet};

use waggle_memory::id::{MemoryId, TenantId};
use waggle_memory::kind::{Kind, Role};
use waggle_memory::scope::Scope;
use waggle_memory::time::Millis;

use super::base::{Base, BaseFile, hash_of};
use super::changes::{Comparison, bad_field, check_content, check_label, check_tags};
use super::note::{BadField, Note, Said};
use super::plan::{Change, Conflict, ConflictReason, EvidenceClaim, MemoryRef, Plan, StoreMemory};
use super::relations::{self, Source};
use super::targets::Targets;
use super::write::confidence_of;
use super::yaml::Yaml;
use super::{ArchiveError, BASE_PATH, FILE_BYTES_MAX};
use crate::graph::Graph;
use crate::redaction::{Redact, Redactor};

/// Most bytes of changed files of one import.
const CHANGED_BYTES_MAX: usize = 256 << 20;
/// What the older product wrote in place of evidence.
const NO_EVIDENCE: &str = "no evidence recorded";

/// Collects files; [`Importer::finish`] compares them with the graph.
pub struct Importer<'a> {
    tenant: &'a TenantId,
    graph: &'a Graph,
    redactor: Redactor<'a>,
    base: Option<Base>,
    by_hash: BTreeMap<String, MemoryId>,
    notes: Vec<Note>,
    held_bytes: usize,
    plan: Plan,
}

impl<'a> Importer<'a> {
    /// An import into the graph of `tenant`. The rule for secrets must be the one that exports use.
    pub fn new(tenant: &'a TenantId, graph: &'a Graph, redact: Redact<'a>) -> Self {
        Self {
            tenant,
            graph,
            redactor: Redactor::new(redact),
            base: None,
            by_hash: BTreeMap::new(),
            notes: Vec::new(),
            held_bytes: 0,
            plan: Plan::default(),
        }
    }

    /// Takes the merge base. Before any other file.
    pub(super) fn set_base(&mut self, text: &str) -> Result<(), ArchiveError> {
        let base = Base::read(text).map_err(|e| ArchiveError::Base { why: e.to_string() })?;
        // A base of another tenant says nothing about this graph.
        if base.tenant_id != self.tenant.as_str() {
            return Ok(());
        }
        self.by_hash = base
            .files
            .iter()
            .filter_map(|(id, file)| Some((file.sha256.clone(), id.parse().ok()?)))
            .collect();
        self.base = Some(base);
        Ok(())
    }

    /// Takes one file.
    pub(super) fn add(&mut self, path: &str, text: &str) -> Result<(), ArchiveError> {
        debug_assert_ne!(path, BASE_PATH, "the base goes through set_base");
        if text.len() > FILE_BYTES_MAX {
            return Err(ArchiveError::FileTooLarge {
                path: path.to_owned(),
                max: FILE_BYTES_MAX,
            });
        }
        if self.is_untouched(text) {
            self.plan.unchanged += 1;
            return Ok(());
        }
        self.held_bytes = self.held_bytes.saturating_add(text.len());
        if self.held_bytes > CHANGED_BYTES_MAX {
            return Err(ArchiveError::TooManyChanges { max: CHANGED_BYTES_MAX });
        }
        match Note::read(path, text) {
            Ok(note) => self.notes.push(note),
            Err(bad) => self.plan.changes.push(Change::Conflict(unreadable(path, bad))),
        }
        Ok(())
    }

    /// As it was written, about a memory that is there or was erased since: nothing to do, whatever the graph says.
    fn is_untouched(&self, text: &str) -> bool {
        let Some(id) = self.by_hash.get(&hash_of(text.as_bytes())) else {
            return false;
        };
        self.graph.memory(*id).is_some() || self.graph.is_erased(*id) || self.graph.merged_into(*id).is_some()
    }

    /// Compares everything that changed.
    pub fn finish(mut self) -> Plan {
        let mut notes = std::mem::take(&mut self.notes);
        notes.sort_by(|a, b| a.path.cmp(&b.path));
        let mut targets = Targets::new(self.graph, &self.redactor);
        let mut found = Found::default();
        let mut sorted = Vec::new();
        for note in &notes {
            match self.sort(note, &mut found.seen) {
                Sorted::Known(id) => sorted.push((note, MemoryRef::Known(id))),
                Sorted::New(store) => {
                    let mut store = *store;
                    store.key = targets.add_new(store.id, &store.label, &store.scope.project);
                    sorted.push((note, MemoryRef::New(store.key)));
                    found.stores.push(store);
                }
                Sorted::Refused(conflicts) => found.conflicts.extend(conflicts),
            }
        }
        for (note, memory) in sorted {
            let touched = self.compare(note, memory, &mut targets, &mut found);
            if !touched && matches!(memory, MemoryRef::Known(_)) {
                self.plan.unchanged += 1;
            }
        }
        found.into_plan(self.plan, targets)
    }

    /// Compares one file; says whether it asks for anything.
    fn compare(&self, note: &Note, memory: MemoryRef, targets: &mut Targets<'_>, found: &mut Found) -> bool {
        let before = found.count();
        let base = self.base_of(memory);
        if let MemoryRef::Known(id) = memory
            && let Some(record) = self.graph.record(id)
        {
            let version = base.map(|base| base.version);
            let (update, conflicts) = Comparison::of(note, record, version, &self.redactor);
            found.updates.extend(update.map(|u| Change::UpdateMemory(Box::new(u))));
            found.conflicts.extend(conflicts);
        }
        let project = match memory {
            MemoryRef::Known(id) => self.graph.memory(id).map(|m| m.scope.project.as_str()),
            MemoryRef::New(_) => note.text("project"),
        };
        let project = project.unwrap_or_default();
        let source = Source { memory, project, base };
        for change in relations::compare(note, &source, self.graph, targets) {
            match change {
                Change::DeleteLink { .. } => found.deletions.push(change),
                Change::Conflict(conflict) => found.conflicts.push(conflict),
                change => found.links.push(change),
            }
        }
        found.count() > before
    }

    fn base_of(&self, memory: MemoryRef) -> Option<&BaseFile> {
        let MemoryRef::Known(id) = memory else { return None };
        self.base.as_ref().and_then(|base| base.files.get(&id.to_string()))
    }

    /// Which memory a file is about: one that is there, a new one, or none that it may be about.
    fn sort(&self, note: &Note, seen: &mut BTreeSet<MemoryId>) -> Sorted {
        let id = match note.id() {
            Ok(id) => id,
            Err(bad) => return Sorted::Refused(vec![bad_field(bad, note, None)]),
        };
        let refuse = |field: &str, vault: Option<String>, current: Option<String>, reason| {
            Sorted::Refused(vec![Conflict {
                node_id: id,
                path: note.path.clone(),
                field: field.to_owned(),
                base: None,
                vault,
                current,
                reason,
            }])
        };
        // Files of the older product name tenants of another system: they say nothing here.
        let tenant = note.text("tenant_id").filter(|t| !t.is_empty() && *t != self.tenant.as_str());
        if let Some(tenant) = tenant.filter(|_| note.version().is_some()) {
            let shown: String = tenant.chars().take(80).collect();
            return refuse("tenant_id", Some(shown), Some(self.tenant.to_string()), ConflictReason::OtherTenant);
        }
        let Some(id) = id else { return self.new_memory(note, None) };
        let text = Some(id.to_string());
        if !seen.insert(id) {
            return refuse("node_id", text, None, ConflictReason::DoubledId);
        }
        if self.graph.record(id).is_some() {
            return Sorted::Known(id);
        }
        if self.graph.is_erased(id) {
            return refuse("node_id", text, None, ConflictReason::Erased);
        }
        if let Some(into) = self.graph.merged_into(id) {
            return refuse("node_id", text, Some(into.to_string()), ConflictReason::Merged);
        }
        self.new_memory(note, Some(id))
    }

    fn new_memory(&self, note: &Note, id: Option<MemoryId>) -> Sorted {
        match store_of(note, id) {
            Ok(store) => Sorted::New(Box::new(store)),
            Err((bad, reason)) => {
                let mut conflict = bad_field(bad, note, id);
                conflict.reason = reason.unwrap_or(conflict.reason);
                Sorted::Refused(vec![conflict])
            }
        }
    }
}

/// What a file is about.
enum Sorted {
    Known(MemoryId),
    New(Box<StoreMemory>),
    Refused(Vec<Conflict>),
}

/// Changes by sort, until they are put in order.
#[derive(Default)]
struct Found {
    seen: BTreeSet<MemoryId>,
    stores: Vec<StoreMemory>,
    updates: Vec<Change>,
    deletions: Vec<Change>,
    links: Vec<Change>,
    conflicts: Vec<Conflict>,
}

impl Found {
    fn count(&self) -> usize {
        self.updates.len() + self.deletions.len() + self.links.len() + self.conflicts.len()
    }

    /// Memories first, so that links find both ends.
    fn into_plan(self, mut plan: Plan, targets: Targets<'_>) -> Plan {
        let unreadable = std::mem::take(&mut plan.changes);
        let changes = &mut plan.changes;
        changes.extend(self.stores.into_iter().map(|store| Change::StoreMemory(Box::new(store))));
        changes.extend(targets.stubs.into_iter().map(Change::StubNote));
        changes.extend(self.updates);
        changes.extend(self.deletions);
        changes.extend(self.links);
        changes.extend(unreadable);
        changes.extend(self.conflicts.into_iter().map(Change::Conflict));
        plan
    }
}

fn unreadable(path: &str, bad: BadField) -> Conflict {
    Conflict {
        node_id: None,
        path: path.to_owned(),
        field: bad.field.to_owned(),
        base: None,
        vault: None,
        current: None,
        reason: ConflictReason::Invalid(bad.why),
    }
}

type BadStore = (BadField, Option<ConflictReason>);

/// The memory that a file describes.
fn store_of(note: &Note, id: Option<MemoryId>) -> Result<StoreMemory, BadStore> {
    let bad = |field: &'static str, given: &str| {
        let given: String = given.chars().take(200).collect();
        move |why: String| (BadField { field, given, why }, None)
    };
    let label = note.label().to_owned();
    check_label(&label).map_err(bad("label", &label))?;
    let content = note.body.content.as_deref().filter(|content| !content.trim().is_empty());
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
            let why = format!("must be at most {} bytes without control characters", Scope::FIELD_BYTES_MAX);
            return Err(bad(field, text)(why));
        }
        Ok(text.to_owned())
    };
    let source_prompt = note.text("source_prompt").unwrap_or_default();
    if source_prompt.len() > SOURCE_PROMPT_BYTES_MAX {
        return Err(bad("source_prompt", source_prompt)(format!("must be at most {SOURCE_PROMPT_BYTES_MAX} bytes")));
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

/// Longest `source_prompt`.
const SOURCE_PROMPT_BYTES_MAX: usize = 4_096;
/// Longest `metadata`.
const METADATA_BYTES_MAX: usize = 16_384;

/// An object of JSON that stands in a text, within its limit. Anything else is nothing: it is never interpreted.
fn metadata_of(note: &Note) -> String {
    let text = note.text("metadata").unwrap_or_default();
    let is_object = text.len() <= METADATA_BYTES_MAX && serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(text).is_ok();
    if is_object { text.to_owned() } else { String::new() }
}

fn aliases_of(note: &Note) -> Vec<String> {
    let aliases = note.records("aliases").iter();
    let texts = aliases.filter_map(|alias| alias.text().or_else(|| alias.text_of("text")));
    let usable = texts.filter(|text| check_content(text).is_ok());
    usable.take(waggle_memory::memory::Memory::ALIASES_MAX).map(str::to_owned).collect()
}

/// The evidence that a file states: its records, else its lines. "No evidence recorded." is none.
fn claims_of(note: &Note) -> Vec<EvidenceClaim> {
    let kept = waggle_memory::memory::Memory::EVIDENCE_KEPT_MAX as usize;
    let mut claims: Vec<EvidenceClaim> = note.records("evidence").iter().filter_map(claim_of_record).collect();
    if claims.is_empty() {
        claims = note.body.evidence.iter().filter_map(|line| claim_of_line(line)).collect();
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
