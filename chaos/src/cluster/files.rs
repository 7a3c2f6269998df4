//! What an operator would write: a configuration file for each process. Paths start at the directory of the file.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::dice::Dice;

/// Below the ports that the system gives to outgoing connections: nobody takes one while its process is dead.
const PORTS: (u16, u16) = (20_000, 32_000);

/// Loopback ports that are free now.
pub(crate) struct Ports {
    next: u16,
}

impl Ports {
    pub(crate) fn new() -> Self {
        // Runs beside each other begin at different places.
        let mut dice = Dice::new(u64::from(std::process::id()));
        let from = dice.between(u64::from(PORTS.0), u64::from(PORTS.1) - 1);
        Self {
            next: u16::try_from(from).unwrap_or(PORTS.0),
        }
    }

    pub(crate) fn take(&mut self) -> Result<SocketAddr> {
        for _ in PORTS.0..PORTS.1 {
            let port = self.next;
            self.next = if port + 1 >= PORTS.1 { PORTS.0 } else { port + 1 };
            if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
                return Ok((Ipv4Addr::LOCALHOST, port).into());
            }
        }
        bail!("no port between {} and {} is free", PORTS.0, PORTS.1)
    }
}

pub(crate) struct NodeFile<'a> {
    pub(crate) id: u64,
    pub(crate) listen: SocketAddr,
    pub(crate) admin: SocketAddr,
    /// Where the others are, for this node.
    pub(crate) dial: &'a [(u64, SocketAddr)],
}

pub(crate) fn write_node(root: &Path, node: &NodeFile<'_>) -> Result<()> {
    let NodeFile {
        id,
        listen,
        admin,
        dial,
    } = node;
    // The first node makes the cluster, the others are let in.
    let joins = match id {
        1 => String::new(),
        _ => format!("join_token_file = \"join-token-{id}\"\n"),
    };
    let dial = list(dial);
    let text = format!(
        r#"[node]
data_dir = "node-{id}/data"
listen = "{listen}"
admin_listen = "{admin}"
zone = "zone-{id}"
dial = [{dial}]
{joins}store_bytes_max = "64MiB"
disk_reserve_bytes = "64MiB"

[raft]
snapshot_entries = 1000
kept_entries = 200

[recall]
index_bytes_max = "64MiB"

[tls]
ca_file = "certificates/ca.pem"
certificate_file = "certificates/node-{id}.pem"
key_file = "certificates/node-{id}.key"

[log]
format = "json"
"#
    );
    write(root, &format!("node-{id}.toml"), &text)
}

pub(crate) struct GatewayFile<'a> {
    pub(crate) id: u64,
    pub(crate) listen: SocketAddr,
    pub(crate) admin: SocketAddr,
    pub(crate) nodes: &'a [(u64, SocketAddr)],
}

pub(crate) fn write_gateway(root: &Path, gateway: &GatewayFile<'_>) -> Result<()> {
    let GatewayFile {
        id,
        listen,
        admin,
        nodes,
    } = gateway;
    let nodes = list(nodes);
    let text = format!(
        r#"[gateway]
listen = "{listen}"
admin_listen = "{admin}"
environment = "chaos"
nodes = [{nodes}]
pepper_file = "secrets/pepper"
cluster_secret_file = "secrets/cluster-secret"

[tls]
ca_file = "certificates/ca.pem"
certificate_file = "certificates/gateway-{id}.pem"
key_file = "certificates/gateway-{id}.key"

[limits]
reads_per_minute = 10000000
writes_per_minute = 10000000
concurrent_calls_max = 1000
call_time_default = "6s"

[log]
format = "json"
"#
    );
    write(root, &format!("gateway-{id}.toml"), &text)
}

fn list(nodes: &[(u64, SocketAddr)]) -> String {
    let entries: Vec<String> = nodes
        .iter()
        .map(|(id, address)| format!("\"{id}@{address}\""))
        .collect();
    entries.join(", ")
}

fn write(root: &Path, name: &str, text: &str) -> Result<()> {
    let path = root.join(name);
    fs::write(&path, text).with_context(|| format!("write {}", path.display()))
}

/// Readable for its owner only, or nobody would take it.
pub(crate) fn write_secret(path: &Path, text: &str) -> Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    fs::write(path, format!("{text}\n")).with_context(|| format!("write {}", path.display()))?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).context("close the file to others")
}
