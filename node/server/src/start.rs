//! Opening a node's data and starting what works on it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Semaphore;
use waggle_config::runtime::clock::Clock;
use waggle_config::runtime::tasks::Tasks;
use waggle_memory::command::Command;
use waggle_memory::id::Principal;
use waggle_memory::meta::{NodeInfo, NodeState, Placement, ShardId};
use waggle_memory::rank::Tuning;
use waggle_memory::tables::typed;
use waggle_memory::time::Millis;
use waggle_recall::cache::IndexCache;
use waggle_recall::encoder::{DIMENSIONS, Encoder, EncoderPool};
use waggle_shard::{Config, Member, Origin, Ports, Proposal, ReplicaConfig, Shards};
use waggle_store::{Database, RaftStore};

use crate::cluster::{GrpcWire, Hosted, HostedReplica, Incoming, Keeper, Known, Peers};
use crate::embed::Embedder;
use crate::engine::{Engine, EngineOptions};
use crate::indexing::IndexObserver;
use crate::node::{ClusterOrigin, NodeOptions, StartError};
use crate::rpc::TopicCache;

/// Exports at once.
const EXPORTS_MAX: usize = 4;
/// Texts that may wait for the encoder.
const ENCODER_QUEUE_MAX: usize = 4_096;
/// Longest time until a shard with one voter leads.
const ALONE_READY_MAX: Duration = Duration::from_secs(60);

/// A node's parts.
pub(crate) struct Started {
    pub(crate) engine: Arc<Engine>,
    pub(crate) observer: Arc<IndexObserver>,
    pub(crate) keeper: Keeper,
    pub(crate) streams: Tasks,
}

/// See [`crate::Node::start`].
pub(crate) async fn start(options: NodeOptions, clock: Arc<dyn Clock>) -> Result<Started, StartError> {
    let engine_options = options.engine.clone();
    let (data_dir, store) = (options.data_dir.clone(), options.store.clone());
    let opening = tokio::task::spawn_blocking(move || Database::open(&data_dir, &store));
    let (database, embedder) = tokio::join!(opening, start_encoder(&engine_options));
    let database = database.map_err(|join| StartError::Init(join.to_string()))??;
    let indexes = Arc::new(IndexCache::new(
        embedder.model(),
        DIMENSIONS,
        engine_options.index_bytes_max,
    ));
    let observer = Arc::new(IndexObserver::new(Arc::clone(&indexes), Arc::clone(&database)));

    let node = options.identity.node;
    let placement = placement_at_start(&options, &database, &*clock)?;
    let hosted = hosted_at_start(&options, &placement)?;
    let known = Arc::new(Known::new(placement.clone(), placement_file(&options.cluster_dir)));
    known
        .keep(&placement)
        .map_err(|error| StartError::Cluster(error.to_string()))?;
    let peers = Arc::new(Peers::new(node, Arc::clone(&options.dial)));
    peers.look_up_in(Arc::clone(&known));
    let streams = Tasks::new();

    let storage = RaftStore::start(Arc::clone(&database), Box::new(end_process))?;
    let ports = Ports {
        storage: Arc::clone(&storage),
        wire: Arc::new(GrpcWire::new(Arc::clone(&peers), streams.clone())) as _,
        observer: Arc::clone(&observer) as _,
        clock: Arc::new(StampClock(Arc::clone(&clock))) as _,
    };
    let config = Config {
        replicas: replicas_at_start(&options, &hosted),
        settings: options.raft.clone(),
    };
    let shards = Shards::start(config, ports.clone()).await?;
    let alone = shards.handles().iter().all(|handle| handle.status().voters.len() <= 1);
    let has_shards = !shards.handles().is_empty();
    if alone && has_shards {
        shards.wait_ready(ALONE_READY_MAX).await?;
    }
    if matches!(options.origin, ClusterOrigin::New { .. }) {
        init_cluster(&shards, &placement).await?;
    }
    let reads = Arc::new(Semaphore::new(engine_options.reads_max.max(1)));
    let engine = Arc::new(Engine {
        node,
        shards,
        storage,
        database,
        placement: known,
        peers,
        indexes,
        embedder,
        clock,
        tuning: Tuning::default(),
        topics: TopicCache::new(),
        options: engine_options,
        reads,
        exports: Arc::new(Semaphore::new(EXPORTS_MAX)),
    });
    let keeper = Keeper {
        engine: Arc::clone(&engine),
        ports,
        hosted,
        incoming: Arc::new(Incoming::new(options.cluster_dir.join("incoming"))),
        led_since: Mutex::default(),
        address: options.address,
        zone: options.zone,
    };
    Ok(Started {
        engine,
        observer,
        keeper,
        streams,
    })
}

fn placement_file(cluster_dir: &Path) -> PathBuf {
    cluster_dir.join("placement")
}

/// The newest placement that is to be had without asking anybody: that of the meta shard if a replica of it is here, or
/// the one that a former process kept.
fn placement_at_start(options: &NodeOptions, database: &Database, clock: &dyn Clock) -> Result<Placement, StartError> {
    let stored = database.read(ShardId::META, typed::placement)?;
    let kept = Known::read(&placement_file(&options.cluster_dir), options.identity.cluster);
    let newest = stored.into_iter().chain(kept).max_by_key(|placement| placement.version);
    match (newest, &options.origin) {
        (Some(placement), _) => Ok(placement),
        (None, ClusterOrigin::Joined(placement)) => Ok(Placement::clone(placement)),
        (
            None,
            ClusterOrigin::New {
                shard_count,
                replication,
            },
        ) => {
            let node = NodeInfo {
                id: options.identity.node,
                address: options.address.clone(),
                zone: options.zone.clone(),
                state: NodeState::Active,
                joined_at: clock.wall(),
                incarnation: options.incarnation,
            };
            Ok(Placement::initial(
                options.identity.cluster,
                node,
                *shard_count,
                *replication,
            ))
        }
        (None, ClusterOrigin::Known) => Err(StartError::Cluster(
            "no placement is here, but this node is not new; put the data directory back from a backup, or let a new node \
             join in its place"
                .to_owned(),
        )),
    }
}

fn hosted_at_start(options: &NodeOptions, placement: &Placement) -> Result<Hosted, StartError> {
    let file = options.cluster_dir.join("replicas");
    if let Some(hosted) = Hosted::open(file.clone()).map_err(StartError::Cluster)? {
        return Ok(hosted);
    }
    // The first start, or data from before this list was kept: then there was one node, which holds everything.
    let held = match options.origin {
        ClusterOrigin::Joined(_) => BTreeMap::new(),
        ClusterOrigin::New { .. } | ClusterOrigin::Known => placement
            .replicas_on(options.identity.node)
            .map(|(shard, replica)| {
                let entry = HostedReplica {
                    replica: replica.id,
                    joining: false,
                };
                (shard, entry)
            })
            .collect(),
    };
    Hosted::create(file, held).map_err(|error| StartError::Cluster(error.to_string()))
}

fn replicas_at_start(options: &NodeOptions, hosted: &Hosted) -> Vec<ReplicaConfig> {
    let is_new = matches!(options.origin, ClusterOrigin::New { .. });
    let replicas = hosted.all().into_iter();
    replicas
        .map(|(shard, entry)| ReplicaConfig {
            shard,
            replica: entry.replica,
            origin: if entry.joining {
                Origin::Joining
            } else if is_new {
                let member = Member::new(options.identity.node, options.address.clone());
                Origin::New {
                    members: BTreeMap::from([(entry.replica, member)]),
                }
            } else {
                Origin::Known
            },
        })
        .collect()
}

/// The first entry of a cluster; again it changes nothing.
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
