//! How much of the machine the store may use, and what the caller expects to find in the data directory.

use std::fmt;

use waggle_memory::meta::{ClusterId, NodeId};

/// Whose data a directory holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The cluster.
    pub cluster: ClusterId,
    /// The node within it.
    pub node: NodeId,
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of cluster {}", self.node, self.cluster)
    }
}

/// What the caller expects of the data directory. A node that was ever a voter starts with `Known` only: under its old
/// identity an empty directory could lose acknowledged data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// The first start: the directory is absent or empty and receives this identity.
    Fresh(Identity),
    /// Every later start: the directory holds the data of exactly this identity.
    Known(Identity),
    /// For tools: whoever's data is there.
    Any,
}

/// Bounds of the store. Resident bytes are at most `block_cache_bytes + write_buffers_bytes` plus about 20 MB of
/// threads and open tables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreOptions {
    /// What the directory is expected to hold.
    pub start: Start,
    /// Cache of table blocks, index and filter blocks included.
    pub block_cache_bytes: usize,
    /// All memtables of all families together.
    pub write_buffers_bytes: usize,
    /// Live write-ahead log; beyond it the family with the oldest unflushed data is flushed.
    pub wal_bytes_max: u64,
    /// Log files kept to be overwritten: overwriting syncs faster than growing a file. Old bytes stay in them, so an
    /// erase that must leave no trace removes them (0 turns recycling off).
    pub wal_recycled_files: usize,
    /// Table files kept open; each costs a descriptor and its index.
    pub open_files_max: i32,
    /// Threads for flush and compaction together.
    pub background_jobs_max: i32,
    /// Free bytes below which only deletions are accepted, so that RocksDB itself never meets a full disk.
    pub reserve_bytes: u64,
    /// Room that a start on a full disk gives back to itself; 0 for none. At least what the write buffers need to be
    /// flushed.
    pub ballast_bytes: u64,
    /// Go on without the acknowledged writes behind a damaged place of the log, once an operator said so.
    pub accept_damaged_log: bool,
}

impl StoreOptions {
    /// For one process on a developer's machine: 64 MB of cache and write buffers.
    pub const fn development(start: Start) -> Self {
        Self {
            start,
            block_cache_bytes: 32 << 20,
            write_buffers_bytes: 32 << 20,
            wal_bytes_max: 64 << 20,
            wal_recycled_files: 4,
            open_files_max: 256,
            background_jobs_max: 2,
            reserve_bytes: 256 << 20,
            ballast_bytes: 32 << 20,
            accept_damaged_log: false,
        }
    }

    /// For a node of a cluster that may use `resident_bytes` for the store: two thirds cache, one third write buffers.
    pub const fn with_budget(start: Start, resident_bytes: usize) -> Self {
        let write_buffers_bytes = resident_bytes / 3;
        Self {
            start,
            block_cache_bytes: resident_bytes - write_buffers_bytes,
            write_buffers_bytes,
            wal_bytes_max: 512 << 20,
            wal_recycled_files: 4,
            open_files_max: 4096,
            background_jobs_max: 4,
            reserve_bytes: 2 << 30,
            ballast_bytes: 256 << 20,
            accept_damaged_log: false,
        }
    }
}
