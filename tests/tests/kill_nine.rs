//! kill -9 while many clients write, again and again on the same data (I-03, I-09, I-10).
//!
//! The test keeps a ledger outside of the server. A store that was answered is *acknowledged* and must be there for
//! ever, once. A store whose answer never came is *unknown*: it may have happened or not, and is sent again after the
//! restart under its old request id, which must give one memory in either case. `WAGGLE_KILLS` says how often,
//! `WAGGLE_SEED` repeats the moments of a run (not its interleaving: that is up to the machine).

use std::env;
use std::hash::{BuildHasher, RandomState};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use waggle_tests::mcp::Client;
use waggle_tests::server::Dev;
use waggle_tests::texts::{self, Dice};

const WRITERS: u64 = 6;
const READERS: usize = 6;
const PROJECT: &str = "kill-nine";
/// A server that is ready must acknowledge the first of many writes within this time.
const FIRST_ACK_MAX: Duration = Duration::from_secs(30);

/// One store: its number gives its text and its request id.
#[derive(Clone)]
struct Acknowledged {
    index: u64,
    id: String,
}

struct Round {
    acknowledged: Vec<Acknowledged>,
    unknown: Vec<u64>,
}

fn setting(name: &str) -> Result<Option<u64>> {
    match env::var(name) {
        Ok(text) => Ok(Some(
            text.parse().with_context(|| format!("{name}={text}: not a number"))?,
        )),
        Err(_) => Ok(None),
    }
}

fn memory(index: u64) -> Value {
    let (label, content) = texts::fact(index);
    json!({ "label": label, "content": content, "node_type": "fact", "project": PROJECT })
}

async fn store(client: &Client, index: u64) -> Result<Acknowledged> {
    let answer = client
        .call_once("store_node", memory(index), &format!("kill-nine-{index}"))
        .await?
        .ok()?;
    Ok(Acknowledged {
        index,
        id: answer.str("id")?.to_owned(),
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn acknowledged_memories_survive_kill_nine_and_nothing_happens_twice() -> Result<()> {
    let kills = setting("WAGGLE_KILLS")?.unwrap_or(10);
    let seed = setting("WAGGLE_SEED")?.unwrap_or_else(|| RandomState::new().hash_one("kill nine") >> 1);
    eprintln!("kill -9, {kills} times; to repeat: WAGGLE_SEED={seed} WAGGLE_KILLS={kills}");
    let folder = tempfile::tempdir().context("make a folder for the data")?;
    let data = folder.path().join("data");
    let outcome = run(&data, kills, seed).await;
    if outcome.is_err() {
        // The evidence stays: a loss that cannot be looked at cannot be understood.
        let kept = folder.keep();
        eprintln!("seed {seed}; the data and the log are kept in {}", kept.display());
    }
    outcome
}

async fn run(data: &Path, kills: u64, seed: u64) -> Result<()> {
    let mut dice = Dice::new(seed);
    let next_index = Arc::new(AtomicU64::new(0));
    let mut ledger: Vec<Acknowledged> = Vec::new();
    let mut retried = 0;
    for kill in 1..=kills {
        let round = write_and_kill(data, &mut dice, &next_index)
            .await
            .with_context(|| format!("kill {kill}"))?;
        let mut fresh = round.acknowledged;
        let dev = Dev::start(data).with_context(|| format!("start after kill {kill}"))?;
        let client = Client::of(&dev)?;
        for index in round.unknown {
            fresh.push(
                store(&client, index)
                    .await
                    .with_context(|| format!("kill {kill}: retry store {index}"))?,
            );
            retried += 1;
        }
        check(&client, &fresh)
            .await
            .with_context(|| format!("after kill {kill}"))?;
        // Some older ones each time: a later recovery must not lose what an earlier one kept.
        let old: Vec<Acknowledged> = (0..ledger.len().min(20))
            .map(|_| ledger[usize::try_from(dice.below(ledger.len() as u64)).unwrap_or(0)].clone())
            .collect();
        check(&client, &old)
            .await
            .with_context(|| format!("after kill {kill}, older memories"))?;
        ledger.append(&mut fresh);
        eprintln!(
            "kill {kill} of {kills}: {} memories, {retried} sent again, ready after {:?}",
            ledger.len(),
            dev.ready_after
        );
        // The next round starts from a killed server, too, and sometimes from one that was ended properly.
        if dice.below(3) == 0 {
            dev.stop()?
        } else {
            dev.kill_nine()?
        }
    }
    let dev = Dev::start(data).context("the last start")?;
    let client = Client::of(&dev)?;
    check(&client, &ledger).await.context("at the end")?;
    check_count(&client, ledger.len()).await?;
    let errors = dev.errors()?;
    ensure!(errors.is_empty(), "the server logged errors:\n{}", errors.join("\n"));
    dev.stop()
}

/// One life of the server: writers without pause, and a kill at a moment that the dice choose.
async fn write_and_kill(data: &Path, dice: &mut Dice, next_index: &Arc<AtomicU64>) -> Result<Round> {
    let dev = Dev::start(data)?;
    let acked = Arc::new(AtomicU64::new(0));
    let killed = Arc::new(AtomicBool::new(false));
    let mut writers = JoinSet::new();
    for _ in 0..WRITERS {
        let client = Client::of(&dev)?;
        let (acked, killed, next_index) = (acked.clone(), killed.clone(), next_index.clone());
        writers.spawn(async move {
            let mut round = Round {
                acknowledged: Vec::new(),
                unknown: Vec::new(),
            };
            loop {
                let index = next_index.fetch_add(1, Ordering::Relaxed);
                match store(&client, index).await {
                    Ok(entry) => {
                        round.acknowledged.push(entry);
                        acked.fetch_add(1, Ordering::Relaxed);
                    }
                    Err(_) if killed.load(Ordering::Acquire) => {
                        round.unknown.push(index);
                        return Ok(round);
                    }
                    Err(problem) => return Err(problem.context("a store failed on a healthy server")),
                }
            }
        });
    }
    // Now and then in the very first moments, otherwise once writes flow.
    if dice.below(5) > 0 {
        let deadline = Instant::now() + FIRST_ACK_MAX;
        while acked.load(Ordering::Relaxed) == 0 {
            ensure!(
                Instant::now() < deadline,
                "no store was acknowledged within {FIRST_ACK_MAX:?}"
            );
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        tokio::time::sleep(Duration::from_millis(dice.below(500))).await;
    } else {
        tokio::time::sleep(Duration::from_millis(dice.below(40))).await;
    }
    killed.store(true, Ordering::Release); // before the kill: an error after it is the kill's doing
    dev.kill_nine()?;
    let mut all = Round {
        acknowledged: Vec::new(),
        unknown: Vec::new(),
    };
    while let Some(ended) = writers.join_next().await {
        let round = ended.context("a writer panicked")??;
        all.acknowledged.extend(round.acknowledged);
        all.unknown.extend(round.unknown);
    }
    Ok(all)
}

/// Every entry by its id and by a question, and exactly once.
async fn check(client: &Client, entries: &[Acknowledged]) -> Result<()> {
    let entries: Arc<[Acknowledged]> = entries.into();
    let mut readers = JoinSet::new();
    for reader in 0..READERS {
        let (client, entries) = (client.clone(), entries.clone());
        readers.spawn(async move {
            for entry in entries.iter().skip(reader).step_by(READERS) {
                check_one(&client, entry)
                    .await
                    .with_context(|| format!("store {} ({})", entry.index, entry.id))?;
            }
            Ok::<_, anyhow::Error>(())
        });
    }
    while let Some(ended) = readers.join_next().await {
        ended.context("a reader panicked")??;
    }
    Ok(())
}

async fn check_one(client: &Client, entry: &Acknowledged) -> Result<()> {
    let (_, content) = texts::fact(entry.index);
    let by_id = client
        .call("get_related", json!({ "node_id": entry.id, "max_depth": 0 }))
        .await?;
    if by_id.is_error {
        bail!("LOST: it was acknowledged and is gone: {}", by_id.text);
    }
    let node = by_id.list("nodes").first().cloned().unwrap_or_default();
    ensure!(node["content"] == content.as_str(), "changed: {node}");

    let name = texts::name(entry.index);
    let found = client
        .call(
            "query_graph",
            json!({ "query": name, "project": PROJECT, "max_nodes": 10 }),
        )
        .await?
        .ok()?;
    let same: Vec<&Value> = found
        .list("nodes")
        .iter()
        .filter(|node| node["content"] == content.as_str())
        .collect();
    ensure!(!same.is_empty(), "stored, but a query for {name} does not find it");
    ensure!(same.len() == 1, "TWICE: {same:?}");
    ensure!(
        same[0]["id"] == entry.id.as_str(),
        "found under another id: {}",
        same[0]
    );
    Ok(())
}

/// All writes are in the ledger by now, the retried ones included, so the tenant holds exactly as many memories.
async fn check_count(client: &Client, expected: usize) -> Result<()> {
    let stats = client.call("get_stats", json!({ "project": PROJECT })).await?.ok()?;
    let total = stats.structured["total_nodes"]
        .as_u64()
        .with_context(|| format!("read {}", stats.structured))?;
    ensure!(
        total == expected as u64,
        "{total} memories for {expected} acknowledged stores"
    );
    Ok(())
}
