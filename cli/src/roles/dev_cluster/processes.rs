//! The processes of a local cluster: this binary again, each with a log file. They end with the process that started them,
//! even if that is killed: their stdin ends with it.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use rustix::process::{Pid, Signal, kill_process};
use tokio::time::Instant;

use super::files::Layout;

const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Longest time until a process that was asked to stop is killed.
const STOP_TIME_MAX: Duration = Duration::from_secs(40);
/// Lines of a log that are shown when its process ended.
const LOG_LINES: usize = 5;

/// See the module.
pub(super) struct Processes {
    program: PathBuf,
    logs: BTreeMap<String, PathBuf>,
    nodes: BTreeMap<u64, Child>,
    gateways: BTreeMap<u64, Child>,
    configs: BTreeMap<String, PathBuf>,
    root: Layout,
}

impl Processes {
    pub(super) fn new(layout: &Layout) -> Result<Self> {
        Ok(Self {
            program: std::env::current_exe().context("find this program")?,
            logs: BTreeMap::new(),
            nodes: BTreeMap::new(),
            gateways: BTreeMap::new(),
            configs: BTreeMap::new(),
            root: Layout::new(layout.root()),
        })
    }

    /// Settings of this process are not for its children.
    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("WAGGLE__") {
                command.env_remove(name);
            }
        }
        command
    }

    /// Runs a command that ends by itself.
    pub(super) async fn run_to_end(&self, words: &[&str]) -> Result<()> {
        let mut command = self.command();
        command.args(words).stdin(Stdio::null());
        let output = tokio::task::spawn_blocking(move || command.output()).await??;
        if output.status.success() {
            return Ok(());
        }
        bail!(
            "waggle {}: {}",
            words.join(" "),
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }

    pub(super) fn start_node(&mut self, node: u64) -> Result<()> {
        let child = self.start("node", node, self.root.node_config(node))?;
        self.nodes.insert(node, child);
        Ok(())
    }

    pub(super) fn start_gateway(&mut self, gateway: u64) -> Result<()> {
        let child = self.start("gateway", gateway, self.root.gateway_config(gateway))?;
        self.gateways.insert(gateway, child);
        Ok(())
    }

    fn start(&mut self, role: &str, number: u64, config: PathBuf) -> Result<Child> {
        let name = format!("{role}-{number}");
        let path = self.root.log(&name);
        let log = File::options()
            .create(true)
            .append(true)
            .open(&path)
            .with_context(|| format!("open {}", path.display()))?;
        let mut command = self.command();
        command.arg(role).arg("--config").arg(&config).arg("--stop-with-stdin");
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(log);
        let child = command.spawn().with_context(|| format!("start {name}"))?;
        self.logs.insert(name.clone(), path);
        self.configs.insert(name, config);
        Ok(child)
    }

    pub(super) fn node_pid(&self, node: u64) -> Option<u32> {
        self.nodes.get(&node).map(Child::id)
    }

    pub(super) fn gateway_pid(&self, gateway: u64) -> Option<u32> {
        self.gateways.get(&gateway).map(Child::id)
    }

    fn all(&mut self) -> impl Iterator<Item = (String, &mut Child)> {
        let nodes = self
            .nodes
            .iter_mut()
            .map(|(number, child)| (format!("node-{number}"), child));
        let gateways = self
            .gateways
            .iter_mut()
            .map(|(number, child)| (format!("gateway-{number}"), child));
        nodes.chain(gateways)
    }

    /// An error with the end of its log if a process has ended.
    pub(super) fn none_ended(&mut self) -> Result<()> {
        let ended: Vec<(String, String)> = self
            .all()
            .filter_map(|(name, child)| {
                let status = child.try_wait().ok()??;
                Some((name, status.to_string()))
            })
            .collect();
        let Some((name, status)) = ended.into_iter().next() else {
            return Ok(());
        };
        let log = self.logs.get(&name).cloned().unwrap_or_default();
        let text = std::fs::read_to_string(&log).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        let tail = lines
            .get(lines.len().saturating_sub(LOG_LINES)..)
            .unwrap_or_default()
            .join("\n");
        bail!("{name} ended ({status}); the end of {}:\n{tail}", log.display());
    }

    /// A process that ends is told of, and the others go on: whoever tries a cluster kills nodes. Returns when `stop` does.
    pub(super) async fn until_one_ends_or(&mut self, stop: impl Future<Output = ()>) -> Result<()> {
        tokio::pin!(stop);
        let mut told: Vec<u32> = Vec::new();
        loop {
            tokio::select! {
                () = &mut stop => return Ok(()),
                () = tokio::time::sleep(LOOK_EVERY) => {}
            }
            let configs = self.configs.clone();
            for (name, child) in self.all() {
                if let Ok(Some(status)) = child.try_wait()
                    && !told.contains(&child.id())
                {
                    told.push(child.id());
                    let config = configs.get(&name).cloned().unwrap_or_default();
                    tracing::warn!(name, %status, config = %config.display(), "a process ended; start it again by hand");
                }
            }
        }
    }

    /// Gateways first, so that calls in progress find their nodes.
    pub(super) async fn stop(mut self) {
        let deadline = Instant::now() + STOP_TIME_MAX;
        end_all(&mut self.gateways, deadline).await;
        end_all(&mut self.nodes, deadline).await;
    }
}

async fn end_all(children: &mut BTreeMap<u64, Child>, deadline: Instant) {
    for child in children.values_mut() {
        if let Ok(None) = child.try_wait()
            && let Some(pid) = i32::try_from(child.id()).ok().and_then(Pid::from_raw)
        {
            // It may have ended in this moment.
            let _ = kill_process(pid, Signal::TERM);
        }
    }
    for child in children.values_mut() {
        while let Ok(None) = child.try_wait() {
            if Instant::now() >= deadline {
                let _ = child.kill();
                let _ = child.wait();
                break;
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }
}
