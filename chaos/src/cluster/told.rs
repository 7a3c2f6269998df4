//! What a cluster says of itself: to operators through a gateway, and each node on its own admin listener.

use std::collections::BTreeMap;
use std::fs;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::{COMMAND_MAX, Cluster, PAUSE};
use crate::checker::domain::Digest;

/// What a node says of one of its replicas.
#[derive(Clone, Debug)]
pub struct Replica {
    pub node: u64,
    pub shard: String,
    pub is_leader: bool,
    pub term: u64,
    pub applied_index: u64,
    pub halted: bool,
}

impl Cluster {
    /// Waits until every shard has a leader and as many voters as it is to have.
    pub async fn until_replicated(&self, longest: Duration) -> Result<()> {
        let deadline = Instant::now() + longest;
        loop {
            let shards = self.admin(&["shard", "list", "--json"]).await;
            if shards.as_ref().is_ok_and(|shards| self.is_replicated(shards)) {
                return Ok(());
            }
            if Instant::now() > deadline {
                let shards = shards.map_or_else(|error| format!("{error:#}"), |shards| shards.to_string());
                bail!("not every shard has its replicas after {longest:?}: {shards}");
            }
            tokio::time::sleep(PAUSE * 5).await;
        }
    }

    fn is_replicated(&self, listed: &Value) -> bool {
        let shards = listed["shards"].as_array().map(Vec::as_slice).unwrap_or_default();
        // The meta shard is one, too.
        shards.len() > self.shape.shards as usize
            && shards.iter().all(|shard| {
                let replicas = shard["replicas"].as_array().map_or(0, Vec::len) as u64;
                shard["leader"].is_u64()
                    && shard["voters"].as_u64() == Some(self.shape.nodes.min(3))
                    && replicas == self.shape.nodes.min(3)
            })
    }

    /// What a node says of itself on its own admin listener, which no wire of ours is part of.
    pub async fn look(&self, node: u64) -> Result<Vec<Replica>> {
        let admin = self.nodes.get(&node).context("there is no such node")?.admin;
        let answer = self.http.get(format!("http://{admin}/status")).send().await?;
        let status: Value = serde_json::from_slice(&answer.bytes().await?).context("read the status")?;
        let shards = status["shards"].as_array().cloned().unwrap_or_default();
        let replicas = shards.iter().map(|shard| Replica {
            node,
            shard: shard["shard"].as_str().unwrap_or_default().to_owned(),
            is_leader: shard["is_leader"] == true,
            term: shard["term"].as_u64().unwrap_or(0),
            applied_index: shard["applied_index"].as_u64().unwrap_or(0),
            halted: shard["halted"].as_str().is_some() || shard["halted"] == true,
        });
        Ok(replicas.collect())
    }

    /// Who leads each shard, by the highest term.
    pub async fn leaders(&self) -> BTreeMap<String, u64> {
        let mut leaders: BTreeMap<String, (u64, u64)> = BTreeMap::new();
        for &node in self.nodes.keys() {
            for replica in self.look(node).await.unwrap_or_default() {
                let best = leaders.entry(replica.shard).or_default();
                if replica.is_leader && replica.term >= best.0 {
                    *best = (replica.term, node);
                }
            }
        }
        let led = leaders.into_iter().filter(|(_, (_, node))| *node > 0);
        led.map(|(shard, (_, node))| (shard, node)).collect()
    }

    /// The digest of every replica that answers, as an operator is told.
    pub async fn digests(&self) -> Result<Vec<Digest>> {
        let admin = self.gateways.get(&1).context("there is no gateway")?.admin;
        let key = fs::read_to_string(self.root.join("node-1/data/secrets/operator-key"))?;
        let mut seen = Vec::new();
        for shard in 0..=self.shape.shards {
            let url = format!("http://{admin}/api/admin/shards/{shard}/digests");
            let asking = self.http.get(&url).bearer_auth(key.trim()).timeout(COMMAND_MAX);
            let answer = asking.send().await.context("ask for digests")?;
            let answer: Value = serde_json::from_slice(&answer.bytes().await?).context("read the digests")?;
            let replicas = answer["replicas"]
                .as_array()
                .with_context(|| format!("find replicas in {answer}"))?;
            for replica in replicas {
                // One that does not answer has a problem instead.
                if let (Some(node), Some(digest)) = (replica["node"].as_u64(), replica["digest"].as_str()) {
                    seen.push(Digest {
                        node,
                        shard: format!("shard {shard}"),
                        applied_index: replica["applied_index"].as_u64().unwrap_or(0),
                        digest: digest.to_owned(),
                    });
                }
            }
        }
        Ok(seen)
    }

    /// The digests once all replicas of each shard are equally far, or what there is after that time.
    pub async fn level_digests(&self, longest: Duration) -> Result<Vec<Digest>> {
        let deadline = Instant::now() + longest;
        loop {
            let seen = self.digests().await?;
            let mut indexes: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
            for digest in &seen {
                indexes.entry(&digest.shard).or_default().push(digest.applied_index);
            }
            let level = indexes
                .values()
                .all(|at| at.iter().all(|index| Some(index) == at.first()));
            if level || Instant::now() > deadline {
                return Ok(seen);
            }
            tokio::time::sleep(PAUSE * 10).await;
        }
    }
}
