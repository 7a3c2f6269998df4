//! What cannot be read or does not belong becomes a fault, never a panic and never an answer.

use waggle_memory::id::{MemoryId, RequestId, TenantId};
use waggle_memory::meta::{ClusterId, NodeId};
use waggle_memory::tables::{ShardKey, TenantKey};
use waggle_memory::time::{Millis, Stamp};

use super::*;
use crate::options::{Identity, Start, StoreOptions};

const SHARD: ShardId = ShardId(3);

fn fresh(directory: &tempfile::TempDir) -> std::sync::Arc<Database> {
    let identity = Identity {
        cluster: ClusterId([1; 16]),
        node: NodeId(1),
    };
    Database::open(directory.path(), &StoreOptions::development(Start::Fresh(identity))).unwrap()
}

fn tenant(name: &str) -> TenantId {
    name.parse().unwrap()
}

fn put_raw(database: &Database, key: &[u8], kind: KeyKind, value: &[u8]) {
    let mut batch = WriteBatch::new();
    batch.put_cf(database.family(kind.family()).unwrap(), key, value);
    database.write_unsynced(batch, "damage a row").unwrap();
}

#[test]
fn a_row_that_cannot_be_read_is_a_fault() {
    let directory = tempfile::tempdir().unwrap();
    let database = fresh(&directory);
    let key = Key::Shard(ShardKey::LastStamp);
    put_raw(&database, &encode_key(SHARD, &key), KeyKind::LastStamp, b"\xff\xff\xff");

    let view = database.view(SHARD);
    assert_eq!(view.get(&key), None);
    assert!(
        matches!(view.check(), Err(Fault::MalformedRow { .. })),
        "{:?}",
        view.check()
    );
    assert!(view.scan(&key, &key, 9).is_empty());
    assert!(matches!(
        database.read(SHARD, |rows| rows.get(&key)),
        Err(Fault::MalformedRow { .. })
    ));

    let mut transaction = database.transaction(SHARD);
    assert_eq!(transaction.get(&key), None);
    transaction.put(key.clone(), Row::Stamp(Stamp::default()));
    assert!(matches!(transaction.commit(b"9"), Err(Fault::MalformedRow { .. })));
    assert_eq!(
        database.applied_state(SHARD),
        Ok(None),
        "nothing of a faulty transaction is written"
    );
    assert_eq!(database.fault(), None, "the damage is one shard's; others go on");
}

#[test]
fn a_key_that_cannot_be_read_is_a_fault_of_the_scan() {
    let directory = tempfile::tempdir().unwrap();
    let database = fresh(&directory);
    let acme = tenant("acme");
    let from = Key::Tenant(acme.clone(), TenantKey::Project(String::new()));
    let to = Key::Tenant(acme, TenantKey::Agent(String::new()));
    let mut key = encode_key(SHARD, &from);
    key.push(9);
    put_raw(&database, &key, KeyKind::Project, &encode_row(&Row::Mark));
    for scan in [ShardView::scan, ShardView::scan_back] {
        let view = database.view(SHARD);
        assert!(scan(&view, &from, &to, 9).is_empty());
        assert!(
            matches!(view.check(), Err(Fault::MalformedRow { .. })),
            "{:?}",
            view.check()
        );
    }
}

#[test]
fn a_row_under_a_key_of_another_kind_is_a_fault() {
    let directory = tempfile::tempdir().unwrap();
    let database = fresh(&directory);
    let key = Key::Shard(ShardKey::LastStamp);
    let mut transaction = database.transaction(SHARD);
    transaction.put(key.clone(), Row::Mark);
    assert!(matches!(transaction.commit(b""), Err(Fault::MisplacedRow { .. })));

    put_raw(
        &database,
        &encode_key(SHARD, &key),
        KeyKind::LastStamp,
        &encode_row(&Row::Mark),
    );
    let view = database.view(SHARD);
    assert_eq!(view.get(&key), None);
    assert!(matches!(view.check(), Err(Fault::MalformedRow { .. })));
}

#[test]
fn a_scan_between_tenants_is_a_fault() {
    let directory = tempfile::tempdir().unwrap();
    let database = fresh(&directory);
    let one = Key::Tenant(tenant("acme"), TenantKey::State);
    let two = Key::Tenant(tenant("zeta"), TenantKey::Request(RequestId("z".to_owned())));
    for (from, to) in [(&one, &two), (&Key::Shard(ShardKey::LastStamp), &one)] {
        let view = database.view(SHARD);
        assert!(view.scan(from, to, 9).is_empty());
        assert!(matches!(view.check(), Err(Fault::ScanAcrossTenants { .. })));
    }
}

#[test]
fn the_first_fault_is_the_one_that_stays() {
    let directory = tempfile::tempdir().unwrap();
    let database = fresh(&directory);
    let mut transaction = database.transaction(SHARD);
    transaction.put(Key::Shard(ShardKey::LastStamp), Row::Mark);
    let age = Key::Shard(ShardKey::RequestAge(
        Millis(1),
        tenant("acme"),
        RequestId(String::new()),
    ));
    let memory = Key::Tenant(tenant("acme"), TenantKey::Memory(MemoryId::from_bytes([1; 16])));
    assert!(transaction.scan(&age, &memory, 1).is_empty());
    assert!(matches!(transaction.check(), Err(Fault::MisplacedRow { .. })));
}

#[test]
fn after_a_failed_write_nothing_is_written_any_more() {
    let directory = tempfile::tempdir().unwrap();
    let database = fresh(&directory);
    // RocksDB refuses a range whose ends are the wrong way round, which stands for any failing write.
    let family = database.family(Family::State).unwrap();
    let mut batch = WriteBatch::new();
    batch.delete_range_cf(family, b"z", b"a");
    let first = database.write_synced(batch, "write what fails");
    assert!(
        matches!(
            first,
            Err(Fault::WriteFailed {
                operation: "write what fails",
                ..
            })
        ),
        "{first:?}"
    );
    let mut transaction = database.transaction(SHARD);
    transaction.put(Key::Shard(ShardKey::LastStamp), Row::Stamp(Stamp::default()));
    assert_eq!(transaction.commit(b""), first);
    assert_eq!(database.sync("sync"), first);
    assert_eq!(database.fault().cloned(), first.err());
}
