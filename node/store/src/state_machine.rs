//! The consensus crate's ports over the database: logs and states of the shards of this node.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::Mutex;
use rocksdb::WriteBatch;
use waggle_memory::meta::ShardId;
use waggle_memory::tables::{Key, ReadTables, Row, Tables};
use waggle_shard::{
    LogId, Position, SnapshotFiles, SnapshotMeta, StateStore, Storage, Transaction, Vote, encode_log_id, encode_vote,
};

use crate::fault::Fault;
use crate::group_commit::{LogWriter, OnFatal};
use crate::holders::{Holder, Holders};
use crate::key_kind::{Family, MetaKind};
use crate::keys;
use crate::open::Database;
use crate::raft_log::{RaftLog, ShardLog};
use crate::snapshot;
use crate::tables::ShardTransaction;

/// Far more than the tasks of consensus need to end.
const CLOSE_WAIT: Duration = Duration::from_secs(2);

/// Logs and states of all shards of a node.
pub struct RaftStore {
    database: Arc<Database>,
    writer: LogWriter,
    thread: Mutex<Option<JoinHandle<()>>>,
    logs: Arc<Logs>,
    holders: Holders,
}

/// The logs that are open. Apply asks here whether the log batches of its entries are written.
#[derive(Default)]
struct Logs(Mutex<BTreeMap<ShardId, Arc<ShardLog>>>);

impl RaftStore {
    /// Starts the log writer of a node. `on_fatal` is called once if a write fails; it must end the process.
    pub fn start(database: Arc<Database>, on_fatal: OnFatal) -> Result<Arc<Self>, Fault> {
        let (writer, thread) = LogWriter::spawn(Arc::clone(&database), on_fatal)?;
        Ok(Arc::new(Self {
            database,
            writer,
            thread: Mutex::new(Some(thread)),
            logs: Arc::default(),
            holders: Holders::default(),
        }))
    }

    /// The database below, for reading tables.
    pub const fn database(&self) -> &Arc<Database> {
        &self.database
    }

    /// Ends the log writer after what is queued, synced, and waits a moment for the tasks of consensus to let go of the
    /// database. Shards are shut down before. Blocking.
    pub fn close(&self) {
        self.logs.0.lock().clear();
        let thread = self.thread.lock().take();
        let Some(thread) = thread else { return };
        self.writer.close();
        // A panic of the writer was answered by whoever waited for it.
        let _ = thread.join();
        let held_by = self.holders.wait(CLOSE_WAIT);
        if held_by > 0 {
            tracing::warn!(
                held_by,
                "logs or states of shards are still in use; the data directory stays locked"
            );
        }
    }

    /// Lets go of the log of a replica that has stopped, and removes its snapshots. Blocking.
    pub fn forget(&self, shard: ShardId) {
        self.logs.0.lock().remove(&shard);
        let snapshots = snapshot::directory(&self.database, shard);
        if let Err(error) = std::fs::remove_dir_all(&snapshots)
            && error.kind() != std::io::ErrorKind::NotFound
        {
            tracing::warn!(%error, path = %snapshots.display(), "the snapshots of a former replica stay");
        }
    }

    /// Makes a snapshot the state of a shard that has no data on this node yet, so that a replica can start from it.
    /// For restoring a backup and for tests; replicas that run receive snapshots through consensus. Blocking.
    pub fn restore_from(&self, shard: ShardId, directory: &Path) -> Result<Position, Fault> {
        let has_vote = self.database.meta(shard, MetaKind::Vote)?.is_some();
        if has_vote || self.database.applied_state(shard)?.is_some() {
            return Err(Fault::Damaged {
                operation: "restore a shard",
                detail: format!("{shard} has data on this node; drop it first"),
            });
        }
        if let Some(last) = snapshot::position_of(directory, shard)?.applied {
            self.restore_log_marks(shard, last)?;
        }
        Ok(snapshot::install(&self.database, shard, directory)?.0)
    }

    /// An empty log that goes on behind the snapshot, and a vote of the last known term: without it a new leader would
    /// begin in term 1 and write entries older than those it has. Written before the rows: a replica that has the marks
    /// only does not start, one that has the rows only would.
    fn restore_log_marks(&self, shard: ShardId, last: LogId) -> Result<(), Fault> {
        let meta = self.database.family(Family::RaftMeta)?;
        let vote = Vote {
            leader_id: last.leader_id,
            committed: false,
        };
        let mut batch = WriteBatch::default();
        batch.put_cf(meta, keys::meta_key(shard, MetaKind::Purged), encode_log_id(&last));
        batch.put_cf(meta, keys::meta_key(shard, MetaKind::Vote), encode_vote(&vote));
        self.database.write_synced(batch, "restore a shard")
    }
}

impl Drop for RaftStore {
    fn drop(&mut self) {
        // Without joining: dropping may happen on a runtime thread. The writer ends with the last log.
        self.logs.0.lock().clear();
    }
}

impl Storage for RaftStore {
    type Log = RaftLog;

    fn open_log(&self, shard: ShardId) -> Result<RaftLog, waggle_shard::Fault> {
        let log = RaftLog::open(
            Arc::clone(&self.database),
            self.writer.clone(),
            self.holders.hold(),
            shard,
        )?;
        self.logs.0.lock().insert(shard, log.shared());
        Ok(log)
    }

    fn open_state(&self, shard: ShardId) -> Result<Arc<dyn StateStore>, waggle_shard::Fault> {
        snapshot::finish_interrupted(&self.database, shard)?;
        Ok(Arc::new(ShardState {
            shard,
            database: Arc::clone(&self.database),
            logs: Arc::clone(&self.logs),
            _holder: self.holders.hold(),
        }))
    }
}

/// The state of one shard.
struct ShardState {
    shard: ShardId,
    database: Arc<Database>,
    logs: Arc<Logs>,
    _holder: Holder,
}

impl StateStore for ShardState {
    fn position(&self) -> Result<Position, waggle_shard::Fault> {
        match self.database.applied_state(self.shard)? {
            Some(bytes) => Position::decode(&bytes)
                .map_err(|why| waggle_shard::Fault::malformed(format!("the applied state of {}", self.shard), why)),
            None => Ok(Position::default()),
        }
    }

    fn begin(&self) -> Box<dyn Transaction + '_> {
        Box::new(Run {
            rows: self.database.transaction(self.shard),
            state: self,
        })
    }

    fn build_snapshot(
        &self,
        into: Option<&Path>,
        taken: Box<dyn FnOnce() + Send + '_>,
    ) -> Result<(SnapshotMeta, SnapshotFiles), waggle_shard::Fault> {
        Ok(described(snapshot::build(&self.database, self.shard, into, taken)?))
    }

    fn install_snapshot(&self, meta: &SnapshotMeta, files: &SnapshotFiles) -> Result<Position, waggle_shard::Fault> {
        let position = snapshot::position_of(&files.directory, self.shard)?;
        if position.applied != meta.last_log_id || position.membership != meta.last_membership {
            let detail = format!("the files hold {:?}, the head says {meta}", position.applied);
            return Err(Fault::Damaged {
                operation: "install a snapshot",
                detail,
            }
            .into());
        }
        Ok(snapshot::install(&self.database, self.shard, &files.directory)?.0)
    }

    fn current_snapshot(&self) -> Result<Option<(SnapshotMeta, SnapshotFiles)>, waggle_shard::Fault> {
        Ok(snapshot::current(&self.database, self.shard)?.map(described))
    }
}

fn described((position, directory): (Position, std::path::PathBuf)) -> (SnapshotMeta, SnapshotFiles) {
    let meta = SnapshotMeta {
        last_log_id: position.applied,
        last_membership: position.membership,
    };
    (
        meta,
        SnapshotFiles {
            directory: directory.into(),
        },
    )
}

/// A run of entries that is being applied.
struct Run<'a> {
    rows: ShardTransaction<'a>,
    state: &'a ShardState,
}

impl ReadTables for Run<'_> {
    fn get(&self, key: &Key) -> Option<Row> {
        self.rows.get(key)
    }

    fn scan(&self, from: &Key, to: &Key, limit: usize) -> Vec<(Key, Row)> {
        self.rows.scan(from, to, limit)
    }

    fn scan_back(&self, from: &Key, to: &Key, limit: usize) -> Vec<(Key, Row)> {
        self.rows.scan_back(from, to, limit)
    }
}

impl Tables for Run<'_> {
    fn put(&mut self, key: Key, row: Row) {
        self.rows.put(key, row);
    }

    fn delete(&mut self, key: Key) {
        self.rows.delete(key);
    }
}

impl Transaction for Run<'_> {
    fn commit(self: Box<Self>, position: &Position) -> Result<(), waggle_shard::Fault> {
        let log = self.state.logs.0.lock().get(&self.state.shard).cloned();
        if let (Some(log), Some(last)) = (log, position.applied) {
            log.wait_written(last.index)?;
        }
        Ok(self.rows.commit(&position.encode())?)
    }
}

impl From<Fault> for waggle_shard::Fault {
    fn from(fault: Fault) -> Self {
        Self::new(fault.code(), fault.to_string())
    }
}
