//! A cluster of real processes on loopback, set up with the commands and files that an operator would use.
//!
//! Every process reaches every other through a [`Proxy`] of its own, so that a wire can be cut in one direction and for
//! one pair only. Everything lies in one directory: configuration, certificates, data and logs.

mod files;
mod mount;
mod process;
mod told;

use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::dice::Dice;
use crate::proxy::{Counted, Proxy, Wire};
use files::{GatewayFile, NodeFile, Ports};
pub use mount::Mount;
use process::PAUSE;
pub use process::{Process, run, run_with};
pub use told::Replica;

/// From the start of a process until it answers.
const READY_MAX: Duration = Duration::from_secs(60);
/// Until every shard has all its voters.
const REPLICATED_MAX: Duration = Duration::from_secs(120);
/// One command of the operator.
const COMMAND_MAX: Duration = Duration::from_secs(70);
pub const STOP_MAX: Duration = Duration::from_secs(40);
const LOOK_MAX: Duration = Duration::from_secs(2);

/// How big a cluster is to be.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Shape {
    pub nodes: u64,
    pub gateways: u64,
    pub shards: u32,
    pub tenants: u32,
    /// A bug that the nodes are started with, where the binary has bugs planted.
    #[serde(skip)]
    pub bug: Option<&'static str>,
    /// The node whose data lie on a file system of this many bytes of their own, so that it can be filled.
    pub small_disk: Option<(u64, u64)>,
}

/// One end of a wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Peer {
    Node(u64),
    Gateway(u64),
}

/// A node or gateway, and where it listens.
pub struct Member {
    pub process: Process,
    pub listen: SocketAddr,
    pub admin: SocketAddr,
}

/// A tenant and the key that opens it.
#[derive(Clone, Debug)]
pub struct Tenant {
    pub id: String,
    pub key: String,
}

pub struct Cluster {
    pub shape: Shape,
    pub root: PathBuf,
    pub nodes: BTreeMap<u64, Member>,
    pub gateways: BTreeMap<u64, Member>,
    pub tenants: Vec<Tenant>,
    binary: PathBuf,
    wires: BTreeMap<(Peer, Peer), Proxy>,
    http: reqwest::Client,
    /// A mounted directory; unmounted at the end.
    mount: Option<Mount>,
}

impl Cluster {
    /// Makes certificates and files, starts everything, and waits until every shard has all its replicas.
    pub async fn start(binary: &Path, root: &Path, shape: Shape, seed: u64) -> Result<Self> {
        let root = std::path::absolute(root)?;
        fs::create_dir_all(root.join("logs")).with_context(|| format!("make {}", root.display()))?;
        let binary = std::path::absolute(binary)?;
        let mut cluster = Self {
            shape,
            root,
            nodes: BTreeMap::new(),
            gateways: BTreeMap::new(),
            tenants: Vec::new(),
            binary,
            wires: BTreeMap::new(),
            http: http(LOOK_MAX)?,
            mount: None,
        };
        if let Some((node, bytes)) = shape.small_disk {
            cluster.mount = Some(Mount::tmpfs(&cluster.root.join(format!("node-{node}")), bytes)?);
        }
        cluster.certificates().await?;
        cluster.configure(&Dice::new(seed)).await?;
        cluster.boot().await?;
        cluster.make_tenants().await?;
        Ok(cluster)
    }

    async fn certificates(&self) -> Result<()> {
        self.waggle(&["cert", "create-ca", "--dir", "certificates"]).await?;
        for id in 1..=self.shape.nodes {
            self.waggle(&["cert", "create-node", "--dir", "certificates", "--id", &id.to_string()])
                .await?;
        }
        for id in 1..=self.shape.gateways {
            self.waggle(&[
                "cert",
                "create-gateway",
                "--dir",
                "certificates",
                "--id",
                &id.to_string(),
            ])
            .await?;
        }
        Ok(())
    }

    /// Addresses, a proxy for each directed pair, and the files that name them.
    async fn configure(&mut self, dice: &Dice) -> Result<()> {
        let mut ports = Ports::new();
        let mut targets = BTreeMap::new();
        let (mut nodes, mut gateways) = (Vec::new(), Vec::new());
        for id in 1..=self.shape.nodes {
            let (listen, admin) = (ports.take()?, ports.take()?);
            targets.insert(id, listen);
            nodes.push((id, listen, admin));
        }
        for id in 1..=self.shape.gateways {
            gateways.push((id, ports.take()?, ports.take()?));
        }
        let diallers = (nodes.iter().map(|node| Peer::Node(node.0)))
            .chain(gateways.iter().map(|gateway| Peer::Gateway(gateway.0)));
        for (number, dialler) in (0..).zip(diallers) {
            for (&node, &target) in targets.iter().filter(|(node, _)| dialler != Peer::Node(**node)) {
                let port = ports.take()?.port();
                let proxy = Proxy::start(port, target, dice.fork(number * 1000 + node).roll()).await?;
                self.wires.insert((dialler, Peer::Node(node)), proxy);
            }
        }
        for (id, listen, admin) in nodes {
            let dial = &self.dialled(Peer::Node(id));
            files::write_node(
                &self.root,
                &NodeFile {
                    id,
                    listen,
                    admin,
                    dial,
                },
            )?;
            let mut process = self.process("node", id);
            process.set_variable("WAGGLE_PLANTED_BUG", self.shape.bug.map(str::to_owned));
            self.nodes.insert(id, Member { process, listen, admin });
        }
        for (id, listen, admin) in gateways {
            let nodes = &self.dialled(Peer::Gateway(id));
            files::write_gateway(
                &self.root,
                &GatewayFile {
                    id,
                    listen,
                    admin,
                    nodes,
                },
            )?;
            let process = self.process("gateway", id);
            self.gateways.insert(id, Member { process, listen, admin });
        }
        Ok(())
    }

    fn dialled(&self, dialler: Peer) -> Vec<(u64, SocketAddr)> {
        let own = self.wires.iter().filter(|((from, _), _)| *from == dialler);
        own.filter_map(|((_, to), proxy)| match to {
            Peer::Node(node) => Some((*node, proxy.address())),
            Peer::Gateway(_) => None,
        })
        .collect()
    }

    fn process(&self, role: &str, id: u64) -> Process {
        let name = format!("{role}-{id}");
        let config = self.root.join(format!("{name}.toml"));
        let arguments = vec![role.into(), "--config".into(), config.into()];
        let log = self.root.join("logs").join(format!("{name}.log"));
        Process::new(&name, &self.binary, arguments, &self.root, log)
    }

    /// The first node makes the cluster, a gateway lets the others in.
    async fn boot(&mut self) -> Result<()> {
        let (shards, replication) = (self.shape.shards.to_string(), self.shape.nodes.min(3).to_string());
        let mut init = vec!["cluster", "init", "--config", "node-1.toml"];
        init.extend(["--shards", &shards, "--replication", &replication]);
        self.waggle(&init).await?;
        self.start_node(1).await?;
        fs::create_dir_all(self.root.join("secrets"))?;
        for secret in ["pepper", "cluster-secret"] {
            let from = self.root.join("node-1/data/secrets").join(secret);
            fs::copy(&from, self.root.join("secrets").join(secret))
                .with_context(|| format!("copy {}", from.display()))?;
        }
        self.start_gateway(1).await?;
        for id in 2..=self.shape.nodes {
            let answer = self.admin(&["cluster", "join-token", "--json"]).await?;
            let token = answer["token"]
                .as_str()
                .with_context(|| format!("find a token in {answer}"))?;
            files::write_secret(&self.root.join(format!("join-token-{id}")), token)?;
            self.start_node(id).await?;
        }
        for id in 2..=self.shape.gateways {
            self.start_gateway(id).await?;
        }
        self.until_replicated(REPLICATED_MAX).await
    }

    async fn make_tenants(&mut self) -> Result<()> {
        for number in 1..=self.shape.tenants {
            let id = format!("chaos-{number}");
            self.admin(&["tenant", "create", "--tenant-id", &id]).await?;
            let key = self
                .admin(&["key", "create", "--tenant-id", &id, "--name", "agents"])
                .await?;
            let key = key["raw_api_key"]
                .as_str()
                .with_context(|| format!("find the key in {key}"))?;
            self.tenants.push(Tenant {
                id,
                key: key.to_owned(),
            });
        }
        Ok(())
    }

    /// A command of the binary, in the directory of the cluster.
    pub async fn waggle(&self, arguments: &[&str]) -> Result<String> {
        // Paths are given as they stand in the directory.
        let paths: Vec<String> = arguments
            .iter()
            .enumerate()
            .map(
                |(at, argument)| match at.checked_sub(1).and_then(|before| arguments.get(before)) {
                    Some(&"--dir" | &"--config") => self.root.join(argument).display().to_string(),
                    _ => (*argument).to_owned(),
                },
            )
            .collect();
        let arguments: Vec<&str> = paths.iter().map(String::as_str).collect();
        run(&self.binary, &self.root, &arguments, COMMAND_MAX).await
    }

    /// A command of an operator, through the first gateway that runs, with JSON for an answer.
    pub async fn admin(&self, arguments: &[&str]) -> Result<Value> {
        let gateway = self.gateways.get(&1).context("there is no gateway")?;
        let url = format!("http://{}", gateway.admin);
        let key = self.root.join("node-1/data/secrets/operator-key").display().to_string();
        let mut all = arguments.to_vec();
        all.extend(["--url", &url, "--key-file", &key]);
        let text = self.waggle(&all).await?;
        serde_json::from_str(&text)
            .with_context(|| format!("read the answer of waggle {}: {text}", arguments.join(" ")))
    }

    pub fn node(&mut self, id: u64) -> Result<&mut Member> {
        self.nodes
            .get_mut(&id)
            .with_context(|| format!("there is no node {id}"))
    }

    pub fn gateway(&mut self, id: u64) -> Result<&mut Member> {
        self.gateways
            .get_mut(&id)
            .with_context(|| format!("there is no gateway {id}"))
    }

    /// Starts it and waits until it answers on its admin listener.
    pub async fn start_node(&mut self, id: u64) -> Result<()> {
        self.node(id)?.process.start()?;
        self.until_alive(Peer::Node(id), READY_MAX).await
    }

    pub async fn start_gateway(&mut self, id: u64) -> Result<()> {
        self.gateway(id)?.process.start()?;
        self.until_alive(Peer::Gateway(id), READY_MAX).await
    }

    pub async fn until_alive(&mut self, peer: Peer, longest: Duration) -> Result<()> {
        let deadline = Instant::now() + longest;
        loop {
            let http = self.http.clone();
            let member = match peer {
                Peer::Node(id) => self.node(id)?,
                Peer::Gateway(id) => self.gateway(id)?,
            };
            let answered = http.get(format!("http://{}/livez", member.admin)).send().await;
            if answered.is_ok_and(|answer| answer.status().is_success()) {
                return Ok(());
            }
            if !member.process.is_running() || Instant::now() > deadline {
                let (name, log) = (member.process.name(), tail(member.process.log()));
                bail!("{name} does not answer; its log ends with\n{log}");
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    pub fn peers(&self) -> Vec<Peer> {
        let nodes = self.nodes.keys().map(|id| Peer::Node(*id));
        nodes.chain(self.gateways.keys().map(|id| Peer::Gateway(*id))).collect()
    }

    /// Sets every wire; `wire` is asked for each directed pair.
    pub fn set_wires(&self, wire: impl Fn(Peer, Peer) -> Wire) {
        for ((from, to), proxy) in &self.wires {
            proxy.set(wire(*from, *to));
        }
    }

    pub fn reset_wires(&self) {
        self.wires.values().for_each(Proxy::reset);
    }

    /// What all wires carried and held, together.
    pub fn counted(&self) -> Counted {
        self.wires
            .values()
            .map(Proxy::counted)
            .fold(Counted::default(), |sum, one| Counted {
                connections: sum.connections + one.connections,
                resets: sum.resets + one.resets,
                bytes: sum.bytes + one.bytes,
                held: sum.held + one.held,
                delayed: sum.delayed + one.delayed,
            })
    }

    pub fn urls(&self) -> Vec<String> {
        let gateways = self.gateways.values();
        gateways.map(|gateway| format!("http://{}", gateway.listen)).collect()
    }

    /// Fills the small disk to its last byte; gives how much that took.
    pub fn fill_disk(&self) -> Result<u64> {
        self.mount.as_ref().context("no node has a small disk")?.fill()
    }

    /// Takes from a killed node what it did not sync; gives what that was.
    pub async fn cut_power(&self, node: u64, garbage: bool) -> Result<String> {
        let directory = self.root.join(format!("node-{node}/data/store")).display().to_string();
        let mut arguments = vec![directory.as_str()];
        arguments.extend(garbage.then_some("--garbage"));
        run(&power_cutter(&self.binary), &self.root, &arguments, COMMAND_MAX).await
    }

    pub fn free_disk(&self) -> Result<()> {
        self.mount.as_ref().context("no node has a small disk")?.free()
    }
}

/// The program that knows the logs of a binary built with `planted-bugs`; it lies beside the binary.
pub(crate) fn power_cutter(binary: &Path) -> PathBuf {
    binary.with_file_name("waggle-power-cut")
}

pub fn http(longest: Duration) -> Result<reqwest::Client> {
    // An error means that somebody was first.
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder()
        .no_proxy()
        .tcp_nodelay(true)
        .timeout(longest)
        .build()
        .context("make an HTTP client")
}

pub(crate) fn tail(log: &Path) -> String {
    let text = fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(20)..].join("\n")
}
