//! Links that somebody draws.

use super::transaction::Transaction;
use crate::command::StoreLink;
use crate::id::{LinkId, MemoryId};
use crate::kind::{Confidence, Origin, Relationship};
use crate::link::{Link, Resolution};
use crate::memory::Memory;
use crate::outcome::{Outcome, Rejection};

/// Most memories visited in search of a cycle of updates.
const CYCLE_VISITS_MAX: usize = 10_000;

pub(super) fn apply_store_link(tx: &mut Transaction<'_>, command: &StoreLink) -> Result<Outcome, Rejection> {
    let relationship = command.relationship;
    let end = |given: MemoryId| {
        tx.rows()
            .resolved(given)
            .map(|memory| memory.id)
            .ok_or_else(|| Rejection::NotFound {
                what: "memory",
                id: given.to_string(),
            })
    };
    let (source, target) = (end(command.source)?, end(command.target)?);
    if source == target {
        return Err(Rejection::Invalid {
            field: "target_id",
            why: "a memory cannot be linked to itself".to_owned(),
        });
    }
    let weight_thousandths = command.weight_thousandths.min(1_000);
    if let Some(there) = tx.rows().link_of(source, relationship, target) {
        let id = there.id;
        if there.confidence != Confidence::Explicit || there.weight_thousandths != weight_thousandths {
            let raised = Link {
                confidence: Confidence::Explicit,
                weight_thousandths,
                ..there.clone()
            };
            tx.change_link(&there, raised);
        }
        return Ok(Outcome::LinkStored { id, created: false });
    }
    if relationship == Relationship::Updates && leads_to(tx, target, source) {
        return Err(Rejection::Invalid {
            field: "relationship",
            why: "this would close a cycle of 'updates' links: the target already replaces the source".to_owned(),
        });
    }
    for end in [source, target] {
        if is_full(tx, end) {
            let why = format!(
                "memory {end} has {} links, the most that one memory may have",
                Memory::LINKS_MAX
            );
            return Err(Rejection::LimitExceeded { why });
        }
    }
    tx.insert_link(Link {
        id: command.id,
        source,
        target,
        relationship,
        weight_thousandths,
        confidence: Confidence::Explicit,
        origin: Origin::Manual,
        reason: String::new(),
        shared_terms: Vec::new(),
        author: tx.principal.clone(),
        created_at: tx.now,
        version: 1,
        resolution: relationship.is_conflict().then(Resolution::open),
    });
    Ok(Outcome::LinkStored {
        id: command.id,
        created: true,
    })
}

/// Erases a link; what a resolution did to its ends stays. Repeating it is harmless.
pub(super) fn apply_delete_link(tx: &mut Transaction<'_>, id: LinkId) -> Outcome {
    let found = tx.rows().link(id);
    let deleted = found.is_some();
    if let Some(link) = found {
        tx.cut_link(&link);
    }
    Outcome::LinkDeleted { id, deleted }
}

pub(super) fn is_full(tx: &Transaction<'_>, memory: MemoryId) -> bool {
    tx.rows()
        .memory(memory)
        .is_some_and(|memory| memory.link_count >= Memory::LINKS_MAX)
}

/// Whether `to` is reached from `from` along updates links.
pub(super) fn leads_to(tx: &Transaction<'_>, from: MemoryId, to: MemoryId) -> bool {
    let mut seen = std::collections::BTreeSet::from([from]);
    let mut waiting = vec![from];
    while let Some(memory) = waiting.pop() {
        if memory == to {
            return true;
        }
        for link in tx.rows().links_from(memory, CYCLE_VISITS_MAX) {
            if link.relationship == Relationship::Updates && seen.len() < CYCLE_VISITS_MAX && seen.insert(link.target) {
                waiting.push(link.target);
            }
        }
    }
    false
}
