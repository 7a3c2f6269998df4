//! `waggle node`: stores memories, takes part in consensus, answers gateways and other nodes over mutual TLS.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tonic::service::InterceptorLayer;
use tonic::transport::Server;
use waggle_config::NodeConfig;
use waggle_config::certificates::{Role, Subject};
use waggle_config::checked::{self, RaftConfig, RecallConfig};
use waggle_config::identity;
use waggle_config::limits::{
    CALL_TIME_MAX, DRAIN_TIME_MAX, ENTRY_BYTES_MAX, PROPOSAL_BYTES_IN_FLIGHT_MAX, PROPOSALS_IN_FLIGHT_MAX,
};
use waggle_config::peer_tls::{self, PeerTls};
use waggle_config::runtime::clock::{Clock, System};
use waggle_config::runtime::tasks::Tasks;
use waggle_node::{EngineOptions, Node, NodeOptions, Settings, Start, StoreOptions};
use waggle_proto::wire::meta_service_client::MetaServiceClient;

use super::bootstrap::Bootstrap;
use super::dev::{self, RPC_TASK};
use super::prepare::{self, Claimed, WhenNew};
use super::{channel, logging, node_admin, observe, shutdown};
use crate::commands;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The configuration file.
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// Make a new cluster of one node in a data directory that has no identity yet. Once only.
    #[arg(long)]
    init: bool,
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
    let metrics = observe::start(&tasks)?;
    let when_new = if args.init { WhenNew::Create } else { WhenNew::Refuse };
    let claimed = prepare::claim(config.data_dir(), when_new)?;
    tls.is_for(Subject {
        role: Role::Node,
        id: claimed.identity.node.0,
    })?;
    super::tls::watch(&tls, &tasks)?;
    let store_bytes = usize::try_from(config.store_bytes_max()).unwrap_or(usize::MAX);
    let reserve = config.disk_reserve_bytes();
    let store = |start| StoreOptions {
        reserve_bytes: reserve,
        accept_damaged_log: args.accept_damaged_log,
        ..StoreOptions::with_budget(start, store_bytes)
    };
    let options = options(&claimed, store, config.shard_count(), config.raft(), config.recall())?;
    let listener = TcpListener::bind(config.listen())
        .await
        .with_context(|| format!("listen at {}", config.listen()))?;
    let node = Node::start(options, Arc::clone(&clock))
        .await
        .context("start the node")?;
    if args.init {
        init(&claimed, &node, &*clock).await?;
    }
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

/// Secrets and the first operator of a new cluster. Gateways need copies of the two secrets.
async fn init(claimed: &Claimed, node: &Node, clock: &dyn Clock) -> Result<()> {
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

/// What a node is started with.
pub(super) fn options(
    claimed: &Claimed,
    store: impl FnOnce(Start) -> StoreOptions,
    shard_count: u32,
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
        shard_count,
        first_start: claimed.is_new,
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
            .http2_keepalive_interval(Some(std::time::Duration::from_secs(20)))
            .layer(InterceptorLayer::new(peer_tls::only(&[Role::Gateway, Role::Node])))
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

    /// Ends the server after its calls, then the node.
    pub(super) async fn end(self, tasks: &Tasks) -> Result<()> {
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
