//! Starting and stopping a node.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use waggle_config::runtime::clock::Clock;
use waggle_config::runtime::tasks::{Reason, Tasks};
use waggle_memory::id::TenantId;
use waggle_memory::meta::{Placement, ShardId};
use waggle_memory::tables::typed;
use waggle_proto::wire::cluster_service_server::ClusterServiceServer;
use waggle_proto::wire::history_service_server::HistoryServiceServer;
use waggle_proto::wire::insight_service_server::{InsightService, InsightServiceServer};
use waggle_proto::wire::memory_service_server::MemoryServiceServer;
use waggle_proto::wire::meta_service_server::MetaServiceServer;
use waggle_proto::wire::transcript_service_server::TranscriptServiceServer;
use waggle_proto::wire::transfer_service_server::TransferServiceServer;
use waggle_shard::Settings;
use waggle_store::{Identity, OpenError, StoreOptions};

use crate::background;
use crate::cluster::{self, Dial, Incoming, PEER_BYTES_MAX};
use crate::engine::{self, Engine, EngineOptions};
use crate::rpc::{ClusterCalls, HistoryCalls, InsightCalls, MemoryCalls, MetaCalls, TranscriptCalls, TransferCalls};
use crate::start::{self, Started};
use crate::status::{self, NodeStatus};

/// Largest gRPC message: the largest call is a turn of 2 MiB, the largest answer 200 memories and 200 turns.
const MESSAGE_BYTES_MAX: usize = 32 * 1024 * 1024;
/// How often a node that ends looks whether its last calls have let go of it.
const LET_GO_POLL: Duration = Duration::from_millis(10);
/// Tenants announced to the task of late vectors and not yet looked at.
const ANNOUNCED_MAX: usize = 1_024;

/// What a node is started with.
#[derive(Clone)]
pub struct NodeOptions {
    /// Where it keeps everything.
    pub data_dir: PathBuf,
    /// Bounds of the store and the expected identity.
    pub store: StoreOptions,
    /// Whose data it is.
    pub identity: Identity,
    /// Where it keeps what it knows of the cluster.
    pub cluster_dir: PathBuf,
    /// How it came into the cluster.
    pub origin: ClusterOrigin,
    /// Where others reach it, host:port; empty in a cluster of one process.
    pub address: String,
    /// What fails together with it; may be empty.
    pub zone: String,
    /// Drawn when its data directory was made.
    pub incarnation: [u8; 16],
    /// The way to other nodes.
    pub dial: Arc<dyn Dial>,
    /// Settings of consensus.
    pub raft: Settings,
    /// Sizes and times.
    pub engine: EngineOptions,
}

impl fmt::Debug for NodeOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NodeOptions")
            .field("identity", &self.identity)
            .field("data_dir", &self.data_dir)
            .finish_non_exhaustive()
    }
}

/// How a node came into its cluster. Only a node that was here before may have replicas, and then it must have them.
#[derive(Clone, Debug)]
pub enum ClusterOrigin {
    /// The cluster begins with this node, and no start of it was ever completed.
    New {
        /// Data shards.
        shard_count: u32,
        /// Replicas that each shard is to have as soon as there are nodes for them.
        replication: u32,
    },
    /// It has just joined a cluster, and no start of it was ever completed.
    Joined(Box<Placement>),
    /// It was here before.
    Known,
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
    /// What this node keeps of the cluster.
    #[error("what this node knows of its cluster: {0}")]
    Cluster(String),
    /// The first entry of the cluster was not accepted.
    #[error("initialise the cluster: {0}")]
    Init(String),
}

/// A running node.
pub struct Node {
    engine: Arc<Engine>,
    incoming: Arc<Incoming>,
    stop: CancellationToken,
    tasks: Vec<JoinHandle<()>>,
    /// Streams to other nodes.
    streams: Tasks,
}

/// The gRPC services of a node.
#[derive(Clone)]
pub struct NodeServices {
    memory: MemoryCalls,
    insight: InsightCalls,
    history: HistoryCalls,
    meta: MetaCalls,
    transfer: TransferCalls,
    transcripts: TranscriptCalls,
    cluster: ClusterCalls,
}

impl NodeServices {
    /// ClusterService with our message limits: for nodes only.
    pub fn cluster(
        &self,
    ) -> ClusterServiceServer<impl waggle_proto::wire::cluster_service_server::ClusterService + use<>> {
        ClusterServiceServer::new(self.cluster.clone())
            .max_decoding_message_size(PEER_BYTES_MAX)
            .max_encoding_message_size(PEER_BYTES_MAX)
    }

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

    /// InsightService with our message limits.
    pub fn insight(&self) -> InsightServiceServer<impl InsightService + use<>> {
        InsightServiceServer::new(self.insight.clone())
            .max_decoding_message_size(MESSAGE_BYTES_MAX)
            .max_encoding_message_size(MESSAGE_BYTES_MAX)
    }

    /// MetaService with our message limits.
    pub fn meta(&self) -> MetaServiceServer<impl waggle_proto::wire::meta_service_server::MetaService + use<>> {
        MetaServiceServer::new(self.meta.clone())
            .max_decoding_message_size(MESSAGE_BYTES_MAX)
            .max_encoding_message_size(MESSAGE_BYTES_MAX)
    }

    /// TranscriptService with our message limits.
    pub fn transcripts(
        &self,
    ) -> TranscriptServiceServer<impl waggle_proto::wire::transcript_service_server::TranscriptService + use<>> {
        TranscriptServiceServer::new(self.transcripts.clone())
            .max_decoding_message_size(MESSAGE_BYTES_MAX)
            .max_encoding_message_size(MESSAGE_BYTES_MAX)
    }
}

impl Node {
    /// Opens the data and starts the replicas. With one voter, waits until every shard leads and everything acknowledged is
    /// applied; with several the others may be away, and [`Self::status`] says what is missing.
    pub async fn start(options: NodeOptions, clock: Arc<dyn Clock>) -> Result<Self, StartError> {
        let Started {
            engine,
            observer,
            keeper,
            streams,
        } = start::start(options, clock).await?;
        let stop = CancellationToken::new();
        let (announce, announced) = mpsc::channel(ANNOUNCED_MAX);
        observer.announce_late_vectors(announce);
        let waiting = waiting_at_start(&engine)?;
        let incoming = Arc::clone(&keeper.incoming);
        let tasks = vec![
            owned(background::late_vectors(
                Arc::clone(&engine),
                announced,
                waiting,
                stop.clone(),
            )),
            owned(background::expire_requests(Arc::clone(&engine), stop.clone())),
            owned(background::gauges(Arc::clone(&engine), stop.clone())),
            owned(cluster::keep(Arc::new(keeper), stop.clone())),
        ];
        Ok(Self {
            engine,
            incoming,
            stop,
            tasks,
            streams,
        })
    }

    /// Hands every shard that this node leads to another node, as far as there is one. Gives how many stayed.
    pub async fn hand_over(&self) -> usize {
        cluster::hand_over_all(&self.engine).await
    }

    /// Ends streams of other processes that would last as long as their connections. The server can be stopped after it.
    pub fn end_streams(&self) {
        self.engine.ending.cancel();
    }

    /// The gRPC services.
    pub fn services(&self) -> NodeServices {
        NodeServices {
            memory: MemoryCalls {
                engine: Arc::clone(&self.engine),
            },
            insight: InsightCalls {
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
            transcripts: TranscriptCalls {
                engine: Arc::clone(&self.engine),
            },
            cluster: ClusterCalls {
                engine: Arc::clone(&self.engine),
                incoming: Arc::clone(&self.incoming),
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
        self.streams.stop_because(Reason::Asked);
        if !self.streams.finish(time_max).await {
            return Err("a stream to another node did not end".to_owned());
        }
        self.engine.shards.halt(time_max).await;
        let deadline = tokio::time::Instant::now() + time_max;
        while Arc::strong_count(&self.engine) > 1 && tokio::time::Instant::now() < deadline {
            tokio::time::sleep(LET_GO_POLL).await;
        }
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
