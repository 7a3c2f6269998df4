//! What the rules read in a statement.

use serde::{Deserialize, Serialize};
use waggle_memory::kind::Modality;
use waggle_memory::statement::{Claim, Fingerprint, StatedEnd, Statement};
use waggle_memory::time::Millis;

use crate::json::Text;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StatementShape {
    acronym: Option<Text<Fingerprint>>,
    canonical: Option<Text<Fingerprint>>,
    claims: Vec<ClaimShape>,
    ends: Vec<EndShape>,
    exact: Text<Fingerprint>,
    general: Vec<Text<Fingerprint>>,
    label: Text<Fingerprint>,
    modality: Text<Modality>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ClaimShape {
    change: bool,
    negated: bool,
    slot: Text<Fingerprint>,
    slot_text: String,
    value: Text<Fingerprint>,
    value_text: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct EndShape {
    at: Option<Text<Millis>>,
    slot: Text<Fingerprint>,
    value: Text<Fingerprint>,
    value_text: String,
}

impl From<&Statement> for StatementShape {
    fn from(statement: &Statement) -> Self {
        Self {
            acronym: statement.acronym.map(Text),
            canonical: statement.canonical.map(Text),
            claims: statement.claims.iter().map(ClaimShape::from).collect(),
            ends: statement.ends.iter().map(EndShape::from).collect(),
            exact: Text(statement.exact),
            general: statement.general.iter().copied().map(Text).collect(),
            label: Text(statement.label),
            modality: Text(statement.modality),
        }
    }
}

impl From<StatementShape> for Statement {
    fn from(shape: StatementShape) -> Self {
        Self {
            exact: shape.exact.0,
            canonical: shape.canonical.map(|f| f.0),
            label: shape.label.0,
            acronym: shape.acronym.map(|f| f.0),
            general: shape.general.into_iter().map(|f| f.0).collect(),
            modality: shape.modality.0,
            claims: shape.claims.into_iter().map(Claim::from).collect(),
            ends: shape.ends.into_iter().map(StatedEnd::from).collect(),
        }
    }
}

impl From<&Claim> for ClaimShape {
    fn from(claim: &Claim) -> Self {
        Self {
            change: claim.change,
            negated: claim.negated,
            slot: Text(claim.slot),
            slot_text: claim.slot_text.clone(),
            value: Text(claim.value),
            value_text: claim.value_text.clone(),
        }
    }
}

impl From<ClaimShape> for Claim {
    fn from(shape: ClaimShape) -> Self {
        Self {
            slot: shape.slot.0,
            value: shape.value.0,
            negated: shape.negated,
            change: shape.change,
            slot_text: shape.slot_text,
            value_text: shape.value_text,
        }
    }
}

impl From<&StatedEnd> for EndShape {
    fn from(end: &StatedEnd) -> Self {
        Self {
            at: end.at.map(Text),
            slot: Text(end.slot),
            value: Text(end.value),
            value_text: end.value_text.clone(),
        }
    }
}

impl From<EndShape> for StatedEnd {
    fn from(shape: EndShape) -> Self {
        Self {
            slot: shape.slot.0,
            value: shape.value.0,
            at: shape.at.map(|at| at.0),
            value_text: shape.value_text,
        }
    }
}
