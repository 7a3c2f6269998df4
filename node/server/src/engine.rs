//! What every call uses: the replicas, the database, the placement, the indexes, the encoder, the clock.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::RwLock;
use tokio::sync::Semaphore;
use waggle_config::runtime::clock::Clock;
use waggle_memory::id::{RequestId, TenantId};
use waggle_memory::meta::{KeyId, NodeId, Placement, ShardId};
use waggle_memory::rank::Tuning;
use waggle_memory::tables::typed::TenantRows;
use waggle_memory::tables::{Key, Row, ShardKey};
use waggle_memory::time::Millis;
use waggle_recall::cache::IndexCache;
use waggle_recall::index::TenantIndex;
use waggle_shard::{ShardHandle, Shards};
use waggle_store::{Database, RaftStore};

use crate::cluster::{Known, Peers};
use crate::embed::Embedder;
use crate::error::CallError;
use crate::indexing::RowSource;
use crate::rpc::TopicCache;

/// Sizes and times of a node's work.
#[derive(Clone, Debug)]
pub struct EngineOptions {
    /// Bytes that recall indexes may take, all tenants together.
    pub index_bytes_max: usize,
    /// Threads that embed.
    pub encoder_threads: usize,
    /// Longest time that a write waits for its vectors; past it the text is committed first.
    pub embed_wait_max: Duration,
    /// Longest time of one call.
    pub call_time_max: Duration,
    /// Reads that may run at once; more wait.
    pub reads_max: usize,
}

impl Default for EngineOptions {
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            index_bytes_max: 512 * 1024 * 1024,
            encoder_threads: cores,
            embed_wait_max: Duration::from_millis(50),
            call_time_max: Duration::from_secs(30),
            // Reads block a thread each on RocksDB and the index, and are short; more threads than this only switch.
            reads_max: cores.saturating_mul(4),
        }
    }
}

/// Shared by all calls.
pub(crate) struct Engine {
    pub(crate) node: NodeId,
    pub(crate) shards: Shards,
    pub(crate) storage: Arc<RaftStore>,
    pub(crate) database: Arc<Database>,
    pub(crate) placement: Arc<Known>,
    pub(crate) peers: Arc<Peers>,
    pub(crate) indexes: Arc<IndexCache>,
    pub(crate) embedder: Embedder,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) tuning: Tuning,
    pub(crate) topics: TopicCache,
    pub(crate) options: EngineOptions,
    pub(crate) reads: Arc<Semaphore>,
    /// Exports in progress: each holds a view of the tables, which keeps old rows on disk.
    pub(crate) exports: Arc<Semaphore>,
}

impl Engine {
    /// Takes a placement if it is newer than the one that is known. Blocks on a file.
    pub(crate) fn learn(&self, placement: &Placement) {
        match self.placement.learn(placement) {
            Ok(true) => tracing::debug!(version = placement.version, "learned a placement"),
            Ok(false) => {}
            // What is known counts; the file only saves the next start from asking.
            Err(error) => tracing::warn!(%error, "the placement was not kept"),
        }
    }

    pub(crate) fn shard(&self, shard: ShardId) -> Result<ShardHandle, CallError> {
        self.shards.get(shard).ok_or_else(|| {
            let placement = self.placement.load();
            CallError::wrong_shard(shard.0, placement.version)
        })
    }

    /// Runs a read on a blocking thread: RocksDB and index scans never run on the async threads.
    pub(crate) async fn blocking<T, F>(self: &Arc<Self>, read: F) -> Result<T, CallError>
    where
        T: Send + 'static,
        F: FnOnce(&Engine) -> Result<T, CallError> + Send + 'static,
    {
        let permit = Arc::clone(&self.reads).acquire_owned().await;
        let engine = Arc::clone(self);
        let done = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            read(&engine)
        });
        match done.await {
            Ok(result) => result,
            Err(failed) => Err(CallError::halted("run a read", &failed)),
        }
    }

    /// The rows of a tenant as they are now.
    pub(crate) fn with_rows<T>(
        &self,
        shard: ShardId,
        tenant: &TenantId,
        read: impl FnOnce(TenantRows<'_>) -> Result<T, CallError>,
    ) -> Result<T, CallError> {
        match self
            .database
            .read(shard, |tables| read(TenantRows::new(tables, tenant)))
        {
            Ok(result) => result,
            Err(fault) => Err(CallError::halted("read a tenant's rows", &fault)),
        }
    }

    /// The complete index of a tenant, loaded on first use. Blocks.
    pub(crate) fn index(&self, shard: ShardId, tenant: &TenantId) -> Result<Arc<RwLock<TenantIndex>>, CallError> {
        let source = RowSource::new(&self.database, shard);
        match self.indexes.load(tenant, &source) {
            Ok(handle) => Ok(handle.index),
            Err(fault) => Err(CallError::halted("load a recall index", &fault)),
        }
    }

    /// How a tenant's index stands, without loading it.
    pub(crate) fn index_status(&self, tenant: &TenantId) -> IndexStatus {
        match self.indexes.lookup(tenant) {
            None => IndexStatus {
                word: "not_loaded",
                bytes: 0,
                documents: 0,
            },
            Some(handle) => {
                let index = handle.index.read();
                let word = if handle.complete { "loaded" } else { "loading" };
                IndexStatus {
                    word,
                    bytes: index.resident_bytes(),
                    documents: index.len(),
                }
            }
        }
    }
}

/// How a tenant's index stands.
pub(crate) struct IndexStatus {
    pub(crate) word: &'static str,
    pub(crate) bytes: usize,
    pub(crate) documents: usize,
}

/// Tenants of the cluster.
pub(crate) fn tenants(engine: &Engine) -> Result<Vec<TenantId>, waggle_store::Fault> {
    engine.database.read(ShardId::META, |tables| {
        let Ok(first) = "0".parse() else { return Vec::new() };
        let from = Key::Shard(ShardKey::TenantInfo(first));
        let to = Key::Shard(ShardKey::ApiKey(KeyId(String::new())));
        let rows = tables.scan(&from, &to, usize::MAX);
        rows.into_iter()
            .filter_map(|(_, row)| {
                if let Row::TenantInfo(tenant) = row {
                    Some(tenant.id)
                } else {
                    None
                }
            })
            .collect()
    })
}

/// Whether a shard has request ids from before a moment.
pub(crate) fn requests_due(engine: &Engine, shard: ShardId, before: Millis) -> bool {
    let oldest = engine.database.read(shard, |tables| {
        let first: TenantId = "0".parse().ok()?;
        let at = |millis, tenant| Key::Shard(ShardKey::RequestAge(millis, tenant, RequestId(String::new())));
        let rows = tables.scan(&at(Millis(i64::MIN), first.clone()), &at(before, first), 1);
        Some(!rows.is_empty())
    });
    matches!(oldest, Ok(Some(true)))
}
