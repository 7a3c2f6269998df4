//! Three nodes and two gateways as real processes: `waggle dev --nodes 3`. A node can be killed, stopped, started again,
//! and robbed of its data.

use std::collections::HashMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use crate::server::Dev;
use crate::workspace;

/// Longest wait for a cluster to be whole again.
pub const WHOLE_MAX: Duration = Duration::from_secs(60);

/// A node process.
#[derive(Clone, Debug)]
pub struct Node {
    pub id: u64,
    pub pid: u32,
    pub data_dir: PathBuf,
    pub config: PathBuf,
}

/// The processes, and those that were started again by hand.
pub struct Cluster {
    pub dev: Dev,
    pub gateways: Vec<String>,
    nodes: HashMap<u64, Node>,
    again: Again,
    operator_key: String,
    http: reqwest::Client,
}

impl Cluster {
    /// Three nodes, two gateways, `shards` data shards.
    pub fn start(data: &Path, shards: u32) -> Result<Self> {
        let shards = shards.to_string();
        let dev = Dev::start_with(data, &["--nodes", "3", "--gateways", "2", "--shards", &shards])?;
        let list = |name: &str| dev.ready[name].as_array().cloned().unwrap_or_default();
        let gateways = list("gateways")
            .iter()
            .filter_map(|url| url.as_str().map(str::to_owned))
            .collect();
        let nodes = list("nodes").iter().map(node).collect::<Result<HashMap<_, _>>>()?;
        let key_file = dev.ready["operator_key_file"].as_str().context("the operator's key")?;
        let operator_key = std::fs::read_to_string(key_file)
            .context("read the operator's key")?
            .trim()
            .to_owned();
        crate::install_tls_provider();
        Ok(Self {
            gateways,
            nodes,
            again: Again::default(),
            operator_key,
            http: reqwest::Client::new(),
            dev,
        })
    }

    pub fn node(&self, id: u64) -> Result<&Node> {
        self.nodes.get(&id).with_context(|| format!("node {id}"))
    }

    pub async fn admin(&self, path: &str) -> Result<Value> {
        let url = format!("{}{path}", self.dev.admin_url);
        let answer = self.http.get(url).bearer_auth(&self.operator_key).send().await?;
        let status = answer.status();
        let body: Value = answer.json().await?;
        ensure!(status.is_success(), "{path}: {status} {body}");
        Ok(body)
    }

    pub async fn post(&self, path: &str, body: &Value) -> Result<Value> {
        let url = format!("{}{path}", self.dev.admin_url);
        let answer = self
            .http
            .post(url)
            .bearer_auth(&self.operator_key)
            .json(body)
            .send()
            .await?;
        let status = answer.status();
        let body: Value = answer.json().await?;
        ensure!(status.is_success(), "{path}: {status} {body}");
        Ok(body)
    }

    /// The node that leads the shard with the longest log, the meta shard left out: the one that clients write to.
    pub async fn busiest_leader(&self) -> Result<u64> {
        let cluster = self.admin("/api/admin/cluster").await?;
        let entries = |shard: &Value| {
            let replicas = shard["replicas"].as_array().cloned().unwrap_or_default();
            replicas
                .iter()
                .filter_map(|replica| replica["last_log_index"].as_u64())
                .max()
        };
        let shards = cluster["shards"].as_array().context("shards")?;
        let busiest = shards
            .iter()
            .filter(|shard| shard["shard"] != 0)
            .max_by_key(|shard| entries(shard));
        busiest
            .and_then(|shard| shard["leader"].as_u64())
            .context("the busiest shard has a leader")
    }

    /// Waits until all nodes answer and every shard has a leader and three voters.
    pub async fn whole(&self) -> Result<()> {
        let deadline = Instant::now() + WHOLE_MAX;
        loop {
            let cluster = self.admin("/api/admin/cluster").await;
            if let Ok(cluster) = &cluster {
                let all = |list: &str, fits: &dyn Fn(&Value) -> bool| {
                    cluster[list].as_array().is_some_and(|items| items.iter().all(fits))
                };
                if all("nodes", &|node| node["answers"] == true) && all("shards", &|shard| shard["voters"] == 3) {
                    return Ok(());
                }
            }
            ensure!(Instant::now() < deadline, "the cluster is not whole: {cluster:?}");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// Compares all replicas of all shards by their hashes.
    pub async fn replicas_are_equal(&self) -> Result<()> {
        let cluster = self.admin("/api/admin/cluster").await?;
        for shard in cluster["shards"].as_array().context("shards")? {
            let compared = self
                .admin(&format!("/api/admin/shards/{}/digests", shard["shard"]))
                .await?;
            ensure!(compared["equal"] == true, "{compared}");
            ensure!(compared["replicas"].as_array().map(Vec::len) == Some(3), "{compared}");
        }
        Ok(())
    }

    /// SIGKILL for a node that `waggle dev` started or that was started again.
    pub fn kill_nine(&mut self, id: u64) -> Result<()> {
        self.signal(id, "-KILL")?;
        self.ended(id).map(|_| ())
    }

    /// SIGTERM; the node must end with 0.
    pub fn stop_node(&mut self, id: u64) -> Result<()> {
        self.signal(id, "-TERM")?;
        let status = self.ended(id)?;
        ensure!(
            status.is_none_or(|status| status.success()),
            "node {id} ended with {status:?}"
        );
        Ok(())
    }

    fn signal(&self, id: u64, signal: &str) -> Result<()> {
        let pid = self.again.0.get(&id).map_or(self.node(id)?.pid, Child::id).to_string();
        let sent = Command::new("kill")
            .args([signal, &pid])
            .status()
            .context("send a signal")?;
        ensure!(sent.success(), "node {id} was gone before {signal}");
        Ok(())
    }

    /// Waits for the end of a node. Its status is known only for one that was started from here.
    fn ended(&mut self, id: u64) -> Result<Option<ExitStatus>> {
        if let Some(mut child) = self.again.0.remove(&id) {
            return Ok(Some(child.wait().context("wait for a node")?));
        }
        // Its parent is `waggle dev`, which takes its end in.
        let process = PathBuf::from(format!("/proc/{}", self.node(id)?.pid));
        let deadline = Instant::now() + Duration::from_secs(30);
        while process.exists() {
            if Instant::now() > deadline {
                bail!("node {id} did not end");
            }
            crate::server::pause();
        }
        Ok(None)
    }

    /// Starts a node again with its own configuration.
    pub fn start_node(&mut self, id: u64) -> Result<()> {
        let child = self.spawn(id)?;
        self.again.0.insert(id, child);
        Ok(())
    }

    /// Starts a node that must end by itself; gives its status and what it said.
    pub fn start_refused(&self, id: u64) -> Result<(ExitStatus, String)> {
        let mut command = self.command(id)?;
        let output = command.stderr(Stdio::piped()).output().context("start a node")?;
        Ok((output.status, String::from_utf8_lossy(&output.stderr).into_owned()))
    }

    fn command(&self, id: u64) -> Result<Command> {
        let mut command = Command::new(workspace::binary()?);
        command.arg("node").arg("--config").arg(&self.node(id)?.config);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        Ok(command)
    }

    fn spawn(&self, id: u64) -> Result<Child> {
        let log = self.node(id)?.data_dir.with_extension("again.log");
        let log = File::options()
            .create(true)
            .append(true)
            .open(log)
            .context("open a log")?;
        let mut command = self.command(id)?;
        command.stderr(log).spawn().context("start a node again")
    }

    /// Ends everything; all processes must end with 0.
    pub fn stop(mut self) -> Result<()> {
        let ids: Vec<u64> = self.again.0.keys().copied().collect();
        for id in &ids {
            self.signal(*id, "-TERM")?;
        }
        for id in ids {
            let status = self.ended(id)?;
            ensure!(
                status.is_some_and(|status| status.success()),
                "node {id} ended with {status:?}"
            );
        }
        self.dev.stop()
    }

    /// A memory of a client, for [`crate::mcp::Client::call_once`].
    pub fn memory(writer: usize, number: usize) -> Value {
        let content = format!(
            "Sensor {writer} of the greenhouse measured value {} in run {number}",
            writer * 7 + number
        );
        json!({"label": format!("run {writer}-{number}"), "content": content, "node_type": "fact", "project": "cluster"})
    }
}

/// Nodes that were started again by hand; killed when a test fails.
#[derive(Default)]
struct Again(HashMap<u64, Child>);

impl Drop for Again {
    fn drop(&mut self) {
        for child in self.0.values_mut() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn node(value: &Value) -> Result<(u64, Node)> {
    let text = |name: &str| value[name].as_str().map(PathBuf::from).context("a path of a node");
    let id = value["id"].as_u64().context("the number of a node")?;
    let pid = value["pid"].as_u64().and_then(|pid| u32::try_from(pid).ok());
    let node = Node {
        id,
        pid: pid.context("the process of a node")?,
        data_dir: text("data_dir")?,
        config: text("config")?,
    };
    Ok((id, node))
}
