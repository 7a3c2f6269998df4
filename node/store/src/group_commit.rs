//! The log writer: one thread per node that puts what all shards append into one batch, syncs once, and completes
//! everybody in order. Waking many waiters costs more than a sync on a busy machine, so a completion wakes nobody who
//! does not wait, and the thread looks into its queue for a moment before it parks.
//!
//! Order is what the rest relies on: of one shard, a vote is before the entries of its term, a truncation before the
//! append that follows it. A failed write is final: everything that waits and everything later fails, and the owner of
//! the process is told, because nobody knows what a failed sync left behind.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use rocksdb::WriteBatch;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use waggle_memory::meta::ShardId;
use waggle_shard::{Flushed, LogId, encode_log_id};

use crate::fault::Fault;
use crate::key_kind::{Family, MetaKind};
use crate::keys;
use crate::open::Database;
use crate::raft_log::ShardLog;

/// Writes that wait; more make consensus wait, which is back pressure.
const QUEUE_WRITES_MAX: usize = 4096;
/// Their bytes, of all shards together.
const QUEUE_KIBIBYTES_MAX: usize = 64 << 10;
/// What goes into one batch.
const ROUND_WRITES_MAX: usize = 1024;
const ROUND_BYTES_MAX: usize = 4 << 20;
/// About 20 us: less than parking and being woken.
const SPINS_BEFORE_PARK: u32 = 200;

/// Told once when a write has failed. The process must end: what is on the disk is unknown.
pub type OnFatal = Box<dyn Fn(&Fault) + Send + Sync>;

pub(crate) enum Write {
    Append {
        log: Arc<ShardLog>,
        number: u64,
        records: Vec<(u64, Vec<u8>)>,
        done: Flushed,
    },
    Vote {
        shard: ShardId,
        bytes: Vec<u8>,
        done: oneshot::Sender<Result<(), Fault>>,
    },
    Truncate {
        shard: ShardId,
        from: u64,
    },
    Purge {
        shard: ShardId,
        upto: LogId,
    },
    /// The thread ends after this round.
    Close,
}

/// The way to the log writer.
#[derive(Clone)]
pub(crate) struct LogWriter {
    queue: mpsc::Sender<(Write, OwnedSemaphorePermit)>,
    room: Arc<Semaphore>,
}

impl LogWriter {
    pub(crate) fn spawn(
        database: Arc<Database>,
        on_fatal: OnFatal,
    ) -> Result<(Self, std::thread::JoinHandle<()>), Fault> {
        let (queue, receiver) = mpsc::channel(QUEUE_WRITES_MAX);
        let thread = std::thread::Builder::new()
            .name("waggle-log".to_owned())
            .spawn(move || work(&database, receiver, &on_fatal))
            .map_err(|error| Fault::FileSystem {
                operation: "start the log writer",
                detail: error.to_string(),
            })?;
        Ok((
            Self {
                queue,
                room: Arc::new(Semaphore::new(QUEUE_KIBIBYTES_MAX)),
            },
            thread,
        ))
    }

    /// Puts a write into the queue. Not cancel-safe: a dropped call may have taken no place.
    pub(crate) async fn send(&self, write: Write, bytes: usize) -> Result<(), Fault> {
        let kibibytes = (bytes >> 10).clamp(1, QUEUE_KIBIBYTES_MAX);
        let room = Arc::clone(&self.room)
            .acquire_many_owned(u32::try_from(kibibytes).unwrap_or(u32::MAX))
            .await
            .map_err(|_| closed())?;
        self.queue.send((write, room)).await.map_err(|_| closed())
    }

    /// Tells the thread to end after what is queued; later sends fail. Blocking.
    pub(crate) fn close(&self) {
        if let Ok(room) = Arc::clone(&self.room).try_acquire_many_owned(0) {
            // A queue that is closed already is what was asked for.
            let _ = self.queue.blocking_send((Write::Close, room));
        }
    }
}

fn closed() -> Fault {
    Fault::WriteFailed {
        operation: "append to the log",
        detail: "the log writer has ended".to_owned(),
    }
}

fn work(database: &Database, mut queue: mpsc::Receiver<(Write, OwnedSemaphorePermit)>, on_fatal: &OnFatal) {
    let mut told = false;
    while let Some(first) = next(&mut queue) {
        let mut bytes = size(&first.0);
        let (mut round, mut rooms) = (vec![first.0], vec![first.1]);
        while round.len() < ROUND_WRITES_MAX && bytes < ROUND_BYTES_MAX {
            let Ok((write, room)) = queue.try_recv() else { break };
            bytes += size(&write);
            round.push(write);
            rooms.push(room);
        }
        let ends = round.iter().any(|write| matches!(write, Write::Close));
        let result = write_round(database, &round);
        for write in round {
            complete(write, &result);
        }
        drop(rooms);
        // After the completions: whoever waits must not hang, whatever this does.
        if let Err(fault) = &result
            && !std::mem::replace(&mut told, true)
        {
            tracing::error!(%fault, "the log cannot be written");
            on_fatal(fault);
        }
        if ends {
            return;
        }
    }
}

fn next(queue: &mut mpsc::Receiver<(Write, OwnedSemaphorePermit)>) -> Option<(Write, OwnedSemaphorePermit)> {
    for _ in 0..SPINS_BEFORE_PARK {
        match queue.try_recv() {
            Ok(write) => return Some(write),
            Err(mpsc::error::TryRecvError::Disconnected) => return None,
            Err(mpsc::error::TryRecvError::Empty) => std::hint::spin_loop(),
        }
    }
    queue.blocking_recv()
}

fn size(write: &Write) -> usize {
    match write {
        Write::Append { records, .. } => records.iter().map(|(_, record)| record.len() + 32).sum(),
        Write::Vote { .. } | Write::Truncate { .. } | Write::Purge { .. } | Write::Close => 64,
    }
}

fn write_round(database: &Database, round: &[Write]) -> Result<(), Fault> {
    let (log_family, meta_family) = (database.family(Family::RaftLog)?, database.family(Family::RaftMeta)?);
    let mut batch = WriteBatch::default();
    let mut committed: BTreeMap<ShardId, LogId> = BTreeMap::new();
    let mut synced = false;
    for write in round {
        match write {
            Write::Append { log, records, .. } => {
                synced = true;
                for (index, record) in records {
                    batch.put_cf(log_family, keys::log_key(log.shard(), *index), record);
                }
                committed.extend(log.take_unsaved_committed().map(|log_id| (log.shard(), log_id)));
            }
            Write::Vote { shard, bytes, .. } => {
                synced = true;
                batch.put_cf(meta_family, keys::meta_key(*shard, MetaKind::Vote), bytes);
            }
            Write::Truncate { shard, from } => {
                // Synced with the append that follows it, or harmless: a tail that comes back is an uncommitted one.
                let (_, end) = keys::shard_range(*shard);
                batch.delete_range_cf(log_family, keys::log_key(*shard, *from).as_slice(), end.as_slice());
            }
            Write::Purge { shard, upto } => {
                let (begin, end) = (
                    keys::log_key(*shard, 0),
                    keys::log_key(*shard, upto.index.saturating_add(1)),
                );
                batch.delete_range_cf(log_family, begin.as_slice(), end.as_slice());
                batch.put_cf(
                    meta_family,
                    keys::meta_key(*shard, MetaKind::Purged),
                    encode_log_id(upto),
                );
            }
            Write::Close => synced = true,
        }
    }
    for (shard, log_id) in committed {
        batch.put_cf(
            meta_family,
            keys::meta_key(shard, MetaKind::Committed),
            encode_log_id(&log_id),
        );
    }
    if !synced {
        return database.write_unsynced(batch, "change the log");
    }
    let started = Instant::now();
    database.write_synced(batch, "append to the log")?;
    metrics::histogram!("waggle_raft_append_fsync_duration_seconds").record(started.elapsed());
    Ok(())
}

fn complete(write: Write, result: &Result<(), Fault>) {
    match write {
        Write::Append { log, number, done, .. } => {
            log.written(number, result);
            done.io_completed(result.clone().map_err(std::io::Error::other));
        }
        // Nobody waits any more when the replica is being shut down.
        Write::Vote { done, .. } => drop(done.send(result.clone())),
        Write::Truncate { .. } | Write::Purge { .. } | Write::Close => {}
    }
}
