//! A cluster of three nodes beside etcd on the same machine; `make bench-cluster` runs it, docs/benchmarks.md explains
//! the figures.
//!
//! One JSON line for each point goes to standard output, then the medians and the ratios; progress and a table go to
//! standard error. Both systems are driven by the same loop over the same HTTP/2 stack, one after the other, in rounds.

mod cluster;
mod drive;
mod etcd;
mod gateway;
mod node;
mod report;
mod settings;

use anyhow::{Context as _, Result};
use serde_json::json;
use waggle_tests::machine::{file_system, load_average, sync_millis};
use waggle_tests::workspace;

use crate::cluster::Cluster;
use crate::etcd::Etcd;
use crate::report::Report;
use crate::settings::Settings;

/// One thread: the load generator takes as little of a small machine as it can, and the same for both systems.
#[tokio::main(flavor = "multi_thread", worker_threads = 1)]
async fn main() -> Result<()> {
    let settings = Settings::read()?;
    waggle_tests::install_tls_provider();
    let folder = settings.folder()?;
    let etcd = Etcd::find();
    let mut report = Report::default();
    report.line(&json!({
        "machine": {
            "processors": std::thread::available_parallelism().map_or(0, usize::from),
            "file_system": file_system(folder.path())?,
            "binary": workspace::binary()?.display().to_string(),
            "etcd": etcd.as_ref().map(Etcd::version).transpose()?,
            "seconds": settings.seconds.as_secs(),
            "keys": settings.keys,
        }
    }));
    if etcd.is_none() {
        report.say(
            "no etcd in PATH: ours is measured alone, without ratios. Debian and Ubuntu have it as etcd-server; name \
             another with ETCD=/path/to/etcd",
        );
    }
    let mut cluster = Cluster::prepare(&settings, &folder.path().join("waggle"), &report).await?;
    for round in 1..=settings.rounds {
        machine(&mut report, round, folder.path())?;
        if let Some(etcd) = &etcd {
            let data = folder.path().join(format!("etcd-{round}"));
            etcd.measure(&settings, &data, round, &mut report)
                .await
                .context("measure etcd")?;
        }
        machine(&mut report, round, folder.path())?;
        cluster
            .measure(round, &mut report)
            .await
            .context("measure the cluster")?;
    }
    report.summary();
    Ok(())
}

/// A sync and the load of the same hour: without them a number of calls says nothing.
fn machine(report: &mut Report, round: u32, folder: &std::path::Path) -> Result<()> {
    let taken = sync_millis(folder, 300)?;
    let at = |percent: usize| taken.get(taken.len() * percent / 100).copied().unwrap_or(0.0);
    report.line(&json!({
        "round": round, "load_average": load_average(), "sync_4k_ms_p50": at(50), "sync_4k_ms_p99": at(99),
    }));
    Ok(())
}
