//! `waggle gateway`: MCP and REST in front of a node in another process.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, Result};
use waggle_config::GatewayConfig;
use waggle_config::certificates::{Role, Subject};
use waggle_config::checked;
use waggle_config::identity;
use waggle_config::limits::DRAIN_TIME_MAX;
use waggle_config::peer_tls::PeerTls;
use waggle_config::runtime::clock::{Clock, System};
use waggle_config::runtime::tasks::Tasks;
use waggle_gateway::{Gateway, GatewayOptions, Listen, Secret};
use waggle_memory::meta::NodeId;

use super::{dev, logging, observe, shutdown};
use crate::commands;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The configuration file.
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
}

pub(crate) fn run(args: Args) -> Result<()> {
    let config = checked::gateway(&commands::config::load(&args.config))?;
    let clock: Arc<dyn Clock> = Arc::new(System::new());
    let tls = PeerTls::load(config.tls().clone(), Role::Gateway, Arc::clone(&clock))?;
    let pepper = secret(config.pepper_file())?;
    let cluster_secret = secret(config.cluster_secret_file())?;
    logging::start(config.log().filter(), config.log().format())?;
    dev::runtime()?.block_on(Box::pin(serve(config, tls, pepper, cluster_secret, clock)))
}

async fn serve(
    config: GatewayConfig,
    tls: PeerTls,
    pepper: Secret,
    cluster_secret: Secret,
    clock: Arc<dyn Clock>,
) -> Result<()> {
    let tasks = Tasks::new();
    shutdown::on_signals(&tasks)?;
    let metrics = observe::start(&tasks)?;
    super::tls::watch(&tls, &tasks)?;
    let node = NodeId(config.node_id());
    let channel = tls
        .channel(
            Subject {
                role: Role::Node,
                id: node.0,
            },
            config.node(),
        )
        .with_context(|| format!("understand gateway.node '{}'", config.node()))?;
    let gateway = Gateway::bind(GatewayOptions {
        public: Listen::plain(config.listen()),
        admin: Some(Listen::plain(config.admin_listen())),
        public_hosts: config.public_hosts().to_vec(),
        browser_origins: config.allowed_origins().to_vec(),
        environment: config.environment().to_owned(),
        pepper,
        cluster_secret,
        nodes: vec![(node, channel)],
        limits: config.limits().clone(),
        limits_for_all: false,
        clock,
        metrics: Some(metrics),
        // Gateways of one machine listen at different ports.
        spool_dir: std::env::temp_dir().join(format!("waggle-uploads-{}", config.listen().port())),
        drain_time: DRAIN_TIME_MAX,
        conformance: false,
    })
    .await?;
    tracing::info!(address = %gateway.public_address(), node = config.node(), "ready");
    tokio::select! {
        served = gateway.serve(tasks.stopping()) => served?,
        () = second_signal_after(&tasks) => {}
    }
    tasks.finish(DRAIN_TIME_MAX).await;
    dev::ended_well(&tasks)
}

async fn second_signal_after(tasks: &Tasks) {
    tasks.stopping().cancelled().await;
    shutdown::second_signal().await;
}

fn secret(path: &Path) -> Result<Secret> {
    Ok(Secret::new(identity::read_secret(path)?))
}
