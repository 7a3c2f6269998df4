//! What exports write and imports read: everything that is kept of a tenant's graph, one record after the other. Vectors,
//! indexes and counters are no records: they are made again from these.

use crate::id::MemoryId;
use crate::link::Link;
use crate::memory::{Evidence, Memory, Tombstone, Version};
use crate::transcript::{Session, Turn};

/// One record of a graph. An export gives them in the order of the variants, each variant by id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    /// A session.
    Session(Session),
    /// A turn, verbatim.
    Turn(Box<Turn>),
    /// A memory with all that belongs to it alone.
    Memory(Box<MemoryRecord>),
    /// A link; both ends are memories of the same export.
    Link(Box<Link>),
    /// The id of a memory that was merged into another one by hand.
    Redirect(Redirect),
    /// The mark of an erased memory.
    Tombstone(MemoryId, Tombstone),
}

/// A memory in full.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryRecord {
    /// The current version.
    pub memory: Memory,
    /// Its evidence with the numbers under which it is kept, oldest first.
    pub evidence: Vec<(u32, Evidence)>,
    /// Earlier versions, oldest first.
    pub versions: Vec<Version>,
}

/// A merged id keeps resolving.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Redirect {
    /// The id that was merged away.
    pub from: MemoryId,
    /// The memory that took it in.
    pub to: MemoryId,
}
