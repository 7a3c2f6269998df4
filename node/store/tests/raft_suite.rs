//! openraft's own contract of log storage and state machine, on RocksDB.

#![allow(clippy::unwrap_used, reason = "a test")]

mod raft_support;

use std::sync::Arc;

use openraft::StorageError;
use openraft::testing::log::{StoreBuilder, Suite};
use waggle_memory::meta::ShardId;
use waggle_shard::{Machine, NoObserver, Services, Storage, Types};
use waggle_store::{RaftLog, RaftStore};

struct Builder;

/// Kept for as long as the storage is tested.
struct Guard {
    _store: Arc<RaftStore>,
    _directory: tempfile::TempDir,
}

impl StoreBuilder<Types, RaftLog, Machine, Guard> for Builder {
    async fn build(&self) -> Result<(Guard, RaftLog, Machine), StorageError<Types>> {
        let directory = tempfile::tempdir().unwrap();
        let store = raft_support::open_store(&directory.path().join("data"));
        let state = store.open_state(ShardId(1)).unwrap();
        let log = store.open_log(ShardId(1)).unwrap();
        let (services, _thread) = Services::start(Arc::new(NoObserver)).unwrap();
        let machine = Machine::open(ShardId(1), state, services).unwrap();
        Ok((
            Guard {
                _store: store,
                _directory: directory,
            },
            log,
            machine,
        ))
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_storage_keeps_the_contract_of_openraft() {
    Suite::test_all(Builder).await.unwrap();
}
