//! How the rest of the node uses a shard.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use openraft::async_runtime::watch::WatchReceiver;
use openraft::errors::RaftError;
use openraft::impls::ProgressResponder;
use openraft::raft::{
    AppendEntriesRequest, AppendEntriesResponse, SnapshotResponse, TransferLeaderRequest, VoteRequest,
};
use openraft::{Raft, ReadPolicy, ServerState};
use tokio::sync::oneshot;
use tokio::time::timeout as within;
use waggle_memory::meta::ShardId;
use waggle_memory::outcome::Outcome;

use crate::codec::Malformed;
use crate::error::{Fault, Indeterminate, ProposeError, Unavailable};
use crate::machine::{Machine, build_snapshot};
use crate::message::{Message, Reply, SnapshotHead};
use crate::ports::{CallKind, Clock, Frame, SnapshotFiles, StateStore};
use crate::propose::{Admission, HybridClock, Proposal, read_error, stopped, write_error};
use crate::telemetry;
use crate::types::{Command, LogId, Member, ReplicaId, SnapshotMeta, Types};

pub(crate) type Consensus = Raft<Types, Machine>;

/// A replica's part in its shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Receives entries and does not vote.
    Learner,
    /// Follows.
    Follower,
    /// Asks for votes.
    Candidate,
    /// Leads.
    Leader,
    /// Stopped or halted.
    Stopped,
}

/// How a replica stands, as consensus last reported it: a moment behind what callers were answered. For a read that must
/// see a write use [`ShardHandle::linearizable_read`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// The shard.
    pub shard: ShardId,
    /// The replica.
    pub replica: ReplicaId,
    /// Its part.
    pub role: Role,
    /// The leader that it knows.
    pub leader: Option<(ReplicaId, Member)>,
    /// Its term.
    pub term: u64,
    /// Last entry of its log.
    pub last_index: Option<u64>,
    /// Last entry that it knows to be committed.
    pub committed_index: Option<u64>,
    /// Last entry in its tables.
    pub applied_index: Option<u64>,
    /// Last entry in its newest snapshot.
    pub snapshot_index: Option<u64>,
    /// Last entry removed from its log.
    pub purged_index: Option<u64>,
    /// Voters, in a joint configuration those of both.
    pub voters: Vec<ReplicaId>,
    /// A change of the voters is in progress.
    pub is_joint: bool,
    /// Everybody.
    pub members: BTreeMap<ReplicaId, Member>,
    /// Proposals in flight.
    pub proposals_in_flight: usize,
    /// Why it has halted.
    pub halted: Option<String>,
}

/// What became of a proposal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proposed {
    /// Its place in the log: a lower bound for reads of the same session.
    pub log_index: u64,
    /// The deterministic answer, a rejection included.
    pub outcome: Outcome,
}

/// From here on a read sees every write that was acknowledged before the read began (I-11).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadPoint {
    /// The tables have applied at least this.
    pub applied_index: u64,
}

/// The way to one replica. Cheap to clone.
#[derive(Clone)]
pub struct ShardHandle {
    inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) shard: ShardId,
    pub(crate) replica: ReplicaId,
    pub(crate) raft: Consensus,
    pub(crate) state: Arc<dyn StateStore>,
    pub(crate) admission: Arc<Admission>,
    pub(crate) stamps: HybridClock,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) closing: AtomicBool,
}

impl ShardHandle {
    pub(crate) fn new(inner: Inner) -> Self {
        Self { inner: Arc::new(inner) }
    }

    /// The shard.
    pub fn shard(&self) -> ShardId {
        self.inner.shard
    }

    /// The replica.
    pub fn replica(&self) -> ReplicaId {
        self.inner.replica
    }

    /// Whether this replica leads, as far as it knows.
    pub fn leads(&self) -> bool {
        self.inner.raft.is_leader()
    }

    /// Replicates and applies a command. Dropping the call, like its deadline, leaves the outcome unknown.
    pub async fn propose(&self, proposal: Proposal, timeout: Duration) -> Result<Proposed, ProposeError> {
        let started = telemetry::now();
        let result = self.propose_unmeasured(proposal, timeout).await;
        match &result {
            Ok(_) => telemetry::proposed(started),
            Err(error) => telemetry::proposal_failed(error.code()),
        }
        result
    }

    async fn propose_unmeasured(&self, proposal: Proposal, timeout: Duration) -> Result<Proposed, ProposeError> {
        let inner = &self.inner;
        if self.is_closing() {
            return Err(Unavailable::ShuttingDown.into());
        }
        let deadline = tokio::time::Instant::now() + timeout;
        let entry = proposal.stamped(inner.stamps.next(inner.clock.now()));
        // A committed entry that does not decode would halt every replica, so it is tried before.
        let bytes = waggle_proto::log::check_entry(&entry)
            .map(Bytes::from)
            .map_err(|malformed| Unavailable::CommandUnreadable {
                why: malformed.to_string(),
            })?;
        let _permit = inner.admission.admit(bytes.len())?;

        let (responder, answer) = ProgressResponder::complete_only();
        let handed_over = inner.raft.client_write_ff(Command(bytes), Some(responder));
        match tokio::time::timeout_at(deadline, handed_over).await {
            Ok(Ok(())) => {}
            Ok(Err(fatal)) => return Err(stopped(&fatal).into()),
            // Still waiting for room in openraft's queue, and a message that has no room is not in it.
            Err(_) => return Err(Unavailable::Overloaded { retry_after: timeout }.into()),
        }
        match tokio::time::timeout_at(deadline, answer).await {
            Ok(Ok(Ok(written))) => Ok(Proposed {
                log_index: written.log_id.index,
                outcome: written.data.0,
            }),
            Ok(Ok(Err(error))) => Err(write_error(error)),
            Ok(Err(_)) => Err(Indeterminate::ReplicaStopped.into()),
            Err(_) => Err(Indeterminate::DeadlineAfterPropose { after: timeout }.into()),
        }
    }

    /// Waits until the tables hold every write acknowledged before the call, proven by a quorum; openraft lets reads
    /// share a round. Reading the tables afterwards is the caller's.
    pub async fn linearizable_read(&self, timeout: Duration) -> Result<ReadPoint, Unavailable> {
        match within(timeout, self.inner.raft.ensure_linearizable(ReadPolicy::ReadIndex)).await {
            Ok(Ok(read)) => Ok(ReadPoint {
                applied_index: read.index(),
            }),
            Ok(Err(error)) => Err(read_error(error)),
            Err(_) => Err(Unavailable::NoQuorum),
        }
    }

    /// How the replica stands.
    pub fn status(&self) -> Status {
        let metrics = self.inner.raft.metrics().borrow_watched().clone();
        let membership = metrics.membership_config.membership();
        let leader = metrics
            .current_leader
            .map(|replica| (replica, membership.get_node(&replica).cloned().unwrap_or_default()));
        let index = |log_id: Option<LogId>| log_id.map(|log_id| log_id.index);
        let halted = metrics.running_state.as_ref().err().map(ToString::to_string);
        Status {
            shard: self.inner.shard,
            replica: self.inner.replica,
            role: if halted.is_some() {
                Role::Stopped
            } else {
                role(metrics.state)
            },
            leader,
            term: metrics.current_term,
            last_index: metrics.last_log_index,
            committed_index: index(metrics.local_committed),
            applied_index: index(metrics.last_applied),
            snapshot_index: index(metrics.snapshot),
            purged_index: index(metrics.purged),
            voters: membership.voter_ids().collect(),
            is_joint: membership.get_joint_config().len() > 1
                || metrics.membership_config != metrics.committed_membership_config,
            members: membership
                .nodes()
                .map(|(replica, member)| (*replica, member.clone()))
                .collect(),
            proposals_in_flight: self.inner.admission.in_flight(),
            halted,
        }
    }

    /// Asks for a new snapshot and does not wait for it.
    pub async fn trigger_snapshot(&self) -> Result<(), Unavailable> {
        self.inner
            .raft
            .trigger()
            .snapshot()
            .await
            .map_err(|fatal| stopped(&fatal))
    }

    /// Writes the applied state to a directory of the caller's, for backup and tests. Apply goes on meanwhile.
    pub async fn snapshot_to(&self, directory: &Path) -> Result<(SnapshotMeta, SnapshotFiles), Fault> {
        let (state, directory) = (Arc::clone(&self.inner.state), directory.to_owned());
        let (taken, _) = oneshot::channel();
        tokio::task::spawn_blocking(move || build_snapshot(&*state, Some(&directory), taken))
            .await
            .map_err(|error| Fault::new("shard_worker_gone", format!("write a snapshot: {error}")))?
    }

    /// Answers a frame of another replica (all kinds but snapshots). Frames of one sender must be handed over in their
    /// order, but need not wait for each other's answers.
    pub async fn answer(&self, frame: Frame) -> Result<Bytes, Malformed> {
        let raft = &self.inner.raft;
        Ok(match frame.kind {
            CallKind::Append => {
                let request = AppendEntriesRequest::from_bytes(&frame.body)?;
                let answer: Result<AppendEntriesResponse<Types>, _> = raft.append_entries(request).await;
                reply(answer)
            }
            CallKind::Vote => reply(raft.vote(VoteRequest::from_bytes(&frame.body)?).await),
            CallKind::PreVote => reply(raft.pre_vote(VoteRequest::from_bytes(&frame.body)?).await),
            CallKind::TransferLeader => {
                let request = TransferLeaderRequest::from_bytes(&frame.body)?;
                Reply(raft.handle_transfer_leader(request).await.map_err(|e| e.to_string())).to_bytes()
            }
            CallKind::Snapshot => return Err(Malformed::Shape("a snapshot without files")),
        })
    }

    /// Installs a snapshot that has arrived completely; its hashes are checked again.
    pub async fn answer_snapshot(&self, frame: Frame, files: SnapshotFiles) -> Result<Bytes, Malformed> {
        let SnapshotHead { vote, meta } = SnapshotHead::from_bytes(&frame.body)?;
        let snapshot = openraft::type_config::alias::SnapshotOf::<Types, SnapshotFiles> { meta, snapshot: files };
        let answer: Result<SnapshotResponse<Types>, RaftError<Types>> = self
            .inner
            .raft
            .install_full_snapshot(vote, snapshot)
            .await
            .map_err(Into::into);
        Ok(reply(answer))
    }

    pub(crate) fn raft(&self) -> &Consensus {
        &self.inner.raft
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.inner.closing.load(Ordering::Relaxed)
    }

    /// New proposals are refused from now on.
    pub(crate) fn close(&self) {
        self.inner.closing.store(true, Ordering::Relaxed);
    }
}

fn reply<T: Message, E: std::fmt::Display>(answer: Result<T, E>) -> Bytes {
    Reply(answer.map_err(|error| error.to_string())).to_bytes()
}

const fn role(state: ServerState) -> Role {
    match state {
        ServerState::Learner => Role::Learner,
        ServerState::Follower => Role::Follower,
        ServerState::Candidate => Role::Candidate,
        ServerState::Leader => Role::Leader,
        ServerState::Shutdown => Role::Stopped,
    }
}
