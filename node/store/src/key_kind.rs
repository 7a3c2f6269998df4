//! The registry of column families and key kinds. Append only: a number is never reused, a retired kind keeps its
//! number (I-43), and numbers grow in the order in which the domain declares its keys, because byte order must be the
//! order of `Key` inside a tenant.

use waggle_memory::tables::{Key, ShardKey, TenantKey};
use waggle_proto::log::RowKind;

/// Column families: created when a database is created, never at run time, and few, because each has a write buffer
/// of its own and can pin the shared log. Every key in every family begins with the shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Family {
    /// Raft entries: shard, index.
    RaftLog,
    /// Votes, commit marks, applied states: shard, [`MetaKind`].
    RaftMeta,
    /// Rows that say something by themselves.
    State,
    /// Rows derived from those of `state` in the same transaction.
    Index,
    /// Turns: large, rarely read, compressed.
    Transcript,
    /// Vectors: medium-sized and incompressible.
    Vector,
}

impl Family {
    pub(crate) const ALL: [Self; 6] = [
        Self::RaftLog,
        Self::RaftMeta,
        Self::State,
        Self::Index,
        Self::Transcript,
        Self::Vector,
    ];

    /// RocksDB's number of the family: they were made in the order of [`Self::ALL`], after its own `default`.
    pub(crate) const fn number(self) -> u32 {
        self as u32 + 1
    }

    /// The families of a shard's rows, in the order of snapshots and digests.
    pub(crate) const ROWS: [Self; 4] = [Self::State, Self::Index, Self::Transcript, Self::Vector];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::RaftLog => "raft_log",
            Self::RaftMeta => "raft_meta",
            Self::State => "state",
            Self::Index => "index",
            Self::Transcript => "transcript",
            Self::Vector => "vector",
        }
    }
}

/// Kinds of `raft_meta` keys: shard (4 bytes, big endian), then this number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum MetaKind {
    /// Term and vote; synced.
    Vote = 1,
    /// The last known committed log id; unsynced.
    Committed = 2,
    /// Applied log id and membership: in one batch with the rows that they describe (I-03).
    Applied = 3,
    /// The last purged log id.
    Purged = 4,
    /// A snapshot installation that has begun and must be finished at start.
    SnapshotIntent = 5,
}

impl MetaKind {
    pub(crate) const fn number(self) -> u8 {
        self as u8
    }
}

macro_rules! key_kinds {
    ($($(#[$doc:meta])* $name:ident = $number:literal in $family:ident holds $row:ident;)*) => {
        /// Kinds of row keys.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub(crate) enum KeyKind { $($(#[$doc])* $name = $number),* }

        impl KeyKind {
            pub(crate) const ALL: &'static [Self] = &[$(Self::$name),*];

            pub(crate) const fn number(self) -> u8 {
                self as u8
            }

            pub(crate) const fn from_number(number: u8) -> Option<Self> {
                match number { $($number => Some(Self::$name),)* _ => None }
            }

            /// Where rows of this kind live.
            pub(crate) const fn family(self) -> Family {
                match self { $(Self::$name => Family::$family),* }
            }

            /// What a row of this kind holds.
            pub(crate) const fn row(self) -> RowKind {
                match self { $(Self::$name => RowKind::$row),* }
            }
        }
    };
}

key_kinds! {
    // Rows of a shard as a whole.
    LastStamp = 1 in State holds Stamp;
    RequestAge = 2 in Index holds Mark;
    Placement = 3 in State holds Placement;
    TenantInfo = 4 in State holds TenantInfo;
    ApiKey = 5 in State holds ApiKey;
    KeyOfTenant = 6 in Index holds Mark;
    JoinToken = 7 in State holds JoinToken;

    // Rows of one tenant.
    State = 32 in State holds State;
    Memory = 33 in State holds Memory;
    Version = 34 in State holds Version;
    Evidence = 35 in State holds Evidence;
    Link = 36 in State holds Link;
    LinkFrom = 37 in Index holds LinkId;
    LinkTo = 38 in Index holds LinkId;
    Turn = 39 in Transcript holds Turn;
    TurnAt = 40 in Index holds TurnId;
    Session = 41 in State holds Session;
    Project = 42 in State holds Project;
    Agent = 43 in State holds Agent;
    Fingerprint = 44 in Index holds Mark;
    Vector = 45 in Vector holds Vector;
    AwaitsVector = 46 in Index holds Mark;
    Tombstone = 47 in State holds Tombstone;
    Request = 48 in State holds Request;
    Change = 49 in State holds Change;
    Conflict = 50 in Index holds Mark;
    Redirect = 51 in State holds Redirect;
    Message = 61 in Index holds TurnId;
    MessageOf = 62 in State holds Message;
}

impl KeyKind {
    pub(crate) const fn of(key: &Key) -> Self {
        match key {
            Key::Shard(ShardKey::LastStamp) => Self::LastStamp,
            Key::Shard(ShardKey::RequestAge(..)) => Self::RequestAge,
            Key::Shard(ShardKey::Placement) => Self::Placement,
            Key::Shard(ShardKey::TenantInfo(_)) => Self::TenantInfo,
            Key::Shard(ShardKey::ApiKey(_)) => Self::ApiKey,
            Key::Shard(ShardKey::KeyOfTenant(..)) => Self::KeyOfTenant,
            Key::Shard(ShardKey::JoinToken(_)) => Self::JoinToken,
            Key::Tenant(_, TenantKey::State) => Self::State,
            Key::Tenant(_, TenantKey::Memory(_)) => Self::Memory,
            Key::Tenant(_, TenantKey::Version(..)) => Self::Version,
            Key::Tenant(_, TenantKey::Evidence(..)) => Self::Evidence,
            Key::Tenant(_, TenantKey::Link(_)) => Self::Link,
            Key::Tenant(_, TenantKey::LinkFrom(..)) => Self::LinkFrom,
            Key::Tenant(_, TenantKey::LinkTo(..)) => Self::LinkTo,
            Key::Tenant(_, TenantKey::Turn(_)) => Self::Turn,
            Key::Tenant(_, TenantKey::TurnAt(..)) => Self::TurnAt,
            Key::Tenant(_, TenantKey::Session(..)) => Self::Session,
            Key::Tenant(_, TenantKey::Project(_)) => Self::Project,
            Key::Tenant(_, TenantKey::Agent(_)) => Self::Agent,
            Key::Tenant(_, TenantKey::Fingerprint(..)) => Self::Fingerprint,
            Key::Tenant(_, TenantKey::Vector(_)) => Self::Vector,
            Key::Tenant(_, TenantKey::AwaitsVector(_)) => Self::AwaitsVector,
            Key::Tenant(_, TenantKey::Tombstone(_)) => Self::Tombstone,
            Key::Tenant(_, TenantKey::Request(_)) => Self::Request,
            Key::Tenant(_, TenantKey::Change(_)) => Self::Change,
            Key::Tenant(_, TenantKey::Conflict(..)) => Self::Conflict,
            Key::Tenant(_, TenantKey::Redirect(_)) => Self::Redirect,
            Key::Tenant(_, TenantKey::Message(..)) => Self::Message,
            Key::Tenant(_, TenantKey::MessageOf(_)) => Self::MessageOf,
        }
    }
}
