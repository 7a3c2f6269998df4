//! openraft's state machine over the [`StateStore`] port. Runs of entries are applied in one transaction on the apply
//! thread; then derived indexes are told, then callers are answered. It decides nothing about commands: that is
//! `waggle_memory::apply`.
//!
//! A fault (an unreadable command, a panic, a failed read or write) ends the replica: nothing of the run is kept,
//! openraft stops, and the shard goes on without this copy.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

use futures::{Stream, TryStreamExt};
use openraft::EntryPayload;
use openraft::storage::{ApplyResponder, EntryResponder, RaftSnapshotBuilder, RaftStateMachine};
use tokio::sync::{Semaphore, oneshot};
use waggle_memory::meta::ShardId;
use waggle_memory::outcome::{Effects, Outcome};

use crate::codec::{Position, payload_bytes};
use crate::error::{Fault, StartError};
use crate::ports::{ApplyObserver, SnapshotFiles, StateStore};
use crate::telemetry;
use crate::types::{Answer, LogEntry, LogId, SnapshotMeta, StoredMembership, Types};
use crate::worker::Worker;

/// A run is applied in one transaction, whose writes are all in memory until it commits.
const RUN_ENTRIES_MAX: usize = 1024;
const RUN_BYTES_MAX: usize = 4 << 20;

type Snapshot = openraft::type_config::alias::SnapshotOf<Types, SnapshotFiles>;
type Build = Result<(SnapshotMeta, SnapshotFiles), Fault>;

/// What the state machines of a node share.
#[derive(Clone)]
pub struct Services {
    pub(crate) applier: Worker,
    observer: Arc<dyn ApplyObserver>,
    /// At most one snapshot is built at a time, unless a follower needs one at once.
    building: Arc<Semaphore>,
}

impl Services {
    /// Starts the apply thread. It ends when the last state machine and the last clone of this are gone.
    pub fn start(observer: Arc<dyn ApplyObserver>) -> Result<(Self, std::thread::JoinHandle<()>), StartError> {
        let (applier, thread) = Worker::spawn("waggle-apply")?;
        Ok((
            Self {
                applier,
                observer,
                building: Arc::new(Semaphore::new(1)),
            },
            thread,
        ))
    }
}

/// The state machine of one replica.
pub struct Machine {
    shard: ShardId,
    state: Arc<dyn StateStore>,
    services: Services,
    position: Position,
}

impl Machine {
    /// Reads where the state stands. Blocking.
    pub fn open(shard: ShardId, state: Arc<dyn StateStore>, services: Services) -> Result<Self, Fault> {
        let position = state.position()?;
        #[cfg(feature = "planted-bugs")]
        let position = crate::planted::position(position);
        Ok(Self {
            shard,
            state,
            services,
            position,
        })
    }

    /// Where the state stands.
    pub const fn position(&self) -> &Position {
        &self.position
    }
}

impl RaftStateMachine<Types> for Machine {
    type SnapshotData = SnapshotFiles;
    type SnapshotBuilder = Builder;

    async fn applied_state(&mut self) -> Result<(Option<LogId>, StoredMembership), io::Error> {
        Ok((self.position.applied, self.position.membership.clone()))
    }

    async fn apply<S>(&mut self, mut entries: S) -> Result<(), io::Error>
    where
        S: Stream<Item = Result<EntryResponder<Types>, io::Error>> + Unpin + Send,
    {
        loop {
            let run = next_run(&mut entries).await?;
            if run.is_empty() {
                return Ok(());
            }
            let (shard, position) = (self.shard, self.position.clone());
            let (state, observer) = (Arc::clone(&self.state), Arc::clone(&self.services.observer));
            let applied = self
                .services
                .applier
                .run(move || apply_run(shard, &*state, &*observer, position, run))
                .await?;
            self.position = applied?;
        }
    }

    async fn try_create_snapshot_builder(&mut self, force: bool) -> Option<Builder> {
        // Holding no permit is allowed only to whom openraft gives no choice: a follower waits for this snapshot.
        let permit = Arc::clone(&self.services.building).try_acquire_owned().ok();
        if permit.is_none() && !force {
            return None;
        }
        let state = Arc::clone(&self.state);
        let (taken, is_taken) = oneshot::channel();
        let build = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            build_snapshot(&*state, None, taken)
        });
        // Apply must not go on before the view is fixed. An error here is the build's own and comes out there.
        let _ = is_taken.await;
        Some(Builder { build: Some(build) })
    }

    async fn get_snapshot_builder(&mut self) -> Builder {
        match self.try_create_snapshot_builder(true).await {
            Some(builder) => builder,
            None => Builder { build: None },
        }
    }

    async fn install_snapshot(&mut self, meta: &SnapshotMeta, snapshot: SnapshotFiles) -> Result<(), io::Error> {
        let started = telemetry::now();
        let (state, meta) = (Arc::clone(&self.state), meta.clone());
        self.position = blocking(move || state.install_snapshot(&meta, &snapshot)).await?;
        self.services.observer.replaced(self.shard);
        telemetry::snapshot("in", started);
        Ok(())
    }

    async fn get_current_snapshot(&mut self) -> Result<Option<Snapshot>, io::Error> {
        let state = Arc::clone(&self.state);
        let current = blocking(move || state.current_snapshot()).await?;
        Ok(current.map(|(meta, snapshot)| Snapshot { meta, snapshot }))
    }
}

/// A snapshot that is being written.
pub struct Builder {
    build: Option<tokio::task::JoinHandle<Build>>,
}

impl RaftSnapshotBuilder<Types> for Builder {
    type SnapshotData = SnapshotFiles;

    async fn build_snapshot(&mut self) -> Result<Snapshot, io::Error> {
        let build = self
            .build
            .take()
            .ok_or_else(|| io::Error::other("a snapshot builder builds once"))?;
        let (meta, snapshot) = build.await.map_err(io::Error::other)??;
        Ok(Snapshot { meta, snapshot })
    }
}

pub(crate) fn build_snapshot(state: &dyn StateStore, into: Option<&Path>, taken: oneshot::Sender<()>) -> Build {
    let started = telemetry::now();
    let taken = Box::new(move || {
        // Nobody waits when the replica is being shut down.
        let _ = taken.send(());
    });
    let built = state.build_snapshot(into, taken)?;
    telemetry::snapshot("out", started);
    Ok(built)
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T, Fault> + Send + 'static) -> Result<T, io::Error> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(io::Error::other)?
        .map_err(io::Error::from)
}

async fn next_run<S>(entries: &mut S) -> Result<Vec<EntryResponder<Types>>, io::Error>
where
    S: Stream<Item = Result<EntryResponder<Types>, io::Error>> + Unpin + Send,
{
    let (mut run, mut bytes) = (Vec::new(), 0);
    while run.len() < RUN_ENTRIES_MAX && bytes < RUN_BYTES_MAX {
        let Some(item) = entries.try_next().await? else { break };
        bytes += payload_bytes(&item.0.payload);
        run.push(item);
    }
    Ok(run)
}

fn apply_run(
    shard: ShardId,
    state: &dyn StateStore,
    observer: &dyn ApplyObserver,
    mut position: Position,
    run: Vec<EntryResponder<Types>>,
) -> Result<Position, Fault> {
    let mut transaction = state.begin();
    let mut answers: Vec<(ApplyResponder<Types>, Outcome)> = Vec::with_capacity(run.len());
    let mut effects: Vec<Effects> = Vec::new();
    for (entry, responder) in run {
        check_order(&position, &entry)?;
        let index = entry.log_id.index;
        let outcome = match &entry.payload {
            EntryPayload::Blank => Outcome::Done,
            EntryPayload::Membership(membership) => {
                position.membership = StoredMembership::new(Some(entry.log_id), membership.clone());
                Outcome::Done
            }
            EntryPayload::Normal(command) => {
                let decoded =
                    waggle_proto::log::decode_entry(&command.0).map_err(|why| Fault::undecodable(index, &why))?;
                #[cfg(feature = "planted-bugs")]
                let decoded = crate::planted::bent(decoded);
                // A panic would come again on every replica and every start. Caught, it stops this replica at this
                // entry with its files intact; the transaction is thrown away.
                let applied = catch_unwind(AssertUnwindSafe(|| {
                    waggle_memory::apply::apply(&mut *transaction, &decoded)
                }))
                .map_err(|_| Fault::panicked(index))?;
                #[cfg(feature = "planted-bugs")]
                if crate::planted::applies_twice(index) {
                    let again = waggle_memory::command::Entry {
                        request: None,
                        ..decoded
                    };
                    waggle_memory::apply::apply(&mut *transaction, &again);
                }
                if !applied.effects.changed.is_empty() || applied.effects.awaiting_vectors {
                    effects.push(applied.effects);
                }
                applied.outcome
            }
        };
        position.applied = Some(entry.log_id);
        if let Some(responder) = responder {
            answers.push((responder, outcome));
        }
    }
    transaction.commit(&position)?;
    if let Some(last) = position.applied.filter(|_| !effects.is_empty()) {
        observer.applied(shard, last.index, &effects);
    }
    for (responder, outcome) in answers {
        responder.send(Answer(outcome));
    }
    Ok(position)
}

/// I-05: applying an entry twice would be as wrong as never. That none is left out is the log's to prove: a read that
/// meets a hole is a fault (openraft's own suite applies with gaps, so it cannot be demanded here).
fn check_order(position: &Position, entry: &LogEntry) -> Result<(), Fault> {
    match position.applied {
        Some(last) if entry.log_id <= last || entry.log_id.index <= last.index => Err(Fault::new(
            "shard_apply_order",
            format!(
                "apply entry {} after {last}: not a later one; report this as a bug",
                entry.log_id
            ),
        )),
        _ => Ok(()),
    }
}
