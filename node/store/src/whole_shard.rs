//! What concerns all rows of a shard at once: their digest, their size, their removal.

use rocksdb::{Range, ReadOptions, WriteBatch};
use waggle_memory::meta::ShardId;

use crate::fault::Fault;
use crate::key_kind::Family;
use crate::keys::{self, SHARD_BYTES};
use crate::open::Database;

impl Database {
    /// A hash of all rows of a shard. Equal on replicas with equal applied index (I-02): it covers rows only, family by
    /// family in key order, and neither the shard's number nor anything of the Raft log. Reads every row, so it is for
    /// checks and not for requests.
    pub fn digest(&self, shard: ShardId) -> Result<[u8; 32], Fault> {
        let (first, end) = keys::shard_range(shard);
        let snapshot = self.rocks().snapshot();
        let mut hasher = blake3::Hasher::new();
        for family in Family::ROWS {
            let mut options = ReadOptions::default();
            options.set_snapshot(&snapshot);
            options.set_iterate_upper_bound(end.as_slice());
            // A pass over everything must not push out what requests use.
            options.fill_cache(false);
            let mut rows = self.rocks().raw_iterator_cf_opt(self.family(family)?, options);
            rows.seek(&first);
            while let Some((key, value)) = rows.item() {
                hash_part(&mut hasher, key.get(SHARD_BYTES..).unwrap_or_default());
                hash_part(&mut hasher, value);
                rows.next();
            }
            rows.status()
                .map_err(|error| Fault::read("hash the rows of a shard", error))?;
        }
        Ok(hasher.finalize().into())
    }

    /// Removes a shard from this node: rows, Raft log, vote. The caller made sure that the replica is gone for good;
    /// its replica id is never used again.
    pub fn drop_shard(&self, shard: ShardId) -> Result<(), Fault> {
        let (first, end) = keys::shard_range(shard);
        let mut batch = WriteBatch::new();
        for family in Family::ALL {
            batch.delete_range_cf(self.family(family)?, &first, &end);
        }
        self.write_synced(batch, "drop a shard")
    }

    /// About how many bytes the rows and the log of a shard take in table files. What is still in memtables does not
    /// count.
    pub fn approximate_bytes(&self, shard: ShardId) -> Result<u64, Fault> {
        let (first, end) = keys::shard_range(shard);
        let mut bytes = 0_u64;
        for family in Family::ALL {
            let sizes = self
                .rocks()
                .get_approximate_sizes_cf(self.family(family)?, &[Range::new(&first, &end)]);
            bytes = bytes.saturating_add(sizes.iter().sum());
        }
        Ok(bytes)
    }
}

/// With its length, so that the border between key and value is hashed too.
fn hash_part(hasher: &mut blake3::Hasher, part: &[u8]) {
    hasher.update(&u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
    hasher.update(part);
}
