//! One thread that runs jobs in order. Tables are written, and derived indexes are told, on such a thread: RocksDB on a
//! runtime thread would look like a network timeout.

use std::panic::AssertUnwindSafe;
use std::thread::JoinHandle;

use tokio::sync::{mpsc, oneshot};

use crate::error::{Fault, StartError};

type Job = Box<dyn FnOnce() + Send>;

/// Jobs that wait; more make the senders wait, which is back pressure on the state machines.
const QUEUE_JOBS_MAX: usize = 1024;
/// Looks into the empty queue before the thread parks: waking a parked thread costs more than the work of one entry.
/// About 20 us, so an idle thread costs nothing and a busy one is not woken for each job.
const SPINS_BEFORE_PARK: u32 = 200;

/// The way to the thread. The thread ends when the last of these is dropped and the queue is empty.
#[derive(Clone, Debug)]
pub(crate) struct Worker {
    name: &'static str,
    jobs: mpsc::Sender<Job>,
}

impl Worker {
    pub(crate) fn spawn(name: &'static str) -> Result<(Self, JoinHandle<()>), StartError> {
        let (jobs, queue) = mpsc::channel(QUEUE_JOBS_MAX);
        let thread = std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || work(queue))
            .map_err(|error| StartError::Thread(format!("{name}: {error}")))?;
        Ok((Self { name, jobs }, thread))
    }

    /// Runs a job and gives its result. Not cancel-safe: a dropped call leaves the job running, or not.
    pub(crate) async fn run<T: Send + 'static>(&self, job: impl FnOnce() -> T + Send + 'static) -> Result<T, Fault> {
        let (done, result) = oneshot::channel();
        let job: Job = Box::new(move || {
            // Nobody waits any more when the replica is being shut down.
            let _ = done.send(job());
        });
        self.jobs.send(job).await.map_err(|_| Fault::worker_gone(self.name))?;
        result.await.map_err(|_| Fault::worker_gone(self.name))
    }
}

fn work(mut queue: mpsc::Receiver<Job>) {
    while let Some(job) = next(&mut queue) {
        // A panic halts the replica whose job it was (its result channel is dropped), not the others of this thread.
        let _ = std::panic::catch_unwind(AssertUnwindSafe(job));
    }
}

fn next(queue: &mut mpsc::Receiver<Job>) -> Option<Job> {
    for _ in 0..SPINS_BEFORE_PARK {
        match queue.try_recv() {
            Ok(job) => return Some(job),
            Err(mpsc::error::TryRecvError::Disconnected) => return None,
            Err(mpsc::error::TryRecvError::Empty) => std::hint::spin_loop(),
        }
    }
    queue.blocking_recv()
}
