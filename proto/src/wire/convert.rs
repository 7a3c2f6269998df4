//! Domain to wire and back: the only place that knows both.

use waggle_memory::id::{LinkId, MemoryId, TenantId};
use waggle_memory::memory::{Evidence, Memory};
use waggle_memory::meta::{
    ApiKey, ClusterId, KeyId, KeyScopes, NodeId, NodeInfo, NodeState, Placement, Replica, ReplicaState, ShardId,
    ShardPlacement, Slot,
};
use waggle_memory::scope::Scope;
use waggle_memory::time::Millis;

use super::generated as wire;

/// A field of a message that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {why}")]
pub struct BadField {
    /// Name of the field.
    pub field: &'static str,
    /// What is wrong with it.
    pub why: String,
}

impl BadField {
    /// A field that cannot be read, and why.
    pub fn new(field: &'static str, why: impl Into<String>) -> Self {
        Self { field, why: why.into() }
    }
}

fn sixteen(field: &'static str, bytes: &[u8]) -> Result<[u8; 16], BadField> {
    bytes
        .try_into()
        .map_err(|_| BadField::new(field, format!("an id has 16 bytes, this has {}", bytes.len())))
}

/// Reads a memory's id.
pub fn memory_id(field: &'static str, bytes: &[u8]) -> Result<MemoryId, BadField> {
    sixteen(field, bytes).map(MemoryId::from_bytes)
}

/// Reads a memory's id where empty means none.
pub fn optional_memory_id(field: &'static str, bytes: &[u8]) -> Result<Option<MemoryId>, BadField> {
    if bytes.is_empty() {
        Ok(None)
    } else {
        memory_id(field, bytes).map(Some)
    }
}

/// Reads a link's id.
pub fn link_id(field: &'static str, bytes: &[u8]) -> Result<LinkId, BadField> {
    sixteen(field, bytes).map(LinkId::from_bytes)
}

/// A scope as it travels.
pub fn scope(scope: &Scope) -> wire::Scope {
    wire::Scope {
        project: scope.project.clone(),
        agent_id: scope.agent_id.clone(),
        session_id: scope.session_id.clone(),
    }
}

/// Reads a scope; absent means empty. Lengths are checked here too: a gateway is not the only possible caller.
pub fn scope_of(scope: Option<wire::Scope>) -> Result<Scope, BadField> {
    let scope = scope.unwrap_or_default();
    for (field, value) in [
        ("project", &scope.project),
        ("agent_id", &scope.agent_id),
        ("session_id", &scope.session_id),
    ] {
        if value.len() > Scope::FIELD_BYTES_MAX {
            let why = format!("{} bytes; at most {}", value.len(), Scope::FIELD_BYTES_MAX);
            return Err(BadField::new(field, why));
        }
        if value.contains('\0') {
            return Err(BadField::new(field, "must not hold a NUL character"));
        }
    }
    Ok(Scope {
        project: scope.project,
        agent_id: scope.agent_id,
        session_id: scope.session_id,
    })
}

/// A memory as it travels, with the evidence that the caller wants to show. `at` decides its state. Conflicts and the
/// vector's presence are the caller's to fill in.
pub fn memory(memory: &Memory, evidence: &[Evidence], at: Millis) -> wire::Memory {
    wire::Memory {
        id: memory.id.bytes().to_vec(),
        namespace: memory.namespace.clone(),
        scope: Some(scope(&memory.scope)),
        label: memory.label.clone(),
        content: memory.content.clone(),
        kind: u32::from(memory.kind.number()),
        tags: memory.tags.clone(),
        aliases: memory.aliases.iter().map(alias).collect(),
        source_prompt: memory.source_prompt.clone(),
        evidence_count: memory.evidence_count,
        evidence: evidence.iter().map(evidence_record).collect(),
        confidence: u32::from(memory.confidence.number()),
        valid_from: memory.valid_from.0,
        valid_to: memory.valid_to.map(|at| at.0),
        recorded_at: memory.recorded_at.0,
        updated_at: memory.updated_at.0,
        version: memory.version,
        author: memory.author.0.clone(),
        due: memory.due.map(|at| at.0),
        superseded_by: memory.superseded_by.map(|id| id.bytes().to_vec()).unwrap_or_default(),
        state: memory.state_at(at).word().to_owned(),
        conflicts: Vec::new(),
        has_vector: false,
        awaits_vector: false,
    }
}

fn alias(alias: &waggle_memory::memory::Alias) -> wire::Alias {
    wire::Alias {
        text: alias.text.clone(),
        author: alias.author.0.clone(),
        added_at: alias.added_at.0,
    }
}

fn evidence_record(evidence: &Evidence) -> wire::Evidence {
    let span = evidence.turn.as_ref();
    wire::Evidence {
        id: evidence.id.bytes().to_vec(),
        turn_id: span.map(|span| span.turn.bytes().to_vec()).unwrap_or_default(),
        turn_index: span.map_or(0, |span| span.turn_index),
        role: span.map_or(0, |span| u32::from(span.role.number())),
        span_start: span.map_or(0, |span| span.start),
        span_end: span.map_or(0, |span| span.end),
        scope: Some(scope(&evidence.scope)),
        text: evidence.text.clone(),
        observed_at: evidence.observed_at.0,
        author: evidence.author.0.clone(),
    }
}

/// A link as it travels.
pub fn link(link: &waggle_memory::link::Link) -> wire::Link {
    wire::Link {
        id: link.id.bytes().to_vec(),
        source: link.source.bytes().to_vec(),
        target: link.target.bytes().to_vec(),
        relationship: u32::from(link.relationship.number()),
        weight_thousandths: link.weight_thousandths,
        confidence: u32::from(link.confidence.number()),
        origin: u32::from(link.origin.number()),
        reason: link.reason.clone(),
        shared_terms: link.shared_terms.clone(),
        author: link.author.0.clone(),
        created_at: link.created_at.0,
        version: link.version,
        resolution: link.resolution.as_ref().map(|resolution| wire::Resolution {
            resolved: resolution.resolved,
            winner: resolution.winner.map(|id| id.bytes().to_vec()).unwrap_or_default(),
            note: resolution.note.clone(),
            stated: resolution.stated,
            by: resolution.by.as_ref().map(|by| by.0.clone()).unwrap_or_default(),
            at: resolution.at.map(|at| at.0),
        }),
    }
}

/// A placement as it travels.
pub fn placement(placement: &Placement) -> wire::Placement {
    wire::Placement {
        cluster_id: placement.cluster.0.to_vec(),
        version: placement.version,
        slots: placement.slots.iter().map(|shard| shard.0).collect(),
        shards: placement
            .shards
            .iter()
            .map(|shard| wire::ShardReplicas {
                shard: shard.shard.0,
                replicas: shard
                    .replicas
                    .iter()
                    .map(|replica| wire::Replica {
                        id: replica.id,
                        node: replica.node.0,
                        state: replica.state.number().into(),
                    })
                    .collect(),
            })
            .collect(),
        nodes: placement.nodes.iter().map(node_info).collect(),
        replication: placement.replication,
        next_replica: placement.next_replica,
    }
}

/// Reads a placement.
pub fn placement_of(message: wire::Placement) -> Result<Placement, BadField> {
    if message.slots.len() != usize::from(Slot::COUNT) {
        let why = format!("{} slots instead of {}", message.slots.len(), Slot::COUNT);
        return Err(BadField::new("slots", why));
    }
    Ok(Placement {
        cluster: ClusterId(sixteen("cluster_id", &message.cluster_id)?),
        version: message.version,
        slots: message.slots.into_iter().map(ShardId).collect(),
        shards: message
            .shards
            .into_iter()
            .map(|shard| {
                let replicas = shard.replicas.into_iter().map(replica_of);
                Ok(ShardPlacement {
                    shard: ShardId(shard.shard),
                    replicas: replicas.collect::<Result<_, BadField>>()?,
                })
            })
            .collect::<Result<_, BadField>>()?,
        nodes: message
            .nodes
            .into_iter()
            .map(node_info_of)
            .collect::<Result<_, BadField>>()?,
        replication: message.replication,
        next_replica: message.next_replica,
    })
}

fn replica_of(message: wire::Replica) -> Result<Replica, BadField> {
    Ok(Replica {
        id: message.id,
        node: NodeId(message.node),
        state: state("replica.state", message.state, ReplicaState::from_number)?,
    })
}

fn state<T>(field: &'static str, number: u32, read: fn(u8) -> Option<T>) -> Result<T, BadField> {
    let known = u8::try_from(number).ok().and_then(read);
    known.ok_or_else(|| BadField::new(field, format!("{number} is not known")))
}

/// A node as it travels.
pub fn node_info(node: &NodeInfo) -> wire::NodeInfo {
    wire::NodeInfo {
        id: node.id.0,
        address: node.address.clone(),
        zone: node.zone.clone(),
        state: node.state.number().into(),
        joined_at: node.joined_at.0,
        incarnation: node.incarnation.to_vec(),
    }
}

/// Reads a node.
pub fn node_info_of(message: wire::NodeInfo) -> Result<NodeInfo, BadField> {
    Ok(NodeInfo {
        id: NodeId(message.id),
        address: message.address,
        zone: message.zone,
        state: node_state_of(message.state)?,
        joined_at: Millis(message.joined_at),
        incarnation: sixteen("incarnation", &message.incarnation)?,
    })
}

/// Reads the state of a node.
pub fn node_state_of(number: u32) -> Result<NodeState, BadField> {
    state("node.state", number, NodeState::from_number)
}

/// A key without its hash, as it travels.
pub fn key_info(key: &ApiKey) -> wire::KeyInfo {
    wire::KeyInfo {
        key_id: key.id.0.clone(),
        tenant_id: key.tenant.to_string(),
        name: key.name.clone(),
        scopes: u32::from(key.scopes.bits()),
        created_by: key.created_by.clone(),
        created_at: key.created_at.0,
        expires_at: key.expires_at.map(|at| at.0),
        revoked_at: key.revoked_at.map(|at| at.0),
        unlimited: key.unlimited,
    }
}

/// Reads a key with its hash.
pub fn key_of(info: wire::KeyInfo, secret_hash: Vec<u8>) -> Result<ApiKey, BadField> {
    let tenant: TenantId = info
        .tenant_id
        .parse()
        .map_err(|bad| BadField::new("tenant_id", format!("{bad}")))?;
    let bits = u8::try_from(info.scopes).unwrap_or(0);
    let plain = info.key_id.bytes().all(|b| b.is_ascii_alphanumeric());
    if info.key_id.is_empty() || info.key_id.len() > 32 || !plain {
        return Err(BadField::new("key_id", "1 to 32 letters and digits"));
    }
    if info.name.len() > 256 || info.created_by.len() > 256 {
        return Err(BadField::new("name", "at most 256 bytes"));
    }
    Ok(ApiKey {
        id: KeyId(info.key_id),
        tenant,
        name: info.name,
        secret_hash,
        scopes: KeyScopes::from_bits(bits),
        created_by: info.created_by,
        created_at: Millis(info.created_at),
        expires_at: info.expires_at.map(Millis),
        revoked_at: info.revoked_at.map(Millis),
        unlimited: info.unlimited,
    })
}

/// Four bytes that stand for a shown item in a cursor: enough to leave out what earlier pages showed.
pub fn short_hash(is_turn: bool, id: &[u8]) -> u32 {
    let mut bytes = [0; 8];
    // Ids are UUIDs of version 7: the last eight bytes are random.
    for (place, byte) in bytes.iter_mut().zip(id.iter().rev()) {
        *place = *byte;
    }
    let mixed = u64::from_le_bytes(bytes)
        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
        .rotate_left(u32::from(is_turn));
    u32::try_from(mixed >> 32).unwrap_or(u32::MAX)
}
