//! What two statements are to each other, from their fingerprints alone. Apply decides by this on every replica.

use super::kinds_may_merge;
use crate::kind::{Kind, Modality};
use crate::statement::{Claim, Statement};
use crate::time::Millis;

/// What an incoming statement is to an existing current one of the same project.
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

/// The value in words of a claim that a whole statement holds.
pub(crate) const HOLDS: &str = "holds";

/// What apply decides for an incoming statement beside an existing current one of the same project.
pub fn compare(existing: (&Statement, Kind), incoming: (&Statement, Kind)) -> PairOutcome {
    let (old, new) = (existing.0, incoming.0);
    if kinds_may_merge(existing.1, incoming.1) && old.modality == new.modality {
        if old.exact == new.exact {
            return PairOutcome::MergeExact;
        }
        let equal = |a: Option<_>, b: Option<_>| a.is_some() && a == b;
        if equal(old.canonical, new.canonical) || equal(old.acronym, new.canonical) || equal(old.canonical, new.acronym)
        {
            return PairOutcome::MergeCanonical;
        }
    }
    if may_conflict(existing.1)
        && may_conflict(incoming.1)
        && let Some(outcome) = update(old, new).or_else(|| contradiction(old, new))
    {
        return outcome;
    }
    if old.modality == new.modality && old.canonical.is_some_and(|general| new.general.contains(&general)) {
        return PairOutcome::DerivedFrom { new_is_specific: true };
    }
    if old.modality == new.modality && new.canonical.is_some_and(|general| old.general.contains(&general)) {
        return PairOutcome::DerivedFrom { new_is_specific: false };
    }
    PairOutcome::Keep
}

/// Conflicts are looked for among decisions, preferences, facts and constraints.
fn may_conflict(kind: Kind) -> bool {
    matches!(kind, Kind::Decision | Kind::Preference | Kind::Fact | Kind::Concept)
}

fn update(old: &Statement, new: &Statement) -> Option<PairOutcome> {
    let in_force = matches!(old.modality, Modality::Asserted | Modality::Planned);
    if !in_force || new.modality != Modality::Asserted {
        return None;
    }
    let ended = new.ends.iter().find_map(|end| {
        let claim = old
            .claims
            .iter()
            .find(|c| c.slot == end.slot && c.value == end.value && !c.negated)?;
        Some((end, claim))
    });
    if let Some((end, claim)) = ended {
        let now = new.claims.iter().find(|c| c.slot == claim.slot && !c.negated);
        let reason = match now {
            Some(now) => format!("{}: {} replaces {}", claim.slot_text, now.value_text, claim.value_text),
            None if claim.value_text == HOLDS => format!("no longer: {}", claim.slot_text),
            None => format!("{}: {} ended", claim.slot_text, claim.value_text),
        };
        return Some(PairOutcome::Updates {
            resolved: true,
            reason,
            at: end.at,
        });
    }
    let changed = new.claims.iter().filter(|c| c.change).find_map(|c| {
        let before = old.claims.iter().find(|o| opposed(o, c))?;
        Some(format!("{}: {} after {}", c.slot_text, c.value_text, before.value_text))
    });
    changed.map(|reason| PairOutcome::Updates {
        resolved: false,
        reason,
        at: None,
    })
}

fn contradiction(old: &Statement, new: &Statement) -> Option<PairOutcome> {
    let alike = old.modality == new.modality && matches!(new.modality, Modality::Asserted | Modality::Planned);
    if !alike {
        return None;
    }
    new.claims.iter().find_map(|claim| {
        let other = old.claims.iter().find(|o| opposed(o, claim))?;
        let reason = if other.negated == claim.negated {
            format!("{}: {} against {}", claim.slot_text, other.value_text, claim.value_text)
        } else {
            format!("said and denied: {}", claim.slot_text)
        };
        Some(PairOutcome::Contradicts { reason })
    })
}

/// Two values of one slot, or one value claimed and denied.
fn opposed(a: &Claim, b: &Claim) -> bool {
    a.slot == b.slot
        && match (a.negated, b.negated) {
            (false, false) => a.value != b.value,
            (true, true) => false,
            _ => a.value == b.value,
        }
}
