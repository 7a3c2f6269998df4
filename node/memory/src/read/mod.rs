//! Reading one statement for duplicate and conflict detection: what it says as fingerprints that apply can compare.
//!
//! Runs on the leader before a proposal. Two statements with equal canonical fingerprints are safe to merge: the form
//! holds everything that a gate protects. When in doubt two forms stay different.

use crate::kind::{Kind, Modality};
use crate::statement::{Fingerprint, Statement};
use crate::time::Millis;

/// One statement and who says it when.
#[derive(Clone, Copy, Debug)]
pub struct StatementInput<'a> {
    /// Short name.
    pub label: &'a str,
    /// The statement.
    pub content: &'a str,
    /// What sort of memory it is or would be.
    pub kind: Kind,
    /// The principal, as text: whom `I` means.
    pub author: &'a str,
    /// When it was said; relative dates count from here.
    pub observed_at: Millis,
}

/// What must agree before two statements may merge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Gate {
    /// G1: same namespace and project; never reported here, apply knows it.
    Scope,
    /// G2: kinds that may merge.
    Kind,
    /// G3: negation and opposites.
    Polarity,
    /// G4: numbers with unit and currency, versions.
    Quantity,
    /// G5: dates, weekdays, clock times.
    Time,
    /// G6: names, identifiers, paths, and their order.
    Names,
    /// G7: who it is about.
    Subject,
    /// G8: purpose, limits, quantifiers.
    Purpose,
    /// G9: asserted, planned, hedged, conditional, past, question; must, should, may.
    Modality,
    /// G10: a closed memory takes no merge; never reported here, apply knows it.
    State,
}

/// What two statements are to each other, by their fingerprints alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PairOutcome {
    /// Same text.
    MergeExact,
    /// Same canonical form.
    MergeCanonical,
    /// Cannot both hold.
    Contradicts {
        /// Slot and values in words.
        reason: String,
    },
    /// The incoming one replaces the existing one.
    Updates {
        /// The statement itself says that the old one ended.
        resolved: bool,
        /// Slot and values in words.
        reason: String,
        /// When the old one ended, if stated.
        at: Option<Millis>,
    },
    /// One says the same with more qualifiers.
    DerivedFrom {
        /// The incoming one is the specific one.
        new_is_specific: bool,
    },
    /// Nothing to do.
    Keep,
}

/// Reads one statement.
pub fn read_statement(input: &StatementInput<'_>) -> Statement {
    Statement {
        exact: Fingerprint::of("exact", input.content),
        canonical: None,
        label: Fingerprint::of("label", input.label),
        general: Vec::new(),
        modality: Modality::Asserted,
        claims: Vec::new(),
        ends: Vec::new(),
    }
}

/// The gates G2 to G9 that forbid to merge the two; empty when none does.
pub fn blocking_gates(_a: &StatementInput<'_>, _b: &StatementInput<'_>) -> Vec<Gate> {
    vec![Gate::Kind]
}

/// G2: whether memories of these kinds may merge.
pub fn kinds_may_merge(a: Kind, b: Kind) -> bool {
    use Kind::{Concept, Decision, Entity, Fact, Note, Preference};
    let (low, high) = if a <= b { (a, b) } else { (b, a) };
    low == high
        || matches!(
            (low, high),
            (Entity, Concept | Note) | (Concept | Fact | Preference | Decision, Note)
        )
}

/// What apply decides for an incoming statement beside an existing current one of the same project.
pub fn compare(existing: (&Statement, Kind), incoming: (&Statement, Kind)) -> PairOutcome {
    if existing.0.exact == incoming.0.exact && kinds_may_merge(existing.1, incoming.1) {
        return PairOutcome::MergeExact;
    }
    PairOutcome::Keep
}
