//! The state as rows: the port between the domain and whatever keeps it. Production keeps rows in RocksDB
//! (`waggle-store`), tests in [`model::Model`]. The order of [`Key`] is the order of the store's bytes (a test of the
//! store asserts it), so both answer scans alike.
//!
//! A fault of the storage is not an outcome: the implementation remembers the first one, answers as if the row were
//! absent, and its owner throws the whole batch away.

pub mod model;
pub mod overlay;
pub mod typed;

use crate::change::Change;
use crate::handoff::Message;
use crate::id::{LinkId, MemoryId, MessageId, RequestId, TenantId, TurnId};
use crate::kind::Relationship;
use crate::link::Link;
use crate::memory::{Evidence, Memory, Tombstone, Vector, Version};
use crate::meta::{ApiKey, JoinToken, KeyId, Placement, Tenant};
use crate::outcome::Outcome;
use crate::statement::Fingerprint;
use crate::time::{Millis, Stamp};
use crate::transcript::{Agent, Project, Session, TenantState, Turn};

/// Something that recall finds: a memory or a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Item {
    /// A memory.
    Memory(MemoryId),
    /// A turn.
    Turn(TurnId),
}

/// What a fingerprint row was made from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Form {
    /// The exact form.
    Exact = 1,
    /// The canonical form.
    Canonical = 2,
    /// The label.
    Label = 3,
    /// A slot that the memory makes a claim for.
    Slot = 4,
    /// A more general form of the memory's statement.
    General = 5,
    /// The canonical form with a spelled-out name replaced by its initials.
    Acronym = 6,
}

impl Form {
    /// The number of the persisted format.
    pub const fn number(self) -> u8 {
        self as u8
    }

    /// Reads the number of the persisted format.
    pub const fn from_number(number: u8) -> Option<Self> {
        Some(match number {
            1 => Self::Exact,
            2 => Self::Canonical,
            3 => Self::Label,
            4 => Self::Slot,
            5 => Self::General,
            6 => Self::Acronym,
            _ => return None,
        })
    }
}

/// Address of a row inside one shard.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    /// Rows of the shard as a whole.
    Shard(ShardKey),
    /// Rows of one tenant.
    Tenant(TenantId, TenantKey),
}

/// Rows of a shard as a whole. The declared order is the order of the key kinds' numbers.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ShardKey {
    /// The last applied stamp.
    LastStamp,
    /// Request ids by age, to forget the oldest first.
    RequestAge(Millis, TenantId, RequestId),
    /// Meta: slots, shards, nodes.
    Placement,
    /// Meta: a tenant.
    TenantInfo(TenantId),
    /// Meta: an API key.
    ApiKey(KeyId),
    /// Meta: the keys of a tenant.
    KeyOfTenant(TenantId, KeyId),
    /// Meta: a token for a node to join with.
    JoinToken(KeyId),
}

/// Rows of one tenant. The declared order is the order of the key kinds' numbers.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TenantKey {
    /// Counters of the whole tenant.
    State,
    /// Current version of a memory.
    Memory(MemoryId),
    /// An earlier version.
    Version(MemoryId, u32),
    /// Evidence by number, from 1.
    Evidence(MemoryId, u32),
    /// A link.
    Link(LinkId),
    /// The link of a triple, from its source.
    LinkFrom(MemoryId, Relationship, MemoryId),
    /// The link of a triple, from its target.
    LinkTo(MemoryId, Relationship, MemoryId),
    /// A turn.
    Turn(TurnId),
    /// Turns of a session in order: project key, session, index.
    TurnAt(String, String, u32),
    /// A session: project key, session.
    Session(String, String),
    /// A project by its key.
    Project(String),
    /// An agent by its key.
    Agent(String),
    /// Memories by fingerprint: project key, form, fingerprint, memory.
    Fingerprint(String, Form, Fingerprint, MemoryId),
    /// The vector of an item.
    Vector(Item),
    /// Items whose vector is to come.
    AwaitsVector(Item),
    /// An erased memory.
    Tombstone(MemoryId),
    /// The outcome of a request id.
    Request(RequestId),
    /// The feed of changes, by number from 1.
    Change(u64),
    /// Conflicts, open ones (false) and settled ones (true), in the order of their making.
    Conflict(bool, LinkId),
    /// A memory that was merged into another one by hand.
    Redirect(MemoryId),
    /// The turn of a message: project key, session, identity.
    Message(String, String, MessageId),
    /// What is kept of the message that a turn was made from.
    MessageOf(TurnId),
}

/// A row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Row {
    /// ShardKey::LastStamp.
    Stamp(Stamp),
    /// Placement.
    Placement(Placement),
    /// Tenant of the meta shard.
    TenantInfo(Tenant),
    /// Key of the meta shard.
    ApiKey(ApiKey),
    /// Join token of the meta shard.
    JoinToken(JoinToken),
    /// Counters.
    State(TenantState),
    /// A memory.
    Memory(Box<Memory>),
    /// A version.
    Version(Box<Version>),
    /// Evidence.
    Evidence(Box<Evidence>),
    /// A link.
    Link(Box<Link>),
    /// Where an index row points to.
    LinkId(LinkId),
    /// A turn.
    Turn(Box<Turn>),
    /// Where an index row points to.
    TurnId(TurnId),
    /// A session.
    Session(Session),
    /// A project.
    Project(Project),
    /// An agent.
    Agent(Agent),
    /// A vector.
    Vector(Vector),
    /// A tombstone.
    Tombstone(Tombstone),
    /// The outcome of a request.
    Request(RequestRow),
    /// A change.
    Change(Box<Change>),
    /// Where a merged memory went.
    Redirect(MemoryId),
    /// A message of a transcript.
    Message(Message),
    /// An index row that says everything by its key.
    Mark,
}

/// What is kept of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestRow {
    /// Fingerprint of the arguments.
    pub arguments: u64,
    /// When it was applied.
    pub at: Millis,
    /// Its answer.
    pub outcome: Outcome,
}

/// Reading rows. A scan is inclusive at both ends and gives at most `limit` rows in key order.
pub trait ReadTables {
    /// The row of a key.
    fn get(&self, key: &Key) -> Option<Row>;
    /// Rows from `from` to `to`.
    fn scan(&self, from: &Key, to: &Key, limit: usize) -> Vec<(Key, Row)>;
    /// Rows from `to` down to `from`.
    fn scan_back(&self, from: &Key, to: &Key, limit: usize) -> Vec<(Key, Row)>;
}

/// Reading and writing rows. Writes are seen by later reads of the same transaction.
pub trait Tables: ReadTables {
    /// Writes a row.
    fn put(&mut self, key: Key, row: Row);
    /// Removes a row.
    fn delete(&mut self, key: Key);
}
