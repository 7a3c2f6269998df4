//! Hand-off: a whole transcript at once. Every message is stored as a turn exactly once, and what its logical turns (a
//! user block and the assistant block that answers it) say is extracted exactly once, however often and in however many
//! parts the transcript is sent.
//!
//! This module decides which messages form logical turns ([`windows`]), what makes a message the same one
//! ([`identity_of`]), and where a place in joined blocks really is ([`Joined`]). It stores nothing: the commands are
//! applied in `apply::handoff`, and whoever plans a hand-off is on the leader.

mod joined;
mod windows;

use crate::id::{MessageId, PairId, TenantId, TurnId};
use crate::kind::Role;
use crate::scope::Scope;
use crate::statement::Fingerprint;
use crate::time::Millis;

use crate::command::{NewTurn, Remember};

pub use joined::{BLOCK_GAP, Joined};
pub use windows::{Boundary, LogicalTurn, Windows, windows};

/// Most messages of one hand-off.
pub const MESSAGES_MAX: usize = 100_000;
/// Longest message in bytes.
pub const MESSAGE_BYTES_MAX: usize = 1024 * 1024;
/// Longest client's id of a message in bytes.
pub const MESSAGE_ID_BYTES_MAX: usize = 256;

/// What names a message inside its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Named<'a> {
    /// The client's own id.
    ById(&'a str),
    /// Where it stands and when it was said: a message without an id is another one as soon as either differs.
    ByPlace {
        /// Position in the transcript.
        position: u64,
        /// When it was said, if the client says so.
        timestamp: Option<Millis>,
    },
}

/// The identity of a message inside its session.
pub fn identity_of(named: Named<'_>, role: Role, text: &str) -> MessageId {
    let mut hasher = xxhash_rust::xxh3::Xxh3::new();
    match named {
        Named::ById(id) => {
            hasher.update(b"id\0");
            hasher.update(id.as_bytes());
        }
        Named::ByPlace { position, timestamp } => {
            hasher.update(b"place\0");
            hasher.update(&[role.number()]);
            hasher.update(&position.to_be_bytes());
            match timestamp {
                Some(at) => {
                    hasher.update(&[1]);
                    hasher.update(&at.0.to_be_bytes());
                }
                None => hasher.update(&[0]),
            }
            hasher.update(text.as_bytes());
        }
    }
    MessageId::from_bytes(hasher.digest128().to_be_bytes())
}

/// What a message says, for telling a repetition from another message under the same id.
pub fn content_of(role: Role, text: &str) -> Fingerprint {
    Fingerprint::of(role.word(), text)
}

/// Messages to store as turns, each unless it is stored already.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreMessages {
    /// Whose.
    pub tenant: TenantId,
    /// Where.
    pub scope: Scope,
    /// Namespace for a project that is used for the first time.
    pub namespace: String,
    /// In order.
    pub messages: Vec<NewMessage>,
}

/// One message of a transcript.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewMessage {
    /// Its identity inside the session.
    pub identity: MessageId,
    /// [`content_of`] it: apply compares, and knows no hash function of its own.
    pub content: Fingerprint,
    /// Joins the messages of one logical turn.
    pub pair: PairId,
    /// The turn that it becomes.
    pub turn: NewTurn,
}

/// What was extracted from stored messages. Nothing happens when one of them was extracted from before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RememberMessages {
    /// The turns that the spans of `remember` point into, by position. Afterwards they count as extracted.
    pub turns: Vec<TurnId>,
    /// Memories and links; its own list of turns is empty.
    pub remember: Remember,
}

/// What is kept of a message beside its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// Its identity inside the session.
    pub identity: MessageId,
    /// What it says.
    pub content: Fingerprint,
    /// Its logical turn was read by the rules, and what they found is stored.
    pub extracted: bool,
}

#[cfg(test)]
mod tests;
