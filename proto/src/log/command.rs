//! Entries and commands.

use waggle_memory::clear::Clear;
use waggle_memory::command::{
    AttachVectors, Canonicalize, Command, DedupReason, Entry, JoinNode, LateVector, NewEvidence, NewLink, NewMemory,
    NewSpan, NewTurn, Remember, Request, ResolveConflict, SimilarMemory, StoreLink, UpdateMemory,
};
use waggle_memory::handoff::{RememberMessages, StoreMessages};
use waggle_memory::id::{EvidenceId, LinkId, MemoryId, PairId, Principal, RequestId, TurnId};
use waggle_memory::import::ImportRecords;
use waggle_memory::kind::{Confidence, Kind, Origin, Relationship, Role};
use waggle_memory::meta::{ApiKey, JoinToken, KeyId, Placement, Tenant};
use waggle_memory::time::Millis;

use super::generated as pb;
use super::malformed::{Malformed, id, need, tenant, texts, word};
use super::message::{Persisted, from_messages, needed, optional, to_messages};

/// The format that this release writes, and the latest that it reads.
pub(super) const ENTRY_FORMAT: u32 = 1;

impl Persisted for Entry {
    type Message = pb::Entry;

    fn to_message(&self) -> pb::Entry {
        pb::Entry {
            format: ENTRY_FORMAT,
            stamp: Some(self.stamp.to_message()),
            principal: self.principal.0.clone(),
            request: self.request.as_ref().map(|request| pb::Request {
                id: request.id.0.clone(),
                arguments: request.arguments,
            }),
            command: Some(command_to_message(&self.command)),
        }
    }

    fn from_message(m: pb::Entry) -> Result<Self, Malformed> {
        if m.format != ENTRY_FORMAT {
            return Err(Malformed::UnknownFormat(m.format));
        }
        Ok(Self {
            stamp: needed("entry.stamp", m.stamp)?,
            principal: Principal(m.principal),
            request: m.request.map(|request| Request {
                id: RequestId(request.id),
                arguments: request.arguments,
            }),
            command: command_from_message(need("entry.command", m.command)?)?,
        })
    }
}

fn command_to_message(command: &Command) -> pb::entry::Command {
    use pb::entry::Command as Case;
    match command {
        Command::Remember(remember) => Case::Remember(remember.to_message()),
        Command::UpdateMemory(update) => Case::UpdateMemory(update.to_message()),
        Command::DeleteMemory { tenant, id } => Case::DeleteMemory(pb::DeleteMemory {
            tenant: tenant.as_str().to_owned(),
            id: id.bytes().to_vec(),
        }),
        Command::DeleteLink { tenant, id } => Case::DeleteLink(pb::DeleteLink {
            tenant: tenant.as_str().to_owned(),
            id: id.bytes().to_vec(),
        }),
        Command::StoreLink(store) => Case::StoreLink(store.to_message()),
        Command::ResolveConflict(resolve) => Case::ResolveConflict(resolve.to_message()),
        Command::AttachVectors(attach) => Case::AttachVectors(attach.to_message()),
        Command::ImportRecords(import) => Case::ImportRecords(import.to_message()),
        Command::Canonicalize(merge) => Case::Canonicalize(merge.to_message()),
        Command::Clear(clear) => Case::Clear(clear.to_message()),
        Command::ExpireRequests { before } => Case::ExpireRequests(pb::ExpireRequests { before: before.0 }),
        Command::InitCluster(placement) => Case::InitCluster(placement.to_message()),
        Command::ChangePlacement(placement) => Case::ChangePlacement(placement.to_message()),
        Command::CreateJoinToken(token) => Case::CreateJoinToken(token.to_message()),
        Command::JoinNode(join) => Case::JoinNode(join.to_message()),
        Command::CreateTenant(tenant) => Case::CreateTenant(tenant.to_message()),
        Command::CreateKey(key) => Case::CreateKey(key.to_message()),
        Command::RevokeKey { id, of_tenant } => Case::RevokeKey(pb::RevokeKey {
            id: id.0.clone(),
            of_tenant: of_tenant.as_ref().map(|tenant| tenant.as_str().to_owned()),
        }),
        Command::StoreMessages(store) => Case::StoreMessages(store.to_message()),
        Command::RememberMessages(remember) => Case::RememberMessages(remember.to_message()),
    }
}

fn command_from_message(case: pb::entry::Command) -> Result<Command, Malformed> {
    use pb::entry::Command as Case;
    Ok(match case {
        Case::Remember(m) => Command::Remember(Box::new(Remember::from_message(m)?)),
        Case::UpdateMemory(m) => Command::UpdateMemory(Box::new(UpdateMemory::from_message(m)?)),
        Case::DeleteMemory(m) => Command::DeleteMemory {
            tenant: tenant("delete.tenant", &m.tenant)?,
            id: id("delete.id", &m.id, MemoryId::from_bytes)?,
        },
        Case::DeleteLink(m) => Command::DeleteLink {
            tenant: tenant("delete_link.tenant", &m.tenant)?,
            id: id("delete_link.id", &m.id, LinkId::from_bytes)?,
        },
        Case::StoreLink(m) => Command::StoreLink(StoreLink::from_message(m)?),
        Case::ResolveConflict(m) => Command::ResolveConflict(ResolveConflict::from_message(m)?),
        Case::AttachVectors(m) => Command::AttachVectors(AttachVectors::from_message(m)?),
        Case::ImportRecords(m) => Command::ImportRecords(Box::new(ImportRecords::from_message(m)?)),
        Case::Canonicalize(m) => Command::Canonicalize(Canonicalize::from_message(m)?),
        Case::Clear(m) => Command::Clear(Clear::from_message(m)?),
        Case::ExpireRequests(m) => Command::ExpireRequests {
            before: Millis(m.before),
        },
        Case::InitCluster(m) => Command::InitCluster(Placement::from_message(m)?),
        Case::ChangePlacement(m) => Command::ChangePlacement(Placement::from_message(m)?),
        Case::CreateJoinToken(m) => Command::CreateJoinToken(JoinToken::from_message(m)?),
        Case::JoinNode(m) => Command::JoinNode(Box::new(JoinNode::from_message(m)?)),
        Case::CreateTenant(m) => Command::CreateTenant(Tenant::from_message(m)?),
        Case::CreateKey(m) => Command::CreateKey(ApiKey::from_message(m)?),
        Case::RevokeKey(m) => Command::RevokeKey {
            id: KeyId(m.id),
            of_tenant: m.of_tenant.map(|text| tenant("revoke.of_tenant", &text)).transpose()?,
        },
        Case::StoreMessages(m) => Command::StoreMessages(Box::new(StoreMessages::from_message(m)?)),
        Case::RememberMessages(m) => Command::RememberMessages(Box::new(RememberMessages::from_message(m)?)),
    })
}

impl Persisted for Remember {
    type Message = pb::Remember;

    fn to_message(&self) -> pb::Remember {
        pb::Remember {
            tenant: self.tenant.as_str().to_owned(),
            scope: Some(self.scope.to_message()),
            namespace: self.namespace.clone(),
            origin: self.origin.number().into(),
            pair: self.pair.bytes().to_vec(),
            turns: to_messages(&self.turns),
            memories: to_messages(&self.memories),
            links: to_messages(&self.links),
        }
    }

    fn from_message(m: pb::Remember) -> Result<Self, Malformed> {
        Ok(Self {
            tenant: tenant("remember.tenant", &m.tenant)?,
            scope: needed("remember.scope", m.scope)?,
            namespace: m.namespace,
            origin: word("remember.origin", m.origin, Origin::from_number)?,
            pair: id("remember.pair", &m.pair, PairId::from_bytes)?,
            turns: from_messages("remember.turns", m.turns)?,
            memories: from_messages("remember.memories", m.memories)?,
            links: from_messages("remember.links", m.links)?,
        })
    }
}

impl Persisted for NewTurn {
    type Message = pb::NewTurn;

    fn to_message(&self) -> pb::NewTurn {
        pb::NewTurn {
            id: self.id.bytes().to_vec(),
            role: self.role.number().into(),
            text: self.text.clone(),
            observed_at: self.observed_at.0,
            vector: Some(self.vector.to_message()),
        }
    }

    fn from_message(m: pb::NewTurn) -> Result<Self, Malformed> {
        Ok(Self {
            id: id("turn.id", &m.id, TurnId::from_bytes)?,
            role: word("turn.role", m.role, Role::from_number)?,
            text: m.text,
            observed_at: Millis(m.observed_at),
            vector: needed("turn.vector", m.vector)?,
        })
    }
}

impl Persisted for NewMemory {
    type Message = pb::NewMemory;

    fn to_message(&self) -> pb::NewMemory {
        pb::NewMemory {
            id: self.id.bytes().to_vec(),
            label: self.label.clone(),
            content: self.content.clone(),
            kind: self.kind.number().into(),
            tags: self.tags.clone(),
            source_prompt: self.source_prompt.clone(),
            confidence: self.confidence.number().into(),
            valid_from: self.valid_from.map(|at| at.0),
            default_valid_from: self.default_valid_from.map(|at| at.0),
            valid_to: self.valid_to.map(|at| at.0),
            due: self.due.map(|at| at.0),
            statement: Some(self.statement.to_message()),
            rules_version: self.rules_version,
            evidence: Some(self.evidence.to_message()),
            vector: Some(self.vector.to_message()),
            similar: self.similar.as_ref().map(Persisted::to_message),
        }
    }

    fn from_message(m: pb::NewMemory) -> Result<Self, Malformed> {
        Ok(Self {
            id: id("memory.id", &m.id, MemoryId::from_bytes)?,
            label: m.label,
            content: m.content,
            kind: word("memory.kind", m.kind, Kind::from_number)?,
            tags: texts("memory.tags", m.tags)?,
            source_prompt: m.source_prompt,
            confidence: word("memory.confidence", m.confidence, Confidence::from_number)?,
            valid_from: m.valid_from.map(Millis),
            default_valid_from: m.default_valid_from.map(Millis),
            valid_to: m.valid_to.map(Millis),
            due: m.due.map(Millis),
            statement: needed("memory.statement", m.statement)?,
            rules_version: m.rules_version,
            evidence: needed("memory.evidence", m.evidence)?,
            vector: needed("memory.vector", m.vector)?,
            similar: optional(m.similar)?,
        })
    }
}

impl Persisted for NewEvidence {
    type Message = pb::NewEvidence;

    fn to_message(&self) -> pb::NewEvidence {
        pb::NewEvidence {
            id: self.id.bytes().to_vec(),
            span: self.span.as_ref().map(|s| pb::NewSpan {
                turn: s.turn,
                start: s.start,
                end: s.end,
            }),
            text: self.text.clone(),
            observed_at: self.observed_at.map(|at| at.0),
        }
    }

    fn from_message(m: pb::NewEvidence) -> Result<Self, Malformed> {
        Ok(Self {
            id: id("evidence.id", &m.id, EvidenceId::from_bytes)?,
            span: m.span.map(|s| NewSpan {
                turn: s.turn,
                start: s.start,
                end: s.end,
            }),
            text: m.text,
            observed_at: m.observed_at.map(Millis),
        })
    }
}

impl Persisted for SimilarMemory {
    type Message = pb::SimilarMemory;

    fn to_message(&self) -> pb::SimilarMemory {
        pb::SimilarMemory {
            id: self.id.bytes().to_vec(),
            text_version: self.text_version,
            reason: self.reason.number().into(),
            similarity_thousandths: self.similarity_thousandths,
        }
    }

    fn from_message(m: pb::SimilarMemory) -> Result<Self, Malformed> {
        Ok(Self {
            id: id("similar.id", &m.id, MemoryId::from_bytes)?,
            text_version: m.text_version,
            reason: word("similar.reason", m.reason, DedupReason::from_number)?,
            similarity_thousandths: m.similarity_thousandths,
        })
    }
}

impl Persisted for NewLink {
    type Message = pb::NewLink;

    fn to_message(&self) -> pb::NewLink {
        pb::NewLink {
            id: self.id.bytes().to_vec(),
            source: self.source,
            target: self.target,
            relationship: self.relationship.number().into(),
            confidence: self.confidence.number().into(),
            weight_thousandths: self.weight_thousandths,
            reason: self.reason.clone(),
            shared_terms: self.shared_terms.clone(),
        }
    }

    fn from_message(m: pb::NewLink) -> Result<Self, Malformed> {
        Ok(Self {
            id: id("link.id", &m.id, LinkId::from_bytes)?,
            source: m.source,
            target: m.target,
            relationship: word("link.relationship", m.relationship, Relationship::from_number)?,
            confidence: word("link.confidence", m.confidence, Confidence::from_number)?,
            weight_thousandths: m.weight_thousandths,
            reason: m.reason,
            shared_terms: texts("link.shared_terms", m.shared_terms)?,
        })
    }
}

impl Persisted for UpdateMemory {
    type Message = pb::UpdateMemory;

    fn to_message(&self) -> pb::UpdateMemory {
        pb::UpdateMemory {
            tenant: self.tenant.as_str().to_owned(),
            id: self.id.bytes().to_vec(),
            expected_version: self.expected_version,
            based_on_version: self.based_on_version,
            label: self.label.clone(),
            content: self.content.clone(),
            tags: self
                .tags
                .as_ref()
                .map(|tags| pb::update_memory::Tags { tags: tags.clone() }),
            valid_from: self.valid_from.map(|at| at.0),
            valid_to: self.valid_to.map(|at| at.0),
            statement: self.statement.as_ref().map(Persisted::to_message),
            rules_version: self.rules_version,
            vector: self.vector.as_ref().map(Persisted::to_message),
        }
    }

    fn from_message(m: pb::UpdateMemory) -> Result<Self, Malformed> {
        Ok(Self {
            tenant: tenant("update.tenant", &m.tenant)?,
            id: id("update.id", &m.id, MemoryId::from_bytes)?,
            expected_version: m.expected_version,
            based_on_version: m.based_on_version,
            label: m.label,
            content: m.content,
            tags: m.tags.map(|tags| texts("update.tags", tags.tags)).transpose()?,
            valid_from: m.valid_from.map(Millis),
            valid_to: m.valid_to.map(Millis),
            statement: optional(m.statement)?,
            rules_version: m.rules_version,
            vector: optional(m.vector)?,
        })
    }
}

impl Persisted for StoreLink {
    type Message = pb::StoreLink;

    fn to_message(&self) -> pb::StoreLink {
        pb::StoreLink {
            tenant: self.tenant.as_str().to_owned(),
            id: self.id.bytes().to_vec(),
            source: self.source.bytes().to_vec(),
            target: self.target.bytes().to_vec(),
            relationship: self.relationship.number().into(),
            weight_thousandths: self.weight_thousandths,
        }
    }

    fn from_message(m: pb::StoreLink) -> Result<Self, Malformed> {
        Ok(Self {
            tenant: tenant("store_link.tenant", &m.tenant)?,
            id: id("store_link.id", &m.id, LinkId::from_bytes)?,
            source: id("store_link.source", &m.source, MemoryId::from_bytes)?,
            target: id("store_link.target", &m.target, MemoryId::from_bytes)?,
            relationship: word("store_link.relationship", m.relationship, Relationship::from_number)?,
            weight_thousandths: m.weight_thousandths,
        })
    }
}

impl Persisted for ResolveConflict {
    type Message = pb::ResolveConflict;

    fn to_message(&self) -> pb::ResolveConflict {
        pb::ResolveConflict {
            tenant: self.tenant.as_str().to_owned(),
            link: self.link.bytes().to_vec(),
            winner: self.winner.map(|id| id.bytes().to_vec()),
            note: self.note.clone(),
            valid_to: self.valid_to.map(|at| at.0),
        }
    }

    fn from_message(m: pb::ResolveConflict) -> Result<Self, Malformed> {
        Ok(Self {
            tenant: tenant("resolve.tenant", &m.tenant)?,
            link: id("resolve.link", &m.link, LinkId::from_bytes)?,
            winner: m
                .winner
                .map(|bytes| id("resolve.winner", &bytes, MemoryId::from_bytes))
                .transpose()?,
            note: m.note,
            valid_to: m.valid_to.map(Millis),
        })
    }
}

impl Persisted for AttachVectors {
    type Message = pb::AttachVectors;

    fn to_message(&self) -> pb::AttachVectors {
        pb::AttachVectors {
            tenant: self.tenant.as_str().to_owned(),
            items: to_messages(&self.items),
        }
    }

    fn from_message(m: pb::AttachVectors) -> Result<Self, Malformed> {
        Ok(Self {
            tenant: tenant("attach.tenant", &m.tenant)?,
            items: from_messages("attach.items", m.items)?,
        })
    }
}

impl Persisted for LateVector {
    type Message = pb::LateVector;

    fn to_message(&self) -> pb::LateVector {
        pb::LateVector {
            item: Some(self.item.to_message()),
            text_version: self.text_version,
            vector: self.vector.as_ref().map(Persisted::to_message),
        }
    }

    fn from_message(m: pb::LateVector) -> Result<Self, Malformed> {
        Ok(Self {
            item: needed("late_vector.item", m.item)?,
            text_version: m.text_version,
            vector: optional(m.vector)?,
        })
    }
}
