//! Agents at work: clients that store, read, change, link, recall and delete the memories of their tenants, through any
//! gateway, and write down what they were told.

mod client;
mod texts;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use tokio::task::JoinSet;

use crate::checker::domain::{Graph, Link, Memory};
use crate::cluster::Tenant;
use crate::dice::Dice;
use crate::history::{Action, Answer, Operation, Outcome, Recorder};
use client::{Client, Request};

/// Memories of a tenant that are worked on at a time; few, so that clients meet.
const LIVE_MAX: usize = 10;
/// Operations on one memory, after which it is left alone: long histories of one object are hard to judge.
const OPERATIONS_MAX: u32 = 80;

/// A memory that clients know.
#[derive(Clone)]
struct Live {
    number: u64,
    id: String,
    /// The last that anybody was told.
    version: u32,
    operations: u32,
}

#[derive(Default)]
struct Known {
    live: Vec<Live>,
    /// Those that are left alone now, and those that were deleted.
    left: Vec<Live>,
}

/// What the clients share.
pub struct Workload {
    tenants: Vec<Tenant>,
    urls: Arc<[String]>,
    recorder: Arc<Recorder>,
    known: Mutex<BTreeMap<String, Known>>,
    next: AtomicU64,
    dice: Dice,
    over: AtomicBool,
    pace: Duration,
}

impl Workload {
    pub fn new(tenants: &[Tenant], urls: Vec<String>, recorder: Arc<Recorder>, seed: u64, pace: Duration) -> Arc<Self> {
        Arc::new(Self {
            tenants: tenants.to_vec(),
            urls: urls.into(),
            recorder,
            known: Mutex::new(BTreeMap::new()),
            next: AtomicU64::new(1),
            dice: Dice::new(seed).fork(2),
            over: AtomicBool::new(false),
            pace,
        })
    }

    /// So many clients at work, until [`Workload::end`].
    pub fn start(self: &Arc<Self>, clients: u32) -> Result<JoinSet<Result<()>>> {
        let mut working = JoinSet::new();
        for process in 1..=clients {
            let client = self.client(process)?;
            let client = if process % 4 == 0 { client.impatient()? } else { client };
            working.spawn(Arc::clone(self).work(process, client));
        }
        Ok(working)
    }

    pub fn end(&self) {
        self.over.store(true, Ordering::Release);
    }

    fn client(&self, number: u32) -> Result<Client> {
        let number = usize::try_from(number).unwrap_or(0);
        let tenant = &self.tenants[number % self.tenants.len()];
        Client::new(Arc::clone(&self.urls), tenant, number)
    }

    async fn work(self: Arc<Self>, process: u32, mut client: Client) -> Result<()> {
        let mut dice = self.dice.fork(u64::from(process));
        let mut answered: Vec<Request> = Vec::new();
        while !self.over.load(Ordering::Acquire) {
            // Now and then a client that did not see its answer asks again.
            let again =
                (dice.below(20) == 0 && !answered.is_empty()).then(|| answered[dice.index(answered.len())].clone());
            let repeat = again.is_some();
            let request = again.unwrap_or_else(|| self.wish(&mut dice, &client));
            let outcome = self.perform(process, &mut client, &request, repeat).await?;
            if matches!(outcome, Outcome::Ok { .. }) && request.action.writes() && !repeat {
                answered.push(request);
                if answered.len() > 30 {
                    answered.remove(0);
                }
            }
            let pause = dice.below(u64::try_from(self.pace.as_micros()).unwrap_or(0) * 2 + 1);
            tokio::time::sleep(Duration::from_micros(pause)).await;
        }
        Ok(())
    }

    /// What a client does next.
    fn wish(&self, dice: &mut Dice, client: &Client) -> Request {
        let value = self.next.fetch_add(1, Ordering::Relaxed);
        let create = |value| Request {
            id: format!("chaos-{value}"),
            action: Action::Create { value },
            number: value,
            node: None,
            target: None,
        };
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let known = known.entry(client.tenant().id.clone()).or_default();
        if known.live.len() < 3 || dice.below(12) == 0 {
            return create(value);
        }
        // Sometimes one that was deleted or is left alone: it must answer as it should, too.
        let at = dice.index(known.live.len());
        let old =
            (dice.below(25) == 0 && !known.left.is_empty()).then(|| known.left[dice.index(known.left.len())].clone());
        let is_old = old.is_some();
        let one = old.unwrap_or_else(|| known.live[at].clone());
        let (action, target) = match dice.below(100) {
            _ if is_old && dice.below(2) == 0 => (Action::Query, None),
            _ if is_old => (Action::Read, None),
            0..=34 => (Action::Read, None),
            35..=54 => (Action::Write { value }, None),
            55..=74 => {
                // Mostly the version that it was told last.
                let expected = one.version.saturating_sub(u32::from(dice.below(6) == 0)).max(1);
                (Action::Cas { expected, value }, None)
            }
            75..=84 => (Action::Query, None),
            85..=94 => {
                let other = known.live[(at + 1) % known.live.len()].clone();
                let to = key(&client.tenant().id, other.number);
                (Action::Link { to }, Some(other.id))
            }
            _ => (Action::Delete, None),
        };
        if !is_old {
            known.live[at].operations += 1;
            if known.live[at].operations > OPERATIONS_MAX || action == Action::Delete {
                let done = known.live.remove(at);
                known.left.push(done);
            }
        }
        Request {
            id: format!("chaos-{value}"),
            action,
            number: one.number,
            node: Some(one.id),
            target,
        }
    }

    /// Does it, writes it down, and remembers what was learned.
    async fn perform(&self, process: u32, client: &mut Client, request: &Request, repeat: bool) -> Result<Outcome> {
        let tenant = client.tenant().id.clone();
        let start = self.recorder.now();
        let (outcome, attempts) = client.run(request).await;
        let end = (!matches!(outcome, Outcome::Unknown { .. })).then(|| self.recorder.now());
        let operation = Operation {
            process,
            request_id: request.id.clone(),
            key: key(&tenant, request.number),
            action: request.action.clone(),
            start,
            end,
            attempts,
            repeat,
            outcome: outcome.clone(),
        };
        self.recorder.record(&operation)?;
        if let (Outcome::Ok { answer }, false) = (&outcome, repeat) {
            self.learn(&tenant, request, answer);
        }
        Ok(outcome)
    }

    fn learn(&self, tenant: &str, request: &Request, answer: &Answer) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let known = known.entry(tenant.to_owned()).or_default();
        let version = match answer {
            Answer::Created { id, version, .. } => {
                known.live.push(Live {
                    number: request.number,
                    id: id.clone(),
                    version: *version,
                    operations: 0,
                });
                if known.live.len() > LIVE_MAX {
                    let oldest = known.live.remove(0);
                    known.left.push(oldest);
                }
                return;
            }
            Answer::Updated { version } | Answer::Value { version, .. } => *version,
            Answer::Conflict { current } => *current,
            _ => return,
        };
        if let Some(live) = known.live.iter_mut().find(|live| live.number == request.number) {
            live.version = version;
        }
    }

    /// Full service: through every gateway every tenant can store and then read it. Gives the time that it took.
    pub async fn until_served(&self, longest: Duration) -> Result<Duration> {
        let began = Instant::now();
        for gateway in 0..self.urls.len() {
            for (process, tenant) in (0..).zip(&self.tenants) {
                let urls: Arc<[String]> = Arc::from([self.urls[gateway].clone()]);
                let mut client = Client::new(urls, tenant, 0)?;
                loop {
                    match self.serve_one(9_000 + process, &mut client).await? {
                        Ok(()) => break,
                        Err(problem) if began.elapsed() > longest => bail!(
                            "tenant {} is not served through gateway {} after {:?}: {problem}",
                            tenant.id,
                            gateway + 1,
                            began.elapsed()
                        ),
                        Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
                    }
                }
            }
        }
        Ok(began.elapsed())
    }

    /// The inner error is one of the cluster, the outer one of ours.
    async fn serve_one(&self, process: u32, client: &mut Client) -> Result<Result<(), String>> {
        let value = self.next.fetch_add(1, Ordering::Relaxed);
        let mut request = Request {
            id: format!("chaos-{value}"),
            action: Action::Create { value },
            number: value,
            node: None,
            target: None,
        };
        let id = match self.perform(process, client, &request, false).await? {
            Outcome::Ok {
                answer: Answer::Created { id, .. },
            } => id,
            other => return Ok(Err(format!("{other:?}"))),
        };
        request.id.push_str("-read");
        request.action = Action::Read;
        request.node = Some(id);
        Ok(match self.perform(process, client, &request, false).await? {
            Outcome::Ok { .. } => Ok(()),
            other => Err(format!("{other:?}")),
        })
    }

    /// After everything: what was never answered is asked again under its old request id, every memory is written and
    /// read once more, and everything that is there is looked at.
    pub async fn finish(&self, history: &[Operation]) -> Result<Graph> {
        let mut graph = Graph::default();
        for (process, tenant) in (9_100..).zip(&self.tenants) {
            let mut client = Client::new(Arc::clone(&self.urls), tenant, 0)?;
            let ids = self.ids(&tenant.id);
            let own = format!("{}/", tenant.id);
            for operation in history.iter().filter(|operation| operation.key.starts_with(&own)) {
                if operation.is_unknown() && operation.action.writes() && !operation.repeat {
                    self.ask_again(process, &mut client, operation, &ids).await?;
                }
            }
            for (&number, id) in &self.ids(&tenant.id) {
                self.last_look(process, &mut client, number, id).await?;
            }
            add(&mut graph, &tenant.id, &client.export().await?)?;
        }
        Ok(graph)
    }

    /// Numbers and ids of all memories that were acknowledged.
    fn ids(&self, tenant: &str) -> BTreeMap<u64, String> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(known) = known.get(tenant) else {
            return BTreeMap::new();
        };
        let all = known.live.iter().chain(&known.left);
        all.map(|one| (one.number, one.id.clone())).collect()
    }

    async fn ask_again(
        &self,
        process: u32,
        client: &mut Client,
        operation: &Operation,
        ids: &BTreeMap<u64, String>,
    ) -> Result<()> {
        let number = number_of(&operation.key).context("a key of ours")?;
        let target = match &operation.action {
            Action::Link { to } => number_of(to).and_then(|number| ids.get(&number).cloned()),
            _ => None,
        };
        let request = Request {
            id: operation.request_id.clone(),
            action: operation.action.clone(),
            number,
            node: ids.get(&number).cloned(),
            target,
        };
        self.perform(process, client, &request, true).await?;
        Ok(())
    }

    async fn last_look(&self, process: u32, client: &mut Client, number: u64, id: &str) -> Result<()> {
        for write in [true, false] {
            let value = self.next.fetch_add(1, Ordering::Relaxed);
            let request = Request {
                id: format!("chaos-{value}"),
                action: if write { Action::Write { value } } else { Action::Read },
                number,
                node: Some(id.to_owned()),
                target: None,
            };
            let outcome = self.perform(process, client, &request, false).await?;
            ensure!(
                matches!(outcome, Outcome::Ok { .. }),
                "{} of {} at the end: {outcome:?}",
                request.action.word(),
                key(&client.tenant().id, number)
            );
        }
        Ok(())
    }
}

fn key(tenant: &str, number: u64) -> String {
    format!("{tenant}/{}-{number}", texts::name(number))
}

fn number_of(key: &str) -> Option<u64> {
    key.rsplit('-').next()?.parse().ok()
}

/// What an export says.
fn add(graph: &mut Graph, tenant: &str, export: &Value) -> Result<()> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let list = |field: &str| export[field].as_array().cloned().unwrap_or_default();
    for node in list("nodes") {
        let label = node["label"].as_str().unwrap_or_default();
        let name = texts::name_in(label);
        // The name gives the number back: the first value of its tags need not be its number.
        let number = texts::number(name).map_or_else(String::new, |number| number.to_string());
        graph.memories.push(Memory {
            key: format!("{tenant}/{name}-{number}"),
            id: text(&node["id"]).with_context(|| format!("an id in {node}"))?,
            version: node["version"]
                .as_u64()
                .and_then(|version| u32::try_from(version).ok())
                .unwrap_or(0),
            value: client::value_of(&node["tags"]).unwrap_or(0),
        });
    }
    for edge in list("edges") {
        let end = |field: &str| text(&edge[field]).with_context(|| format!("{field} in {edge}"));
        graph.links.push(Link {
            id: end("id")?,
            source: end("source_id")?,
            target: end("target_id")?,
        });
    }
    Ok(())
}
