//! Starts and stops the replicas of a node.
//!
//! A shard with one voter elects itself at once: nobody else could win, so no timeout is waited for. openraft would do
//! the same at its first tick, one to two ticks (40 to 80 ms) later; `trigger().elect` saves that. Taking the office
//! back without a vote (`enable_leader_restore`) would be faster by one synced write, but a restarted leader could then
//! serve a state from before the crash.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::thread::JoinHandle;
use std::time::Duration;

use futures::future::join_all;
use openraft::RaftNetworkFactory;
use openraft::storage::RaftLogStorage;
use openraft::type_config::async_runtime::watch::WatchReceiver;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout, timeout_at};
use tracing::Instrument;
use waggle_memory::meta::ShardId;

use crate::error::{Fault, ShutdownTimeout, StartError};
use crate::handle::{Consensus, Inner, ShardHandle};
use crate::machine::{Machine, Services};
use crate::network::Network;
use crate::ports::{ApplyObserver, Clock, StateStore, Storage, Wire};
use crate::propose::{Admission, HybridClock};
use crate::settings::Settings;
use crate::telemetry;
use crate::types::{Member, ReplicaId};

const READY_POLL: Duration = Duration::from_millis(20);

/// Whether a replica may be empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The shard is new: if nothing is stored yet, it begins with these members. All of them must be given the same.
    New {
        /// The first voters.
        members: BTreeMap<ReplicaId, Member>,
    },
    /// The replica was here before: finding nothing is an error, because a member that forgot what it acknowledged
    /// must not vote again.
    Known,
    /// The replica joins a shard that exists: the leader sends what there is.
    Joining,
}

/// One replica of this node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplicaConfig {
    /// The shard.
    pub shard: ShardId,
    /// Our replica of it.
    pub replica: ReplicaId,
    /// Whether it may be empty.
    pub origin: Origin,
}

/// All replicas of this node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The replicas.
    pub replicas: Vec<ReplicaConfig>,
    /// Settings of consensus.
    pub settings: Settings,
}

/// What a node gives its shards.
pub struct Ports<S> {
    /// Log and state.
    pub storage: Arc<S>,
    /// The network between nodes.
    pub wire: Arc<dyn Wire>,
    /// Derived indexes.
    pub observer: Arc<dyn ApplyObserver>,
    /// Wall time for stamps.
    pub clock: Arc<dyn Clock>,
}

impl<S> Clone for Ports<S> {
    fn clone(&self) -> Self {
        Self {
            storage: Arc::clone(&self.storage),
            wire: Arc::clone(&self.wire),
            observer: Arc::clone(&self.observer),
            clock: Arc::clone(&self.clock),
        }
    }
}

/// The running replicas of a node. Which they are changes while it runs: [`Self::add`], [`Self::remove`].
pub struct Shards {
    handles: Arc<RwLock<BTreeMap<ShardId, ShardHandle>>>,
    /// Ends with this.
    sampler: JoinSet<()>,
    services: Services,
    settings: Arc<Settings>,
    apply_thread: JoinHandle<()>,
}

type Handles = BTreeMap<ShardId, ShardHandle>;

/// A map of handles is whole whoever panicked beside it.
fn reading(handles: &RwLock<Handles>) -> RwLockReadGuard<'_, Handles> {
    handles.read().unwrap_or_else(PoisonError::into_inner)
}

fn writing(handles: &RwLock<Handles>) -> RwLockWriteGuard<'_, Handles> {
    handles.write().unwrap_or_else(PoisonError::into_inner)
}

impl Shards {
    /// Opens and starts all replicas, or none. Returns before leaders are elected: see [`Self::wait_ready`].
    pub async fn start<S: Storage>(config: Config, ports: Ports<S>) -> Result<Self, StartError> {
        let (services, apply_thread) = Services::start(Arc::clone(&ports.observer))?;
        let settings = Arc::new(config.settings);
        let starting = config
            .replicas
            .into_iter()
            .map(|replica| start_replica(replica, &settings, &ports, &services));
        let (mut handles, mut failure) = (BTreeMap::new(), None);
        for started in join_all(starting).await {
            match started {
                Ok(handle) => {
                    handles.insert(handle.shard(), handle);
                }
                Err(error) => failure = failure.or(Some(error)),
            }
        }
        let span = tracing::info_span!("shard_sampler");
        let mut sampler = JoinSet::new();
        let handles = Arc::new(RwLock::new(handles));
        let sampled = Arc::clone(&handles);
        let all = move || reading(&sampled).values().cloned().collect();
        sampler.spawn(telemetry::sample(all).instrument(span));
        let shards = Self {
            handles,
            sampler,
            services,
            settings,
            apply_thread,
        };
        match failure {
            None => Ok(shards),
            Some(error) => {
                // The first failure is what the operator needs to know, not who is slow to stop because of it.
                let _ = shards.shutdown(Duration::from_secs(5)).await;
                Err(error)
            }
        }
    }

    /// The replica of a shard, if this node holds one.
    pub fn get(&self, shard: ShardId) -> Option<ShardHandle> {
        reading(&self.handles).get(&shard).cloned()
    }

    /// All replicas by shard.
    pub fn handles(&self) -> Vec<ShardHandle> {
        reading(&self.handles).values().cloned().collect()
    }

    /// Opens and starts one more replica. One that runs already is a success.
    pub async fn add<S: Storage>(&self, replica: ReplicaConfig, ports: &Ports<S>) -> Result<(), StartError> {
        if self.get(replica.shard).is_some() {
            return Ok(());
        }
        let handle = start_replica(replica, &self.settings, ports, &self.services).await?;
        writing(&self.handles).insert(handle.shard(), handle);
        Ok(())
    }

    /// Stops a replica; its data stay. One that does not run is a success.
    pub async fn remove(&self, shard: ShardId, within: Duration) -> Result<(), ShutdownTimeout> {
        let Some(handle) = writing(&self.handles).remove(&shard) else {
            return Ok(());
        };
        handle.close();
        match timeout(within, handle.raft().shutdown()).await {
            Ok(_) => Ok(()),
            Err(_) => Err(ShutdownTimeout {
                held_up_by: vec![shard.to_string()],
            }),
        }
    }

    /// Waits until every shard has a leader, and, where that is this node, until it has applied all that was ever
    /// acknowledged.
    pub async fn wait_ready(&self, within: Duration) -> Result<(), StartError> {
        let deadline = Instant::now() + within;
        let waiting = self.handles().into_iter().map(|handle| async move {
            timeout_at(deadline, has_leader(&handle))
                .await
                .map_err(|_| StartError::NotReady {
                    shard: handle.shard().to_string(),
                    after: within,
                })?
        });
        join_all(waiting).await.into_iter().collect()
    }

    /// Stops consensus of all replicas, so that whoever waits for an answer of theirs gets one: a leader without a quorum
    /// would keep callers waiting for as long as they are willing to.
    pub async fn halt(&self, within: Duration) {
        let handles = self.handles();
        handles.iter().for_each(ShardHandle::close);
        // Who is late is told of by `shutdown`.
        join_all(handles.iter().map(|handle| timeout(within, handle.raft().shutdown()))).await;
    }

    /// Refuses new proposals, lets consensus finish what it has begun, stops everything. Logs are flushed by then; the
    /// store is closed by its owner afterwards.
    pub async fn shutdown(self, within: Duration) -> Result<(), ShutdownTimeout> {
        let deadline = Instant::now() + within;
        let handles = self.handles();
        handles.iter().for_each(ShardHandle::close);
        drop(self.sampler);
        let stopping = handles.iter().map(|handle| async move {
            timeout_at(deadline, handle.raft().shutdown())
                .await
                .err()
                .map(|_| handle.shard().to_string())
        });
        let mut held_up_by: Vec<String> = join_all(stopping).await.into_iter().flatten().collect();
        // State machines drop their way to the apply thread as they end; ours is the last.
        drop((self.handles, handles, self.services));
        let thread = self.apply_thread;
        let joined = tokio::task::spawn_blocking(move || thread.join());
        if timeout_at(deadline, joined).await.is_err() {
            held_up_by.push("the apply thread".to_owned());
        }
        if held_up_by.is_empty() {
            Ok(())
        } else {
            Err(ShutdownTimeout { held_up_by })
        }
    }
}

async fn start_replica<S: Storage>(
    config: ReplicaConfig,
    settings: &Arc<Settings>,
    ports: &Ports<S>,
    services: &Services,
) -> Result<ShardHandle, StartError> {
    let ReplicaConfig { shard, replica, origin } = config;
    let (log, state, machine) = open(shard, Arc::clone(&ports.storage), services.clone()).await?;
    let consensus_error = |why: String| StartError::Consensus {
        shard: shard.to_string(),
        why,
    };

    let network = Network {
        shard,
        from: replica,
        wire: Arc::clone(&ports.wire),
    };
    let raft_config = Arc::new(settings.config(shard.to_string())?);
    let raft = build(replica, raft_config, network, log, machine)
        .await
        .map_err(&consensus_error)?;
    let empty = !raft
        .is_initialized()
        .await
        .map_err(|fatal| consensus_error(fatal.to_string()))?;
    match (empty, origin) {
        (true, Origin::New { members }) => {
            raft.initialize(members)
                .await
                .map_err(|error| consensus_error(error.to_string()))?;
        }
        (true, Origin::Known) => {
            stop(&raft).await;
            return Err(StartError::ReplicaMissing {
                shard: shard.to_string(),
            });
        }
        (true, Origin::Joining) => {}
        // What a joining replica has received so far may not name it yet.
        (false, Origin::Joining) => {}
        (false, _) => {
            if !is_member(&raft, replica).await.map_err(&consensus_error)? {
                stop(&raft).await;
                return Err(StartError::NotAMember {
                    shard: shard.to_string(),
                    replica,
                });
            }
        }
    }
    elect_single_voter(&raft, replica).await.map_err(&consensus_error)?;

    Ok(ShardHandle::new(Inner {
        shard,
        replica,
        raft,
        state,
        admission: Arc::new(Admission::new(Arc::clone(settings))),
        stamps: HybridClock::default(),
        clock: Arc::clone(&ports.clock),
        closing: AtomicBool::new(false),
    }))
}

async fn open<S: Storage>(
    shard: ShardId,
    storage: Arc<S>,
    services: Services,
) -> Result<(S::Log, Arc<dyn StateStore>, Machine), StartError> {
    let opening = tokio::task::spawn_blocking(move || {
        // State first: it finishes an interrupted installation, which the log is then checked against.
        let state = storage.open_state(shard)?;
        let log = storage.open_log(shard)?;
        let machine = Machine::open(shard, Arc::clone(&state), services)?;
        Ok((log, state, machine))
    });
    let opened: Result<_, Fault> = match opening.await {
        Ok(opened) => opened,
        Err(error) => Err(Fault::new(
            "shard_open_panicked",
            format!("opening panicked: {error}; report this as a bug"),
        )),
    };
    opened.map_err(|fault| StartError::Storage {
        shard: shard.to_string(),
        fault,
    })
}

async fn build<N, L>(
    replica: ReplicaId,
    config: Arc<openraft::Config>,
    network: N,
    log: L,
    machine: Machine,
) -> Result<Consensus, String>
where
    N: RaftNetworkFactory<crate::types::Types>,
    N::Network: openraft::network::NetSnapshot<crate::types::Types, SnapshotData = crate::ports::SnapshotFiles>,
    L: RaftLogStorage<crate::types::Types>,
{
    Consensus::new(replica, config, network, log, machine)
        .await
        .map_err(|fatal| fatal.to_string())
}

async fn is_member(raft: &Consensus, replica: ReplicaId) -> Result<bool, String> {
    raft.with_raft_state(move |state| state.membership_state.effective().get_node(&replica).is_some())
        .await
        .map_err(|fatal| fatal.to_string())
}

async fn elect_single_voter(raft: &Consensus, replica: ReplicaId) -> Result<(), String> {
    let voters: Vec<ReplicaId> = raft
        .with_raft_state(|state| state.membership_state.effective().voter_ids().collect())
        .await
        .map_err(|fatal| fatal.to_string())?;
    if voters != [replica] {
        return Ok(());
    }
    raft.trigger().elect(false).await.map_err(|fatal| fatal.to_string())
}

async fn stop(raft: &Consensus) {
    // It fails only if openraft's own task panicked, and then there is nothing to stop.
    let _ = raft.shutdown().await;
}

async fn has_leader(handle: &ShardHandle) -> Result<(), StartError> {
    let mut metrics = handle.raft().metrics();
    loop {
        let (leader, halted) = {
            let now = metrics.borrow_watched();
            (
                now.current_leader,
                now.running_state.as_ref().err().map(ToString::to_string),
            )
        };
        if let Some(why) = halted {
            return Err(StartError::Consensus {
                shard: handle.shard().to_string(),
                why,
            });
        }
        match leader {
            Some(leader) if leader != handle.status().replica => return Ok(()),
            // A read proves the quorum, and that the entries of earlier terms are applied.
            Some(_) if handle.linearizable_read(Duration::from_secs(1)).await.is_ok() => return Ok(()),
            _ => {}
        }
        // Looks again without news too: a read that came too early has failed without changing anything.
        if let Ok(Err(_)) = timeout(READY_POLL, metrics.changed()).await {
            let why = "it stopped while starting".to_owned();
            return Err(StartError::Consensus {
                shard: handle.shard().to_string(),
                why,
            });
        }
    }
}
