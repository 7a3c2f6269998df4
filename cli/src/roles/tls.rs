//! The certificates of a running role: read at the start, taken into use again when the files change or at SIGHUP.

use std::sync::Arc;

use anyhow::{Context as _, Result};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Notify;
use waggle_config::peer_tls::PeerTls;
use waggle_config::runtime::tasks::{Kind, Tasks};

/// Watches the files for the life of the process.
pub(super) fn watch(tls: &PeerTls, tasks: &Tasks) -> Result<()> {
    let mut hangup = signal(SignalKind::hangup()).context("listen for SIGHUP")?;
    let now = Arc::new(Notify::new());
    tasks.spawn(Kind::Service, "certificates", {
        tls.clone().watch(Arc::clone(&now), tasks.stopping())
    });
    let stopping = tasks.stopping();
    tasks.spawn(Kind::Service, "hangup signals", async move {
        loop {
            tokio::select! {
                Some(()) = hangup.recv() => {
                    tracing::info!(signal = "SIGHUP", "reading the certificates again");
                    now.notify_one();
                }
                () = stopping.cancelled() => return,
            }
        }
    });
    Ok(())
}
