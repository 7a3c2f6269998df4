//! A plan, done to a cluster.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde::Serialize;

use super::wires::bent;
use super::{Fault, Kind, Plan, Planned};
use crate::cluster::{Cluster, STOP_MAX};
use crate::history::{Micros, Recorder};
use crate::proxy::{Counted, Wire};

/// Between two steps of a fault that goes on and on.
const STEP: Duration = Duration::from_millis(400);
const READY_MAX: Duration = Duration::from_secs(60);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    Begin,
    /// One of several within a storm.
    Step,
    End,
    /// It could not be done; what the harness tried is in the note.
    Failed,
}

/// What really happened, and when.
#[derive(Clone, Debug, Serialize)]
pub struct Event {
    pub at: Micros,
    pub number: usize,
    pub kind: Kind,
    pub phase: Phase,
    pub note: String,
}

/// A fault that goes on.
struct Active {
    planned: Planned,
    /// Who was hurt, if a leader was to be.
    leader: Option<u64>,
    next_step: Instant,
    steps: u64,
    /// What the wires had done before.
    before: Counted,
}

pub struct Nemesis<'a> {
    cluster: &'a mut Cluster,
    recorder: &'a Recorder,
    began: Instant,
    pub events: Vec<Event>,
    active: Vec<Active>,
}

impl<'a> Nemesis<'a> {
    pub fn new(cluster: &'a mut Cluster, recorder: &'a Recorder) -> Self {
        Self {
            cluster,
            recorder,
            began: Instant::now(),
            events: Vec::new(),
            active: Vec::new(),
        }
    }

    /// The whole plan, and then everything healed.
    pub async fn run(&mut self, plan: &Plan) -> Result<()> {
        self.began = Instant::now();
        let mut waiting: std::collections::VecDeque<Planned> = {
            let mut faults = plan.faults.clone();
            faults.sort_by_key(|fault| fault.at_ms);
            faults.into()
        };
        let end = Duration::from_millis(plan.millis);
        while self.began.elapsed() < end {
            let now = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
            while let Some(at) = self.active.iter().position(|active| active.planned.end_ms() <= now) {
                let over = self.active.remove(at);
                self.end(over).await;
            }
            while waiting.front().is_some_and(|next| next.at_ms <= now) {
                if let Some(next) = waiting.pop_front() {
                    // Whatever made us late, a fault lasts as long as it was to last.
                    let late = now - next.at_ms;
                    self.begin(Planned {
                        at_ms: next.at_ms + late,
                        ..next
                    })
                    .await;
                }
            }
            self.steps().await;
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        self.heal().await
    }

    fn note(&mut self, planned: &Planned, phase: Phase, note: impl Into<String>) {
        let event = Event {
            at: self.recorder.now(),
            number: planned.number,
            kind: planned.kind,
            phase,
            note: note.into(),
        };
        self.events.push(event);
    }

    async fn begin(&mut self, planned: Planned) {
        let leader = match planned.fault {
            Fault::KillLeader
            | Fault::PauseLeader
            | Fault::IsolateLeader { .. }
            | Fault::Bridge { .. }
            | Fault::OneWay { .. }
            | Fault::DeafLeader => Some(self.leader().await),
            _ => None,
        };
        let who = leader.map_or_else(String::new, |leader| format!(" (node {leader})"));
        let before = self.recorder.now();
        let done = self.inflict(&planned, leader).await;
        // Clients feel it from the first moment on that it may have been there.
        match done {
            Ok(note) => self.events.push(Event {
                at: before,
                number: planned.number,
                kind: planned.kind,
                phase: Phase::Begin,
                note: format!("{:?}{who}{note}", planned.fault),
            }),
            Err(problem) => self.note(
                &planned,
                Phase::Failed,
                format!("{:?}{who}: {problem:#}", planned.fault),
            ),
        }
        self.active.push(Active {
            planned,
            leader,
            next_step: Instant::now(),
            steps: 0,
            before: self.cluster.counted(),
        });
        self.bend();
    }

    /// The leader of the data shard with the lowest number.
    async fn leader(&self) -> u64 {
        let leaders = self.cluster.leaders().await;
        let data = leaders.iter().find(|(shard, _)| *shard != "shd_0");
        data.map_or(1, |(_, node)| *node)
    }

    async fn inflict(&mut self, planned: &Planned, leader: Option<u64>) -> Result<String> {
        match &planned.fault {
            Fault::Kill { nodes } => {
                for &node in nodes {
                    self.cluster.node(node)?.process.kill_nine()?;
                }
            }
            Fault::KillLeader => self.cluster.node(leader.unwrap_or(1))?.process.kill_nine()?,
            Fault::PowerCut { garbage } => {
                let nodes: Vec<u64> = self.cluster.nodes.keys().copied().collect();
                for &node in &nodes {
                    self.cluster.node(node)?.process.kill_nine()?;
                }
                let mut note = String::new();
                for node in nodes {
                    note.push_str(&format!(
                        "; node {node}: {}",
                        self.cluster.cut_power(node, *garbage).await?.trim()
                    ));
                }
                return Ok(note);
            }
            Fault::Pause { node } => self.cluster.node(*node)?.process.pause()?,
            Fault::PauseLeader => self.cluster.node(leader.unwrap_or(1))?.process.pause()?,
            Fault::Restart { node } => self.cluster.node(*node)?.process.stop(STOP_MAX).await?,
            Fault::DiskFull { .. } => {
                let bytes = self.cluster.fill_disk()?;
                return Ok(format!(", {bytes} bytes of ballast"));
            }
            Fault::Clock { node, offset_ms } => {
                let process = &mut self.cluster.node(*node)?.process;
                process.stop(STOP_MAX).await?;
                process.set_variable("WAGGLE_CLOCK_OFFSET_MS", Some(offset_ms.to_string()));
                process.start()?;
            }
            Fault::GatewayKill { gateway } => self.cluster.gateway(*gateway)?.process.kill_nine()?,
            // On the wires, or step by step.
            _ => {}
        }
        Ok(String::new())
    }

    /// What is repeated while its fault goes on.
    async fn steps(&mut self) {
        for at in 0..self.active.len() {
            if Instant::now() < self.active[at].next_step {
                continue;
            }
            let (planned, step) = (self.active[at].planned.clone(), self.active[at].steps);
            let node = 1 + step % self.cluster.shape.nodes.max(1);
            let done = match &planned.fault {
                Fault::RestartStorm => self.storm(node),
                Fault::Resets => {
                    self.cluster.reset_wires();
                    Ok("all connections reset".to_owned())
                }
                Fault::LeaderTransfer => self.transfer(node).await,
                _ => continue,
            };
            match done {
                Ok(note) => self.note(&planned, Phase::Step, note),
                Err(problem) => self.note(&planned, Phase::Step, format!("refused: {problem:#}")),
            }
            self.active[at].steps += 1;
            self.active[at].next_step = Instant::now() + STEP;
        }
    }

    fn storm(&mut self, node: u64) -> Result<String> {
        let process = &mut self.cluster.node(node)?.process;
        process.kill_nine()?;
        process.start()?;
        Ok(format!("node {node} killed and started"))
    }

    /// Every shard that another node leads. A cluster under other faults may refuse.
    async fn transfer(&mut self, to: u64) -> Result<String> {
        let node = to.to_string();
        let leaders = self.cluster.leaders().await;
        let (shard, from) = leaders
            .into_iter()
            .find(|(_, leader)| *leader != to)
            .context("it leads everything already")?;
        let number = shard.trim_start_matches("shd_");
        self.cluster
            .admin(&["shard", "leader-transfer", number, "--to", &node, "--json"])
            .await?;
        Ok(format!("{shard} from node {from} to node {to}"))
    }

    async fn end(&mut self, active: Active) {
        let Active {
            planned,
            leader,
            before,
            ..
        } = active;
        let now = self.cluster.counted();
        self.bend();
        // A cut that met no byte did not happen.
        let met = match planned.kind {
            Kind::Delay | Kind::Bandwidth => now.delayed > before.delayed,
            Kind::Resets => now.resets > before.resets,
            kind if kind.is_wire() => now.held > before.held,
            _ => true,
        };
        if !met {
            self.note(&planned, Phase::Failed, "no byte met it");
        }
        let done = self.mend(&planned, leader).await;
        match done {
            Ok(()) => self.note(&planned, Phase::End, ""),
            Err(problem) => self.note(
                &planned,
                Phase::Failed,
                format!("end of {:?}: {problem:#}", planned.fault),
            ),
        }
    }

    async fn mend(&mut self, planned: &Planned, leader: Option<u64>) -> Result<()> {
        match &planned.fault {
            Fault::Kill { nodes } => {
                for &node in nodes {
                    self.cluster.node(node)?.process.start()?;
                }
            }
            Fault::KillLeader => self.cluster.node(leader.unwrap_or(1))?.process.start()?,
            Fault::PowerCut { .. } => {
                for id in self.cluster.nodes.keys().copied().collect::<Vec<_>>() {
                    self.cluster.node(id)?.process.start()?;
                }
            }
            Fault::Pause { node } => self.cluster.node(*node)?.process.resume()?,
            Fault::PauseLeader => self.cluster.node(leader.unwrap_or(1))?.process.resume()?,
            Fault::Restart { node } => self.cluster.node(*node)?.process.start()?,
            Fault::DiskFull { node } => {
                self.cluster.free_disk()?;
                // It may have ended: a log that cannot be written ends a node.
                self.cluster.node(*node)?.process.start()?;
            }
            Fault::Clock { node, .. } => {
                let process = &mut self.cluster.node(*node)?.process;
                process.stop(STOP_MAX).await?;
                process.set_variable("WAGGLE_CLOCK_OFFSET_MS", None);
                process.start()?;
            }
            Fault::GatewayKill { gateway } => self.cluster.gateway(*gateway)?.process.start()?,
            _ => {}
        }
        Ok(())
    }

    /// Sets every wire to what all faults that go on make of it.
    fn bend(&self) {
        let (now, nodes) = (&self.active, self.cluster.shape.nodes);
        self.cluster.set_wires(|from, to| {
            now.iter().fold(Wire::default(), |wire, active| {
                bent(wire, &active.planned.fault, active.leader.unwrap_or(0), nodes, from, to)
            })
        });
    }

    /// Ends all that is active, starts what is dead, and makes every wire good.
    pub async fn heal(&mut self) -> Result<()> {
        while let Some(active) = self.active.pop() {
            self.end(active).await;
        }
        self.bend();
        for id in self.cluster.nodes.keys().copied().collect::<Vec<_>>() {
            let process = &mut self.cluster.node(id)?.process;
            process.resume()?;
            process.start()?;
        }
        for id in self.cluster.gateways.keys().copied().collect::<Vec<_>>() {
            self.cluster.gateway(id)?.process.start()?;
        }
        for peer in self.cluster.peers() {
            self.cluster
                .until_alive(peer, READY_MAX)
                .await
                .context("after everything was healed")?;
        }
        Ok(())
    }

    pub fn save(&self, path: &Path) -> Result<()> {
        let mut text = String::new();
        for event in &self.events {
            text.push_str(&serde_json::to_string(event)?);
            text.push('\n');
        }
        std::fs::write(path, text).with_context(|| format!("write {}", path.display()))
    }
}
