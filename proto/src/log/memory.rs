//! Memories, their versions, aliases, evidence and tombstones.

use waggle_memory::id::{EvidenceId, MemoryId, Principal, TurnId};
use waggle_memory::kind::{Confidence, Kind, Role};
use waggle_memory::memory::{Alias, ChangeReason, Erased, Evidence, Memory, Tombstone, TurnSpan, Version};
use waggle_memory::statement::Fingerprint;
use waggle_memory::time::Millis;

use super::generated as pb;
use super::malformed::{Malformed, id, texts, word};
use super::message::{Persisted, from_messages, needed, optional, to_messages};

impl Persisted for Memory {
    type Message = pb::Memory;

    fn to_message(&self) -> pb::Memory {
        pb::Memory {
            id: self.id.bytes().to_vec(),
            namespace: self.namespace.clone(),
            scope: Some(self.scope.to_message()),
            label: self.label.clone(),
            content: self.content.clone(),
            kind: self.kind.number().into(),
            tags: self.tags.clone(),
            aliases: to_messages(&self.aliases),
            source_prompt: self.source_prompt.clone(),
            evidence_count: self.evidence_count,
            confidence: self.confidence.number().into(),
            valid_from: self.valid_from.0,
            valid_from_stated: self.valid_from_stated,
            valid_to: self.valid_to.map(|at| at.0),
            recorded_at: self.recorded_at.0,
            updated_at: self.updated_at.0,
            version: self.version,
            author: self.author.0.clone(),
            due: self.due.map(|at| at.0),
            superseded_by: self.superseded_by.map(|id| id.bytes().to_vec()),
            statement: Some(self.statement.to_message()),
            rules_version: self.rules_version,
            link_count: self.link_count,
            open_conflict_count: self.open_conflict_count,
            text_version: self.text_version,
            metadata: self.metadata.clone(),
        }
    }

    fn from_message(m: pb::Memory) -> Result<Self, Malformed> {
        Ok(Self {
            id: id("memory.id", &m.id, MemoryId::from_bytes)?,
            namespace: m.namespace,
            scope: needed("memory.scope", m.scope)?,
            label: m.label,
            content: m.content,
            kind: word("memory.kind", m.kind, Kind::from_number)?,
            tags: texts("memory.tags", m.tags)?,
            aliases: from_messages("memory.aliases", m.aliases)?,
            source_prompt: m.source_prompt,
            metadata: m.metadata,
            evidence_count: m.evidence_count,
            confidence: word("memory.confidence", m.confidence, Confidence::from_number)?,
            valid_from: Millis(m.valid_from),
            valid_from_stated: m.valid_from_stated,
            valid_to: m.valid_to.map(Millis),
            recorded_at: Millis(m.recorded_at),
            updated_at: Millis(m.updated_at),
            version: m.version,
            text_version: m.text_version,
            author: Principal(m.author),
            due: m.due.map(Millis),
            superseded_by: superseded_by(m.superseded_by)?,
            statement: needed("memory.statement", m.statement)?,
            rules_version: m.rules_version,
            link_count: m.link_count,
            open_conflict_count: m.open_conflict_count,
        })
    }
}

impl Persisted for Alias {
    type Message = pb::Alias;

    fn to_message(&self) -> pb::Alias {
        pb::Alias {
            text: self.text.clone(),
            author: self.author.0.clone(),
            added_at: self.added_at.0,
            exact: self.exact.map(|f| f.0),
        }
    }

    fn from_message(m: pb::Alias) -> Result<Self, Malformed> {
        Ok(Self {
            text: m.text,
            author: Principal(m.author),
            added_at: Millis(m.added_at),
            exact: m.exact.map(Fingerprint),
        })
    }
}

impl Persisted for Version {
    type Message = pb::Version;

    fn to_message(&self) -> pb::Version {
        pb::Version {
            version: self.version,
            recorded_at: self.recorded_at.0,
            replaced_at: self.replaced_at.0,
            replaced_by: self.replaced_by.0.clone(),
            reason: self.reason.number().into(),
            label: self.label.clone(),
            content: self.content.clone(),
            kind: self.kind.number().into(),
            tags: self.tags.clone(),
            valid_from: self.valid_from.0,
            valid_to: self.valid_to.map(|at| at.0),
            superseded_by: self.superseded_by.map(|id| id.bytes().to_vec()),
            note: self.note.clone(),
        }
    }

    fn from_message(m: pb::Version) -> Result<Self, Malformed> {
        Ok(Self {
            version: m.version,
            recorded_at: Millis(m.recorded_at),
            replaced_at: Millis(m.replaced_at),
            replaced_by: Principal(m.replaced_by),
            reason: word("version.reason", m.reason, ChangeReason::from_number)?,
            label: m.label,
            content: m.content,
            kind: word("version.kind", m.kind, Kind::from_number)?,
            tags: texts("version.tags", m.tags)?,
            valid_from: Millis(m.valid_from),
            valid_to: m.valid_to.map(Millis),
            superseded_by: superseded_by(m.superseded_by)?,
            note: m.note,
        })
    }
}

fn superseded_by(bytes: Option<Vec<u8>>) -> Result<Option<MemoryId>, Malformed> {
    bytes
        .map(|bytes| id("superseded_by", &bytes, MemoryId::from_bytes))
        .transpose()
}

impl Persisted for Evidence {
    type Message = pb::Evidence;

    fn to_message(&self) -> pb::Evidence {
        pb::Evidence {
            id: self.id.bytes().to_vec(),
            turn: self.turn.as_ref().map(Persisted::to_message),
            scope: Some(self.scope.to_message()),
            text: self.text.clone(),
            observed_at: self.observed_at.0,
            author: self.author.0.clone(),
        }
    }

    fn from_message(m: pb::Evidence) -> Result<Self, Malformed> {
        Ok(Self {
            id: id("evidence.id", &m.id, EvidenceId::from_bytes)?,
            turn: optional(m.turn)?,
            scope: needed("evidence.scope", m.scope)?,
            text: m.text,
            observed_at: Millis(m.observed_at),
            author: Principal(m.author),
        })
    }
}

impl Persisted for TurnSpan {
    type Message = pb::TurnSpan;

    fn to_message(&self) -> pb::TurnSpan {
        pb::TurnSpan {
            turn: self.turn.bytes().to_vec(),
            turn_index: self.turn_index,
            role: self.role.number().into(),
            start: self.start,
            end: self.end,
        }
    }

    fn from_message(m: pb::TurnSpan) -> Result<Self, Malformed> {
        Ok(Self {
            turn: id("span.turn", &m.turn, TurnId::from_bytes)?,
            turn_index: m.turn_index,
            role: word("span.role", m.role, Role::from_number)?,
            start: m.start,
            end: m.end,
        })
    }
}

impl Persisted for Tombstone {
    type Message = pb::Tombstone;

    fn to_message(&self) -> pb::Tombstone {
        pb::Tombstone {
            deleted_at: self.deleted_at.0,
            author: self.author.0.clone(),
            receipt: self.receipt.clone(),
            deleted_links: self.deleted_links,
            turns_kept: self.turns_kept,
            of: self.of.as_ref().map(Persisted::to_message),
        }
    }

    fn from_message(m: pb::Tombstone) -> Result<Self, Malformed> {
        Ok(Self {
            deleted_at: Millis(m.deleted_at),
            author: Principal(m.author),
            receipt: m.receipt,
            deleted_links: m.deleted_links,
            turns_kept: m.turns_kept,
            of: optional(m.of)?,
        })
    }
}

impl Persisted for Erased {
    type Message = pb::Erased;

    fn to_message(&self) -> pb::Erased {
        pb::Erased {
            scope: Some(self.scope.to_message()),
            kind: self.kind.number().into(),
            recorded_at: self.recorded_at.0,
            content_hash: self.content_hash.to_vec(),
        }
    }

    fn from_message(m: pb::Erased) -> Result<Self, Malformed> {
        Ok(Self {
            scope: needed("erased.scope", m.scope)?,
            kind: word("erased.kind", m.kind, Kind::from_number)?,
            recorded_at: Millis(m.recorded_at),
            content_hash: id("erased.content_hash", &m.content_hash, |bytes| bytes)?,
        })
    }
}
