//! What the meta shard holds.

use waggle_memory::command::JoinNode;
use waggle_memory::meta::{
    ApiKey, ClusterId, JoinToken, KeyId, KeyScopes, NodeId, NodeInfo, NodeState, Placement, Replica, ReplicaState,
    ShardId, ShardPlacement, Tenant,
};
use waggle_memory::time::Millis;

use super::generated as pb;
use super::malformed::{Malformed, bounded, id, tenant, word};
use super::message::{Persisted, from_messages, needed, to_messages};

impl Persisted for Placement {
    type Message = pb::Placement;

    fn to_message(&self) -> pb::Placement {
        let shards = self.shards.iter().map(|shard| pb::placement::Shard {
            shard: shard.shard.0,
            nodes: Vec::new(),
            replicas: shard.replicas.iter().map(replica_to_message).collect(),
        });
        pb::Placement {
            cluster: self.cluster.0.to_vec(),
            version: self.version,
            slots: self.slots.iter().map(|shard| shard.0).collect(),
            shards: shards.collect(),
            nodes: to_messages(&self.nodes),
            replication: self.replication,
            next_replica: self.next_replica,
        }
    }

    fn from_message(m: pb::Placement) -> Result<Self, Malformed> {
        bounded("placement.slots", m.slots.len())?;
        bounded("placement.shards", m.shards.len())?;
        bounded("placement.nodes", m.nodes.len())?;
        let cluster = id("placement.cluster", &m.cluster, ClusterId)?;
        if m.replication == 0 {
            return first_form(cluster, &m);
        }
        let shards = m.shards.into_iter().map(|shard| {
            bounded("placement.shards.replicas", shard.replicas.len())?;
            let replicas = shard.replicas.into_iter().map(replica_from_message);
            Ok(ShardPlacement {
                shard: ShardId(shard.shard),
                replicas: replicas.collect::<Result<_, Malformed>>()?,
            })
        });
        Ok(Self {
            cluster,
            version: m.version,
            slots: m.slots.into_iter().map(ShardId).collect(),
            shards: shards.collect::<Result<_, Malformed>>()?,
            nodes: from_messages("placement.nodes", m.nodes)?,
            replication: m.replication,
            next_replica: m.next_replica,
        })
    }
}

/// The placement of a cluster from before there could be several nodes: one node, one replica of everything, and no word
/// of the meta shard.
fn first_form(cluster: ClusterId, m: &pb::Placement) -> Result<Placement, Malformed> {
    let node = m
        .shards
        .iter()
        .flat_map(|shard| &shard.nodes)
        .copied()
        .next()
        .unwrap_or(1);
    let info = NodeInfo {
        id: NodeId(node),
        address: String::new(),
        zone: String::new(),
        state: NodeState::Active,
        joined_at: Millis(0),
        incarnation: [0; 16],
    };
    let shards = u32::try_from(m.shards.len()).unwrap_or(u32::MAX);
    let mut placement = Placement::initial(cluster, info, shards, 1);
    placement.version = m.version;
    placement.slots = m.slots.iter().copied().map(ShardId).collect();
    Ok(placement)
}

fn replica_to_message(replica: &Replica) -> pb::placement::Replica {
    pb::placement::Replica {
        id: replica.id,
        node: replica.node.0,
        state: replica.state.number().into(),
    }
}

fn replica_from_message(m: pb::placement::Replica) -> Result<Replica, Malformed> {
    Ok(Replica {
        id: m.id,
        node: NodeId(m.node),
        state: word("replica.state", m.state, ReplicaState::from_number)?,
    })
}

impl Persisted for NodeInfo {
    type Message = pb::NodeInfo;

    fn to_message(&self) -> pb::NodeInfo {
        pb::NodeInfo {
            id: self.id.0,
            address: self.address.clone(),
            zone: self.zone.clone(),
            state: self.state.number().into(),
            joined_at: self.joined_at.0,
            incarnation: self.incarnation.to_vec(),
        }
    }

    fn from_message(m: pb::NodeInfo) -> Result<Self, Malformed> {
        Ok(Self {
            id: NodeId(m.id),
            address: m.address,
            zone: m.zone,
            state: word("node.state", m.state, NodeState::from_number)?,
            joined_at: Millis(m.joined_at),
            incarnation: id("node.incarnation", &m.incarnation, |bytes| bytes)?,
        })
    }
}

impl Persisted for JoinToken {
    type Message = pb::JoinToken;

    fn to_message(&self) -> pb::JoinToken {
        pb::JoinToken {
            id: self.id.0.clone(),
            secret_hash: self.secret_hash.clone(),
            expires_at: self.expires_at.0,
            used_by: self.used_by.map(|node| node.0),
        }
    }

    fn from_message(m: pb::JoinToken) -> Result<Self, Malformed> {
        Ok(Self {
            id: KeyId(m.id),
            secret_hash: m.secret_hash,
            expires_at: Millis(m.expires_at),
            used_by: m.used_by.map(NodeId),
        })
    }
}

impl Persisted for JoinNode {
    type Message = pb::JoinNode;

    fn to_message(&self) -> pb::JoinNode {
        pb::JoinNode {
            node: Some(self.node.to_message()),
            token: self.token.0.clone(),
            secret_hash: self.secret_hash.clone(),
        }
    }

    fn from_message(m: pb::JoinNode) -> Result<Self, Malformed> {
        Ok(Self {
            node: needed("join.node", m.node)?,
            token: KeyId(m.token),
            secret_hash: m.secret_hash,
        })
    }
}

impl Persisted for Tenant {
    type Message = pb::Tenant;

    fn to_message(&self) -> pb::Tenant {
        pb::Tenant {
            id: self.id.as_str().to_owned(),
            name: self.name.clone(),
            created_at: self.created_at.0,
        }
    }

    fn from_message(m: pb::Tenant) -> Result<Self, Malformed> {
        Ok(Self {
            id: tenant("tenant.id", &m.id)?,
            name: m.name,
            created_at: Millis(m.created_at),
        })
    }
}

impl Persisted for ApiKey {
    type Message = pb::ApiKey;

    fn to_message(&self) -> pb::ApiKey {
        pb::ApiKey {
            id: self.id.0.clone(),
            tenant: self.tenant.as_str().to_owned(),
            name: self.name.clone(),
            secret_hash: self.secret_hash.clone(),
            scopes: self.scopes.bits().into(),
            created_by: self.created_by.clone(),
            created_at: self.created_at.0,
            expires_at: self.expires_at.map(|at| at.0),
            revoked_at: self.revoked_at.map(|at| at.0),
            unlimited: self.unlimited,
        }
    }

    fn from_message(m: pb::ApiKey) -> Result<Self, Malformed> {
        // Dropping an unknown scope would be safe, but the row would then differ from that of other replicas.
        let unknown = Malformed::UnknownNumber {
            field: "key.scopes",
            number: i64::from(m.scopes),
        };
        let bits = u8::try_from(m.scopes)
            .ok()
            .filter(|bits| KeyScopes::from_bits(*bits).bits() == *bits);
        Ok(Self {
            id: KeyId(m.id),
            tenant: tenant("key.tenant", &m.tenant)?,
            name: m.name,
            secret_hash: m.secret_hash,
            scopes: KeyScopes::from_bits(bits.ok_or(unknown)?),
            created_by: m.created_by,
            created_at: Millis(m.created_at),
            expires_at: m.expires_at.map(Millis),
            revoked_at: m.revoked_at.map(Millis),
            unlimited: m.unlimited,
        })
    }
}
