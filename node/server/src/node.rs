//! Starting and stopping a node.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use waggle_config::runtime::clock::Clock;
use waggle_memory::command::Command;
use waggle_memory::id::{Principal, TenantId};
use waggle_memory::meta::{Placement, ShardId};
use waggle_memory::rank::Tuning;
use waggle_memory::tables::typed;
use waggle_memory::time::Millis;
use waggle_proto::wire::history_service_server::HistoryServiceServer;
use waggle_proto::wire::memory_service_server::MemoryServiceServer;
use waggle_proto::wire::meta_service_server::MetaServiceServer;
use waggle_proto::wire::transfer_service_server::TransferServiceServer;
use waggle_recall::cache::IndexCache;
use waggle_recall::encoder::{DIMENSIONS, Encoder, EncoderPool};
use waggle_shard::{Config, Member, NoRemote, Origin, Ports, Proposal, ReplicaConfig, Settings, Shards};
use waggle_store::{Database, Identity, OpenError, RaftStore, StoreOptions};

use crate::background;
use crate::embed::Embedder;
use crate::engine::{self, Engine, EngineOptions};
use crate::indexing::IndexObserver;
use crate::rpc::{HistoryCalls, MemoryCalls, MetaCalls, TransferCalls};
use crate::status::{self, NodeStatus};

/// Largest gRPC message: the largest call is a turn of 2 MiB, the largest answer 200 memories and 200 turns.
const MESSAGE_BYTES_MAX: usize = 32 * 1024 * 1024;
/// Exports at once.
const EXPORTS_MAX: usize = 4;
/// Texts that may wait for the encoder.
const ENCODER_QUEUE_MAX: usize = 4_096;
/// Tenants announced to the task of late vectors and not yet looked at.
const ANNOUNCED_MAX: usize = 1_024;

/// What a node is started with.
#[derive(Clone, Debug)]
pub struct NodeOptions {
    /// Where it keeps everything.
    pub data_dir: PathBuf,
    /// Bounds of the store and the expected identity.
    pub store: StoreOptions,
    /// Whose data it is.
    pub identity: Identity,
    /// Data shards to create when the cluster is new.
    pub shard_count: u32,
    /// No start of this node was ever completed: shards that are empty begin. Later an empty shard is lost data.
    pub first_start: bool,
    /// Settings of consensus.
    pub raft: Settings,
    /// Sizes and times.
    pub engine: EngineOptions,
}

/// Why a node did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The data directory.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The shards.
    #[error(transparent)]
    Shards(#[from] waggle_shard::StartError),
    /// Stored rows cannot be read.
    #[error("read the state at start: {0}")]
    Fault(#[from] waggle_store::Fault),
    /// The first entry of the cluster was not accepted.
    #[error("initialise the cluster: {0}")]
    Init(String),
}

/// A running node.
pub struct Node {
    engine: Arc<Engine>,
    stop: CancellationToken,
    tasks: Vec<JoinHandle<()>>,
}

/// The gRPC services of a node.
#[derive(Clone)]
pub struct NodeServices {
    memory: MemoryCalls,
    history: HistoryCalls,
    meta: MetaCalls,
    transfer: TransferCalls,
}

impl NodeServices {
    /// TransferService with our message limits.
    pub fn transfer(
        &self,
    ) -> TransferServiceServer<impl waggle_proto::wire::transfer_service_server::TransferService + use<>> {
        TransferServiceServer::new(self.transfer.clone())
            .max_decoding_message_size(MESSAGE_BYTES_MAX)
            .max_encoding_message_size(MESSAGE_BYTES_MAX)
    }

    /// MemoryService with our message limits.
    pub fn memory(&self) -> MemoryServiceServer<impl waggle_proto::wire::memory_service_server::MemoryService + use<>> {
        MemoryServiceServer::new(self.memory.clone())
            .max_decoding_message_size(MESSAGE_BYTES_MAX)
            .max_encoding_message_size(MESSAGE_BYTES_MAX)
    }

    /// HistoryService with our message limits.
    pub fn history(
        &self,
    ) -> HistoryServiceServer<impl waggle_proto::wire::history_service_server::HistoryService + use<>> {
        HistoryServiceServer::new(self.history.clone())
            .max_decoding_message_size(MESSAGE_BYTES_MAX)
            .max_encoding_message_size(MESSAGE_BYTES_MAX)
    }

    /// MetaService with our message limits.
    pub fn meta(&self) -> MetaServiceServer<impl waggle_proto::wire::meta_service_server::MetaService + use<>> {
        MetaServiceServer::new(self.meta.clone())
            .max_decoding_message_size(MESSAGE_BYTES_MAX)
            .max_encoding_message_size(MESSAGE_BYTES_MAX)
    }
}

impl Node {
    /// Opens the data, starts the replicas, waits until every shard has a leader and everything acknowledged is applied.
    pub async fn start(options: NodeOptions, clock: Arc<dyn Clock>) -> Result<Self, StartError> {
        let engine = start_engine(options, clock).await?;
        let stop = CancellationToken::new();
        let (engine, observer) = engine;
        let (announce, announced) = mpsc::channel(ANNOUNCED_MAX);
        observer.announce_late_vectors(announce);
        let waiting = waiting_at_start(&engine)?;
        let tasks = vec![
            owned(background::late_vectors(
                Arc::clone(&engine),
                announced,
                waiting,
                stop.clone(),
            )),
            owned(background::expire_requests(Arc::clone(&engine), stop.clone())),
            owned(background::gauges(Arc::clone(&engine), stop.clone())),
        ];
        Ok(Self { engine, stop, tasks })
    }

    /// The gRPC services.
    pub fn services(&self) -> NodeServices {
        NodeServices {
            memory: MemoryCalls {
                engine: Arc::clone(&self.engine),
            },
            history: HistoryCalls {
                engine: Arc::clone(&self.engine),
            },
            meta: MetaCalls {
                engine: Arc::clone(&self.engine),
            },
            transfer: TransferCalls {
                engine: Arc::clone(&self.engine),
            },
        }
    }

    /// How it stands.
    pub async fn status(&self) -> NodeStatus {
        let engine = Arc::clone(&self.engine);
        match tokio::task::spawn_blocking(move || status::of(&engine)).await {
            Ok(status) => status,
            Err(_) => status::of(&self.engine),
        }
    }

    /// The placement that it serves.
    pub fn placement(&self) -> Placement {
        Placement::clone(&self.engine.placement.load())
    }

    /// A way to ask for the status without holding the node.
    pub fn status_probe(&self) -> impl Fn() -> NodeStatus + Clone + Send + Sync + 'static + use<> {
        let engine = Arc::clone(&self.engine);
        move || status::of(&engine)
    }

    /// Stops background work, then consensus; logs are flushed by then. All gRPC servers must have ended before: whoever
    /// still holds a service keeps the database open. Gives who held it up, if anybody did.
    pub async fn shutdown(self, time_max: Duration) -> Result<(), String> {
        self.stop.cancel();
        for task in self.tasks {
            if tokio::time::timeout(time_max, task).await.is_err() {
                return Err("a background task did not end".to_owned());
            }
        }
        self.engine.embedder.shutdown();
        match Arc::try_unwrap(self.engine) {
            Ok(engine) => {
                let Engine { shards, storage, .. } = engine;
                shards.shutdown(time_max).await.map_err(|late| late.to_string())?;
                tokio::task::spawn_blocking(move || storage.close())
                    .await
                    .map_err(|failed| failed.to_string())
            }
            Err(shared) => {
                let held = Arc::strong_count(&shared);
                Err(format!(
                    "{} calls or listeners still use the node",
                    held.saturating_sub(1)
                ))
            }
        }
    }
}

/// Starts a task that [`Node`] owns: it is stopped and waited for in [`Node::shutdown`].
#[expect(
    clippy::disallowed_methods,
    reason = "the node keeps the handle, and ends the task before itself (I-41)"
)]
fn owned(task: impl Future<Output = ()> + Send + 'static) -> JoinHandle<()> {
    tokio::spawn(task)
}

async fn start_engine(
    options: NodeOptions,
    clock: Arc<dyn Clock>,
) -> Result<(Arc<Engine>, Arc<IndexObserver>), StartError> {
    let NodeOptions {
        data_dir,
        store,
        identity,
        shard_count,
        first_start,
        raft,
        engine: engine_options,
    } = options;
    let opening = tokio::task::spawn_blocking(move || Database::open(&data_dir, &store));
    let (database, embedder) = tokio::join!(opening, start_encoder(&engine_options));
    let database = database.map_err(|join| StartError::Init(join.to_string()))??;
    let indexes = Arc::new(IndexCache::new(
        embedder.model(),
        DIMENSIONS,
        engine_options.index_bytes_max,
    ));
    let observer = Arc::new(IndexObserver::new(Arc::clone(&indexes), Arc::clone(&database)));

    let placement = match database.read(ShardId::META, typed::placement)? {
        Some(placement) => placement,
        // Nothing is stored yet: the first start, or one that ended before its first entry was applied.
        None => Placement::initial(identity.cluster, identity.node, shard_count),
    };
    let members = BTreeMap::from([(
        identity.node.0,
        Member {
            node: identity.node.0,
            address: String::new(),
        },
    )]);
    let hosted = placement
        .shards
        .iter()
        .filter(|(_, nodes)| nodes.contains(&identity.node))
        .map(|(shard, _)| *shard);
    let replicas = std::iter::once(ShardId::META)
        .chain(hosted)
        .map(|shard| ReplicaConfig {
            shard,
            // One node: the replica of every shard has the number of the node. More nodes take numbers from the meta
            // shard's log.
            replica: identity.node.0,
            origin: if first_start {
                Origin::New {
                    members: members.clone(),
                }
            } else {
                Origin::Known
            },
        })
        .collect();
    let storage = RaftStore::start(Arc::clone(&database), Box::new(end_process))?;
    let ports = Ports {
        storage: Arc::clone(&storage),
        wire: Arc::new(NoRemote),
        observer: Arc::clone(&observer) as _,
        clock: Arc::new(StampClock(Arc::clone(&clock))),
    };
    let shards = Shards::start(
        Config {
            replicas,
            settings: raft,
        },
        ports,
    )
    .await?;
    shards.wait_ready(Duration::from_secs(60)).await?;
    init_cluster(&shards, &placement).await?;
    let reads = Arc::new(Semaphore::new(engine_options.reads_max.max(1)));
    let engine = Engine {
        node: identity.node,
        shards,
        storage,
        database,
        placement: ArcSwap::from_pointee(placement),
        indexes,
        embedder,
        clock,
        tuning: Tuning::default(),
        options: engine_options,
        reads,
        exports: Arc::new(Semaphore::new(EXPORTS_MAX)),
    };
    Ok((Arc::new(engine), observer))
}

/// The first entry of a cluster; on every later start it changes nothing.
async fn init_cluster(shards: &Shards, placement: &Placement) -> Result<(), StartError> {
    let Some(meta) = shards.get(ShardId::META) else {
        return Err(StartError::Init(
            "this node holds no replica of the meta shard".to_owned(),
        ));
    };
    let proposal = Proposal {
        principal: Principal("system".to_owned()),
        request: None,
        command: Command::InitCluster(placement.clone()),
    };
    let proposed = meta
        .propose(proposal, Duration::from_secs(30))
        .await
        .map_err(|error| StartError::Init(error.to_string()))?;
    match proposed.outcome {
        waggle_memory::outcome::Outcome::Rejected(rejection) => Err(StartError::Init(rejection.to_string())),
        _ => Ok(()),
    }
}

/// Without a usable model the node starts all the same and says "lexical only"; nothing is ever embedded with noise.
async fn start_encoder(options: &EngineOptions) -> Embedder {
    let (threads, wait_max) = (options.encoder_threads, options.embed_wait_max);
    let loaded = tokio::task::spawn_blocking(Encoder::embedded).await;
    match loaded {
        Ok(Ok(encoder)) => {
            let (model, kernel) = (encoder.model_id().to_owned(), encoder.kernel().to_string());
            tracing::info!(model, kernel, threads, "encoder ready");
            Embedder::new(
                EncoderPool::start(Arc::new(encoder), threads, ENCODER_QUEUE_MAX),
                model,
                kernel,
                wait_max,
            )
        }
        Ok(Err(error)) => {
            tracing::error!(%error, "no embedding model: recall works by words only");
            Embedder::lexical_only()
        }
        Err(error) => {
            tracing::error!(%error, "loading the embedding model failed: recall works by words only");
            Embedder::lexical_only()
        }
    }
}

/// Tenants with items that a former process left without a vector.
fn waiting_at_start(engine: &Engine) -> Result<Vec<(ShardId, TenantId)>, StartError> {
    let mut waiting = Vec::new();
    for tenant in engine::tenants(engine)? {
        let Some(shard) = engine.placement.load().shard_of(&tenant) else {
            continue;
        };
        let count = engine.database.read(shard, |tables| {
            typed::TenantRows::new(tables, &tenant).state().awaiting_vectors
        })?;
        if count > 0 {
            waiting.push((shard, tenant));
        }
    }
    Ok(waiting)
}

/// After a failed synced write nobody knows what is on the disk: going on could lose what was acknowledged.
fn end_process(fault: &waggle_store::Fault) {
    tracing::error!(%fault, "a synced write failed; the process ends, and the next start replays what is on the disk");
    std::process::abort();
}

/// Wall time for stamps, from the clock of the node.
struct StampClock(Arc<dyn Clock>);

impl waggle_shard::Clock for StampClock {
    fn now(&self) -> Millis {
        self.0.wall()
    }
}
