//! Erasing a whole scope in steps of bounded size. Each step is a command of its own; its outcome says where the next
//! one goes on.

use crate::id::{MemoryId, TenantId};
use crate::statement::Fingerprint;

/// One step of erasing a scope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clear {
    /// Whose.
    pub tenant: TenantId,
    /// What.
    pub target: ClearTarget,
    /// Where the step before ended; None for the first.
    pub from: Option<ClearPoint>,
    /// Rows to touch, about: the step ends with the memory or turn that reaches it. At most [`Clear::ROWS_MAX`].
    pub rows_max: u32,
}

impl Clear {
    /// Most rows of one step. The last memory of a step may add its own rows: links, evidence, versions.
    pub const ROWS_MAX: u32 = 10_000;
}

/// What is erased.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClearTarget {
    /// Everything that the tenant remembers.
    All,
    /// One project, by any spelling of its name.
    Project(String),
    /// One session: what rests on it alone, and its turns. None: in every project.
    Session {
        /// By any spelling of its name.
        project: Option<String>,
        /// As given.
        session: String,
    },
}

/// How far the erasing of a scope is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClearPoint {
    /// Key of the project at work.
    pub project: String,
    /// Memories come before turns.
    pub phase: ClearPhase,
}

/// What of a project is at work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClearPhase {
    /// Memories after this one in the order of their labels' fingerprints; None: from the first.
    Memories(Option<(Fingerprint, MemoryId)>),
    /// Sessions and their turns.
    Turns,
}

/// What one step erased.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cleared {
    /// Memories by kind, index = [`crate::kind::Kind::number`].
    pub memories_by_kind: [u64; 8],
    /// Links.
    pub links: u64,
    /// Turns.
    pub turns: u64,
    /// Sessions.
    pub sessions: u64,
    /// Pieces of evidence that memories lost which stay.
    pub evidence: u64,
    /// Proof.
    pub receipt: String,
    /// Where to go on; None: all is done.
    pub next: Option<ClearPoint>,
}
