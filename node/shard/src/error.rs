//! What can go wrong, in the families of the house style: what was not executed, what is unknown, what ends a replica.
//! A rejected command is no error here: it is an outcome.

use std::time::Duration;

use crate::codec::Malformed;
use crate::types::Member;

/// A broken invariant of one replica: it halts, keeps its files, and an operator acts. Storage faults come through
/// here with their own code.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{detail}")]
pub struct Fault {
    /// The stable code of the error pages.
    pub code: &'static str,
    /// What happened, and what to do next.
    pub detail: String,
}

impl Fault {
    /// A fault with its page.
    pub fn new(code: &'static str, detail: impl Into<String>) -> Self {
        Self {
            code,
            detail: detail.into(),
        }
    }

    pub(crate) fn undecodable(index: u64, why: &dyn std::fmt::Display) -> Self {
        Self::new(
            "shard_entry_unknown",
            format!(
                "apply entry {index}: this version cannot read the command ({why}); start the version that wrote it, or a later one"
            ),
        )
    }

    pub(crate) fn panicked(index: u64) -> Self {
        Self::new(
            "shard_apply_panicked",
            format!("apply entry {index}: a rule of the domain panicked; keep the files and report this as a bug"),
        )
    }

    pub(crate) fn worker_gone(name: &'static str) -> Self {
        Self::new(
            "shard_worker_gone",
            format!("the thread {name} has ended, or its job panicked; keep the files and report this as a bug"),
        )
    }

    /// A kept value of consensus that cannot be read.
    pub fn malformed(what: impl std::fmt::Display, why: Malformed) -> Self {
        Self::new(
            "shard_malformed",
            format!("read {what}: {why}; do not use this copy, replace the replica from a healthy one"),
        )
    }
}

impl From<Fault> for std::io::Error {
    /// openraft takes faults of storage as IO errors; the text carries code and advice.
    fn from(fault: Fault) -> Self {
        Self::other(fault)
    }
}

/// Not executed: retry freely, perhaps elsewhere.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unavailable {
    /// Another replica leads.
    #[error("this replica does not lead the shard; ask the leader")]
    NotLeader {
        /// Where the leader is.
        hint: Member,
    },
    /// Nobody is known to lead, or the leader has lost its quorum.
    #[error("the shard has no leader with a quorum at the moment; retry after a second")]
    NoQuorum,
    /// Too much is in flight.
    #[error("the shard has as many proposals in flight as it admits; retry after {} ms", retry_after.as_millis())]
    Overloaded {
        /// When to try again.
        retry_after: Duration,
    },
    /// The command is larger than a log entry may be.
    #[error("the command has {bytes} bytes, at most {bytes_max} are allowed; split it")]
    CommandTooLarge {
        /// Its size.
        bytes: usize,
        /// The limit.
        bytes_max: usize,
    },
    /// The command would not decode again.
    #[error("the command cannot be replicated ({why}); make it smaller, or report this as a bug")]
    CommandUnreadable {
        /// What is wrong.
        why: String,
    },
    /// The process is about to end.
    #[error("this node is shutting down; ask another one")]
    ShuttingDown,
    /// This replica has halted.
    #[error("this replica has halted ({why}); ask another one, and look at the log of this node")]
    Halted {
        /// The fault.
        why: String,
    },
}

impl Unavailable {
    /// The stable code of the error pages, and the `reason` of `waggle_raft_proposals_failed_total`.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::NotLeader { .. } => "not_leader",
            Self::NoQuorum => "no_quorum",
            Self::Overloaded { .. } => "overloaded",
            Self::CommandTooLarge { .. } => "command_too_large",
            Self::CommandUnreadable { .. } => "command_unreadable",
            Self::ShuttingDown => "shutting_down",
            Self::Halted { .. } => "replica_halted",
        }
    }
}

/// Unknown: retry with the same request id.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Indeterminate {
    /// The deadline passed after the proposal was handed to consensus.
    #[error("no answer within {} ms; the write may still happen; retry with the same request id", after.as_millis())]
    DeadlineAfterPropose {
        /// The deadline.
        after: Duration,
    },
    /// Another leader took over while the entry was in flight.
    #[error("the leader changed while the write was in flight; retry with the same request id")]
    LeadershipLost,
    /// The replica stopped or halted while the entry was in flight.
    #[error("the replica stopped while the write was in flight; retry with the same request id")]
    ReplicaStopped,
}

impl Indeterminate {
    /// The stable code of the error pages, and the `reason` of `waggle_raft_proposals_failed_total`.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::DeadlineAfterPropose { .. } => "deadline_after_propose",
            Self::LeadershipLost => "leadership_lost",
            Self::ReplicaStopped => "replica_stopped",
        }
    }
}

/// Why a proposal has no outcome.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProposeError {
    /// Not executed.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
    /// Unknown.
    #[error(transparent)]
    Indeterminate(#[from] Indeterminate),
}

impl ProposeError {
    /// The stable code.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Unavailable(e) => e.code(),
            Self::Indeterminate(e) => e.code(),
        }
    }
}

/// Why the shards of a node did not start.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StartError {
    /// The settings contradict each other.
    #[error("the Raft settings are impossible: {0}")]
    Settings(String),
    /// The log or state of a shard is damaged, or cannot be read.
    #[error("open {shard}: {fault}")]
    Storage {
        /// Which shard.
        shard: String,
        /// What is wrong.
        fault: Fault,
    },
    /// The shard has no data here, although it is not new.
    #[error(
        "{shard} has no data on this node, but it is not new; a replica that lost its data must not return under its old id: remove it from the shard and add a new one"
    )]
    ReplicaMissing {
        /// Which shard.
        shard: String,
    },
    /// The state under this replica id belongs to a membership without it.
    #[error("replica {replica} is not a member of {shard}; check which node's data this directory holds")]
    NotAMember {
        /// Which shard.
        shard: String,
        /// Who we are.
        replica: u64,
    },
    /// A thread could not be started.
    #[error("start a thread: {0}")]
    Thread(String),
    /// openraft did not start.
    #[error("start consensus of {shard}: {why}")]
    Consensus {
        /// Which shard.
        shard: String,
        /// In openraft's words.
        why: String,
    },
    /// No leader within the deadline.
    #[error("{shard} has no leader after {} ms", after.as_millis())]
    NotReady {
        /// Which shard.
        shard: String,
        /// The deadline.
        after: Duration,
    },
}

/// Shutdown took longer than allowed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("these shards did not stop within the deadline: {}", held_up_by.join(", "))]
pub struct ShutdownTimeout {
    /// Who held it up.
    pub held_up_by: Vec<String>,
}
