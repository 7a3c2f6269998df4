//! What an import asks for. The caller executes it, in this order: memories and stubs, updates, links to delete, links
//! to store; conflicts are for the answer.

use std::fmt;

use waggle_memory::id::{LinkId, MemoryId};
use waggle_memory::kind::{Confidence, Kind, Relationship, Role};
use waggle_memory::scope::Scope;
use waggle_memory::time::Millis;

/// Everything that follows from the files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// In the order in which they have to be done.
    pub changes: Vec<Change>,
    /// Files that ask for nothing.
    pub unchanged: usize,
}

impl Plan {
    /// The conflicts among the changes.
    pub fn conflicts(&self) -> impl Iterator<Item = &Conflict> {
        self.changes.iter().filter_map(|change| match change {
            Change::Conflict(conflict) => Some(conflict),
            _ => None,
        })
    }
}

/// One thing to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Store what a new file says, with the rules for duplicates.
    StoreMemory(Box<StoreMemory>),
    /// Make a note that stands for a label that nothing is known by.
    StubNote(StubNote),
    /// Change a memory.
    UpdateMemory(Box<UpdateMemory>),
    /// Delete a link.
    DeleteLink {
        /// Which.
        id: LinkId,
        /// The file that strikes it through.
        path: String,
    },
    /// Make a link, or give one another weight.
    StoreLink(StoreLink),
    /// Nothing to do, but to say.
    Conflict(Conflict),
}

/// A memory that is there, or one that this plan makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MemoryRef {
    /// By its id.
    Known(MemoryId),
    /// By the key of its [`StoreMemory`] or [`StubNote`]. If the rules for duplicates merge it, the link is the other
    /// memory's.
    New(usize),
}

/// A file about a memory that is not there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreMemory {
    /// What links of this plan call it.
    pub key: usize,
    /// The file.
    pub path: String,
    /// The id that the file states; it is kept. None: a new one.
    pub id: Option<MemoryId>,
    /// Where.
    pub scope: Scope,
    /// Never blank, within its limit.
    pub label: String,
    /// Never blank, within its limit.
    pub content: String,
    /// What sort.
    pub kind: Kind,
    /// Sorted, within their limits.
    pub tags: Vec<String>,
    /// Other wordings that the file states.
    pub aliases: Vec<String>,
    /// The caller's note.
    pub source_prompt: String,
    /// JSON as the file states it, or nothing.
    pub metadata: String,
    /// As stated; None: explicit, since a person wrote the file.
    pub confidence: Option<Confidence>,
    /// As stated.
    pub valid_from: Option<Millis>,
    /// As stated.
    pub valid_to: Option<Millis>,
    /// When it was first recorded, as the file claims.
    pub recorded_at: Option<Millis>,
    /// What it rests on, as the file claims. Empty: the importer is its author.
    pub evidence: Vec<EvidenceClaim>,
}

/// A piece of evidence as a file states it. The file is no witness: who imports answers for it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EvidenceClaim {
    /// The words.
    pub text: String,
    /// Who spoke.
    pub role: Option<Role>,
    /// Position in the session.
    pub turn_index: Option<u32>,
    /// The session.
    pub session_id: String,
    /// The agent.
    pub agent_id: String,
    /// When.
    pub observed_at: Option<Millis>,
}

/// A note that holds a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StubNote {
    /// What links of this plan call it.
    pub key: usize,
    /// Its label, and its content.
    pub label: String,
    /// The project of the file that names it.
    pub project: String,
}

/// The fields of a memory that changed in its file alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpdateMemory {
    /// Which.
    pub id: MemoryId,
    /// The file.
    pub path: String,
    /// The version that the plan was made for: refuse it if there is a newer one.
    pub expected_version: u32,
    /// The new label.
    pub label: Option<String>,
    /// The new content.
    pub content: Option<String>,
    /// The new tags, all of them.
    pub tags: Option<Vec<String>>,
    /// The new start.
    pub valid_from: Option<Millis>,
    /// The new end.
    pub valid_to: Option<Millis>,
}

/// A relation that is in a file and not in the graph, or has another weight there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreLink {
    /// From.
    pub source: MemoryRef,
    /// To.
    pub target: MemoryRef,
    /// What it says.
    pub relationship: Relationship,
    /// 0 to 1000; None: the default.
    pub weight_thousandths: Option<u32>,
    /// As stated beside a memory that is new here; None: explicit, since a person wrote the line.
    pub confidence: Option<Confidence>,
    /// The file.
    pub path: String,
}

/// What a file says and the graph does not take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// Which memory, if that is known.
    pub node_id: Option<MemoryId>,
    /// The file.
    pub path: String,
    /// The field, by its name in the file.
    pub field: String,
    /// What the file said when it was written, if that is known.
    pub base: Option<String>,
    /// What it says now.
    pub vault: Option<String>,
    /// What the graph says.
    pub current: Option<String>,
    /// Why nothing was written.
    pub reason: ConflictReason,
}

/// Why a field of a file was not written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConflictReason {
    /// File and graph both changed since the file was written.
    BothChanged,
    /// They differ, and nothing says which of the two changed.
    NoBase,
    /// The field cannot be changed through a file.
    ReadOnly,
    /// The field holds a secret that the file does not show: writing it would lose what was there.
    Redacted,
    /// The file belongs to another tenant.
    OtherTenant,
    /// The word is not in the vocabulary.
    UnknownWord,
    /// The memory was erased.
    Erased,
    /// The memory was merged into another one.
    Merged,
    /// Two files are about the same memory.
    DoubledId,
    /// Several memories have that label.
    AmbiguousTarget,
    /// The target is not there and has no label.
    UnknownTarget,
    /// The file cannot be read, or the value breaks a limit.
    Invalid(String),
}

impl ConflictReason {
    /// A stable word for programs.
    pub fn word(&self) -> &'static str {
        match self {
            Self::BothChanged => "both_changed",
            Self::NoBase => "no_base",
            Self::ReadOnly => "read_only",
            Self::Redacted => "redacted",
            Self::OtherTenant => "other_tenant",
            Self::UnknownWord => "unknown_word",
            Self::Erased => "erased",
            Self::Merged => "merged",
            Self::DoubledId => "doubled_id",
            Self::AmbiguousTarget => "ambiguous_target",
            Self::UnknownTarget => "unknown_target",
            Self::Invalid(_) => "invalid",
        }
    }
}

impl fmt::Display for ConflictReason {
    /// What is the matter and what to do.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::BothChanged => "changed in the file and in the graph; export again and repeat the edit",
            Self::NoBase => "file and graph differ and nothing says which is newer; export again and repeat the edit",
            Self::ReadOnly => "cannot be changed through a file; the graph keeps its value",
            Self::Redacted => "the file shows a mark in place of a secret; change the memory itself instead",
            Self::OtherTenant => "belongs to another tenant; remove node_id and tenant_id to store it as new",
            Self::UnknownWord => "is not a word that is known here; use one of the documented ones",
            Self::Erased => "was erased and stays erased; remove node_id to store it as new",
            Self::Merged => "was merged into another memory; edit that one",
            Self::DoubledId => "another file is about the same memory; remove one of the two",
            Self::AmbiguousTarget => "several memories have this label; add <!-- node_id:... --> with the right one",
            Self::UnknownTarget => "there is no such memory and no label to make a note of",
            Self::Invalid(why) => why,
        })
    }
}
