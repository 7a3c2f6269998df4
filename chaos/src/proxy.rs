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
mod tests {
    use super::*;

    /// Sends back what it gets, on every connection.
    async fn echo() -> (SocketAddr, JoinSet<()>) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("listen");
        let address = listener.local_addr().expect("address");
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut each = JoinSet::new();
            while let Ok((mut stream, _)) = listener.accept().await {
                each.spawn(async move {
                    let (mut from, mut to) = stream.split();
                    let _ = tokio::io::copy(&mut from, &mut to).await;
                });
            }
        });
        (address, tasks)
    }

    struct Line {
        proxy: Proxy,
        _echo: JoinSet<()>,
    }

    impl Line {
        async fn new() -> Self {
            let (target, tasks) = echo().await;
            let proxy = Proxy::start(0, target, 1).await.expect("proxy");
            Self { proxy, _echo: tasks }
        }

        async fn dial(&self) -> TcpStream {
            TcpStream::connect(self.proxy.address()).await.expect("dial")
        }
    }

    async fn ask(stream: &mut TcpStream, text: &[u8]) -> io::Result<Vec<u8>> {
        stream.write_all(text).await?;
        let mut answer = vec![0; text.len()];
        stream.read_exact(&mut answer).await?;
        Ok(answer)
    }

    /// Nothing comes within this time.
    const SILENCE: Duration = Duration::from_millis(150);

    async fn silent(stream: &mut TcpStream) -> bool {
        let mut byte = [0];
        tokio::time::timeout(SILENCE, stream.read(&mut byte)).await.is_err()
    }

    #[tokio::test]
    async fn it_carries_both_ways_and_passes_the_end_on() {
        let line = Line::new().await;
        let mut stream = line.dial().await;
        assert_eq!(ask(&mut stream, b"hello").await.expect("echo"), b"hello");
        let large: Vec<u8> = (0..PIECE_BYTES * PIECES_MAX / 4).map(|at| (at % 251) as u8).collect();
        assert_eq!(ask(&mut stream, &large).await.expect("echo"), large);
        stream.shutdown().await.expect("end");
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).await.expect("the end comes back");
        assert!(rest.is_empty());
        let counted = line.proxy.counted();
        assert_eq!(
            (counted.connections, counted.held, counted.delayed),
            (1, 0, 0),
            "{counted:?}"
        );
        assert!(counted.bytes >= 2 * large.len() as u64, "{counted:?}");
    }

    #[tokio::test]
    async fn a_delay_delays_each_way_and_keeps_the_order() {
        let line = Line::new().await;
        let mut stream = line.dial().await;
        ask(&mut stream, b"x").await.expect("echo");
        let delay = Duration::from_millis(40);
        line.proxy.set(Wire::slow(delay, Duration::from_millis(30)));
        let began = Instant::now();
        let text: Vec<u8> = (0..200).collect();
        let (mut from, mut to) = stream.split();
        let send = async {
            for byte in &text {
                to.write_all(&[*byte]).await.expect("send");
                tokio::task::yield_now().await;
            }
        };
        let receive = async {
            let mut answer = vec![0; text.len()];
            from.read_exact(&mut answer).await.expect("receive");
            answer
        };
        let ((), answer) = tokio::join!(send, receive);
        assert_eq!(answer, text);
        assert!(began.elapsed() >= delay * 2, "{:?}", began.elapsed());
        assert!(line.proxy.counted().delayed > 0);
    }

    #[tokio::test]
    async fn bandwidth_is_a_limit() {
        let line = Line::new().await;
        let mut stream = line.dial().await;
        line.proxy.change(|wire| wire.bytes_per_second = Some(1_000_000));
        let began = Instant::now();
        ask(&mut stream, &vec![7; 200_000]).await.expect("echo");
        // 200 kB at 1 MB/s are 200 ms; the last piece need not wait for the next one.
        assert!(began.elapsed() >= Duration::from_millis(150), "{:?}", began.elapsed());
    }

    #[tokio::test]
    async fn a_held_direction_is_silent_closes_nothing_and_delivers_when_it_heals() {
        for (forward, backward) in [(true, false), (false, true), (true, true)] {
            let line = Line::new().await;
            let mut stream = line.dial().await;
            ask(&mut stream, b"x").await.expect("echo");
            line.proxy.change(|wire| {
                wire.hold_forward = forward;
                wire.hold_backward = backward;
            });
            stream.write_all(b"held").await.expect("send");
            assert!(silent(&mut stream).await, "{forward} {backward}");
            line.proxy.set(Wire::default());
            let mut answer = [0; 4];
            stream.read_exact(&mut answer).await.expect("it comes");
            assert_eq!(&answer, b"held");
            assert!(line.proxy.counted().held > 0);
        }
    }

    #[tokio::test]
    async fn a_new_connection_through_a_held_wire_hangs_and_works_when_it_heals() {
        let line = Line::new().await;
        line.proxy.set(Wire::held());
        let mut stream = line.dial().await;
        stream.write_all(b"held").await.expect("send");
        assert!(silent(&mut stream).await);
        line.proxy.set(Wire::default());
        let mut answer = [0; 4];
        stream.read_exact(&mut answer).await.expect("it comes");
        assert_eq!(&answer, b"held");
    }

    #[tokio::test]
    async fn a_held_wire_takes_no_more_bytes_than_its_queue_and_the_system() {
        let line = Line::new().await;
        let mut stream = line.dial().await;
        ask(&mut stream, b"x").await.expect("echo");
        line.proxy.set(Wire::held());
        // Kernel buffers take a few megabytes; without a bound of our own all of this would be taken.
        let much = vec![1; 256 * 1024 * 1024];
        let sent = tokio::time::timeout(Duration::from_secs(1), stream.write_all(&much)).await;
        assert!(sent.is_err(), "all of it went into a wire that carries nothing");
    }

    #[tokio::test]
    async fn a_reset_is_felt_at_once_and_the_next_connection_works() {
        let line = Line::new().await;
        let mut stream = line.dial().await;
        ask(&mut stream, b"x").await.expect("echo");
        line.proxy.reset();
        let mut byte = [0];
        let ended = tokio::time::timeout(Duration::from_secs(5), stream.read(&mut byte)).await;
        let error = ended.expect("at once").expect_err("a reset, not an end");
        assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
        let mut next = line.dial().await;
        assert_eq!(ask(&mut next, b"again").await.expect("echo"), b"again");
        assert_eq!(line.proxy.counted().resets, 1);
    }

    #[tokio::test]
    async fn refused_connections_are_reset_until_it_heals() {
        let line = Line::new().await;
        line.proxy.change(|wire| wire.refuse = true);
        let mut stream = line.dial().await;
        let refused = ask(&mut stream, b"x").await;
        assert!(refused.is_err(), "{refused:?}");
        line.proxy.set(Wire::default());
        let mut stream = line.dial().await;
        assert_eq!(ask(&mut stream, b"again").await.expect("echo"), b"again");
    }
}
