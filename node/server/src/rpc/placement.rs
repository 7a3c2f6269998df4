//! What operators and gateways ask about the shape of the cluster: its placement, who may join, what a node is for, who
//! leads, and whether replicas are equal.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures::{Stream, StreamExt as _};
use waggle_memory::command::Command;
use waggle_memory::id::Principal;
use waggle_memory::meta::{JoinToken, KeyId, NodeId, NodeState, Placement, ShardId};
use waggle_memory::outcome::{Outcome, Rejection};
use waggle_memory::placement;
use waggle_memory::tables::typed;
use waggle_memory::time::Millis;
use waggle_proto::wire::{
    self, CreateJoinTokenReply, CreateJoinTokenRequest, PlanClusterReply, PlanClusterRequest, SetNodeStateRequest,
    ShardDigestReply, ShardDigestRequest, TransferLeaderReply, TransferLeaderRequest,
};
use waggle_shard::Proposal;

use crate::engine::Engine;
use crate::error::CallError;

/// Tries when somebody else changes the placement at the same time.
const TRIES_MAX: usize = 8;
/// Longest wait for the tables to reach the entry that a digest is asked for.
const DIGEST_WAIT_MAX: Duration = Duration::from_secs(10);
const DIGEST_POLL: Duration = Duration::from_millis(20);
const TRANSFER_TIME_MAX: Duration = Duration::from_secs(5);

pub(super) type Placements = Pin<Box<dyn Stream<Item = Result<wire::Placement, tonic::Status>> + Send>>;

/// The placement now, if it is newer than `known_version`, and after every change.
pub(super) fn watch(engine: &Arc<Engine>, known_version: u64) -> Placements {
    let changes = engine.placement.watch();
    // Weak: a watcher in another process must not keep this node from stopping.
    let state = (Arc::downgrade(&engine.placement), changes, known_version);
    let ending = engine.ending.clone().cancelled_owned();
    let placements = futures::stream::unfold(state, |(known, mut changes, seen)| async move {
        loop {
            let now = known.upgrade()?.load().clone();
            if now.version > seen {
                let seen = now.version;
                return Some((Ok(wire::placement(&now)), (known, changes, seen)));
            }
            changes.changed().await.ok()?;
        }
    });
    Box::pin(placements.take_until(ending))
}

async fn propose(engine: &Arc<Engine>, principal: &str, command: Command) -> Result<Outcome, CallError> {
    let proposal = Proposal {
        principal: Principal(principal.to_owned()),
        request: None,
        command,
    };
    let meta = engine.shard(ShardId::META)?;
    Ok(meta.propose(proposal, engine.options.call_time_max).await?.outcome)
}

/// The placement as the meta shard has it, proven to be the newest.
async fn newest(engine: &Arc<Engine>) -> Result<Placement, CallError> {
    engine
        .shard(ShardId::META)?
        .linearizable_read(engine.options.call_time_max)
        .await?;
    let stored = engine
        .blocking(|engine| {
            engine
                .database
                .read(ShardId::META, typed::placement)
                .map_err(|fault| CallError::halted("read the placement", &fault))
        })
        .await?;
    stored.ok_or_else(|| CallError::halted("read the placement", &"it is not there"))
}

pub(super) async fn create_join_token(
    engine: &Arc<Engine>,
    request: CreateJoinTokenRequest,
) -> Result<CreateJoinTokenReply, CallError> {
    let is_word = |text: &str| !text.is_empty() && text.len() <= 64 && text.bytes().all(|b| b.is_ascii_alphanumeric());
    if !is_word(&request.id) || request.secret_hash.len() != 32 {
        return Err(CallError::invalid(
            "join_token",
            "has an id of letters and digits and a hash of 32 bytes",
        ));
    }
    let token = JoinToken {
        id: KeyId(request.id),
        secret_hash: request.secret_hash,
        expires_at: Millis(request.expires_at),
        used_by: None,
    };
    if let Outcome::Rejected(rejection) = propose(engine, &request.principal, Command::CreateJoinToken(token)).await? {
        return Err(rejection.into());
    }
    let placement = newest(engine).await?;
    Ok(CreateJoinTokenReply {
        cluster_id: placement.cluster.0.to_vec(),
        nodes: placement
            .nodes
            .iter()
            .filter(|node| node.state != NodeState::Gone && !node.address.is_empty())
            .map(wire::node_info)
            .collect(),
    })
}

pub(super) async fn set_node_state(
    engine: &Arc<Engine>,
    request: SetNodeStateRequest,
) -> Result<wire::Placement, CallError> {
    let state = wire::node_state_of(request.state)?;
    for _ in 0..TRIES_MAX {
        let now = newest(engine).await?;
        if now.node(NodeId(request.node)).is_some_and(|node| node.state == state) {
            return Ok(wire::placement(&now));
        }
        let next = placement::with_node_state(&now, NodeId(request.node), state)
            .map_err(|refused| CallError::invalid("node", refused.0))?;
        match propose(engine, &request.principal, Command::ChangePlacement(next.clone())).await? {
            Outcome::Rejected(Rejection::VersionConflict { .. }) => {}
            Outcome::Rejected(rejection) => return Err(rejection.into()),
            _ => {
                let learned = next.clone();
                engine
                    .blocking(move |engine| {
                        engine.learn(&learned);
                        Ok(())
                    })
                    .await?;
                return Ok(wire::placement(&next));
            }
        }
    }
    Err(CallError::unavailable(
        "the placement changes all the time; try again",
        Duration::from_millis(500),
    ))
}

/// What a change of the cluster's shape would do; does it if asked.
pub(super) async fn plan(engine: &Arc<Engine>, request: PlanClusterRequest) -> Result<PlanClusterReply, CallError> {
    for _ in 0..TRIES_MAX {
        let now = newest(engine).await?;
        let changes = request.replication != 0 && request.replication != now.replication;
        let next = if changes {
            placement::with_replication(&now, request.replication)
                .map_err(|refused| CallError::invalid("replication", refused.0))?
        } else {
            now.clone()
        };
        let reply = PlanClusterReply {
            replication_before: now.replication,
            replication_after: next.replication,
            steps: placement::outlook(&next),
            placement_version: next.version,
        };
        if !changes || !request.apply {
            return Ok(reply);
        }
        match propose(engine, &request.principal, Command::ChangePlacement(next)).await? {
            Outcome::Rejected(Rejection::VersionConflict { .. }) => {}
            Outcome::Rejected(rejection) => return Err(rejection.into()),
            _ => return Ok(reply),
        }
    }
    Err(CallError::unavailable(
        "the placement changes all the time; try again",
        Duration::from_millis(500),
    ))
}

pub(super) async fn transfer_leader(
    engine: &Arc<Engine>,
    request: TransferLeaderRequest,
) -> Result<TransferLeaderReply, CallError> {
    let shard = engine.shard(ShardId(request.shard))?;
    let status = shard.status();
    if !shard.leads() {
        let leader = status.leader.map_or(0, |(_, member)| member.node);
        return Err(CallError::not_leader(leader));
    }
    let followers = shard.followers();
    let to = status
        .voters
        .iter()
        .filter(|voter| **voter != status.replica)
        .filter(|voter| {
            let node = status.members.get(voter).map_or(0, |member| member.node);
            request.to_node == 0 || node == request.to_node
        })
        .max_by_key(|voter| followers.get(voter).and_then(|follower| follower.matched))
        .copied();
    let Some(to) = to else {
        return Err(CallError::invalid("to_node", "holds no other voter of this shard"));
    };
    let took = shard.transfer_leader(to, TRANSFER_TIME_MAX).await?;
    let leader = shard.status().leader.map_or(0, |(_, member)| member.node);
    Ok(TransferLeaderReply {
        leader_node: leader,
        took_ms: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
    })
}

pub(super) async fn shard_digest(
    engine: &Arc<Engine>,
    request: ShardDigestRequest,
) -> Result<ShardDigestReply, CallError> {
    let shard = engine.shard(ShardId(request.shard))?;
    let deadline = tokio::time::Instant::now() + DIGEST_WAIT_MAX;
    while shard.status().applied_index.unwrap_or(0) < request.applied_index_min {
        if tokio::time::Instant::now() >= deadline {
            return Err(CallError::unavailable(
                "this replica has not applied the entry yet",
                Duration::from_secs(1),
            ));
        }
        tokio::time::sleep(DIGEST_POLL).await;
    }
    let id = shard.shard();
    let (digest, applied) = engine
        .blocking(move |engine| {
            // The same before and after: the digest is that of this entry and no other.
            for _ in 0..TRIES_MAX {
                let before = engine.database.applied_state(id);
                let digest = engine.database.digest(id);
                let after = engine.database.applied_state(id);
                let failed = |fault: waggle_store::Fault| CallError::halted("hash the rows of a shard", &fault);
                let (before, digest, after) =
                    (before.map_err(failed)?, digest.map_err(failed)?, after.map_err(failed)?);
                if before == after {
                    return Ok((digest, after));
                }
            }
            Err(CallError::unavailable(
                "the shard is written to all the time; ask when it rests",
                Duration::from_secs(1),
            ))
        })
        .await?;
    let position = applied.map(|bytes| waggle_shard::Position::decode(&bytes));
    let applied = match position {
        Some(Ok(position)) => position.applied.map_or(0, |last| last.index),
        Some(Err(malformed)) => return Err(CallError::halted("read the applied state", &malformed)),
        None => 0,
    };
    Ok(ShardDigestReply {
        applied_index: applied,
        digest: digest.to_vec(),
    })
}
