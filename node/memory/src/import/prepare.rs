//! What is decided about a record before it is proposed: whose word it is, into which project it goes, under which id.

use crate::id::{EvidenceId, LinkId, MemoryId, PairId, Principal, TurnId};
use crate::memory::{Evidence, Version};
use crate::record::{MemoryRecord, Record};
use crate::scope::{Scope, name_key};

/// How records of one import are changed on their way in.
#[derive(Clone, Debug, Default)]
pub struct Preparation {
    /// Everything is said to come from here, unless the file's authors are believed.
    pub author: Option<Principal>,
    /// Everything goes into this project.
    pub project: Option<String>,
    /// Everything gets a new id, made from the old one and the project: the same import again meets the same ids.
    pub new_ids: bool,
}

impl Preparation {
    /// The record as it goes into the command; None when it has no place there.
    pub fn prepare(&self, record: Record) -> Option<Record> {
        let mut record = record;
        if let Some(author) = &self.author {
            set_author(&mut record, author);
        }
        if let Some(project) = &self.project {
            set_project(&mut record, project);
        }
        if self.new_ids {
            self.renamed(record)
        } else {
            Some(record)
        }
    }

    /// The id under which a branch keeps a memory.
    pub fn new_memory_id(&self, id: MemoryId) -> MemoryId {
        MemoryId::from_bytes(self.derived("memory", id.bytes()))
    }

    fn renamed(&self, record: Record) -> Option<Record> {
        let turn = |id: TurnId| TurnId::from_bytes(self.derived("turn", id.bytes()));
        Some(match record {
            Record::Session(session) => Record::Session(session),
            Record::Turn(mut row, message) => {
                row.id = turn(row.id);
                row.pair = PairId::from_bytes(self.derived("pair", row.pair.bytes()));
                row.memories.iter_mut().for_each(|id| *id = self.new_memory_id(*id));
                Record::Turn(row, message)
            }
            Record::Memory(mut record) => {
                self.rename_memory(&mut record);
                Record::Memory(record)
            }
            Record::Link(mut link) => {
                link.id = LinkId::from_bytes(self.derived("link", link.id.bytes()));
                link.source = self.new_memory_id(link.source);
                link.target = self.new_memory_id(link.target);
                if let Some(resolution) = &mut link.resolution {
                    resolution.winner = resolution.winner.map(|id| self.new_memory_id(id));
                }
                Record::Link(link)
            }
            // What was erased or merged away elsewhere never had the new ids.
            Record::Redirect(_) | Record::Tombstone(..) => return None,
        })
    }

    fn rename_memory(&self, record: &mut MemoryRecord) {
        let memory = &mut record.memory;
        memory.id = self.new_memory_id(memory.id);
        memory.superseded_by = memory.superseded_by.map(|id| self.new_memory_id(id));
        for (_, evidence) in &mut record.evidence {
            evidence.id = EvidenceId::from_bytes(self.derived("evidence", evidence.id.bytes()));
            if let Some(span) = &mut evidence.turn {
                span.turn = TurnId::from_bytes(self.derived("turn", span.turn.bytes()));
            }
        }
        for version in &mut record.versions {
            version.superseded_by = version.superseded_by.map(|id| self.new_memory_id(id));
        }
    }

    /// A UUID of version 8 made from what it names.
    fn derived(&self, sort: &str, id: [u8; 16]) -> [u8; 16] {
        let project = name_key(self.project.as_deref().unwrap_or_default());
        let mut hasher = xxhash_rust::xxh3::Xxh3::new();
        hasher.update(b"branch");
        hasher.update(&[0]);
        hasher.update(sort.as_bytes());
        hasher.update(&[0]);
        hasher.update(project.as_bytes());
        hasher.update(&[0]);
        hasher.update(&id);
        let mut bytes = hasher.digest128().to_be_bytes();
        if let Some(byte) = bytes.get_mut(6) {
            *byte = (*byte & 0x0f) | 0x80;
        }
        if let Some(byte) = bytes.get_mut(8) {
            *byte = (*byte & 0x3f) | 0x80;
        }
        bytes
    }
}

fn set_author(record: &mut Record, author: &Principal) {
    match record {
        Record::Session(_) | Record::Redirect(_) => {}
        Record::Turn(turn, _) => turn.author = author.clone(),
        Record::Memory(record) => {
            record.memory.author = author.clone();
            record
                .memory
                .aliases
                .iter_mut()
                .for_each(|alias| alias.author = author.clone());
            let evidence = record.evidence.iter_mut().map(|(_, evidence)| evidence);
            evidence.for_each(|evidence: &mut Evidence| evidence.author = author.clone());
            let versions = record.versions.iter_mut();
            versions.for_each(|version: &mut Version| version.replaced_by = author.clone());
        }
        Record::Link(link) => {
            link.author = author.clone();
            if let Some(resolution) = &mut link.resolution {
                resolution.by = resolution.by.as_ref().map(|_| author.clone());
            }
        }
        Record::Tombstone(_, tombstone) => tombstone.author = author.clone(),
    }
}

fn set_project(record: &mut Record, project: &str) {
    let set = |scope: &mut Scope| project.clone_into(&mut scope.project);
    match record {
        Record::Session(session) => project.clone_into(&mut session.project),
        Record::Turn(turn, _) => set(&mut turn.scope),
        Record::Memory(record) => {
            set(&mut record.memory.scope);
            record
                .evidence
                .iter_mut()
                .for_each(|(_, evidence)| set(&mut evidence.scope));
        }
        Record::Tombstone(_, tombstone) => {
            if let Some(erased) = &mut tombstone.of {
                set(&mut erased.scope);
            }
        }
        Record::Link(_) | Record::Redirect(_) => {}
    }
}
