//! The files of a snapshot: rows, compressed and hashed, and the manifest.

use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::Path;

use rocksdb::{ReadOptions, Snapshot};
use serde::{Deserialize, Serialize};
use waggle_memory::meta::ShardId;
use waggle_shard::Position;

use crate::fault::Fault;
use crate::key_kind::Family;
use crate::keys::{self, SHARD_BYTES};
use crate::open::Database;

pub(super) const MANIFEST: &str = "manifest";
const FORMAT: u32 = 1;
const COMPRESSION_LEVEL: i32 = 1;
/// Largest key or value that is believed; the row format allows less.
const PART_BYTES_MAX: u32 = 64 << 20;

/// What a snapshot holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Manifest {
    pub(super) format: u32,
    pub(super) shard: u32,
    /// The encoded [`Position`] in hexadecimal digits.
    pub(super) position: String,
    pub(super) files: Vec<RowsFile>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RowsFile {
    pub(super) family: String,
    pub(super) name: String,
    pub(super) bytes: u64,
    pub(super) rows: u64,
    /// blake3 of the bytes of the file.
    pub(super) hash: String,
}

impl Manifest {
    pub(super) fn new(shard: ShardId, position: &Position, files: Vec<RowsFile>) -> Self {
        let position = position.encode().iter().map(|byte| format!("{byte:02x}")).collect();
        Self {
            format: FORMAT,
            shard: shard.0,
            position,
            files,
        }
    }
}

pub(super) fn write_rows(
    database: &Database,
    shard: ShardId,
    view: &Snapshot<'_>,
    family: Family,
    into: &Path,
) -> Result<RowsFile, Fault> {
    let name = format!("{}.rows", family.name());
    let path = into.join(&name);
    let failed = |error: io::Error| file_fault("write a snapshot", &path, &error);
    let sink = Hashing::new(BufWriter::new(File::create(&path).map_err(failed)?));
    let mut out = zstd::Encoder::new(sink, COMPRESSION_LEVEL).map_err(failed)?;

    let (first, end) = keys::shard_range(shard);
    let mut options = ReadOptions::default();
    options.set_snapshot(view);
    options.set_iterate_upper_bound(end);
    // A pass over everything must not push out what requests use.
    options.fill_cache(false);
    let mut stored = database.rocks().raw_iterator_cf_opt(database.family(family)?, options);
    stored.seek(&first);
    let mut rows = 0;
    while let Some((key, value)) = stored.item() {
        write_part(&mut out, key.get(SHARD_BYTES..).unwrap_or_default()).map_err(failed)?;
        write_part(&mut out, value).map_err(failed)?;
        rows += 1;
        stored.next();
    }
    stored
        .status()
        .map_err(|error| Fault::read("read the rows of a snapshot", error))?;

    let (file, bytes, hash) = out.finish().map_err(failed)?.finish();
    let file = file.into_inner().map_err(|error| failed(error.into_error()))?;
    file.sync_all().map_err(failed)?;
    Ok(RowsFile {
        family: family.name().to_owned(),
        name,
        bytes,
        rows,
        hash,
    })
}

fn write_part(out: &mut impl Write, part: &[u8]) -> io::Result<()> {
    let length = u32::try_from(part.len()).map_err(io::Error::other)?;
    out.write_all(&length.to_le_bytes())?;
    out.write_all(part)
}

pub(super) fn read_rows(path: &Path, mut visit: impl FnMut(&[u8], &[u8]) -> Result<(), Fault>) -> Result<(), Fault> {
    let failed = |error: io::Error| file_fault("read a snapshot", path, &error);
    let file = File::open(path).map_err(failed)?;
    let mut input = zstd::Decoder::new(file).map_err(failed)?;
    loop {
        let Some(key) = read_part(&mut input).map_err(failed)? else {
            return Ok(());
        };
        let value = read_part(&mut input).map_err(failed)?;
        let value = value.ok_or_else(|| damaged(format!("{} ends after a key", path.display())))?;
        visit(&key, &value)?;
    }
}

/// None at the end of the file.
fn read_part(input: &mut impl Read) -> io::Result<Option<Vec<u8>>> {
    let mut length = [0; 4];
    let mut filled = 0;
    while let Some(rest) = length.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match input.read(rest)? {
            0 if filled == 0 => return Ok(None),
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            count => filled += count,
        }
    }
    let length = u32::from_le_bytes(length);
    if length > PART_BYTES_MAX {
        return Err(io::Error::other(format!("a part of {length} bytes")));
    }
    let mut part = vec![0; length as usize];
    input.read_exact(&mut part)?;
    Ok(Some(part))
}

/// One line of JSON, and its hash on the next.
pub(super) fn write_manifest(into: &Path, manifest: &Manifest) -> io::Result<()> {
    let text = serde_json::to_string(manifest).map_err(io::Error::other)?;
    let hash = blake3::hash(text.as_bytes()).to_hex();
    let mut file = File::create(into.join(MANIFEST))?;
    file.write_all(format!("{text}\n{hash}\n").as_bytes())?;
    file.sync_all()?;
    File::open(into)?.sync_all()
}

pub(super) fn read_manifest(from: &Path, shard: ShardId) -> Result<(Manifest, Position), Fault> {
    let path = from.join(MANIFEST);
    let wrong = |what: &str| damaged(format!("{}: {what}", path.display()));
    let text = fs::read_to_string(&path).map_err(|error| file_fault("read a snapshot", &path, &error))?;
    let (line, hash) = text.trim_end().split_once('\n').ok_or_else(|| wrong("it is cut"))?;
    if blake3::hash(line.as_bytes()).to_hex().as_str() != hash {
        return Err(wrong("its hash does not match"));
    }
    let manifest: Manifest = serde_json::from_str(line).map_err(|error| wrong(&error.to_string()))?;
    if manifest.format != FORMAT {
        return Err(wrong("a later version wrote it"));
    }
    if manifest.shard != shard.0 {
        return Err(wrong("it belongs to another shard"));
    }
    if manifest
        .files
        .iter()
        .any(|file| file.name.contains(['/', '\\']) || file.name.starts_with('.'))
    {
        return Err(wrong("a file name leaves the directory"));
    }
    let bytes = from_hex(&manifest.position).ok_or_else(|| wrong("the position is not hexadecimal"))?;
    let position = Position::decode(&bytes).map_err(|why| wrong(&why.to_string()))?;
    Ok((manifest, position))
}

pub(super) fn copy_verified(from: &Path, file: &RowsFile, to: &mut impl Write) -> Result<(), Fault> {
    let path = from.join(&file.name);
    let failed = |error: io::Error| file_fault("read a snapshot", &path, &error);
    let mut sink = Hashing::new(to);
    let source = File::open(&path).map_err(failed)?;
    io::copy(&mut BufReader::new(source), &mut sink).map_err(failed)?;
    let (_, bytes, hash) = sink.finish();
    if bytes == file.bytes && hash == file.hash {
        Ok(())
    } else {
        Err(damaged(format!("{}: its hash does not match", path.display())))
    }
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes().chunks(2);
    digits
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok())
        .collect()
}

pub(super) fn damaged(detail: String) -> Fault {
    Fault::Damaged {
        operation: "use a snapshot",
        detail,
    }
}

pub(super) fn file_fault(operation: &'static str, path: &Path, error: &io::Error) -> Fault {
    Fault::FileSystem {
        operation,
        detail: format!("{}: {error}", path.display()),
    }
}

/// Counts and hashes what passes through.
struct Hashing<W> {
    inner: W,
    bytes: u64,
    hasher: blake3::Hasher,
}

impl<W: Write> Hashing<W> {
    fn new(inner: W) -> Self {
        Self {
            inner,
            bytes: 0,
            hasher: blake3::Hasher::new(),
        }
    }

    fn finish(self) -> (W, u64, String) {
        (self.inner, self.bytes, self.hasher.finalize().to_hex().to_string())
    }
}

impl<W: Write> Write for Hashing<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.inner.write(bytes)?;
        self.hasher.update(bytes.get(..count).unwrap_or(bytes));
        self.bytes += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}
