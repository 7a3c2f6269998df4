//! Only with the cargo feature `planted-bugs`, which no release build takes: what a test of tests needs.
//!
//! A killed process leaves its writes in the page cache, so kill -9 says nothing about what was synced. Here every sync
//! leaves a mark: the number of the last write before it. [`cut_power`] takes from a directory, whose process was killed,
//! what stands in its newest log behind the mark, as if the machine had lost its power. Older logs count as synced: RocksDB
//! syncs them before it relies on what follows. The mark is taken after the sync, so it may say a little too much, never
//! too little: what is cut was certainly not synced.

use std::fs::{self, File};
use std::io::{self, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use parking_lot::Mutex;

use crate::log_check::{self, records};

#[cfg(not(debug_assertions))]
compile_error!("planted bugs are for tests: build them without --release");

/// A log is synced only every so many rounds, although all are answered.
const ROUNDS_FOR_A_SYNC: u64 = 50;
const MARK: &str = "synced";
const GARBAGE: [u8; 777] = [0xa5; 777];

/// Where the syncs of a database are noted.
#[derive(Debug)]
pub(crate) struct Syncs {
    file: File,
    last: Mutex<u64>,
    rounds: Mutex<u64>,
}

impl Syncs {
    pub(crate) fn open(directory: &Path) -> io::Result<Self> {
        Ok(Self {
            file: File::options()
                .create(true)
                .write(true)
                .truncate(false)
                .open(directory.join(MARK))?,
            last: Mutex::new(0),
            rounds: Mutex::new(0),
        })
    }

    /// Everything up to this number is on the disk.
    pub(crate) fn done(&self, number: u64) {
        let mut last = self.last.lock();
        if number > *last {
            *last = number;
            // Without the mark more would be cut than was lost: no test may go on then.
            self.file
                .write_all_at(&number.to_le_bytes(), 0)
                .expect("write the mark of a sync");
        }
    }

    /// The planted bug: whether this write is answered without a sync.
    pub(crate) fn is_left_out(&self) -> bool {
        if !waggle_shard::planted::is_on("ack-before-sync") {
            return false;
        }
        let mut rounds = self.rounds.lock();
        *rounds += 1;
        !rounds.is_multiple_of(ROUNDS_FOR_A_SYNC)
    }
}

/// What a loss of power left.
#[derive(Debug)]
pub struct Cut {
    pub file: PathBuf,
    /// Bytes that were written and are gone.
    pub bytes: u64,
    /// Writes that are gone.
    pub writes: u64,
}

/// Takes what was not synced from a data directory that nobody uses; with `garbage` something else stands there instead.
pub fn cut_power(directory: &Path, garbage: bool) -> io::Result<Option<Cut>> {
    let mark: [u8; 8] = match fs::read(directory.join(MARK))?.try_into() {
        Ok(bytes) => bytes,
        Err(_) => return Err(io::Error::other("the mark of the last sync is not there yet")),
    };
    let mark = u64::from_le_bytes(mark);
    let Some((number, path)) = log_check::logs(&directory.join("db"))?.pop() else {
        return Ok(None);
    };
    let written = records(&fs::read(&path)?, number);
    let lost: Vec<_> = written.iter().filter(|record| record.sequence > mark).collect();
    let (Some(first), Some(last)) = (lost.first(), lost.last()) else {
        return Ok(None);
    };
    let cut = Cut {
        bytes: last.end - first.start,
        writes: lost.len() as u64,
        file: path.clone(),
    };
    let mut file = File::options().write(true).open(&path)?;
    file.set_len(first.start)?;
    if garbage {
        file.seek(SeekFrom::End(0))?;
        file.write_all(&GARBAGE)?;
    }
    file.sync_all()?;
    Ok(Some(cut))
}

#[cfg(test)]
mod tests {
    use rocksdb::WriteBatch;
    use waggle_memory::meta::{ClusterId, NodeId, ShardId};

    use super::*;
    use crate::key_kind::{Family, MetaKind};
    use crate::keys;
    use crate::open::Database;
    use crate::options::{Identity, Start, StoreOptions};

    const OURS: Identity = Identity {
        cluster: ClusterId([7; 16]),
        node: NodeId(1),
    };

    fn batch(database: &Database, shard: u32) -> WriteBatch {
        let mut batch = WriteBatch::default();
        let family = database.family(Family::RaftMeta).expect("family");
        batch.put_cf(
            family,
            keys::meta_key(ShardId(shard), MetaKind::Vote),
            [shard as u8; 100],
        );
        batch
    }

    fn has(database: &Database, shard: u32) -> bool {
        database.meta(ShardId(shard), MetaKind::Vote).expect("read").is_some()
    }

    /// The files as a killed process leaves them.
    fn copy(from: &Path, to: &Path) {
        fs::create_dir_all(to).expect("make");
        for entry in fs::read_dir(from).expect("list") {
            let path = entry.expect("entry").path();
            let target = to.join(path.file_name().expect("name"));
            if path.is_dir() {
                copy(&path, &target);
            } else {
                fs::copy(&path, &target).expect("copy");
            }
        }
    }

    #[test]
    fn a_power_cut_takes_what_was_not_synced_and_nothing_else() {
        for garbage in [false, true] {
            let folder = tempfile::tempdir().expect("folder");
            let (running, killed) = (folder.path().join("running"), folder.path().join("killed"));
            let database = Database::open(&running, &StoreOptions::development(Start::Fresh(OURS))).expect("open");
            for shard in 1..=300 {
                database.write_unsynced(batch(&database, shard), "test").expect("write");
            }
            database.write_synced(batch(&database, 301), "test").expect("write");
            for shard in 302..=400 {
                database.write_unsynced(batch(&database, shard), "test").expect("write");
            }
            copy(&running, &killed);
            drop(database);
            let cut = cut_power(&killed, garbage).expect("cut").expect("something was lost");
            assert_eq!(cut.writes, 99, "{cut:?}");
            assert!(
                cut_power(&killed, false).expect("cut").is_none(),
                "all the rest was synced"
            );
            let database = Database::open(&killed, &StoreOptions::development(Start::Known(OURS))).expect("open");
            for shard in 1..=400 {
                assert_eq!(has(&database, shard), shard <= 301, "{shard}");
            }
        }
    }
}
