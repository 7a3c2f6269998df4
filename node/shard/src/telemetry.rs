//! Numbers for operators. The label `shard` is bounded by the replicas that a node is configured to hold.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use waggle_memory::meta::ShardId;

use crate::handle::{Role, ShardHandle};

/// How often gauges are refreshed.
const SAMPLE_EVERY: Duration = Duration::from_secs(1);

/// The monotonic clock, for durations only: nothing decided by it is replicated.
pub(crate) fn now() -> Instant {
    Instant::now()
}

pub(crate) fn snapshot(direction: &'static str, started: Instant) {
    metrics::counter!("waggle_raft_snapshots_total", "direction" => direction).increment(1);
    metrics::histogram!("waggle_raft_snapshot_duration_seconds").record(started.elapsed());
}

pub(crate) fn proposed(started: Instant) {
    metrics::histogram!("waggle_raft_propose_duration_seconds").record(started.elapsed());
}

pub(crate) fn proposal_failed(reason: &'static str) {
    metrics::counter!("waggle_raft_proposals_failed_total", "reason" => reason).increment(1);
}

/// Refreshes the gauges of all replicas until it is aborted, and reports each halted replica once.
pub(crate) async fn sample(all: impl Fn() -> Vec<ShardHandle>) {
    let mut leaders: BTreeMap<ShardId, Option<u64>> = BTreeMap::new();
    let mut halted: Vec<ShardId> = Vec::new();
    let mut ticks = tokio::time::interval(SAMPLE_EVERY);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
    loop {
        ticks.tick().await;
        for handle in all() {
            let status = handle.status();
            let label = status.shard.to_string();
            metrics::gauge!("waggle_raft_has_leader", "shard" => label.clone()).set(flag(status.leader.is_some()));
            metrics::gauge!("waggle_raft_is_leader", "shard" => label.clone()).set(flag(status.role == Role::Leader));
            metrics::gauge!("waggle_raft_term", "shard" => label.clone()).set(number(Some(status.term)));
            metrics::gauge!("waggle_raft_commit_index", "shard" => label.clone()).set(number(status.committed_index));
            metrics::gauge!("waggle_raft_applied_index", "shard" => label.clone()).set(number(status.applied_index));
            let leader = status.leader.as_ref().map(|(replica, _)| *replica);
            if leaders
                .insert(status.shard, leader)
                .is_some_and(|before| before != leader)
            {
                metrics::counter!("waggle_raft_leader_changes_total", "shard" => label).increment(1);
            }
            if let Some(why) = status
                .halted
                .filter(|_| !handle.is_closing() && !halted.contains(&status.shard))
            {
                tracing::error!(shard = %status.shard, replica = status.replica, why, "a replica has halted");
                halted.push(status.shard);
            }
        }
    }
}

const fn flag(value: bool) -> f64 {
    if value { 1.0 } else { 0.0 }
}

/// Gauges are floating point; indexes stay exact up to 2^53.
#[expect(clippy::cast_precision_loss, reason = "a gauge has no other type")]
fn number(value: Option<u64>) -> f64 {
    value.unwrap_or(0) as f64
}
