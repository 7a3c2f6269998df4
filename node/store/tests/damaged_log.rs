//! Damage in the live log: at its end it is a torn write and the start goes on; before its end acknowledged writes stand
//! behind it, and the start is refused until an operator decides.

#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test")]

mod raft_support;

use std::fs;
use std::path::{Path, PathBuf};

use raft_support::{OURS, config, create_tenant, new, open_store, start, stop};
use waggle_memory::meta::ShardId;
use waggle_store::{Database, Start, StoreOptions};

/// Several blocks of 32 KiB of log, so that records meet their ends.
const WRITES: u32 = 600;

/// A data directory as a killed process left it, with acknowledged writes in the newest log.
async fn left_by_a_killed_process(into: &Path) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("data");
    let store = open_store(&path);
    let shards = start(&store, config(1, new)).await;
    let shard = shards.get(ShardId(0)).unwrap();
    for number in 0..WRITES {
        shard
            .propose(create_tenant(number), raft_support::TIMEOUT)
            .await
            .unwrap();
    }
    // Nothing was closed: what the files hold now is what kill -9 would leave.
    copy(&path, into);
    stop(shards, store).await;
}

fn copy(from: &Path, into: &Path) {
    fs::create_dir_all(into).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let (path, name) = (entry.as_ref().unwrap().path(), entry.unwrap().file_name());
        if path.is_dir() {
            copy(&path, &into.join(name));
        } else if name != "ballast" {
            fs::copy(path, into.join(name)).unwrap();
        }
    }
}

fn newest_log(path: &Path) -> PathBuf {
    fs::read_dir(path.join("db"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "log"))
        .max()
        .unwrap()
}

/// Bytes of the log that were written; what follows is room that was set aside.
fn written(bytes: &[u8]) -> usize {
    bytes.len() - bytes.iter().rev().take_while(|byte| **byte == 0).count()
}

fn open(path: &Path, accept_damaged_log: bool) -> Result<(), &'static str> {
    let options = StoreOptions {
        accept_damaged_log,
        ..StoreOptions::development(Start::Known(OURS))
    };
    Database::open(path, &options).map(drop).map_err(|error| error.code())
}

#[tokio::test(flavor = "multi_thread")]
async fn damage_before_the_end_of_the_log_is_refused_until_somebody_accepts_it() {
    let directory = tempfile::tempdir().unwrap();
    let left = directory.path().join("left");
    left_by_a_killed_process(&left).await;
    let log = newest_log(&left);
    let whole = fs::read(&log).unwrap();
    let end = written(&whole);
    assert!(end > 100_000, "{end} bytes for {WRITES} writes");

    for percent in [1, 10, 35, 50, 75, 90] {
        let path = directory.path().join(format!("flipped-{percent}"));
        copy(&left, &path);
        let mut bytes = whole.clone();
        bytes[end * percent / 100] ^= 0x10;
        fs::write(newest_log(&path), &bytes).unwrap();
        assert_eq!(open(&path, false), Err("data_damaged_log"), "flipped at {percent} %");
        assert_eq!(fs::read(newest_log(&path)).unwrap(), bytes, "a refusal changes nothing");
        assert_eq!(open(&path, true), Ok(()), "flipped at {percent} %, accepted");
        assert_eq!(open(&path, false), Ok(()), "accepted once is enough");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_torn_or_damaged_end_and_a_whole_log_open() {
    let directory = tempfile::tempdir().unwrap();
    let left = directory.path().join("left");
    left_by_a_killed_process(&left).await;
    let whole = fs::read(newest_log(&left)).unwrap();
    let end = written(&whole);
    let flipped = |at: usize| {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x10;
        bytes
    };
    for (what, bytes) in [
        ("whole", whole.clone()),
        ("last byte flipped", flipped(end - 1)),
        ("cut by 1", whole[..end - 1].to_vec()),
        ("cut by 700", whole[..end - 700].to_vec()),
    ] {
        let path = directory.path().join(what);
        copy(&left, &path);
        fs::write(newest_log(&path), bytes).unwrap();
        assert_eq!(open(&path, false), Ok(()), "{what}");
    }
}
