//! Turns, sessions and the counters of projects and tenants.

use crate::id::{MemoryId, PairId, Principal, TurnId};
use crate::kind::Role;
use crate::scope::Scope;
use crate::time::Millis;

/// One utterance, verbatim after redaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Turn {
    /// Its identity (`transcript_id`).
    pub id: TurnId,
    /// The call that brought it, together with its counterpart.
    pub pair: PairId,
    /// Where it was said.
    pub scope: Scope,
    /// Who spoke.
    pub role: Role,
    /// Dense position in the session, as given out (I-26).
    pub turn_index: u32,
    /// The text.
    pub text: String,
    /// When it was said, as the client claims.
    pub observed_at: Millis,
    /// When it was stored.
    pub recorded_at: Millis,
    /// Who stored it, from the credential.
    pub author: Principal,
    /// Memories that rest on it, in the order in which they were extracted.
    pub memories: Vec<MemoryId>,
}

impl Turn {
    /// Most memories noted at one turn.
    pub const MEMORIES_MAX: usize = 256;
}

/// A (project, session) pair with what was ever said in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Session {
    /// As first written.
    pub project: String,
    /// As given.
    pub session_id: String,
    /// Agents that spoke in it, as first written, at most [`Session::AGENTS_MAX`].
    pub agents: Vec<String>,
    /// First words of the session.
    pub title: String,
    /// When.
    pub first_used_at: Millis,
    /// When.
    pub last_used_at: Millis,
    /// Also the next turn index.
    pub turn_count: u32,
    /// Memories first recorded here.
    pub memory_count: u32,
}

impl Session {
    /// Most agents noted at one session.
    pub const AGENTS_MAX: usize = 64;
    /// Longest title in bytes.
    pub const TITLE_BYTES_MAX: usize = 256;
}

/// Counters of a project; the tenant-wide scope has the empty name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Project {
    /// As first written.
    pub name: String,
    /// Where its memories go.
    pub namespace: String,
    /// When.
    pub first_used_at: Millis,
    /// When.
    pub last_used_at: Millis,
    /// What it holds.
    pub counters: Counters,
}

/// An agent label of a tenant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Agent {
    /// As first written.
    pub name: String,
    /// When.
    pub last_used_at: Millis,
    /// Memories first recorded by it.
    pub memory_count: u32,
    /// Turns by it.
    pub turn_count: u32,
}

/// What a tenant or project holds, kept by apply so that statistics cost the same at any size.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Memories by kind, index = [`crate::kind::Kind::number`].
    pub memories_by_kind: [u64; 8],
    /// Memories whose validity was ended; those with a future end count as soon as the end is written.
    pub memories_closed: u64,
    /// Links by relationship (index = number) and confidence (index = number).
    pub links: [[u64; 4]; 9],
    /// Conflicts that nobody has settled.
    pub open_conflicts: u64,
    /// Sessions.
    pub sessions: u64,
    /// Turns.
    pub turns: u64,
    /// Bytes of text: labels, contents, aliases, turns.
    pub text_bytes: u64,
}

impl Counters {
    /// Memories of every kind.
    pub fn memories(&self) -> u64 {
        self.memories_by_kind.iter().sum()
    }

    /// Links of every kind.
    pub fn links_total(&self) -> u64 {
        self.links.iter().flatten().sum()
    }
}

/// What apply keeps of a tenant as a whole.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TenantState {
    /// What it holds.
    pub counters: Counters,
    /// Items whose vector is still to come.
    pub awaiting_vectors: u64,
    /// The best connected memories with their link counts, most links first, at most [`TenantState::CONNECTED_MAX`].
    /// Kept on the way, so a memory that lost links may stand in for one that never entered.
    pub most_connected: Vec<(MemoryId, u32)>,
    /// Number of the newest change in the feed; 0 before the first.
    pub changes: u64,
}

impl TenantState {
    /// Most entries of `most_connected`.
    pub const CONNECTED_MAX: usize = 10;
}
