//! The way to the node that owns a tenant: tenant -> slot -> shard -> replica, with retries decided in one place, by
//! error family. A retried call carries the same request id, so that it cannot happen twice.

mod nodes;
mod shards;
mod watch;

use std::collections::HashMap;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use parking_lot::RwLock;
use prost::Message;
use tokio::time::Instant;
use tonic::transport::Channel;
use tonic::{Code, Request, Response, Status};
use waggle_config::limits::RPC_BYTES_MAX;
use waggle_memory::id::TenantId;
use waggle_memory::meta::{NodeId, ReplicaState, ShardId, Slot};
use waggle_proto::wire::error_detail::Family;
use waggle_proto::wire::history_service_client::HistoryServiceClient;
use waggle_proto::wire::insight_service_client::InsightServiceClient;
use waggle_proto::wire::memory_service_client::MemoryServiceClient;
use waggle_proto::wire::meta_service_client::MetaServiceClient;
use waggle_proto::wire::transcript_service_client::TranscriptServiceClient;
use waggle_proto::wire::transfer_service_client::TransferServiceClient;
use waggle_proto::wire::{self, CallContext, ErrorDetail};

use crate::auth::Caller;
use crate::fault::Fault;
use crate::options::Connect;
use nodes::Nodes;

/// Attempts of one call, first one included.
const ATTEMPTS_MAX: usize = 24;
const PAUSE_MIN: Duration = Duration::from_millis(15);
const PAUSE_MAX: Duration = Duration::from_millis(500);
/// A node that asks for more patience than this, such as one with a full disk, is believed: the caller waits, not we.
const PATIENCE_MAX: Duration = Duration::from_secs(5);
/// Hints in a row that are followed without a pause: more of them contradict each other.
const HINTS_MAX: usize = 6;
/// A call that is not answered for this long makes us ask the other replicas whether its node leads at all.
const SUSPICIOUS_AFTER: Duration = Duration::from_millis(1_000);
/// How long one node may take to answer for the meta shard before another one is asked.
const META_ATTEMPT_MAX: Duration = Duration::from_millis(1_000);
/// A credential is checked within this time or the request is refused as unavailable.
const META_DEADLINE: Duration = Duration::from_secs(5);

/// One call as the nodes see it.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) request_id: String,
    pub(crate) fingerprint: u64,
    pub(crate) deadline: Instant,
    /// Whether something changes: decides what an unknown outcome is called.
    pub(crate) writes: bool,
    /// Any replica may answer, not only the leader.
    pub(crate) bounded: bool,
}

/// Placement, and a channel to each node.
pub(crate) struct Cluster {
    nodes: Nodes,
    placement: ArcSwapOption<wire::Placement>,
    /// The node that answered last, by shard. A hint only.
    leaders: RwLock<HashMap<u32, NodeId>>,
    /// Counts questions that any node may answer, so that they go to all in turn.
    turn: AtomicUsize,
}

/// What to do after a failed attempt.
enum Next {
    GiveUp(Fault),
    /// Elsewhere, or here again after the pause.
    Retry {
        pause: Duration,
        refresh: bool,
        certain: bool,
        /// Who leads, if the node said so.
        leader: Option<NodeId>,
    },
}

impl Next {
    /// Nothing was done, and somebody may have an answer in a moment.
    const fn soon() -> Self {
        Self::Retry {
            pause: PAUSE_MIN,
            refresh: true,
            certain: false,
            leader: None,
        }
    }
}

impl Cluster {
    pub(crate) fn new(seeds: Vec<(NodeId, Channel)>, connect: Connect) -> Self {
        Self {
            nodes: Nodes::new(seeds, connect),
            placement: ArcSwapOption::empty(),
            leaders: RwLock::new(HashMap::new()),
            turn: AtomicUsize::new(0),
        }
    }

    /// Calls MemoryService at the owner of the caller's tenant.
    pub(crate) async fn memory<R, F>(
        &self,
        caller: &Caller,
        call: &Call,
        send: impl Fn(MemoryServiceClient<Channel>, CallContext, Duration) -> F,
    ) -> Result<R, Fault>
    where
        F: Future<Output = Result<Response<R>, Status>>,
    {
        self.owner(caller, call, |channel, context, left| {
            let client = MemoryServiceClient::new(channel)
                .max_decoding_message_size(RPC_BYTES_MAX)
                .max_encoding_message_size(RPC_BYTES_MAX);
            send(client, context, left)
        })
        .await
    }

    /// Calls InsightService at the owner of the caller's tenant.
    pub(crate) async fn insight<R, F>(
        &self,
        caller: &Caller,
        call: &Call,
        send: impl Fn(InsightServiceClient<Channel>, CallContext, Duration) -> F,
    ) -> Result<R, Fault>
    where
        F: Future<Output = Result<Response<R>, Status>>,
    {
        self.owner(caller, call, |channel, context, left| {
            let client = InsightServiceClient::new(channel)
                .max_decoding_message_size(RPC_BYTES_MAX)
                .max_encoding_message_size(RPC_BYTES_MAX);
            send(client, context, left)
        })
        .await
    }

    /// Calls HistoryService at the owner of the caller's tenant.
    pub(crate) async fn history<R, F>(
        &self,
        caller: &Caller,
        call: &Call,
        send: impl Fn(HistoryServiceClient<Channel>, CallContext, Duration) -> F,
    ) -> Result<R, Fault>
    where
        F: Future<Output = Result<Response<R>, Status>>,
    {
        self.owner(caller, call, |channel, context, left| {
            let client = HistoryServiceClient::new(channel)
                .max_decoding_message_size(RPC_BYTES_MAX)
                .max_encoding_message_size(RPC_BYTES_MAX);
            send(client, context, left)
        })
        .await
    }

    /// Calls TranscriptService at the owner of the caller's tenant.
    pub(crate) async fn transcripts<R, F>(
        &self,
        caller: &Caller,
        call: &Call,
        send: impl Fn(TranscriptServiceClient<Channel>, CallContext, Duration) -> F,
    ) -> Result<R, Fault>
    where
        F: Future<Output = Result<Response<R>, Status>>,
    {
        self.owner(caller, call, |channel, context, left| {
            let client = TranscriptServiceClient::new(channel)
                .max_decoding_message_size(RPC_BYTES_MAX)
                .max_encoding_message_size(RPC_BYTES_MAX);
            send(client, context, left)
        })
        .await
    }

    /// Calls the owner of the caller's tenant to move a whole graph. A stream that begins is not begun again.
    pub(crate) async fn transfer<R, F>(
        &self,
        caller: &Caller,
        call: &Call,
        send: impl Fn(TransferServiceClient<Channel>, CallContext, Duration) -> F,
    ) -> Result<R, Fault>
    where
        F: Future<Output = Result<Response<R>, Status>>,
    {
        self.owner(caller, call, |channel, context, left| {
            let client = TransferServiceClient::new(channel)
                .max_decoding_message_size(RPC_BYTES_MAX)
                .max_encoding_message_size(RPC_BYTES_MAX);
            send(client, context, left)
        })
        .await
    }

    /// Calls the owner of the caller's tenant, over a channel to it.
    async fn owner<R, F>(
        &self,
        caller: &Caller,
        call: &Call,
        send: impl Fn(Channel, CallContext, Duration) -> F,
    ) -> Result<R, Fault>
    where
        F: Future<Output = Result<Response<R>, Status>>,
    {
        let mut placement = self.placement(call.deadline).await?;
        let mut possibly_done = false;
        for attempt in 0..ATTEMPTS_MAX {
            let shard = shard_of(&placement, &caller.tenant)?;
            let anywhere = call.bounded && attempt == 0;
            let found = if anywhere {
                self.any_replica(&placement, shard)
            } else {
                self.replica(&placement, shard, attempt)
            };
            let Some((node, channel)) = found else {
                return Err(Fault::unavailable(
                    "no node of the owning shard is known here",
                    Duration::from_secs(2),
                ));
            };
            let left = call.deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            let context = CallContext {
                tenant: caller.tenant.as_str().to_owned(),
                principal: caller.principal.clone(),
                shard,
                placement_version: placement.version,
                request_id: call.request_id.clone(),
                arguments_fingerprint: call.fingerprint,
            };
            let next = tokio::select! {
                answer = tokio::time::timeout(left, send(channel, context, left)) => match answer {
                    Ok(Ok(response)) => {
                        if !anywhere {
                            self.remember_leader(shard, node);
                        }
                        return Ok(response.into_inner());
                    }
                    Ok(Err(status)) => judge(&status),
                    Err(_) => {
                        possibly_done = true;
                        break;
                    }
                },
                leader = self.leads_elsewhere(&placement, shard, node) => Next::Retry {
                    pause: Duration::ZERO,
                    refresh: false,
                    certain: false,
                    leader: Some(leader),
                },
            };
            match next {
                Next::GiveUp(fault) => return Err(fault),
                Next::Retry {
                    pause,
                    refresh,
                    certain,
                    leader,
                } => {
                    possibly_done |= !certain;
                    if !anywhere {
                        self.forget_leader(shard, node);
                    }
                    let pause = match leader.filter(|leader| *leader != node) {
                        Some(leader) if self.nodes.get(leader).is_some() && attempt < HINTS_MAX => {
                            self.remember_leader(shard, leader);
                            pause
                        }
                        _ => pause.max(backoff(attempt)),
                    };
                    if call.deadline.saturating_duration_since(Instant::now()) <= pause {
                        break;
                    }
                    tokio::time::sleep(pause).await;
                    if refresh {
                        placement = self.refresh(call.deadline).await?;
                    }
                }
            }
        }
        Err(exhausted(call.writes, possibly_done))
    }

    /// Calls the meta shard, through whichever node answers.
    pub(crate) async fn meta<R, F>(&self, send: impl Fn(MetaServiceClient<Channel>, Duration) -> F) -> Result<R, Fault>
    where
        F: Future<Output = Result<Response<R>, Status>>,
    {
        self.meta_until(Instant::now() + META_DEADLINE, send).await
    }

    async fn meta_until<R, F>(
        &self,
        deadline: Instant,
        send: impl Fn(MetaServiceClient<Channel>, Duration) -> F,
    ) -> Result<R, Fault>
    where
        F: Future<Output = Result<Response<R>, Status>>,
    {
        for attempt in 0..ATTEMPTS_MAX {
            let left = deadline.saturating_duration_since(Instant::now());
            let Some((node, channel)) = self.meta_replica(attempt).filter(|_| !left.is_zero()) else {
                break;
            };
            let client = MetaServiceClient::new(channel).max_decoding_message_size(RPC_BYTES_MAX);
            let patience = left.min(META_ATTEMPT_MAX);
            let next = match tokio::time::timeout(patience, send(client, left)).await {
                Ok(Ok(response)) => {
                    self.remember_leader(ShardId::META.0, node);
                    return Ok(response.into_inner());
                }
                Ok(Err(status)) => judge(&status),
                Err(_) => Next::soon(),
            };
            match next {
                Next::GiveUp(fault) => return Err(fault),
                Next::Retry { pause, leader, .. } => {
                    self.forget_leader(ShardId::META.0, node);
                    let pause = match leader.filter(|leader| *leader != node) {
                        Some(leader) if self.nodes.get(leader).is_some() && attempt < HINTS_MAX => {
                            self.remember_leader(ShardId::META.0, leader);
                            pause
                        }
                        _ => pause.max(backoff(attempt)),
                    };
                    if deadline.saturating_duration_since(Instant::now()) <= pause {
                        break;
                    }
                    tokio::time::sleep(pause).await;
                }
            }
        }
        Err(Fault::unavailable(
            "the meta shard does not answer; repeat the call",
            Duration::from_secs(1),
        ))
    }

    pub(crate) async fn find_key(&self, kid: &str) -> Result<wire::FindKeyReply, Fault> {
        self.meta(|mut client, left| {
            let request = timed(wire::FindKeyRequest { key_id: kid.to_owned() }, left);
            async move { client.find_key(request).await }
        })
        .await
    }

    /// What each node says of itself; None where one does not answer in time.
    pub(crate) async fn statuses(&self) -> Vec<(NodeId, Option<wire::NodeStatusReply>)> {
        let asked = self
            .nodes
            .all()
            .into_iter()
            .map(|(node, channel)| async move { (node, node_status(channel, Duration::from_secs(2)).await) });
        futures::future::join_all(asked).await
    }

    /// The placement as last read, if any.
    pub(crate) fn known_placement(&self) -> Option<Arc<wire::Placement>> {
        self.placement.load_full()
    }

    pub(crate) async fn placement(&self, deadline: Instant) -> Result<Arc<wire::Placement>, Fault> {
        match self.placement.load_full() {
            Some(placement) => Ok(placement),
            None => self.refresh(deadline).await,
        }
    }

    async fn refresh(&self, deadline: Instant) -> Result<Arc<wire::Placement>, Fault> {
        let read = self
            .meta_until(deadline, |mut client, left| async move {
                client.get_placement(timed(wire::GetPlacementRequest {}, left)).await
            })
            .await?;
        Ok(self.learn(read))
    }

    /// Takes a placement if it is newer, and the ways to nodes that it names. Gives the newest.
    fn learn(&self, read: wire::Placement) -> Arc<wire::Placement> {
        let read = Arc::new(read);
        // A node that lags must not take us back.
        let newer = self
            .placement
            .load()
            .as_ref()
            .is_none_or(|known| read.version >= known.version);
        if newer {
            self.nodes.learn(&read.nodes);
            self.placement.store(Some(Arc::clone(&read)));
        }
        self.placement.load_full().unwrap_or(read)
    }

    /// The replica to ask: the leader if we know it, else the voters in turn.
    fn replica(&self, placement: &wire::Placement, shard: u32, attempt: usize) -> Option<(NodeId, Channel)> {
        if let Some(leader) = self.leaders.read().get(&shard).copied()
            && let Some(channel) = self.nodes.get(leader)
        {
            return Some((leader, channel));
        }
        let replicas = placement.shards.iter().find(|known| known.shard == shard)?;
        let reachable: Vec<(NodeId, Channel)> = replicas
            .replicas
            .iter()
            .filter_map(|replica| {
                let node = NodeId(replica.node);
                self.nodes.get(node).map(|channel| (node, channel))
            })
            .collect();
        reachable.get(attempt.checked_rem(reachable.len())?).cloned()
    }

    /// Replicas in turn, for reads that need not be the newest.
    fn any_replica(&self, placement: &wire::Placement, shard: u32) -> Option<(NodeId, Channel)> {
        let replicas = placement.shards.iter().find(|known| known.shard == shard)?;
        let voting = replicas
            .replicas
            .iter()
            .filter(|replica| replica.state == u32::from(ReplicaState::Voting.number()))
            .filter_map(|replica| {
                let node = NodeId(replica.node);
                self.nodes.get(node).map(|channel| (node, channel))
            });
        let reachable: Vec<(NodeId, Channel)> = voting.collect();
        let at = self.turn.fetch_add(1, Ordering::Relaxed);
        reachable.get(at.checked_rem(reachable.len())?).cloned()
    }

    /// The node to ask about the meta shard. Without a placement any node may know it.
    fn meta_replica(&self, attempt: usize) -> Option<(NodeId, Channel)> {
        let placement = self.placement.load_full();
        let holder = placement
            .as_ref()
            .and_then(|placement| self.replica(placement, ShardId::META.0, attempt));
        holder.or_else(|| {
            let all = self.nodes.all();
            let at = self.turn.fetch_add(1, Ordering::Relaxed);
            all.get(at.checked_rem(all.len())?).cloned()
        })
    }

    /// Ends when a call has not been answered for long and another node leads the shard: whoever was asked may be cut off,
    /// or stand still, and its answer will never come.
    async fn leads_elsewhere(&self, placement: &wire::Placement, shard: u32, asked: NodeId) -> NodeId {
        loop {
            tokio::time::sleep(SUSPICIOUS_AFTER).await;
            let replicas = placement.shards.iter().find(|known| known.shard == shard);
            let others = replicas
                .into_iter()
                .flat_map(|known| &known.replicas)
                .map(|replica| NodeId(replica.node))
                .filter(|node| *node != asked)
                .filter_map(|node| self.nodes.get(node).map(|channel| (node, channel)));
            let answers = others.map(|(node, channel)| async move {
                let status = node_status(channel, SUSPICIOUS_AFTER).await?;
                let leads = status
                    .shards
                    .iter()
                    .any(|known| known.shard == shard && known.is_leader);
                leads.then_some(node)
            });
            if let Some(leader) = futures::future::join_all(answers).await.into_iter().flatten().next() {
                return leader;
            }
        }
    }

    fn remember_leader(&self, shard: u32, node: NodeId) {
        if self.leaders.read().get(&shard) != Some(&node) {
            self.leaders.write().insert(shard, node);
        }
    }

    fn forget_leader(&self, shard: u32, node: NodeId) {
        let mut leaders = self.leaders.write();
        if leaders.get(&shard) == Some(&node) {
            leaders.remove(&shard);
        }
    }
}

async fn node_status(channel: Channel, patience: Duration) -> Option<wire::NodeStatusReply> {
    let mut client = MetaServiceClient::new(channel);
    let request = timed(wire::NodeStatusRequest {}, patience);
    let reply = tokio::time::timeout(patience, client.node_status(request)).await;
    reply.ok().and_then(Result::ok).map(Response::into_inner)
}

/// A request that tells the node how long its answer is waited for.
pub(crate) fn timed<T>(message: T, left: Duration) -> Request<T> {
    let mut request = Request::new(message);
    request.set_timeout(left);
    request
}

fn shard_of(placement: &wire::Placement, tenant: &TenantId) -> Result<u32, Fault> {
    placement
        .slots
        .get(usize::from(Slot::of(tenant).0))
        .copied()
        .ok_or_else(|| {
            tracing::error!(version = placement.version, "placement names no shard for a slot");
            Fault::unavailable("the placement of the cluster is incomplete", Duration::from_secs(2))
        })
}

fn backoff(attempt: usize) -> Duration {
    PAUSE_MIN.saturating_mul(1 << attempt.min(6)).min(PAUSE_MAX)
}

/// A failure in the middle of a stream, as our caller is told.
pub(crate) fn broken(status: &Status) -> Fault {
    match judge(status) {
        Next::GiveUp(fault) => fault,
        Next::Retry { .. } => Fault::unavailable(
            "the node ended the stream before it was complete; repeat the call",
            Duration::from_secs(1),
        ),
    }
}

fn judge(status: &Status) -> Next {
    match ErrorDetail::decode(status.details()) {
        Ok(detail) if !detail.code.is_empty() => judge_detail(&detail),
        _ => judge_bare(status),
    }
}

fn judge_detail(detail: &ErrorDetail) -> Next {
    let pause = Duration::from_millis(detail.retry_after_ms).min(PAUSE_MAX);
    match detail.family() {
        Family::NotExecuted if detail.retry_after_ms > PATIENCE_MAX.as_millis() as u64 => Next::GiveUp(told(detail)),
        Family::NotExecuted => Next::Retry {
            pause,
            refresh: detail.code == "wrong_shard",
            certain: true,
            leader: (detail.leader_node > 0).then_some(NodeId(detail.leader_node)),
        },
        Family::Unknown => Next::Retry {
            pause: pause.min(PAUSE_MIN),
            refresh: false,
            certain: false,
            leader: None,
        },
        Family::Halted => {
            tracing::error!(code = detail.code, shard = detail.shard, "a shard halted");
            Next::GiveUp(Fault::unavailable(
                "the shard of this tenant has stopped for safety; an operator must act",
                Duration::from_secs(30),
            ))
        }
        Family::Rejected | Family::Unspecified => Next::GiveUp(told(detail)),
    }
}

/// What the node says, as our caller is told.
fn told(detail: &ErrorDetail) -> Fault {
    if crate::error_codes::find(&detail.code).is_none() {
        tracing::error!(code = detail.code, "a node answered an unknown error code");
    }
    let mut fault = Fault::new(&detail.code, detail.message.clone()).with_field(&detail.field);
    if detail.retry_after_ms > 0 {
        fault = fault.with_retry_after(Duration::from_millis(detail.retry_after_ms));
    }
    if detail.current_version > 0 {
        fault = fault.with_current_version(detail.current_version);
    }
    fault
}

/// A status without our details comes from the transport, or from a node that failed badly.
fn judge_bare(status: &Status) -> Next {
    match status.code() {
        // Also a connection that broke, or a stream that was reset, while the node was at it: our own refusals all carry
        // details.
        Code::Unavailable | Code::Unknown | Code::Cancelled | Code::Aborted | Code::Internal => Next::Retry {
            pause: PAUSE_MIN,
            refresh: false,
            certain: false,
            leader: None,
        },
        Code::ResourceExhausted => Next::Retry {
            pause: PAUSE_MAX,
            refresh: false,
            certain: true,
            leader: None,
        },
        Code::DeadlineExceeded => Next::Retry {
            pause: Duration::ZERO,
            refresh: false,
            certain: false,
            leader: None,
        },
        code => {
            tracing::error!(?code, "a node refused a call without a reason");
            Next::GiveUp(Fault::internal())
        }
    }
}

fn exhausted(writes: bool, possibly_done: bool) -> Fault {
    let what = match (writes, possibly_done) {
        (true, true) => {
            "no answer in time; the write may have happened: repeat the call with the same request id, which is safe"
        }
        (true, false) => "no leader answered in time; nothing was written: repeat the call",
        (false, _) => "no node answered in time; repeat the call",
    };
    Fault::unavailable(what, Duration::from_secs(1))
}
