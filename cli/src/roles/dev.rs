//! `waggle dev`: node and gateway in one process, over the same services and messages that a cluster uses.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use tonic::transport::Channel;
use waggle_config::checked::{LogFormat, RaftConfig, RecallConfig};
use waggle_config::identity::{self, DataDir};
use waggle_config::keys;
use waggle_config::limits::{CallLimits, DRAIN_TIME_MAX, RPC_BYTES_MAX};
use waggle_config::runtime::clock::{Clock, System};
use waggle_config::runtime::tasks::{Kind, Reason, Tasks};
use waggle_gateway::{Connect, Gateway, GatewayOptions, Listen, Secret};
use waggle_node::{ClusterOrigin, NoPeers, Node, StoreOptions};
use waggle_proto::wire::meta_service_client::MetaServiceClient;

use super::banner::Ready;
use super::bootstrap::Bootstrap;
use super::dev_cluster::{self, Wanted};
use super::node::{self, Place, RunningNode};
use super::prepare::{self, Claimed, FIRST_NODE, WhenNew};
use super::{channel, logging, observe, shutdown};
use crate::context::{self, Context};
use crate::output::print;

pub(super) const TENANT: &str = "dev";

/// More than one, so that a laptop runs the same routing as a cluster; each costs about 200 KB resident.
const DATA_SHARDS: u32 = 4;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Where everything is kept. Default: ~/.local/share/waggle.
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Where agents connect; port 0 picks a free one.
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:7700")]
    listen: SocketAddr,
    /// Health, status, metrics, tenants and keys; loopback only. Default: 127.0.0.1:7701, or a free port when --listen
    /// has port 0.
    #[arg(long, value_name = "ADDR")]
    admin_listen: Option<SocketAddr>,
    /// A name that agents use in the URL, for a --listen that is not loopback. May be repeated.
    #[arg(long = "public-host", value_name = "HOST")]
    public_hosts: Vec<String>,
    /// A web page that may call it, as scheme://host:port. May be repeated.
    #[arg(long = "allow-origin", value_name = "ORIGIN")]
    origins: Vec<String>,
    /// Start a cluster of so many node processes on this machine instead of one process.
    #[arg(long, value_name = "NUMBER", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=9))]
    nodes: u64,
    /// With --nodes: how many gateway processes.
    #[arg(long, value_name = "NUMBER", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=9))]
    gateways: u64,
    /// With --nodes: data shards of a new cluster.
    #[arg(long, value_name = "NUMBER", default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=1024))]
    shards: u32,
    /// Print one line of JSON when ready, instead of text for people.
    #[arg(long)]
    json: bool,
    /// Keep the rate limits on for the key that is printed.
    #[arg(long)]
    limits: bool,
    /// Go on without the acknowledged writes behind a damaged place of the log (data_damaged_log).
    #[arg(long)]
    accept_damaged_log: bool,
    /// Serve what the conformance suite of MCP asks for.
    #[arg(long, hide = true)]
    conformance_fixtures: bool,
}

pub(crate) fn run(args: Args) -> Result<()> {
    keep_files_private();
    logging::start(keys::LOG_FILTER, LogFormat::Auto)?;
    if args.nodes == 1 && args.gateways == 1 {
        return runtime()?.block_on(Box::pin(serve(args)));
    }
    let root = args.data.clone().unwrap_or_else(|| {
        let alone = context::default_data_dir();
        alone.with_file_name("waggle-cluster")
    });
    let wanted = Wanted {
        root,
        listen: args.listen,
        nodes: args.nodes,
        gateways: args.gateways,
        shards: args.shards,
        json: args.json,
    };
    runtime()?.block_on(Box::pin(dev_cluster::serve(wanted)))
}

/// Whatever a server writes is for its own user, also in a directory that others may enter.
pub(super) fn keep_files_private() {
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077));
}

/// The runtime of a server.
pub(super) fn runtime() -> Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .thread_name("waggle")
        .build()
        .context("start the runtime")
}

async fn serve(args: Args) -> Result<()> {
    let tasks = Tasks::new();
    shutdown::on_signals(&tasks)?;
    let metrics = observe::start(&tasks)?;
    let clock: Arc<dyn Clock> = Arc::new(System::new());
    let claimed = claim(&args, &*clock)?;
    let pepper = identity::read_secret(&claimed.dir.pepper())?;
    let cluster_secret = identity::read_secret(&claimed.dir.cluster_secret())?;

    let options = node::options(
        &claimed,
        |start| StoreOptions {
            accept_damaged_log: args.accept_damaged_log,
            ..StoreOptions::development(start)
        },
        Place {
            address: String::new(),
            zone: String::new(),
            origin: if claimed.is_new {
                ClusterOrigin::New {
                    shard_count: DATA_SHARDS,
                    replication: 1,
                }
            } else {
                ClusterOrigin::Known
            },
            dial: Arc::new(NoPeers),
        },
        &RaftConfig::standard(),
        &RecallConfig::standard(),
    )?;
    let node = Node::start(options, Arc::clone(&clock))
        .await
        .context("start the node")?;
    let (channel, incoming) = channel::in_memory();
    let running = RunningNode::serve_in_memory(node, incoming, &tasks);

    let api_key = first_keys(&claimed, channel.clone(), &pepper, &*clock).await?;
    claimed.mark_started()?;
    let gateway = Gateway::bind(GatewayOptions {
        public: Listen::plain(args.listen),
        admin: Some(Listen::plain(admin_address(&args))),
        public_hosts: args.public_hosts,
        browser_origins: args.origins,
        environment: "dev".to_owned(),
        pepper: Secret::new(pepper),
        cluster_secret: Secret::new(cluster_secret),
        nodes: vec![(claimed.identity.node, channel)],
        connect: Connect::nowhere(),
        limits: CallLimits::standard(),
        limits_for_all: args.limits,
        clock,
        metrics: Some(metrics),
        spool_dir: claimed.dir.root().join("uploads"),
        drain_time: DRAIN_TIME_MAX,
        conformance: args.conformance_fixtures,
    })
    .await?;

    let mcp_url = format!("http://{}/mcp", gateway.public_address());
    let admin_url = gateway
        .admin_address()
        .map(|address| format!("http://{address}"))
        .unwrap_or_default();
    save_context(&claimed.dir, &mcp_url, &admin_url, gateway.public_address().port());
    let data_dir = claimed.dir.root();
    let program = program_as_called();
    let ready = Ready {
        mcp_url: &mcp_url,
        admin_url: &admin_url,
        api_key: &api_key,
        tenant: TENANT,
        data_dir,
        limits: args.limits,
        program: &program,
    };
    print(&if args.json { ready.json() } else { ready.text() })?;
    tracing::info!(mcp_url, admin_url, "ready");

    gateway.serve(tasks.stopping()).await?;
    // The gateway is empty; nobody calls the node any more.
    tokio::select! {
        ended = running.end(&tasks) => ended?,
        () = shutdown::second_signal() => {}
    }
    ended_well(&tasks)
}

/// A process that was not asked to stop failed.
pub(super) fn ended_well(tasks: &Tasks) -> Result<()> {
    match tasks.reason() {
        None | Some(Reason::Asked) => {
            tracing::info!("ended");
            Ok(())
        }
        Some(reason) => Err(anyhow::anyhow!("{reason}")),
    }
}

fn claim(args: &Args, clock: &dyn Clock) -> Result<Claimed> {
    let root = args.data.clone().unwrap_or_else(context::default_data_dir);
    let claimed = prepare::claim(&root, WhenNew::Create(FIRST_NODE))?;
    prepare::ensure_secrets(&claimed.dir)?;
    prepare::ensure_certificates(&claimed.dir, claimed.identity.node, clock)?;
    prepare::ensure_config_files(&claimed.dir, claimed.identity.node)?;
    Ok(claimed)
}

fn admin_address(args: &Args) -> SocketAddr {
    let port = if args.listen.port() == 0 { 0 } else { 7701 };
    args.admin_listen
        .unwrap_or_else(|| SocketAddr::from(([127, 0, 0, 1], port)))
}

async fn first_keys(claimed: &Claimed, channel: Channel, pepper: &str, clock: &dyn Clock) -> Result<String> {
    let meta = MetaServiceClient::new(channel).max_decoding_message_size(RPC_BYTES_MAX);
    let mut bootstrap = Bootstrap { meta, pepper, clock };
    bootstrap.operator(&claimed.dir.operator_key(), "dev").await?;
    bootstrap.developer(&claimed.dir.dev_key(), TENANT).await
}

/// Client commands work without it, with flags; so it is no reason to fail.
fn save_context(dir: &DataDir, mcp_url: &str, admin_url: &str, port: u16) {
    let context = Context {
        mcp_url: mcp_url.to_owned(),
        admin_url: admin_url.to_owned(),
        tenant: TENANT.to_owned(),
        key_file: dir.dev_key(),
        operator_key_file: dir.operator_key(),
        data_dir: dir.root().to_owned(),
    };
    match context.save_for(port) {
        Ok(name) if name == context::DEV => {}
        Ok(name) => tracing::warn!(
            "another `waggle dev` runs, and client commands go to that one; for this one use --context {name}, or set \
             WAGGLE_CONTEXT={name}"
        ),
        Err(error) => tracing::warn!("no context for client commands; they need --url and --key-file: {error:#}"),
    }
}

/// Serving in the process owns its tasks; see [`Kind`].
pub(super) const RPC_TASK: Kind = Kind::Listener;

/// So that the printed commands can be pasted: the binary of a fresh build is in no PATH.
pub(super) fn program_as_called() -> String {
    std::env::args()
        .next()
        .filter(|program| !program.contains(char::is_whitespace))
        .unwrap_or_else(|| "waggle".to_owned())
}
