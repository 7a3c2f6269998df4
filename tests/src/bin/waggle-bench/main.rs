//! Load on the real binary over MCP; `make bench` runs it, tests/bench/README.md explains the figures.
//!
//! One JSON line for each figure goes to standard output, the table and the progress to standard error. Client and
//! server share the machine, so absolute numbers belong to that machine; compare runs on the same one.

mod load;
mod report;

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use waggle_tests::machine::{disk_bytes, millis, resident_bytes};
use waggle_tests::mcp::Client;
use waggle_tests::server::Dev;
use waggle_tests::texts;
use waggle_tests::workspace;

use crate::load::{Kind, Limit, Load, PROJECT, measure};
use crate::report::Report;

/// Clients that bring a tenant to its size before anything is measured.
const FILLERS: usize = 8;
/// The size at which a restart is measured, if it is among the sizes; otherwise it is the largest.
const RESTART_SIZE: u64 = 10_000;

struct Settings {
    sizes: Vec<u64>,
    clients: Vec<usize>,
    seconds: Duration,
}

#[tokio::main]
async fn main() -> Result<()> {
    let settings = Settings::read()?;
    let mut report = Report::default();
    report.add(json!({
        "bench": "machine",
        "processors": std::thread::available_parallelism().map_or(0, usize::from),
        "binary": workspace::binary()?.display().to_string(),
    }));
    idle(&mut report).await?;
    encoder(&mut report)?;
    sizes(&settings, &mut report).await?;
    report.print_table();
    Ok(())
}

impl Settings {
    fn read() -> Result<Self> {
        let list = |name: &str, default: &str| -> Result<Vec<u64>> {
            let text = env::var(name).unwrap_or_else(|_| default.to_owned());
            let words = text.split([' ', ',']).filter(|word| !word.is_empty());
            words
                .map(|word| word.parse().with_context(|| format!("{name}: {word:?} is no number")))
                .collect()
        };
        let mut sizes = list("BENCH_SIZES", "1000 10000 100000")?;
        sizes.sort_unstable();
        let clients: Vec<usize> = list("BENCH_CLIENTS", "1 8 64")?
            .into_iter()
            .map(usize::try_from)
            .collect::<Result<_, _>>()?;
        let seconds = list("BENCH_SECONDS", "5")?;
        ensure!(
            !sizes.is_empty() && !clients.is_empty(),
            "BENCH_SIZES and BENCH_CLIENTS must not be empty"
        );
        ensure!(
            clients.iter().all(|clients| (1..=256).contains(clients)),
            "BENCH_CLIENTS: 1 to 256"
        );
        let seconds = Duration::from_secs(seconds.first().copied().unwrap_or(5).clamp(1, 600));
        Ok(Self {
            sizes,
            clients,
            seconds,
        })
    }
}

/// An empty server: how soon it is ready and what it takes when nobody asks anything.
async fn idle(report: &mut Report) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let data = folder.path().join("data");
    let dev = Dev::start(&data)?;
    // One call, so that what is set up lazily for any caller is in the figure.
    Client::of(&dev)?.rpc("tools/list", json!({})).await?;
    report.add(json!({
        "bench": "idle",
        "ready_ms": millis(dev.ready_after),
        "resident_bytes": resident_bytes(dev.pid())?,
        "disk_bytes": disk_bytes(&data)?,
    }));
    dev.stop()
}

/// What the encoder does without the rest, by its own program.
fn encoder(report: &mut Report) -> Result<()> {
    let beside = workspace::binary()?.with_file_name("waggle-encoder-bench");
    let program = env::var_os("WAGGLE_ENCODER_BENCH").map_or(beside, PathBuf::from);
    if !program.is_file() {
        report.say(&format!("no {}: the encoder alone is not measured", program.display()));
        return Ok(());
    }
    report.say("the encoder alone");
    let output = Command::new(&program)
        .output()
        .with_context(|| format!("run {}", program.display()))?;
    ensure!(
        output.status.success(),
        "{}: {}",
        program.display(),
        String::from_utf8_lossy(&output.stderr)
    );
    for line in String::from_utf8_lossy(&output.stdout)
        .lines()
        .filter(|line| line.starts_with('{'))
    {
        let mut figure: Value = serde_json::from_str(line).with_context(|| format!("read {line}"))?;
        figure["bench"] = "encoder".into();
        report.add(figure);
    }
    Ok(())
}

/// One tenant that grows from size to size, and is measured at each.
async fn sizes(settings: &Settings, report: &mut Report) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let data = folder.path().join("data");
    let mut dev = Dev::start(&data)?;
    let empty = resident_bytes(dev.pid())?;
    let stored = Arc::new(AtomicU64::new(0));
    let restart_at = match settings.sizes.contains(&RESTART_SIZE) {
        true => RESTART_SIZE,
        false => settings.sizes.last().copied().unwrap_or(RESTART_SIZE),
    };
    for &size in &settings.sizes {
        fill(&dev, size, &stored, report).await?;
        for &clients in &settings.clients {
            let load = Load {
                kind: Kind::Query,
                size,
                clients,
                limit: Limit::Time(settings.seconds),
            };
            report.add(measure(&dev, &load, &stored, report).await?);
        }
        // After the queries, so that the indexes are loaded; before the stores, so that the size is the one it says.
        let (count, resident) = (stored.load(Ordering::Relaxed).max(1), resident_bytes(dev.pid())?);
        report.add(json!({
            "bench": "bytes",
            "size": count,
            "resident_bytes": resident,
            "resident_bytes_per_memory": resident.saturating_sub(empty) / count,
            "disk_bytes_per_memory": disk_bytes(&data)? / count,
        }));
        if size == restart_at {
            dev = restart(dev, &data, size, report).await?;
        }
        for &clients in &settings.clients {
            let load = Load {
                kind: Kind::Store,
                size,
                clients,
                limit: Limit::Time(settings.seconds),
            };
            report.add(measure(&dev, &load, &stored, report).await?);
        }
    }
    dev.stop()
}

async fn fill(dev: &Dev, size: u64, stored: &Arc<AtomicU64>, report: &Report) -> Result<()> {
    let missing = size.saturating_sub(stored.load(Ordering::Relaxed));
    report.say(&format!("storing {missing} memories to reach {size}"));
    let load = Load {
        kind: Kind::Store,
        size,
        clients: FILLERS,
        limit: Limit::Count(size),
    };
    measure(dev, &load, stored, report).await?;
    Ok(())
}

/// Once after a proper end, once after kill -9: ready, and the first answer, which has to load the tenant's index.
async fn restart(dev: Dev, data: &Path, size: u64, report: &mut Report) -> Result<Dev> {
    let mut dev = dev;
    for (after, kill) in [("SIGTERM", false), ("kill -9", true)] {
        if kill {
            dev.kill_nine()?
        } else {
            dev.stop()?
        }
        dev = Dev::start(data)?;
        let client = Client::of(&dev)?;
        let asked = Instant::now();
        let question = json!({ "query": texts::question(1), "project": PROJECT, "max_nodes": 8 });
        client.call("query_graph", question).await?.ok()?;
        report.add(json!({
            "bench": "restart",
            "after": after,
            "size": size,
            "ready_ms": millis(dev.ready_after),
            "first_query_ms": millis(asked.elapsed()),
        }));
    }
    Ok(dev)
}
