//! The rows of one shard, as the domain sees them: [`ShardView`] to read at one moment, [`ShardTransaction`] to apply a
//! run of entries. Called on threads that may block, never on those of the runtime.
//!
//! The domain's port has no room for a failing disk: a fault is kept, the row counts as absent, and whoever owns the
//! view or transaction asks for the fault before he uses the answer.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use rocksdb::{DBPinnableSlice, ReadOptions, Snapshot, WriteBatch};
use waggle_memory::meta::ShardId;
use waggle_memory::tables::{Key, ReadTables, Row, Tables};
use waggle_proto::log::{RowKind, decode_row, encode_row};

use crate::fault::Fault;
use crate::key_kind::{Family, KeyKind, MetaKind};
use crate::keys::{self, decode_key, encode_key};
use crate::open::Database;

impl Database {
    /// The rows of a shard as they are now; later writes do not show. Holds back the removal of old versions, so it
    /// should not live longer than a request.
    pub fn view(&self, shard: ShardId) -> ShardView<'_> {
        ShardView {
            rows: StoredRows {
                database: self,
                shard,
                snapshot: Some(self.rocks().snapshot()),
            },
            fault: OnceLock::new(),
        }
    }

    /// Reads a shard at one moment. No answer leaves that rests on a row that could not be read.
    pub fn read<T>(&self, shard: ShardId, read: impl FnOnce(&dyn ReadTables) -> T) -> Result<T, Fault> {
        let view = self.view(shard);
        let answer = read(&view);
        view.check()?;
        Ok(answer)
    }

    /// Begins a transaction of a shard. One at a time for each shard: its reads see the database as it is, because
    /// nobody else writes rows of that shard.
    pub fn transaction(&self, shard: ShardId) -> ShardTransaction<'_> {
        ShardTransaction {
            stored: StoredRows {
                database: self,
                shard,
                snapshot: None,
            },
            written: BTreeMap::new(),
            fault: OnceLock::new(),
        }
    }
}

/// Rows of a shard at one moment.
pub struct ShardView<'a> {
    rows: StoredRows<'a>,
    fault: OnceLock<Fault>,
}

impl ShardView<'_> {
    /// The first fault, if there was one: then nothing that was read counts.
    pub fn check(&self) -> Result<(), Fault> {
        self.fault.get().map_or(Ok(()), |fault| Err(fault.clone()))
    }
}

impl ReadTables for ShardView<'_> {
    fn get(&self, key: &Key) -> Option<Row> {
        kept(&self.fault, self.rows.get(key, &encode_key(self.rows.shard, key)))
    }

    fn scan(&self, from: &Key, to: &Key, limit: usize) -> Vec<(Key, Row)> {
        kept(
            &self.fault,
            self.rows.scan(&Written::new(), from, to, limit, Direction::Up),
        )
    }

    fn scan_back(&self, from: &Key, to: &Key, limit: usize) -> Vec<(Key, Row)> {
        kept(
            &self.fault,
            self.rows.scan(&Written::new(), from, to, limit, Direction::Down),
        )
    }
}

/// Writes of a run of entries: seen by its own reads, in the database all at once or, when it is dropped, not at all.
pub struct ShardTransaction<'a> {
    stored: StoredRows<'a>,
    written: Written,
    fault: OnceLock<Fault>,
}

/// Writes by encoded key, which is also their order in a scan. Rows stay decoded: a counter that every entry of a run
/// changes is encoded once.
type Written = BTreeMap<Vec<u8>, Write>;

struct Write {
    key: Key,
    row: Option<Row>,
}

impl ShardTransaction<'_> {
    /// The first fault, if there was one: then the transaction cannot be committed.
    pub fn check(&self) -> Result<(), Fault> {
        self.fault.get().map_or(Ok(()), |fault| Err(fault.clone()))
    }

    /// Writes rows and applied state in one batch (I-03), not synced: the Raft log repeats what a crash takes away. The
    /// log batches of the same entries must have been written before.
    pub fn commit(self, applied_state: &[u8]) -> Result<(), Fault> {
        self.check()?;
        let database = self.stored.database;
        let mut batch = WriteBatch::new();
        for (bytes, write) in &self.written {
            let family = database.family(KeyKind::of(&write.key).family())?;
            match &write.row {
                Some(row) => batch.put_cf(family, bytes, encode_row(row)),
                None => batch.delete_cf(family, bytes),
            }
        }
        let meta = keys::meta_key(self.stored.shard, MetaKind::Applied);
        batch.put_cf(database.family(Family::RaftMeta)?, meta, applied_state);
        database.write_unsynced(batch, "apply entries")
    }
}

impl ReadTables for ShardTransaction<'_> {
    fn get(&self, key: &Key) -> Option<Row> {
        let bytes = encode_key(self.stored.shard, key);
        match self.written.get(&bytes) {
            Some(write) => write.row.clone(),
            None => kept(&self.fault, self.stored.get(key, &bytes)),
        }
    }

    fn scan(&self, from: &Key, to: &Key, limit: usize) -> Vec<(Key, Row)> {
        kept(
            &self.fault,
            self.stored.scan(&self.written, from, to, limit, Direction::Up),
        )
    }

    fn scan_back(&self, from: &Key, to: &Key, limit: usize) -> Vec<(Key, Row)> {
        kept(
            &self.fault,
            self.stored.scan(&self.written, from, to, limit, Direction::Down),
        )
    }
}

impl Tables for ShardTransaction<'_> {
    fn put(&mut self, key: Key, row: Row) {
        let (expected, found) = (KeyKind::of(&key).row(), RowKind::of(&row));
        if expected != found {
            self.fault.get_or_init(|| Fault::MisplacedRow {
                key: format!("{key:?}"),
                row: found.word(),
            });
            return;
        }
        self.written
            .insert(encode_key(self.stored.shard, &key), Write { key, row: Some(row) });
    }

    fn delete(&mut self, key: Key) {
        self.written
            .insert(encode_key(self.stored.shard, &key), Write { key, row: None });
    }
}

/// What was read, or nothing and a kept fault.
fn kept<T: Default>(first: &OnceLock<Fault>, read: Result<T, Fault>) -> T {
    read.unwrap_or_else(|fault| {
        first.get_or_init(|| fault);
        T::default()
    })
}

#[derive(Clone, Copy)]
enum Direction {
    Up,
    Down,
}

/// Rows of a shard in the database, at a moment or as they are.
struct StoredRows<'a> {
    database: &'a Database,
    shard: ShardId,
    snapshot: Option<Snapshot<'a>>,
}

impl StoredRows<'_> {
    fn options(&self) -> ReadOptions {
        let mut options = ReadOptions::default();
        if let Some(snapshot) = &self.snapshot {
            options.set_snapshot(snapshot);
        }
        options
    }

    fn get(&self, key: &Key, bytes: &[u8]) -> Result<Option<Row>, Fault> {
        let kind = KeyKind::of(key);
        let family = self.database.family(kind.family())?;
        let found: Option<DBPinnableSlice<'_>> = self
            .database
            .rocks()
            .get_pinned_cf_opt(family, bytes, &self.options())
            .map_err(|error| Fault::read("read a row", error))?;
        found.map(|value| row_of(kind, key, &value)).transpose()
    }

    /// Rows from `from` to `to`, both included, with `written` laid over them. Kinds lie in several families, so a scan
    /// goes from kind to kind; nearly every scan has one.
    fn scan(
        &self,
        written: &Written,
        from: &Key,
        to: &Key,
        limit: usize,
        direction: Direction,
    ) -> Result<Vec<(Key, Row)>, Fault> {
        let same_rows = match (from, to) {
            (Key::Shard(_), Key::Shard(_)) => true,
            (Key::Tenant(a, _), Key::Tenant(b, _)) => a == b,
            (Key::Shard(_), Key::Tenant(..)) | (Key::Tenant(..), Key::Shard(_)) => false,
        };
        if !same_rows {
            return Err(Fault::ScanAcrossTenants {
                from: format!("{from:?}"),
                to: format!("{to:?}"),
            });
        }
        let first = encode_key(self.shard, from);
        // The smallest bytes after `to`: bounds of iterators exclude their upper end.
        let mut end = encode_key(self.shard, to);
        end.push(0);
        let kinds = KeyKind::ALL
            .iter()
            .filter(|kind| (KeyKind::of(from)..=KeyKind::of(to)).contains(kind));
        let mut rows = Vec::new();
        let mut scan_kind = |kind: KeyKind| {
            let (kind_first, kind_end) = keys::kind_range(self.shard, from, kind);
            let bounds = (kind_first.max(first.clone()), kind_end.min(end.clone()));
            if rows.len() < limit && bounds.0 < bounds.1 {
                self.scan_kind(written, kind, bounds, limit, direction, &mut rows)?;
            }
            Ok(())
        };
        match direction {
            Direction::Up => kinds.copied().try_for_each(&mut scan_kind)?,
            Direction::Down => kinds.rev().copied().try_for_each(&mut scan_kind)?,
        }
        Ok(rows)
    }

    fn scan_kind(
        &self,
        written: &Written,
        kind: KeyKind,
        (first, end): (Vec<u8>, Vec<u8>),
        limit: usize,
        direction: Direction,
        rows: &mut Vec<(Key, Row)>,
    ) -> Result<(), Fault> {
        let mut options = self.options();
        options.set_iterate_lower_bound(first.as_slice());
        options.set_iterate_upper_bound(end.as_slice());
        let family = self.database.family(kind.family())?;
        let mut over = written.range(first.clone()..end);
        let mut next_over = move || match direction {
            Direction::Up => over.next(),
            Direction::Down => over.next_back(),
        };
        let mut stored = self.database.rocks().raw_iterator_cf_opt(family, options);
        match direction {
            Direction::Up => stored.seek(&first),
            Direction::Down => stored.seek_to_last(),
        }
        let mut over = next_over();
        while rows.len() < limit {
            let below = stored.key();
            let takes_over = match (below, over) {
                (_, None) => false,
                (None, Some(_)) => true,
                (Some(below), Some((above, _))) => match direction {
                    Direction::Up => above.as_slice() <= below,
                    Direction::Down => above.as_slice() >= below,
                },
            };
            let step = if takes_over {
                let Some((bytes, write)) = over else { break };
                if let Some(row) = &write.row {
                    rows.push((write.key.clone(), row.clone()));
                }
                let hides = below == Some(bytes.as_slice());
                over = next_over();
                hides
            } else {
                let Some((bytes, value)) = stored.item() else { break };
                let key = self.key_of(bytes)?;
                let row = row_of(kind, &key, value)?;
                rows.push((key, row));
                true
            };
            if step {
                match direction {
                    Direction::Up => stored.next(),
                    Direction::Down => stored.prev(),
                }
            }
        }
        // A raw iterator ends alike on an error and at the end.
        stored.status().map_err(|error| Fault::read("scan rows", error))
    }

    fn key_of(&self, bytes: &[u8]) -> Result<Key, Fault> {
        let malformed = |detail: String| Fault::MalformedRow {
            key: hex(bytes),
            detail,
        };
        let (shard, key) = decode_key(bytes).map_err(|error| malformed(error.to_string()))?;
        if shard == self.shard {
            Ok(key)
        } else {
            Err(malformed(format!("it belongs to {shard}")))
        }
    }
}

fn row_of(kind: KeyKind, key: &Key, value: &[u8]) -> Result<Row, Fault> {
    decode_row(kind.row(), value).map_err(|error| Fault::MalformedRow {
        key: format!("{key:?}"),
        detail: error.to_string(),
    })
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().take(64).map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests;
