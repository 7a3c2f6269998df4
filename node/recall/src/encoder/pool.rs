//! The threads that embed, and the one queue in front of them.
//!
//! Texts wait one by one, not in batches: padding a batch would cost a third more, and a long import must not hold back
//! a query. Queries go before writes. The queue is bounded in texts; who is refused retries or defers the vector.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use tokio::sync::oneshot;

use super::{Embedding, Encoder};

/// Before the first text was measured; about one core of a small server.
const NANOS_PER_TOKEN_ASSUMED: u64 = 180_000;
/// English text has a little more than four bytes per token, code a little less.
const BYTES_PER_TOKEN: usize = 4;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Priority {
    /// Somebody waits for an answer.
    Query,
    Write,
}

/// The batch was not taken, not even in part.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "the encoder's queue has {waiting} of at most {queue_texts_max} texts and cannot take {refused} more; retry, or commit \
     without a vector"
)]
pub struct QueueFull {
    pub waiting: usize,
    pub refused: usize,
    pub queue_texts_max: usize,
}

/// The pool was shut down before the batch was done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the encoder is shutting down; retry on another node")]
pub struct PoolStopped;

/// The embeddings of one batch, in the order of its texts. Dropping it cancels what has not begun.
#[derive(Debug)]
pub struct Receiver(oneshot::Receiver<Vec<Embedding>>);

impl Receiver {
    /// Cancel-safe: nothing is lost but the wish for the answer.
    pub async fn wait(self) -> Result<Vec<Embedding>, PoolStopped> {
        self.0.await.map_err(|_| PoolStopped)
    }

    /// For threads outside of the async runtime.
    ///
    /// # Panics
    /// When called from an async task.
    pub fn wait_blocking(self) -> Result<Vec<Embedding>, PoolStopped> {
        self.0.blocking_recv().map_err(|_| PoolStopped)
    }
}

/// A handle to the encoder threads. They end with [`shutdown`](Self::shutdown) or with the last handle.
#[derive(Clone)]
pub struct EncoderPool(Arc<Owner>);

struct Owner {
    shared: Arc<Shared>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    threads_count: usize,
}

struct Shared {
    encoder: Arc<Encoder>,
    queue: Mutex<Queue>,
    work: Condvar,
    queue_texts_max: usize,
    nanos_per_token: AtomicU64,
}

#[derive(Default)]
struct Queue {
    queries: VecDeque<Text>,
    writes: VecDeque<Text>,
    /// Estimated tokens of the texts that wait or are being encoded.
    tokens: usize,
    closed: bool,
}

struct Text {
    batch: Arc<Mutex<Batch>>,
    index: usize,
    text: String,
    tokens: usize,
}

struct Batch {
    done: Vec<Option<Embedding>>,
    missing: usize,
    answer: Option<oneshot::Sender<Vec<Embedding>>>,
}

impl EncoderPool {
    /// Starts at least one thread.
    ///
    /// # Panics
    /// When the operating system gives no thread; a node cannot work on without.
    pub fn start(encoder: Arc<Encoder>, threads: usize, queue_texts_max: usize) -> EncoderPool {
        let threads_count = threads.max(1);
        let shared = Arc::new(Shared {
            encoder,
            queue: Mutex::default(),
            work: Condvar::new(),
            queue_texts_max,
            nanos_per_token: AtomicU64::new(NANOS_PER_TOKEN_ASSUMED),
        });
        let threads = (0..threads_count)
            .map(|index| {
                let shared = Arc::clone(&shared);
                std::thread::Builder::new()
                    .name(format!("encoder-{index}"))
                    .spawn(move || shared.work())
                    .expect("start an encoder thread")
            })
            .collect();
        EncoderPool(Arc::new(Owner {
            shared,
            threads: Mutex::new(threads),
            threads_count,
        }))
    }

    /// Takes all texts or none. After [`shutdown`](Self::shutdown) the receiver gives [`PoolStopped`].
    pub fn submit(&self, priority: Priority, texts: Vec<String>) -> Result<Receiver, QueueFull> {
        let (answer, receiver) = oneshot::channel();
        let receiver = Receiver(receiver);
        if texts.is_empty() {
            // The receiver is in hand, so it cannot have gone.
            let _ = answer.send(Vec::new());
            return Ok(receiver);
        }
        let shared = &self.0.shared;
        let encoder = &shared.encoder;
        let batch = Arc::new(Mutex::new(Batch {
            done: vec![None; texts.len()],
            missing: texts.len(),
            answer: Some(answer),
        }));
        let mut queue = shared.queue.lock();
        if queue.closed {
            return Ok(receiver);
        }
        let waiting = queue.len();
        if waiting + texts.len() > shared.queue_texts_max {
            return Err(QueueFull {
                waiting,
                refused: texts.len(),
                queue_texts_max: shared.queue_texts_max,
            });
        }
        for (index, text) in texts.into_iter().enumerate() {
            let tokens = estimated_tokens(&text, encoder.tokens_max());
            queue.tokens += tokens;
            let line = match priority {
                Priority::Query => &mut queue.queries,
                Priority::Write => &mut queue.writes,
            };
            line.push_back(Text {
                batch: Arc::clone(&batch),
                index,
                text,
                tokens,
            });
            shared.work.notify_one();
        }
        Ok(receiver)
    }

    /// How long a write of `extra_tokens` would take from now, by the speed measured here lately.
    pub fn estimated_wait(&self, extra_tokens: usize) -> Duration {
        let tokens = self.0.shared.queue.lock().tokens + extra_tokens;
        let nanos = self.0.shared.nanos_per_token.load(Ordering::Relaxed);
        Duration::from_nanos((tokens as u64).saturating_mul(nanos) / self.0.threads_count as u64)
    }

    /// Tokens of a text for [`estimated_wait`](Self::estimated_wait), from its length alone.
    pub fn estimated_tokens(&self, text: &str) -> usize {
        estimated_tokens(text, self.0.shared.encoder.tokens_max())
    }

    /// Texts that no thread has begun.
    pub fn queue_length(&self) -> usize {
        self.0.shared.queue.lock().len()
    }

    pub fn encoder(&self) -> &Arc<Encoder> {
        &self.0.shared.encoder
    }

    /// Lets every thread finish the text in its hands, drops the rest and waits for the threads.
    pub fn shutdown(&self) {
        self.0.close();
        let threads = std::mem::take(&mut *self.0.threads.lock());
        for thread in threads {
            // A thread that panicked has printed why; shutting down goes on.
            let _ = thread.join();
        }
    }
}

impl Owner {
    fn close(&self) {
        let dropped = {
            let mut queue = self.shared.queue.lock();
            queue.closed = true;
            (std::mem::take(&mut queue.queries), std::mem::take(&mut queue.writes))
        };
        self.shared.work.notify_all();
        // Outside of the lock: with the texts go their answers, and waiters wake up.
        drop(dropped);
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.close();
    }
}

impl Queue {
    fn len(&self) -> usize {
        self.queries.len() + self.writes.len()
    }

    fn next(&mut self) -> Option<Text> {
        self.queries.pop_front().or_else(|| self.writes.pop_front())
    }
}

impl Shared {
    fn work(&self) {
        while let Some(text) = self.wait_for_text() {
            let wanted = !text.batch.lock().is_cancelled();
            let embedding = wanted.then(|| self.encode(&text.text));
            // Before the answer goes out: who has it sees a queue without this text.
            {
                let mut queue = self.queue.lock();
                queue.tokens = queue.tokens.saturating_sub(text.tokens);
            }
            if let Some(embedding) = embedding {
                text.batch.lock().put(text.index, embedding);
            }
        }
    }

    fn wait_for_text(&self) -> Option<Text> {
        let mut queue = self.queue.lock();
        loop {
            if queue.closed {
                return None;
            }
            if let Some(text) = queue.next() {
                return Some(text);
            }
            self.work.wait(&mut queue);
        }
    }

    fn encode(&self, text: &str) -> Embedding {
        let begun = now();
        let embedding = self.encoder.embed(text);
        // Texts without a vector took no time worth measuring.
        if embedding.vector.is_some() {
            let nanos = begun.elapsed().as_nanos() as u64 / embedding.tokens as u64;
            // One part in eight: a single slow text does not turn the estimate. Lost updates do no harm.
            let before = self.nanos_per_token.load(Ordering::Relaxed);
            let after = before - before / 8 + nanos / 8;
            self.nanos_per_token.store(after.max(1), Ordering::Relaxed);
        }
        embedding
    }
}

impl Batch {
    fn is_cancelled(&self) -> bool {
        self.answer.as_ref().is_none_or(oneshot::Sender::is_closed)
    }

    fn put(&mut self, index: usize, embedding: Embedding) {
        if self.done[index].replace(embedding).is_none() {
            self.missing -= 1;
        }
        if self.missing == 0
            && let Some(answer) = self.answer.take()
        {
            // A receiver that went away no longer wants it.
            let _ = answer.send(self.done.drain(..).flatten().collect());
        }
    }
}

fn estimated_tokens(text: &str, tokens_max: usize) -> usize {
    (2 + text.len().div_ceil(BYTES_PER_TOKEN)).min(tokens_max)
}

/// Measures the encoder's own speed, which no simulation replays.
#[allow(clippy::disallowed_methods, reason = "a stopwatch, not a time in the domain")]
fn now() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests;
