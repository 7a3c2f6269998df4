//! What the database uses and how it copes: numbers for metrics and for the decision to slow down.

use std::fs;

use rocksdb::properties::{
    self, BLOCK_CACHE_USAGE, CUR_SIZE_ALL_MEM_TABLES, ESTIMATE_LIVE_DATA_SIZE, ESTIMATE_PENDING_COMPACTION_BYTES,
    ESTIMATE_TABLE_READERS_MEM, TOTAL_SST_FILES_SIZE,
};

use crate::fault::Fault;
use crate::key_kind::Family;
use crate::open::Database;

/// Use of disk and resident bytes, of all families together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// What a full compaction would leave, estimated.
    pub live_bytes: u64,
    /// Table files.
    pub table_bytes: u64,
    /// Log files, those kept for recycling included.
    pub wal_bytes: u64,
    /// Memtables.
    pub memtable_bytes: u64,
    /// Block cache.
    pub cache_bytes: u64,
    /// Index and filter blocks outside of the cache.
    pub table_reader_bytes: u64,
    /// Most files of level 0 in any family: many make reads slow, then writes.
    pub level_0_files_max: u64,
    /// Work that waits for compaction.
    pub pending_compaction_bytes: u64,
    /// Writes are slowed down.
    pub writes_delayed: bool,
    /// Writes wait for compaction.
    pub writes_stopped: bool,
}

impl Database {
    /// Asks the database. Cheap, but not free: for a scrape, not for a request.
    pub fn usage(&self) -> Result<Usage, Fault> {
        let mut usage = Usage {
            wal_bytes: self.wal_bytes()?,
            ..Usage::default()
        };
        for family in Family::ALL {
            let number = |name| self.number_of(family, name);
            usage.live_bytes += number(ESTIMATE_LIVE_DATA_SIZE)?;
            usage.table_bytes += number(TOTAL_SST_FILES_SIZE)?;
            usage.memtable_bytes += number(CUR_SIZE_ALL_MEM_TABLES)?;
            usage.table_reader_bytes += number(ESTIMATE_TABLE_READERS_MEM)?;
            usage.pending_compaction_bytes += number(ESTIMATE_PENDING_COMPACTION_BYTES)?;
            let level_0 = self.number_of(family, &properties::num_files_at_level(0))?;
            usage.level_0_files_max = usage.level_0_files_max.max(level_0);
        }
        // One cache and one write controller for all families: any of them answers for all.
        usage.cache_bytes = self.number_of(Family::State, BLOCK_CACHE_USAGE)?;
        usage.writes_delayed = self.number_of(Family::State, properties::ACTUAL_DELAYED_WRITE_RATE)? > 0;
        usage.writes_stopped = self.number_of(Family::State, properties::IS_WRITE_STOPPED)? > 0;
        Ok(usage)
    }

    fn number_of(&self, family: Family, name: &properties::PropName) -> Result<u64, Fault> {
        let number = self
            .rocks()
            .property_int_value_cf(self.family(family)?, name)
            .map_err(|error| Fault::read("ask for a property of the database", error))?;
        Ok(number.unwrap_or(0))
    }

    fn wal_bytes(&self) -> Result<u64, Fault> {
        let failed = |error: std::io::Error| Fault::FileSystem {
            operation: "measure the log",
            detail: error.to_string(),
        };
        let mut bytes = 0;
        for entry in fs::read_dir(self.database_path()).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            if entry.path().extension().is_some_and(|extension| extension == "log") {
                // It may be gone by now.
                bytes += entry.metadata().map_or(0, |file| file.len());
            }
        }
        Ok(bytes)
    }
}
