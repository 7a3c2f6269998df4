//! The tasks that keep a node what the placement says: they learn placements, start and remove replicas, tend the shards
//! that this node leads, and, on the node that leads the meta shard, decide what changes next. Each round begins with what
//! is stored, so a round that was interrupted is simply begun again, here or on another node.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;
use tokio_stream::StreamExt as _;
use tokio_util::sync::CancellationToken;
use tonic::Status;
use waggle_memory::command::Command;
use waggle_memory::id::Principal;
use waggle_memory::meta::{NodeId, NodeState, Placement, ShardId};
use waggle_memory::outcome::Outcome;
use waggle_memory::placement;
use waggle_memory::tables::typed;
use waggle_proto::wire;
use waggle_proto::wire::meta_service_client::MetaServiceClient;
use waggle_shard::{Origin, Ports, Proposal, ReplicaConfig};
use waggle_store::RaftStore;

use super::leading;
use super::{Hosted, Incoming};
use crate::engine::Engine;
use crate::error::CallError;

/// Longest pause between two rounds; a new placement begins one at once.
const ROUND_EVERY: Duration = Duration::from_millis(200);
/// How often the meta shard's rows are looked at for a new placement.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// A shard whose leader or placement changed is left alone this long before it is handed to its preferred leader.
const SETTLE_TIME: Duration = Duration::from_secs(10);
/// Handovers of one round.
const MOVES_MAX: usize = 4;
/// Longest time for a change of the placement to be accepted.
const CHANGE_TIME_MAX: Duration = Duration::from_secs(5);
/// Longest time for a replica that left to stop.
const STOP_TIME_MAX: Duration = Duration::from_secs(10);

/// What the tasks share.
pub(crate) struct Keeper {
    pub(crate) engine: Arc<Engine>,
    pub(crate) ports: Ports<RaftStore>,
    pub(crate) hosted: Hosted,
    pub(crate) incoming: Arc<Incoming>,
    /// Who led each shard, and since when.
    pub(crate) led_since: Mutex<HashMap<ShardId, (u64, Instant)>>,
    /// What this node tells others of itself.
    pub(crate) address: String,
    pub(crate) zone: String,
}

/// Runs until `stop`.
pub(crate) async fn keep(keeper: Arc<Keeper>, stop: CancellationToken) {
    let learning = learn(Arc::clone(&keeper), stop.clone());
    let following = follow(Arc::clone(&keeper), stop.clone());
    let hosting = rounds(&keeper, &stop, Keeper::host);
    let leading = rounds(&keeper, &stop, Keeper::lead);
    tokio::join!(learning, following, hosting, leading);
}

async fn rounds<'a, F>(keeper: &'a Arc<Keeper>, stop: &CancellationToken, round: impl Fn(&'a Arc<Keeper>) -> F)
where
    F: Future<Output = ()> + 'a,
{
    let mut changed = keeper.engine.placement.watch();
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = round(keeper) => {}
        }
        tokio::select! {
            () = stop.cancelled() => return,
            _ = changed.changed() => {}
            () = tokio::time::sleep(ROUND_EVERY) => {}
        }
    }
}

/// Takes placements from our own replica of the meta shard.
async fn learn(keeper: Arc<Keeper>, stop: CancellationToken) {
    let mut applied = None;
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(LOOK_EVERY) => {}
        }
        let Some(meta) = keeper.engine.shards.get(ShardId::META) else {
            continue;
        };
        let now = meta.status().applied_index;
        if now == applied {
            continue;
        }
        applied = now;
        let learned = keeper
            .engine
            .blocking(|engine| {
                let stored = engine.database.read(ShardId::META, typed::placement);
                if let Ok(Some(placement)) = stored {
                    engine.learn(&placement);
                }
                Ok(())
            })
            .await;
        if learned.is_err() {
            applied = None;
        }
    }
}

/// Takes placements from other nodes while this one has no replica of the meta shard.
async fn follow(keeper: Arc<Keeper>, stop: CancellationToken) {
    let mut turn = 0_usize;
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(ROUND_EVERY) => {}
        }
        if has_meta(&keeper.engine) {
            continue;
        }
        let placement = keeper.engine.placement.load().clone();
        let others: Vec<NodeId> = placement
            .nodes
            .iter()
            .filter(|node| node.id != keeper.engine.node && node.state != NodeState::Gone)
            .map(|node| node.id)
            .collect();
        let Some(node) = others.get(turn.checked_rem(others.len()).unwrap_or(0)).copied() else {
            continue;
        };
        turn = turn.wrapping_add(1);
        let fallback = placement.node(node).map_or("", |info| info.address.as_str());
        let Ok(channel) = keeper.engine.peers.channel(node, fallback) else {
            continue;
        };
        tokio::select! {
            () = stop.cancelled() => return,
            ended = watch(&keeper, channel, placement.version) => {
                tracing::debug!(%node, %ended, "no longer hears of placements from this node");
            }
        }
    }
}

/// Ends when the stream does, or when this node has its own replica of the meta shard.
async fn watch(keeper: &Arc<Keeper>, channel: tonic::transport::Channel, known_version: u64) -> Status {
    let mut client = MetaServiceClient::new(channel);
    let request = wire::WatchPlacementRequest { known_version };
    let mut placements = match client.watch_placement(request).await {
        Ok(answer) => answer.into_inner(),
        Err(status) => return status,
    };
    while !has_meta(&keeper.engine) {
        match tokio::time::timeout(Duration::from_secs(5), placements.next()).await {
            Ok(Some(Ok(placement))) => match wire::placement_of(placement) {
                Ok(placement) => {
                    let _ = keeper
                        .engine
                        .blocking(move |engine| {
                            engine.learn(&placement);
                            Ok(())
                        })
                        .await;
                }
                Err(bad) => return Status::internal(bad.to_string()),
            },
            Ok(Some(Err(status))) => return status,
            Ok(None) => return Status::unavailable("the stream has ended"),
            // No news; the connection's keepalive notices a dead node.
            Err(_) => {}
        }
    }
    Status::ok("the meta shard is here now")
}

/// Whether this node's replica of the meta shard is a member, so that its rows can be trusted to go on.
fn has_meta(engine: &Engine) -> bool {
    engine
        .shards
        .get(ShardId::META)
        .is_some_and(|meta| meta.status().members.contains_key(&meta.replica()))
}

impl Keeper {
    /// Starts the replicas that this node is to hold and removes those that it is not.
    async fn host(self: &Arc<Self>) {
        let placement = self.engine.placement.load().clone();
        let node = self.engine.node;
        let held = self.hosted.all();
        for (shard, replica) in placement.replicas_on(node) {
            if !held.contains_key(&shard)
                && let Err(error) = self.begin(shard, replica.id).await
            {
                tracing::error!(%shard, replica = replica.id, error, "a replica could not be started");
            }
        }
        for (shard, entry) in held {
            let wanted = placement.replicas_on(node).find(|(wanted, _)| *wanted == shard);
            match wanted {
                Some((_, replica)) if replica.id == entry.replica && entry.joining && self.is_member(shard) => {
                    let this = Arc::clone(self);
                    self.on_disk(move || this.hosted.joined(shard).map_err(|error| error.to_string()))
                        .await;
                }
                Some((_, replica)) if replica.id == entry.replica => {}
                // Numbers are never used twice: one below the next that is not in the placement is gone for good.
                _ if entry.replica < placement.next_replica => self.end(shard).await,
                _ => {}
            }
        }
    }

    fn is_member(&self, shard: ShardId) -> bool {
        self.engine
            .shards
            .get(shard)
            .is_some_and(|handle| handle.status().members.contains_key(&handle.replica()))
    }

    async fn begin(self: &Arc<Self>, shard: ShardId, replica: u64) -> Result<(), String> {
        let this = Arc::clone(self);
        // In the list first: a replica that is not in it is not started again after a crash.
        let listed = tokio::task::spawn_blocking(move || this.hosted.add(shard, replica)).await;
        listed
            .map_err(|error| error.to_string())?
            .map_err(|error| error.to_string())?;
        let config = ReplicaConfig {
            shard,
            replica,
            origin: Origin::Joining,
        };
        tracing::info!(%shard, replica, "start a new replica");
        self.engine
            .shards
            .add(config, &self.ports)
            .await
            .map_err(|error| error.to_string())
    }

    /// Stops a replica that the shard has forgotten, and removes its data.
    async fn end(self: &Arc<Self>, shard: ShardId) {
        tracing::info!(%shard, "remove a replica that has left its shard");
        if let Err(late) = self.engine.shards.remove(shard, STOP_TIME_MAX).await {
            tracing::error!(%late, "a replica did not stop; its data stay until the next start");
            return;
        }
        self.incoming.remove(shard).await;
        let this = Arc::clone(self);
        self.on_disk(move || {
            this.engine.storage.forget(shard);
            this.engine
                .database
                .drop_shard(shard)
                .map_err(|fault| fault.to_string())?;
            this.hosted.remove(shard).map_err(|error| error.to_string())
        })
        .await;
    }

    async fn on_disk(&self, work: impl FnOnce() -> Result<(), String> + Send + 'static) {
        let done = tokio::task::spawn_blocking(work).await;
        match done {
            Ok(Ok(())) => {}
            Ok(Err(why)) => tracing::error!(why, "the list of replicas was not written; it is tried again"),
            Err(error) => tracing::error!(%error, "the list of replicas was not written; it is tried again"),
        }
    }

    /// Tends the shards that this node leads; on the leader of the meta shard, decides what the placement becomes.
    async fn lead(self: &Arc<Self>) {
        let placement = self.engine.placement.load().clone();
        let found = leading::tend(&self.engine, &placement).await;
        let reported = placement::with_memberships(&placement, &found).or_else(|| self.with_own_address(&placement));
        let leads_meta = self.engine.shards.get(ShardId::META).is_some_and(|meta| meta.leads());
        let next = reported.or_else(|| leads_meta.then(|| placement::next(&placement)).flatten());
        if let Some(next) = next {
            if let Err(error) = self.change(&placement, next).await {
                tracing::debug!(?error, "the placement was not changed; the next round looks again");
            }
            return;
        }
        self.note_leaders();
        let is_active = placement
            .node(self.engine.node)
            .is_some_and(|node| node.state == NodeState::Active);
        let settled = |shard: ShardId| {
            let since = self.led_since.lock().get(&shard).map(|(_, since)| *since);
            !is_active || since.is_some_and(|since| since.elapsed() > SETTLE_TIME)
        };
        leading::balance(&self.engine, &placement, settled, MOVES_MAX).await;
    }

    fn note_leaders(&self) {
        let mut led_since = self.led_since.lock();
        for handle in self.engine.shards.handles() {
            let leader = handle.status().leader.map_or(0, |(replica, _)| replica);
            let entry = led_since.entry(handle.shard()).or_insert((leader, Instant::now()));
            if entry.0 != leader {
                *entry = (leader, Instant::now());
            }
        }
    }

    /// After a start with another address or zone.
    fn with_own_address(&self, placement: &Placement) -> Option<Placement> {
        let mut next = placement.clone();
        let node = next.nodes.iter_mut().find(|node| node.id == self.engine.node)?;
        if node.address == self.address && node.zone == self.zone {
            return None;
        }
        (node.address, node.zone) = (self.address.clone(), self.zone.clone());
        next.version += 1;
        Some(next)
    }

    async fn change(&self, now: &Placement, next: Placement) -> Result<(), CallError> {
        let changed = change_placement(&self.engine, now, next).await?;
        let learned = changed.clone();
        self.engine
            .blocking(move |engine| {
                engine.learn(&learned);
                Ok(())
            })
            .await
    }
}

/// Proposes the next placement, wherever the meta shard's leader is.
pub(crate) async fn change_placement(
    engine: &Arc<Engine>,
    now: &Placement,
    next: Placement,
) -> Result<Placement, CallError> {
    if let Some(meta) = engine.shards.get(ShardId::META)
        && meta.leads()
    {
        return change_placement_here(engine, next).await;
    }
    let deadline = Instant::now() + CHANGE_TIME_MAX;
    let answer = engine
        .peers
        .ask_meta(now, deadline, |mut client| {
            let next = wire::placement(&next);
            async move { client.change_placement(next).await }
        })
        .await;
    match answer {
        Ok(placement) => Ok(wire::placement_of(placement)?),
        Err(status) => Err(CallError::unavailable(status.message(), Duration::from_millis(200))),
    }
}

/// The same as the meta shard's leader.
pub(crate) async fn change_placement_here(engine: &Arc<Engine>, next: Placement) -> Result<Placement, CallError> {
    let proposal = Proposal {
        principal: Principal("system".to_owned()),
        request: None,
        command: Command::ChangePlacement(next.clone()),
    };
    let proposed = engine.shard(ShardId::META)?.propose(proposal, CHANGE_TIME_MAX).await?;
    match proposed.outcome {
        Outcome::Rejected(rejection) => Err(rejection.into()),
        _ => {
            tracing::info!(version = next.version, "the placement changed");
            Ok(next)
        }
    }
}
