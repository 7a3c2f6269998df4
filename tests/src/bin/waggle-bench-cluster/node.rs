//! Calls of a node's gRPC services, sent as a gateway sends them: over mutual TLS, to the leader of the tenant's shard.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use futures::stream::{StreamExt as _, TryStreamExt as _};
use tonic::Status;
use tonic::transport::Channel;
use waggle_config::certificates::{self, Role, Subject};
use waggle_config::peer_tls::PeerTls;
use waggle_config::runtime::clock::System;
use waggle_memory::id::TenantId;
use waggle_memory::kind::Kind;
use waggle_memory::meta::Slot;
use waggle_proto::wire::memory_service_client::MemoryServiceClient;
use waggle_proto::wire::meta_service_client::MetaServiceClient;
use waggle_proto::wire::{self, CallContext, KeyInfo};
use waggle_tests::texts;

use crate::cluster::{ONE, Running};
use crate::drive::{Call, connections, noise};
use crate::settings::VALUE_BYTES;

pub(crate) const PROJECT: &str = "bench";
const PRINCIPAL: &str = "bench";
/// The shard of tenants and keys.
const META: u32 = 0;
/// A tag has 64 bytes at most: eight of them carry a value.
const TAG_BYTES: usize = 64;
const FILLERS: usize = 16;
const LEADERS_MAX: Duration = Duration::from_secs(60);
/// Without a change for this long, nodes have handed over what they want to.
const SETTLED: Duration = Duration::from_secs(12);
const DRAIN_MAX: Duration = Duration::from_secs(600);

/// A tenant with memories.
#[derive(Clone, Debug)]
pub(crate) struct Tenant {
    pub(crate) name: String,
    pub(crate) shard: u32,
    memories: Arc<Vec<Vec<u8>>>,
}

/// The nodes of a cluster that runs, and who leads what.
pub(crate) struct Nodes {
    tls: PeerTls,
    addresses: HashMap<u64, String>,
    pids: Vec<u32>,
    placement: wire::Placement,
    leaders: Mutex<HashMap<u32, u64>>,
    looking: tokio::sync::Mutex<()>,
    /// Makes request ids and keys of this process its own.
    run: u32,
    next: Arc<AtomicU64>,
}

/// Connections to the leaders of some shards. The other nodes have one each, which is not opened before they lead.
struct Routes {
    nodes: Arc<Nodes>,
    channels: HashMap<u64, Vec<Channel>>,
}

impl Nodes {
    /// Waits until every shard has a leader.
    pub(crate) async fn find(running: &Running) -> Result<Self> {
        let subject = Subject {
            role: Role::Gateway,
            id: 1,
        };
        let files = certificates::files(&running.data.join("certificates"), subject);
        let tls =
            PeerTls::load(files, Role::Gateway, Arc::new(System::new())).context("read a gateway's certificate")?;
        let mut random = [0; 4];
        getrandom::fill(&mut random).context("get randomness")?;
        let mut nodes = Self {
            tls,
            addresses: running
                .nodes
                .iter()
                .map(|node| (node.id, node.address.clone()))
                .collect(),
            pids: running.pids(),
            placement: wire::Placement::default(),
            leaders: Mutex::default(),
            looking: tokio::sync::Mutex::default(),
            run: u32::from_le_bytes(random),
            next: Arc::default(),
        };
        // A cluster that has just started hands its shards out among its nodes.
        let deadline = Instant::now() + LEADERS_MAX;
        let (mut seen, mut since) = (HashMap::new(), Instant::now());
        loop {
            let looked = nodes.look().await;
            match looked {
                Ok((placement, leaders)) => {
                    nodes.placement = placement;
                    if leaders != seen {
                        (seen, since) = (leaders, Instant::now());
                    } else if since.elapsed() > SETTLED || Instant::now() > deadline {
                        nodes.leaders = Mutex::new(seen);
                        return Ok(nodes);
                    }
                }
                Err(error) if Instant::now() > deadline => return Err(error),
                Err(_) => since = Instant::now(),
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    /// The placement, and a leader for each shard of it.
    async fn look(&self) -> Result<(wire::Placement, HashMap<u32, u64>)> {
        let mut leaders = HashMap::new();
        let mut placement = wire::Placement::default();
        for &node in self.addresses.keys() {
            let mut client = MetaServiceClient::new(self.channel(node)?);
            let status = client.node_status(wire::NodeStatusRequest {}).await?.into_inner();
            let led = status.shards.iter().filter(|shard| shard.is_leader);
            leaders.extend(led.map(|shard| (shard.shard, node)));
            placement = client.get_placement(wire::GetPlacementRequest {}).await?.into_inner();
        }
        for shard in placement.shards.iter().map(|shard| shard.shard).chain([META]) {
            ensure!(leaders.contains_key(&shard), "shard {shard} has no leader");
        }
        Ok((placement, leaders))
    }

    /// After a call was refused: whoever leads may have changed.
    async fn answer<T>(&self, answered: Result<tonic::Response<T>, Status>) -> Result<T> {
        match answered {
            Ok(reply) => Ok(reply.into_inner()),
            Err(status) => {
                if let Ok(_alone) = self.looking.try_lock()
                    && let Ok((_, leaders)) = self.look().await
                {
                    *self.leaders() = leaders;
                }
                Err(status.into())
            }
        }
    }

    fn leaders(&self) -> MutexGuard<'_, HashMap<u32, u64>> {
        self.leaders.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn pids(&self) -> Vec<u32> {
        self.pids.clone()
    }

    fn leader(&self, shard: u32) -> Result<u64> {
        let leader = self.leaders().get(&shard).copied();
        leader.with_context(|| format!("shard {shard} has no leader"))
    }

    fn channel(&self, node: u64) -> Result<Channel> {
        let address = self.addresses.get(&node).with_context(|| format!("no node {node}"))?;
        let subject = Subject {
            role: Role::Node,
            id: node,
        };
        Ok(self.tls.channel(subject, address)?)
    }

    /// New connections, shared out among the leaders of these shards.
    fn routes(self: &Arc<Self>, shards: impl Iterator<Item = u32>, clients: usize) -> Result<Arc<Routes>> {
        let led: BTreeSet<u64> = shards.map(|shard| self.leader(shard)).collect::<Result<_>>()?;
        let led: Vec<u64> = led.into_iter().collect();
        let mut channels: HashMap<u64, Vec<Channel>> = HashMap::new();
        for at in 0..connections(clients).max(led.len()) {
            let node = led[at % led.len()];
            channels.entry(node).or_default().push(self.channel(node)?);
        }
        for &node in self.addresses.keys() {
            if let Entry::Vacant(place) = channels.entry(node) {
                place.insert(vec![self.channel(node)?]);
            }
        }
        let nodes = Arc::clone(self);
        Ok(Arc::new(Routes { nodes, channels }))
    }

    fn shard_of(&self, tenant: &str) -> Result<u32> {
        let id: TenantId = tenant.parse().map_err(|bad| anyhow::anyhow!("{tenant}: {bad}"))?;
        let shard = self.placement.slots.get(usize::from(Slot::of(&id).0)).copied();
        shard.context("the placement is incomplete")
    }

    pub(crate) fn placement_version(&self) -> u64 {
        self.placement.version
    }

    /// Memories of a tenant, each with a text of its own.
    pub(crate) async fn fill(&self, name: &str, count: usize) -> Result<Tenant> {
        let shard = self.shard_of(name)?;
        let channel = self.channel(self.leader(shard)?)?;
        let memories = futures::stream::iter(0..u64::try_from(count)?)
            .map(|number| {
                let mut client = MemoryServiceClient::new(channel.clone());
                let (label, content) = texts::fact(number);
                let request = wire::StoreMemoryRequest {
                    context: Some(self.context(name, shard, String::new())),
                    scope: Some(scope()),
                    label,
                    content,
                    kind: u32::from(Kind::Fact.number()),
                    ..Default::default()
                };
                async move {
                    let reply = client
                        .store_memory(request)
                        .await
                        .context("fill a tenant")?
                        .into_inner();
                    let memory = reply.stored.and_then(|stored| stored.memory);
                    anyhow::Ok(memory.context("an answer without a memory")?.id)
                }
            })
            .buffered(FILLERS)
            .try_collect::<Vec<_>>()
            .await?;
        Ok(Tenant {
            name: name.to_owned(),
            shard,
            memories: Arc::new(memories),
        })
    }

    /// Keys with names of their own, for reading one.
    pub(crate) async fn fill_keys(&self, count: usize) -> Result<()> {
        let mut client = MetaServiceClient::new(self.channel(self.leader(META)?)?);
        let tenant = wire::CreateTenantRequest {
            principal: PRINCIPAL.to_owned(),
            tenant_id: ONE.to_owned(),
            name: ONE.to_owned(),
        };
        client.create_tenant(tenant).await.context("make a tenant")?;
        for number in 0..u64::try_from(count)? {
            client
                .create_key(key_request(format!("fixed{number:012}"), number))
                .await
                .context("make a key")?;
        }
        Ok(())
    }

    /// Waits until no memory awaits its vector.
    pub(crate) async fn drain(&self, tenant: &Tenant) -> Result<()> {
        let mut client = MemoryServiceClient::new(self.channel(self.leader(tenant.shard)?)?);
        let deadline = Instant::now() + DRAIN_MAX;
        loop {
            let request = wire::StatsRequest {
                context: Some(self.context(&tenant.name, tenant.shard, String::new())),
                project: String::new(),
            };
            let stats = client.stats(request).await.context("ask for statistics")?.into_inner();
            match stats.awaiting_vectors {
                0 => return Ok(()),
                left if Instant::now() > deadline => bail!("{left} memories of {} still await a vector", tenant.name),
                _ => tokio::time::sleep(Duration::from_millis(50)).await,
            }
        }
    }

    fn context(&self, tenant: &str, shard: u32, request_id: String) -> CallContext {
        CallContext {
            tenant: tenant.to_owned(),
            principal: PRINCIPAL.to_owned(),
            shard,
            placement_version: self.placement_version(),
            request_id,
            arguments_fingerprint: 0,
        }
    }

    /// Tags of a memory are replaced by others: one command, no text that would be embedded.
    pub(crate) fn updates(self: &Arc<Self>, tenants: &[Tenant], clients: usize, round: u32) -> Result<Call> {
        let routes = self.routes(tenants.iter().map(|tenant| tenant.shard), clients)?;
        let (nodes, tenants) = (Arc::clone(self), tenants.to_vec());
        Ok(Arc::new(move |client, number| {
            let (tenant, id) = chosen(&tenants, number);
            let own = nodes.next.fetch_add(1, Ordering::Relaxed);
            let value = noise(own ^ (u64::from(nodes.run) << 32), VALUE_BYTES);
            let tags = (0..VALUE_BYTES / TAG_BYTES)
                .filter_map(|at| value.get(at * TAG_BYTES..(at + 1) * TAG_BYTES))
                .map(str::to_owned)
                .collect();
            let request_id = format!("bench-{}-{round}-{own}", nodes.run);
            let request = wire::UpdateMemoryRequest {
                context: Some(nodes.context(&tenant.name, tenant.shard, request_id)),
                id,
                tags: Some(wire::TagList { tags }),
                ..Default::default()
            };
            let channel = routes.to(tenant.shard, client);
            let nodes = Arc::clone(&nodes);
            Box::pin(async move {
                let answered = MemoryServiceClient::new(channel?).update_memory(request).await;
                nodes.answer(answered).await.map(drop)
            })
        }))
    }

    /// One memory by its id, without neighbours.
    pub(crate) fn related(self: &Arc<Self>, tenants: &[Tenant], clients: usize) -> Result<Call> {
        let routes = self.routes(tenants.iter().map(|tenant| tenant.shard), clients)?;
        let (nodes, tenants) = (Arc::clone(self), tenants.to_vec());
        Ok(Arc::new(move |client, number| {
            let (tenant, id) = chosen(&tenants, number);
            let request = wire::RelatedRequest {
                context: Some(nodes.context(&tenant.name, tenant.shard, String::new())),
                id,
                max_depth: 0,
                include_invalidated: false,
                limit: 1,
            };
            let channel = routes.to(tenant.shard, client);
            let nodes = Arc::clone(&nodes);
            Box::pin(async move {
                let answered = MemoryServiceClient::new(channel?).related(request).await;
                let reply = nodes.answer(answered).await?;
                ensure!(reply.nodes.len() == 1, "the memory is not there");
                Ok(())
            })
        }))
    }

    /// A new row of the meta shard: the least that a service of ours does for a replicated command.
    pub(crate) fn create_keys(self: &Arc<Self>, clients: usize) -> Result<Call> {
        let routes = self.routes([META].into_iter(), clients)?;
        let nodes = Arc::clone(self);
        Ok(Arc::new(move |client, _| {
            let own = nodes.next.fetch_add(1, Ordering::Relaxed);
            let request = key_request(format!("k{:08x}{own:016x}", nodes.run), own);
            let channel = routes.to(META, client);
            let nodes = Arc::clone(&nodes);
            Box::pin(async move {
                let answered = MetaServiceClient::new(channel?).create_key(request).await;
                nodes.answer(answered).await.map(drop)
            })
        }))
    }

    pub(crate) fn find_keys(self: &Arc<Self>, clients: usize, count: usize) -> Result<Call> {
        let routes = self.routes([META].into_iter(), clients)?;
        let (nodes, count) = (Arc::clone(self), u64::try_from(count)?);
        Ok(Arc::new(move |client, number| {
            let key_id = format!("fixed{:012}", scattered(number) % count);
            let channel = routes.to(META, client);
            let nodes = Arc::clone(&nodes);
            Box::pin(async move {
                let request = wire::FindKeyRequest { key_id };
                let answered = MetaServiceClient::new(channel?).find_key(request).await;
                let reply = nodes.answer(answered).await?;
                ensure!(reply.key.is_some(), "the key is not there");
                Ok(())
            })
        }))
    }

    /// A key of a tenant, without limits, for agents.
    pub(crate) async fn admit(&self, tenant: &str, key: &waggle_gateway::keys::ApiKeyText, pepper: &str) -> Result<()> {
        let mut client = MetaServiceClient::new(self.channel(self.leader(META)?)?);
        let made = wire::CreateTenantRequest {
            principal: PRINCIPAL.to_owned(),
            tenant_id: tenant.to_owned(),
            name: tenant.to_owned(),
        };
        client.create_tenant(made).await.context("make a tenant")?;
        let request = wire::CreateKeyRequest {
            principal: PRINCIPAL.to_owned(),
            key: Some(KeyInfo {
                key_id: key.kid().to_owned(),
                tenant_id: tenant.to_owned(),
                name: PRINCIPAL.to_owned(),
                scopes: u32::from(waggle_memory::meta::KeyScopes::ALL.bits()),
                created_by: PRINCIPAL.to_owned(),
                unlimited: true,
                ..Default::default()
            }),
            secret_hash: key.keyed_hash(pepper.as_bytes()).to_vec(),
        };
        client.create_key(request).await.context("make a key")?;
        Ok(())
    }
}

impl Routes {
    fn to(&self, shard: u32, client: usize) -> Result<Channel> {
        let leader = self.nodes.leader(shard)?;
        let channels = self.channels.get(&leader).filter(|channels| !channels.is_empty());
        let channels = channels.with_context(|| format!("no connection to node {leader}"))?;
        Ok(channels[client % channels.len()].clone())
    }
}

fn scattered(number: u64) -> u64 {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// The tenant and the memory of a call: neighbours in time never share a memory.
fn chosen(tenants: &[Tenant], number: u64) -> (&Tenant, Vec<u8>) {
    let count = tenants.len() as u64;
    let tenant = &tenants[usize::try_from(number % count).unwrap_or(0)];
    let at = number / count % tenant.memories.len().max(1) as u64;
    let id = tenant.memories.get(usize::try_from(at).unwrap_or(0)).cloned();
    (tenant, id.unwrap_or_default())
}

fn scope() -> wire::Scope {
    wire::Scope {
        project: PROJECT.to_owned(),
        ..Default::default()
    }
}

/// 512 bytes in the two texts of a key.
fn key_request(key_id: String, seed: u64) -> wire::CreateKeyRequest {
    wire::CreateKeyRequest {
        principal: PRINCIPAL.to_owned(),
        key: Some(KeyInfo {
            key_id,
            tenant_id: ONE.to_owned(),
            name: noise(seed, VALUE_BYTES / 2),
            created_by: noise(!seed, VALUE_BYTES / 2),
            ..Default::default()
        }),
        secret_hash: vec![7; 32],
    }
}
