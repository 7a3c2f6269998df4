//! Links and the state of conflicts.

use waggle_memory::id::{LinkId, MemoryId, Principal};
use waggle_memory::kind::{Confidence, Origin, Relationship};
use waggle_memory::link::{Link, Resolution};
use waggle_memory::time::Millis;

use super::generated as pb;
use super::malformed::{Malformed, id, texts, word};
use super::message::{Persisted, optional};

impl Persisted for Link {
    type Message = pb::Link;

    fn to_message(&self) -> pb::Link {
        pb::Link {
            id: self.id.bytes().to_vec(),
            source: self.source.bytes().to_vec(),
            target: self.target.bytes().to_vec(),
            relationship: self.relationship.number().into(),
            weight_thousandths: self.weight_thousandths,
            confidence: self.confidence.number().into(),
            origin: self.origin.number().into(),
            reason: self.reason.clone(),
            shared_terms: self.shared_terms.clone(),
            author: self.author.0.clone(),
            created_at: self.created_at.0,
            version: self.version,
            resolution: self.resolution.as_ref().map(Persisted::to_message),
        }
    }

    fn from_message(m: pb::Link) -> Result<Self, Malformed> {
        Ok(Self {
            id: id("link.id", &m.id, LinkId::from_bytes)?,
            source: id("link.source", &m.source, MemoryId::from_bytes)?,
            target: id("link.target", &m.target, MemoryId::from_bytes)?,
            relationship: word("link.relationship", m.relationship, Relationship::from_number)?,
            weight_thousandths: m.weight_thousandths,
            confidence: word("link.confidence", m.confidence, Confidence::from_number)?,
            origin: word("link.origin", m.origin, Origin::from_number)?,
            reason: m.reason,
            shared_terms: texts("link.shared_terms", m.shared_terms)?,
            author: Principal(m.author),
            created_at: Millis(m.created_at),
            version: m.version,
            resolution: optional(m.resolution)?,
        })
    }
}

impl Persisted for Resolution {
    type Message = pb::Resolution;

    fn to_message(&self) -> pb::Resolution {
        let before = self.loser_valid_to_before;
        pb::Resolution {
            resolved: self.resolved,
            winner: self.winner.map(|id| id.bytes().to_vec()),
            note: self.note.clone(),
            stated: self.stated,
            by: self.by.as_ref().map(|by| by.0.clone()),
            at: self.at.map(|at| at.0),
            loser_valid_to_before: before.map(|end| pb::resolution::Validity { at: end.map(|at| at.0) }),
        }
    }

    fn from_message(m: pb::Resolution) -> Result<Self, Malformed> {
        Ok(Self {
            resolved: m.resolved,
            winner: m
                .winner
                .map(|bytes| id("resolution.winner", &bytes, MemoryId::from_bytes))
                .transpose()?,
            note: m.note,
            stated: m.stated,
            by: m.by.map(Principal),
            at: m.at.map(Millis),
            loser_valid_to_before: m.loser_valid_to_before.map(|validity| validity.at.map(Millis)),
        })
    }
}
