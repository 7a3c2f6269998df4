//! What the rules read in a statement.

use waggle_memory::kind::Modality;
use waggle_memory::statement::{Claim, Fingerprint, StatedEnd, Statement};
use waggle_memory::time::Millis;

use super::generated as pb;
use super::malformed::{Malformed, bounded, word};
use super::message::{Persisted, from_messages, to_messages};

impl Persisted for Statement {
    type Message = pb::Statement;

    fn to_message(&self) -> pb::Statement {
        pb::Statement {
            exact: self.exact.0,
            canonical: self.canonical.map(|f| f.0),
            label: self.label.0,
            acronym: self.acronym.map(|f| f.0),
            general: self.general.iter().map(|f| f.0).collect(),
            modality: self.modality.number().into(),
            claims: to_messages(&self.claims),
            ends: to_messages(&self.ends),
        }
    }

    fn from_message(m: pb::Statement) -> Result<Self, Malformed> {
        bounded("statement.general", m.general.len())?;
        Ok(Self {
            exact: Fingerprint(m.exact),
            canonical: m.canonical.map(Fingerprint),
            label: Fingerprint(m.label),
            acronym: m.acronym.map(Fingerprint),
            general: m.general.into_iter().map(Fingerprint).collect(),
            modality: word("statement.modality", m.modality, Modality::from_number)?,
            claims: from_messages("statement.claims", m.claims)?,
            ends: from_messages("statement.ends", m.ends)?,
        })
    }
}

impl Persisted for Claim {
    type Message = pb::Claim;

    fn to_message(&self) -> pb::Claim {
        pb::Claim {
            slot: self.slot.0,
            value: self.value.0,
            negated: self.negated,
            change: self.change,
            slot_text: self.slot_text.clone(),
            value_text: self.value_text.clone(),
        }
    }

    fn from_message(m: pb::Claim) -> Result<Self, Malformed> {
        Ok(Self {
            slot: Fingerprint(m.slot),
            value: Fingerprint(m.value),
            negated: m.negated,
            change: m.change,
            slot_text: m.slot_text,
            value_text: m.value_text,
        })
    }
}

impl Persisted for StatedEnd {
    type Message = pb::StatedEnd;

    fn to_message(&self) -> pb::StatedEnd {
        pb::StatedEnd {
            slot: self.slot.0,
            value: self.value.0,
            at: self.at.map(|at| at.0),
            value_text: self.value_text.clone(),
        }
    }

    fn from_message(m: pb::StatedEnd) -> Result<Self, Malformed> {
        Ok(Self {
            slot: Fingerprint(m.slot),
            value: Fingerprint(m.value),
            at: m.at.map(Millis),
            value_text: m.value_text,
        })
    }
}
