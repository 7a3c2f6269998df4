//! The process's metrics: one recorder for all crates, rendered by whoever serves /metrics.

use std::time::Duration;

use anyhow::{Context as _, Result};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use waggle_config::runtime::tasks::{Kind, Tasks};

/// Seconds; half a millisecond to ten seconds.
const BUCKETS: &[f64] = &[
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0,
];
const UPKEEP_INTERVAL: Duration = Duration::from_secs(5);

pub(crate) fn start(tasks: &Tasks) -> Result<PrometheusHandle> {
    let handle = PrometheusBuilder::new()
        .set_buckets(BUCKETS)
        .and_then(PrometheusBuilder::install_recorder)
        .context("start the metrics")?;
    let kept = handle.clone();
    tasks.spawn(Kind::Job, "metrics upkeep", async move {
        let mut interval = tokio::time::interval(UPKEEP_INTERVAL);
        loop {
            interval.tick().await;
            // Moves samples from buffers into buckets; without it they pile up while nobody scrapes.
            kept.run_upkeep();
        }
    });
    Ok(handle)
}
