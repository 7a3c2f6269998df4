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
