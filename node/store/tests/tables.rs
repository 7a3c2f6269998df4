//! The tables in RocksDB against the model of the domain: the same reads, the same outcomes, the same rows.

#![allow(clippy::unwrap_used, reason = "a test")]

#[path = "../../../proto/tests/generate/mod.rs"]
mod generate;

use std::sync::Arc;

use generate::Draw;
use waggle_memory::apply::apply;
use waggle_memory::id::{TenantId, TurnId};
use waggle_memory::meta::{ClusterId, KeyId, NodeId, ShardId};
use waggle_memory::tables::model::Model;
use waggle_memory::tables::{Key, ReadTables, Row, ShardKey, Tables, TenantKey};
use waggle_store::{Database, Identity, Start, StoreOptions};

const IDENTITY: Identity = Identity {
    cluster: ClusterId([1; 16]),
    node: NodeId(1),
};

fn open(directory: &tempfile::TempDir, start: Start) -> Arc<Database> {
    Database::open(directory.path(), &StoreOptions::development(start)).unwrap()
}

fn check_reads(draw: &mut Draw, model: &Model, stored: &dyn ReadTables, what: &str) {
    let key = draw.key();
    assert_eq!(stored.get(&key), model.get(&key), "{what}: get {key:?}");
    let (from, to) = match draw.below(3) {
        0 => (Key::Shard(draw.shard_key()), Key::Shard(draw.shard_key())),
        _ => {
            let tenant = draw.tenant();
            (draw.key_of(tenant.clone()), draw.key_of(tenant))
        }
    };
    // Now and then the wrong way round.
    let (from, to) = if from <= to || draw.below(8) == 0 {
        (from, to)
    } else {
        (to, from)
    };
    let limit = draw.pick(&[0, 1, 2, 5, usize::MAX]);
    assert_eq!(
        stored.scan(&from, &to, limit),
        model.scan(&from, &to, limit),
        "{what}: scan {from:?} {to:?} {limit}"
    );
    let (back, expected) = (stored.scan_back(&from, &to, limit), model.scan_back(&from, &to, limit));
    assert_eq!(back, expected, "{what}: scan back {from:?} {to:?} {limit}");
}

/// All rows of a shard: those of the shard as a whole, then those of each tenant that the generators know.
fn all_rows(stored: &dyn ReadTables) -> Vec<(Key, Row)> {
    let last = "\u{10ffff}".repeat(4);
    let end = Key::Shard(ShardKey::JoinToken(KeyId(last)));
    let mut rows = stored.scan(&Key::Shard(ShardKey::LastStamp), &end, usize::MAX);
    for tenant in ["0", "acme", "acme-2", "acme.eu", "zeta_9"] {
        let key = |rest| Key::Tenant(tenant.parse().unwrap(), rest);
        // The last kind: keys of a tenant are compared up to its end.
        let end = key(TenantKey::MessageOf(TurnId::from_bytes([0xff; 16])));
        rows.extend(stored.scan(&key(TenantKey::State), &end, usize::MAX));
    }
    rows
}

fn rows_of(model: &Model) -> Vec<(Key, Row)> {
    model.rows().map(|(key, row)| (key.clone(), row.clone())).collect()
}

#[test]
fn random_reads_and_writes_are_those_of_the_model() {
    let directory = tempfile::tempdir().unwrap();
    let mut database = open(&directory, Start::Fresh(IDENTITY));
    for case in 0..48_u32 {
        let shard = ShardId(case);
        let mut draw = Draw::new(u64::from(case));
        let mut model = Model::default();
        for run in 0..6 {
            let mut changed = model.clone();
            let mut transaction = database.transaction(shard);
            for _ in 0..24 {
                let key = draw.key();
                if draw.below(3) == 0 {
                    changed.delete(key.clone());
                    transaction.delete(key);
                } else {
                    let row = draw.row_under(&key);
                    changed.put(key.clone(), row.clone());
                    transaction.put(key, row);
                }
                check_reads(&mut draw, &changed, &transaction, "transaction");
            }
            if draw.below(4) == 0 {
                drop(transaction);
            } else {
                let before = database.view(shard);
                transaction.commit(&[run]).unwrap();
                assert_eq!(all_rows(&before), rows_of(&model), "a view does not move");
                model = changed;
                assert_eq!(database.applied_state(shard).unwrap(), Some(vec![run]));
            }
            database
                .read(shard, |rows| check_reads(&mut draw, &model, rows, "view"))
                .unwrap();
        }
        assert_eq!(database.read(shard, all_rows).unwrap(), rows_of(&model));
        if case % 12 == 11 {
            let digest = database.digest(shard).unwrap();
            drop(database);
            database = open(&directory, Start::Known(IDENTITY));
            assert_eq!(database.digest(shard).unwrap(), digest);
            assert_eq!(
                database.read(shard, all_rows).unwrap(),
                rows_of(&model),
                "after a restart"
            );
        }
    }
}

#[test]
fn entries_have_the_outcomes_and_rows_of_the_model_in_runs_of_any_length() {
    let directory = tempfile::tempdir().unwrap();
    let database = open(&directory, Start::Fresh(IDENTITY));
    let mut kinds_of_outcomes = std::collections::BTreeSet::new();
    for case in 0..100_u32 {
        // One shard applies entry by entry, the other in runs: nobody can see a difference.
        let (single, runs) = (ShardId(2 * case), ShardId(2 * case + 1));
        let mut draw = Draw::near(u64::from(case));
        let entries: Vec<_> = (0..80).map(|_| draw.entry()).collect();
        let mut model = Model::default();
        let expected: Vec<_> = entries.iter().map(|entry| apply(&mut model, entry)).collect();
        for (entry, expected) in entries.iter().zip(&expected) {
            kinds_of_outcomes.insert(
                format!("{:?}", expected.outcome)
                    .split(['(', ' ', '{'])
                    .next()
                    .unwrap()
                    .to_owned(),
            );
            let mut transaction = database.transaction(single);
            assert_eq!(&apply(&mut transaction, entry), expected, "{entry:#?}");
            transaction.commit(b"state").unwrap();
        }
        let mut rest = entries.as_slice();
        let mut outcomes = Vec::new();
        while !rest.is_empty() {
            let (run, after) = rest.split_at(draw.below(9).clamp(1, rest.len()));
            let mut transaction = database.transaction(runs);
            outcomes.extend(run.iter().map(|entry| apply(&mut transaction, entry)));
            transaction.commit(b"state").unwrap();
            rest = after;
        }
        assert_eq!(outcomes, expected);
        assert_eq!(database.read(single, all_rows).unwrap(), rows_of(&model));
        assert_eq!(database.digest(single).unwrap(), database.digest(runs).unwrap());
    }
    assert_eq!(
        kinds_of_outcomes.len(),
        13,
        "some command never succeeded: {kinds_of_outcomes:?}"
    );
}

#[test]
fn digests_differ_by_any_row_and_not_by_the_shard() {
    let directory = tempfile::tempdir().unwrap();
    let database = open(&directory, Start::Fresh(IDENTITY));
    let fill = |shard, seeds: std::ops::Range<u64>| {
        let mut transaction = database.transaction(shard);
        for seed in seeds {
            let mut draw = Draw::full(seed);
            let key = draw.key();
            let row = draw.row_under(&key);
            transaction.put(key, row);
        }
        transaction.commit(b"").unwrap();
        database.digest(shard).unwrap()
    };
    let one = fill(ShardId(1), 0..50);
    assert_eq!(fill(ShardId(2), 0..50), one);
    assert_ne!(fill(ShardId(3), 0..49), one);
    assert_ne!(fill(ShardId(2), 50..51), one);
}

#[test]
fn a_dropped_shard_leaves_nothing_and_its_neighbours_alone() {
    let directory = tempfile::tempdir().unwrap();
    let database = open(&directory, Start::Fresh(IDENTITY));
    let key = Key::Shard(ShardKey::LastStamp);
    for shard in [0, 1, 2, u32::MAX] {
        let mut transaction = database.transaction(ShardId(shard));
        let row = Draw::full(1).row_under(&key);
        transaction.put(key.clone(), row);
        transaction.commit(b"here").unwrap();
    }
    for shard in [1, u32::MAX] {
        database.drop_shard(ShardId(shard)).unwrap();
    }
    for (shard, there) in [(0, true), (1, false), (2, true), (u32::MAX, false)] {
        let shard = ShardId(shard);
        assert_eq!(database.read(shard, |rows| rows.get(&key)).unwrap().is_some(), there);
        assert_eq!(database.applied_state(shard).unwrap().is_some(), there);
    }
}

#[test]
fn usage_counts_what_is_there() {
    let directory = tempfile::tempdir().unwrap();
    let database = open(&directory, Start::Fresh(IDENTITY));
    let mut draw = Draw::full(1);
    let mut transaction = database.transaction(ShardId(1));
    for _ in 0..500 {
        let key = draw.key();
        let row = draw.row_under(&key);
        transaction.put(key, row);
    }
    transaction.commit(b"").unwrap();
    let usage = database.usage().unwrap();
    assert!(usage.wal_bytes > 10_000 && usage.memtable_bytes > 10_000, "{usage:?}");
    assert!(!usage.writes_delayed && !usage.writes_stopped, "{usage:?}");
    drop(database);
    // Opening flushes what the log held: now there are table files.
    let database = open(&directory, Start::Known(IDENTITY));
    let usage = database.usage().unwrap();
    assert!(usage.table_bytes > 1_000 && usage.live_bytes > 1_000, "{usage:?}");
    assert!(database.approximate_bytes(ShardId(1)).unwrap() > 0);
    assert_eq!(database.approximate_bytes(ShardId(2)).unwrap(), 0);
}
