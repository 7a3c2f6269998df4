//! The Raft log of a shard: openraft's log storage over the database. Entries can be read as soon as they are appended
//! (from the tail kept here), are written by the log writer, and are checked one by one when the log is opened: no
//! hole, no wrong checksum. What a crash tore off at the end RocksDB has cut off by then, and it was never acknowledged.

mod stored;
mod tail;

use std::fmt::Debug;
use std::io;
use std::ops::{Bound, Range, RangeBounds};
use std::sync::Arc;

use futures::{Stream, TryStreamExt, stream};
use openraft::storage::{LogState, RaftLogReader, RaftLogStorage};
use parking_lot::{Condvar, Mutex};
use tokio::sync::oneshot;
use waggle_memory::meta::ShardId;
use waggle_shard::{Flushed, LogEntry, LogId, Types, Vote, encode_record, encode_vote, payload_bytes};

use crate::fault::Fault;
use crate::group_commit::{LogWriter, Write};
use crate::holders::Holder;
use crate::open::Database;
use stored::{decode, hole, load, scan};
use tail::Tail;

/// Bytes of one read: openraft limits entries only.
const READ_BYTES_MAX: usize = 1 << 20;

/// The log of one shard. Clones are readers of the same log.
#[derive(Clone)]
pub struct RaftLog {
    log: Arc<ShardLog>,
    writer: LogWriter,
}

/// What the writer, the readers and apply share of a log.
pub(crate) struct ShardLog {
    shard: ShardId,
    database: Arc<Database>,
    tail: Mutex<Tail>,
    written: Condvar,
    _holder: Holder,
}

impl RaftLog {
    /// Opens a log and checks every entry of it. Blocking.
    pub(crate) fn open(
        database: Arc<Database>,
        writer: LogWriter,
        holder: Holder,
        shard: ShardId,
    ) -> Result<Self, Fault> {
        let tail = load(&database, shard)?;
        let log = ShardLog {
            shard,
            database,
            tail: Mutex::new(tail),
            written: Condvar::new(),
            _holder: holder,
        };
        Ok(Self {
            log: Arc::new(log),
            writer,
        })
    }

    pub(crate) fn shared(&self) -> Arc<ShardLog> {
        Arc::clone(&self.log)
    }

    async fn read(&self, range: Range<u64>, bytes_max: usize) -> io::Result<Vec<LogEntry>> {
        let (stored, cached) = self.log.tail.lock().locate(range);
        if stored.is_empty() {
            return Ok(limited(Vec::new(), cached, bytes_max));
        }
        let log = Arc::clone(&self.log);
        let whole = stored.end - stored.start;
        // RocksDB may block, and the threads of the runtime must not.
        let read = tokio::task::spawn_blocking(move || log.read_stored(stored, bytes_max));
        let entries = read.await.map_err(io::Error::other)?.map_err(io::Error::other)?;
        let complete = u64::try_from(entries.len()).is_ok_and(|count| count == whole);
        Ok(if complete {
            limited(entries, cached, bytes_max)
        } else {
            entries
        })
    }
}

impl ShardLog {
    pub(crate) const fn shard(&self) -> ShardId {
        self.shard
    }

    /// The committed id that is to be saved with the next batch: it costs no write of its own, and what a crash makes
    /// it forget is in the applied state, which is written right after it.
    pub(crate) fn take_unsaved_committed(&self) -> Option<LogId> {
        let mut tail = self.tail.lock();
        std::mem::take(&mut tail.committed_unsaved)
            .then_some(tail.committed)
            .flatten()
    }

    /// An append is in the write-ahead log, or has failed.
    pub(crate) fn written(&self, number: u64, result: &Result<(), Fault>) {
        let mut tail = self.tail.lock();
        if let Err(fault) = result {
            tail.fault.get_or_insert_with(|| fault.clone());
        }
        while tail.pending.front().is_some_and(|(pending, _)| *pending <= number) {
            tail.pending.pop_front();
        }
        tail.evict();
        drop(tail);
        self.written.notify_all();
    }

    /// Waits until every append that may hold an entry up to `index` is in the write-ahead log: apply follows it there,
    /// so a crash never leaves applied rows without their log. Blocks for at most a sync.
    pub(crate) fn wait_written(&self, index: u64) -> Result<(), Fault> {
        let mut tail = self.tail.lock();
        while tail.fault.is_none() && tail.pending.iter().any(|(_, first)| *first <= index) {
            self.written.wait(&mut tail);
        }
        tail.fault.clone().map_or(Ok(()), Err)
    }

    fn read_stored(&self, range: Range<u64>, bytes_max: usize) -> Result<Vec<LogEntry>, Fault> {
        let mut entries = Vec::new();
        let (mut bytes, mut expected) = (0, range.start);
        scan(&self.database, self.shard, range.clone(), |index, value| {
            if index != expected {
                return Err(hole(self.shard, expected, Some(index)));
            }
            let entry = decode(self.shard, index, value)?;
            bytes += payload_bytes(&entry.payload);
            entries.push(entry);
            expected += 1;
            Ok(bytes < bytes_max)
        })?;
        if bytes < bytes_max && expected != range.end {
            return Err(hole(self.shard, expected, None));
        }
        Ok(entries)
    }
}

impl RaftLogReader<Types> for RaftLog {
    async fn try_get_log_entries<R>(&mut self, range: R) -> Result<Vec<LogEntry>, io::Error>
    where
        R: RangeBounds<u64> + Clone + Debug + Send,
    {
        self.read(bounds(&range), usize::MAX).await
    }

    async fn limited_get_log_entries(&mut self, start: u64, end: u64) -> Result<Vec<LogEntry>, io::Error> {
        self.read(start..end, READ_BYTES_MAX).await
    }

    /// In pieces: what a replica has to catch up with after a restart may be larger than memory should be.
    async fn entries_stream<R>(&mut self, range: R) -> impl Stream<Item = Result<LogEntry, io::Error>> + Send
    where
        R: RangeBounds<u64> + Clone + Debug + Send,
    {
        let Range { start, end } = bounds(&range);
        let pieces = stream::try_unfold((self.clone(), start), move |(log, at)| async move {
            let piece = log.read(at..end, READ_BYTES_MAX).await?;
            let Some(last) = piece.last() else {
                return Ok::<_, io::Error>(None);
            };
            let next = last.log_id.index + 1;
            Ok(Some((stream::iter(piece.into_iter().map(Ok)), (log, next))))
        });
        Box::pin(pieces.try_flatten())
    }

    async fn read_vote(&mut self) -> Result<Option<Vote>, io::Error> {
        Ok(self.log.tail.lock().vote)
    }
}

impl RaftLogStorage<Types> for RaftLog {
    type LogReader = Self;

    async fn get_log_state(&mut self) -> Result<LogState<Types>, io::Error> {
        let tail = self.log.tail.lock();
        Ok(LogState {
            last_purged_log_id: tail.purged,
            last_log_id: tail.last,
        })
    }

    async fn get_log_reader(&mut self) -> Self {
        self.clone()
    }

    async fn save_vote(&mut self, vote: &Vote) -> Result<(), io::Error> {
        let (done, saved) = oneshot::channel();
        let write = Write::Vote {
            shard: self.log.shard,
            bytes: encode_vote(vote),
            done,
        };
        self.writer.send(write, 0).await.map_err(io::Error::other)?;
        saved.await.map_err(io::Error::other)?.map_err(io::Error::other)?;
        self.log.tail.lock().vote = Some(*vote);
        Ok(())
    }

    async fn save_committed(&mut self, committed: Option<LogId>) -> Result<(), io::Error> {
        let mut tail = self.log.tail.lock();
        tail.committed_unsaved = tail.committed != committed;
        tail.committed = committed;
        Ok(())
    }

    async fn read_committed(&mut self) -> Result<Option<LogId>, io::Error> {
        Ok(self.log.tail.lock().committed)
    }

    async fn append<I>(&mut self, entries: I, callback: Flushed) -> Result<(), io::Error>
    where
        I: IntoIterator<Item = LogEntry> + Send,
        I::IntoIter: Send,
    {
        let entries: Vec<LogEntry> = entries.into_iter().collect();
        let shard = self.log.shard;
        let records: Vec<_> = entries
            .iter()
            .map(|e| (e.log_id.index, encode_record(shard, e)))
            .collect();
        let bytes = records.iter().map(|(_, record)| record.len()).sum();
        let number = self.log.tail.lock().append(&entries)?;
        let write = Write::Append {
            log: Arc::clone(&self.log),
            number,
            records,
            done: callback,
        };
        self.writer.send(write, bytes).await.map_err(io::Error::other)
    }

    async fn truncate_after(&mut self, last_log_id: Option<LogId>) -> Result<(), io::Error> {
        let from = self.log.tail.lock().truncate_after(last_log_id);
        let Some(from) = from else { return Ok(()) };
        let write = Write::Truncate {
            shard: self.log.shard,
            from,
        };
        self.writer.send(write, 0).await.map_err(io::Error::other)
    }

    async fn purge(&mut self, log_id: LogId) -> Result<(), io::Error> {
        self.log.tail.lock().purge(log_id);
        let write = Write::Purge {
            shard: self.log.shard,
            upto: log_id,
        };
        self.writer.send(write, 0).await.map_err(io::Error::other)
    }
}

/// Cuts at `bytes_max`, but never to nothing.
fn limited(mut entries: Vec<LogEntry>, more: Vec<LogEntry>, bytes_max: usize) -> Vec<LogEntry> {
    let mut bytes: usize = entries.iter().map(|entry| payload_bytes(&entry.payload)).sum();
    for entry in more {
        if bytes >= bytes_max {
            break;
        }
        bytes += payload_bytes(&entry.payload);
        entries.push(entry);
    }
    entries
}

fn bounds(range: &impl RangeBounds<u64>) -> Range<u64> {
    let start = match range.start_bound() {
        Bound::Included(start) => *start,
        Bound::Excluded(start) => start.saturating_add(1),
        Bound::Unbounded => 0,
    };
    let end = match range.end_bound() {
        Bound::Included(end) => end.saturating_add(1),
        Bound::Excluded(end) => *end,
        Bound::Unbounded => u64::MAX,
    };
    start..end
}

#[cfg(test)]
mod tests;
