//! How a placement changes: pure decisions of the meta shard's leader and of a shard's leader. Every step is one
//! compare-and-set on the placement's version; whoever leads next goes on from what is stored.
//!
//! A new replica is added as `Joining`, becomes `Voting` when the shard's leader has made it a voter, and the replica that
//! it replaces becomes `Leaving` only then; so a shard never has fewer voters on the way than it had before.

use std::collections::BTreeMap;

use crate::meta::{NodeId, NodeInfo, NodeState, Placement, Replica, ReplicaState, ShardId, ShardPlacement};

/// Why a placement is not accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused(pub String);

/// The next change of a placement, if it is not what it should be: one step of every shard that needs one.
pub fn next(now: &Placement) -> Option<Placement> {
    let mut next = now.clone();
    next.version += 1;
    let mut changed = forget_empty_node(&mut next);
    for shard in &now.shards {
        changed |= improve(&mut next, shard);
    }
    changed.then_some(next)
}

/// Gives a shard the replicas that it lacks, or takes those that it has too many of.
fn improve(next: &mut Placement, shard: &ShardPlacement) -> bool {
    let wanted = wanted_replicas(next);
    let staying: Vec<&Replica> = shard
        .replicas
        .iter()
        .filter(|replica| replica.state != ReplicaState::Leaving && may_hold(next, replica.node))
        .collect();
    if staying.len() < wanted {
        let missing = wanted - staying.len();
        let mut nodes: Vec<NodeId> = staying.iter().map(|replica| replica.node).collect();
        let mut added = false;
        for _ in 0..missing {
            let Some(node) = best_node(next, shard, &nodes) else {
                break;
            };
            nodes.push(node);
            let id = next.next_replica;
            next.next_replica += 1;
            if let Some(place) = next.shards.iter_mut().find(|known| known.shard == shard.shard) {
                place.replicas.push(Replica {
                    id,
                    node,
                    state: ReplicaState::Joining,
                });
                added = true;
            }
        }
        return added;
    }
    // Enough replicas vote elsewhere: those on nodes that give theirs away may go.
    let voting = staying
        .iter()
        .filter(|replica| replica.state == ReplicaState::Voting)
        .count();
    if voting < wanted {
        return false;
    }
    let surplus = shard
        .replicas
        .iter()
        .find(|replica| replica.state != ReplicaState::Leaving && !may_hold(next, replica.node))
        .or_else(|| (staying.len() > wanted).then(|| staying.last().copied()).flatten());
    match surplus.map(|replica| replica.id) {
        Some(id) => set_state(next, shard.shard, id, ReplicaState::Leaving),
        None => false,
    }
}

/// A decommissioned node that holds nothing any more is gone.
fn forget_empty_node(next: &mut Placement) -> bool {
    let empty = next
        .nodes
        .iter()
        .find(|node| node.state == NodeState::Decommissioning && next.replicas_on(node.id).next().is_none())
        .map(|node| node.id);
    match empty {
        Some(id) => set_node_state(next, id, NodeState::Gone),
        None => false,
    }
}

/// As many as the cluster wants and its nodes allow; odd, because an even number of voters costs a copy and survives
/// nothing more.
pub fn wanted_replicas(placement: &Placement) -> usize {
    let nodes = placement.nodes.iter().filter(|node| holds(node)).count();
    let most = usize::try_from(placement.replication).unwrap_or(1).min(nodes).max(1);
    if most.is_multiple_of(2) { most - 1 } else { most }
}

fn holds(node: &NodeInfo) -> bool {
    matches!(node.state, NodeState::Active | NodeState::Draining)
}

fn may_hold(placement: &Placement, node: NodeId) -> bool {
    placement.node(node).is_some_and(holds)
}

/// The best place for one more replica: a zone that has none before one that has, then the node with the fewest
/// replicas, then rendezvous hashing (Thaler and Ravishankar 1998), so that every leader would choose the same.
fn best_node(placement: &Placement, shard: &ShardPlacement, taken: &[NodeId]) -> Option<NodeId> {
    let zones: Vec<&str> = taken
        .iter()
        .filter_map(|node| placement.node(*node))
        .map(|node| node.zone.as_str())
        .collect();
    placement
        .nodes
        .iter()
        .filter(|node| node.state == NodeState::Active)
        .filter(|node| !shard.replicas.iter().any(|replica| replica.node == node.id) && !taken.contains(&node.id))
        .min_by_key(|node| {
            let zone_taken = zones.iter().filter(|zone| **zone == node.zone).count();
            let held = placement.replicas_on(node.id).count();
            (zone_taken, held, std::cmp::Reverse(score(shard.shard, node.id)))
        })
        .map(|node| node.id)
}

fn score(shard: ShardId, node: NodeId) -> u64 {
    xxhash_rust::xxh3::xxh3_64_with_seed(&node.0.to_be_bytes(), u64::from(shard.0))
}

/// The replica that should lead each shard: voters on active nodes, every node about the same number.
pub fn preferred_leaders(placement: &Placement) -> BTreeMap<ShardId, (u64, NodeId)> {
    let mut led: BTreeMap<NodeId, usize> = BTreeMap::new();
    let mut preferred = BTreeMap::new();
    for shard in &placement.shards {
        let best = shard
            .replicas
            .iter()
            .filter(|replica| replica.state == ReplicaState::Voting)
            .filter(|replica| {
                placement
                    .node(replica.node)
                    .is_some_and(|node| node.state == NodeState::Active)
            })
            .min_by_key(|replica| {
                let load = led.get(&replica.node).copied().unwrap_or(0);
                (load, std::cmp::Reverse(score(shard.shard, replica.node)))
            });
        if let Some(replica) = best {
            *led.entry(replica.node).or_default() += 1;
            preferred.insert(shard.shard, (replica.id, replica.node));
        }
    }
    preferred
}

/// A replica in another state; the version is raised by the caller.
fn set_state(placement: &mut Placement, shard: ShardId, id: u64, state: ReplicaState) -> bool {
    let found = placement
        .shards
        .iter_mut()
        .filter(|known| known.shard == shard)
        .flat_map(|known| &mut known.replicas)
        .find(|replica| replica.id == id);
    match found {
        Some(replica) if replica.state != state => {
            replica.state = state;
            true
        }
        _ => false,
    }
}

fn set_node_state(placement: &mut Placement, id: NodeId, state: NodeState) -> bool {
    match placement.nodes.iter_mut().find(|node| node.id == id) {
        Some(node) if node.state != state => {
            node.state = state;
            true
        }
        _ => false,
    }
}

/// What the leader of a shard found its membership to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Membership {
    /// Which shard.
    pub shard: ShardId,
    /// Who votes.
    pub voters: Vec<u64>,
    /// Who is in it at all.
    pub members: Vec<u64>,
}

/// The placement with what leaders report. None if it says so already.
pub fn with_memberships(now: &Placement, found: &[Membership]) -> Option<Placement> {
    let mut next = now.clone();
    next.version += 1;
    let mut changed = false;
    for membership in found {
        changed |= take_in(&mut next, membership);
    }
    changed.then_some(next)
}

fn take_in(next: &mut Placement, found: &Membership) -> bool {
    let Membership { shard, voters, members } = found;
    let Some(place) = next.shards.iter_mut().find(|known| known.shard == *shard) else {
        return false;
    };
    let before = place.replicas.clone();
    for replica in &mut place.replicas {
        if replica.state == ReplicaState::Joining && voters.contains(&replica.id) {
            replica.state = ReplicaState::Voting;
        }
    }
    place
        .replicas
        .retain(|replica| replica.state != ReplicaState::Leaving || members.contains(&replica.id));
    place.replicas != before
}

/// What the leader of a shard does next to its membership.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Send the log to this replica, which does not vote.
    AddLearner(Replica),
    /// Make these the voters.
    SetVoters(Vec<u64>),
    /// Hand the office to one of these first: the leader itself is to leave.
    HandOver(Vec<u64>),
    /// Forget these.
    Remove(Vec<u64>),
}

/// A shard as its leader sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leading<'a> {
    /// The leader.
    pub leader: u64,
    /// Who votes.
    pub voters: &'a [u64],
    /// Who is in it at all.
    pub members: &'a [u64],
    /// Who has nearly all of the log.
    pub caught_up: &'a [u64],
}

/// The next step towards what the placement says; None when the membership is that. A replica that the placement does not
/// know *yet* is left alone: this leader's placement may be old.
pub fn step(placement: &Placement, shard: ShardId, now: &Leading<'_>) -> Option<Step> {
    let wanted = placement.shard(shard)?;
    let state = |id: u64| {
        wanted
            .replicas
            .iter()
            .find(|replica| replica.id == id)
            .map(|replica| replica.state)
    };
    let is_gone = |id: u64| match state(id) {
        Some(state) => state == ReplicaState::Leaving,
        None => id < placement.next_replica,
    };
    let missing = wanted
        .replicas
        .iter()
        .find(|replica| replica.state != ReplicaState::Leaving && !now.members.contains(&replica.id));
    if let Some(replica) = missing {
        return Some(Step::AddLearner(replica.clone()));
    }
    let mut voters: Vec<u64> = now.voters.iter().copied().filter(|id| !is_gone(*id)).collect();
    let waiting: Vec<u64> = wanted
        .replicas
        .iter()
        .filter(|replica| replica.state != ReplicaState::Leaving && !now.voters.contains(&replica.id))
        .map(|replica| replica.id)
        .collect();
    let ready: Vec<u64> = waiting
        .iter()
        .copied()
        .filter(|id| now.caught_up.contains(id))
        .collect();
    // All at once, or at least so many that the number of voters stays odd: an even number survives nothing more.
    if ready.len() == waiting.len() || (voters.len() + ready.len()) % 2 == 1 {
        voters.extend(ready);
    }
    voters.sort_unstable();
    let mut before = now.voters.to_vec();
    before.sort_unstable();
    if voters != before && !voters.is_empty() {
        if !voters.contains(&now.leader) {
            let heirs = voters.into_iter().filter(|id| now.voters.contains(id)).collect();
            return Some(Step::HandOver(heirs));
        }
        return Some(Step::SetVoters(voters));
    }
    let over: Vec<u64> = now
        .members
        .iter()
        .copied()
        .filter(|id| is_gone(*id) && !now.voters.contains(id))
        .collect();
    (!over.is_empty()).then_some(Step::Remove(over))
}

/// A cluster with another number of replicas for each shard.
pub fn with_replication(now: &Placement, replication: u32) -> Result<Placement, Refused> {
    if !matches!(replication, 1 | 3 | 5) {
        return Err(Refused("the replication factor is 1, 3 or 5".to_owned()));
    }
    let mut next = now.clone();
    next.version += 1;
    next.replication = replication;
    Ok(next)
}

/// What happens to the replicas from here on, if all nodes work: a line for each step, in order. Ends where nothing
/// changes any more.
pub fn outlook(now: &Placement) -> Vec<String> {
    let mut lines = Vec::new();
    let mut placement = now.clone();
    // Every round adds, promotes or removes at least one replica.
    let rounds_max = 4 * placement.shards.len() * placement.nodes.len().max(1) + 8;
    for _ in 0..rounds_max {
        let reached: Vec<Membership> = placement.shards.iter().map(reached).collect();
        let Some(after) = with_memberships(&placement, &reached).or_else(|| next(&placement)) else {
            break;
        };
        for (before, after) in placement.shards.iter().zip(&after.shards) {
            lines.extend(difference(before, after));
        }
        placement = after;
    }
    lines
}

/// The membership of a shard once its leader has done what the placement says.
fn reached(shard: &ShardPlacement) -> Membership {
    let staying = shard
        .replicas
        .iter()
        .filter(|replica| replica.state != ReplicaState::Leaving);
    let ids: Vec<u64> = staying.map(|replica| replica.id).collect();
    Membership {
        shard: shard.shard,
        voters: ids.clone(),
        members: ids,
    }
}

fn difference(before: &ShardPlacement, after: &ShardPlacement) -> Vec<String> {
    let name = before.shard;
    let known = |id: u64| before.replicas.iter().find(|replica| replica.id == id);
    let mut lines: Vec<String> = after
        .replicas
        .iter()
        .filter_map(
            |replica| match (known(replica.id).map(|old| old.state), replica.state) {
                (None, _) => Some(format!("{name}: a new replica on {}", replica.node)),
                (Some(old), ReplicaState::Voting) if old != ReplicaState::Voting => {
                    Some(format!("{name}: the replica on {} votes", replica.node))
                }
                (Some(old), ReplicaState::Leaving) if old != ReplicaState::Leaving => {
                    Some(format!("{name}: the replica on {} leaves", replica.node))
                }
                _ => None,
            },
        )
        .collect();
    let gone = before
        .replicas
        .iter()
        .filter(|replica| !after.replicas.iter().any(|kept| kept.id == replica.id));
    lines.extend(gone.map(|replica| format!("{name}: the data of the replica on {} are removed", replica.node)));
    lines
}

/// A node in another state. Refused: what would lose data or cannot be undone.
pub fn with_node_state(now: &Placement, id: NodeId, state: NodeState) -> Result<Placement, Refused> {
    let Some(node) = now.node(id) else {
        return Err(Refused(format!("there is no node {}; see `waggle nodes list`", id.0)));
    };
    if node.state == NodeState::Gone {
        return Err(Refused(format!(
            "node {} is gone for ever; join the machine as a new node with a number of its own",
            id.0
        )));
    }
    if state == NodeState::Gone {
        return Err(Refused("a node is gone when it has given everything away".to_owned()));
    }
    let mut next = now.clone();
    next.version += 1;
    set_node_state(&mut next, id, state);
    if state == NodeState::Decommissioning {
        let left = wanted_replicas(&next);
        let most = now.shards.iter().map(|shard| shard.replicas.len()).max().unwrap_or(0);
        if next.nodes.iter().all(|node| !holds(node)) || (left < wanted_replicas(now) && most > left) {
            return Err(Refused(format!(
                "without node {} the cluster keeps {left} replicas of each shard instead of {}; join another node first, or \
                 lower the replication factor",
                id.0,
                wanted_replicas(now)
            )));
        }
    }
    Ok(next)
}

/// Whether `next` may follow `now`: what no bug of a proposer may do to a cluster.
pub fn check(now: &Placement, next: &Placement) -> Result<(), Refused> {
    let refuse = |why: &str| Err(Refused(why.to_owned()));
    if next.cluster != now.cluster {
        return refuse("it is of another cluster");
    }
    if next.slots.len() != now.slots.len() || next.slots.iter().any(|slot| next.shard(*slot).is_none()) {
        return refuse("a slot has no shard");
    }
    if !matches!(next.replication, 1 | 3 | 5) {
        return refuse("the replication factor is 1, 3 or 5");
    }
    if next.next_replica < now.next_replica {
        return refuse("replica numbers went back");
    }
    for node in &now.nodes {
        match next.node(node.id) {
            None => return refuse("a node is missing"),
            Some(after) if node.state == NodeState::Gone && after.state != NodeState::Gone => {
                return refuse("a node that was gone came back");
            }
            Some(_) => {}
        }
    }
    for shard in &now.shards {
        if next.shard(shard.shard).is_none() {
            return refuse("a shard is missing");
        }
    }
    for shard in &next.shards {
        let old: &[Replica] = now.shard(shard.shard).map_or(&[], |known| &known.replicas);
        if shard
            .replicas
            .iter()
            .all(|replica| replica.state == ReplicaState::Leaving)
        {
            return refuse("a shard would have no replica");
        }
        for (position, replica) in shard.replicas.iter().enumerate() {
            let known = old
                .iter()
                .any(|before| before.id == replica.id && before.node == replica.node);
            if !known && replica.id < now.next_replica {
                return refuse("a replica number was used before");
            }
            if replica.id >= next.next_replica {
                return refuse("a replica number was not allocated");
            }
            if next.node(replica.node).is_none() {
                return refuse("a replica is on an unknown node");
            }
            if shard
                .replicas
                .iter()
                .take(position)
                .any(|other| other.node == replica.node)
            {
                return refuse("a node has two replicas of a shard");
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
