//! Clients that put load on a server, and what they saw.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use waggle_tests::machine::{cpu_seconds, millis, quantile, round};
use waggle_tests::mcp::{Answer, Client};
use waggle_tests::server::Dev;
use waggle_tests::texts::{self, Dice};

use crate::report::Report;

pub(crate) const PROJECT: &str = "bench";
/// Vectors may follow their texts; a server that never gets there ends the run.
const DRAIN_MAX: Duration = Duration::from_secs(600);

#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Kind {
    Store,
    Query,
}

#[derive(Clone, Copy)]
pub(crate) enum Limit {
    Time(Duration),
    /// Until the tenant has so many memories.
    Count(u64),
}

pub(crate) struct Load {
    pub(crate) kind: Kind,
    pub(crate) size: u64,
    pub(crate) clients: usize,
    pub(crate) limit: Limit,
}

/// What one client saw.
#[derive(Default)]
struct Seen {
    micros: Vec<u64>,
    text_first: u64,
    problems: Vec<String>,
}

/// A closed loop: every client sends its next call when the last was answered.
pub(crate) async fn measure(dev: &Dev, load: &Load, stored: &Arc<AtomicU64>, report: &Report) -> Result<Value> {
    let cpu_before = cpu_seconds(dev.pid())?;
    let began = Instant::now();
    let progress = Arc::new(AtomicU64::new(0));
    let mut clients = JoinSet::new();
    for number in 0..load.clients {
        let client = Client::of(dev)?;
        let (kind, limit, stored, progress) = (load.kind, load.limit, stored.clone(), progress.clone());
        clients.spawn(async move { one_client(&client, kind, limit, number as u64, began, &stored, &progress).await });
    }
    let mut all = Seen::default();
    let mut said = Instant::now();
    while !clients.is_empty() {
        tokio::select! {
            ended = clients.join_next() => {
                let seen = ended.context("all clients are gone")?.context("a client panicked")?;
                all.micros.extend(seen.micros);
                all.text_first += seen.text_first;
                all.problems.extend(seen.problems);
            }
            () = tokio::time::sleep(Duration::from_secs(1)) => {
                if said.elapsed() > Duration::from_secs(10) {
                    said = Instant::now();
                    report.say(&format!("  {} calls so far", progress.load(Ordering::Relaxed)));
                }
            }
        }
    }
    let seconds = began.elapsed().as_secs_f64();
    let calls = all.micros.len();
    if let Some(problem) = all.problems.first() {
        ensure!(
            all.problems.len() * 100 <= calls,
            "{} of {calls} calls failed, such as: {problem}",
            all.problems.len()
        );
    }
    // Work that a store leaves for later is still the store's work, and must not disturb the next figure.
    let drained = drain(dev, load.kind).await?;
    all.micros.sort_unstable();
    Ok(json!({
        "bench": match load.kind { Kind::Store => "store_node", Kind::Query => "query_graph" },
        "size": load.size,
        "clients": load.clients,
        "calls": calls,
        "calls_per_s": round(calls as f64 / seconds),
        "ms_p50": quantile(&all.micros, 50),
        "ms_p95": quantile(&all.micros, 95),
        "ms_p99": quantile(&all.micros, 99),
        "server_cpu_ms_per_call": round((cpu_seconds(dev.pid())? - cpu_before) * 1e3 / calls.max(1) as f64),
        "failed": all.problems.len(),
        "text_first": all.text_first,
        "drain_ms": drained.map(millis),
    }))
}

async fn one_client(
    client: &Client,
    kind: Kind,
    limit: Limit,
    number: u64,
    began: Instant,
    stored: &AtomicU64,
    progress: &AtomicU64,
) -> Seen {
    let mut seen = Seen::default();
    let mut dice = Dice::new(0x10ad ^ (number << 32));
    loop {
        let (tool, arguments) = match kind {
            Kind::Store => {
                let index = stored.fetch_add(1, Ordering::Relaxed);
                if matches!(limit, Limit::Count(count) if index >= count) {
                    stored.fetch_sub(1, Ordering::Relaxed);
                    return seen;
                }
                let (label, content) = texts::fact(index);
                let memory = json!({ "label": label, "content": content, "node_type": "fact", "project": PROJECT });
                ("store_node", memory)
            }
            Kind::Query => {
                let index = dice.below(stored.load(Ordering::Relaxed));
                (
                    "query_graph",
                    json!({ "query": texts::question(index), "project": PROJECT, "max_nodes": 8 }),
                )
            }
        };
        let sent = Instant::now();
        match client.call(tool, arguments).await.and_then(Answer::ok) {
            Ok(answer) => {
                seen.micros
                    .push(u64::try_from(sent.elapsed().as_micros()).unwrap_or(u64::MAX));
                seen.text_first += u64::from(kind == Kind::Store && awaits_vector(&answer.structured));
            }
            Err(problem) => seen.problems.push(format!("{problem:#}")),
        }
        progress.fetch_add(1, Ordering::Relaxed);
        if matches!(limit, Limit::Time(longest) if began.elapsed() >= longest) || seen.problems.len() > 100 {
            return seen;
        }
    }
}

/// A store that was committed with its text only, because the encoder had more to do than the budget allows.
fn awaits_vector(answer: &Value) -> bool {
    answer["embedding_status"] == "pending"
}

/// Waits until no memory awaits its vector; nothing when the server does not tell.
async fn drain(dev: &Dev, kind: Kind) -> Result<Option<Duration>> {
    if kind == Kind::Query {
        return Ok(None);
    }
    let client = Client::of(dev)?;
    let began = Instant::now();
    loop {
        let stats = client.call("get_stats", json!({ "project": PROJECT })).await?.ok()?;
        match awaiting(&stats.structured) {
            None => return Ok(None),
            Some(0) => return Ok(Some(began.elapsed())),
            Some(left) if began.elapsed() > DRAIN_MAX => bail!("{left} memories still await their vector"),
            Some(_) => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    }
}

/// The number of memories without a vector, as get_stats tells it.
fn awaiting(stats: &Value) -> Option<u64> {
    [&stats["embedding_status"]["awaiting"], &stats["awaiting_vectors"]]
        .into_iter()
        .find_map(Value::as_u64)
}
