//! A new node asks to be let in, before it has anything but its certificate, its token and an empty directory.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use tonic::Status;
use waggle_memory::meta::{KeyId, NodeId, NodeInfo, Placement};
use waggle_proto::wire;

use super::peers::{Dial, Peers, cluster_client, elsewhere};

/// What a node says when it asks.
#[derive(Clone, Debug)]
pub struct JoinRequest {
    /// Itself.
    pub node: NodeInfo,
    /// Public part of its token.
    pub token: KeyId,
    /// SHA-256 of the token's secret.
    pub secret_hash: Vec<u8>,
    /// Nodes that may be asked, from the token.
    pub contacts: Vec<(NodeId, String)>,
}

/// Why a node was not let in.
#[derive(Clone, Debug, thiserror::Error)]
pub enum JoinError {
    /// The cluster said no.
    #[error("the cluster does not let this node in: {0}")]
    Refused(String),
    /// Nobody who could say yes answered.
    #[error("no node of the cluster answered for {} s; the last problem was: {last}", after.as_secs())]
    Unreachable {
        /// How long was asked.
        after: Duration,
        /// What the last one said.
        last: String,
    },
}

/// Asks until the meta shard's leader has answered. Asking again with the same directory is harmless.
pub async fn join(request: &JoinRequest, dial: Arc<dyn Dial>, within: Duration) -> Result<Placement, JoinError> {
    let peers = Peers::new(request.node.id, dial);
    let deadline = Instant::now() + within;
    let message = wire::JoinRequest {
        node: Some(wire::node_info(&request.node)),
        token_id: request.token.0.clone(),
        secret_hash: request.secret_hash.clone(),
    };
    let mut contacts = request.contacts.clone();
    let mut last = "the token names no node".to_owned();
    let mut at = 0;
    while Instant::now() < deadline && !contacts.is_empty() {
        let (node, address) = contacts[at % contacts.len()].clone();
        at += 1;
        let answer = match peers.channel_at(node, &address) {
            Ok(channel) => {
                let mut client = cluster_client(channel);
                let ask = client.join(message.clone());
                tokio::time::timeout(Duration::from_secs(5), ask)
                    .await
                    .unwrap_or_else(|_| Err(Status::deadline_exceeded("no answer within 5 s")))
            }
            Err(error) => Err(Status::unavailable(error.to_string())),
        };
        match answer {
            Ok(answer) => {
                return wire::placement_of(answer.into_inner()).map_err(|bad| JoinError::Refused(bad.to_string()));
            }
            Err(status) => {
                let Some(hint) = elsewhere(&status) else {
                    return Err(JoinError::Refused(status.message().to_owned()));
                };
                last = format!("node {} at {address}: {}", node.0, status.message());
                match hint.and_then(|hint| contacts.iter().position(|(known, _)| *known == hint)) {
                    Some(position) => at = position,
                    None => tokio::time::sleep(Duration::from_millis(200)).await,
                }
            }
        }
    }
    Err(JoinError::Unreachable { after: within, last })
}
