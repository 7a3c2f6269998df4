//! The network between replicas: one gRPC stream for each ordered pair of nodes carries the messages of all shards.
//! A message takes its place in the stream when it is handed over, so appends of one shard arrive in their order; answers
//! come back in any order and are told apart by their number.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::time::Instant;
use tokio_stream::StreamExt as _;
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;
use waggle_config::runtime::tasks::{Kind, Tasks};
use waggle_memory::meta::NodeId;
use waggle_proto::wire::{ReplicaAnswer, ReplicaFrame};
use waggle_shard::{Frame, SnapshotFiles, Target, Wire, WireError};

use super::Peers;
use super::snapshots;

/// Messages that wait for room in one stream.
const FRAMES_WAITING_MAX: usize = 4_096;
/// After a stream could not be opened, messages are refused this long without an attempt.
const DOWN_TIME: Duration = Duration::from_millis(100);
/// Messages in a row without any answer after which the stream is taken for dead and opened anew: a machine that went away
/// without a word would else be noticed only by the keepalive.
const SILENT_MAX: u32 = 16;
/// Answers that are waited for; beyond it those that nobody waits for any more are forgotten.
const PENDING_SWEEP: usize = 4_096;

/// The network of one node.
pub(crate) struct GrpcWire {
    peers: Arc<Peers>,
    links: Mutex<HashMap<NodeId, Arc<Link>>>,
    tasks: Tasks,
    /// At most one snapshot leaves the node at a time.
    sending: Arc<Semaphore>,
}

type Answer = oneshot::Receiver<Result<Bytes, WireError>>;

/// The way to one other node.
struct Link {
    node: NodeId,
    state: Mutex<LinkState>,
    numbers: AtomicU64,
}

#[derive(Default)]
struct LinkState {
    stream: Option<(mpsc::Sender<ReplicaFrame>, CancellationToken)>,
    /// Timeouts since the last answer.
    silent: u32,
    waiting: HashMap<u64, oneshot::Sender<Result<Bytes, WireError>>>,
    down_until: Option<(Instant, String)>,
    /// It was told in the log that the node does not answer.
    told_down: bool,
}

impl GrpcWire {
    pub(crate) fn new(peers: Arc<Peers>, tasks: Tasks) -> Self {
        Self {
            peers,
            links: Mutex::new(HashMap::new()),
            tasks,
            sending: Arc::new(Semaphore::new(1)),
        }
    }

    fn link(&self, node: NodeId) -> Arc<Link> {
        let mut links = self.links.lock();
        Arc::clone(links.entry(node).or_insert_with(|| {
            Arc::new(Link {
                node,
                state: Mutex::default(),
                numbers: AtomicU64::new(1),
            })
        }))
    }

    /// Hands a message over; the receiver hears of the answer, or of the end of the stream.
    fn hand_over(&self, link: &Arc<Link>, target: &Target, frame: Frame) -> Result<Answer, WireError> {
        let mut state = link.state.lock();
        if let Some((until, why)) = &state.down_until {
            if Instant::now() < *until {
                return Err(WireError::Unreachable(why.clone()));
            }
            state.down_until = None;
        }
        let number = link.numbers.fetch_add(1, Ordering::Relaxed);
        let message = ReplicaFrame {
            number,
            shard: target.shard.0,
            from_replica: target.from,
            to_replica: target.to,
            kind: frame.kind as u32,
            body: frame.body.into(),
        };
        let stream = match &state.stream {
            Some((stream, _)) => stream.clone(),
            None => {
                state.silent = 0;
                let opened = self.open(link, &target.member.address);
                let stream = opened.0.clone();
                state.stream = Some(opened);
                stream
            }
        };
        stream
            .try_send(message)
            .map_err(|_| WireError::Lost(format!("the stream to {} takes no more messages", link.node)))?;
        let (answered, answer) = oneshot::channel();
        if state.waiting.len() >= PENDING_SWEEP {
            state.waiting.retain(|_, waiting| !waiting.is_closed());
        }
        state.waiting.insert(number, answered);
        Ok(answer)
    }

    /// Starts a stream. Messages may be put in at once; they leave when it is open.
    fn open(&self, link: &Arc<Link>, fallback: &str) -> (mpsc::Sender<ReplicaFrame>, CancellationToken) {
        let (send, receive) = mpsc::channel(FRAMES_WAITING_MAX);
        let (peers, link, fallback) = (Arc::clone(&self.peers), Arc::clone(link), fallback.to_owned());
        let (ours, given_up) = (send.clone(), CancellationToken::new());
        let end = given_up.clone();
        let stopping = self.tasks.stopping();
        self.tasks.spawn(Kind::Job, "stream to another node", async move {
            let why = tokio::select! {
                why = run(&peers, &link, &fallback, receive) => why,
                () = given_up.cancelled() => "no answer for a long time".to_owned(),
            };
            peers.forget(link.node);
            let waiting = {
                let mut state = link.state.lock();
                if state
                    .stream
                    .as_ref()
                    .is_some_and(|(stream, _)| stream.same_channel(&ours))
                {
                    state.stream = None;
                    state.down_until = Some((Instant::now() + DOWN_TIME, why.clone()));
                }
                let first = !std::mem::replace(&mut state.told_down, true);
                if first && !stopping.is_cancelled() {
                    tracing::warn!(node = %link.node, why, "another node does not answer");
                }
                std::mem::take(&mut state.waiting)
            };
            tracing::debug!(node = %link.node, why, waiting = waiting.len(), "the stream to another node ended");
            for (_, answered) in waiting {
                let _ = answered.send(Err(WireError::Lost(why.clone())));
            }
        });
        (send, end)
    }
}

impl Link {
    fn timed_out(&self) {
        let mut state = self.state.lock();
        state.silent += 1;
        if state.silent >= SILENT_MAX
            && let Some((_, end)) = &state.stream
        {
            end.cancel();
        }
    }
}

/// Runs one stream until it ends; says why it did.
async fn run(peers: &Peers, link: &Link, fallback: &str, frames: mpsc::Receiver<ReplicaFrame>) -> String {
    let mut client = match peers.cluster(link.node, fallback) {
        Ok(client) => client,
        Err(error) => return error.to_string(),
    };
    let mut answers = match client.replicate(ReceiverStream::new(frames)).await {
        Ok(answers) => answers.into_inner(),
        Err(status) => return status.message().to_owned(),
    };
    loop {
        match answers.next().await {
            Some(Ok(answer)) => answered(link, answer),
            Some(Err(status)) => return status.message().to_owned(),
            None => return "the other node ended the stream".to_owned(),
        }
    }
}

fn answered(link: &Link, answer: ReplicaAnswer) {
    let waiting = {
        let mut state = link.state.lock();
        state.silent = 0;
        if std::mem::take(&mut state.told_down) {
            tracing::info!(node = %link.node, "another node answers again");
        }
        state.waiting.remove(&answer.number)
    };
    let Some(waiting) = waiting else { return };
    let result = if answer.refused.is_empty() {
        Ok(Bytes::from(answer.body))
    } else {
        Err(WireError::Unreachable(answer.refused))
    };
    // Whoever asked may have given up.
    let _ = waiting.send(result);
}

impl Wire for GrpcWire {
    fn call(&self, target: &Target, frame: Frame, timeout: Duration) -> BoxFuture<'static, Result<Bytes, WireError>> {
        let link = self.link(target.member.node());
        let answer = self.hand_over(&link, target, frame);
        Box::pin(async move {
            match tokio::time::timeout(timeout, answer?).await {
                Ok(Ok(result)) => result,
                Ok(Err(_)) => Err(WireError::Lost("the stream has ended".to_owned())),
                Err(_) => {
                    link.timed_out();
                    Err(WireError::Timeout { after: timeout })
                }
            }
        })
    }

    fn send_snapshot(
        &self,
        target: &Target,
        frame: Frame,
        files: SnapshotFiles,
        timeout: Duration,
    ) -> BoxFuture<'static, Result<Bytes, WireError>> {
        let (peers, sending, target) = (Arc::clone(&self.peers), Arc::clone(&self.sending), target.clone());
        Box::pin(async move {
            let work = async {
                let Ok(_turn) = sending.acquire().await else {
                    return Err(WireError::Lost("the node is stopping".to_owned()));
                };
                snapshots::send(&peers, &target, frame, &files).await
            };
            tokio::time::timeout(timeout, work)
                .await
                .unwrap_or(Err(WireError::Timeout { after: timeout }))
        })
    }
}
