//! The records of one export as a graph: what the pages (vault, bundle, HTML) need to see at once.
//!
//! Held in bytes, so it has a bound. Links with a missing end are left out: no page ever shows one.

use std::collections::BTreeMap;

use waggle_memory::id::{LinkId, MemoryId, TurnId};
use waggle_memory::link::Link;
use waggle_memory::memory::{Memory, Tombstone};
use waggle_memory::record::{MemoryRecord, Record};
use waggle_memory::transcript::Turn;

/// More records than a page can be made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the export holds more than {max} {what}; narrow it by project, agent or session, or use a backup")]
pub struct TooManyRecords {
    /// Of what.
    pub what: &'static str,
    /// The bound.
    pub max: usize,
}

/// Memories, links and turns by id.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    memories: BTreeMap<MemoryId, MemoryRecord>,
    links: BTreeMap<LinkId, Link>,
    links_of: BTreeMap<MemoryId, Vec<LinkId>>,
    turns: BTreeMap<TurnId, Turn>,
    tombstones: BTreeMap<MemoryId, Tombstone>,
    redirects: BTreeMap<MemoryId, MemoryId>,
}

impl Graph {
    /// Most memories of a page.
    pub const MEMORIES_MAX: usize = 100_000;
    /// Most links of a page.
    pub const LINKS_MAX: usize = 1_000_000;
    /// Most turns of a page.
    pub const TURNS_MAX: usize = 1_000_000;

    /// Collects the records, in any order.
    pub fn collect(records: impl IntoIterator<Item = Record>) -> Result<Self, TooManyRecords> {
        let mut graph = Self::default();
        for record in records {
            match record {
                Record::Memory(record) => {
                    graph.memories.insert(record.memory.id, *record);
                }
                Record::Link(link) => {
                    graph.links.insert(link.id, *link);
                }
                Record::Turn(turn, _) => {
                    graph.turns.insert(turn.id, *turn);
                }
                Record::Tombstone(id, tombstone) => {
                    graph.tombstones.insert(id, tombstone);
                }
                Record::Redirect(redirect) => {
                    graph.redirects.insert(redirect.from, redirect.to);
                }
                Record::Session(_) => {}
            }
            graph.check_bounds()?;
        }
        graph.index_links();
        Ok(graph)
    }

    fn check_bounds(&self) -> Result<(), TooManyRecords> {
        let counts = [
            ("memories", self.memories.len(), Self::MEMORIES_MAX),
            ("links", self.links.len(), Self::LINKS_MAX),
            ("turns", self.turns.len(), Self::TURNS_MAX),
            ("marks of erased memories", self.tombstones.len(), Self::LINKS_MAX),
            ("merged ids", self.redirects.len(), Self::LINKS_MAX),
        ];
        match counts.into_iter().find(|(_, count, max)| count > max) {
            Some((what, _, max)) => Err(TooManyRecords { what, max }),
            None => Ok(()),
        }
    }

    fn index_links(&mut self) {
        let memories = &self.memories;
        self.links
            .retain(|_, link| memories.contains_key(&link.source) && memories.contains_key(&link.target));
        for (id, link) in &self.links {
            self.links_of.entry(link.source).or_default().push(*id);
            if link.target != link.source {
                self.links_of.entry(link.target).or_default().push(*id);
            }
        }
    }

    /// Every memory, by id.
    pub fn memories(&self) -> impl Iterator<Item = &MemoryRecord> {
        self.memories.values()
    }

    /// How many memories there are.
    pub fn memory_count(&self) -> usize {
        self.memories.len()
    }

    /// One memory in full.
    pub fn record(&self, id: MemoryId) -> Option<&MemoryRecord> {
        self.memories.get(&id)
    }

    /// The current version of one memory.
    pub fn memory(&self, id: MemoryId) -> Option<&Memory> {
        self.memories.get(&id).map(|record| &record.memory)
    }

    /// Every link, by id.
    pub fn links(&self) -> impl Iterator<Item = &Link> {
        self.links.values()
    }

    /// The links at a memory, both directions, by id.
    pub fn links_of(&self, id: MemoryId) -> impl Iterator<Item = &Link> {
        let ids = self.links_of.get(&id).map(Vec::as_slice).unwrap_or_default();
        ids.iter().filter_map(|id| self.links.get(id))
    }

    /// The links that start at a memory, by id.
    pub fn links_from(&self, id: MemoryId) -> impl Iterator<Item = &Link> {
        self.links_of(id).filter(move |link| link.source == id)
    }

    /// One turn.
    pub fn turn(&self, id: TurnId) -> Option<&Turn> {
        self.turns.get(&id)
    }

    /// Whether the id was erased.
    pub fn is_erased(&self, id: MemoryId) -> bool {
        self.tombstones.contains_key(&id)
    }

    /// What a merged id stands for now.
    pub fn merged_into(&self, id: MemoryId) -> Option<MemoryId> {
        self.redirects.get(&id).copied()
    }
}
