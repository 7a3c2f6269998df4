//! How the node stands, for health checks, `waggle status` and the metrics.

use waggle_memory::meta::{NodeId, ShardId};
use waggle_proto::wire;
use waggle_shard::Role;

use crate::engine::Engine;

/// One named check with its reason.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Check {
    /// Stable name.
    pub name: &'static str,
    /// Whether all is well.
    pub ok: bool,
    /// What is wrong, or what was measured.
    pub reason: String,
}

/// A shard's replica on this node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShardSummary {
    /// Which.
    pub shard: ShardId,
    /// Whether this replica leads.
    pub is_leader: bool,
    /// Whether a leader is known.
    pub has_leader: bool,
    /// Raft term.
    pub term: u64,
    /// Last entry of the log.
    pub last_log_index: u64,
    /// Last committed entry.
    pub committed_index: u64,
    /// Last applied entry.
    pub applied_index: u64,
    /// Why the replica has halted.
    pub halted: Option<String>,
    /// Everything else that consensus says.
    pub consensus: waggle_shard::Status,
    /// What the leader knows of each other member.
    pub followers: std::collections::BTreeMap<u64, waggle_shard::Follower>,
}

impl ShardSummary {
    /// As it travels.
    pub(crate) fn to_wire(&self) -> wire::ShardStatus {
        let status = &self.consensus;
        wire::ShardStatus {
            shard: self.shard.0,
            is_leader: self.is_leader,
            term: self.term,
            last_log_index: self.last_log_index,
            committed_index: self.committed_index,
            applied_index: self.applied_index,
            replica: status.replica,
            role: role(status.role).to_owned(),
            leader_node: status.leader.as_ref().map_or(0, |(_, member)| member.node),
            voters: status.voters.clone(),
            members: status
                .members
                .iter()
                .map(|(replica, member)| wire::ShardMember {
                    replica: *replica,
                    node: member.node,
                    matched_index: self.followers.get(replica).and_then(|follower| follower.matched),
                })
                .collect(),
            snapshot_index: status.snapshot_index.unwrap_or(0),
            purged_index: status.purged_index.unwrap_or(0),
            halted: self.halted.clone().unwrap_or_default(),
        }
    }
}

const fn role(role: Role) -> &'static str {
    match role {
        Role::Learner => "learner",
        Role::Follower => "follower",
        Role::Candidate => "candidate",
        Role::Leader => "leader",
        Role::Stopped => "stopped",
    }
}

/// How a node stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeStatus {
    /// Which node.
    pub node: NodeId,
    /// Its replicas.
    pub shards: Vec<ShardSummary>,
    /// Free bytes of the data directory's file system.
    pub disk_free_bytes: u64,
    /// All bytes of it.
    pub disk_total_bytes: u64,
    /// Only reads and deletions are possible.
    pub read_only: bool,
    /// A fault that stopped the store.
    pub storage_fault: Option<String>,
    /// Texts that wait for the encoder.
    pub encoder_queue: usize,
    /// Kernel of the encoder; empty without a model.
    pub encoder_kernel: String,
    /// Model of the encoder; empty without one.
    pub encoder_model: String,
    /// Resident bytes of recall indexes.
    pub index_bytes: usize,
    /// Tenants with a loaded index.
    pub index_tenants: usize,
}

impl NodeStatus {
    /// The named checks behind readiness.
    pub fn checks(&self) -> Vec<Check> {
        let leaderless: Vec<String> = self
            .shards
            .iter()
            .filter(|s| !s.has_leader || s.halted.is_some())
            .map(|s| s.shard.to_string())
            .collect();
        vec![
            Check {
                name: "shards",
                ok: leaderless.is_empty(),
                reason: if leaderless.is_empty() {
                    format!("{} shards have a leader", self.shards.len())
                } else {
                    format!("without a leader: {}", leaderless.join(", "))
                },
            },
            Check {
                name: "storage",
                ok: self.storage_fault.is_none(),
                reason: self.storage_fault.clone().unwrap_or_else(|| "no fault".to_owned()),
            },
            Check {
                name: "disk",
                ok: !self.read_only,
                reason: format!("{} of {} bytes free", self.disk_free_bytes, self.disk_total_bytes),
            },
            Check {
                name: "encoder",
                ok: !self.encoder_model.is_empty(),
                reason: if self.encoder_model.is_empty() {
                    "lexical only: no model is loaded".to_owned()
                } else {
                    format!(
                        "{} on {}, {} texts waiting",
                        self.encoder_model, self.encoder_kernel, self.encoder_queue
                    )
                },
            },
        ]
    }

    /// What does not work, in words; empty when all is well.
    pub fn degraded(&self) -> Vec<String> {
        self.checks()
            .into_iter()
            .filter(|check| !check.ok)
            .map(|check| format!("{}: {}", check.name, check.reason))
            .collect()
    }

    /// Whether reads can be served: a full disk still serves them.
    pub fn is_ready(&self) -> bool {
        self.storage_fault.is_none() && self.shards.iter().all(|s| s.has_leader && s.halted.is_none())
    }
}

/// Looks at everything once. Blocks on a system call for the disk.
pub(crate) fn of(engine: &Engine) -> NodeStatus {
    let shards = engine
        .shards
        .handles()
        .into_iter()
        .map(|handle| {
            let status = handle.status();
            ShardSummary {
                shard: status.shard,
                is_leader: status.role == Role::Leader,
                has_leader: status.leader.is_some(),
                term: status.term,
                last_log_index: status.last_index.unwrap_or(0),
                committed_index: status.committed_index.unwrap_or(0),
                applied_index: status.applied_index.unwrap_or(0),
                halted: status.halted.clone(),
                followers: handle.followers(),
                consensus: status,
            }
        })
        .collect();
    let disk = rustix::fs::statvfs(engine.database.path()).ok();
    let index = engine.indexes.stats();
    NodeStatus {
        node: engine.node,
        shards,
        disk_free_bytes: disk
            .as_ref()
            .map_or(0, |disk| disk.f_bavail.saturating_mul(disk.f_frsize)),
        disk_total_bytes: disk
            .as_ref()
            .map_or(0, |disk| disk.f_blocks.saturating_mul(disk.f_frsize)),
        read_only: engine.database.is_below_reserve().unwrap_or(true),
        storage_fault: engine.database.fault().map(ToString::to_string),
        encoder_queue: engine.embedder.queue_length(),
        encoder_kernel: engine.embedder.kernel().to_owned(),
        encoder_model: engine.embedder.model().to_owned(),
        index_bytes: index.bytes,
        index_tenants: index.tenants,
    }
}

pub(crate) fn set_gauges(engine: &Engine) {
    let gauge = |value: u64| value as f64;
    let status = of(engine);
    metrics::gauge!("waggle_storage_available_bytes").set(gauge(status.disk_free_bytes));
    metrics::gauge!("waggle_storage_capacity_bytes").set(gauge(status.disk_total_bytes));
    metrics::gauge!("waggle_storage_read_only").set(f64::from(u8::from(status.read_only)));
    metrics::gauge!("waggle_embedding_queue_length").set(gauge(u64::try_from(status.encoder_queue).unwrap_or(0)));
    metrics::gauge!("waggle_storage_bytes", "kind" => "index")
        .set(gauge(u64::try_from(status.index_bytes).unwrap_or(0)));
    metrics::gauge!("waggle_index_tenants").set(gauge(u64::try_from(status.index_tenants).unwrap_or(0)));
    let leaders = status.shards.iter().filter(|shard| shard.has_leader).count();
    metrics::gauge!("waggle_shard_unavailable").set(gauge(u64::try_from(status.shards.len() - leaders).unwrap_or(0)));
    if let Ok(usage) = engine.database.usage() {
        metrics::gauge!("waggle_storage_bytes", "kind" => "sst").set(gauge(usage.table_bytes));
        metrics::gauge!("waggle_storage_bytes", "kind" => "wal").set(gauge(usage.wal_bytes));
    }
}
