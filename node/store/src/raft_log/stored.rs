//! What is stored of a log: reading it, and the proof at open that it is whole.

use std::ops::Range;

use rocksdb::ReadOptions;
use waggle_memory::meta::ShardId;
use waggle_shard::{LogEntry, LogId, Position, decode_log_id, decode_record, decode_vote, payload_bytes};

use super::tail::Tail;
use crate::fault::Fault;
use crate::key_kind::{Family, MetaKind};
use crate::keys;
use crate::open::Database;

/// Reads what is stored and proves it whole.
pub(super) fn load(database: &Database, shard: ShardId) -> Result<Tail, Fault> {
    let meta = |kind| database.meta(shard, kind);
    let log_id = |kind, what| -> Result<Option<LogId>, Fault> {
        let bytes = meta(kind)?;
        bytes
            .map(|bytes| decode_log_id(&bytes).map_err(|why| malformed(shard, what, &why)))
            .transpose()
    };
    let (purged, committed) = (
        log_id(MetaKind::Purged, "purge mark")?,
        log_id(MetaKind::Committed, "commit mark")?,
    );
    let vote = meta(MetaKind::Vote)?
        .map(|bytes| decode_vote(&bytes).map_err(|why| malformed(shard, "vote", &why)))
        .transpose()?;
    let applied = match database.applied_state(shard)? {
        Some(bytes) => {
            Position::decode(&bytes)
                .map_err(|why| malformed(shard, "applied state", &why))?
                .applied
        }
        None => None,
    };

    let first = purged.map_or(0, |purged| purged.index + 1);
    let mut tail = Tail {
        purged,
        first,
        last: purged,
        vote,
        committed,
        ..Tail::default()
    };
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
        return Err(damaged(
            shard,
            format!("{purged:?} is purged, but only {applied:?} is applied"),
        ));
    }
    let voted = vote.map(|vote| vote.leader_id);
    if tail.last.is_some_and(|last| Some(last.leader_id) > voted) && tail.last.map(|last| last.index) != Some(0) {
        return Err(damaged(
            shard,
            format!("the log ends at {:?}, but the vote is {vote:?}", tail.last),
        ));
    }
    Ok(tail)
}

/// Visits stored entries in order until `visit` says that it has enough.
pub(super) fn scan(
    database: &Database,
    shard: ShardId,
    range: Range<u64>,
    mut visit: impl FnMut(u64, &[u8]) -> Result<bool, Fault>,
) -> Result<(), Fault> {
    let upper = if range.end == u64::MAX {
        keys::shard_range(shard).1
    } else {
        keys::log_key(shard, range.end).to_vec()
    };
    let mut options = ReadOptions::default();
    options.set_iterate_upper_bound(upper);
    let mut rows = database
        .rocks()
        .raw_iterator_cf_opt(database.family(Family::RaftLog)?, options);
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

pub(super) fn decode(shard: ShardId, index: u64, value: &[u8]) -> Result<LogEntry, Fault> {
    let entry = decode_record(shard, value).map_err(|why| damaged(shard, format!("entry {index}: {why}")))?;
    if entry.log_id.index == index {
        Ok(entry)
    } else {
        Err(damaged(
            shard,
            format!("entry {index} says that it is {}", entry.log_id),
        ))
    }
}

pub(super) fn hole(shard: ShardId, expected: u64, found: Option<u64>) -> Fault {
    damaged(
        shard,
        match found {
            Some(found) => format!("entry {expected} is missing, {found} is the next"),
            None => format!("entry {expected} is missing"),
        },
    )
}

pub(super) fn malformed(shard: ShardId, what: &'static str, why: &dyn std::fmt::Display) -> Fault {
    damaged(shard, format!("{what}: {why}"))
}

pub(super) fn damaged(shard: ShardId, detail: String) -> Fault {
    Fault::Damaged {
        operation: "read the log of a replica",
        detail: format!("{shard}: {detail}"),
    }
}
