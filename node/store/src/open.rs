//! The database of a node: one RocksDB with few families and one write-ahead log, shared by all shards of the node.
//!
//! Two kinds of writes, both in the same log and therefore in one order: synced ones (Raft entries and votes) and
//! unsynced ones (applied rows, which the Raft log repeats after a crash). Whoever opens it: the node at start, tools.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use rocksdb::{
    BlockBasedIndexType, BlockBasedOptions, Cache, ColumnFamily, ColumnFamilyDescriptor, DB, DBCompressionType,
    DBRecoveryMode, Env, LogLevel, LruCacheOptions, Options, WriteBatch, WriteOptions,
};
use waggle_memory::meta::{NodeId, ShardId};

use crate::ballast;
use crate::fault::Fault;
use crate::identity::{self, Directory, Found, OpenError};
use crate::key_kind::{Family, MetaKind};
use crate::keys;
use crate::log_check;
use crate::options::{Identity, StoreOptions};

/// Key of the identity in the default family, which holds nothing else.
const IDENTITY_KEY: &[u8] = b"identity";

/// An open database. Dropping the last handle closes it.
pub struct Database {
    // Dropped before the directory, whose lock must outlive it.
    rocks: DB,
    directory: Directory,
    identity: Identity,
    reserve_bytes: u64,
    halted: OnceLock<Fault>,
    #[cfg(feature = "planted-bugs")]
    syncs: crate::planted::Syncs,
}

impl std::fmt::Debug for Database {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Database")
            .field("path", &self.path())
            .field("identity", &self.identity)
            .finish_non_exhaustive()
    }
}

impl Database {
    /// Opens the data directory `path`, or creates it on a first start. Blocks while the log is replayed.
    pub fn open(path: &Path, options: &StoreOptions) -> Result<Arc<Self>, OpenError> {
        let (directory, found) = Directory::claim(path, options.start)?;
        let (identity, fresh) = match found {
            Found::Nothing(identity) => (identity, true),
            Found::Data(identity) => (identity, false),
        };
        let failed = |error: rocksdb::Error| OpenError::Database {
            path: path.to_owned(),
            detail: error.into_string(),
        };
        let cache = block_cache(options.block_cache_bytes);
        let families = Family::ALL
            .map(|family| ColumnFamilyDescriptor::new(family.name(), family_options(family, options, &cache)));
        let rocks_options = database_options(options, fresh).map_err(failed)?;
        if !fresh {
            make_room(&directory, options);
            check_log(&directory, options)?;
        }
        let rocks = DB::open_cf_descriptors(&rocks_options, directory.database(), families).map_err(failed)?;
        let database = Self {
            rocks,
            #[cfg(feature = "planted-bugs")]
            syncs: crate::planted::Syncs::open(directory.path()).expect("open the mark of syncs"),
            directory,
            identity,
            reserve_bytes: options.reserve_bytes,
            halted: OnceLock::new(),
        };
        if fresh {
            database
                .rocks
                .put_opt(IDENTITY_KEY, identity_bytes(identity), &synced())
                .map_err(failed)?;
            database.directory.finish_creation(identity)?;
        } else {
            database.check_identity_row(failed)?;
        }
        take_ballast(&database.directory, options);
        Ok(Arc::new(database))
    }

    /// The identity of a data directory without opening it; None where nothing was created yet.
    pub fn read_identity(path: &Path) -> Result<Option<Identity>, OpenError> {
        identity::read_identity(path)
    }

    fn check_identity_row(&self, failed: impl Fn(rocksdb::Error) -> OpenError) -> Result<(), OpenError> {
        let path = || self.directory.path().to_owned();
        let row = self.rocks.get(IDENTITY_KEY).map_err(failed)?;
        let Some(row) = row else {
            return Err(OpenError::MissingData {
                path: path(),
                missing: "its database belongs to nobody",
            });
        };
        match identity_of_bytes(&row) {
            Some(found) if found == self.identity => Ok(()),
            Some(found) => Err(OpenError::WrongIdentity {
                path: path(),
                expected: self.identity,
                found,
            }),
            None => Err(OpenError::DamagedIdentity {
                path: path(),
                detail: "the row in the database".to_owned(),
            }),
        }
    }

    /// Whose data it is.
    pub const fn identity(&self) -> Identity {
        self.identity
    }

    /// The data directory. Names beside `lock`, `creating`, `identity` and `db` are free for others.
    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Where RocksDB keeps its files.
    pub fn database_path(&self) -> PathBuf {
        self.directory.database()
    }

    /// The fault of the first failed write; after it nothing is written any more.
    pub fn fault(&self) -> Option<&Fault> {
        self.halted.get()
    }

    /// Bytes that may still be written to the file system.
    pub fn free_bytes(&self) -> Result<u64, Fault> {
        self.directory.free_bytes().map_err(|error| Fault::FileSystem {
            operation: "ask for free space",
            detail: error.to_string(),
        })
    }

    /// Whether only deletions may still be accepted. One system call: ask before a proposal, not for every row.
    pub fn is_below_reserve(&self) -> Result<bool, Fault> {
        Ok(self.free_bytes()? < self.reserve_bytes)
    }

    /// The bytes that the last committed transaction of a shard left as its applied state.
    pub fn applied_state(&self, shard: ShardId) -> Result<Option<Vec<u8>>, Fault> {
        self.meta(shard, MetaKind::Applied)
    }

    /// A row of `raft_meta`.
    pub(crate) fn meta(&self, shard: ShardId, kind: MetaKind) -> Result<Option<Vec<u8>>, Fault> {
        self.rocks
            .get_cf(self.family(Family::RaftMeta)?, keys::meta_key(shard, kind))
            .map_err(|error| Fault::read("read the state of a replica", error))
    }

    /// RocksDB itself, for iterators, snapshots and ingestion inside this crate. Writes go through
    /// [`Self::write_synced`] and [`Self::write_unsynced`] only.
    pub(crate) const fn rocks(&self) -> &DB {
        &self.rocks
    }

    /// The handle of a family.
    pub(crate) fn family(&self, family: Family) -> Result<&ColumnFamily, Fault> {
        self.rocks.cf_handle(family.name()).ok_or_else(|| Fault::Damaged {
            operation: "find a column family",
            detail: format!("there is no family {}", family.name()),
        })
    }

    /// Writes a batch and waits until it is on the disk. A failure is final: this and every later write return it.
    pub(crate) fn write_synced(&self, batch: WriteBatch, operation: &'static str) -> Result<(), Fault> {
        #[cfg(feature = "planted-bugs")]
        if self.syncs.is_left_out() {
            return self.write_unsynced(batch, operation);
        }
        self.write(batch, &synced(), operation)?;
        #[cfg(feature = "planted-bugs")]
        self.syncs.done(self.rocks.latest_sequence_number());
        Ok(())
    }

    /// Writes a batch to the log without waiting for the disk. A failure is final, as above.
    pub(crate) fn write_unsynced(&self, batch: WriteBatch, operation: &'static str) -> Result<(), Fault> {
        self.write(batch, &WriteOptions::default(), operation)
    }

    /// Brings every write so far to the disk. A failure is final, as above.
    pub(crate) fn sync(&self, operation: &'static str) -> Result<(), Fault> {
        self.unless_halted()?;
        self.rocks
            .flush_wal(true)
            .map_err(|error| self.halt(Fault::write(operation, error)))?;
        #[cfg(feature = "planted-bugs")]
        self.syncs.done(self.rocks.latest_sequence_number());
        Ok(())
    }

    fn write(&self, batch: WriteBatch, options: &WriteOptions, operation: &'static str) -> Result<(), Fault> {
        self.unless_halted()?;
        self.rocks
            .write_opt(batch, options)
            .map_err(|error| self.halt(Fault::write(operation, error)))
    }

    fn unless_halted(&self) -> Result<(), Fault> {
        self.halted.get().map_or(Ok(()), |fault| Err(fault.clone()))
    }

    fn halt(&self, fault: Fault) -> Fault {
        self.halted.get_or_init(|| fault).clone()
    }
}

/// On a full disk the ballast goes, so that the log can be replayed.
fn make_room(directory: &Directory, options: &StoreOptions) {
    let released = directory
        .free_bytes()
        .and_then(|free| ballast::release(directory.path(), free, options.ballast_bytes));
    match released {
        Ok(true) => tracing::warn!(
            path = %directory.path().display(),
            bytes = options.ballast_bytes,
            "the disk is full: gave the ballast back to open the database; free space, or add a disk"
        ),
        Ok(false) => {}
        // Opening tells whether the room was needed.
        Err(error) => tracing::warn!(%error, "could not give the ballast back"),
    }
}

fn take_ballast(directory: &Directory, options: &StoreOptions) {
    let taken = directory
        .free_bytes()
        .and_then(|free| ballast::take(directory.path(), free, options.ballast_bytes, options.reserve_bytes));
    if let Err(error) = taken {
        tracing::warn!(%error, "no ballast: a process killed on a full disk will need free space before it starts");
    }
}

fn check_log(directory: &Directory, options: &StoreOptions) -> Result<(), OpenError> {
    let damage = log_check::find_damage(&directory.database(), Family::RaftLog.number()).map_err(|source| {
        OpenError::FileSystem {
            path: directory.path().to_owned(),
            operation: "read the log",
            source,
        }
    })?;
    match damage {
        None => Ok(()),
        Some(damage) if options.accept_damaged_log => {
            tracing::error!(
                file = %damage.file.display(),
                offset = damage.offset,
                "going on without what stands behind the damaged place of the log, as told"
            );
            Ok(())
        }
        Some(damage) => Err(OpenError::DamagedLog {
            path: directory.path().to_owned(),
            file: damage.file,
            offset: damage.offset,
        }),
    }
}

fn synced() -> WriteOptions {
    let mut options = WriteOptions::default();
    options.set_sync(true);
    options
}

fn database_options(options: &StoreOptions, fresh: bool) -> Result<Options, rocksdb::Error> {
    let mut rocks = Options::default();
    // Families are made with the database. One that is missing later is damage, not something to make up for.
    rocks.create_if_missing(fresh);
    rocks.create_missing_column_families(fresh);
    rocks.set_error_if_exists(fresh);

    // With recycled files PointInTime is the only sound mode: others turn recycling off silently.
    rocks.set_wal_recovery_mode(DBRecoveryMode::PointInTime);
    rocks.set_recycle_log_file_num(options.wal_recycled_files);
    rocks.set_track_and_verify_wals_in_manifest(true);
    rocks.set_max_total_wal_size(options.wal_bytes_max);

    rocks.set_db_write_buffer_size(options.write_buffers_bytes);
    rocks.set_max_open_files(options.open_files_max);
    rocks.set_max_background_jobs(options.background_jobs_max);
    // Compaction must not starve the log writer.
    let mut env = Env::new()?;
    env.lower_thread_pool_cpu_priority();
    rocks.set_env(&env);
    rocks.set_avoid_unnecessary_blocking_io(true);
    rocks.set_bytes_per_sync(1 << 20);

    rocks.set_keep_log_file_num(4);
    rocks.set_max_log_file_size(4 << 20);
    rocks.set_log_level(LogLevel::Warn);
    rocks.set_stats_dump_period_sec(0);
    rocks.set_stats_persist_period_sec(0);
    rocks.set_max_manifest_file_size(64 << 20);
    Ok(rocks)
}

/// Least bytes of one part of the cache: with RocksDB's own choice a small cache has 64 parts that hold a few blocks each.
const CACHE_PART_BYTES_MIN: usize = 4 << 20;

fn block_cache(bytes: usize) -> Cache {
    let parts = (bytes / CACHE_PART_BYTES_MIN).clamp(1, 64);
    let mut options = LruCacheOptions::default();
    options.set_capacity(bytes);
    options.set_num_shard_bits(parts.ilog2().try_into().unwrap_or(0));
    Cache::new_lru_cache_opts(&options)
}

fn family_options(family: Family, options: &StoreOptions, cache: &Cache) -> Options {
    let mut table = BlockBasedOptions::default();
    table.set_block_cache(cache);
    // Inside the cache, so that they count against its budget.
    table.set_cache_index_and_filter_blocks(true);
    table.set_pin_l0_filter_and_index_blocks_in_cache(true);
    // In parts, because filter and index of a whole file are hundreds of kilobytes: a small cache that holds them in one
    // piece throws them out again and again, and every look-up of a large database reads and sums one anew.
    table.set_index_type(BlockBasedIndexType::TwoLevelIndexSearch);
    table.set_partition_filters(true);
    table.set_metadata_block_size(4 << 10);
    table.set_pin_top_level_index_and_filter(true);
    table.set_format_version(5);
    let mut rocks = Options::default();
    rocks.set_write_buffer_size((options.write_buffers_bytes / 4).max(1 << 20));
    rocks.set_target_file_size_base(32 << 20);
    rocks.set_max_bytes_for_level_base(128 << 20);
    match family {
        // Read by ranges, soon deleted by ranges: a filter would never be asked.
        Family::RaftLog => {}
        _ => table.set_bloom_filter(10.0, false),
    }
    match family {
        Family::Transcript => table.set_block_size(16 << 10),
        Family::Vector => table.set_block_size(8 << 10),
        _ => {}
    }
    rocks.set_compression_type(match family {
        Family::Vector | Family::RaftMeta => DBCompressionType::None,
        _ => DBCompressionType::Lz4,
    });
    rocks.set_block_based_table_factory(&table);
    rocks
}

fn identity_bytes(identity: Identity) -> Vec<u8> {
    let mut bytes = identity.cluster.0.to_vec();
    bytes.extend_from_slice(&identity.node.0.to_be_bytes());
    bytes
}

fn identity_of_bytes(bytes: &[u8]) -> Option<Identity> {
    let (cluster, node) = bytes.split_first_chunk::<16>()?;
    let node = u64::from_be_bytes(node.try_into().ok()?);
    Some(Identity {
        cluster: waggle_memory::meta::ClusterId(*cluster),
        node: NodeId(node),
    })
}
