//! `waggle dev --nodes 3`: real processes on this machine, each with its own certificate and directory, made as an operator
//! would make them. For trying a cluster and for tests; everything lies in one directory.

mod files;
mod processes;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};
use tokio::time::Instant;
use waggle_config::certificates::Role;
use waggle_config::checked::TlsFiles;
use waggle_config::identity::DataDir;
use waggle_config::limits::RPC_BYTES_MAX;
use waggle_config::peer_tls::PeerTls;
use waggle_config::runtime::clock::{Clock, System};
use waggle_config::runtime::tasks::Tasks;
use waggle_memory::meta::NodeId;
use waggle_node::Dial as _;
use waggle_proto::wire::meta_service_client::MetaServiceClient;

use super::bootstrap::Bootstrap;
use super::dial::TlsDial;
use super::{dev, prepare, shutdown};
use crate::client::Client;
use crate::output::print;
use files::{Layout, Ports};
use processes::Processes;

/// Until every process answers and every shard has its replicas.
const READY_TIME_MAX: Duration = Duration::from_secs(120);
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// What is wanted.
pub(super) struct Wanted {
    pub(super) root: PathBuf,
    pub(super) listen: SocketAddr,
    pub(super) nodes: u64,
    pub(super) gateways: u64,
    pub(super) shards: u32,
    pub(super) json: bool,
}

pub(super) async fn serve(wanted: Wanted) -> Result<()> {
    let tasks = Tasks::new();
    shutdown::on_signals(&tasks)?;
    let clock: Arc<dyn Clock> = Arc::new(System::new());
    // One `waggle dev` for each directory; the nodes lock their own besides.
    let locked = prepare::lock_root(&wanted.root)?;
    let layout = Layout::new(locked.dir.root());
    let ports = files::prepare(&layout, &wanted, &*clock)?;
    let mut processes = Processes::new(&layout)?;
    let outcome = tokio::select! {
        ready = start(&wanted, &layout, &ports, &mut processes, Arc::clone(&clock)) => ready,
        () = async { tasks.stopping().cancelled().await } => Ok(()),
    };
    let outcome = match outcome {
        Ok(()) => processes.until_one_ends_or(tasks.stopping().cancelled_owned()).await,
        error => error,
    };
    processes.stop().await;
    outcome?;
    dev::ended_well(&tasks)
}

async fn start(
    wanted: &Wanted,
    layout: &Layout,
    ports: &Ports,
    processes: &mut Processes,
    clock: Arc<dyn Clock>,
) -> Result<()> {
    let first = DataDir::new(layout.node_dir(1));
    if !first.started().exists() {
        let shards = wanted.shards.to_string();
        let replication = if wanted.nodes >= 5 {
            "5"
        } else if wanted.nodes >= 3 {
            "3"
        } else {
            "1"
        };
        let config = layout.node_config(1);
        let config = config.to_str().context("a path that is not UTF-8")?;
        let words = [
            "cluster",
            "init",
            "--config",
            config,
            "--shards",
            &shards,
            "--replication",
            replication,
        ];
        processes.run_to_end(&words).await?;
    }
    // Nodes that are in the cluster already need each other for a quorum; new ones need a token from a running cluster.
    let joined: Vec<u64> = (1..=wanted.nodes)
        .filter(|node| DataDir::new(layout.node_dir(*node)).started().exists())
        .collect();
    for node in &joined {
        processes.start_node(*node)?;
    }
    for gateway in 1..=wanted.gateways {
        processes.start_gateway(gateway)?;
    }
    let admin = Client::for_admin(&format!("http://{}", ports.gateway_admin[0]), &first.operator_key())?;
    let deadline = Instant::now() + READY_TIME_MAX;
    answers(&admin, "/api/admin/cluster", processes, deadline).await?;
    for node in (1..=wanted.nodes).filter(|node| !joined.contains(node)) {
        let made = in_background(&admin, |admin| admin.post("/api/admin/join-tokens", &json!({}))).await?;
        let token = made["token"].as_str().context("a join token")?;
        files::write_token(layout, node, token)?;
        processes.start_node(node)?;
    }
    let cluster = complete(&admin, wanted, processes, deadline).await?;
    let key = developer_key(layout, &cluster, clock).await?;
    print(&announce(wanted, layout, ports, processes, &key)?)?;
    tracing::info!("ready");
    Ok(())
}

/// The client blocks; the processes are looked after meanwhile.
async fn in_background(admin: &Client, call: impl FnOnce(&Client) -> Result<Value> + Send + 'static) -> Result<Value> {
    let admin = admin.clone();
    tokio::task::spawn_blocking(move || call(&admin)).await?
}

async fn answers(admin: &Client, path: &'static str, processes: &mut Processes, deadline: Instant) -> Result<Value> {
    loop {
        let answer = in_background(admin, move |admin| admin.get(path)).await;
        match answer {
            Ok(value) => return Ok(value),
            Err(error) if Instant::now() >= deadline => return Err(error),
            Err(_) => {
                processes.none_ended()?;
                tokio::time::sleep(LOOK_EVERY).await;
            }
        }
    }
}

/// Waits until all nodes are there and every shard has a leader and its voters.
async fn complete(admin: &Client, wanted: &Wanted, processes: &mut Processes, deadline: Instant) -> Result<Value> {
    let voters = match wanted.nodes {
        0..3 => 1,
        3..5 => 3,
        _ => 5,
    };
    loop {
        let cluster = answers(admin, "/api/admin/cluster", processes, deadline).await?;
        let all =
            |list: &str, fits: &dyn Fn(&Value) -> bool| cluster[list].as_array().is_some_and(|l| l.iter().all(fits));
        let nodes = cluster["nodes"].as_array().map_or(0, Vec::len);
        let is_complete = u64::try_from(nodes).is_ok_and(|nodes| nodes >= wanted.nodes)
            && all("nodes", &|node| node["answers"] == true)
            && all("shards", &|shard| {
                shard["voters"].as_u64().is_some_and(|count| count >= voters)
            });
        if is_complete {
            return Ok(cluster);
        }
        if Instant::now() >= deadline {
            bail!(
                "the cluster is not complete after {} s: {cluster}",
                READY_TIME_MAX.as_secs()
            );
        }
        processes.none_ended()?;
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// The key of the tenant `dev`, made at the node that leads the meta shard.
async fn developer_key(layout: &Layout, cluster: &Value, clock: Arc<dyn Clock>) -> Result<String> {
    let list = |name: &str| cluster[name].as_array().cloned().unwrap_or_default();
    let leader = list("shards")
        .iter()
        .find(|shard| shard["shard"] == 0)
        .and_then(|shard| shard["leader"].as_u64())
        .context("the meta shard has no leader")?;
    let address = list("nodes")
        .iter()
        .find(|node| node["node"] == leader)
        .and_then(|node| node["address"].as_str().map(str::to_owned))
        .context("the address of the meta shard's leader")?;
    let TlsFiles { ca, certificate, key } = layout.tls(Role::Gateway, 1);
    let tls = PeerTls::load(TlsFiles { ca, certificate, key }, Role::Gateway, Arc::clone(&clock))?;
    let channel = TlsDial::new(tls, &[]).channel(NodeId(leader), &address)?;
    let pepper = waggle_config::identity::read_secret(&DataDir::new(layout.node_dir(1)).pepper())?;
    let mut bootstrap = Bootstrap {
        meta: MetaServiceClient::new(channel).max_decoding_message_size(RPC_BYTES_MAX),
        pepper: &pepper,
        clock: &*clock,
    };
    bootstrap.developer(&layout.dev_key(), dev::TENANT).await
}

fn announce(wanted: &Wanted, layout: &Layout, ports: &Ports, processes: &Processes, key: &str) -> Result<String> {
    let urls: Vec<String> = ports
        .gateway
        .iter()
        .map(|address| format!("http://{address}/mcp"))
        .collect();
    let admin_url = format!("http://{}", ports.gateway_admin[0]);
    let nodes: Vec<Value> = (1..=wanted.nodes)
        .zip(&ports.node)
        .map(|(node, address)| {
            json!({
                "id": node,
                "pid": processes.node_pid(node),
                "data_dir": layout.node_dir(node),
                "addr": address.to_string(),
                "config": layout.node_config(node),
            })
        })
        .collect();
    let operator_key = DataDir::new(layout.node_dir(1)).operator_key();
    if wanted.json {
        let fields = json!({
            "mcp_url": urls[0],
            "api_key": key,
            "tenant": dev::TENANT,
            "admin_url": admin_url,
            "operator_key_file": operator_key,
            "data_dir": layout.root(),
            "version": env!("CARGO_PKG_VERSION"),
            "gateways": urls,
            "gateway_pids": (1..=wanted.gateways).map(|gateway| processes.gateway_pid(gateway)).collect::<Vec<_>>(),
            "nodes": nodes,
        });
        return Ok(format!("{fields}\n"));
    }
    let program = dev::program_as_called();
    let admin = format!("--url {admin_url} --key-file {}", operator_key.display());
    Ok(format!(
        "waggle {version} is ready (dev: {nodes} nodes and {gateways} gateways as processes of this machine)\n\n  \
         MCP URLs   {urls}\n  key        {key}\n  tenant     {tenant}\n  admin      {admin_url}\n  data       {root}\n  \
         logs       {root}/logs\n\nLook at it\n  {program} nodes list {admin}\n  {program} shard list {admin}\n\n\
         Try what a lost node means\n  kill -9 {pid}    (node 2; start it again with: {program} node --config {config})\n\n\
         Ctrl-C ends all of it; the data stay.\n",
        version = env!("CARGO_PKG_VERSION"),
        nodes = wanted.nodes,
        gateways = wanted.gateways,
        urls = urls.join("\n             "),
        tenant = dev::TENANT,
        root = layout.root().display(),
        pid = processes.node_pid(2).unwrap_or(0),
        config = layout.node_config(2).display(),
    ))
}
