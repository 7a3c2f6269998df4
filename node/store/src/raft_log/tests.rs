#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test")]

use openraft::EntryPayload;
use openraft::type_config::TypeConfigExt;
use openraft::vote::RaftLeaderId;
use waggle_memory::meta::{ClusterId, NodeId};
use waggle_shard::{Command, LeaderId};

use super::*;
use crate::holders::Holders;
use crate::key_kind::{Family, MetaKind};
use crate::keys;
use crate::options::{Identity, Start, StoreOptions};

const SHARD: ShardId = ShardId(7);
const OURS: Identity = Identity {
    cluster: ClusterId([7; 16]),
    node: NodeId(1),
};

fn database(directory: &tempfile::TempDir) -> Arc<Database> {
    let path = directory.path().join("data");
    let start = if path.exists() {
        Start::Known(OURS)
    } else {
        Start::Fresh(OURS)
    };
    Database::open(&path, &StoreOptions::development(start)).unwrap()
}

fn entry(index: u64) -> LogEntry {
    let log_id = LogId::new(LeaderId::new(1, 1), index);
    LogEntry {
        log_id,
        payload: EntryPayload::Normal(Command(vec![u8::try_from(index).unwrap(); 100].into())),
    }
}

/// A log of ten entries, and a writer that has ended.
fn ten_entries(database: &Arc<Database>) {
    let (writer, thread) = LogWriter::spawn(Arc::clone(database), Box::new(|_| {})).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let mut log = RaftLog::open(Arc::clone(database), writer.clone(), Holders::default().hold(), SHARD).unwrap();
        log.save_vote(&Vote {
            leader_id: LeaderId::new(1, 1),
            committed: true,
        })
        .await
        .unwrap();
        for index in 0..10 {
            let (flushed, done) = Types::oneshot();
            log.append([entry(index)], Flushed::signal(flushed)).await.unwrap();
            done.await.unwrap().unwrap();
        }
    });
    writer.close();
    thread.join().unwrap();
}

fn opened(database: &Arc<Database>) -> String {
    match load(database, SHARD) {
        Ok(tail) => format!("opens up to {:?}", tail.last.map(|last| last.index)),
        Err(fault) => fault.to_string(),
    }
}

fn change(database: &Database, change: impl FnOnce(&mut WriteBatchFor<'_>)) {
    let mut batch = WriteBatchFor {
        batch: rocksdb::WriteBatch::default(),
        database,
    };
    change(&mut batch);
    database.write_synced(batch.batch, "damage the log").unwrap();
}

struct WriteBatchFor<'a> {
    batch: rocksdb::WriteBatch,
    database: &'a Database,
}

impl WriteBatchFor<'_> {
    fn put(&mut self, index: u64, value: &[u8]) {
        self.batch.put_cf(
            self.database.family(Family::RaftLog).unwrap(),
            keys::log_key(SHARD, index),
            value,
        );
    }

    fn delete(&mut self, index: u64) {
        self.batch.delete_cf(
            self.database.family(Family::RaftLog).unwrap(),
            keys::log_key(SHARD, index),
        );
    }
}

#[test]
fn a_whole_log_opens() {
    let directory = tempfile::tempdir().unwrap();
    let database = database(&directory);
    assert_eq!(opened(&database), "opens up to None");
    ten_entries(&database);
    assert_eq!(opened(&database), "opens up to Some(9)");
}

#[test]
fn a_hole_refuses_to_open() {
    let directory = tempfile::tempdir().unwrap();
    let database = database(&directory);
    ten_entries(&database);
    change(&database, |batch| batch.delete(4));
    assert!(
        opened(&database).contains("shd_7: entry 4 is missing, 5 is the next"),
        "{}",
        opened(&database)
    );
    change(&database, |batch| batch.delete(0));
    assert!(
        opened(&database).contains("shd_7: entry 0 is missing, 1 is the next"),
        "{}",
        opened(&database)
    );
}

#[test]
fn a_flipped_bit_and_a_misplaced_entry_refuse_to_open() {
    let directory = tempfile::tempdir().unwrap();
    let database = database(&directory);
    ten_entries(&database);
    let mut record = encode_record(SHARD, &entry(5));
    *record.last_mut().unwrap() ^= 1;
    change(&database, |batch| batch.put(5, &record));
    assert!(
        opened(&database).contains("entry 5: the checksum does not match"),
        "{}",
        opened(&database)
    );
    change(&database, |batch| batch.put(5, &encode_record(SHARD, &entry(6))));
    assert!(
        opened(&database).contains("entry 5 says that it is T1-N1.6"),
        "{}",
        opened(&database)
    );
}

#[test]
fn a_log_without_the_vote_of_its_last_term_refuses_to_open() {
    let directory = tempfile::tempdir().unwrap();
    let database = database(&directory);
    ten_entries(&database);
    let mut batch = rocksdb::WriteBatch::default();
    batch.delete_cf(
        database.family(Family::RaftMeta).unwrap(),
        keys::meta_key(SHARD, MetaKind::Vote),
    );
    database.write_synced(batch, "damage the log").unwrap();
    assert!(
        opened(&database).contains("but the vote is None"),
        "{}",
        opened(&database)
    );
}

/// What a power cut does: the end of the write-ahead log was not on the disk yet.
#[test]
fn a_torn_tail_is_cut_and_the_rest_is_whole() {
    // At the very end lies the empty batch with which the writer ended; an entry has about 180 bytes.
    for (cut, last) in [(1, 9..=9), (40, 8..=8), (700, 4..=6)] {
        let directory = tempfile::tempdir().unwrap();
        ten_entries(&database(&directory));
        let files = std::fs::read_dir(directory.path().join("data").join("db")).unwrap();
        let newest = files
            .map(|file| file.unwrap().path())
            .filter(|path| path.extension().is_some_and(|extension| extension == "log"))
            .max()
            .unwrap();
        let whole = std::fs::read(&newest).unwrap();
        std::fs::write(&newest, &whole[..whole.len() - cut]).unwrap();
        let found = opened(&database(&directory));
        let found = last
            .clone()
            .find(|index| found == format!("opens up to Some({index})"))
            .ok_or(found);
        assert!(found.is_ok(), "cut by {cut}: {found:?} instead of {last:?}");
    }
}

#[test]
fn apply_waits_for_the_log_batches_of_its_entries_only() {
    let directory = tempfile::tempdir().unwrap();
    let database = database(&directory);
    let log = ShardLog {
        shard: SHARD,
        database: Arc::clone(&database),
        tail: Mutex::new(load(&database, SHARD).unwrap()),
        written: Condvar::new(),
        _holder: Holders::default().hold(),
    };
    let first = log.tail.lock().append(&[entry(0), entry(1)]).unwrap();
    let second = log.tail.lock().append(&[entry(2)]).unwrap();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| log.wait_written(1));
        std::thread::sleep(std::time::Duration::from_millis(20));
        assert!(!waiting.is_finished(), "entry 1 is not written yet");
        log.written(first, &Ok(()));
        waiting.join().unwrap().unwrap();
    });
    log.wait_written(1).unwrap();
    let failed = Fault::WriteFailed {
        operation: "append to the log",
        detail: "no space".to_owned(),
    };
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| log.wait_written(2));
        log.written(second, &Err(failed.clone()));
        assert_eq!(waiting.join().unwrap(), Err(failed));
    });
}
