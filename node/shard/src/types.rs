//! openraft's types, fixed once. Nothing else in the project is generic over a Raft configuration.
//!
//! openraft never sees domain types: a command is its encoded bytes, so the log, the network and the state machine
//! share one representation, and a replica that cannot decode an entry still keeps and forwards it.

use std::fmt;

use bytes::Bytes;
use openraft::impls::leader_id_adv;
use serde::de::{Deserialize, Deserializer};
use serde::ser::{Error as _, Serialize, Serializer};
use waggle_memory::meta::NodeId;
use waggle_memory::outcome::Outcome;

/// A replica's id inside its shard: openraft's node id. Allocated once and never reused, not even after removal and
/// wipe (an old single-member configuration would make a second leader).
pub type ReplicaId = u64;

openraft::declare_raft_types!(
    /// The one Raft configuration.
    pub Types:
        D = Command,
        R = Answer,
        NodeId = ReplicaId,
        Node = Member,
);

/// Term and replica of a leader.
pub type LeaderId = leader_id_adv::LeaderId<u64, ReplicaId>;
/// Position in a shard's log, with the leader that put the entry there.
pub type LogId = openraft::type_config::alias::LogIdOf<Types>;
/// Whom a replica voted for, and whether a quorum did.
pub type Vote = openraft::type_config::alias::VoteOf<Types>;
/// One entry of a shard's log.
pub type LogEntry = openraft::type_config::alias::EntryOf<Types>;
/// What an entry carries.
pub type Payload = openraft::type_config::alias::PayloadOf<Types>;
/// Voters and learners.
pub type Membership = openraft::Membership<ReplicaId, Member>;
/// Voters and learners, and the entry that made them so.
pub type StoredMembership = openraft::type_config::alias::StoredMembershipOf<Types>;
/// What a snapshot holds.
pub type SnapshotMeta = openraft::type_config::alias::SnapshotMetaOf<Types>;
/// The completion of an append.
pub type Flushed = openraft::storage::IOFlushed<Types>;

/// An encoded `waggle_memory::command::Entry`.
#[derive(Clone, PartialEq, Eq)]
pub struct Command(pub Bytes);

impl fmt::Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Never the content: openraft logs what it handles.
        write!(f, "command of {} bytes", self.0.len())
    }
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// What applying an entry answers. Entries without a command answer [`Outcome::Done`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer(pub Outcome);

/// Where a replica lives: openraft's node data.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Member {
    /// The node that holds it; [`NodeId`]'s number, 0 only in openraft's own storage tests.
    pub node: u64,
    /// The node's internal address when it joined. The current one is looked up by node id (an address never changes
    /// by a membership entry).
    pub address: String,
}

impl Member {
    /// A replica on `node`.
    pub fn new(node: NodeId, address: impl Into<String>) -> Self {
        Self {
            node: node.0,
            address: address.into(),
        }
    }

    /// The node that holds it.
    pub const fn node(&self) -> NodeId {
        NodeId(self.node)
    }
}

// The workspace builds openraft with its `serde` feature, which demands these of data and answers. Nothing of ours
// goes through serde (codec.rs and message.rs define the bytes), so an attempt is an error instead of a second format.
macro_rules! not_through_serde {
    ($($name:ident),*) => {$(
        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
                Err(S::Error::custom(concat!(stringify!($name), " has no serde form")))
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(_: D) -> Result<Self, D::Error> {
                Err(serde::de::Error::custom(concat!(stringify!($name), " has no serde form")))
            }
        }
    )*};
}
not_through_serde!(Command, Answer);
