//! Channels to other nodes. How one is opened is the process's affair ([`Dial`]); where a node is, the placement says.

use std::collections::HashMap;
use std::future::Future;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::Mutex;
use prost::Message as _;
use tokio::time::Instant;
use tonic::transport::Channel;
use tonic::{Response, Status};
use waggle_memory::meta::{NodeId, NodeState, Placement, ShardId};
use waggle_proto::wire::ErrorDetail;
use waggle_proto::wire::cluster_service_client::ClusterServiceClient;

use super::Known;

/// Pause between two rounds of asking nodes for the meta shard's leader.
const ASK_AGAIN: Duration = Duration::from_millis(100);
/// Largest message between nodes: an append holds at least one entry, and the largest entry is half of this.
pub(crate) const PEER_BYTES_MAX: usize = 32 * 1024 * 1024;

/// Why there is no channel.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct DialError(pub String);

/// Opens channels to other nodes, with the process's certificate.
pub trait Dial: Send + Sync + 'static {
    /// A channel that connects at its first call and again after every loss. `address` is what the node told the cluster;
    /// the process may know a better one.
    fn channel(&self, node: NodeId, address: &str) -> Result<Channel, DialError>;
}

/// For a cluster of one process.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoPeers;

impl Dial for NoPeers {
    fn channel(&self, node: NodeId, _address: &str) -> Result<Channel, DialError> {
        Err(DialError(format!("this process has no way to {node}")))
    }
}

/// Channels by node, opened once for each address.
pub(crate) struct Peers {
    this: NodeId,
    dial: Arc<dyn Dial>,
    known: OnceLock<Arc<Known>>,
    channels: Mutex<HashMap<NodeId, (String, Channel)>>,
}

impl Peers {
    pub(crate) fn new(this: NodeId, dial: Arc<dyn Dial>) -> Self {
        Self {
            this,
            dial,
            known: OnceLock::new(),
            channels: Mutex::new(HashMap::new()),
        }
    }

    /// From now on addresses are looked up here.
    pub(crate) fn look_up_in(&self, known: Arc<Known>) {
        let _ = self.known.set(known);
    }

    /// A channel to a node; `fallback` is used as long as the placement does not say where it is.
    pub(crate) fn channel(&self, node: NodeId, fallback: &str) -> Result<Channel, DialError> {
        let placement = self.known.get().map(|known| known.load());
        let address = placement
            .as_ref()
            .and_then(|placement| placement.node(node))
            .map_or(fallback, |info| info.address.as_str());
        self.channel_at(node, address)
    }

    pub(crate) fn channel_at(&self, node: NodeId, address: &str) -> Result<Channel, DialError> {
        let mut channels = self.channels.lock();
        if let Some((known, channel)) = channels.get(&node)
            && known == address
        {
            return Ok(channel.clone());
        }
        let channel = self.dial.channel(node, address)?;
        channels.insert(node, (address.to_owned(), channel.clone()));
        Ok(channel)
    }

    /// A channel that was found to be dead is opened anew.
    pub(crate) fn forget(&self, node: NodeId) {
        self.channels.lock().remove(&node);
    }

    /// A call to another node's ClusterService.
    pub(crate) fn cluster(&self, node: NodeId, fallback: &str) -> Result<ClusterServiceClient<Channel>, DialError> {
        self.channel(node, fallback).map(cluster_client)
    }

    /// Asks nodes in turn until the meta shard's leader has answered. An answer that is not "ask somebody else" ends it.
    pub(crate) async fn ask_meta<R, F>(
        &self,
        placement: &Placement,
        deadline: Instant,
        send: impl Fn(ClusterServiceClient<Channel>) -> F,
    ) -> Result<R, Status>
    where
        F: Future<Output = Result<Response<R>, Status>>,
    {
        let mut candidates: Vec<NodeId> = meta_nodes(placement).filter(|node| *node != self.this).collect();
        let mut last = Status::unavailable("no other node holds the meta shard");
        let mut at = 0;
        while Instant::now() < deadline && !candidates.is_empty() {
            let node = candidates[at % candidates.len()];
            let fallback = placement.node(node).map_or("", |info| info.address.as_str());
            let answer = match self.cluster(node, fallback) {
                Ok(client) => tokio::time::timeout_at(deadline, send(client))
                    .await
                    .unwrap_or_else(|_| Err(Status::deadline_exceeded("no answer in time"))),
                Err(error) => Err(Status::unavailable(error.to_string())),
            };
            match answer {
                Ok(answer) => return Ok(answer.into_inner()),
                Err(status) => {
                    let Some(hint) = elsewhere(&status) else {
                        return Err(status);
                    };
                    last = status;
                    at = match candidates.iter().position(|candidate| Some(*candidate) == hint) {
                        Some(position) if position != at % candidates.len() => position,
                        _ => {
                            if let Some(hint) = hint.filter(|hint| *hint != self.this && !candidates.contains(hint)) {
                                candidates.push(hint);
                            }
                            tokio::time::sleep_until((Instant::now() + ASK_AGAIN).min(deadline)).await;
                            at + 1
                        }
                    };
                }
            }
        }
        Err(last)
    }
}

pub(crate) fn cluster_client(channel: Channel) -> ClusterServiceClient<Channel> {
    ClusterServiceClient::new(channel)
        .max_decoding_message_size(PEER_BYTES_MAX)
        .max_encoding_message_size(PEER_BYTES_MAX)
}

/// Nodes that hold the meta shard, or, if none is known, all.
fn meta_nodes(placement: &Placement) -> impl Iterator<Item = NodeId> {
    let holders: Vec<NodeId> = placement
        .shard(ShardId::META)
        .map(|shard| shard.replicas.iter().map(|replica| replica.node).collect())
        .unwrap_or_default();
    let others = placement
        .nodes
        .iter()
        .filter(|node| holders.is_empty() && node.state != NodeState::Gone)
        .map(|node| node.id)
        .collect::<Vec<_>>();
    holders.into_iter().chain(others)
}

/// Whether somebody else is to be asked, and whom. None: this answer is final.
pub(crate) fn elsewhere(status: &Status) -> Option<Option<NodeId>> {
    match ErrorDetail::decode(status.details()) {
        Ok(detail) if !detail.code.is_empty() => match detail.family() {
            waggle_proto::wire::error_detail::Family::NotExecuted
            | waggle_proto::wire::error_detail::Family::Unknown => {
                Some((detail.leader_node > 0).then_some(NodeId(detail.leader_node)))
            }
            _ => None,
        },
        // From the transport.
        _ => Some(None),
    }
}
