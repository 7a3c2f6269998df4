//! The loop that both systems are driven by: every client sends its next call when the last was answered.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use futures::future::BoxFuture;
use tokio::task::JoinSet;
use tonic::transport::{Channel, Endpoint};
use waggle_tests::machine::{cpu_seconds, quantile, round};

use crate::settings::CONNECTIONS_MAX;

/// Before anything is recorded.
const WARM_UP: Duration = Duration::from_secs(2);
const PAUSE_AFTER_ERROR: Duration = Duration::from_millis(10);
const CALL_MAX: Duration = Duration::from_secs(30);
/// As between our own processes.
const CALL_WINDOW_BYTES: u32 = 1024 * 1024;

/// The n-th call, by a client.
pub(crate) type Call = Arc<dyn Fn(usize, u64) -> BoxFuture<'static, Result<()>> + Send + Sync>;

/// What the clients saw.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) calls: usize,
    pub(crate) ops_s: f64,
    pub(crate) p50_ms: f64,
    pub(crate) p99_ms: f64,
    pub(crate) errors: u64,
    pub(crate) first_error: Option<String>,
    /// CPU time of the processes under test, for each call.
    pub(crate) cpu_ms: f64,
}

#[derive(Default)]
struct Run {
    next: AtomicU64,
    errors: AtomicU64,
    recording: AtomicBool,
    stopping: AtomicBool,
}

/// Runs one point against the processes `pids`.
pub(crate) async fn drive(clients: usize, seconds: Duration, pids: &[u32], call: Call) -> Result<Seen> {
    let run = Arc::new(Run::default());
    let mut work = JoinSet::new();
    for client in 0..clients {
        work.spawn(one_client(client, Arc::clone(&run), Arc::clone(&call)));
    }
    tokio::time::sleep(WARM_UP.min(seconds)).await;
    run.recording.store(true, Ordering::Relaxed);
    let (began, cpu_before) = (Instant::now(), cpu_of(pids)?);
    tokio::time::sleep(seconds).await;
    run.stopping.store(true, Ordering::Relaxed);
    let (elapsed, cpu) = (began.elapsed().as_secs_f64(), cpu_of(pids)? - cpu_before);
    let (mut micros, mut first_error) = (Vec::new(), None);
    while let Some(ended) = work.join_next().await {
        let (seen, error) = ended.context("a client panicked")?;
        micros.extend(seen);
        first_error = first_error.or(error);
    }
    micros.sort_unstable();
    Ok(Seen {
        calls: micros.len(),
        ops_s: round(micros.len() as f64 / elapsed),
        p50_ms: quantile(&micros, 50),
        p99_ms: quantile(&micros, 99),
        errors: run.errors.load(Ordering::Relaxed),
        first_error,
        cpu_ms: (cpu * 1e6 / micros.len().max(1) as f64).round() / 1e3,
    })
}

async fn one_client(client: usize, run: Arc<Run>, call: Call) -> (Vec<u64>, Option<String>) {
    let (mut micros, mut first_error) = (Vec::with_capacity(1 << 14), None);
    while !run.stopping.load(Ordering::Relaxed) {
        let number = run.next.fetch_add(1, Ordering::Relaxed);
        let sent = Instant::now();
        let outcome = match tokio::time::timeout(CALL_MAX, call(client, number)).await {
            Ok(outcome) => outcome,
            Err(late) => Err(late.into()),
        };
        match outcome {
            Ok(()) if run.recording.load(Ordering::Relaxed) && !run.stopping.load(Ordering::Relaxed) => {
                micros.push(u64::try_from(sent.elapsed().as_micros()).unwrap_or(u64::MAX));
            }
            Ok(()) => {}
            Err(error) => {
                run.errors.fetch_add(1, Ordering::Relaxed);
                first_error.get_or_insert_with(|| format!("{error:#}"));
                tokio::time::sleep(PAUSE_AFTER_ERROR).await;
            }
        }
    }
    (micros, first_error)
}

fn cpu_of(pids: &[u32]) -> Result<f64> {
    pids.iter().map(|pid| cpu_seconds(*pid)).sum()
}

/// Connections without TLS, as many as clients need.
pub(crate) async fn plain(address: &str) -> Result<Channel> {
    Endpoint::from_shared(format!("http://{address}"))?
        .tcp_nodelay(true)
        .initial_stream_window_size(CALL_WINDOW_BYTES)
        .initial_connection_window_size(4 * CALL_WINDOW_BYTES)
        .connect()
        .await
        .with_context(|| format!("connect to {address}"))
}

/// How many connections so many clients share.
pub(crate) fn connections(clients: usize) -> usize {
    clients.min(CONNECTIONS_MAX)
}

/// Text that does not compress well: 64 letters and digits in their own order for each number.
pub(crate) fn noise(seed: u64, bytes: usize) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut dice = waggle_tests::texts::Dice::new(seed);
    let mut text = String::with_capacity(bytes + 10);
    while text.len() < bytes {
        let mut rolled = dice.roll();
        for _ in 0..10 {
            text.push(char::from(LETTERS[usize::try_from(rolled & 63).unwrap_or(0)]));
            rolled >>= 6;
        }
    }
    text.truncate(bytes);
    text
}
