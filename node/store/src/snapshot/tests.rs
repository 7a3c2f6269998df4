#![allow(clippy::unwrap_used, reason = "a test")]

use std::sync::Arc;

use openraft::vote::RaftLeaderId;
use waggle_memory::meta::{ClusterId, NodeId, Tenant};
use waggle_memory::tables::{Key, Row, ShardKey, Tables};
use waggle_memory::time::Millis;
use waggle_shard::{LeaderId, LogId, StoredMembership};

use super::*;
use crate::options::{Identity, Start, StoreOptions};

const SHARD: ShardId = ShardId(3);
const OURS: Identity = Identity {
    cluster: ClusterId([3; 16]),
    node: NodeId(1),
};

fn database(directory: &Path) -> Arc<Database> {
    Database::open(&directory.join("data"), &StoreOptions::development(Start::Fresh(OURS))).unwrap()
}

fn position(index: u64) -> Position {
    Position {
        applied: Some(LogId::new(LeaderId::new(2, 1), index)),
        membership: StoredMembership::default(),
    }
}

/// Rows of tenants `from..to` at an index.
fn fill(database: &Database, index: u64, tenants: std::ops::Range<u64>) {
    let mut transaction = database.transaction(SHARD);
    for number in tenants {
        let id: waggle_memory::id::TenantId = format!("tenant-{number:05}").parse().unwrap();
        let tenant = Tenant {
            id: id.clone(),
            name: format!("Tenant {number}"),
            created_at: Millis(1),
        };
        transaction.put(Key::Shard(ShardKey::TenantInfo(id)), Row::TenantInfo(tenant));
    }
    transaction.commit(&position(index).encode()).unwrap();
}

#[test]
fn a_snapshot_is_the_state_of_its_moment_and_installs_elsewhere() {
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (source, target) = (database(here.path()), database(there.path()));
    fill(&source, 10, 0..2000);
    fill(&target, 4, 5000..5100);
    let digest = source.digest(SHARD).unwrap();
    // What is written after the view was taken is not in it.
    let (built, path) = build(&source, SHARD, None, || fill(&source, 11, 2000..2010)).unwrap();
    assert_eq!(built, position(10));
    assert_eq!(current(&source, SHARD).unwrap(), Some((position(10), path.clone())));

    assert_eq!(install(&target, SHARD, &path).unwrap().0, position(10));
    assert_eq!(target.digest(SHARD).unwrap(), digest);
    assert_eq!(target.applied_state(SHARD).unwrap(), Some(position(10).encode()));
    assert_eq!(current(&target, SHARD).unwrap().unwrap().0, position(10));
    // Idempotent: openraft installs the current snapshot again at a restart.
    let (_, own) = current(&target, SHARD).unwrap().unwrap();
    install(&target, SHARD, &own).unwrap();
    assert_eq!(target.digest(SHARD).unwrap(), digest);
}

#[test]
fn an_interrupted_installation_is_finished_at_the_next_start() {
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (source, target) = (database(here.path()), database(there.path()));
    fill(&source, 10, 0..500);
    let (_, path) = build(&source, SHARD, None, || {}).unwrap();
    install(&target, SHARD, &path).unwrap();
    // As a crash leaves it: the intent is durable, half of the rows are gone, foreign ones are there.
    fill(&target, 3, 9000..9100);
    let mut batch = WriteBatch::default();
    let (first, end) = keys::shard_range(SHARD);
    batch.delete_range_cf(target.family(Family::State).unwrap(), &first, &end);
    let key = keys::meta_key(SHARD, MetaKind::SnapshotIntent);
    batch.put_cf(target.family(Family::RaftMeta).unwrap(), key, name(&position(10)));
    target.write_synced(batch, "crash").unwrap();

    finish_interrupted(&target, SHARD).unwrap();
    assert_eq!(target.digest(SHARD).unwrap(), source.digest(SHARD).unwrap());
    assert_eq!(target.applied_state(SHARD).unwrap(), Some(position(10).encode()));
    assert_eq!(target.meta(SHARD, MetaKind::SnapshotIntent).unwrap(), None);
}

#[test]
fn a_damaged_snapshot_changes_nothing() {
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (source, target) = (database(here.path()), database(there.path()));
    fill(&source, 10, 0..500);
    fill(&target, 4, 600..700);
    let before = target.digest(SHARD).unwrap();
    let outside = here.path().join("backup");
    build(&source, SHARD, Some(&outside), || {}).unwrap();
    let file = outside.join("state.rows");
    let mut bytes = fs::read(&file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&file, bytes).unwrap();
    let error = install(&target, SHARD, &outside).unwrap_err();
    assert!(error.to_string().contains("its hash does not match"), "{error}");
    assert_eq!(target.digest(SHARD).unwrap(), before);
    assert_eq!(target.meta(SHARD, MetaKind::SnapshotIntent).unwrap(), None);
    assert_eq!(current(&target, SHARD).unwrap(), None);
}

#[test]
fn an_older_snapshot_makes_room_for_a_newer_one() {
    let here = tempfile::tempdir().unwrap();
    let source = database(here.path());
    fill(&source, 9, 0..10);
    build(&source, SHARD, None, || {}).unwrap();
    fill(&source, 10, 10..20);
    build(&source, SHARD, None, || {}).unwrap();
    let names: Vec<_> = entries(&directory(&source, SHARD)).unwrap();
    assert_eq!(names, [directory(&source, SHARD).join("2-1-10")]);
}
