//! The feed of changes: one small row for each thing that happened to a tenant's graph, oldest forgotten first. It holds
//! ids, times, authors and scopes, never content: what erased memories said is not in it.

use crate::id::{LinkId, MemoryId, Principal};
use crate::kind::Relationship;
use crate::scope::Scope;
use crate::time::Millis;

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ChangeKind {
    /// A memory was stored.
    Created = 1,
    /// A memory has a new version.
    Updated = 2,
    /// The validity of a memory was ended.
    Closed = 3,
    /// A memory was erased.
    Deleted = 4,
    /// A memory was found again in other words or by somebody else.
    Evidence = 5,
    /// A memory was merged into `other` by hand.
    Merged = 6,
    /// A link was made.
    Linked = 7,
    /// A conflict was settled.
    Resolved = 8,
    /// A settled conflict is open again.
    Reopened = 9,
}

impl ChangeKind {
    /// Every kind.
    pub const ALL: &'static [Self] = &[
        Self::Created,
        Self::Updated,
        Self::Closed,
        Self::Deleted,
        Self::Evidence,
        Self::Merged,
        Self::Linked,
        Self::Resolved,
        Self::Reopened,
    ];

    /// The number of the persisted format.
    pub const fn number(self) -> u8 {
        self as u8
    }

    /// Reads the number of the persisted format.
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.number() == number)
    }
}

/// One row of the feed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// When; never earlier than the change before.
    pub at: Millis,
    /// Who.
    pub author: Principal,
    /// What.
    pub kind: ChangeKind,
    /// The memory, or the source of the link.
    pub memory: MemoryId,
    /// The target of the link, or what the memory was merged into.
    pub other: Option<MemoryId>,
    /// The link.
    pub link: Option<LinkId>,
    /// What the link says.
    pub relationship: Option<Relationship>,
    /// The version that the memory has now; 0 for links.
    pub version: u32,
    /// Where: the scope of the call where it names one, else that of the memory.
    pub scope: Scope,
}

impl Change {
    /// Most changes kept for one tenant.
    pub const KEPT_MAX: u64 = 1_000_000;
}
