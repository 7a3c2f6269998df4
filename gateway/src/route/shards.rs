//! Calls about one shard instead of one tenant.

use std::future::Future;
use std::time::Duration;

use tokio::time::Instant;
use tonic::transport::Channel;
use tonic::{Response, Status};
use waggle_memory::meta::NodeId;
use waggle_proto::wire;
use waggle_proto::wire::meta_service_client::MetaServiceClient;

use super::{ATTEMPTS_MAX, Cluster, META_DEADLINE, Next, backoff, judge, timed};
use crate::fault::Fault;

/// Comparisons of replicas that are at different entries.
const DIGEST_TRIES_MAX: usize = 8;

type Digests = Vec<(NodeId, Result<wire::ShardDigestReply, String>)>;

impl Cluster {
    /// Calls MetaService at the node that leads a shard.
    pub(crate) async fn at_leader<R, F>(
        &self,
        shard: u32,
        send: impl Fn(MetaServiceClient<Channel>, Duration) -> F,
    ) -> Result<R, Fault>
    where
        F: Future<Output = Result<Response<R>, Status>>,
    {
        let deadline = Instant::now() + 2 * META_DEADLINE;
        let placement = self.placement(deadline).await?;
        for attempt in 0..ATTEMPTS_MAX {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            let Some((node, channel)) = self.replica(&placement, shard, attempt) else {
                return Err(Fault::validation("shard", "is not a shard of this cluster"));
            };
            let answer = tokio::time::timeout(left, send(MetaServiceClient::new(channel), left)).await;
            let status = match answer {
                Ok(Ok(response)) => return Ok(response.into_inner()),
                Ok(Err(status)) => status,
                Err(_) => break,
            };
            match judge(&status) {
                Next::GiveUp(fault) => return Err(fault),
                Next::Retry { pause, leader, .. } => {
                    self.forget_leader(shard, node);
                    if let Some(leader) = leader {
                        self.remember_leader(shard, leader);
                    }
                    tokio::time::sleep(pause.max(backoff(attempt))).await;
                }
            }
        }
        Err(Fault::unavailable(
            "the shard has no leader that answers; look at `waggle shard list`",
            Duration::from_secs(1),
        ))
    }

    /// The digest of every replica, all at the same entry unless the shard is written to all the time.
    pub(crate) async fn digests(&self, shard: u32, patience: Duration) -> Result<Digests, Fault> {
        let mut at_least = 0;
        let mut found = Vec::new();
        for _ in 0..DIGEST_TRIES_MAX {
            found = self.digests_from(shard, at_least, patience).await?;
            let applied = found
                .iter()
                .filter_map(|(_, reply)| reply.as_ref().ok())
                .map(|reply| reply.applied_index);
            let (least, most) = (applied.clone().min(), applied.max());
            if least == most {
                break;
            }
            at_least = most.unwrap_or(0);
        }
        Ok(found)
    }

    /// The digest of every replica at an entry or a later one.
    async fn digests_from(&self, shard: u32, at_least: u64, patience: Duration) -> Result<Digests, Fault> {
        let applied = self
            .at_leader(shard, |mut client, left| async move {
                let request = wire::NodeStatusRequest {};
                let status = client.node_status(timed(request, left)).await?.into_inner();
                match status
                    .shards
                    .into_iter()
                    .find(|known| known.shard == shard && known.is_leader)
                {
                    Some(led) => Ok(Response::new(led.applied_index)),
                    None => Err(Status::unavailable("this node does not lead the shard")),
                }
            })
            .await?
            .max(at_least);
        let placement = self.placement(Instant::now() + META_DEADLINE).await?;
        let replicas = placement.shards.iter().find(|known| known.shard == shard);
        let nodes = replicas.into_iter().flat_map(|known| &known.replicas);
        let asked = nodes.map(|replica| async move {
            let node = NodeId(replica.node);
            let Some(channel) = self.nodes.get(node) else {
                return (node, Err("no way to it is known here".to_owned()));
            };
            let request = wire::ShardDigestRequest {
                shard,
                applied_index_min: applied,
            };
            let mut client = MetaServiceClient::new(channel);
            let reply = tokio::time::timeout(patience, client.shard_digest(timed(request, patience))).await;
            let reply = match reply {
                Ok(Ok(reply)) => Ok(reply.into_inner()),
                Ok(Err(status)) => Err(status.message().to_owned()),
                Err(_) => Err("it did not answer in time".to_owned()),
            };
            (node, reply)
        });
        Ok(futures::future::join_all(asked).await)
    }
}
