//! Looks for damage inside RocksDB's write-ahead log before it is replayed.
//!
//! Replay (`PointInTime`) ends at the first record that cannot be read. At the torn end of a log that is right: what
//! stands there was never acknowledged. In the middle it would drop acknowledged writes without a word, so the files are
//! read once more, and a start is refused when behind the stop there is proof that the stop was on the disk before.
//!
//! The proof: a record with entries of the Raft log, which is synced by the one thread that writes them, and any whole
//! record after it. Single records behind a hole prove nothing: after a loss of power the pages of writes that nobody
//! waited for may be on the disk in any order.
//!
//! Format: blocks of 32 KiB; a record never crosses a block, long ones are split. Header: masked CRC-32C (4), length (2),
//! type (1) and, because files are used again, the low bytes of the log's number (4).
//! Source: `db/log_format.h` and `db/write_batch.cc` of RocksDB.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

const BLOCK_BYTES: usize = 32 << 10;
/// Header without the log's number.
const HEADER_BYTES: usize = 7;
const RECYCLABLE_HEADER_BYTES: usize = 11;
/// Longest record that is put together again; a batch of ours is far smaller.
const RECORD_BYTES_MAX: usize = 256 << 20;

/// Where the log cannot be read although more was written behind.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Damage {
    pub(crate) file: PathBuf,
    /// The first byte that replay would not read.
    pub(crate) offset: u64,
}

/// Reads every log file of the database in `directory`. `raft_log` is the number of the family with the Raft log.
pub(crate) fn find_damage(directory: &Path, raft_log: u32) -> io::Result<Option<Damage>> {
    for (number, path) in logs(directory)? {
        let mut check = Check::new(number, raft_log);
        if let Some(offset) = check.file(File::open(&path)?)? {
            return Ok(Some(Damage { file: path, offset }));
        }
    }
    Ok(None)
}

/// The log files, oldest first, with the numbers that their headers hold: the low 32 bits of their own.
pub(crate) fn logs(directory: &Path) -> io::Result<Vec<(u32, PathBuf)>> {
    let mut logs = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        let number = path.file_stem().and_then(|stem| stem.to_str()?.parse::<u64>().ok());
        if let Some(number) = number.filter(|_| path.extension().is_some_and(|extension| extension == "log")) {
            logs.push((number, path));
        }
    }
    logs.sort_unstable();
    let short = |(number, path)| ((number & u64::from(u32::MAX)) as u32, path);
    Ok(logs.into_iter().map(short).collect())
}

/// A write batch in a log file.
#[cfg(feature = "planted-bugs")]
pub(crate) struct Record {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) sequence: u64,
}

/// The batches of a log up to the first place that cannot be read, or belongs to an older use of the file.
#[cfg(feature = "planted-bugs")]
pub(crate) fn records(log: &[u8], number: u32) -> Vec<Record> {
    let (mut found, mut open) = (Vec::new(), None::<Record>);
    for (count, block) in log.chunks(BLOCK_BYTES).enumerate() {
        let mut at = 0;
        while block.len() - at >= RECYCLABLE_HEADER_BYTES {
            let Some(piece) = piece(block.get(at..).unwrap_or_default(), number) else {
                return found;
            };
            let start = (count * BLOCK_BYTES + at) as u64;
            at += piece.bytes;
            if matches!(piece.kind, PieceKind::Full | PieceKind::First) {
                // A batch begins with its sequence number.
                let sequence = piece
                    .payload
                    .first_chunk::<8>()
                    .map_or(u64::MAX, |bytes| u64::from_le_bytes(*bytes));
                open = Some(Record {
                    start,
                    end: start,
                    sequence,
                });
            }
            if matches!(piece.kind, PieceKind::Full | PieceKind::Last)
                && let Some(record) = open.take()
            {
                found.push(Record {
                    end: (count * BLOCK_BYTES + at) as u64,
                    ..record
                });
            }
        }
    }
    found
}

/// One log file.
struct Check {
    number: u32,
    raft_log: u32,
    /// Where replay would stop.
    stop: Option<u64>,
    /// The record that is being put together behind the stop.
    record: Vec<u8>,
    inside: bool,
    log_entries_seen: bool,
    proven: bool,
}

/// A piece of a record with a right sum.
struct Piece<'a> {
    kind: PieceKind,
    payload: &'a [u8],
    bytes: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum PieceKind {
    Full,
    First,
    Middle,
    Last,
    /// Of the format, and no data.
    Other,
}

impl Check {
    fn new(number: u32, raft_log: u32) -> Self {
        Self {
            number,
            raft_log,
            stop: None,
            record: Vec::new(),
            inside: false,
            log_entries_seen: false,
            proven: false,
        }
    }

    /// Where the damage is, if there is any.
    fn file(&mut self, mut file: File) -> io::Result<Option<u64>> {
        let mut block = Vec::with_capacity(BLOCK_BYTES);
        let mut start = 0_u64;
        loop {
            block.clear();
            let read = file.by_ref().take(BLOCK_BYTES as u64).read_to_end(&mut block)?;
            if read == 0 {
                return Ok(None);
            }
            self.block(&block, start);
            if self.proven {
                return Ok(self.stop);
            }
            start += read as u64;
        }
    }

    fn block(&mut self, block: &[u8], start: u64) {
        let mut at = 0;
        // What is left of a block and too short for a header of ours is filled up and says nothing.
        while self.stop.is_none() && block.len() - at >= RECYCLABLE_HEADER_BYTES {
            match piece(block.get(at..).unwrap_or_default(), self.number) {
                Some(piece) => at += piece.bytes,
                None => self.stop = Some(start + at as u64),
            }
        }
        if self.stop.is_none() {
            return;
        }
        // Behind the stop lengths are not trusted: every position may be the next record.
        while !self.proven && block.len().saturating_sub(at) >= RECYCLABLE_HEADER_BYTES {
            let rest = block.get(at..).unwrap_or_default();
            match piece(rest, self.number).filter(|_| is_recyclable(rest)) {
                Some(piece) => {
                    at += piece.bytes;
                    self.found(piece.kind, piece.payload);
                }
                None => at += 1,
            }
        }
    }

    /// A piece behind the stop.
    fn found(&mut self, kind: PieceKind, payload: &[u8]) {
        match kind {
            PieceKind::Full | PieceKind::First => {
                self.record.clear();
                self.inside = true;
            }
            PieceKind::Middle | PieceKind::Last => {}
            PieceKind::Other => return,
        }
        if self.record.len() + payload.len() > RECORD_BYTES_MAX {
            self.inside = false;
        }
        if !self.inside {
            return;
        }
        self.record.extend_from_slice(payload);
        if matches!(kind, PieceKind::Full | PieceKind::Last) {
            self.inside = false;
            if self.log_entries_seen {
                self.proven = true;
            } else {
                self.log_entries_seen = writes_family(&self.record, self.raft_log);
            }
        }
    }
}

fn is_recyclable(header: &[u8]) -> bool {
    header.get(6).is_some_and(|kind| matches!(kind, 5..=8 | 11 | 131))
}

/// The piece at the front of `bytes`, if its sum is right and it belongs to this log.
fn piece(bytes: &[u8], number: u32) -> Option<Piece<'_>> {
    let (sum, rest) = bytes.split_first_chunk::<4>()?;
    let (length, rest) = rest.split_first_chunk::<2>()?;
    let kind = *rest.first()?;
    let length = usize::from(u16::from_le_bytes(*length));
    let (kind, header) = match kind {
        1 => (PieceKind::Full, HEADER_BYTES),
        2 => (PieceKind::First, HEADER_BYTES),
        3 => (PieceKind::Middle, HEADER_BYTES),
        4 => (PieceKind::Last, HEADER_BYTES),
        5 => (PieceKind::Full, RECYCLABLE_HEADER_BYTES),
        6 => (PieceKind::First, RECYCLABLE_HEADER_BYTES),
        7 => (PieceKind::Middle, RECYCLABLE_HEADER_BYTES),
        8 => (PieceKind::Last, RECYCLABLE_HEADER_BYTES),
        // Compression, sizes of time stamps, the log before this one: 9, 10, 11, 130, 131.
        9 | 10 | 130 => (PieceKind::Other, HEADER_BYTES),
        11 | 131 => (PieceKind::Other, RECYCLABLE_HEADER_BYTES),
        _ => return None,
    };
    let summed = bytes.get(6..header.checked_add(length)?)?;
    if header == RECYCLABLE_HEADER_BYTES && bytes.get(7..11)? != number.to_le_bytes() {
        return None;
    }
    let right = masked(crc32c::crc32c(summed)) == u32::from_le_bytes(*sum);
    right.then_some(Piece {
        kind,
        payload: bytes.get(header..header + length)?,
        bytes: header + length,
    })
}

/// RocksDB stores sums of data that may hold sums itself, so it changes them.
fn masked(sum: u32) -> u32 {
    sum.rotate_right(15).wrapping_add(0xa282_ead8)
}

/// Whether a write batch puts something into a family.
fn writes_family(batch: &[u8], family: u32) -> bool {
    // Sequence number (8) and count (4).
    let mut rest = batch.get(12..).unwrap_or_default();
    while let Some((tag, after)) = rest.split_first() {
        rest = after;
        let (has_family, strings) = match tag {
            0x0 | 0x7 | 0x3 => (false, 1),
            0x1 | 0x2 | 0xf => (false, 2),
            0x4 | 0x8 => (true, 1),
            0x5 | 0x6 | 0xe => (true, 2),
            0xd => (false, 0),
            // A kind that we never write: nothing can be said about what follows.
            _ => return false,
        };
        if has_family {
            match number(&mut rest) {
                Some(found) if found == family && *tag == 0x5 => return true,
                Some(_) => {}
                None => return false,
            }
        }
        for _ in 0..strings {
            let skipped = number(&mut rest).and_then(|length| rest.get(length as usize..));
            let Some(after) = skipped else { return false };
            rest = after;
        }
    }
    false
}

/// A number in groups of seven bits, lowest first.
fn number(bytes: &mut &[u8]) -> Option<u32> {
    let mut value = 0_u32;
    for shift in [0, 7, 14, 21, 28] {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u32::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}
