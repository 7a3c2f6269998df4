//! One run: a cluster, clients, a plan of faults, and the verdict over all of it.

mod judge;
mod report;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::checker::Verdict;
use crate::checker::domain::{Digest, Graph};
use crate::cluster::{Cluster, Shape};
use crate::history::{self, Operation, Recorder};
use crate::nemesis::{Capability, Event, Kind, Nemesis, Plan, Wishes, probe};
use crate::workload::Workload;
pub use report::{Coverage, Report};

/// After everything was healed.
const SERVICE_MAX: Duration = Duration::from_secs(15);
/// Until the replicas of a shard are equally far when nobody writes.
const LEVEL_MAX: Duration = Duration::from_secs(20);
const SMALL_DISK_BYTES: u64 = 320 * 1024 * 1024;

#[derive(Clone, Debug)]
pub struct Options {
    pub binary: PathBuf,
    /// Everything of the run lies here and stays.
    pub root: PathBuf,
    pub seed: u64,
    pub time: Duration,
    pub nodes: u64,
    pub gateways: u64,
    pub shards: u32,
    pub tenants: u32,
    pub clients: u32,
    /// Mean pause of a client between two operations.
    pub pace: Duration,
    /// Only these kinds of faults; all that work if it is empty.
    pub kinds: Vec<Kind>,
    /// A bug that is put back, to see that it is found: `apply-twice`, `skip-applied-id`, `ignore-dedupe`,
    /// `ack-before-sync`. Works on a binary that was built with the feature `planted-bugs`.
    pub bug: Option<&'static str>,
}

impl Options {
    pub fn new(binary: &Path, root: &Path) -> Self {
        Self {
            binary: binary.to_owned(),
            root: root.to_owned(),
            seed: 1,
            time: Duration::from_secs(60),
            nodes: 3,
            gateways: 2,
            shards: 2,
            tenants: 3,
            clients: 9,
            pace: Duration::from_millis(15),
            kinds: Vec::new(),
            bug: None,
        }
    }
}

/// What a run leaves for its judges.
pub(crate) struct Evidence {
    pub(crate) history: Vec<Operation>,
    pub(crate) events: Vec<Event>,
    pub(crate) plan: Plan,
    /// None where nobody could look.
    pub(crate) graph: Option<Graph>,
    pub(crate) digests: Result<Vec<Digest>, String>,
    /// What went wrong on the way to a healthy end.
    pub(crate) service: Verdict,
    pub(crate) ends: Verdict,
    pub(crate) logs: Vec<PathBuf>,
}

/// Runs it all. An error is one of the harness; whatever the cluster does wrong stands in the report.
pub async fn run(options: &Options) -> Result<Report> {
    std::fs::create_dir_all(&options.root).with_context(|| format!("make {}", options.root.display()))?;
    let capabilities = probe(&options.binary, &options.root).await;
    let plan = plan(options, &capabilities);
    save(&options.root.join("plan.json"), &plan)?;
    let small_disk = plan.faults.iter().any(|fault| fault.kind == Kind::DiskFull);
    let shape = Shape {
        nodes: options.nodes,
        gateways: options.gateways,
        shards: options.shards,
        tenants: options.tenants,
        bug: options.bug,
        small_disk: small_disk.then_some((options.nodes, SMALL_DISK_BYTES)),
    };
    eprintln!("starting {} nodes and {} gateways", shape.nodes, shape.gateways);
    let mut cluster = Cluster::start(&options.binary, &options.root, shape, options.seed).await?;
    let evidence = hurt(options, &mut cluster, plan).await?;
    drop(cluster);
    let report = judge::judge(options, capabilities, &evidence)?;
    save(&options.root.join("report.json"), &report)?;
    Ok(report)
}

fn plan(options: &Options, capabilities: &[Capability]) -> Plan {
    let possible = capabilities.iter().flat_map(|capability| &capability.kinds).copied();
    let mut kinds: Vec<Kind> = possible
        .filter(|kind| options.kinds.is_empty() || options.kinds.contains(kind))
        // Between nodes there is nothing to cut where there is one.
        .filter(|kind| options.nodes > 1 || !(kind.is_wire() || *kind == Kind::LeaderTransfer))
        .collect();
    kinds.sort_unstable();
    Plan::new(&Wishes {
        seed: options.seed,
        millis: u64::try_from(options.time.as_millis()).unwrap_or(u64::MAX),
        nodes: options.nodes,
        gateways: options.gateways,
        small_disk: Some(options.nodes),
        kinds,
    })
}

async fn hurt(options: &Options, cluster: &mut Cluster, plan: Plan) -> Result<Evidence> {
    let path = options.root.join("history.jsonl");
    let recorder = Arc::new(Recorder::create(&path)?);
    let workload = Workload::new(
        &cluster.tenants,
        cluster.urls(),
        Arc::clone(&recorder),
        options.seed,
        options.pace,
    );
    let mut clients = workload.start(options.clients)?;
    eprintln!("{} faults in {:?}", plan.faults.len(), options.time);
    let (healed, events) = {
        let mut nemesis = Nemesis::new(cluster, &recorder);
        let healed = nemesis.run(&plan).await;
        nemesis.save(&options.root.join("events.jsonl"))?;
        (healed, std::mem::take(&mut nemesis.events))
    };
    workload.end();
    let mut service = match healed {
        Ok(()) => match workload.until_served(SERVICE_MAX).await {
            Ok(_) => Verdict::Pass,
            Err(problem) => Verdict::fail(format!("{problem:#}")),
        },
        Err(problem) => Verdict::fail(format!("{problem:#}")),
    };
    while let Some(ended) = clients.join_next().await {
        ended.context("a client panicked")??;
    }
    if service == Verdict::Pass
        && options.nodes > 1
        && let Err(problem) = cluster.until_replicated(SERVICE_MAX).await
    {
        service = Verdict::fail(format!("{problem:#}"));
    }
    recorder.flush()?;
    eprintln!("{} operations; looking at what is there", recorder.written());
    let mut graph = None;
    if service == Verdict::Pass {
        match workload.finish(&history::read(&path)?).await {
            Ok(seen) => graph = Some(seen),
            Err(problem) => service = Verdict::fail(format!("{problem:#}")),
        }
    }
    recorder.flush()?;
    let digests = cluster
        .level_digests(LEVEL_MAX)
        .await
        .map_err(|problem| format!("{problem:#}"));
    let ends = judge::ends(cluster).await;
    if let Some(graph) = &graph {
        save(&options.root.join("graph.json"), graph)?;
    }
    let members = cluster.nodes.values().chain(cluster.gateways.values());
    Ok(Evidence {
        history: history::read(&path)?,
        events,
        plan,
        graph,
        digests,
        service,
        ends,
        logs: members.map(|member| member.process.log().to_owned()).collect(),
    })
}

fn save(path: &Path, what: &impl serde::Serialize) -> Result<()> {
    let text = serde_json::to_string_pretty(what).context("write JSON")?;
    std::fs::write(path, text + "\n").with_context(|| format!("write {}", path.display()))
}
