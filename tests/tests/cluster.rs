//! A cluster of real processes loses a node, is restarted node by node, and does not let a node in that forgot everything.
//! Clients write all the time and repeat a call as MCP clients do: not at all, unless it was never answered.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use waggle_tests::cluster::Cluster;
use waggle_tests::mcp::Client;

const WRITERS: usize = 8;
/// Writes that must be acknowledged after a fault before a test goes on.
const AFTER_FAULT: usize = 100;
const PROGRESS_MAX: Duration = Duration::from_secs(60);

/// What writers were told.
#[derive(Default)]
struct Told {
    acknowledged: Vec<String>,
    refused: Vec<String>,
}

/// Writers at all gateways, until they are told to stop.
struct Writers {
    tasks: JoinSet<Result<Told>>,
    stop: Arc<AtomicBool>,
    acknowledged: Arc<AtomicUsize>,
}

impl Writers {
    fn start(cluster: &Cluster) -> Result<Self> {
        let (stop, acknowledged) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let mut tasks = JoinSet::new();
        for writer in 0..WRITERS {
            let url = &cluster.gateways[writer % cluster.gateways.len()];
            let client = Client::new(url, &cluster.dev.api_key)?;
            tasks.spawn(write(client, writer, Arc::clone(&stop), Arc::clone(&acknowledged)));
        }
        Ok(Self {
            tasks,
            stop,
            acknowledged,
        })
    }

    /// Waits until so many more writes are acknowledged.
    async fn progress(&self, more: usize) -> Result<()> {
        let (from, deadline) = (self.acknowledged.load(Ordering::Relaxed), Instant::now() + PROGRESS_MAX);
        while self.acknowledged.load(Ordering::Relaxed) < from + more {
            ensure!(Instant::now() < deadline, "the cluster acknowledges no writes");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Ok(())
    }

    async fn end(mut self) -> Result<Told> {
        self.stop.store(true, Ordering::Relaxed);
        let mut all = Told::default();
        while let Some(told) = self.tasks.join_next().await {
            let told = told.context("a writer")??;
            all.acknowledged.extend(told.acknowledged);
            all.refused.extend(told.refused);
        }
        Ok(all)
    }
}

async fn write(client: Client, writer: usize, stop: Arc<AtomicBool>, acknowledged: Arc<AtomicUsize>) -> Result<Told> {
    let mut told = Told::default();
    let mut number = 0;
    while !stop.load(Ordering::Relaxed) {
        let request_id = format!("cluster-{writer}-{number}");
        let answer = client
            .call_once("store_node", Cluster::memory(writer, number), &request_id)
            .await?;
        match answer.ok() {
            Ok(answer) => {
                told.acknowledged.push(answer.str("id")?.to_owned());
                acknowledged.fetch_add(1, Ordering::Relaxed);
            }
            Err(refused) => told.refused.push(format!("{request_id}: {refused}")),
        }
        number += 1;
    }
    Ok(told)
}

/// Every acknowledged memory is there, once, and nothing else is.
async fn nothing_is_lost(cluster: &Cluster, told: &Told) -> Result<()> {
    let client = Client::new(&cluster.gateways[0], &cluster.dev.api_key)?;
    let mut ids = told.acknowledged.clone();
    ids.sort();
    ids.dedup();
    ensure!(ids.len() == told.acknowledged.len(), "two writes gave one memory");
    for id in &ids {
        let answer = client
            .call("get_related", json!({"node_id": id, "max_depth": 0}))
            .await?;
        answer.ok().with_context(|| format!("read {id} back"))?;
    }
    let stats = client.call("get_stats", json!({})).await?.ok()?;
    let total = stats.structured["total_nodes"].as_u64().context("total_nodes")?;
    ensure!(
        total == ids.len() as u64,
        "{} writes were acknowledged, {total} memories are there",
        ids.len()
    );
    Ok(())
}

fn folder() -> Result<tempfile::TempDir> {
    tempfile::tempdir().context("make a folder")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_leader_loses_nothing_and_comes_back() -> Result<()> {
    let folder = folder()?;
    let mut cluster = Cluster::start(&folder.path().join("data"), 4)?;
    let writers = Writers::start(&cluster)?;
    writers.progress(AFTER_FAULT).await?;

    let leader = cluster.busiest_leader().await?;
    cluster.kill_nine(leader)?;
    writers.progress(AFTER_FAULT).await?;
    cluster.start_node(leader)?;
    writers.progress(AFTER_FAULT).await?;
    let told = writers.end().await?;

    ensure!(told.refused.is_empty(), "{:?}", told.refused);
    cluster.whole().await?;
    nothing_is_lost(&cluster, &told).await?;
    cluster.replicas_are_equal().await?;
    cluster.stop()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rolling_restart_of_all_nodes_fails_no_call() -> Result<()> {
    let folder = folder()?;
    let mut cluster = Cluster::start(&folder.path().join("data"), 4)?;
    let writers = Writers::start(&cluster)?;
    for node in 1..=3 {
        writers.progress(AFTER_FAULT).await?;
        cluster.stop_node(node)?;
        writers.progress(AFTER_FAULT).await?;
        cluster.start_node(node)?;
        cluster.whole().await?;
    }
    let told = writers.end().await?;
    ensure!(told.refused.is_empty(), "{:?}", told.refused);
    nothing_is_lost(&cluster, &told).await?;
    cluster.replicas_are_equal().await?;
    cluster.stop()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_lost_its_directory_is_not_let_in_under_its_old_number() -> Result<()> {
    let folder = folder()?;
    let mut cluster = Cluster::start(&folder.path().join("data"), 2)?;
    cluster.kill_nine(3)?;
    let data = cluster.node(3)?.data_dir.clone();
    std::fs::remove_dir_all(&data).context("lose the data of node 3")?;

    // Its old token is there, and a new one would not help either: the number is taken.
    let (status, said) = cluster.start_refused(3)?;
    ensure!(status.code() == Some(78), "it ended with {status}: {said}");
    ensure!(said.contains("does not let this node in"), "{said}");

    // The others go on.
    let client = Client::new(&cluster.gateways[1], &cluster.dev.api_key)?;
    client.call("store_node", Cluster::memory(0, 0)).await?.ok()?;
    cluster.stop()
}

#[tokio::test(flavor = "multi_thread")]
async fn leadership_goes_where_an_operator_sends_it_and_leaves_a_drained_node() -> Result<()> {
    let folder = folder()?;
    let cluster = Cluster::start(&folder.path().join("data"), 2)?;
    let leader_of = |cluster: &Value, number: u64| -> Option<u64> {
        let shards = cluster["shards"].as_array()?;
        shards.iter().find(|shard| shard["shard"] == number)?["leader"].as_u64()
    };
    let before = leader_of(&cluster.admin("/api/admin/cluster").await?, 1).context("shard 1 has a leader")?;
    let other = if before == 3 { 2 } else { 3 };
    let moved = cluster
        .post("/api/admin/shards/1/leader", &json!({"to_node": other}))
        .await?;
    ensure!(moved["leader"] == other, "{moved}");

    cluster
        .post(
            &format!("/api/admin/nodes/{other}/state"),
            &json!({"state": "draining"}),
        )
        .await?;
    let deadline = Instant::now() + PROGRESS_MAX;
    loop {
        let now = cluster.admin("/api/admin/cluster").await?;
        let shards = now["shards"].as_array().context("shards")?;
        if shards
            .iter()
            .all(|shard| shard["leader"].as_u64().is_some_and(|leader| leader != other))
        {
            break;
        }
        ensure!(Instant::now() < deadline, "node {other} still leads: {now}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    cluster.replicas_are_equal().await?;
    cluster.stop()
}
