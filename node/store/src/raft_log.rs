//! The Raft log of a shard: openraft's log storage over the database. Entries can be read as soon as they are appended
//! (from the tail kept here), are written by the log writer, and are checked one by one when the log is opened: no
//! hole, no wrong checksum. What a crash tore off at the end RocksDB has cut off by then, and it was never acknowledged.

use std::collections::VecDeque;
use std::fmt::Debug;
use std::io;
use std::ops::{Bound, Range, RangeBounds};
use std::sync::Arc;

use futures::{Stream, TryStreamExt, stream};
use openraft::storage::{LogState, RaftLogReader, RaftLogStorage};
use parking_lot::{Condvar, Mutex};
use rocksdb::ReadOptions;
use tokio::sync::oneshot;
use waggle_memory::meta::ShardId;
use waggle_shard::{
    Flushed, LogEntry, LogId, Position, Types, Vote, decode_log_id, decode_record, decode_vote, encode_record,
    encode_vote, payload_bytes,
};

use crate::fault::Fault;
use crate::group_commit::{LogWriter, Write};
use crate::key_kind::{Family, MetaKind};
use crate::keys;
use crate::open::Database;

/// Written entries that stay in the tail, so that apply and replication rarely ask the database.
const TAIL_ENTRIES_MAX: usize = 1024;
const TAIL_BYTES_MAX: usize = 1 << 20;
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
}

#[derive(Default)]
struct Tail {
    purged: Option<LogId>,
    /// Index of the first entry, if there is one.
    first: u64,
    last: Option<LogId>,
    vote: Option<Vote>,
    committed: Option<LogId>,
    committed_unsaved: bool,
    /// The newest entries, without a hole. Everything before them is in the database.
    entries: VecDeque<LogEntry>,
    entry_bytes: usize,
    /// Appends on their way to the database: number and first index.
    pending: VecDeque<(u64, u64)>,
    appends: u64,
    fault: Option<Fault>,
}

impl RaftLog {
    /// Opens a log and checks every entry of it. Blocking.
    pub(crate) fn open(database: Arc<Database>, writer: LogWriter, shard: ShardId) -> Result<Self, Fault> {
        let tail = load(&database, shard)?;
        let log = ShardLog { shard, database, tail: Mutex::new(tail), written: Condvar::new() };
        Ok(Self { log: Arc::new(log), writer })
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
        Ok(if complete { limited(entries, cached, bytes_max) } else { entries })
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
        std::mem::take(&mut tail.committed_unsaved).then_some(tail.committed).flatten()
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

impl Tail {
    fn next_index(&self) -> Option<u64> {
        self.last.map(|last| last.index + 1)
    }

    /// Splits a range into what the database holds and what is here; what the log does not have is left out.
    fn locate(&self, range: Range<u64>) -> (Range<u64>, Vec<LogEntry>) {
        let (start, end) = (range.start.max(self.first), range.end.min(self.next_index().unwrap_or(0)));
        if start >= end || self.last == self.purged {
            return (0..0, Vec::new());
        }
        let cached_from = self.entries.front().map_or(end, |entry| entry.log_id.index);
        let skip = usize::try_from(start.saturating_sub(cached_from)).unwrap_or(usize::MAX);
        let cached = self.entries.iter().skip(skip).take_while(|entry| entry.log_id.index < end).cloned().collect();
        (start..end.min(cached_from).max(start), cached)
    }

    fn append(&mut self, entries: &[LogEntry]) -> io::Result<u64> {
        self.appends += 1;
        let Some(first) = entries.first() else { return Ok(self.appends) };
        if self.last.is_none() {
            self.first = first.log_id.index;
        }
        for entry in entries {
            if self.next_index().is_some_and(|next| next != entry.log_id.index) {
                let why = format!("append of {} after {:?} would leave a hole", entry.log_id, self.last);
                return Err(io::Error::other(why));
            }
            self.last = Some(entry.log_id);
            self.entry_bytes += payload_bytes(&entry.payload);
            self.entries.push_back(entry.clone());
        }
        self.pending.push_back((self.appends, first.log_id.index));
        Ok(self.appends)
    }

    fn truncate_after(&mut self, last: Option<LogId>) -> u64 {
        let from = last.map_or(0, |last| last.index + 1);
        while self.entries.back().is_some_and(|entry| entry.log_id.index >= from) {
            let gone = self.entries.pop_back();
            self.entry_bytes -= gone.map_or(0, |entry| payload_bytes(&entry.payload));
        }
        self.last = last.or(self.purged);
        from
    }

    fn purge(&mut self, upto: LogId) {
        self.purged = self.purged.max(Some(upto));
        self.last = self.last.max(Some(upto));
        self.first = self.first.max(upto.index + 1);
        while self.entries.front().is_some_and(|entry| entry.log_id.index <= upto.index) {
            self.pop_front();
        }
    }

    /// Lets written entries go once there are more than the tail should hold.
    fn evict(&mut self) {
        let unwritten = self.pending.iter().map(|(_, first)| *first).min().unwrap_or(u64::MAX);
        while (self.entries.len() > TAIL_ENTRIES_MAX || self.entry_bytes > TAIL_BYTES_MAX)
            && self.entries.front().is_some_and(|entry| entry.log_id.index < unwritten)
        {
            self.pop_front();
        }
    }

    fn pop_front(&mut self) {
        let gone = self.entries.pop_front();
        self.entry_bytes -= gone.map_or(0, |entry| payload_bytes(&entry.payload));
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
            let Some(last) = piece.last() else { return Ok::<_, io::Error>(None) };
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
        Ok(LogState { last_purged_log_id: tail.purged, last_log_id: tail.last })
    }

    async fn get_log_reader(&mut self) -> Self {
        self.clone()
    }

    async fn save_vote(&mut self, vote: &Vote) -> Result<(), io::Error> {
        let (done, saved) = oneshot::channel();
        let write = Write::Vote { shard: self.log.shard, bytes: encode_vote(vote), done };
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
        let records: Vec<_> = entries.iter().map(|e| (e.log_id.index, encode_record(shard, e))).collect();
        let bytes = records.iter().map(|(_, record)| record.len()).sum();
        let number = self.log.tail.lock().append(&entries)?;
        let write = Write::Append { log: Arc::clone(&self.log), number, records, done: callback };
        self.writer.send(write, bytes).await.map_err(io::Error::other)
    }

    async fn truncate_after(&mut self, last_log_id: Option<LogId>) -> Result<(), io::Error> {
        let from = self.log.tail.lock().truncate_after(last_log_id);
        let write = Write::Truncate { shard: self.log.shard, from };
        self.writer.send(write, 0).await.map_err(io::Error::other)
    }

    async fn purge(&mut self, log_id: LogId) -> Result<(), io::Error> {
        self.log.tail.lock().purge(log_id);
        let write = Write::Purge { shard: self.log.shard, upto: log_id };
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

/// Reads what is stored and proves it whole.
fn load(database: &Database, shard: ShardId) -> Result<Tail, Fault> {
    let meta = |kind| database.meta(shard, kind);
    let log_id = |kind, what| -> Result<Option<LogId>, Fault> {
        let bytes = meta(kind)?;
        bytes.map(|bytes| decode_log_id(&bytes).map_err(|why| malformed(shard, what, &why))).transpose()
    };
    let (purged, committed) = (log_id(MetaKind::Purged, "purge mark")?, log_id(MetaKind::Committed, "commit mark")?);
    let vote = meta(MetaKind::Vote)?
        .map(|bytes| decode_vote(&bytes).map_err(|why| malformed(shard, "vote", &why)))
        .transpose()?;
    let applied = match database.applied_state(shard)? {
        Some(bytes) => Position::decode(&bytes).map_err(|why| malformed(shard, "applied state", &why))?.applied,
        None => None,
    };

    let first = purged.map_or(0, |purged| purged.index + 1);
    let mut tail = Tail { purged, first, last: purged, vote, committed, ..Tail::default() };
    scan(database, shard, 0..u64::MAX, |index, value| {
        let expected = tail.next_index().unwrap_or(0);
        if index != expected {
            return Err(hole(shard, expected, Some(index)));
        }
        let entry = decode(shard, index, value)?;
        if tail.last.is_some_and(|last| last.leader_id > entry.log_id.leader_id) {
            return Err(damaged(shard, format!("{} comes after {:?}", entry.log_id, tail.last)));
        }
        tail.last = Some(entry.log_id);
        tail.entry_bytes += payload_bytes(&entry.payload);
        tail.entries.push_back(entry);
        tail.evict();
        Ok(true)
    })?;

    // I-04; and an entry is never without the vote of its term, which was synced before it.
    if purged > applied {
        return Err(damaged(shard, format!("{purged:?} is purged, but only {applied:?} is applied")));
    }
    let voted = vote.map(|vote| vote.leader_id);
    if tail.last.is_some_and(|last| Some(last.leader_id) > voted) && tail.last.map(|last| last.index) != Some(0) {
        return Err(damaged(shard, format!("the log ends at {:?}, but the vote is {vote:?}", tail.last)));
    }
    Ok(tail)
}

/// Visits stored entries in order until `visit` says that it has enough.
fn scan(
    database: &Database,
    shard: ShardId,
    range: Range<u64>,
    mut visit: impl FnMut(u64, &[u8]) -> Result<bool, Fault>,
) -> Result<(), Fault> {
    let upper = if range.end == u64::MAX { keys::shard_range(shard).1 } else { keys::log_key(shard, range.end).to_vec() };
    let mut options = ReadOptions::default();
    options.set_iterate_upper_bound(upper);
    options.set_total_order_seek(true);
    let mut rows = database.rocks().raw_iterator_cf_opt(database.family(Family::RaftLog)?, options);
    rows.seek(keys::log_key(shard, range.start));
    while let Some((key, value)) = rows.item() {
        let index = keys::log_index(shard, key).ok_or_else(|| damaged(shard, "a key is malformed".to_owned()))?;
        if !visit(index, value)? {
            return Ok(());
        }
        rows.next();
    }
    // A raw iterator ends alike on an error and at the end.
    rows.status().map_err(|error| Fault::read("read the log", error))
}

fn decode(shard: ShardId, index: u64, value: &[u8]) -> Result<LogEntry, Fault> {
    let entry = decode_record(shard, value).map_err(|why| damaged(shard, format!("entry {index}: {why}")))?;
    if entry.log_id.index == index {
        Ok(entry)
    } else {
        Err(damaged(shard, format!("entry {index} says that it is {}", entry.log_id)))
    }
}

fn hole(shard: ShardId, expected: u64, found: Option<u64>) -> Fault {
    damaged(shard, match found {
        Some(found) => format!("entry {expected} is missing, {found} is the next"),
        None => format!("entry {expected} is missing"),
    })
}

fn malformed(shard: ShardId, what: &'static str, why: &dyn std::fmt::Display) -> Fault {
    damaged(shard, format!("{what}: {why}"))
}

fn damaged(shard: ShardId, detail: String) -> Fault {
    Fault::Damaged { operation: "read the log of a replica", detail: format!("{shard}: {detail}") }
}
