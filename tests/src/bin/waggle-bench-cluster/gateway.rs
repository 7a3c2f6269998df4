//! Calls of tools through the gateways, over HTTP/2 and as many connections as everything else.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use serde_json::{Value, json};
use tonic::body::Body;
use tonic::transport::Channel;
use tower::ServiceExt as _;
use waggle_gateway::keys::ApiKeyText;
use waggle_tests::texts::{self, Dice};

use crate::cluster::{PROJECT, Running};
use crate::drive::{Call, connections, plain};
use crate::node::{Nodes, Tenant};

/// Facts with lower numbers are what the tenants were filled with.
pub(crate) const FIRST_FACT: u64 = 1_000_000;
const PROTOCOL: &str = "2025-11-25";
const DRAIN_MAX: Duration = Duration::from_secs(600);

/// Agents of one tenant and of many.
pub(crate) struct Agents {
    gateways: Vec<String>,
    one: Arc<Vec<String>>,
    many: Arc<Vec<String>>,
}

impl Agents {
    /// Makes a key for each of the many tenants; the one tenant has the key of the cluster's start.
    pub(crate) async fn new(running: &Running, nodes: &Nodes, many: &[Tenant]) -> Result<Self> {
        let pepper = std::fs::read_to_string(running.pepper()?).context("read the pepper")?;
        let mut keys = Vec::new();
        for tenant in many {
            let key = ApiKeyText::make("dev")?;
            nodes.admit(&tenant.name, &key, pepper.trim()).await?;
            keys.push(key.reveal());
        }
        Ok(Self {
            gateways: running.gateways.clone(),
            one: Arc::new(vec![running.api_key.clone()]),
            many: Arc::new(keys),
        })
    }

    async fn channels(&self, clients: usize) -> Result<Vec<Channel>> {
        let mut channels = Vec::new();
        for at in 0..connections(clients) {
            channels.push(plain(&self.gateways[at % self.gateways.len()]).await?);
        }
        Ok(channels)
    }

    /// Every call stores a fact that nobody stored before.
    pub(crate) async fn stores(&self, clients: usize, is_many: bool, stored: &Arc<AtomicU64>) -> Result<Call> {
        let (channels, stored) = (self.channels(clients).await?, Arc::clone(stored));
        let keys = Arc::clone(if is_many { &self.many } else { &self.one });
        Ok(Arc::new(move |client, number| {
            let (label, content) = texts::fact(stored.fetch_add(1, Ordering::Relaxed));
            let memory = json!({ "label": label, "content": content, "node_type": "fact", "project": PROJECT });
            let key = key_of(&keys, number);
            let channel = channels[client % channels.len()].clone();
            Box::pin(async move { tool(channel, &key, "store_node", memory).await.map(drop) })
        }))
    }

    /// Questions about what was stored, to the one tenant.
    pub(crate) async fn recalls(&self, clients: usize, stored: &Arc<AtomicU64>) -> Result<Call> {
        let channels = self.channels(clients).await?;
        let count = stored.load(Ordering::Relaxed).saturating_sub(FIRST_FACT);
        let keys = Arc::clone(&self.one);
        Ok(Arc::new(move |client, number| {
            let index = FIRST_FACT + Dice::new(number).below(count);
            let question = json!({ "query": texts::question(index), "project": PROJECT, "max_nodes": 8 });
            let key = key_of(&keys, number);
            let channel = channels[client % channels.len()].clone();
            Box::pin(async move { tool(channel, &key, "query_graph", question).await.map(drop) })
        }))
    }

    /// Waits until no memory awaits its vector: that is work of the stores, and must not disturb the next point.
    pub(crate) async fn drain(&self, is_many: bool) -> Result<()> {
        let channel = self.channels(1).await?.pop().context("no gateway")?;
        let keys = if is_many { &self.many } else { &self.one };
        let deadline = Instant::now() + DRAIN_MAX;
        for key in keys.iter() {
            loop {
                let stats = tool(channel.clone(), key, "get_stats", json!({ "project": PROJECT })).await?;
                match stats["result"]["structuredContent"]["embedding_status"]["awaiting"].as_u64() {
                    None | Some(0) => break,
                    Some(left) if Instant::now() > deadline => bail!("{left} memories still await their vector"),
                    Some(_) => tokio::time::sleep(Duration::from_millis(50)).await,
                }
            }
        }
        Ok(())
    }
}

fn key_of(keys: &[String], number: u64) -> String {
    let at = usize::try_from(number % keys.len().max(1) as u64).unwrap_or(0);
    keys.get(at).cloned().unwrap_or_default()
}

async fn tool(channel: Channel, key: &str, name: &str, arguments: Value) -> Result<Value> {
    let body = json!({
        "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": name, "arguments": arguments },
    });
    let request = http::Request::post("/mcp")
        .header("authorization", format!("Bearer {key}"))
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", PROTOCOL)
        .body(Body::new(Full::new(Bytes::from(body.to_string()))))?;
    let response = channel.oneshot(request).await.context("send a call")?;
    let status = response.status();
    let bytes = response
        .into_body()
        .collect()
        .await
        .context("read an answer")?
        .to_bytes();
    ensure!(
        status.is_success(),
        "HTTP {status}: {}",
        String::from_utf8_lossy(&bytes)
    );
    let answer: Value = serde_json::from_slice(&bytes).context("read an answer")?;
    ensure!(
        answer["result"].is_object() && answer["result"]["isError"] != true,
        "{name}: {answer}"
    );
    Ok(answer)
}
