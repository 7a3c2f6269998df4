//! Records of exports, the command that takes them in, and its answer.

use waggle_memory::handoff::Message;
use waggle_memory::id::MemoryId;
use waggle_memory::import::{
    ConflictReason, Counted, ImportConflict, ImportRecords, ImportStrategy, Imported, RecordKind,
};
use waggle_memory::link::Link;
use waggle_memory::memory::Evidence;
use waggle_memory::record::{MemoryRecord, Record, Redirect};
use waggle_memory::transcript::{Session, Turn};

use super::generated as pb;
use super::malformed::{Malformed, bounded, id, need, tenant, word};
use super::message::{Persisted, from_messages, needed, to_messages};

impl Persisted for Record {
    type Message = pb::Record;

    fn to_message(&self) -> pb::Record {
        use pb::record::Record as Case;
        let case = match self {
            Self::Session(session) => Case::Session(session.to_message()),
            Self::Turn(turn, _) => Case::Turn(turn.to_message()),
            Self::Memory(record) => Case::Memory(record.to_message()),
            Self::Link(link) => Case::Link(link.to_message()),
            Self::Redirect(redirect) => Case::Redirect(pb::record::Redirect {
                from: redirect.from.bytes().to_vec(),
                to: redirect.to.bytes().to_vec(),
            }),
            Self::Tombstone(id, tombstone) => Case::Tombstone(pb::record::Erased {
                id: id.bytes().to_vec(),
                tombstone: Some(tombstone.to_message()),
            }),
        };
        let message = match self {
            Self::Turn(_, message) => message.map(|message| message.to_message()),
            _ => None,
        };
        pb::Record {
            record: Some(case),
            message,
        }
    }

    fn from_message(m: pb::Record) -> Result<Self, Malformed> {
        use pb::record::Record as Case;
        let message = m.message.map(Message::from_message).transpose()?;
        Ok(match need("record", m.record)? {
            Case::Session(m) => Self::Session(Session::from_message(m)?),
            Case::Turn(m) => Self::Turn(Box::new(Turn::from_message(m)?), message),
            Case::Memory(m) => Self::Memory(Box::new(MemoryRecord::from_message(m)?)),
            Case::Link(m) => Self::Link(Box::new(Link::from_message(m)?)),
            Case::Redirect(m) => Self::Redirect(Redirect {
                from: id("redirect.from", &m.from, MemoryId::from_bytes)?,
                to: id("redirect.to", &m.to, MemoryId::from_bytes)?,
            }),
            Case::Tombstone(m) => Self::Tombstone(
                id("erased.id", &m.id, MemoryId::from_bytes)?,
                needed("erased.tombstone", m.tombstone)?,
            ),
        })
    }
}

impl Persisted for MemoryRecord {
    type Message = pb::MemoryRecord;

    fn to_message(&self) -> pb::MemoryRecord {
        let evidence = self.evidence.iter();
        pb::MemoryRecord {
            memory: Some(self.memory.to_message()),
            evidence: evidence
                .map(|(number, evidence)| pb::memory_record::NumberedEvidence {
                    number: *number,
                    evidence: Some(evidence.to_message()),
                })
                .collect(),
            versions: to_messages(&self.versions),
        }
    }

    fn from_message(m: pb::MemoryRecord) -> Result<Self, Malformed> {
        bounded("record.evidence", m.evidence.len())?;
        let evidence = m.evidence.into_iter().map(|m| {
            let evidence: Evidence = needed("record.evidence", m.evidence)?;
            Ok((m.number, evidence))
        });
        Ok(Self {
            memory: needed("record.memory", m.memory)?,
            evidence: evidence.collect::<Result<_, Malformed>>()?,
            versions: from_messages("record.versions", m.versions)?,
        })
    }
}

impl Persisted for ImportRecords {
    type Message = pb::ImportRecords;

    fn to_message(&self) -> pb::ImportRecords {
        pb::ImportRecords {
            tenant: self.tenant.as_str().to_owned(),
            strategy: self.strategy.number().into(),
            await_vectors: self.await_vectors,
            records: to_messages(&self.records),
        }
    }

    fn from_message(m: pb::ImportRecords) -> Result<Self, Malformed> {
        Ok(Self {
            tenant: tenant("import.tenant", &m.tenant)?,
            strategy: word("import.strategy", m.strategy, ImportStrategy::from_number)?,
            await_vectors: m.await_vectors,
            records: from_messages("import.records", m.records)?,
        })
    }
}

impl Persisted for Imported {
    type Message = pb::Imported;

    fn to_message(&self) -> pb::Imported {
        pb::Imported {
            memories: Some(self.memories.to_message()),
            links: Some(self.links.to_message()),
            turns: Some(self.turns.to_message()),
            sessions: Some(self.sessions.to_message()),
            tombstones: Some(self.tombstones.to_message()),
            dangling: self.dangling,
            conflicts: to_messages(&self.conflicts),
            conflict_count: self.conflict_count,
        }
    }

    fn from_message(m: pb::Imported) -> Result<Self, Malformed> {
        Ok(Self {
            memories: needed("imported.memories", m.memories)?,
            links: needed("imported.links", m.links)?,
            turns: needed("imported.turns", m.turns)?,
            sessions: needed("imported.sessions", m.sessions)?,
            tombstones: needed("imported.tombstones", m.tombstones)?,
            dangling: m.dangling,
            conflicts: from_messages("imported.conflicts", m.conflicts)?,
            conflict_count: m.conflict_count,
        })
    }
}

impl Persisted for Counted {
    type Message = pb::imported::Counted;

    fn to_message(&self) -> pb::imported::Counted {
        pb::imported::Counted {
            created: self.created,
            updated: self.updated,
            unchanged: self.unchanged,
        }
    }

    fn from_message(m: pb::imported::Counted) -> Result<Self, Malformed> {
        Ok(Self {
            created: m.created,
            updated: m.updated,
            unchanged: m.unchanged,
        })
    }
}

impl Persisted for ImportConflict {
    type Message = pb::imported::Conflict;

    fn to_message(&self) -> pb::imported::Conflict {
        pb::imported::Conflict {
            record: self.record.number().into(),
            id: self.id.to_vec(),
            why: self.why.number().into(),
            field: self.field.clone(),
        }
    }

    fn from_message(m: pb::imported::Conflict) -> Result<Self, Malformed> {
        let number = |number: u32| i32::try_from(number).unwrap_or(-1);
        Ok(Self {
            record: word("conflict.record", number(m.record), RecordKind::from_number)?,
            id: id("conflict.id", &m.id, |bytes| bytes)?,
            why: word("conflict.why", number(m.why), ConflictReason::from_number)?,
            field: m.field,
        })
    }
}
