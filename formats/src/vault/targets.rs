//! Finds the memory that a line of the relations means: by the id in its comment, else by its label.

use std::collections::{BTreeMap, BTreeSet};

use waggle_memory::id::MemoryId;
use waggle_memory::scope::name_key;

use super::body::link_key;
use super::plan::{ConflictReason, MemoryRef, StubNote};
use crate::graph::Graph;
use crate::redaction::Redactor;

/// Everything that a label can mean, and the stubs that were made on the way.
pub(super) struct Targets<'a> {
    graph: &'a Graph,
    new_ids: BTreeMap<MemoryId, usize>,
    /// By label, then project.
    by_label: BTreeMap<String, BTreeMap<String, BTreeSet<MemoryRef>>>,
    pub(super) stubs: Vec<StubNote>,
    next_key: usize,
}

impl<'a> Targets<'a> {
    /// Targets in the graph; new memories and stubs get keys from 0.
    pub(super) fn new(graph: &'a Graph, redactor: &Redactor) -> Self {
        let mut targets = Self {
            graph,
            new_ids: BTreeMap::new(),
            by_label: BTreeMap::new(),
            stubs: Vec::new(),
            next_key: 0,
        };
        for record in graph.memories() {
            let memory = &record.memory;
            let label = redactor.again(&memory.label);
            targets.name(&label, &memory.scope.project, MemoryRef::Known(memory.id));
        }
        targets
    }

    /// Adds a memory that this plan makes; gives its key.
    pub(super) fn add_new(&mut self, id: Option<MemoryId>, label: &str, project: &str) -> usize {
        let key = self.next_key;
        self.next_key += 1;
        if let Some(id) = id {
            self.new_ids.insert(id, key);
        }
        self.name(label, project, MemoryRef::New(key));
        key
    }

    fn name(&mut self, label: &str, project: &str, memory: MemoryRef) {
        let projects = self.by_label.entry(link_key(label)).or_default();
        projects.entry(name_key(project)).or_default().insert(memory);
    }

    /// The memory with this id, there or to be made. Err: it is gone for good.
    pub(super) fn by_id(&self, id: MemoryId) -> Result<Option<MemoryRef>, ConflictReason> {
        let id = self.graph.merged_into(id).unwrap_or(id);
        if self.graph.memory(id).is_some() {
            return Ok(Some(MemoryRef::Known(id)));
        }
        if self.graph.is_erased(id) {
            return Err(ConflictReason::Erased);
        }
        Ok(self.new_ids.get(&id).map(|key| MemoryRef::New(*key)))
    }

    /// The memory with this label: in `project` before anywhere else. Err if several have it there.
    pub(super) fn by_label(&self, label: &str, project: &str) -> Result<Option<MemoryRef>, ConflictReason> {
        let Some(projects) = self.by_label.get(&link_key(label)) else {
            return Ok(None);
        };
        let all: BTreeSet<MemoryRef> = match projects.get(&name_key(project)) {
            Some(same_project) => same_project.clone(),
            None => projects.values().flatten().copied().collect(),
        };
        match all.len() {
            0 => Ok(None),
            1 => Ok(all.first().copied()),
            _ => Err(ConflictReason::AmbiguousTarget),
        }
    }

    /// A note that holds the place of a label; the next line with that label finds it.
    pub(super) fn stub(&mut self, label: &str, project: &str) -> MemoryRef {
        let key = self.add_new(None, label, project);
        self.stubs.push(StubNote {
            key,
            label: label.to_owned(),
            project: project.to_owned(),
        });
        MemoryRef::New(key)
    }
}
