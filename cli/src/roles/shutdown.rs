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

/// Begins the shutdown when stdin ends. On a thread of its own that nobody waits for: a read of stdin cannot be given up.
pub(crate) fn on_end_of_stdin(tasks: &Tasks) -> Result<()> {
    let owner = tasks.clone();
    std::thread::Builder::new()
        .name("stdin".to_owned())
        .spawn(move || {
            // Whatever comes is ignored, and an error is an end, too.
            let _ = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
            tracing::info!("stdin ended: draining");
            owner.stop_because(Reason::Asked);
        })
        .context("watch stdin")?;
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
