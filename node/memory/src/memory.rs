//! A memory, its versions, aliases and evidence, and the vector that stands for its meaning.

use crate::id::{EvidenceId, MemoryId, Principal, TurnId};
use crate::kind::{Confidence, Kind, Role};
use crate::scope::Scope;
use crate::statement::{Fingerprint, Statement};
use crate::time::Millis;

/// One statement that the system keeps, in its current version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Memory {
    /// Stable for ever.
    pub id: MemoryId,
    /// `/`-separated part of the tenant that policies attach to; fixed when written.
    pub namespace: String,
    /// Scope of the first evidence.
    pub scope: Scope,
    /// Short name, 1 to 800 bytes, no line breaks.
    pub label: String,
    /// One statement, 1 to 65,536 bytes.
    pub content: String,
    /// What sort of memory.
    pub kind: Kind,
    /// Caller's and bookkeeping tags, sorted, without doubles.
    pub tags: Vec<String>,
    /// Other wordings that were merged in, oldest first; at most [`Memory::ALIASES_MAX`].
    pub aliases: Vec<Alias>,
    /// Caller's note on where it came from.
    pub source_prompt: String,
    /// What an import or a REST call noted beside it: a canonical JSON object as text, or empty for none. Checked at the
    /// edges, never interpreted.
    pub metadata: String,
    /// Pieces of evidence ever given; the newest [`Memory::EVIDENCE_KEPT_MAX`] are kept as rows.
    pub evidence_count: u32,
    /// How far it can be trusted.
    pub confidence: Confidence,
    /// World clock: from when it holds.
    pub valid_from: Millis,
    /// Whether `valid_from` was stated (by text or caller) or is the default.
    pub valid_from_stated: bool,
    /// World clock: until when, exclusive.
    pub valid_to: Option<Millis>,
    /// Record clock: stamp of version 1.
    pub recorded_at: Millis,
    /// Record clock: stamp of the current version.
    pub updated_at: Millis,
    /// Counts from 1.
    pub version: u32,
    /// The version in which label or content last changed: what a vector or a comparison belongs to.
    pub text_version: u32,
    /// Who recorded version 1.
    pub author: Principal,
    /// When a plan, to-do or deadline falls due; does not limit validity.
    pub due: Option<Millis>,
    /// Set by resolving a conflict only (I-23).
    pub superseded_by: Option<MemoryId>,
    /// What the rules read in it.
    pub statement: Statement,
    /// The version of the rules that read it.
    pub rules_version: u32,
    /// Links at it, both directions.
    pub link_count: u32,
    /// Open conflicts among those links.
    pub open_conflict_count: u32,
}

impl Memory {
    /// Most aliases kept; a further wording becomes evidence only, and the answer says so.
    pub const ALIASES_MAX: usize = 64;
    /// Most pieces of evidence kept; `evidence_count` goes on.
    pub const EVIDENCE_KEPT_MAX: u32 = 1_000;
    /// Most earlier versions kept.
    pub const VERSIONS_KEPT_MAX: u32 = 1_000;
    /// Most links at one memory.
    pub const LINKS_MAX: u32 = 10_000;

    /// Whether it holds at `at` by the world clock.
    pub fn state_at(&self, at: Millis) -> State {
        if self.valid_to.is_some_and(|end| end <= at) {
            State::Closed
        } else if self.valid_from > at {
            State::Scheduled
        } else {
            State::Current
        }
    }
}

/// Derived from validity and a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Holds.
    Current,
    /// `valid_from` lies in the future.
    Scheduled,
    /// `valid_to` has passed.
    Closed,
}

impl State {
    /// The word of the tool surface.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Current => "current",
            Self::Scheduled => "scheduled",
            Self::Closed => "closed",
        }
    }
}

/// Another wording of a memory. Never overwritten, always searched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alias {
    /// The wording.
    pub text: String,
    /// Who said it.
    pub author: Principal,
    /// When it was merged in.
    pub added_at: Millis,
    /// Its [`Statement::reading`], by which a third mention of this wording is found again. None for a wording that an
    /// update replaced: it stays searchable, but the old value stored anew must not merge into the new one.
    pub exact: Option<Fingerprint>,
}

/// What a memory was before a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    /// The number that this state had.
    pub version: u32,
    /// When this state was recorded.
    pub recorded_at: Millis,
    /// When the next state replaced it.
    pub replaced_at: Millis,
    /// Who replaced it.
    pub replaced_by: Principal,
    /// Why it was replaced.
    pub reason: ChangeReason,
    /// The same in the words of who replaced it; may be empty.
    pub note: String,
    /// Text and validity of this state.
    pub label: String,
    /// Text of this state.
    pub content: String,
    /// Kind of this state.
    pub kind: Kind,
    /// Tags of this state.
    pub tags: Vec<String>,
    /// World clock of this state.
    pub valid_from: Millis,
    /// World clock of this state.
    pub valid_to: Option<Millis>,
    /// Supersession of this state.
    pub superseded_by: Option<MemoryId>,
}

/// Why a version came to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeReason {
    /// update_node.
    Update = 1,
    /// A duplicate was merged in.
    Merge = 2,
    /// A conflict was resolved against it.
    Resolve = 3,
    /// A resolution was reversed.
    Reopen = 4,
    /// A later statement ended it.
    Ended = 5,
    /// An import brought a later state.
    Import = 32,
}

impl ChangeReason {
    /// The number of the persisted format.
    pub const fn number(self) -> u8 {
        self as u8
    }

    /// Reads the number of the persisted format.
    pub const fn from_number(number: u8) -> Option<Self> {
        Some(match number {
            1 => Self::Update,
            2 => Self::Merge,
            3 => Self::Resolve,
            4 => Self::Reopen,
            5 => Self::Ended,
            32 => Self::Import,
            _ => return None,
        })
    }

    /// The word of the tool surface.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Update => "update",
            Self::Merge => "merge",
            Self::Resolve => "resolve",
            Self::Reopen => "reopen",
            Self::Ended => "ended",
            Self::Import => "import",
        }
    }
}

/// What a memory rests on: a span of a turn, or a named author (I-22).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evidence {
    /// Its identity.
    pub id: EvidenceId,
    /// Where in the conversation, if it came from one.
    pub turn: Option<TurnSpan>,
    /// Scope in which it was given.
    pub scope: Scope,
    /// The words, up to [`Evidence::TEXT_BYTES_MAX`].
    pub text: String,
    /// When it was said.
    pub observed_at: Millis,
    /// Who gave it, from the credential.
    pub author: Principal,
}

impl Evidence {
    /// Longest kept text in bytes.
    pub const TEXT_BYTES_MAX: usize = 2_048;
}

/// A half-open byte range of one stored turn, on character boundaries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TurnSpan {
    /// The turn.
    pub turn: TurnId,
    /// Position of the turn in its session.
    pub turn_index: u32,
    /// Who spoke.
    pub role: Role,
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

/// A sentence vector as the leader made it: stored and copied, never computed with in apply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vector {
    /// Name and hash of the model; vectors of two models are never compared.
    pub model: String,
    /// The 32 bits of the scale: component i is `components[i] * scale`.
    pub scale_bits: u32,
    /// One signed byte a dimension.
    pub components: Vec<i8>,
}

/// The vector of an item when it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VectorDraft {
    /// Made before the proposal.
    Ready(Vector),
    /// The encoder was behind: text first, the vector follows in an `AttachVectors` command.
    Pending,
    /// The model has nothing to say about this text (or no model is loaded): words carry it.
    None,
}

/// A tombstone: the id was here and was erased; it is never used again (I-21, I-34).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tombstone {
    /// When.
    pub deleted_at: Millis,
    /// Who.
    pub author: Principal,
    /// Shown to the caller as proof; the same on every repetition.
    pub receipt: String,
    /// Links that went with it.
    pub deleted_links: u32,
    /// Turns it rested on, which stay.
    pub turns_kept: u32,
    /// What is left of the memory itself; None on tombstones of the first releases.
    pub of: Option<Erased>,
}

/// What a tombstone keeps of a memory: where and what sort it was, and a hash that proves which text was erased without
/// telling it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Erased {
    /// Scope of the memory.
    pub scope: Scope,
    /// Its kind.
    pub kind: Kind,
    /// When version 1 was recorded.
    pub recorded_at: Millis,
    /// 128 bits over label and content.
    pub content_hash: [u8; 16],
}
