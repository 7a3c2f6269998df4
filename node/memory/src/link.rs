//! A directed, typed link between two memories of one tenant.

use crate::id::{LinkId, MemoryId, Principal};
use crate::kind::{Confidence, Origin, Relationship};
use crate::time::Millis;

/// A link. One per (source, target, relationship); both ends exist (I-20).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// Its identity.
    pub id: LinkId,
    /// From.
    pub source: MemoryId,
    /// To.
    pub target: MemoryId,
    /// What it says.
    pub relationship: Relationship,
    /// 0 to 1000.
    pub weight_thousandths: u32,
    /// How it came to be believed.
    pub confidence: Confidence,
    /// Which part of the system made it.
    pub origin: Origin,
    /// Why it exists, in words that a person can check.
    pub reason: String,
    /// Words that both ends share, at most 8.
    pub shared_terms: Vec<String>,
    /// Who.
    pub author: Principal,
    /// When.
    pub created_at: Millis,
    /// Counts from 1.
    pub version: u32,
    /// Present on conflicts (contradicts, updates) and only there.
    pub resolution: Option<Resolution>,
}

impl Link {
    /// Strength of one step along it in millionths: relationship x weight x confidence.
    pub fn strength_millionths(&self) -> u64 {
        let confidence = match self.confidence {
            Confidence::Explicit => 1000,
            Confidence::Inferred => 800,
            Confidence::Weak => 300,
        };
        u64::from(self.relationship.strength_thousandths()) * u64::from(self.weight_thousandths) * confidence / 1_000
    }

    /// The end that is not `memory`.
    pub fn other_end(&self, memory: MemoryId) -> MemoryId {
        if self.source == memory {
            self.target
        } else {
            self.source
        }
    }

    /// Whether it is a conflict that nobody has settled.
    pub fn is_open_conflict(&self) -> bool {
        self.resolution.as_ref().is_some_and(|r| !r.resolved)
    }
}

/// State of a conflict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolution {
    /// False while open.
    pub resolved: bool,
    /// The end that won; None while open, and when both stay.
    pub winner: Option<MemoryId>,
    /// Why, in the resolver's words.
    pub note: String,
    /// Decided by a person, or stated by the very sentence that made the link.
    pub stated: bool,
    /// Who.
    pub by: Option<Principal>,
    /// When.
    pub at: Option<Millis>,
    /// What the loser's validity was before, so that a later resolution can reverse this one.
    pub loser_valid_to_before: Option<Option<Millis>>,
}

impl Resolution {
    /// A conflict that waits for somebody.
    pub const fn open() -> Self {
        Self {
            resolved: false,
            winner: None,
            note: String::new(),
            stated: false,
            by: None,
            at: None,
            loser_valid_to_before: None,
        }
    }
}
