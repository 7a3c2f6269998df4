//! Contradictions, updates and more specific forms: what a statement does to other memories of its project. Decided
//! here, from the claims that the command carries, so that nothing a second leader or a concurrent call did is missed.

use super::transaction::{Transaction, is_open};
use crate::id::{LinkId, MemoryId};
use crate::kind::{Confidence, Modality, Origin, Relationship};
use crate::link::{Link, Resolution};
use crate::memory::{ChangeReason, Memory};
use crate::statement::{Claim, StatedEnd};
use crate::tables::Form;
use crate::time::Millis;

/// Most memories of one slot that are compared with a new claim.
const SLOT_CANDIDATES_MAX: usize = 64;
/// Most more general or more specific memories that get a link.
const GENERAL_LINKS_MAX: usize = 8;
/// The tag of what the assistant said; it never closes anything.
const SAID_BY_ASSISTANT: &str = "speaker:assistant";

/// Finds the conflicts of a memory that was just stored, merged into or changed, and makes their links. Gives the ids
/// of new (or reopened) conflict links.
pub(super) fn detect(tx: &mut Transaction<'_>, id: MemoryId) -> Vec<LinkId> {
    let Some(memory) = tx.rows().memory(id) else {
        return Vec::new();
    };
    if !is_open(&memory, tx.now) {
        return Vec::new();
    }
    let mut made = Vec::new();
    for end in memory.statement.ends.clone() {
        made.extend(apply_stated_end(tx, &memory, &end));
    }
    for claim in memory.statement.claims.clone() {
        made.extend(compare_claim(tx, &memory, &claim));
    }
    link_general_forms(tx, &memory);
    made
}

/// "From X to Y", "no longer X": closes the memories that claim X; said by the assistant or not plainly asserted, it
/// only opens the question.
fn apply_stated_end(tx: &mut Transaction<'_>, memory: &Memory, end: &StatedEnd) -> Vec<LinkId> {
    let mut made = Vec::new();
    for other in in_slot(tx, memory, end.slot) {
        let claims_it = other
            .statement
            .claims
            .iter()
            .any(|c| c.slot == end.slot && c.value == end.value && !c.negated);
        if !claims_it || has_conflict(tx, memory.id, other.id) || !is_open(&other, tx.now) {
            continue;
        }
        let by_the_user = !memory.tags.iter().any(|tag| tag == SAID_BY_ASSISTANT);
        let stated = by_the_user && memory.statement.modality == Modality::Asserted;
        let reason = format!("'{}' is stated to have ended", end.value_text);
        let mut link = conflict_link(tx, Relationship::Updates, memory.id, other.id, reason);
        if stated {
            let closed_at = end_of_validity(&other, end.at, tx.now);
            link.resolution = Some(Resolution {
                resolved: true,
                winner: Some(memory.id),
                note: String::new(),
                stated: true,
                by: Some(tx.principal.clone()),
                at: Some(tx.now),
                loser_valid_to_before: Some(other.valid_to),
            });
            let mut closed = other.clone();
            closed.valid_to = Some(other.valid_to.map_or(closed_at, |earlier| earlier.min(closed_at)));
            closed.superseded_by = Some(memory.id);
            tx.change_memory(&other, closed, ChangeReason::Ended);
        }
        made.push(link.id);
        tx.insert_link(link);
    }
    made
}

/// When something stated to have ended did end: the stated moment if it lies after the start, else now; always after
/// the start (I-23).
pub(super) fn end_of_validity(memory: &Memory, stated: Option<Millis>, now: Millis) -> Millis {
    let at = stated.filter(|at| *at > memory.valid_from).unwrap_or(now);
    at.max(memory.valid_from.plus(1))
}

fn compare_claim(tx: &mut Transaction<'_>, memory: &Memory, claim: &Claim) -> Vec<LinkId> {
    let others: Vec<(Memory, Claim)> = in_slot(tx, memory, claim.slot)
        .into_iter()
        .filter_map(|other| {
            let against = other
                .statement
                .claims
                .iter()
                .find(|c| c.slot == claim.slot && opposes(claim, c))
                .cloned()?;
            Some((other, against))
        })
        .collect();
    let replaced: Vec<&(Memory, Claim)> = others
        .iter()
        .filter(|(other, against)| {
            !against.negated && matches!(other.statement.modality, Modality::Asserted | Modality::Planned)
        })
        .collect();
    let is_change = claim.change && memory.statement.modality == Modality::Asserted && replaced.len() == 1;
    let mut made = Vec::new();
    for (other, against) in &others {
        let both_meant = memory.statement.modality == other.statement.modality
            && matches!(memory.statement.modality, Modality::Asserted | Modality::Planned);
        let relationship = if is_change && !against.negated {
            Relationship::Updates
        } else if both_meant {
            Relationship::Contradicts
        } else {
            continue;
        };
        if !periods_overlap(memory, other)
            || reopened(tx, memory, other, &mut made)
            || has_conflict(tx, memory.id, other.id)
        {
            continue;
        }
        let reason = reason_of(claim, against);
        let link = conflict_link(tx, relationship, memory.id, other.id, reason);
        made.push(link.id);
        tx.insert_link(link);
    }
    made
}

/// A conflict says why in words of both sides: after one of them changed its text, the words are made again.
pub(super) fn refresh_reasons(tx: &mut Transaction<'_>, id: MemoryId) {
    let Some(memory) = tx.rows().memory(id).filter(|memory| memory.open_conflict_count > 0) else {
        return;
    };
    let most = usize::try_from(Memory::LINKS_MAX).unwrap_or(usize::MAX);
    for link in tx.rows().links_at(id, most) {
        if link.origin != Origin::Conflict || !link.is_open_conflict() {
            continue;
        }
        let Some(other) = tx.rows().memory(link.other_end(id)) else {
            continue;
        };
        let (source, target) = if link.source == id {
            (&memory, &other)
        } else {
            (&other, &memory)
        };
        let reason = reason_between(source, target);
        if reason != link.reason {
            let mut said = link.clone();
            said.reason = reason;
            tx.change_link(&link, said);
        }
    }
}

fn reason_between(source: &Memory, target: &Memory) -> String {
    let pairs = source.statement.claims.iter().filter_map(|claim| {
        let against = target.statement.claims.iter();
        let mut opposed = against.filter(|c| c.slot == claim.slot && opposes(claim, c));
        opposed.next().map(|against| reason_of(claim, against))
    });
    let mut pairs = pairs;
    pairs
        .next()
        .unwrap_or_else(|| "one side was changed since; compare the two again".to_owned())
}

fn reason_of(claim: &Claim, against: &Claim) -> String {
    if claim.value == against.value {
        return format!("said and denied: {}", claim.slot_text);
    }
    format!("{}: {} against {}", claim.slot_text, shown(claim), shown(against))
}

fn shown(claim: &Claim) -> String {
    if claim.negated {
        format!("not {}", claim.value_text)
    } else {
        claim.value_text.clone()
    }
}

/// Two claims of one slot exclude each other: different values, or the same value claimed and denied.
fn opposes(a: &Claim, b: &Claim) -> bool {
    if a.value == b.value {
        a.negated != b.negated
    } else {
        !a.negated && !b.negated
    }
}

/// Two stated periods that do not touch are two truths, not a contradiction.
fn periods_overlap(a: &Memory, b: &Memory) -> bool {
    let ends_before = |x: &Memory, y: &Memory| x.valid_to.is_some_and(|end| end <= y.valid_from);
    !(ends_before(a, b) || ends_before(b, a))
}

/// A pair that somebody declared to be no conflict is reported again only when a text changes: then the same link is
/// open again.
fn reopened(tx: &mut Transaction<'_>, memory: &Memory, other: &Memory, made: &mut Vec<LinkId>) -> bool {
    let between = conflict_between(tx, memory.id, other.id);
    let Some(link) = between.filter(|link| {
        link.resolution
            .as_ref()
            .is_some_and(|r| r.resolved && r.winner.is_none())
    }) else {
        return false;
    };
    let settled_at = link.resolution.as_ref().and_then(|r| r.at).unwrap_or_default();
    if memory.text_version > 1 && memory.updated_at > settled_at {
        let mut open = link.clone();
        open.resolution = Some(Resolution::open());
        made.push(open.id);
        tx.change_link(&link, open);
    }
    true
}

fn conflict_between(tx: &Transaction<'_>, a: MemoryId, b: MemoryId) -> Option<Link> {
    let rows = tx.rows();
    rows.link_of(a, Relationship::Contradicts, b)
        .or_else(|| rows.link_of(a, Relationship::Updates, b))
        .or_else(|| rows.link_of(b, Relationship::Updates, a))
}

/// One pair has one conflict link.
fn has_conflict(tx: &Transaction<'_>, a: MemoryId, b: MemoryId) -> bool {
    conflict_between(tx, a, b).is_some()
}

fn in_slot(tx: &Transaction<'_>, memory: &Memory, slot: crate::statement::Fingerprint) -> Vec<Memory> {
    let project_key = memory.scope.project_key();
    let ids = tx
        .rows()
        .with_fingerprint(&project_key, Form::Slot, slot, SLOT_CANDIDATES_MAX);
    ids.into_iter()
        .filter(|id| *id != memory.id)
        .filter_map(|id| tx.rows().memory(id))
        .filter(|other| is_open(other, tx.now))
        .collect()
}

fn conflict_link(
    tx: &Transaction<'_>,
    relationship: Relationship,
    source: MemoryId,
    target: MemoryId,
    reason: String,
) -> Link {
    Link {
        id: tx.link_id(source, relationship.word(), target),
        source,
        target,
        relationship,
        weight_thousandths: 1_000,
        confidence: Confidence::Inferred,
        origin: Origin::Conflict,
        reason,
        shared_terms: Vec::new(),
        author: tx.principal.clone(),
        created_at: tx.now,
        version: 1,
        resolution: Some(Resolution::open()),
    }
}

/// The same statement with more qualifiers is derived from the one with fewer.
fn link_general_forms(tx: &mut Transaction<'_>, memory: &Memory) {
    let project_key = memory.scope.project_key();
    let mut pairs: Vec<(MemoryId, MemoryId)> = Vec::new();
    for general in &memory.statement.general {
        let ids = tx
            .rows()
            .with_fingerprint(&project_key, Form::Canonical, *general, GENERAL_LINKS_MAX);
        pairs.extend(ids.into_iter().map(|id| (memory.id, id)));
    }
    if let Some(canonical) = memory.statement.canonical {
        let ids = tx
            .rows()
            .with_fingerprint(&project_key, Form::General, canonical, GENERAL_LINKS_MAX);
        pairs.extend(ids.into_iter().map(|id| (id, memory.id)));
    }
    for (specific, general) in pairs.into_iter().take(GENERAL_LINKS_MAX) {
        let other = if specific == memory.id { general } else { specific };
        let related = tx
            .rows()
            .memory(other)
            .is_some_and(|other| other.statement.modality == memory.statement.modality && is_open(&other, tx.now));
        let linked = tx
            .rows()
            .link_of(specific, Relationship::DerivedFrom, general)
            .is_some();
        if specific == general || !related || linked {
            continue;
        }
        let mut link = conflict_link(
            tx,
            Relationship::DerivedFrom,
            specific,
            general,
            "the same statement with more qualifiers".to_owned(),
        );
        link.resolution = None;
        tx.insert_link(link);
    }
}
