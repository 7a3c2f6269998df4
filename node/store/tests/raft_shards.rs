//! Real consensus over RocksDB in one process: one voter per shard.

#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test")]

mod raft_support;

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use raft_support::{TIMEOUT, config, create_tenant, new, open_store, start, start_observed, stop, store_turn, turns};
use tokio::task::JoinSet;
use waggle_memory::meta::ShardId;
use waggle_memory::outcome::{Effects, Outcome};
use waggle_memory::tables::ReadTables;
use waggle_shard::{
    ApplyObserver, Config, Indeterminate, NoObserver, NoRemote, Origin, Ports, ProposeError, Role, Settings,
    ShardHandle, Shards, StartError, Status, Unavailable,
};

const META: ShardId = ShardId::META;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_single_voter_leads_at_once_and_remembers_over_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("data");

    let began = Instant::now();
    let store = open_store(&path);
    let opened = began.elapsed();
    let shards = start(&store, config(1, new)).await;
    println!(
        "first start: opened after {opened:?}, ready after {:?}",
        began.elapsed()
    );
    let handle = shards.get(META).unwrap().clone();
    let mut last = 0;
    for number in 0..20 {
        let proposed = handle.propose(create_tenant(number), TIMEOUT).await.unwrap();
        assert_eq!(proposed.outcome, Outcome::Done);
        assert!(proposed.log_index > last);
        last = proposed.log_index;
    }
    assert!(handle.linearizable_read(TIMEOUT).await.unwrap().applied_index >= last);
    let before = status_when(&handle, |status| status.applied_index == Some(last)).await;
    assert_eq!((before.role, before.voters.as_slice()), (Role::Leader, &[1][..]));
    let digest = store.database().digest(META).unwrap();
    shards.shutdown(TIMEOUT).await.unwrap();
    assert_eq!(
        handle.propose(create_tenant(99), TIMEOUT).await,
        Err(ProposeError::Unavailable(Unavailable::ShuttingDown))
    );
    drop(handle);
    tokio::task::spawn_blocking(move || store.close()).await.unwrap();

    let began = Instant::now();
    let store = open_store(&path);
    let opened = began.elapsed();
    let shards = start(&store, config(1, |_| Origin::Known)).await;
    let ready = began.elapsed();
    println!("restart: opened after {opened:?}, ready after {ready:?}");
    assert!(ready < Duration::from_secs(2), "ready only after {ready:?}");
    let handle = shards.get(META).unwrap();
    assert!(
        handle.status().term > before.term,
        "a restarted leader is elected again"
    );
    assert!(handle.linearizable_read(TIMEOUT).await.unwrap().applied_index > last);
    assert_eq!(store.database().digest(META).unwrap(), digest);
    stop(shards, store).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_shards_share_one_log_and_one_sync() {
    const SHARDS: u32 = 17;
    const WRITES: u32 = 40;
    let directory = tempfile::tempdir().unwrap();
    let store = open_store(&directory.path().join("data"));
    let began = Instant::now();
    let shards = start(&store, config(SHARDS, new)).await;
    println!("{SHARDS} shards ready after {:?}", began.elapsed());

    let began = Instant::now();
    write_beside(&shards.handles(), 4, WRITES / 4).await;
    println!("{} writes in {:?}", SHARDS * WRITES, began.elapsed());
    let digests: Vec<_> = (0..SHARDS)
        .map(|number| store.database().digest(ShardId(number)).unwrap())
        .collect();
    stop(shards, store).await;

    let store = open_store(&directory.path().join("data"));
    let began = Instant::now();
    let shards = start(&store, config(SHARDS, |_| Origin::Known)).await;
    println!("{SHARDS} shards ready again after {:?}", began.elapsed());
    for (number, digest) in (0..).zip(digests) {
        assert_eq!(
            store.database().digest(ShardId(number)).unwrap(),
            digest,
            "shard {number}"
        );
    }
    stop(shards, store).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restored_shard_has_the_same_digest_and_goes_on() {
    let directory = tempfile::tempdir().unwrap();
    let backup = directory.path().join("backup");
    let store = open_store(&directory.path().join("data"));
    let shards = start(&store, config(1, new)).await;
    let handle = shards.get(META).unwrap();
    for number in 0..50 {
        handle.propose(create_tenant(number), TIMEOUT).await.unwrap();
    }
    let (meta, _) = handle.snapshot_to(&backup).await.unwrap();
    let digest = store.database().digest(META).unwrap();
    stop(shards, store).await;

    let store = open_store(&directory.path().join("other"));
    let restored = store.restore_from(META, &backup).unwrap();
    assert_eq!(restored.applied, meta.last_log_id);
    assert_eq!(store.database().digest(META).unwrap(), digest);
    assert!(
        store.restore_from(META, &backup).is_err(),
        "a shard with data is not overwritten"
    );
    let shards = start(&store, config(1, |_| Origin::Known)).await;
    let proposed = shards
        .get(META)
        .unwrap()
        .propose(create_tenant(1000), TIMEOUT)
        .await
        .unwrap();
    assert!(proposed.log_index > restored.applied.unwrap().index);
    assert_ne!(store.database().digest(META).unwrap(), digest);
    stop(shards, store).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn old_entries_are_purged_behind_a_snapshot() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("data");
    let settings = Settings {
        snapshot_after_entries: 500,
        log_entries_kept: 100,
        ..Settings::default()
    };
    let with_settings = |origin: fn(u64) -> Origin| Config {
        settings: settings.clone(),
        ..config(1, origin)
    };
    let store = open_store(&path);
    let shards = start(&store, with_settings(new)).await;
    let handle = shards.get(META).unwrap().clone();
    write_beside([&handle], 16, 100).await;
    status_when(&handle, |status| status.purged_index.is_some()).await;
    let digest = store.database().digest(META).unwrap();
    drop(handle);
    stop(shards, store).await;

    let store = open_store(&path);
    let shards = start(&store, with_settings(|_| Origin::Known)).await;
    let status = shards.get(META).unwrap().status();
    assert!(
        status.purged_index <= status.snapshot_index && status.snapshot_index <= status.applied_index,
        "{status:?}"
    );
    assert_eq!(store.database().digest(META).unwrap(), digest);
    stop(shards, store).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_empty_replica_does_not_return_under_its_old_id() {
    let directory = tempfile::tempdir().unwrap();
    let store = open_store(&directory.path().join("data"));
    let ports = Ports {
        storage: Arc::clone(&store),
        wire: Arc::new(NoRemote),
        observer: Arc::new(NoObserver),
        clock: Arc::new(raft_support::WallClock),
    };
    let error = Shards::start(config(1, |_| Origin::Known), ports).await.err();
    assert_eq!(
        error,
        Some(StartError::ReplicaMissing {
            shard: "shd_0".to_owned()
        })
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_shard_says_so_and_a_deadline_leaves_the_outcome_open() {
    let directory = tempfile::tempdir().unwrap();
    let store = open_store(&directory.path().join("data"));
    let settings = Settings {
        proposals_max: 0,
        ..Settings::default()
    };
    let shards = start(
        &store,
        Config {
            settings,
            ..config(1, new)
        },
    )
    .await;
    let refused = shards.get(META).unwrap().propose(create_tenant(1), TIMEOUT).await;
    assert!(
        matches!(refused, Err(ProposeError::Unavailable(Unavailable::Overloaded { .. }))),
        "{refused:?}"
    );
    stop(shards, store).await;

    let store = open_store(&directory.path().join("data"));
    let shards = start_observed(&store, config(1, |_| Origin::Known), Arc::new(Slow)).await;
    let handle = shards.get(META).unwrap();
    let timeout = Duration::from_millis(200);
    let late = handle.propose(store_turn(1), timeout).await;
    assert_eq!(
        late,
        Err(ProposeError::Indeterminate(Indeterminate::DeadlineAfterPropose {
            after: timeout
        }))
    );
    // It happened all the same.
    handle.linearizable_read(TIMEOUT).await.unwrap();
    let stored = store.database().view(META).scan(&turns().0, &turns().1, 10);
    assert_eq!(stored.len(), 1);
    stop(shards, store).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn derived_indexes_know_a_write_before_its_author_is_answered() {
    let directory = tempfile::tempdir().unwrap();
    let store = open_store(&directory.path().join("data"));
    let seen = Arc::new(Seen::default());
    let shards = start_observed(&store, config(2, new), Arc::clone(&seen) as Arc<dyn ApplyObserver>).await;
    let handle = shards.get(ShardId(1)).unwrap();
    for number in 0..20 {
        let proposed = handle.propose(store_turn(number), TIMEOUT).await.unwrap();
        assert!(matches!(proposed.outcome, Outcome::Remembered(_)), "{proposed:?}");
        assert_eq!(
            seen.0.lock().unwrap().last(),
            Some(&(ShardId(1), proposed.log_index, 1))
        );
    }
    stop(shards, store).await;
}

/// What a status says is a moment behind what callers were told.
async fn status_when(handle: &ShardHandle, holds: impl Fn(&Status) -> bool) -> Status {
    let deadline = Instant::now() + TIMEOUT;
    loop {
        let status = handle.status();
        if holds(&status) {
            return status;
        }
        assert!(Instant::now() < deadline, "{status:?}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Writers beside each other, each with its own tenants.
async fn write_beside(handles: impl IntoIterator<Item = &ShardHandle>, writers: u32, writes: u32) {
    let mut tasks = JoinSet::new();
    for handle in handles {
        for writer in 0..writers {
            let handle = handle.clone();
            tasks.spawn(async move {
                for number in 0..writes {
                    let proposed = handle
                        .propose(create_tenant(writer * 1000 + number), TIMEOUT)
                        .await
                        .unwrap();
                    assert_eq!(proposed.outcome, Outcome::Done);
                }
            });
        }
    }
    tasks.join_all().await;
}

/// Holds up what has effects.
struct Slow;

impl ApplyObserver for Slow {
    fn applied(&self, _shard: ShardId, _log_index: u64, _effects: &[Effects]) {
        std::thread::sleep(Duration::from_millis(500));
    }

    fn replaced(&self, _shard: ShardId) {}
}

/// Shard, last index and number of effects of each call.
#[derive(Default)]
struct Seen(Mutex<Vec<(ShardId, u64, usize)>>);

impl ApplyObserver for Seen {
    fn applied(&self, shard: ShardId, log_index: u64, effects: &[Effects]) {
        self.0.lock().unwrap().push((shard, log_index, effects.len()));
    }

    fn replaced(&self, _shard: ShardId) {}
}
