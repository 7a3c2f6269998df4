//! The deterministic answer of applying a command. Small on purpose: ids and marks. Whoever answers a caller reads the
//! memories themselves from the state, so a retried request shows them as they are now.

use std::fmt;

use crate::clear::Cleared;
use crate::command::DedupReason;
use crate::id::{LinkId, MemoryId, TenantId, TurnId};
use crate::import::Imported;
use crate::tables::Item;

/// What a command did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Remember.
    Remembered(Box<Remembered>),
    /// UpdateMemory.
    Updated {
        /// Which.
        id: MemoryId,
        /// Before.
        previous_version: u32,
        /// Conflicts that the new text opened.
        conflicts: Vec<LinkId>,
    },
    /// DeleteMemory.
    Deleted {
        /// Which.
        id: MemoryId,
        /// False when it had been erased before.
        deleted: bool,
        /// Its label, empty when erased before.
        label: String,
        /// Links that went with it.
        deleted_links: u32,
        /// Turns that stay.
        turns_kept: u32,
        /// Proof.
        receipt: String,
    },
    /// StoreLink.
    LinkStored {
        /// The link.
        id: LinkId,
        /// False when the triple existed.
        created: bool,
    },
    /// DeleteLink.
    LinkDeleted {
        /// Which.
        id: LinkId,
        /// False when there was none.
        deleted: bool,
    },
    /// ResolveConflict.
    ConflictResolved {
        /// The link.
        id: LinkId,
    },
    /// ImportRecords.
    Imported(Box<Imported>),
    /// Canonicalize.
    Canonicalized(Box<Canonicalized>),
    /// Clear.
    Cleared(Box<Cleared>),
    /// Commands without an answer of interest.
    Done,
    /// Refused; nothing was changed.
    Rejected(Rejection),
}

/// What Remember did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Remembered {
    /// Turns stored, in the order of the command.
    pub turns: Vec<TurnId>,
    /// One for each memory of the command, in its order.
    pub memories: Vec<StoredMemory>,
    /// Links that the call created, conflicts excluded.
    pub links: Vec<LinkId>,
    /// Conflicts that the call created.
    pub conflicts: Vec<LinkId>,
    /// The project was used for the first time.
    pub first_use_of_project: bool,
}

/// What Canonicalize did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Canonicalized {
    /// What stayed.
    pub id: MemoryId,
    /// Merged by this command; those that had been merged before are not named.
    pub merged: Vec<MemoryId>,
    /// Links that moved to it.
    pub links_moved: u32,
    /// Links that would have led to itself or were there already.
    pub links_dropped: u32,
    /// Wordings that it took in.
    pub aliases_added: u32,
}

/// What became of one memory of a Remember.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredMemory {
    /// The stored memory: a new one, or the one merged into.
    pub id: MemoryId,
    /// Set when it was merged.
    pub merged: Option<DedupReason>,
    /// Cosine in thousandths; 1000 for exact and canonical merges.
    pub similarity_thousandths: u32,
    /// The wording was new and is kept as an alias.
    pub alias_added: bool,
    /// The wording was new, but the list of aliases is full: it is kept as evidence only.
    pub aliases_full: bool,
}

/// Why a command was refused. Replicated, so every replica and every retry says the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rejection {
    /// No such memory, link or key for this tenant.
    NotFound {
        /// "memory", "link", "key".
        what: &'static str,
        /// As the caller wrote it.
        id: String,
    },
    /// Somebody else changed it first.
    VersionConflict {
        /// The version now.
        current: u32,
    },
    /// The link is no conflict, or the winner is not one of its ends.
    NotResolvable {
        /// In words.
        why: String,
    },
    /// A rule of the domain is broken by the arguments.
    Invalid {
        /// The argument.
        field: &'static str,
        /// In words.
        why: String,
    },
    /// A per-memory or per-call cap.
    LimitExceeded {
        /// In words, with the limit.
        why: String,
    },
    /// The id was used with other arguments.
    RequestIdReused,
    /// It exists already and differs.
    AlreadyExists {
        /// "tenant", "cluster", "key".
        what: &'static str,
        /// Which.
        id: String,
    },
}

impl Rejection {
    /// The stable code of the tool surface.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::NotFound { .. } => "not_found",
            Self::VersionConflict { .. } => "version_conflict",
            Self::NotResolvable { .. } => "conflict_resolution_failed",
            Self::Invalid { .. } => "validation_failed",
            Self::LimitExceeded { .. } => "limit_exceeded",
            Self::RequestIdReused => "request_id_reused",
            Self::AlreadyExists { .. } => "already_exists",
        }
    }
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFound { what, id } => write!(
                f,
                "no {what} '{}'; check the id, or list what there is",
                id.escape_debug()
            ),
            Self::VersionConflict { current } => {
                write!(
                    f,
                    "the memory is at version {current} now; read it again and repeat the change"
                )
            }
            Self::NotResolvable { why } => f.write_str(why),
            Self::Invalid { field, why } => write!(f, "{field}: {why}"),
            Self::LimitExceeded { why } => f.write_str(why),
            Self::RequestIdReused => {
                f.write_str("this request id was used with other arguments within 24 h; take a new id for a new call")
            }
            Self::AlreadyExists { what, id } => write!(f, "{what} '{}' exists already and differs", id.escape_debug()),
        }
    }
}

impl std::error::Error for Rejection {}

/// What an applied entry changed, for derived state (recall indexes) and for work that only the leader does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Effects {
    /// The tenant that was written to; None for commands of a shard as a whole.
    pub tenant: Option<TenantId>,
    /// Items whose rows changed or went away.
    pub changed: Vec<Item>,
    /// Items that wait for a vector.
    pub awaiting_vectors: bool,
}

/// Answer and effects of one entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Applied {
    /// For the caller.
    pub outcome: Outcome,
    /// For this replica.
    pub effects: Effects,
}
