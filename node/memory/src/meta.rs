//! What the meta shard holds: the cluster, its placement, tenants and API keys.

use std::fmt;
use std::str::FromStr;

use crate::id::{Principal, TenantId};
use crate::time::Millis;

/// One Raft group. Shard 0 is the meta shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ShardId(pub u32);

impl ShardId {
    /// The meta shard.
    pub const META: Self = Self(0);
}

impl fmt::Display for ShardId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "shd_{}", self.0)
    }
}

/// One server process of the cluster; allocated once, never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u64);

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "nod_{}", self.0)
    }
}

/// One hash bucket of tenants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot(pub u16);

impl Slot {
    /// Number of slots of a cluster; fixed for ever.
    pub const COUNT: u16 = 4096;

    /// The slot of a tenant: xxh3 of its id, modulo the number of slots.
    pub fn of(tenant: &TenantId) -> Self {
        let bucket = xxhash_rust::xxh3::xxh3_64(tenant.as_str().as_bytes()) % u64::from(Self::COUNT);
        Self(u16::try_from(bucket).unwrap_or(0))
    }
}

/// Identity of a whole cluster, 128 random bits.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ClusterId(pub [u8; 16]);

impl fmt::Display for ClusterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for byte in self.0 {
            write!(f, "{byte:02x}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for ClusterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ClusterId({self})")
    }
}

/// Slots to shards, shards to replicas, and the nodes that hold them. Every change raises `version` by one and is
/// accepted only from the version before (a compare-and-set). What changes next is decided in [`crate::placement`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// The cluster that it belongs to.
    pub cluster: ClusterId,
    /// Counts changes.
    pub version: u64,
    /// Owner of each slot, [`Slot::COUNT`] entries.
    pub slots: Vec<ShardId>,
    /// Every shard, the meta shard included, in the order of their numbers.
    pub shards: Vec<ShardPlacement>,
    /// Every node that ever joined, in the order of their numbers. One that is gone stays as [`NodeState::Gone`], so
    /// that its number is never given to another.
    pub nodes: Vec<NodeInfo>,
    /// Replicas that each shard is to have: 1, 3 or 5.
    pub replication: u32,
    /// Number of the next replica. Never goes back: a replica's number is used once in the life of a cluster.
    pub next_replica: u64,
}

/// Where the replicas of one shard are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShardPlacement {
    /// Which.
    pub shard: ShardId,
    /// Its replicas, in the order of their numbers.
    pub replicas: Vec<Replica>,
}

/// One copy of a shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replica {
    /// Its number inside consensus.
    pub id: u64,
    /// The node that holds it.
    pub node: NodeId,
    /// How far it is.
    pub state: ReplicaState,
}

/// The life of a replica. The leader of the shard turns it into changes of the membership.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplicaState {
    /// Receives what there is, and does not vote yet.
    Joining,
    /// Votes.
    Voting,
    /// Is to leave; forgotten when the membership no longer has it.
    Leaving,
}

impl ReplicaState {
    /// The number of the persisted format.
    pub const fn number(self) -> u8 {
        match self {
            Self::Joining => 1,
            Self::Voting => 2,
            Self::Leaving => 3,
        }
    }

    /// Reads the number of the persisted format.
    pub const fn from_number(number: u8) -> Option<Self> {
        Some(match number {
            1 => Self::Joining,
            2 => Self::Voting,
            3 => Self::Leaving,
            _ => return None,
        })
    }

    /// The word of messages.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Joining => "joining",
            Self::Voting => "voting",
            Self::Leaving => "leaving",
        }
    }
}

/// A node as the cluster knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeInfo {
    /// Which.
    pub id: NodeId,
    /// Where other processes reach it, host:port. Empty in a cluster of one process.
    pub address: String,
    /// What fails together, such as a rack; empty if nobody said.
    pub zone: String,
    /// What it is for.
    pub state: NodeState,
    /// When it joined.
    pub joined_at: Millis,
    /// Drawn when its data directory was made. A node that lost its directory has another one, and is not let in again
    /// under its old number: it would vote without what it acknowledged.
    pub incarnation: [u8; 16],
}

/// What a node is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeState {
    /// Holds replicas and leads shards.
    Active,
    /// Holds its replicas and leads nothing: it is about to be maintained.
    Draining,
    /// Gives its replicas away.
    Decommissioning,
    /// Holds nothing and never will again.
    Gone,
}

impl NodeState {
    /// The number of the persisted format.
    pub const fn number(self) -> u8 {
        match self {
            Self::Active => 1,
            Self::Draining => 2,
            Self::Decommissioning => 3,
            Self::Gone => 4,
        }
    }

    /// Reads the number of the persisted format.
    pub const fn from_number(number: u8) -> Option<Self> {
        Some(match number {
            1 => Self::Active,
            2 => Self::Draining,
            3 => Self::Decommissioning,
            4 => Self::Gone,
            _ => return None,
        })
    }

    /// The word of messages.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Draining => "draining",
            Self::Decommissioning => "decommissioning",
            Self::Gone => "gone",
        }
    }
}

/// Lets one new node in. Only a hash of its secret is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JoinToken {
    /// Finds it.
    pub id: KeyId,
    /// SHA-256 of the secret.
    pub secret_hash: Vec<u8>,
    /// No use after this moment.
    pub expires_at: Millis,
    /// The node that used it; nobody else can.
    pub used_by: Option<NodeId>,
}

impl Placement {
    /// A fresh cluster: slots dealt round robin over `shard_count` data shards, all on `node`.
    pub fn initial(cluster: ClusterId, node: NodeInfo, shard_count: u32, replication: u32) -> Self {
        let shard_count = shard_count.max(1);
        // The first replica of every shard has the number of the first node.
        let first = Replica {
            id: node.id.0,
            node: node.id,
            state: ReplicaState::Voting,
        };
        Self {
            cluster,
            version: 1,
            slots: (0..u32::from(Slot::COUNT))
                .map(|slot| ShardId(1 + slot % shard_count))
                .collect(),
            shards: (0..=shard_count)
                .map(|shard| ShardPlacement {
                    shard: ShardId(shard),
                    replicas: vec![first.clone()],
                })
                .collect(),
            replication,
            next_replica: node.id.0 + 1,
            nodes: vec![node],
        }
    }

    /// The shard that owns a tenant.
    pub fn shard_of(&self, tenant: &TenantId) -> Option<ShardId> {
        self.slots.get(usize::from(Slot::of(tenant).0)).copied()
    }

    /// A shard's replicas.
    pub fn shard(&self, shard: ShardId) -> Option<&ShardPlacement> {
        self.shards.iter().find(|known| known.shard == shard)
    }

    /// What is known of a node.
    pub fn node(&self, node: NodeId) -> Option<&NodeInfo> {
        self.nodes.iter().find(|known| known.id == node)
    }

    /// The replicas that a node is to hold.
    pub fn replicas_on(&self, node: NodeId) -> impl Iterator<Item = (ShardId, &Replica)> {
        self.shards.iter().flat_map(move |shard| {
            let held = shard.replicas.iter().filter(move |replica| replica.node == node);
            held.map(move |replica| (shard.shard, replica))
        })
    }
}

/// A tenant as the meta shard knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tenant {
    /// Its identity.
    pub id: TenantId,
    /// Display name.
    pub name: String,
    /// When.
    pub created_at: Millis,
}

/// Public part of an API key; it finds the row.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyId(pub String);

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// An API key without its secret: only a keyed hash of the secret is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiKey {
    /// Finds it.
    pub id: KeyId,
    /// The tenant that it opens.
    pub tenant: TenantId,
    /// What people call it.
    pub name: String,
    /// HMAC-SHA256 of the secret under the cluster's pepper.
    pub secret_hash: Vec<u8>,
    /// What it may do.
    pub scopes: KeyScopes,
    /// A label, not a principal.
    pub created_by: String,
    /// When.
    pub created_at: Millis,
    /// No use after this moment; None = no end.
    pub expires_at: Option<Millis>,
    /// No use from this moment on.
    pub revoked_at: Option<Millis>,
    /// Freed from rate limits: the key that `waggle dev` prints.
    pub unlimited: bool,
}

impl ApiKey {
    /// The author of everything done with it.
    pub fn principal(&self) -> Principal {
        Principal(format!("key:{}", self.id))
    }
}

/// Set of key scopes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeyScopes(u8);

impl KeyScopes {
    /// Recall.
    pub const GRAPH_READ: Self = Self(1);
    /// Store, change, delete.
    pub const GRAPH_WRITE: Self = Self(2);
    /// Look at administration.
    pub const ADMIN_READ: Self = Self(4);
    /// Administer.
    pub const ADMIN_WRITE: Self = Self(8);
    /// Everything.
    pub const ALL: Self = Self(15);

    const WORDS: [(Self, &'static str); 4] = [
        (Self::GRAPH_READ, "graph:read"),
        (Self::GRAPH_WRITE, "graph:write"),
        (Self::ADMIN_READ, "admin:read"),
        (Self::ADMIN_WRITE, "admin:write"),
    ];

    /// The union of two sets.
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether every scope of `needed` is in this set.
    pub const fn contains(self, needed: Self) -> bool {
        self.0 & needed.0 == needed.0
    }

    /// The bits of the persisted format.
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// Reads the bits of the persisted format; unknown bits are dropped.
    pub const fn from_bits(bits: u8) -> Self {
        Self(bits & Self::ALL.0)
    }

    /// The words, in a fixed order.
    pub fn words(self) -> Vec<&'static str> {
        Self::WORDS
            .iter()
            .filter(|(scope, _)| self.contains(*scope))
            .map(|(_, word)| *word)
            .collect()
    }
}

impl FromStr for KeyScopes {
    type Err = String;

    /// Reads one word.
    fn from_str(word: &str) -> Result<Self, String> {
        Self::WORDS
            .iter()
            .find(|(_, known)| *known == word)
            .map(|(scope, _)| *scope)
            .ok_or_else(|| {
                format!(
                    "unknown scope '{}'; allowed: graph:read, graph:write, admin:read, admin:write",
                    word.escape_debug()
                )
            })
    }
}
