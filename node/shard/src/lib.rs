//! Shards: every shard is a Raft group over a replicated log, and this crate is the only one (with the log module of
//! waggle-store) that names openraft. It proposes, applies, reads and answers other replicas; what commands mean is
//! waggle-memory's, bytes on disk are waggle-store's, the network is waggle-node's. It never opens a file or a socket.
//!
//! Traps of openraft and the reasons of the settings: docs/decisions and `settings.rs`.

mod codec;
mod error;
mod handle;
mod machine;
mod membership;
mod message;
mod network;
#[cfg(feature = "planted-bugs")]
pub mod planted;
mod ports;
mod propose;
mod replica;
mod settings;
mod telemetry;
mod types;
mod worker;

pub use codec::{
    Malformed, Position, decode_log_id, decode_record, decode_vote, encode_log_id, encode_record, encode_vote,
    payload_bytes,
};
pub use error::{Fault, Indeterminate, ProposeError, ShutdownTimeout, StartError, Unavailable};
pub use handle::{Proposed, ReadPoint, Role, ShardHandle, Status};
pub use machine::{Machine, Services};
pub use membership::Follower;
pub use ports::{
    ApplyObserver, CallKind, Clock, Frame, NoObserver, NoRemote, SnapshotFiles, StateStore, Storage, Target,
    Transaction, Wire, WireError,
};
pub use propose::Proposal;
pub use replica::{Config, Origin, Ports, ReplicaConfig, Shards};
pub use settings::Settings;
pub use types::{
    Answer, Command, Flushed, LeaderId, LogEntry, LogId, Member, Membership, Payload, ReplicaId, SnapshotMeta,
    StoredMembership, Types, Vote,
};
