//! Takes the files of a vault one by one and makes a plan of them.
//!
//! A file whose bytes are those of the merge base is done at once and not kept; the others are kept, read, until all
//! are there, because a relation may name a memory of any file.

use std::collections::{BTreeMap, BTreeSet};

use waggle_memory::id::{MemoryId, TenantId};

use super::base::{Base, BaseFile, hash_of};
use super::changes::{Comparison, bad_field};
use super::new_memory::store_of;
use super::note::{BadField, Note};
use super::plan::{Change, Conflict, ConflictReason, MemoryRef, Plan, StoreMemory};
use super::relations::{self, Source};
use super::targets::Targets;
use super::{ArchiveError, BASE_PATH, FILE_BYTES_MAX};
use crate::graph::Graph;
use crate::redaction::Redactor;

/// Most bytes of changed files of one import.
const CHANGED_BYTES_MAX: usize = 256 << 20;

/// Collects files; [`Importer::finish`] compares them with the graph.
pub struct Importer<'a> {
    tenant: &'a TenantId,
    graph: &'a Graph,
    redactor: Redactor,
    base: Option<Base>,
    by_hash: BTreeMap<String, MemoryId>,
    notes: Vec<Note>,
    held_bytes: usize,
    plan: Plan,
}

impl<'a> Importer<'a> {
    /// An import into the graph of `tenant`.
    pub fn new(tenant: &'a TenantId, graph: &'a Graph) -> Self {
        Self {
            tenant,
            graph,
            redactor: Redactor::default(),
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
        let tenant = note
            .text("tenant_id")
            .filter(|t| !t.is_empty() && *t != self.tenant.as_str());
        if let Some(tenant) = tenant.filter(|_| note.version().is_some()) {
            let shown: String = tenant.chars().take(80).collect();
            return refuse(
                "tenant_id",
                Some(shown),
                Some(self.tenant.to_string()),
                ConflictReason::OtherTenant,
            );
        }
        let Some(id) = id else {
            return self.new_memory(note, None);
        };
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
        changes.extend(
            self.stores
                .into_iter()
                .map(|store| Change::StoreMemory(Box::new(store))),
        );
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
