//! What exports write and imports read: everything that is kept of a tenant's graph, one record after the other. Vectors,
//! indexes and counters are no records: they are made again from these.

use crate::handoff::Message;
use crate::id::MemoryId;
use crate::link::Link;
use crate::memory::{Evidence, Memory, Tombstone, Version};
use crate::transcript::{Session, Turn};

/// One record of a graph. An export gives them in the order of the variants, each variant by id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    /// A session.
    Session(Session),
    /// A turn, verbatim, with what is kept of the message of a hand-off that it was made from.
    Turn(Box<Turn>, Option<Message>),
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

impl MemoryRecord {
    /// Rough size in bytes.
    pub fn bytes_about(&self) -> usize {
        let memory = &self.memory;
        let aliases: usize = memory.aliases.iter().map(|alias| alias.text.len() + 100).sum();
        let evidence: usize = self
            .evidence
            .iter()
            .map(|(_, evidence)| evidence.text.len() + 300)
            .sum();
        let versions: usize = self.versions.iter().map(version_bytes_about).sum();
        1_000 + memory.content.len() + memory.source_prompt.len() + aliases + evidence + versions
    }

    /// The same memory as several records, each with a part of its versions, so that none has many more bytes than
    /// `bytes_max`. Taken in one after the other they give what one would.
    pub fn split(mut self, bytes_max: usize) -> Vec<Self> {
        if self.bytes_about() <= bytes_max {
            return vec![self];
        }
        let versions = std::mem::take(&mut self.versions);
        let rest = Self {
            memory: self.memory.clone(),
            evidence: Vec::new(),
            versions: Vec::new(),
        };
        let mut parts = Vec::new();
        let mut part = self;
        let mut bytes = part.bytes_about();
        for version in versions {
            let more = version_bytes_about(&version);
            if !part.versions.is_empty() && bytes + more > bytes_max {
                parts.push(std::mem::replace(&mut part, rest.clone()));
                bytes = part.bytes_about();
            }
            bytes += more;
            part.versions.push(version);
        }
        parts.push(part);
        parts
    }

    /// Adds a later part of the same memory.
    pub fn join(&mut self, part: Self) {
        self.evidence.extend(part.evidence);
        self.versions.extend(part.versions);
    }
}

fn version_bytes_about(version: &Version) -> usize {
    version.label.len() + version.content.len() + version.note.len() + 300
}
