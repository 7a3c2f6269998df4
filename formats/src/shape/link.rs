//! Links.

use serde::{Deserialize, Serialize};
use waggle_memory::id::{LinkId, MemoryId, Principal};
use waggle_memory::kind::{Confidence, Origin, Relationship};
use waggle_memory::link::{Link, Resolution};
use waggle_memory::time::Millis;

use crate::json::Text;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LinkShape {
    author: String,
    confidence: Text<Confidence>,
    created_at: Text<Millis>,
    id: Text<LinkId>,
    origin: Text<Origin>,
    reason: String,
    relationship: Text<Relationship>,
    resolution: Option<ResolutionShape>,
    shared_terms: Vec<String>,
    source_id: Text<MemoryId>,
    target_id: Text<MemoryId>,
    version: u32,
    weight_thousandths: u32,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ResolutionShape {
    at: Option<Text<Millis>>,
    by: Option<String>,
    loser_valid_to_before: Option<ValidityShape>,
    note: String,
    resolved: bool,
    stated: bool,
    winner: Option<Text<MemoryId>>,
}

/// There was a loser; without `at` its validity had no end.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ValidityShape {
    at: Option<Text<Millis>>,
}

impl From<&Link> for LinkShape {
    fn from(link: &Link) -> Self {
        Self {
            author: link.author.0.clone(),
            confidence: Text(link.confidence),
            created_at: Text(link.created_at),
            id: Text(link.id),
            origin: Text(link.origin),
            reason: link.reason.clone(),
            relationship: Text(link.relationship),
            resolution: link.resolution.as_ref().map(ResolutionShape::from),
            shared_terms: link.shared_terms.clone(),
            source_id: Text(link.source),
            target_id: Text(link.target),
            version: link.version,
            weight_thousandths: link.weight_thousandths,
        }
    }
}

impl From<LinkShape> for Link {
    fn from(shape: LinkShape) -> Self {
        Self {
            id: shape.id.0,
            source: shape.source_id.0,
            target: shape.target_id.0,
            relationship: shape.relationship.0,
            weight_thousandths: shape.weight_thousandths,
            confidence: shape.confidence.0,
            origin: shape.origin.0,
            reason: shape.reason,
            shared_terms: shape.shared_terms,
            author: Principal(shape.author),
            created_at: shape.created_at.0,
            version: shape.version,
            resolution: shape.resolution.map(Resolution::from),
        }
    }
}

impl From<&Resolution> for ResolutionShape {
    fn from(resolution: &Resolution) -> Self {
        Self {
            at: resolution.at.map(Text),
            by: resolution.by.as_ref().map(|by| by.0.clone()),
            loser_valid_to_before: resolution
                .loser_valid_to_before
                .map(|at| ValidityShape { at: at.map(Text) }),
            note: resolution.note.clone(),
            resolved: resolution.resolved,
            stated: resolution.stated,
            winner: resolution.winner.map(Text),
        }
    }
}

impl From<ResolutionShape> for Resolution {
    fn from(shape: ResolutionShape) -> Self {
        Self {
            resolved: shape.resolved,
            winner: shape.winner.map(|id| id.0),
            note: shape.note,
            stated: shape.stated,
            by: shape.by.map(Principal),
            at: shape.at.map(|at| at.0),
            loser_valid_to_before: shape.loser_valid_to_before.map(|validity| validity.at.map(|at| at.0)),
        }
    }
}
