//! `waggle node`: stores memories, takes part in consensus, answers gateways and other nodes over mutual TLS.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tonic::service::InterceptorLayer;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::Server;
use waggle_config::NodeConfig;
use waggle_config::certificates::{Role, Subject};
use waggle_config::checked::{self, RaftConfig, RecallConfig};
use waggle_config::identity::{self, Identity};
use waggle_config::limits::{
    CALL_TIME_MAX, DRAIN_TIME_MAX, ENTRY_BYTES_MAX, PROPOSAL_BYTES_IN_FLIGHT_MAX, PROPOSALS_IN_FLIGHT_MAX,
};
use waggle_config::peer_tls::{self, PeerTls};
use waggle_config::runtime::clock::{Clock, System};
use waggle_config::runtime::tasks::Tasks;
use waggle_gateway::join_token::{self, Token};
use waggle_memory::meta::{NodeId, NodeInfo, NodeState};
use waggle_memory::time::Millis;
use waggle_node::{
    ClusterOrigin, Dial, EngineOptions, JoinError, JoinRequest, Node, NodeOptions, Settings, Start, StoreOptions,
};
use waggle_proto::wire::meta_service_client::MetaServiceClient;

use super::bootstrap::Bootstrap;
use super::dev::{self, RPC_TASK};
use super::dial::TlsDial;
use super::prepare::{self, Claimed, WhenNew};
use super::{channel, logging, node_admin, observe, shutdown};
use crate::commands;
use crate::failure::{self, Failure};

/// Longest time for handing shards over before the node ends.
const HAND_OVER_TIME_MAX: Duration = Duration::from_secs(5);
/// How long a new node asks to be let in.
const JOIN_TIME_MAX: Duration = Duration::from_secs(60);

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The configuration file.
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// Stop when stdin ends: for whoever starts this process and may be killed.
    #[arg(long, hide = true)]
    stop_with_stdin: bool,
    /// Go on without the acknowledged writes behind a damaged place of the log (data_damaged_log).
    #[arg(long)]
    accept_damaged_log: bool,
}

pub(crate) fn run(args: Args) -> Result<()> {
    dev::keep_files_private();
    let config = checked::node(&commands::config::load(&args.config))?;
    let clock: Arc<dyn Clock> = Arc::new(System::new());
    // Before anything is opened: without certificates there is no service.
    let tls = PeerTls::load(config.tls().clone(), Role::Node, Arc::clone(&clock))?;
    logging::start(config.log().filter(), config.log().format())?;
    dev::runtime()?.block_on(Box::pin(serve(&args, config, tls, clock)))
}

async fn serve(args: &Args, config: NodeConfig, tls: PeerTls, clock: Arc<dyn Clock>) -> Result<()> {
    let tasks = Tasks::new();
    shutdown::on_signals(&tasks)?;
    if args.stop_with_stdin {
        shutdown::on_end_of_stdin(&tasks)?;
    }
    let metrics = observe::start(&tasks)?;
    super::tls::watch(&tls, &tasks)?;
    let dial: Arc<dyn Dial> = Arc::new(TlsDial::new(tls.clone(), config.dial()));
    let (claimed, origin) = enter(&config, &tls, Arc::clone(&dial)).await?;
    tls.is_for(Subject {
        role: Role::Node,
        id: claimed.identity.node.0,
    })?;
    let place = Place {
        address: config.advertise().to_owned(),
        zone: config.zone().to_owned(),
        origin,
        dial,
    };
    let options = options(
        &claimed,
        store(&config, args.accept_damaged_log),
        place,
        config.raft(),
        config.recall(),
    )?;
    let listener = TcpListener::bind(config.listen())
        .await
        .with_context(|| format!("listen at {}", config.listen()))?;
    let node = Node::start(options, Arc::clone(&clock))
        .await
        .context("start the node")?;
    claimed.mark_started()?;
    let address = listener.local_addr().context("ask for the listening address")?;
    let probe = node.status_probe();
    let running = RunningNode::serve_tls(node, listener, &tls, &tasks);
    node_admin::serve(config.admin_listen(), probe, metrics, running.stop.clone(), &tasks).await?;
    tracing::info!(%address, node = %claimed.identity.node, cluster = %claimed.identity.cluster, "ready");
    tasks.stopping().cancelled().await;
    tokio::select! {
        ended = running.end(&tasks) => ended?,
        () = shutdown::second_signal() => {}
    }
    dev::ended_well(&tasks)
}

/// Bounds of the store, from the configuration.
pub(super) fn store(config: &NodeConfig, accept_damaged_log: bool) -> impl FnOnce(Start) -> StoreOptions + use<> {
    let store_bytes = usize::try_from(config.store_bytes_max()).unwrap_or(usize::MAX);
    let reserve = config.disk_reserve_bytes();
    move |start| StoreOptions {
        reserve_bytes: reserve,
        accept_damaged_log,
        ..StoreOptions::with_budget(start, store_bytes)
    }
}

/// The data directory, and how this node came into its cluster. One without an identity joins with its token, or is
/// refused: nothing forms itself from an empty directory.
async fn enter(config: &NodeConfig, tls: &PeerTls, dial: Arc<dyn Dial>) -> Result<(Claimed, ClusterOrigin)> {
    let node = NodeId(tls.subject().id);
    let Some(token_file) = config.join_token_file() else {
        let claimed = prepare::claim(config.data_dir(), WhenNew::Refuse)?;
        return known(claimed);
    };
    let locked = prepare::lock_root(config.data_dir())?;
    match locked.identity {
        Some(_) if locked.dir.started().exists() => {
            drop(locked);
            known(prepare::claim(config.data_dir(), WhenNew::Refuse)?)
        }
        // A join that did not end is begun again; the cluster recognises the directory.
        known_identity => {
            let text = identity::read_secret(token_file).context("read node.join_token_file")?;
            let token = Token::parse(&text)?;
            let request = JoinRequest {
                node: NodeInfo {
                    id: node,
                    address: config.advertise().to_owned(),
                    zone: config.zone().to_owned(),
                    state: NodeState::Active,
                    joined_at: Millis(0),
                    incarnation: prepare::incarnation(&locked.dir)?,
                },
                token: token.id.clone(),
                secret_hash: join_token::hash(&token.secret),
                contacts: token.contacts.clone(),
            };
            let placement = waggle_node::join(&request, dial, JOIN_TIME_MAX)
                .await
                .map_err(not_let_in)?;
            if placement.cluster != token.cluster {
                bail!(
                    "the token is of cluster {}, but cluster {} answered",
                    token.cluster,
                    placement.cluster
                );
            }
            tracing::info!(%node, cluster = %token.cluster, "joined");
            let claimed = match known_identity {
                Some(_) => {
                    drop(locked);
                    prepare::claim(config.data_dir(), WhenNew::Refuse)?
                }
                None => locked.create(Identity {
                    cluster: token.cluster,
                    node,
                })?,
            };
            Ok((claimed, ClusterOrigin::Joined(Box::new(placement))))
        }
    }
}

/// The page of the error says what a node that lost its directory does.
fn not_let_in(error: JoinError) -> anyhow::Error {
    let code = match &error {
        JoinError::Refused(_) => failure::CONFIGURATION,
        JoinError::Unreachable { .. } => failure::UNAVAILABLE,
    };
    Failure::new(code, error.to_string())
        .next("a number is used once: a node that lost its directory joins under a new number, with a certificate for that")
        .into()
}

fn known(claimed: Claimed) -> Result<(Claimed, ClusterOrigin)> {
    if claimed.is_new {
        return Err(Failure::new(
            failure::CONFIGURATION,
            format!("the first start in {} did not end", claimed.dir.root().display()),
        )
        .next("run `waggle cluster init` again, or set node.join_token_file again")
        .into());
    }
    Ok((claimed, ClusterOrigin::Known))
}

/// Secrets and the first operator of a new cluster. Gateways need copies of the two secrets.
pub(super) async fn init(claimed: &Claimed, node: &Node, clock: &dyn Clock) -> Result<()> {
    prepare::ensure_secrets(&claimed.dir)?;
    let pepper = identity::read_secret(&claimed.dir.pepper())?;
    let (client, incoming) = channel::in_memory();
    let (services, done) = (node.services(), CancellationToken::new());
    let server = Server::builder()
        .add_service(services.meta())
        .serve_with_incoming_shutdown(incoming, done.clone().cancelled_owned());
    let work = async {
        let meta = MetaServiceClient::new(client);
        let made = Bootstrap {
            meta,
            pepper: &pepper,
            clock,
        }
        .operator(&claimed.dir.operator_key(), "prod")
        .await;
        done.cancel();
        made
    };
    let (served, made) = tokio::join!(server, work);
    served.context("serve the first calls")?;
    made?;
    tracing::info!(key = %claimed.dir.operator_key().display(), "made the first operator's key");
    Ok(())
}

/// Where a node is among the others.
pub(super) struct Place {
    pub(super) address: String,
    pub(super) zone: String,
    pub(super) origin: ClusterOrigin,
    pub(super) dial: Arc<dyn Dial>,
}

/// What a node is started with.
pub(super) fn options(
    claimed: &Claimed,
    store: impl FnOnce(Start) -> StoreOptions,
    place: Place,
    raft: &RaftConfig,
    recall: &RecallConfig,
) -> Result<NodeOptions> {
    let identity = waggle_node::Identity {
        cluster: claimed.identity.cluster,
        node: claimed.identity.node,
    };
    let start = if claimed.has_store || !claimed.is_new {
        Start::Known(identity)
    } else {
        Start::Fresh(identity)
    };
    Ok(NodeOptions {
        data_dir: claimed.dir.store(),
        store: store(start),
        identity,
        cluster_dir: claimed.dir.cluster(),
        origin: place.origin,
        address: place.address,
        zone: place.zone,
        incarnation: claimed.incarnation,
        dial: place.dial,
        raft: Settings {
            election_timeout: (raft.election_timeout_min(), raft.election_timeout_max()),
            heartbeat_interval: raft.heartbeat_interval(),
            snapshot_after_entries: raft.snapshot_entries(),
            log_entries_kept: raft.kept_entries(),
            proposals_max: PROPOSALS_IN_FLIGHT_MAX,
            proposal_bytes_max: PROPOSAL_BYTES_IN_FLIGHT_MAX,
            command_bytes_max: ENTRY_BYTES_MAX,
            ..Settings::default()
        },
        engine: EngineOptions {
            index_bytes_max: usize::try_from(recall.index_bytes_max())
                .context("fit recall.index_bytes_max into this machine")?,
            embed_wait_max: recall.encoder_deferral_budget(),
            call_time_max: CALL_TIME_MAX,
            ..EngineOptions::default()
        },
    })
}

/// A node and the server in front of it.
pub(super) struct RunningNode {
    node: Node,
    /// Ends the server. Not the shutdown of the process: gateways in the same process drain first.
    stop: CancellationToken,
}

impl RunningNode {
    /// For a gateway of the same process.
    pub(super) fn serve_in_memory(node: Node, incoming: channel::Incoming, tasks: &Tasks) -> Self {
        let stop = CancellationToken::new();
        let services = node.services();
        let ended = stop.clone().cancelled_owned();
        tasks.spawn(RPC_TASK, "node services", async move {
            let server = Server::builder()
                .add_service(services.memory())
                .add_service(services.insight())
                .add_service(services.transfer())
                .add_service(services.transcripts())
                .add_service(services.history())
                .add_service(services.meta());
            if let Err(error) = server.serve_with_incoming_shutdown(incoming, ended).await {
                tracing::error!(%error, "the node's services ended");
            }
        });
        Self { node, stop }
    }

    /// For other processes: mutual TLS, and only for the roles that may call.
    fn serve_tls(node: Node, listener: TcpListener, tls: &PeerTls, tasks: &Tasks) -> Self {
        let stop = CancellationToken::new();
        let services = node.services();
        let ended = stop.clone().cancelled_owned();
        let incoming = tls.incoming(listener);
        let server = Server::builder()
            .http2_keepalive_interval(Some(Duration::from_secs(20)))
            .layer(InterceptorLayer::new(peer_tls::only(&[Role::Gateway, Role::Node])))
            .add_service(InterceptedService::new(
                services.cluster(),
                peer_tls::only(&[Role::Node]),
            ))
            .add_service(services.memory())
            .add_service(services.insight())
            .add_service(services.transfer())
            .add_service(services.transcripts())
            .add_service(services.history())
            .add_service(services.meta());
        tasks.spawn(RPC_TASK, "node services", async move {
            if let Err(error) = server.serve_with_incoming_shutdown(incoming, ended).await {
                tracing::error!(%error, "the node's services ended");
            }
        });
        Self { node, stop }
    }

    /// Hands leadership over, ends the server after its calls, then the node.
    pub(super) async fn end(self, tasks: &Tasks) -> Result<()> {
        match tokio::time::timeout(HAND_OVER_TIME_MAX, self.node.hand_over()).await {
            Ok(0) => {}
            Ok(stayed) => tracing::warn!(stayed, "shards that nobody else took over; they elect a leader later"),
            Err(_) => tracing::warn!("handing shards over took too long; they elect a leader later"),
        }
        self.node.end_streams();
        self.stop.cancel();
        if !tasks.finish(DRAIN_TIME_MAX).await {
            tracing::warn!("tasks still ran at the end of the drain time");
        }
        match self.node.shutdown(DRAIN_TIME_MAX).await {
            Ok(()) => Ok(()),
            Err(held) => bail!("stop the node: {held}"),
        }
    }
}
