//! What the tests of consensus over RocksDB share.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    dead_code,
    reason = "a test; not every binary uses all of it"
)]

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use waggle_memory::command::{Command, NewTurn, Remember};
use waggle_memory::id::{PairId, Principal, TurnId};
use waggle_memory::kind::Role;
use waggle_memory::memory::VectorDraft;
use waggle_memory::meta::{ClusterId, NodeId, ShardId, Tenant};
use waggle_memory::scope::Scope;
use waggle_memory::tables::{Key, TenantKey};
use waggle_memory::time::Millis;
use waggle_shard::{
    ApplyObserver, Clock, Config, Member, NoObserver, NoRemote, Origin, Ports, Proposal, ReplicaConfig, Settings,
    Shards,
};
use waggle_store::{Database, Identity, RaftStore, Start, StoreOptions};

pub(crate) const OURS: Identity = Identity {
    cluster: ClusterId([0x5a; 16]),
    node: NodeId(1),
};
pub(crate) const TIMEOUT: Duration = Duration::from_secs(10);

pub(crate) struct WallClock;

impl Clock for WallClock {
    fn now(&self) -> Millis {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        Millis(i64::try_from(since.as_millis()).unwrap())
    }
}

pub(crate) fn open_store(path: &Path) -> Arc<RaftStore> {
    let start = if path.join("identity").exists() {
        Start::Known(OURS)
    } else {
        Start::Fresh(OURS)
    };
    let database = Database::open(path, &StoreOptions::development(start)).unwrap();
    RaftStore::start(database, Box::new(|fault| panic!("{fault}"))).unwrap()
}

/// Shards 0 to `count - 1`, each with this one replica.
pub(crate) fn config(count: u32, origin: impl Fn(u64) -> Origin) -> Config {
    let replicas = (0..count).map(|number| {
        let replica = u64::from(number) + 1;
        ReplicaConfig {
            shard: ShardId(number),
            replica,
            origin: origin(replica),
        }
    });
    Config {
        replicas: replicas.collect(),
        settings: Settings::default(),
    }
}

pub(crate) fn new(replica: u64) -> Origin {
    Origin::New {
        members: BTreeMap::from([(replica, Member::new(NodeId(1), "127.0.0.1:7301"))]),
    }
}

pub(crate) async fn start(store: &Arc<RaftStore>, config: Config) -> Shards {
    start_observed(store, config, Arc::new(NoObserver)).await
}

pub(crate) async fn start_observed(store: &Arc<RaftStore>, config: Config, observer: Arc<dyn ApplyObserver>) -> Shards {
    let ports = Ports {
        storage: Arc::clone(store),
        wire: Arc::new(NoRemote),
        observer,
        clock: Arc::new(WallClock),
    };
    let shards = Shards::start(config, ports).await.unwrap();
    shards.wait_ready(TIMEOUT).await.unwrap();
    shards
}

pub(crate) async fn stop(shards: Shards, store: Arc<RaftStore>) {
    shards.shutdown(TIMEOUT).await.unwrap();
    tokio::task::spawn_blocking(move || store.close()).await.unwrap();
}

/// A write that leaves rows behind.
pub(crate) fn create_tenant(number: u32) -> Proposal {
    let id = format!("tenant-{number:05}").parse().unwrap();
    let tenant = Tenant {
        id,
        name: format!("Tenant {number}"),
        created_at: Millis(0),
    };
    Proposal {
        principal: Principal("key:test".to_owned()),
        request: None,
        command: Command::CreateTenant(tenant),
    }
}

const TENANT: &str = "acme";

/// A write with effects: one turn of a session.
pub(crate) fn store_turn(number: u32) -> Proposal {
    let id = |sort: u8| {
        let [a, b, c, d] = number.to_be_bytes();
        [1, 2, 3, 4, 5, 6, 0x70, sort, 0x80, 0, 0, 0, a, b, c, d]
    };
    let turn = NewTurn {
        id: TurnId::from_bytes(id(1)),
        role: Role::User,
        text: format!("The {number}th bus to the harbour leaves at noon."),
        observed_at: Millis(1),
        vector: VectorDraft::Pending,
    };
    let remember = Remember {
        tenant: TENANT.parse().unwrap(),
        scope: Scope {
            project: "harbour".to_owned(),
            agent_id: "bee".to_owned(),
            session_id: "s1".to_owned(),
        },
        namespace: "default".to_owned(),
        origin: waggle_memory::kind::Origin::Observe,
        pair: PairId::from_bytes(id(2)),
        turns: vec![turn],
        memories: Vec::new(),
        links: Vec::new(),
    };
    let principal = Principal("key:test".to_owned());
    Proposal {
        principal,
        request: None,
        command: Command::Remember(Box::new(remember)),
    }
}

/// From the first to the last turn that there can be.
pub(crate) fn turns() -> (Key, Key) {
    let key = |id| Key::Tenant(TENANT.parse().unwrap(), TenantKey::Turn(TurnId::from_bytes(id)));
    (key([0; 16]), key([0xff; 16]))
}
