//! What the meta shard holds.

use waggle_memory::meta::{ApiKey, ClusterId, KeyId, KeyScopes, NodeId, Placement, ShardId, Tenant};
use waggle_memory::time::Millis;

use super::generated as pb;
use super::malformed::{Malformed, bounded, id, tenant};
use super::message::Persisted;

impl Persisted for Placement {
    type Message = pb::Placement;

    fn to_message(&self) -> pb::Placement {
        let shards = self.shards.iter().map(|(shard, nodes)| pb::placement::Shard {
            shard: shard.0,
            nodes: nodes.iter().map(|node| node.0).collect(),
        });
        pb::Placement {
            cluster: self.cluster.0.to_vec(),
            version: self.version,
            slots: self.slots.iter().map(|shard| shard.0).collect(),
            shards: shards.collect(),
        }
    }

    fn from_message(m: pb::Placement) -> Result<Self, Malformed> {
        bounded("placement.slots", m.slots.len())?;
        bounded("placement.shards", m.shards.len())?;
        let shards = m.shards.into_iter().map(|shard| {
            bounded("placement.shards.nodes", shard.nodes.len())?;
            Ok((ShardId(shard.shard), shard.nodes.into_iter().map(NodeId).collect()))
        });
        Ok(Self {
            cluster: id("placement.cluster", &m.cluster, ClusterId)?,
            version: m.version,
            slots: m.slots.into_iter().map(ShardId).collect(),
            shards: shards.collect::<Result<_, Malformed>>()?,
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
