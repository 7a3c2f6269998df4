//! Where everything of a local cluster lies, and the files that its processes are started with.

use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use waggle_config::certificates::{self, Role, Subject};
use waggle_config::checked::{self, TlsFiles};
use waggle_config::identity::{self, Access};
use waggle_config::raw::Raw;
use waggle_config::runtime::clock::Clock;

use super::Wanted;

/// Names inside the directory.
pub(super) struct Layout {
    root: PathBuf,
}

/// Where processes listen.
pub(super) struct Ports {
    pub(super) node: Vec<SocketAddr>,
    pub(super) gateway: Vec<SocketAddr>,
    pub(super) gateway_admin: Vec<SocketAddr>,
}

impl Layout {
    pub(super) fn new(root: &Path) -> Self {
        Self { root: root.to_owned() }
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    pub(super) fn node_dir(&self, node: u64) -> PathBuf {
        self.root.join(format!("node-{node}"))
    }

    pub(super) fn node_config(&self, node: u64) -> PathBuf {
        self.root.join(format!("config/node-{node}.toml"))
    }

    pub(super) fn gateway_config(&self, gateway: u64) -> PathBuf {
        self.root.join(format!("config/gateway-{gateway}.toml"))
    }

    fn token(&self, node: u64) -> PathBuf {
        self.root.join(format!("config/join-token-{node}"))
    }

    pub(super) fn log(&self, process: &str) -> PathBuf {
        self.root.join(format!("logs/{process}.log"))
    }

    pub(super) fn dev_key(&self) -> PathBuf {
        self.root.join("dev-key")
    }

    fn certificates(&self) -> PathBuf {
        self.root.join("certificates")
    }

    pub(super) fn tls(&self, role: Role, id: u64) -> TlsFiles {
        certificates::files(&self.certificates(), Subject { role, id })
    }
}

/// Makes what is missing. A node keeps the port that it had: the others know it by that.
pub(super) fn prepare(layout: &Layout, wanted: &Wanted, clock: &dyn Clock) -> Result<Ports> {
    fs::create_dir_all(layout.root.join("logs"))?;
    let dir = layout.certificates();
    if !dir.join("ca.pem").exists() {
        certificates::create_ca(&dir, clock.wall())?;
    }
    let nodes = (1..=wanted.nodes).map(|id| Subject { role: Role::Node, id });
    let gateways = (1..=wanted.gateways).map(|id| Subject {
        role: Role::Gateway,
        id,
    });
    for subject in nodes.chain(gateways) {
        certificates::ensure(&dir, subject, clock.wall())?;
    }
    let mut free = FreePorts::default();
    let mut node_ports = Vec::new();
    for node in 1..=wanted.nodes {
        let path = layout.node_config(node);
        if !path.exists() {
            let text = node_file(layout, node, free.take()?, free.take()?);
            identity::write(&path, text.as_bytes(), Access::Everyone)?;
        }
        node_ports.push(checked::node(&Raw::load(&path))?.listen());
    }
    let (mut gateway, mut gateway_admin) = (Vec::new(), Vec::new());
    for number in 1..=wanted.gateways {
        let listen = if number == 1 && wanted.listen.port() != 0 {
            wanted.listen
        } else {
            free.take()?
        };
        let admin = free.take()?;
        let text = gateway_file(layout, number, listen, admin, &node_ports);
        identity::write(&layout.gateway_config(number), text.as_bytes(), Access::Everyone)?;
        gateway.push(listen);
        gateway_admin.push(admin);
    }
    Ok(Ports {
        node: node_ports,
        gateway,
        gateway_admin,
    })
}

pub(super) fn write_token(layout: &Layout, node: u64, token: &str) -> Result<()> {
    Ok(identity::write(&layout.token(node), token.as_bytes(), Access::Owner)?)
}

/// Ports that were free a moment ago; held until all are known, so that no two are the same.
#[derive(Default)]
struct FreePorts(Vec<TcpListener>);

impl FreePorts {
    fn take(&mut self) -> Result<SocketAddr> {
        let listener = TcpListener::bind("127.0.0.1:0").context("find a free port")?;
        let address = listener.local_addr().context("ask for a free port")?;
        self.0.push(listener);
        Ok(address)
    }
}

fn node_file(layout: &Layout, node: u64, listen: SocketAddr, admin: SocketAddr) -> String {
    let token = layout.token(node);
    let join = if node == 1 {
        String::new()
    } else {
        format!("join_token_file = {:?}\n", token.display().to_string())
    };
    format!(
        "# Written by `waggle dev --nodes`.\n\n[node]\ndata_dir = {:?}\nlisten = \"{listen}\"\nadmin_listen = \"{admin}\"\n\
         store_bytes_max = \"64MiB\"\ndisk_reserve_bytes = \"256MiB\"\n{join}\n{}",
        layout.node_dir(node).display().to_string(),
        tls_section(&layout.tls(Role::Node, node)),
    )
}

fn gateway_file(layout: &Layout, number: u64, listen: SocketAddr, admin: SocketAddr, nodes: &[SocketAddr]) -> String {
    let nodes: Vec<String> = (1..)
        .zip(nodes)
        .map(|(id, address): (u64, _)| format!("\"{id}@{address}\""))
        .collect();
    let secrets = layout.node_dir(1).join("secrets");
    format!(
        "# Written by `waggle dev --nodes`.\n\n[gateway]\nlisten = \"{listen}\"\nadmin_listen = \"{admin}\"\n\
         environment = \"dev\"\nnodes = [{}]\npepper_file = {:?}\ncluster_secret_file = {:?}\n\n{}",
        nodes.join(", "),
        secrets.join("pepper").display().to_string(),
        secrets.join("cluster-secret").display().to_string(),
        tls_section(&layout.tls(Role::Gateway, number)),
    )
}

fn tls_section(files: &TlsFiles) -> String {
    format!(
        "[tls]\nca_file = {:?}\ncertificate_file = {:?}\nkey_file = {:?}\n",
        files.ca.display().to_string(),
        files.certificate.display().to_string(),
        files.key.display().to_string(),
    )
}
