//! Snapshots of a shard: one compressed file per family with the rows in key order, and a manifest that says what is in
//! them and what they hash to. A directory is a snapshot only once it has its manifest and its final name; anything
//! else is left over from a crash and is removed.
//!
//! Installing goes through a durable intent. Before it is on the disk nothing of the old state is touched; after it the
//! installation is repeated at every start until it is complete. Rows are written through the log like all others;
//! ingesting table files instead would write them once less, and can replace this without a change of format.

mod files;

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use rocksdb::{Snapshot, WriteBatch};
use waggle_memory::meta::ShardId;
use waggle_shard::Position;

use crate::fault::Fault;
use crate::key_kind::{Family, MetaKind};
use crate::keys;
use crate::open::Database;
use files::{
    MANIFEST, Manifest, copy_verified, damaged, file_fault, read_manifest, read_rows, write_manifest, write_rows,
};

/// Rows of one batch while installing.
const BATCH_BYTES_MAX: usize = 1 << 20;
const UNFINISHED: &str = "unfinished";

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
        if newest
            .as_ref()
            .is_none_or(|(known, _)| known.applied < position.applied)
        {
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
    let Some(name) = database.meta(shard, MetaKind::SnapshotIntent)? else {
        return Ok(());
    };
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
            return Err(damaged(format!(
                "{} has {rows} rows instead of {}",
                file.name, file.rows
            )));
        }
    }
    let meta = database.family(Family::RaftMeta)?;
    batch.put_cf(meta, keys::meta_key(shard, MetaKind::Applied), position.encode());
    batch.delete_cf(meta, keys::meta_key(shard, MetaKind::SnapshotIntent));
    database.write_synced(batch, "finish to install a snapshot")
}

fn position_in(database: &Database, shard: ShardId, view: &Snapshot<'_>) -> Result<Position, Fault> {
    let stored = view
        .get_cf(
            database.family(Family::RaftMeta)?,
            keys::meta_key(shard, MetaKind::Applied),
        )
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
    let manifest = Manifest::new(shard, position, files);
    write_manifest(into, &manifest).map_err(failed)
}

fn verify(from: &Path, manifest: &Manifest) -> Result<(), Fault> {
    manifest
        .files
        .iter()
        .try_for_each(|file| copy_verified(from, file, &mut io::sink()))
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
    entries(home)?
        .iter()
        .filter(|path| path.as_path() != keep)
        .try_for_each(|path| remove(path))
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
        Ok(entries) => entries
            .map(|entry| entry.map(|entry| entry.path()).map_err(failed))
            .collect(),
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

#[cfg(test)]
mod tests;
