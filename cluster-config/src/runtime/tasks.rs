//! Tasks with an owner. Every task of the system is spawned here with a [`Kind`], and the kind alone says what happens
//! when it ends by itself and what happens to it at shutdown: one table to read instead of many habits.

use std::fmt;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// What a task is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Accepts connections of a listener.
    Listener,
    /// Serves one connection or one call.
    Connection,
    /// Runs one replica of one shard.
    Replica,
    /// Owns something for the life of the process: an index, a cache, a queue.
    Service,
    /// Does one thing and is done.
    Job,
}

/// What a task's own end, or its panic, means for the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnEnd {
    /// Nothing: that is how such tasks end. A panic is logged.
    Fine,
    /// The process cannot do its work without it: shut down.
    StopProcess,
}

/// What shutdown does with a task that still runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnShutdown {
    /// It hears of the shutdown and ends in its own time, up to the deadline.
    Wait,
    /// It is dropped at its next await.
    Abort,
}

impl Kind {
    pub const fn on_end(self) -> OnEnd {
        match self {
            Self::Listener | Self::Replica | Self::Service => OnEnd::StopProcess,
            Self::Connection | Self::Job => OnEnd::Fine,
        }
    }

    pub const fn on_shutdown(self) -> OnShutdown {
        match self {
            Self::Listener | Self::Connection | Self::Replica | Self::Service => OnShutdown::Wait,
            Self::Job => OnShutdown::Abort,
        }
    }
}

/// Why the process is to stop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Somebody asked for it.
    Asked,
    /// A task ended that must not end.
    TaskEnded { kind: Kind, name: String, panicked: bool },
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Asked => f.write_str("asked to stop"),
            Self::TaskEnded { kind, name, panicked } => {
                let how = if *panicked { "panicked" } else { "ended by itself" };
                write!(f, "task '{name}' ({kind:?}) {how}")
            }
        }
    }
}

/// Owner of the tasks of one process, or of one part of it.
#[derive(Clone, Debug, Default)]
pub struct Tasks {
    tracker: TaskTracker,
    stop: CancellationToken,
    reason: Arc<Mutex<Option<Reason>>>,
}

impl Tasks {
    pub fn new() -> Self {
        Self::default()
    }

    /// Ends when shutdown begins; tasks that [`OnShutdown::Wait`] select on it.
    pub fn stopping(&self) -> CancellationToken {
        self.stop.clone()
    }

    /// Runs a task. Its end by itself before shutdown stops the process if its kind says so.
    pub fn spawn<F>(&self, kind: Kind, name: impl Into<String>, future: F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let name = name.into();
        let tasks = self.clone();
        let stop = self.stop.clone();
        self.tracker.spawn(async move {
            #[expect(
                clippy::disallowed_methods,
                reason = "the one place that spawns; the tracker owns the outer task"
            )]
            // A task inside the task, because only a join handle tells of a panic.
            let handle = tokio::spawn(async move {
                match kind.on_shutdown() {
                    OnShutdown::Wait => future.await,
                    OnShutdown::Abort => {
                        tokio::select! {
                            () = stop.cancelled() => {}
                            () = future => {}
                        }
                    }
                }
            });
            let panicked = handle.await.is_err_and(|error| error.is_panic());
            if panicked {
                tracing::error!(task = %name, kind = ?kind, "task panicked");
            }
            if kind.on_end() == OnEnd::StopProcess && !tasks.stop.is_cancelled() {
                tasks.stop_because(Reason::TaskEnded { kind, name, panicked });
            }
        });
    }

    /// Begins the shutdown. The first reason is kept.
    pub fn stop_because(&self, reason: Reason) {
        self.reason
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get_or_insert(reason);
        self.stop.cancel();
    }

    /// Why shutdown began, if it did.
    pub fn reason(&self) -> Option<Reason> {
        self.reason.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Begins the shutdown if nobody did, and waits for all tasks. False: some still ran at the deadline.
    pub async fn finish(&self, at_most: Duration) -> bool {
        self.stop_because(Reason::Asked);
        self.tracker.close();
        tokio::time::timeout(at_most, self.tracker.wait()).await.is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_end_of_a_listener_stops_the_process_and_the_end_of_a_job_does_not() {
        for (kind, stops) in [
            (Kind::Listener, true),
            (Kind::Replica, true),
            (Kind::Job, false),
            (Kind::Connection, false),
        ] {
            let tasks = Tasks::new();
            tasks.spawn(kind, "short", async {});
            tasks.tracker.close();
            tasks.tracker.wait().await;
            assert_eq!(tasks.stopping().is_cancelled(), stops, "{kind:?}");
        }
    }

    #[tokio::test]
    async fn a_panic_is_told_apart() {
        let tasks = Tasks::new();
        tasks.spawn(Kind::Service, "index", async { panic!("on purpose") });
        tasks.stopping().cancelled().await;
        let reason = tasks.reason().expect("stopped");
        assert_eq!(reason.to_string(), "task 'index' (Service) panicked");
    }

    #[tokio::test]
    async fn shutdown_aborts_jobs_and_waits_for_services() {
        let tasks = Tasks::new();
        let stopping = tasks.stopping();
        tasks.spawn(Kind::Job, "endless", std::future::pending());
        tasks.spawn(Kind::Service, "polite", async move { stopping.cancelled().await });
        assert!(tasks.finish(Duration::from_secs(30)).await);
        assert_eq!(tasks.reason(), Some(Reason::Asked));
    }

    #[tokio::test]
    async fn a_task_that_does_not_listen_is_reported() {
        let tasks = Tasks::new();
        tasks.spawn(Kind::Service, "deaf", std::future::pending());
        assert!(!tasks.finish(Duration::from_millis(5)).await);
    }
}
