//! Snapshots of a shard: one compressed file per family with the rows in key order, and a manifest that says what is in
//! them and what they hash to. A directory is a snapshot only once it has its manifest and its final name; anything
//! else is left over from a crash and is removed.
//!
//! Installing goes through a durable intent. Before it is on the disk nothing of the old state is touched; after it the
//! installation is repeated at every start until it is complete. Rows are written through the log like all others;
//! ingesting table files instead would write them once less, and can replace this without a change of format.

use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use rocksdb::{ReadOptions, Snapshot, WriteBatch};
use serde::{Deserialize, Serialize};
use waggle_memory::meta::ShardId;
use waggle_shard::Position;

use crate::fault::Fault;
use crate::key_kind::{Family, MetaKind};
use crate::keys::{self, SHARD_BYTES};
use crate::open::Database;

const MANIFEST: &str = "manifest";
const FORMAT: u32 = 1;
const COMPRESSION_LEVEL: i32 = 1;
/// Largest key or value that is believed; the row format allows less.
const PART_BYTES_MAX: u32 = 64 << 20;
/// Rows of one batch while installing.
const BATCH_BYTES_MAX: usize = 1 << 20;
const UNFINISHED: &str = "unfinished";

/// What a snapshot holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Manifest {
    format: u32,
    shard: u32,
    /// The encoded [`Position`] in hexadecimal digits.
    position: String,
    files: Vec<RowsFile>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RowsFile {
    family: String,
    name: String,
    bytes: u64,
    rows: u64,
    /// blake3 of the bytes of the file.
    hash: String,
}

/// Where a shard's snapshots are.
pub(crate) fn directory(database: &Database, shard: ShardId) -> PathBuf {
    database.path().join("snapshots").join(shard.0.to_string())
}

/// Writes the state of this moment. `taken` is called when later writes no longer matter. Without `into` the snapshot
/// becomes the shard's current one, and older ones are removed.
pub(crate) fn build(
    database: &Database,
    shard: ShardId,
    into: Option<&Path>,
    taken: impl FnOnce(),
) -> Result<(Position, PathBuf), Fault> {
    let view = database.rocks().snapshot();
    taken();
    let position = position_in(database, shard, &view)?;
    if let Some(into) = into {
        write_files(database, shard, &view, &position, into)?;
        return Ok((position, into.to_owned()));
    }
    let home = directory(database, shard);
    let (unfinished, finished) = (home.join(UNFINISHED), home.join(name(&position)));
    if is_complete(&finished) {
        return Ok((position, finished));
    }
    write_files(database, shard, &view, &position, &unfinished)?;
    drop(view);
    // Once published, a snapshot newer than the applied state would be installed at the next start, so first make what
    // was applied durable.
    database.sync("publish a snapshot")?;
    publish(&unfinished, &finished)?;
    remove_others(&home, &finished)?;
    Ok((position, finished))
}

/// The newest complete snapshot.
pub(crate) fn current(database: &Database, shard: ShardId) -> Result<Option<(Position, PathBuf)>, Fault> {
    let mut newest: Option<(Position, PathBuf)> = None;
    for path in entries(&directory(database, shard))? {
        if !is_complete(&path) {
            continue;
        }
        let (_, position) = read_manifest(&path, shard)?;
        if newest.as_ref().is_none_or(|(known, _)| known.applied < position.applied) {
            newest = Some((position, path));
        }
    }
    Ok(newest)
}

/// What a snapshot is the result of.
pub(crate) fn position_of(from: &Path, shard: ShardId) -> Result<Position, Fault> {
    read_manifest(from, shard).map(|(_, position)| position)
}

/// Replaces the rows of a shard. Returns only after everything is on the disk.
pub(crate) fn install(database: &Database, shard: ShardId, from: &Path) -> Result<(Position, PathBuf), Fault> {
    let (manifest, position) = read_manifest(from, shard)?;
    let home = directory(database, shard);
    let finished = home.join(name(&position));
    if from == finished {
        verify(from, &manifest)?;
    } else if !is_complete(&finished) {
        adopt(from, &manifest, &home.join(UNFINISHED), &finished)?;
    }
    let mut intent = WriteBatch::default();
    let intent_key = keys::meta_key(shard, MetaKind::SnapshotIntent);
    intent.put_cf(database.family(Family::RaftMeta)?, intent_key, name(&position));
    database.write_synced(intent, "begin to install a snapshot")?;
    replace_rows(database, shard, &finished, &manifest, &position)?;
    remove_others(&home, &finished)?;
    Ok((position, finished))
}

/// Finishes the installation that a crash interrupted, if there was one.
pub(crate) fn finish_interrupted(database: &Database, shard: ShardId) -> Result<(), Fault> {
    let Some(name) = database.meta(shard, MetaKind::SnapshotIntent)? else { return Ok(()) };
    let name = String::from_utf8(name).map_err(|_| damaged("the intent is not a name".to_owned()))?;
    let path = directory(database, shard).join(name);
    tracing::warn!(%shard, path = %path.display(), "finish the installation of a snapshot that was interrupted");
    let (manifest, position) = read_manifest(&path, shard)?;
    verify(&path, &manifest)?;
    replace_rows(database, shard, &path, &manifest, &position)
}

/// Old rows out, new rows in, then, synced and in one batch, the new position and the end of the intent.
fn replace_rows(
    database: &Database,
    shard: ShardId,
    from: &Path,
    manifest: &Manifest,
    position: &Position,
) -> Result<(), Fault> {
    let (first, end) = keys::shard_range(shard);
    let mut batch = WriteBatch::default();
    for family in Family::ROWS {
        batch.delete_range_cf(database.family(family)?, &first, &end);
    }
    for file in &manifest.files {
        let family = family_of(&file.family)?;
        let handle = database.family(family)?;
        let mut rows = 0;
        read_rows(&from.join(&file.name), |key, value| {
            batch.put_cf(handle, [first.as_slice(), key].concat(), value);
            rows += 1;
            if batch.size_in_bytes() >= BATCH_BYTES_MAX {
                database.write_unsynced(std::mem::take(&mut batch), "install a snapshot")?;
            }
            Ok(())
        })?;
        if rows != file.rows {
            return Err(damaged(format!("{} has {rows} rows instead of {}", file.name, file.rows)));
        }
    }
    let meta = database.family(Family::RaftMeta)?;
    batch.put_cf(meta, keys::meta_key(shard, MetaKind::Applied), position.encode());
    batch.delete_cf(meta, keys::meta_key(shard, MetaKind::SnapshotIntent));
    database.write_synced(batch, "finish to install a snapshot")
}

fn position_in(database: &Database, shard: ShardId, view: &Snapshot<'_>) -> Result<Position, Fault> {
    let stored = view
        .get_cf(database.family(Family::RaftMeta)?, keys::meta_key(shard, MetaKind::Applied))
        .map_err(|error| Fault::read("read the applied state", error))?;
    match stored {
        Some(bytes) => Position::decode(&bytes).map_err(|why| damaged(format!("the applied state: {why}"))),
        None => Ok(Position::default()),
    }
}

fn write_files(
    database: &Database,
    shard: ShardId,
    view: &Snapshot<'_>,
    position: &Position,
    into: &Path,
) -> Result<(), Fault> {
    let failed = |error: io::Error| file_fault("write a snapshot", into, &error);
    remove(into)?;
    fs::create_dir_all(into).map_err(failed)?;
    let mut files = Vec::new();
    for family in Family::ROWS {
        files.push(write_rows(database, shard, view, family, into)?);
    }
    let position = position.encode().iter().map(|byte| format!("{byte:02x}")).collect();
    let manifest = Manifest { format: FORMAT, shard: shard.0, position, files };
    write_manifest(into, &manifest).map_err(failed)
}

fn write_rows(
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
    options.set_total_order_seek(true);
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
    stored.status().map_err(|error| Fault::read("read the rows of a snapshot", error))?;

    let (file, bytes, hash) = out.finish().map_err(failed)?.finish();
    let file = file.into_inner().map_err(|error| failed(error.into_error()))?;
    file.sync_all().map_err(failed)?;
    Ok(RowsFile { family: family.name().to_owned(), name, bytes, rows, hash })
}

fn write_part(out: &mut impl Write, part: &[u8]) -> io::Result<()> {
    let length = u32::try_from(part.len()).map_err(io::Error::other)?;
    out.write_all(&length.to_le_bytes())?;
    out.write_all(part)
}

fn read_rows(path: &Path, mut visit: impl FnMut(&[u8], &[u8]) -> Result<(), Fault>) -> Result<(), Fault> {
    let failed = |error: io::Error| file_fault("read a snapshot", path, &error);
    let file = File::open(path).map_err(failed)?;
    let mut input = zstd::Decoder::new(file).map_err(failed)?;
    loop {
        let Some(key) = read_part(&mut input).map_err(failed)? else { return Ok(()) };
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
fn write_manifest(into: &Path, manifest: &Manifest) -> io::Result<()> {
    let text = serde_json::to_string(manifest).map_err(io::Error::other)?;
    let hash = blake3::hash(text.as_bytes()).to_hex();
    let mut file = File::create(into.join(MANIFEST))?;
    file.write_all(format!("{text}\n{hash}\n").as_bytes())?;
    file.sync_all()?;
    File::open(into)?.sync_all()
}

fn read_manifest(from: &Path, shard: ShardId) -> Result<(Manifest, Position), Fault> {
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
    if manifest.files.iter().any(|file| file.name.contains(['/', '\\']) || file.name.starts_with('.')) {
        return Err(wrong("a file name leaves the directory"));
    }
    let bytes = from_hex(&manifest.position).ok_or_else(|| wrong("the position is not hexadecimal"))?;
    let position = Position::decode(&bytes).map_err(|why| wrong(&why.to_string()))?;
    Ok((manifest, position))
}

fn verify(from: &Path, manifest: &Manifest) -> Result<(), Fault> {
    manifest.files.iter().try_for_each(|file| copy_verified(from, file, &mut io::sink()))
}

/// Copies a snapshot from elsewhere, checking every hash on the way, and publishes it.
fn adopt(from: &Path, manifest: &Manifest, unfinished: &Path, finished: &Path) -> Result<(), Fault> {
    let failed = |error: io::Error| file_fault("receive a snapshot", unfinished, &error);
    remove(unfinished)?;
    fs::create_dir_all(unfinished).map_err(failed)?;
    for file in &manifest.files {
        let mut copy = File::create(unfinished.join(&file.name)).map_err(failed)?;
        copy_verified(from, file, &mut copy)?;
        copy.sync_all().map_err(failed)?;
    }
    write_manifest(unfinished, manifest).map_err(failed)?;
    publish(unfinished, finished)
}

fn copy_verified(from: &Path, file: &RowsFile, to: &mut impl Write) -> Result<(), Fault> {
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

fn publish(unfinished: &Path, finished: &Path) -> Result<(), Fault> {
    let failed = |error: io::Error| file_fault("publish a snapshot", finished, &error);
    remove(finished)?;
    fs::rename(unfinished, finished).map_err(failed)?;
    match finished.parent() {
        Some(home) => File::open(home).and_then(|home| home.sync_all()).map_err(failed),
        None => Ok(()),
    }
}

fn remove_others(home: &Path, keep: &Path) -> Result<(), Fault> {
    entries(home)?.iter().filter(|path| path.as_path() != keep).try_for_each(|path| remove(path))
}

fn remove(path: &Path) -> Result<(), Fault> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(file_fault("remove a snapshot", path, &error)),
        _ => Ok(()),
    }
}

fn entries(home: &Path) -> Result<Vec<PathBuf>, Fault> {
    let failed = |error: io::Error| file_fault("list snapshots", home, &error);
    match fs::read_dir(home) {
        Ok(entries) => entries.map(|entry| entry.map(|entry| entry.path()).map_err(failed)).collect(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(failed(error)),
    }
}

fn is_complete(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name != UNFINISHED) && path.join(MANIFEST).is_file()
}

/// Term, leader and index: the order of the numbers is the order of snapshots.
fn name(position: &Position) -> String {
    match position.applied {
        Some(last) => format!("{}-{}-{}", last.leader_id.term, last.leader_id.node_id, last.index),
        None => "empty".to_owned(),
    }
}

fn family_of(name: &str) -> Result<Family, Fault> {
    let found = Family::ROWS.into_iter().find(|family| family.name() == name);
    found.ok_or_else(|| damaged(format!("there is no family '{}'", name.escape_debug())))
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes().chunks(2);
    digits.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
}

fn damaged(detail: String) -> Fault {
    Fault::Damaged { operation: "use a snapshot", detail }
}

fn file_fault(operation: &'static str, path: &Path, error: &io::Error) -> Fault {
    Fault::FileSystem { operation, detail: format!("{}: {error}", path.display()) }
}

/// Counts and hashes what passes through.
struct Hashing<W> {
    inner: W,
    bytes: u64,
    hasher: blake3::Hasher,
}

impl<W: Write> Hashing<W> {
    fn new(inner: W) -> Self {
        Self { inner, bytes: 0, hasher: blake3::Hasher::new() }
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
