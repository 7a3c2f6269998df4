//! kill -9 between any two steps of log, vote and apply: what was acknowledged is there, and the log is whole. A killed
//! process keeps the page cache, so this proves order and recovery; what a power cut takes away is cut in the unit tests
//! of the log.

#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test")]

mod raft_support;

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command as Process, Stdio};
use std::sync::Arc;
use std::time::Duration;

use openraft::EntryPayload;
use openraft::storage::{RaftLogReader, RaftLogStorage};
use openraft::type_config::TypeConfigExt;
use openraft::vote::RaftLeaderId;
use waggle_memory::meta::ShardId;
use waggle_shard::{
    Command, Flushed, LeaderId, LogEntry, LogId, Position, StateStore, Storage, StoredMembership, Types, Vote,
};
use waggle_store::RaftStore;

const SHARD: ShardId = ShardId(5);
const ROUNDS: u64 = 20;
const DIRECTORY: &str = "WAGGLE_TEST_CRASH_DIRECTORY";

/// What the child told before it died.
#[derive(Debug, Default, PartialEq, Eq)]
struct Acknowledged {
    term: u64,
    index: Option<u64>,
}

#[test]
fn what_was_acknowledged_survives_kill_nine() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("data");
    raft_support::open_store(&path).close();
    // The moments are arbitrary but the same in every run; the scheduler adds the rest.
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let mut total = 0;
    for round in 0..ROUNDS {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(round | 1);
        let acknowledged = run_and_kill(&path, Duration::from_millis(5 + (random >> 33) % 120));
        total = check(&path, &acknowledged, round);
    }
    assert!(total > ROUNDS, "hardly anything was written: {total} entries");
}

fn run_and_kill(path: &Path, after: Duration) -> Acknowledged {
    let mut child = Process::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "child_that_appends_until_it_is_killed",
            "--nocapture",
            "--test-threads=1",
        ])
        .env(DIRECTORY, path)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let listener = std::thread::spawn(move || listen(lines.map_while(Result::ok)));
    // Starting takes about this long; a kill during it is a moment like any other.
    std::thread::sleep(Duration::from_millis(120) + after);
    assert!(!listener.is_finished(), "the child ended by itself");
    child.kill().unwrap();
    child.wait().unwrap();
    listener.join().unwrap()
}

/// A line that the kill has cut has no full stop, and does not count.
fn listen(lines: impl Iterator<Item = String>) -> Acknowledged {
    let mut acknowledged = Acknowledged::default();
    for line in lines {
        let mut words = line.strip_suffix('.').unwrap_or_default().split(' ');
        let told = (
            words.next(),
            words.next(),
            words.next().and_then(|number| number.parse().ok()),
        );
        match told {
            (Some("ack"), Some("term"), Some(number)) => acknowledged.term = number,
            (Some("ack"), Some("index"), Some(number)) => acknowledged.index = Some(number),
            _ => {}
        }
    }
    acknowledged
}

fn check(path: &Path, acknowledged: &Acknowledged, round: u64) -> u64 {
    let store = raft_support::open_store(path);
    // Opening proves that there is no hole, that every checksum is right, and that what is applied is logged.
    let state = store.open_state(SHARD).unwrap();
    let mut log = store.open_log(SHARD).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let count = runtime.block_on(async {
        let term = log.read_vote().await.unwrap().map_or(0, |vote| vote.leader_id.term);
        let last = log.get_log_state().await.unwrap().last_log_id;
        let applied = state.position().unwrap().applied;
        assert!(
            term >= acknowledged.term,
            "round {round}: vote {term}, {acknowledged:?}"
        );
        assert!(
            last.map(|last| last.index) >= acknowledged.index,
            "round {round}: log {last:?}, {acknowledged:?}"
        );
        assert!(
            applied <= last,
            "round {round}: applied {applied:?} is not in the log up to {last:?}"
        );
        let entries = log.try_get_log_entries(..).await.unwrap();
        for entry in &entries {
            assert_eq!(
                entry.payload,
                entry_at(entry.log_id.leader_id.term, entry.log_id.index).payload
            );
        }
        entries.len() as u64
    });
    drop((log, state));
    store.close();
    count
}

/// Content that a reader can work out.
fn entry_at(term: u64, index: u64) -> LogEntry {
    let bytes = vec![u8::try_from(index % 251).unwrap(); 64 + usize::try_from(index % 400).unwrap()];
    let log_id = LogId::new(LeaderId::new(term, 1), index);
    LogEntry {
        log_id,
        payload: EntryPayload::Normal(Command(bytes.into())),
    }
}

#[test]
fn child_that_appends_until_it_is_killed() {
    let Some(path) = std::env::var_os(DIRECTORY) else {
        return;
    };
    let store = raft_support::open_store(Path::new(&path));
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(append_for_ever(store));
}

async fn append_for_ever(store: Arc<RaftStore>) {
    let state = store.open_state(SHARD).unwrap();
    let mut log = store.open_log(SHARD).unwrap();
    let mut term = log.read_vote().await.unwrap().map_or(0, |vote| vote.leader_id.term);
    let mut next = log
        .get_log_state()
        .await
        .unwrap()
        .last_log_id
        .map_or(0, |last| last.index + 1);
    loop {
        term += 1;
        log.save_vote(&Vote {
            leader_id: LeaderId::new(term, 1),
            committed: true,
        })
        .await
        .unwrap();
        say(&format!("ack term {term}."));
        for size in [1, 7, 2, 30, 1, 1, 4] {
            let (flushed, done) = Types::oneshot();
            log.append(
                (next..next + size).map(|index| entry_at(term, index)),
                Flushed::signal(flushed),
            )
            .await
            .unwrap();
            next += size;
            // Applied before it is flushed, as a follower may: the applied state must still not overtake the log.
            apply(&state, term, next - 1).await;
            if done.await.unwrap().is_ok() {
                say(&format!("ack index {}.", next - 1));
            }
        }
    }
}

async fn apply(state: &Arc<dyn StateStore>, term: u64, index: u64) {
    let state = Arc::clone(state);
    let applied = Some(LogId::new(LeaderId::new(term, 1), index));
    let position = Position {
        applied,
        membership: StoredMembership::default(),
    };
    tokio::task::spawn_blocking(move || state.begin().commit(&position))
        .await
        .unwrap()
        .unwrap();
}

fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}").unwrap();
    out.flush().unwrap();
}
