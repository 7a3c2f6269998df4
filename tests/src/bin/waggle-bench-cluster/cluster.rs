//! The cluster under test: started for each round on the same data, filled once.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use waggle_tests::server::Dev;
use waggle_tests::workspace;

use crate::drive::{Call, drive};
use crate::gateway::{self, Agents};
use crate::node::{self, Nodes, Tenant};
use crate::report::{Point, Report};
use crate::settings::Settings;

const NODES: &str = "3";
const GATEWAYS: &str = "2";
const SHARDS: &str = "16";
pub(crate) const ONE: &str = "bench-one";

pub(crate) struct Cluster<'a> {
    settings: &'a Settings,
    data: PathBuf,
    one: Vec<Tenant>,
    many: Vec<Tenant>,
    /// Facts that were stored through gateways, from `gateway::FIRST_FACT` on.
    stored: Arc<AtomicU64>,
}

/// A cluster that runs, as its ready line describes it.
pub(crate) struct Running {
    /// None: somebody else's.
    dev: Option<Dev>,
    pub(crate) nodes: Vec<NodeAt>,
    /// host:port of each gateway.
    pub(crate) gateways: Vec<String>,
    gateway_pids: Vec<u32>,
    pub(crate) api_key: String,
    pub(crate) data: PathBuf,
}

pub(crate) struct NodeAt {
    pub(crate) id: u64,
    pub(crate) pid: u32,
    pub(crate) address: String,
}

/// What is called, on which tenants.
struct Work<'a> {
    operation: &'static str,
    command: &'static str,
    tenants: &'a [Tenant],
}

impl<'a> Cluster<'a> {
    /// Fills a new cluster with what the points work on.
    pub(crate) async fn prepare(settings: &'a Settings, data: &Path, report: &Report) -> Result<Self> {
        let running = start(settings, data)?;
        let nodes = Nodes::find(&running).await?;
        report.say(&format!(
            "{} nodes, {} gateways",
            running.nodes.len(),
            running.gateways.len()
        ));
        let one = vec![nodes.fill(ONE, settings.keys).await?];
        let mut many = Vec::new();
        for number in 0..settings.tenants {
            let name = format!("bench-{number:03}");
            many.push(nodes.fill(&name, settings.keys / settings.tenants).await?);
        }
        nodes.fill_keys(settings.keys).await?;
        for tenant in one.iter().chain(&many) {
            nodes.drain(tenant).await?;
        }
        report.say("filled");
        running.stop()?;
        Ok(Self {
            settings,
            data: data.to_owned(),
            one,
            many,
            stored: Arc::new(AtomicU64::new(gateway::FIRST_FACT)),
        })
    }

    pub(crate) async fn measure(&mut self, round: u32, report: &mut Report) -> Result<()> {
        report.say(&format!("round {round}: waggle"));
        let running = start(self.settings, &self.data)?;
        let nodes = Arc::new(Nodes::find(&running).await?);
        let agents = Agents::new(&running, &nodes, &self.many).await?;
        let (one, many) = (self.one.as_slice(), self.many.as_slice());
        let works = [
            ("put", "update_memory", one),
            ("put", "create_key", one),
            ("put", "update_memory", many),
            ("get", "related", one),
            ("get", "find_key", one),
            ("get", "related", many),
            ("store", "store_node", one),
            ("store", "store_node", many),
            ("recall", "query_graph", one),
        ];
        for (operation, command, tenants) in works {
            if !self.settings.wants(operation) {
                continue;
            }
            let work = Work {
                operation,
                command,
                tenants,
            };
            for &clients in &self.settings.clients {
                self.point(&work, clients, round, &nodes, &agents, report).await?;
            }
            if operation == "store" {
                agents.drain(work.tenants.len() > 1).await?;
            }
        }
        drop(agents);
        drop(nodes);
        running.stop()
    }

    async fn point(
        &self,
        work: &Work<'_>,
        clients: usize,
        round: u32,
        nodes: &Arc<Nodes>,
        agents: &Agents,
        report: &mut Report,
    ) -> Result<()> {
        let is_many = work.tenants.len() > 1;
        let call: Call = match work.command {
            "update_memory" => nodes.updates(work.tenants, clients, round)?,
            "related" => nodes.related(work.tenants, clients)?,
            "create_key" => nodes.create_keys(clients)?,
            "find_key" => nodes.find_keys(clients, self.settings.keys)?,
            "store_node" => agents.stores(clients, is_many, &self.stored).await?,
            _ => agents.recalls(clients, &self.stored).await?,
        };
        let pids = nodes.pids();
        let seen = drive(clients, self.settings.seconds, &pids, call).await?;
        let mut point = Point::new("waggle", work.operation, work.command, clients, round, seen);
        point.tenants = work.tenants.len();
        point.shards = match work.command {
            "create_key" | "find_key" => 1,
            _ => work
                .tenants
                .iter()
                .map(|tenant| tenant.shard)
                .collect::<BTreeSet<_>>()
                .len(),
        };
        report.point(point);
        Ok(())
    }
}

fn start(settings: &Settings, data: &Path) -> Result<Running> {
    if let Some(file) = &settings.ready {
        let text = std::fs::read_to_string(file).with_context(|| format!("read {}", file.display()))?;
        let ready = serde_json::from_str(&text).with_context(|| format!("read {}", file.display()))?;
        return Running::of(None, &ready);
    }
    let mut options = vec!["--nodes", NODES, "--gateways", GATEWAYS];
    if has_option("--shards")? {
        options.extend(["--shards", SHARDS]);
    }
    let dev = Dev::start_with(data, &options)?;
    let ready = dev.ready.clone();
    Running::of(Some(dev), &ready)
}

/// Not every version lets the number of shards be chosen; the points say how many there were.
fn has_option(option: &str) -> Result<bool> {
    let help = Command::new(workspace::binary()?).args(["dev", "--help"]).output();
    Ok(String::from_utf8_lossy(&help.context("ask for help")?.stdout).contains(option))
}

impl Running {
    fn of(dev: Option<Dev>, ready: &Value) -> Result<Self> {
        let text = |value: &Value, field: &str| {
            let found = value[field].as_str().map(str::to_owned);
            found.with_context(|| format!("find the text {field} in {value}"))
        };
        let number = |value: &Value, field: &str| {
            let found = value[field].as_u64();
            found.with_context(|| format!("find the number {field} in {value}"))
        };
        let list = |field: &str| ready[field].as_array().cloned().unwrap_or_default();
        let nodes = list("nodes")
            .iter()
            .map(|node| {
                Ok(NodeAt {
                    id: number(node, "id")?,
                    pid: u32::try_from(number(node, "pid")?)?,
                    address: text(node, "addr")?,
                })
            })
            .collect::<Result<Vec<_>>>()?;
        let gateways = list("gateways")
            .iter()
            .filter_map(Value::as_str)
            .map(|url| url.trim_start_matches("http://").trim_end_matches("/mcp").to_owned())
            .collect::<Vec<_>>();
        ensure!(
            !nodes.is_empty() && !gateways.is_empty(),
            "the ready line names no nodes or no gateways: {ready}"
        );
        Ok(Self {
            dev,
            nodes,
            gateways,
            gateway_pids: list("gateway_pids")
                .iter()
                .filter_map(|pid| u32::try_from(pid.as_u64()?).ok())
                .collect(),
            api_key: text(ready, "api_key")?,
            data: PathBuf::from(text(ready, "data_dir")?),
        })
    }

    fn stop(self) -> Result<()> {
        self.dev.map_or(Ok(()), Dev::stop)
    }

    /// Of all processes of the cluster.
    pub(crate) fn pids(&self) -> Vec<u32> {
        let nodes = self.nodes.iter().map(|node| node.pid);
        let others = self.gateway_pids.iter().copied().chain(self.dev.as_ref().map(Dev::pid));
        let all: BTreeSet<u32> = nodes.chain(others).collect();
        all.into_iter().collect()
    }

    /// The file with the secret that keys are hashed under; each node of a cluster has a copy.
    pub(crate) fn pepper(&self) -> Result<PathBuf> {
        let folders = [self.data.join("secrets"), self.data.join("node-1/secrets")];
        let found = folders
            .into_iter()
            .map(|folder| folder.join("pepper"))
            .find(|file| file.exists());
        found.with_context(|| format!("find the pepper below {}", self.data.display()))
    }
}

/// The project that everything lies in.
pub(crate) use node::PROJECT;
