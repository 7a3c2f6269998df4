//! What the leader of a shard does besides leading: it makes the membership what the placement says, reports what it
//! became, and hands its office to the node that should have it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures::stream::{self, StreamExt as _};
use waggle_memory::meta::{NodeId, Placement, ShardId};
use waggle_memory::placement::{self, Leading, Membership, Step};
use waggle_shard::{Follower, Member, Role, ShardHandle, Status};

use crate::engine::Engine;

/// Shards that are looked after at the same time.
const AT_ONCE: usize = 16;
/// Longest time of one step.
const STEP_TIME_MAX: Duration = Duration::from_secs(10);
/// A replica that lacks no more entries than this has the log, for all purposes of voting.
const LAG_MAX: u64 = 256;
/// A follower that acknowledged nothing for this long is not given an office.
const SILENT_MAX: Duration = Duration::from_millis(1_000);
/// Longest time of a handover.
pub(crate) const HAND_OVER_TIME_MAX: Duration = Duration::from_secs(2);

/// Works on every shard that this node leads, and gives what their memberships are now.
pub(crate) async fn tend(engine: &Arc<Engine>, placement: &Arc<Placement>) -> Vec<Membership> {
    stream::iter(engine.shards.handles())
        .map(|handle| tend_one(handle, Arc::clone(placement)))
        .buffer_unordered(AT_ONCE)
        .filter_map(std::future::ready)
        .collect()
        .await
}

async fn tend_one(handle: ShardHandle, placement: Arc<Placement>) -> Option<Membership> {
    let status = handle.status();
    if status.role != Role::Leader {
        return None;
    }
    let followers = handle.followers();
    let caught_up: Vec<u64> = followers
        .iter()
        .filter(|(_, follower)| has_the_log(&status, follower))
        .map(|(replica, _)| *replica)
        .collect();
    let members: Vec<u64> = status.members.keys().copied().collect();
    let leading = Leading {
        leader: status.replica,
        voters: &status.voters,
        members: &members,
        caught_up: &caught_up,
    };
    let shard = status.shard;
    let Some(step) = placement::step(&placement, shard, &leading) else {
        return (!status.is_joint).then_some(Membership {
            shard,
            voters: status.voters,
            members,
        });
    };
    tracing::info!(%shard, ?step, "change the membership");
    let outcome = match step {
        Step::AddLearner(replica) => {
            let address = placement.node(replica.node).map_or("", |node| node.address.as_str());
            let member = Member::new(replica.node, address);
            handle
                .add_learner(replica.id, member, STEP_TIME_MAX)
                .await
                .map_err(|error| error.to_string())
        }
        Step::SetVoters(voters) => {
            let voters: BTreeSet<u64> = voters.into_iter().collect();
            handle
                .set_voters(voters, STEP_TIME_MAX)
                .await
                .map_err(|error| error.to_string())
        }
        Step::HandOver(heirs) => match best_of(&handle, &heirs) {
            Some(heir) => handle
                .transfer_leader(heir, HAND_OVER_TIME_MAX)
                .await
                .map(|_| ())
                .map_err(|error| error.to_string()),
            None => Err("nobody who could lead answers".to_owned()),
        },
        Step::Remove(over) => {
            let over: BTreeSet<u64> = over.into_iter().collect();
            handle
                .remove_learners(over, STEP_TIME_MAX)
                .await
                .map_err(|error| error.to_string())
        }
    };
    if let Err(error) = outcome {
        // The next round looks again, and goes on from whatever was reached.
        tracing::warn!(%shard, error, "the membership could not be changed now");
    }
    None
}

fn has_the_log(status: &Status, follower: &Follower) -> bool {
    let last = status.last_index.unwrap_or(0);
    follower.matched.is_some_and(|matched| matched + LAG_MAX >= last)
}

fn answers(follower: &Follower) -> bool {
    follower.heard_ago.is_some_and(|ago| ago < SILENT_MAX)
}

/// Of these, the replica that answers and has most of the log.
fn best_of(handle: &ShardHandle, among: &[u64]) -> Option<u64> {
    let followers = handle.followers();
    among
        .iter()
        .filter_map(|replica| followers.get(replica).map(|follower| (*replica, *follower)))
        .filter(|(_, follower)| answers(follower))
        .max_by_key(|(_, follower)| follower.matched)
        .map(|(replica, _)| replica)
}

/// Hands the shards to their preferred leaders whose turn it is, at most `most`. Gives those that were handed over.
pub(crate) async fn balance(
    engine: &Arc<Engine>,
    placement: &Placement,
    may_move: impl Fn(ShardId) -> bool,
    most: usize,
) -> Vec<ShardId> {
    let preferred = placement::preferred_leaders(placement);
    let mut moved = Vec::new();
    for handle in engine.shards.handles() {
        let status = handle.status();
        let Some((replica, node)) = preferred.get(&status.shard).copied() else {
            continue;
        };
        let leads_elsewhere = status.role == Role::Leader && replica != status.replica;
        if !leads_elsewhere || status.is_joint || !status.voters.contains(&replica) || !may_move(status.shard) {
            continue;
        }
        let ready = handle
            .followers()
            .get(&replica)
            .is_some_and(|follower| answers(follower) && has_the_log(&status, follower));
        if !ready {
            continue;
        }
        match handle.transfer_leader(replica, HAND_OVER_TIME_MAX).await {
            Ok(took) => tracing::info!(shard = %status.shard, to = %node, ms = took.as_millis(), "handed a shard over"),
            Err(error) => tracing::warn!(shard = %status.shard, to = %node, %error, "a shard was not handed over"),
        }
        moved.push(status.shard);
        if moved.len() >= most {
            break;
        }
    }
    moved
}

/// Hands every shard to somebody else, because this node is about to stop. Gives how many stayed.
pub(crate) async fn hand_over_all(engine: &Arc<Engine>) -> usize {
    let led: Vec<ShardHandle> = engine.shards.handles().into_iter().filter(ShardHandle::leads).collect();
    stream::iter(led)
        .map(|handle| async move {
            let status = handle.status();
            let Some(heir) = best_of(&handle, &status.voters) else {
                return usize::from(status.voters.len() > 1);
            };
            match handle.transfer_leader(heir, HAND_OVER_TIME_MAX).await {
                Ok(_) => 0,
                Err(error) => {
                    tracing::warn!(shard = %status.shard, %error, "a shard was not handed over");
                    1
                }
            }
        })
        .buffer_unordered(AT_ONCE)
        .fold(0, |sum, one| std::future::ready(sum + one))
        .await
}

/// The replica of a shard that a node holds, by the membership.
pub(crate) fn replica_on(status: &Status, node: NodeId) -> Option<u64> {
    status
        .members
        .iter()
        .find(|(_, member)| member.node() == node)
        .map(|(replica, _)| *replica)
}
