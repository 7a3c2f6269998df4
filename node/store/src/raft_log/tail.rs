//! What is kept of a log in memory: its ends, the vote, and its newest entries.

use std::collections::VecDeque;
use std::io;
use std::ops::Range;

use waggle_shard::{LogEntry, LogId, Vote, payload_bytes};

use crate::fault::Fault;

/// Written entries that stay in the tail, so that apply and replication rarely ask the database.
const TAIL_ENTRIES_MAX: usize = 1024;
const TAIL_BYTES_MAX: usize = 1 << 20;
#[derive(Default)]
pub(super) struct Tail {
    pub(super) purged: Option<LogId>,
    /// Index of the first entry, if there is one.
    pub(super) first: u64,
    pub(super) last: Option<LogId>,
    pub(super) vote: Option<Vote>,
    pub(super) committed: Option<LogId>,
    pub(super) committed_unsaved: bool,
    /// The newest entries, without a hole. Everything before them is in the database.
    pub(super) entries: VecDeque<LogEntry>,
    pub(super) entry_bytes: usize,
    /// Appends on their way to the database: number and first index.
    pub(super) pending: VecDeque<(u64, u64)>,
    pub(super) appends: u64,
    pub(super) fault: Option<Fault>,
}

impl Tail {
    pub(super) fn next_index(&self) -> Option<u64> {
        self.last.map(|last| last.index + 1)
    }

    /// Splits a range into what the database holds and what is here; what the log does not have is left out.
    pub(super) fn locate(&self, range: Range<u64>) -> (Range<u64>, Vec<LogEntry>) {
        let (start, end) = (
            range.start.max(self.first),
            range.end.min(self.next_index().unwrap_or(0)),
        );
        if start >= end || self.last == self.purged {
            return (0..0, Vec::new());
        }
        let cached_from = self.entries.front().map_or(end, |entry| entry.log_id.index);
        let skip = usize::try_from(start.saturating_sub(cached_from)).unwrap_or(usize::MAX);
        let cached = self
            .entries
            .iter()
            .skip(skip)
            .take_while(|entry| entry.log_id.index < end)
            .cloned()
            .collect();
        (start..end.min(cached_from).max(start), cached)
    }

    pub(super) fn append(&mut self, entries: &[LogEntry]) -> io::Result<u64> {
        self.appends += 1;
        let Some(first) = entries.first() else {
            return Ok(self.appends);
        };
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

    /// Where to cut the stored log, if there is something to cut.
    pub(super) fn truncate_after(&mut self, last: Option<LogId>) -> Option<u64> {
        let from = last.map_or(0, |last| last.index + 1);
        if self.next_index().is_none_or(|next| from >= next) {
            return None;
        }
        while self.entries.back().is_some_and(|entry| entry.log_id.index >= from) {
            let gone = self.entries.pop_back();
            self.entry_bytes -= gone.map_or(0, |entry| payload_bytes(&entry.payload));
        }
        self.last = last.or(self.purged);
        Some(from)
    }

    pub(super) fn purge(&mut self, upto: LogId) {
        self.purged = self.purged.max(Some(upto));
        self.last = self.last.max(Some(upto));
        self.first = self.first.max(upto.index + 1);
        while self
            .entries
            .front()
            .is_some_and(|entry| entry.log_id.index <= upto.index)
        {
            self.pop_front();
        }
    }

    /// Lets written entries go once there are more than the tail should hold.
    pub(super) fn evict(&mut self) {
        let unwritten = self.pending.iter().map(|(_, first)| *first).min().unwrap_or(u64::MAX);
        while (self.entries.len() > TAIL_ENTRIES_MAX || self.entry_bytes > TAIL_BYTES_MAX)
            && self.entries.front().is_some_and(|entry| entry.log_id.index < unwritten)
        {
            self.pop_front();
        }
    }

    pub(super) fn pop_front(&mut self) {
        let gone = self.entries.pop_front();
        self.entry_bytes -= gone.map_or(0, |entry| payload_bytes(&entry.payload));
    }
}
