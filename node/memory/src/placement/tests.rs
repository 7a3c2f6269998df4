//! Clusters that grow, shrink and lose nodes, step by step, as their leaders would change them.

use super::*;
use crate::meta::ClusterId;
use crate::time::Millis;

fn node(id: u64, zone: &str) -> NodeInfo {
    NodeInfo {
        id: NodeId(id),
        address: format!("10.0.0.{id}:7710"),
        zone: zone.to_owned(),
        state: NodeState::Active,
        joined_at: Millis(0),
        incarnation: [0; 16],
    }
}

fn cluster(shards: u32, replication: u32, nodes: &[(u64, &str)]) -> Placement {
    let mut placement = Placement::initial(ClusterId([7; 16]), node(1, "a"), shards, replication);
    for (id, zone) in nodes {
        placement.nodes.push(node(*id, zone));
    }
    placement
}

/// Lets the meta shard's leader and the shards' leaders work until nothing changes any more.
fn settle(mut placement: Placement) -> Placement {
    for _ in 0..1_000 {
        let reported = placement.shards.iter().find_map(|shard| {
            let staying: Vec<u64> = shard
                .replicas
                .iter()
                .filter(|replica| replica.state != ReplicaState::Leaving)
                .map(|replica| replica.id)
                .collect();
            let found = Membership {
                shard: shard.shard,
                voters: staying.clone(),
                members: staying,
            };
            with_memberships(&placement, &[found])
        });
        let Some(next) = reported.or_else(|| next(&placement)) else {
            return placement;
        };
        check(&placement, &next).expect("an allowed step");
        assert_eq!(next.version, placement.version + 1);
        let fewest = next
            .shards
            .iter()
            .map(|shard| {
                shard
                    .replicas
                    .iter()
                    .filter(|r| r.state == ReplicaState::Voting)
                    .count()
            })
            .min();
        assert!(fewest >= Some(1), "a shard without voters on the way");
        placement = next;
    }
    panic!("it does not settle: {placement:?}");
}

fn holders(placement: &Placement) -> Vec<Vec<u64>> {
    placement
        .shards
        .iter()
        .map(|shard| {
            let mut nodes: Vec<u64> = shard.replicas.iter().map(|replica| replica.node.0).collect();
            nodes.sort_unstable();
            nodes
        })
        .collect()
}

#[test]
fn one_node_keeps_everything_and_two_are_no_better() {
    assert_eq!(next(&cluster(2, 3, &[])), None);
    assert_eq!(
        next(&cluster(2, 3, &[(2, "b")])),
        None,
        "two voters survive no more than one"
    );
}

#[test]
fn with_the_third_node_every_shard_gets_three_voters() {
    let settled = settle(cluster(4, 3, &[(2, "b"), (3, "c")]));
    assert_eq!(holders(&settled), vec![vec![1, 2, 3]; 5]);
}

#[test]
fn five_nodes_share_the_replicas_and_no_zone_has_two_of_a_shard() {
    let nodes = [(2, "a"), (3, "b"), (4, "b"), (5, "c")];
    let settled = settle(cluster(9, 3, &nodes));
    for shard in &settled.shards {
        let mut zones: Vec<&str> = shard
            .replicas
            .iter()
            .filter_map(|replica| settled.node(replica.node))
            .map(|node| node.zone.as_str())
            .collect();
        zones.sort_unstable();
        assert_eq!(zones, ["a", "b", "c"], "{}", shard.shard);
    }
}

#[test]
fn leaders_are_dealt_evenly_and_never_to_a_draining_node() {
    let settled = settle(cluster(8, 3, &[(2, "b"), (3, "c")]));
    let count = |placement: &Placement, node: u64| {
        let leaders = preferred_leaders(placement);
        leaders.values().filter(|(_, leader)| leader.0 == node).count()
    };
    assert_eq!([1, 2, 3].map(|node| count(&settled, node)), [3, 3, 3]);
    let drained = with_node_state(&settled, NodeId(2), NodeState::Draining).expect("allowed");
    assert_eq!(count(&drained, 2), 0);
    assert_eq!(holders(&drained), holders(&settled), "a drain moves no replica");
    assert_eq!(next(&drained), None);
}

#[test]
fn a_decommissioned_node_is_replaced_first_and_gone_at_the_end() {
    let settled = settle(cluster(3, 3, &[(2, "b"), (3, "c"), (4, "d")]));
    let leaving = with_node_state(&settled, NodeId(2), NodeState::Decommissioning).expect("a fourth node is there");
    let after = settle(leaving);
    assert_eq!(holders(&after), vec![vec![1, 3, 4]; 4]);
    assert_eq!(after.node(NodeId(2)).map(|node| node.state), Some(NodeState::Gone));
    let back = with_node_state(&after, NodeId(2), NodeState::Active);
    assert!(back.is_err(), "a number is used once");
}

#[test]
fn a_node_that_is_needed_cannot_be_decommissioned() {
    let settled = settle(cluster(3, 3, &[(2, "b"), (3, "c")]));
    let refused = with_node_state(&settled, NodeId(2), NodeState::Decommissioning).expect_err("only three nodes");
    assert_eq!(
        refused.0,
        "without node 2 the cluster keeps 1 replicas of each shard instead of 3; join another node first, or lower the \
         replication factor"
    );
}

#[test]
fn what_no_proposer_may_do_is_refused() {
    let now = settle(cluster(2, 3, &[(2, "b"), (3, "c")]));
    let refused = |change: &dyn Fn(&mut Placement)| {
        let mut next = now.clone();
        change(&mut next);
        check(&now, &next).expect_err("refused").0
    };
    assert_eq!(refused(&|p| p.cluster = ClusterId([8; 16])), "it is of another cluster");
    assert_eq!(refused(&|p| p.slots[0] = ShardId(99)), "a slot has no shard");
    assert_eq!(refused(&|p| p.replication = 2), "the replication factor is 1, 3 or 5");
    assert_eq!(refused(&|p| p.next_replica = 1), "replica numbers went back");
    assert_eq!(refused(&|p| drop(p.nodes.pop())), "a node is missing");
    assert_eq!(
        refused(&|p| p.shards[1].replicas.clear()),
        "a shard would have no replica"
    );
    assert_eq!(
        refused(&|p| p.shards[1].replicas[0].id = 2),
        "a replica number was used before"
    );
    assert_eq!(
        refused(&|p| p.shards[1].replicas[0].id = 99),
        "a replica number was not allocated"
    );
    assert_eq!(
        refused(&|p| p.shards[1].replicas[0].node = NodeId(2)),
        "a replica number was used before"
    );
}

/// Lets a leader work on one shard until it has nothing to do; gives what it did.
fn steps(placement: &Placement, leader: u64, mut voters: Vec<u64>, caught_up: &[u64]) -> Vec<Step> {
    let mut members = voters.clone();
    let mut done = Vec::new();
    while let Some(step) = step(
        placement,
        ShardId(1),
        &Leading {
            leader,
            voters: &voters,
            members: &members,
            caught_up,
        },
    ) {
        done.push(step.clone());
        match step {
            Step::AddLearner(replica) => members.push(replica.id),
            Step::SetVoters(new) => voters = new,
            Step::Remove(over) => members.retain(|id| !over.contains(id)),
            Step::HandOver(_) => break,
        }
        assert!(done.len() < 20, "it does not settle: {done:?}");
    }
    done
}

#[test]
fn a_shard_grows_from_one_voter_to_three_in_one_change() {
    let mut placement = cluster(1, 3, &[(2, "b"), (3, "c")]);
    placement = next(&placement).expect("it grows");
    let ids: Vec<u64> = placement.shards[1].replicas.iter().map(|replica| replica.id).collect();
    let words = |steps: &[Step]| {
        steps
            .iter()
            .map(|step| match step {
                Step::AddLearner(replica) => format!("add {}", replica.node.0),
                Step::SetVoters(voters) => format!("{} voters", voters.len()),
                Step::HandOver(_) => "hand over".to_owned(),
                Step::Remove(over) => format!("remove {}", over.len()),
            })
            .collect::<Vec<_>>()
            .join(", ")
    };
    assert_eq!(words(&steps(&placement, 1, vec![1], &ids)), "add 2, add 3, 3 voters");
    // With one of the two behind there would be two voters: wait.
    assert_eq!(words(&steps(&placement, 1, vec![1], &ids[..2])), "add 2, add 3");
}

#[test]
fn a_leader_that_is_to_leave_hands_over_first_and_unknown_newcomers_are_left_alone() {
    let settled = settle(cluster(1, 3, &[(2, "b"), (3, "c")]));
    let ids: Vec<u64> = settled.shards[1].replicas.iter().map(|replica| replica.id).collect();
    let mut leaving = settled.clone();
    set_state(&mut leaving, ShardId(1), ids[0], ReplicaState::Leaving);
    assert_eq!(
        steps(&leaving, ids[0], ids.clone(), &ids),
        [Step::HandOver(vec![ids[1], ids[2]])]
    );
    assert_eq!(
        steps(&leaving, ids[1], ids.clone(), &ids),
        [Step::SetVoters(vec![ids[1], ids[2]]), Step::Remove(vec![ids[0]])]
    );
    let newcomer = settled.next_replica;
    let with_newcomer = [ids.clone(), vec![newcomer]].concat();
    assert_eq!(
        steps(&settled, ids[0], with_newcomer, &ids),
        [],
        "a later placement may know it"
    );
}

#[test]
fn the_outlook_says_what_a_change_would_move_and_nothing_when_all_is_done() {
    let settled = settle(cluster(1, 1, &[(2, "b"), (3, "c")]));
    assert_eq!(outlook(&settled), Vec::<String>::new());
    let three = with_replication(&settled, 3).expect("allowed");
    let mut said = outlook(&three);
    said.sort();
    assert_eq!(
        said,
        [
            "shd_0: a new replica on nod_2",
            "shd_0: a new replica on nod_3",
            "shd_0: the replica on nod_2 votes",
            "shd_0: the replica on nod_3 votes",
            "shd_1: a new replica on nod_2",
            "shd_1: a new replica on nod_3",
            "shd_1: the replica on nod_2 votes",
            "shd_1: the replica on nod_3 votes",
        ]
    );
    assert!(with_replication(&settled, 2).is_err());
    let mut one = settle(three);
    one = with_replication(&one, 1).expect("allowed");
    let said = outlook(&one);
    assert_eq!(
        said.iter().filter(|line| line.ends_with("leaves")).count(),
        4,
        "{said:?}"
    );
    assert_eq!(
        said.iter().filter(|line| line.ends_with("are removed")).count(),
        4,
        "{said:?}"
    );
}
