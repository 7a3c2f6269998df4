//! Taking in records of an export: the command, what it answers, and what is decided before it is proposed.
//!
//! An import keeps ids and texts as they are: it neither reads conflicts nor looks for duplicates, because the links of
//! the export say what its memories have to do with each other.

pub mod check;
pub mod prepare;

use std::fmt;

use crate::id::TenantId;
use crate::memory::Memory;
use crate::record::Record;

/// Records to take in, in any order; apply sorts them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportRecords {
    /// Whose.
    pub tenant: TenantId,
    /// What happens to what is there already.
    pub strategy: ImportStrategy,
    /// Whether a model exists that will make the vectors; without one nothing waits for them.
    pub await_vectors: bool,
    /// At most [`ImportRecords::RECORDS_MAX`].
    pub records: Vec<Record>,
}

impl ImportRecords {
    /// Most records of one command. Up to here an import is all or nothing, if its bytes fit into one command too.
    pub const RECORDS_MAX: usize = 10_000;
}

/// What happens to a record that is there already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImportStrategy {
    /// The higher version wins; aliases, evidence and earlier versions unite.
    Merge = 1,
    /// What is there stays untouched.
    SkipExisting = 2,
    /// The imported text wins, also over a later one, which stays as a version.
    Overwrite = 3,
}

impl ImportStrategy {
    /// The number of the persisted format.
    pub const fn number(self) -> u8 {
        self as u8
    }

    /// Reads the number of the persisted format.
    pub const fn from_number(number: u8) -> Option<Self> {
        Some(match number {
            1 => Self::Merge,
            2 => Self::SkipExisting,
            3 => Self::Overwrite,
            _ => return None,
        })
    }
}

/// Whether an import that overwrites would put an earlier version of a memory in the place of a later one.
pub fn overwrites_newer(there: &Memory, file: &Memory) -> bool {
    there.version > file.version && !crate::apply::import::memories::differing(there, file).is_empty()
}

/// What an import did, or would do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Imported {
    /// Memories.
    pub memories: Counted,
    /// Links.
    pub links: Counted,
    /// Turns.
    pub turns: Counted,
    /// Sessions.
    pub sessions: Counted,
    /// Tombstones.
    pub tombstones: Counted,
    /// Links that were left out because an end is not there.
    pub dangling: u64,
    /// What was not taken over, at most [`Imported::CONFLICTS_MAX`].
    pub conflicts: Vec<ImportConflict>,
    /// All of those.
    pub conflict_count: u64,
}

/// Records of one sort by what became of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// They were not there.
    pub created: u64,
    /// They were there and changed.
    pub updated: u64,
    /// They were there and stayed as they are.
    pub unchanged: u64,
}

impl Counted {
    fn add(&mut self, other: Self) {
        self.created = self.created.saturating_add(other.created);
        self.updated = self.updated.saturating_add(other.updated);
        self.unchanged = self.unchanged.saturating_add(other.unchanged);
    }
}

impl Imported {
    /// Most conflicts that an answer names.
    pub const CONFLICTS_MAX: usize = 200;

    /// Notes something that was not taken over.
    pub fn conflict(&mut self, record: RecordKind, id: [u8; 16], why: ConflictReason, field: &str) {
        self.conflict_count = self.conflict_count.saturating_add(1);
        if self.conflicts.len() < Self::CONFLICTS_MAX {
            self.conflicts.push(ImportConflict {
                record,
                id,
                why,
                field: field.to_owned(),
            });
        }
    }

    /// Adds what a further part of the same import did.
    pub fn add(&mut self, other: Self) {
        self.memories.add(other.memories);
        self.links.add(other.links);
        self.turns.add(other.turns);
        self.sessions.add(other.sessions);
        self.tombstones.add(other.tombstones);
        self.dangling = self.dangling.saturating_add(other.dangling);
        self.conflict_count = self.conflict_count.saturating_add(other.conflict_count);
        let room = Self::CONFLICTS_MAX.saturating_sub(self.conflicts.len());
        self.conflicts.extend(other.conflicts.into_iter().take(room));
    }
}

/// Something of an import that was not taken over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportConflict {
    /// What sort of record.
    pub record: RecordKind,
    /// Which.
    pub id: [u8; 16],
    /// Why.
    pub why: ConflictReason,
    /// The fields that differ, separated by commas; may be empty.
    pub field: String,
}

/// A sort of record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RecordKind {
    /// A memory.
    Memory = 1,
    /// A link.
    Link = 2,
    /// A turn.
    Turn = 3,
    /// A session.
    Session = 4,
    /// A tombstone.
    Tombstone = 5,
    /// A redirect.
    Redirect = 6,
}

impl RecordKind {
    /// The number of the persisted format.
    pub const fn number(self) -> u8 {
        self as u8
    }

    /// Reads the number of the persisted format.
    pub const fn from_number(number: u8) -> Option<Self> {
        Some(match number {
            1 => Self::Memory,
            2 => Self::Link,
            3 => Self::Turn,
            4 => Self::Session,
            5 => Self::Tombstone,
            6 => Self::Redirect,
            _ => return None,
        })
    }

    /// The word of the tool surface.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Memory => "node",
            Self::Link => "edge",
            Self::Turn => "transcript",
            Self::Session => "session",
            Self::Tombstone => "tombstone",
            Self::Redirect => "redirect",
        }
    }

    /// Of a record.
    pub const fn of(record: &Record) -> Self {
        match record {
            Record::Session(_) => Self::Session,
            Record::Turn(..) => Self::Turn,
            Record::Memory(_) => Self::Memory,
            Record::Link(_) => Self::Link,
            Record::Redirect(_) => Self::Redirect,
            Record::Tombstone(..) => Self::Tombstone,
        }
    }
}

/// Why something was not taken over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConflictReason {
    /// The same version is there and differs: the stored one stays.
    Differs = 1,
    /// The id was erased here and stays erased.
    Erased = 2,
    /// The import says that it was erased, but here it lives: it stays.
    Alive = 3,
    /// One of its ends has as many links as a memory may have.
    Full = 4,
    /// It would close a cycle of `updates` links.
    Cycle = 5,
    /// Its id belongs to a link of other memories.
    OtherLink = 6,
    /// A memory cannot be linked to itself.
    SelfLink = 7,
    /// One of its ends, or what it leads to, is not there.
    Dangling = 8,
    /// The id was merged into another memory here and stays merged.
    Merged = 9,
}

impl ConflictReason {
    /// Every reason.
    pub const ALL: &'static [Self] = &[
        Self::Differs,
        Self::Erased,
        Self::Alive,
        Self::Full,
        Self::Cycle,
        Self::OtherLink,
        Self::SelfLink,
        Self::Dangling,
        Self::Merged,
    ];

    /// The number of the persisted format.
    pub const fn number(self) -> u8 {
        self as u8
    }

    /// Reads the number of the persisted format.
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.iter().copied().find(|reason| reason.number() == number)
    }

    /// The word of the tool surface.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Differs => "differs",
            Self::Erased => "erased_here",
            Self::Alive => "alive_here",
            Self::Full => "too_many_links",
            Self::Cycle => "cycle_of_updates",
            Self::OtherLink => "id_of_another_link",
            Self::SelfLink => "self_link",
            Self::Dangling => "dangling",
            Self::Merged => "merged_here",
        }
    }
}

impl fmt::Display for ConflictReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}
