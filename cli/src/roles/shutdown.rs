//! When to stop: SIGTERM and SIGINT mean drain and end with 0. A second signal does not wait any longer.

use anyhow::{Context as _, Result};
use tokio::signal::unix::{SignalKind, signal};
use waggle_config::runtime::tasks::{Kind, Reason, Tasks};

/// Exit code of an impatient second signal.
const INTERRUPTED: i32 = 130;

/// Begins the shutdown at the first signal.
pub(crate) fn on_signals(tasks: &Tasks) -> Result<()> {
    let mut terminate = signal(SignalKind::terminate()).context("listen for SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("listen for SIGINT")?;
    let owner = tasks.clone();
    tasks.spawn(Kind::Connection, "signals", async move {
        let stopping = owner.stopping();
        let name = tokio::select! {
            _ = terminate.recv() => "SIGTERM",
            _ = interrupt.recv() => "SIGINT",
            () = stopping.cancelled() => return,
        };
        tracing::info!(signal = name, "draining");
        owner.stop_because(Reason::Asked);
    });
    Ok(())
}

/// From the start of the drain on: whoever asks again wants it now.
pub(crate) async fn second_signal() {
    let (Ok(mut terminate), Ok(mut interrupt)) = (signal(SignalKind::terminate()), signal(SignalKind::interrupt()))
    else {
        return std::future::pending().await;
    };
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    tracing::warn!("second signal: ending without waiting for calls in progress");
    // Everything acknowledged is on the disk already; the log repeats the rest.
    std::process::exit(INTERRUPTED);
}
