//! Who is in a shard and who leads it. Changes are made by the leader only, one at a time, and by joint consensus: each
//! is finished or left in a state from which the next leader goes on with the same call.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use openraft::async_runtime::watch::WatchReceiver;
use openraft::{ChangeMembers, Instant as _, ServerState};
use tokio::time::{Instant, timeout, timeout_at};

use crate::error::{ProposeError, Unavailable};
use crate::handle::ShardHandle;
use crate::propose::{stopped, write_error};
use crate::types::{Member, ReplicaId};

/// How often a leader asks again for the transfer of its office. The first request can come before the other side has
/// the last entry, and then nothing happens.
const TRANSFER_AGAIN: Duration = Duration::from_millis(50);

/// What the leader knows of another member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Follower {
    /// The last entry that it is known to have.
    pub matched: Option<u64>,
    /// Since it last acknowledged anything; None if it never did.
    pub heard_ago: Option<Duration>,
}

impl ShardHandle {
    /// Begins to send the log to a replica that does not vote. One that is a member already is a success.
    pub async fn add_learner(&self, replica: ReplicaId, member: Member, within: Duration) -> Result<(), ProposeError> {
        // `AddNodes` never replaces a member; `SetNodes` could split the shard.
        let change = ChangeMembers::AddNodes(BTreeMap::from([(replica, member)]));
        self.change(change, true, within).await
    }

    /// Makes these members the voters. Former voters stay as learners.
    pub async fn set_voters(&self, voters: BTreeSet<ReplicaId>, within: Duration) -> Result<(), ProposeError> {
        self.change(ChangeMembers::ReplaceAllVoters(voters), true, within).await
    }

    /// Forgets learners.
    pub async fn remove_learners(&self, replicas: BTreeSet<ReplicaId>, within: Duration) -> Result<(), ProposeError> {
        self.change(ChangeMembers::RemoveNodes(replicas), false, within).await
    }

    async fn change(
        &self,
        change: ChangeMembers<ReplicaId, Member>,
        retain: bool,
        within: Duration,
    ) -> Result<(), ProposeError> {
        match timeout(within, self.raft().change_membership(change, retain)).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(openraft::errors::RaftError::APIError(error))) => Err(write_error(error)),
            Ok(Err(openraft::errors::RaftError::Fatal(fatal))) => Err(stopped(&fatal).into()),
            Err(_) => Err(crate::error::Indeterminate::DeadlineAfterPropose { after: within }.into()),
        }
    }

    /// How far each other member is; empty unless this replica leads.
    pub fn followers(&self) -> BTreeMap<ReplicaId, Follower> {
        let metrics = self.raft().metrics().borrow_watched().clone();
        let heard = metrics.heartbeat.unwrap_or_default();
        let replication = metrics.replication.unwrap_or_default();
        replication
            .into_iter()
            .filter(|(replica, _)| *replica != metrics.id)
            .map(|(replica, matched)| {
                let heard = heard.get(&replica).copied().flatten();
                let follower = Follower {
                    matched: matched.map(|log_id| log_id.index),
                    heard_ago: heard.map(|at| at.into_inner().elapsed()),
                };
                (replica, follower)
            })
            .collect()
    }

    /// Hands the office to another voter and waits until it leads. Gives the new leader and how long nobody led, as seen
    /// from here.
    pub async fn transfer_leader(&self, to: ReplicaId, within: Duration) -> Result<Duration, Unavailable> {
        let started = Instant::now();
        let deadline = started + within;
        let mut metrics = self.raft().metrics();
        if metrics.borrow_watched().state != ServerState::Leader {
            return Err(Unavailable::NotLeader {
                hint: self.leader_hint(),
            });
        }
        loop {
            self.raft()
                .trigger()
                .transfer_leader(to)
                .await
                .map_err(|fatal| stopped(&fatal))?;
            let again = (Instant::now() + TRANSFER_AGAIN).min(deadline);
            loop {
                let leader = metrics.borrow_watched().current_leader;
                if leader.is_some_and(|leader| leader != self.status().replica) {
                    return Ok(started.elapsed());
                }
                match timeout_at(again, metrics.changed()).await {
                    Ok(Ok(())) => {}
                    Ok(Err(_)) => return Err(Unavailable::ShuttingDown),
                    Err(_) => break,
                }
            }
            if Instant::now() >= deadline {
                return Err(Unavailable::NoQuorum);
            }
        }
    }

    fn leader_hint(&self) -> Member {
        self.status().leader.map(|(_, member)| member).unwrap_or_default()
    }
}
