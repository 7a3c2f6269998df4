//! What this crate needs from others: log and state (waggle-store), the network between nodes (waggle-node), derived
//! indexes (waggle-node), time. Store lies above shard, so shards run in simulation with model tables and an
//! in-process wire.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use openraft::storage::RaftLogStorage;
use waggle_memory::meta::ShardId;
use waggle_memory::outcome::Effects;
use waggle_memory::tables::Tables;
use waggle_memory::time::Millis;

use crate::codec::Position;
use crate::error::Fault;
use crate::types::{Member, ReplicaId, SnapshotMeta, Types};

/// Opens logs and states of shards. Called on blocking threads.
pub trait Storage: Send + Sync + 'static {
    /// The log of a shard.
    type Log: RaftLogStorage<Types>;

    /// Opens a log and checks all of it: contiguous, every checksum right.
    fn open_log(&self, shard: ShardId) -> Result<Self::Log, Fault>;

    /// Opens a state, and finishes the installation of a snapshot that a crash interrupted.
    fn open_state(&self, shard: ShardId) -> Result<Arc<dyn StateStore>, Fault>;
}

/// The state of one shard on this node. All methods block; none is called on a runtime thread.
pub trait StateStore: Send + Sync + 'static {
    /// What the tables are the result of.
    fn position(&self) -> Result<Position, Fault>;

    /// Begins a transaction. One at a time: the shard's apply, or an installation.
    fn begin(&self) -> Box<dyn Transaction + '_>;

    /// Writes the state of this moment to files. `taken` is called as soon as later writes can no longer change what is
    /// written; apply goes on from there. With a directory the files go there, else they become the current snapshot.
    fn build_snapshot(
        &self,
        into: Option<&Path>,
        taken: Box<dyn FnOnce() + Send + '_>,
    ) -> Result<(SnapshotMeta, SnapshotFiles), Fault>;

    /// Replaces the state by a snapshot, which becomes the current one. Idempotent, and safe against a crash at any
    /// moment: either the old state is untouched, or the next [`Storage::open_state`] finishes the job.
    fn install_snapshot(&self, meta: &SnapshotMeta, files: &SnapshotFiles) -> Result<Position, Fault>;

    /// The newest complete snapshot.
    fn current_snapshot(&self) -> Result<Option<(SnapshotMeta, SnapshotFiles)>, Fault>;
}

/// Writes of one run of entries. Dropped without commit it leaves no trace.
pub trait Transaction: Tables {
    /// Writes rows and position in one batch, after the log batches of the same entries (consensus: WAL order). Not
    /// synced: a crash loses a suffix that the log replays. Fails if any read or write of the transaction did.
    fn commit(self: Box<Self>, position: &Position) -> Result<(), Fault>;
}

/// A snapshot: a directory with a hashed manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotFiles {
    /// Where.
    pub directory: Arc<Path>,
}

/// Told of applied entries after they are committed to the tables and before anybody is answered, so that whoever got
/// an answer finds their write in derived indexes too. Called on the apply thread, in log order per shard, at least
/// once over a crash: after a restart an index compares its own mark with the applied index and catches up from the
/// tables.
pub trait ApplyObserver: Send + Sync + 'static {
    /// `effects` of the entries up to `log_index`, in their order; entries without effects are left out.
    fn applied(&self, shard: ShardId, log_index: u64, effects: &[Effects]);

    /// The whole state of the shard was replaced by a snapshot: derived indexes are to be rebuilt.
    fn replaced(&self, shard: ShardId);
}

/// An observer that looks away.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoObserver;

impl ApplyObserver for NoObserver {
    fn applied(&self, _shard: ShardId, _log_index: u64, _effects: &[Effects]) {}

    fn replaced(&self, _shard: ShardId) {}
}

/// Wall time. Stamps never go back even if this does.
pub trait Clock: Send + Sync + 'static {
    /// Now.
    fn now(&self) -> Millis;
}

/// Another replica of a shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The shard.
    pub shard: ShardId,
    /// Who asks.
    pub from: ReplicaId,
    /// Who is asked.
    pub to: ReplicaId,
    /// Where it is.
    pub member: Member,
}

/// Which of the calls a frame carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallKind {
    /// Append, also as heartbeat.
    Append = 1,
    /// Vote.
    Vote = 2,
    /// Would you vote?
    PreVote = 3,
    /// Take over.
    TransferLeader = 4,
    /// A snapshot, whose files go beside the frame.
    Snapshot = 5,
}

/// A message between replicas of one shard. Only `message.rs` knows what is in the body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Which call.
    pub kind: CallKind,
    /// The encoded message.
    pub body: Bytes,
}

/// Why a frame was not answered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// No connection, and none to be had at once: back off.
    #[error("unreachable: {0}")]
    Unreachable(String),
    /// No answer in time.
    #[error("no answer within {} ms", after.as_millis())]
    Timeout {
        /// How long was waited.
        after: Duration,
    },
    /// The connection broke: try again.
    #[error("connection lost: {0}")]
    Lost(String),
}

/// The network between nodes. Production will carry frames of all shards in one stream per ordered pair of nodes.
pub trait Wire: Send + Sync + 'static {
    /// Sends a frame and waits for its answer. The frame takes its place in the stream *when this is called*, not when
    /// the future is first polled: replication is pipelined and relies on the order per target.
    fn call(&self, target: &Target, frame: Frame, timeout: Duration) -> BoxFuture<'static, Result<Bytes, WireError>>;

    /// Sends the files of a snapshot, resumable by file, then the frame. Dropping the future cancels the transfer.
    fn send_snapshot(
        &self,
        target: &Target,
        frame: Frame,
        files: SnapshotFiles,
        timeout: Duration,
    ) -> BoxFuture<'static, Result<Bytes, WireError>>;
}

/// The wire of a cluster with one node: there is no other replica. The gRPC wire takes its place as soon as shards have
/// more than one.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoRemote;

impl NoRemote {
    fn refuse(target: &Target) -> BoxFuture<'static, Result<Bytes, WireError>> {
        let why = format!(
            "this build serves one node; replica {} of {} is elsewhere",
            target.to, target.shard
        );
        Box::pin(async { Err(WireError::Unreachable(why)) })
    }
}

impl Wire for NoRemote {
    fn call(&self, target: &Target, _frame: Frame, _timeout: Duration) -> BoxFuture<'static, Result<Bytes, WireError>> {
        Self::refuse(target)
    }

    fn send_snapshot(
        &self,
        target: &Target,
        _frame: Frame,
        _files: SnapshotFiles,
        _timeout: Duration,
    ) -> BoxFuture<'static, Result<Bytes, WireError>> {
        Self::refuse(target)
    }
}
