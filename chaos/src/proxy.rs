//! A wire that can be cut, slowed and bent: a TCP proxy for one directed pair of processes, A dialling B.
//!
//! What is between A and B is a TCP stream with TLS in it, and so are the faults that can be made honestly:
//!
//! * **hold**: the bytes of one or both directions stop flowing and nothing is closed, as when packets are lost and sent
//!   again for ever. They flow again when the fault ends. An end of the stream is held, too. New connections are taken
//!   by the system and then hang, where a real cut would leave the dialler waiting for the first answer;
//! * **delay** of every piece, with jitter. Pieces keep their order, as bytes of a stream do;
//! * **bandwidth**;
//! * **reset** of all connections at this moment, or of every new one.
//!
//! Loss, duplicates and reordering of packets end as one of these for whoever reads a stream; a proxy that doubled or
//! swapped bytes would test TLS and nothing else. They are reported as not covered.
//!
//! A proxy holds at most [`PIECES_MAX`] pieces of [`PIECE_BYTES`] in each direction of a connection, and does not read on.
//! It listens on loopback only.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};
use serde::Serialize;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use crate::dice::Dice;

pub const PIECE_BYTES: usize = 16 * 1024;
pub const PIECES_MAX: usize = 64;
/// Connections through one proxy at a time; more are reset.
const CONNECTIONS_MAX: usize = 256;

/// How the wire is at the moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wire {
    /// From the dialler to the dialled.
    pub hold_forward: bool,
    /// From the dialled back to the dialler.
    pub hold_backward: bool,
    pub delay: Duration,
    /// At most this much is added to the delay.
    pub jitter: Duration,
    pub bytes_per_second: Option<u64>,
    /// New connections are reset at once.
    pub refuse: bool,
    /// Counted up: connections of an earlier count are reset.
    resets: u64,
}

impl Wire {
    pub fn held() -> Self {
        Self {
            hold_forward: true,
            hold_backward: true,
            ..Self::default()
        }
    }

    pub fn slow(delay: Duration, jitter: Duration) -> Self {
        Self {
            delay,
            jitter,
            ..Self::default()
        }
    }
}

/// What a proxy did. Coverage is counted from it: a fault that met no byte did not happen.
#[derive(Debug, Default)]
struct Counts {
    connections: AtomicU64,
    resets: AtomicU64,
    bytes: AtomicU64,
    held: AtomicU64,
    delayed: AtomicU64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counted {
    pub connections: u64,
    pub resets: u64,
    pub bytes: u64,
    /// Times that a direction with something to carry, or waiting for it, stood still.
    pub held: u64,
    /// Pieces that waited for a delay or for bandwidth.
    pub delayed: u64,
}

/// A running proxy. Dropping it ends what goes through it.
pub struct Proxy {
    address: SocketAddr,
    wire: watch::Sender<Wire>,
    counts: Arc<Counts>,
    _tasks: JoinSet<()>,
}

impl Proxy {
    /// Listens at a loopback port, 0 for any, and carries what comes to `target`, which need not be there yet.
    pub async fn start(port: u16, target: SocketAddr, seed: u64) -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))
            .await
            .with_context(|| format!("listen at port {port}"))?;
        let address = listener.local_addr().context("ask for the listening address")?;
        let (sender, receiver) = watch::channel(Wire::default());
        let counts = Arc::new(Counts::default());
        let mut tasks = JoinSet::new();
        tasks.spawn(accept(listener, target, receiver, Arc::clone(&counts), Dice::new(seed)));
        Ok(Self {
            address,
            wire: sender,
            counts,
            _tasks: tasks,
        })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// From now on, for connections that are there, too.
    pub fn set(&self, wire: Wire) {
        self.wire.send_modify(|now| {
            *now = Wire {
                resets: now.resets,
                ..wire
            }
        });
    }

    /// Changes only some of it.
    pub fn change(&self, change: impl FnOnce(&mut Wire)) {
        self.wire.send_modify(change);
    }

    /// Resets every connection that goes through it now.
    pub fn reset(&self) {
        self.wire.send_modify(|now| now.resets += 1);
    }

    pub fn counted(&self) -> Counted {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Counted {
            connections: read(&self.counts.connections),
            resets: read(&self.counts.resets),
            bytes: read(&self.counts.bytes),
            held: read(&self.counts.held),
            delayed: read(&self.counts.delayed),
        }
    }
}

fn add(count: &AtomicU64, more: u64) {
    count.fetch_add(more, Ordering::Relaxed);
}

async fn accept(
    listener: TcpListener,
    target: SocketAddr,
    wire: watch::Receiver<Wire>,
    counts: Arc<Counts>,
    dice: Dice,
) {
    let mut connections = JoinSet::new();
    let mut number = 0;
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let Ok((dialler, _)) = accepted else { continue };
                if wire.borrow().refuse || connections.len() >= CONNECTIONS_MAX {
                    add(&counts.resets, 1);
                    reset(dialler);
                    continue;
                }
                number += 1;
                add(&counts.connections, 1);
                connections.spawn(carry(dialler, target, wire.clone(), Arc::clone(&counts), dice.fork(number)));
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

/// Closes with RST: what was sent and not read is gone, and the other end learns it at once.
fn reset(stream: TcpStream) {
    let _ = stream.set_zero_linger();
}

/// One connection, until both directions ended or it is reset.
async fn carry(dialler: TcpStream, target: SocketAddr, wire: watch::Receiver<Wire>, counts: Arc<Counts>, dice: Dice) {
    let resets = wire.borrow().resets;
    let mut dialler = dialler;
    let mut dialled = None;
    let both = async {
        // A wire that is cut does not reach the target either.
        passable(&wire, Direction::Forward, &counts).await;
        let dialled = dialled.insert(TcpStream::connect(target).await?);
        let _ = (dialler.set_nodelay(true), dialled.set_nodelay(true));
        let (from_dialler, to_dialler) = dialler.split();
        let (from_dialled, to_dialled) = dialled.split();
        let forward = pump(
            from_dialler,
            to_dialled,
            &wire,
            Direction::Forward,
            &counts,
            dice.fork(1),
        );
        let backward = pump(
            from_dialled,
            to_dialler,
            &wire,
            Direction::Backward,
            &counts,
            dice.fork(2),
        );
        tokio::try_join!(forward, backward).map(|_| ())
    };
    let mut resetting = wire.clone();
    let was_reset = tokio::select! {
        ended = both => ended.is_err(),
        _ = resetting.wait_for(|now| now.resets != resets) => true,
    };
    if was_reset {
        add(&counts.resets, 1);
        reset(dialler);
        if let Some(dialled) = dialled {
            reset(dialled);
        }
    }
}

#[derive(Clone, Copy)]
enum Direction {
    Forward,
    Backward,
}

impl Direction {
    fn is_held(self, wire: &Wire) -> bool {
        match self {
            Self::Forward => wire.hold_forward,
            Self::Backward => wire.hold_backward,
        }
    }
}

/// Waits until the direction is not held.
async fn passable(wire: &watch::Receiver<Wire>, direction: Direction, counts: &Counts) {
    if direction.is_held(&wire.borrow()) {
        add(&counts.held, 1);
        // An error means that the proxy is going away, and we with it.
        let _ = wire.clone().wait_for(|now| !direction.is_held(now)).await;
    }
}

/// Bytes, or the end of the stream, and when they may arrive.
struct Piece {
    bytes: Vec<u8>,
    due: Instant,
}

/// One direction: a reader that stamps, a bounded queue, a writer that waits.
async fn pump(
    from: ReadHalf<'_>,
    to: WriteHalf<'_>,
    wire: &watch::Receiver<Wire>,
    direction: Direction,
    counts: &Counts,
    dice: Dice,
) -> io::Result<()> {
    let (sender, receiver) = mpsc::channel(PIECES_MAX);
    tokio::try_join!(
        read(from, sender, wire, direction, counts, dice),
        write(to, receiver, wire, direction, counts),
    )?;
    Ok(())
}

async fn read(
    mut from: ReadHalf<'_>,
    queue: mpsc::Sender<Piece>,
    wire: &watch::Receiver<Wire>,
    direction: Direction,
    counts: &Counts,
    mut dice: Dice,
) -> io::Result<()> {
    let mut buffer = vec![0; PIECE_BYTES];
    let mut last_due = Instant::now();
    loop {
        passable(wire, direction, counts).await;
        let count = from.read(&mut buffer).await?;
        let now = *wire.borrow();
        let jitter = Duration::from_micros(dice.below(u64::try_from(now.jitter.as_micros()).unwrap_or(0) + 1));
        // Never before the piece in front of it.
        last_due = last_due.max(Instant::now() + now.delay + jitter);
        let piece = Piece {
            bytes: buffer[..count].to_vec(),
            due: last_due,
        };
        if queue.send(piece).await.is_err() || count == 0 {
            return Ok(());
        }
    }
}

async fn write(
    mut to: WriteHalf<'_>,
    mut queue: mpsc::Receiver<Piece>,
    wire: &watch::Receiver<Wire>,
    direction: Direction,
    counts: &Counts,
) -> io::Result<()> {
    let mut free = Instant::now();
    while let Some(piece) = queue.recv().await {
        let due = piece.due.max(free);
        if due > Instant::now() {
            add(&counts.delayed, 1);
            sleep_until(due).await;
        }
        passable(wire, direction, counts).await;
        if piece.bytes.is_empty() {
            break;
        }
        to.write_all(&piece.bytes).await?;
        let size = piece.bytes.len() as u64;
        add(&counts.bytes, size);
        if let Some(rate) = wire.borrow().bytes_per_second {
            let takes = Duration::from_micros(size.saturating_mul(1_000_000) / rate.max(1));
            free = free.max(Instant::now()) + takes;
        }
    }
    to.shutdown().await
}

#[cfg(test)]
mod tests;
