//! RocksDB behind the ports of the domain and of the consensus library: state tables, Raft log, snapshots.
//!
//! One database per node. Every key begins with its shard; every write of a node goes through one log, so a crash loses
//! only a suffix. No type of RocksDB leaves this crate.

mod ballast;
mod fault;
mod group_commit;
mod holders;
mod identity;
mod key_kind;
mod keys;
mod log_check;
mod open;
mod options;
#[cfg(feature = "planted-bugs")]
pub mod planted;
mod raft_log;
mod snapshot;
mod state_machine;
mod tables;
mod usage;
mod whole_shard;

pub use fault::Fault;
pub use group_commit::OnFatal;
pub use identity::{FORMAT, OpenError};
pub use open::Database;
pub use options::{Identity, Start, StoreOptions};
pub use raft_log::RaftLog;
pub use state_machine::RaftStore;
pub use tables::{ShardTransaction, ShardView};
pub use usage::Usage;
