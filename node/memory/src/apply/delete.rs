//! Erasing a memory: content, versions, aliases, evidence, links, vector and index rows go; a tombstone stays, and so
//! do the turns it rested on, until transcripts are cleared.

use std::collections::BTreeSet;

use super::transaction::Transaction;
use crate::id::{MemoryId, TurnId};
use crate::memory::{Memory, Tombstone};
use crate::outcome::{Outcome, Rejection};
use crate::tables::{Row, TenantKey};

pub(super) fn apply_delete(tx: &mut Transaction<'_>, id: MemoryId) -> Result<Outcome, Rejection> {
    if let Some(there) = tx.rows().tombstone(id) {
        return Ok(Outcome::Deleted {
            id,
            deleted: false,
            label: String::new(),
            deleted_links: there.deleted_links,
            turns_kept: there.turns_kept,
            receipt: there.receipt,
        });
    }
    let Some(memory) = tx.rows().memory(id) else {
        return Err(Rejection::NotFound {
            what: "memory",
            id: id.to_string(),
        });
    };
    let deleted_links = remove_links(tx, id);
    let turns_kept = remove_evidence(tx, id);
    for version in 1..memory.version {
        if memory.version - version <= Memory::VERSIONS_KEPT_MAX {
            tx.delete(TenantKey::Version(id, version));
        }
    }
    tx.remove_memory(&memory);
    let tombstone = Tombstone {
        deleted_at: tx.now,
        author: tx.principal.clone(),
        receipt: tx.receipt(id),
        deleted_links,
        turns_kept,
    };
    let receipt = tombstone.receipt.clone();
    tx.put(TenantKey::Tombstone(id), Row::Tombstone(tombstone));
    Ok(Outcome::Deleted {
        id,
        deleted: true,
        label: memory.label,
        deleted_links,
        turns_kept,
        receipt,
    })
}

fn remove_links(tx: &mut Transaction<'_>, id: MemoryId) -> u32 {
    let most = usize::try_from(Memory::LINKS_MAX).unwrap_or(usize::MAX);
    let links = tx.rows().links_at(id, most);
    for link in &links {
        tx.remove_link(link, id);
    }
    u32::try_from(links.len()).unwrap_or(u32::MAX)
}

/// Removes evidence and the memory's name from its turns. Gives the number of turns.
fn remove_evidence(tx: &mut Transaction<'_>, id: MemoryId) -> u32 {
    let most = usize::try_from(Memory::EVIDENCE_KEPT_MAX)
        .unwrap_or(usize::MAX)
        .saturating_add(1);
    let mut turns: BTreeSet<TurnId> = BTreeSet::new();
    for (number, evidence) in tx.rows().evidence(id, most) {
        turns.extend(evidence.turn.map(|span| span.turn));
        tx.delete(TenantKey::Evidence(id, number));
    }
    for turn in &turns {
        if let Some(mut turn) = tx.rows().turn(*turn) {
            turn.memories.retain(|memory| *memory != id);
            tx.changed(crate::tables::Item::Turn(turn.id));
            tx.put(TenantKey::Turn(turn.id), Row::Turn(Box::new(turn)));
        }
    }
    u32::try_from(turns.len()).unwrap_or(u32::MAX)
}
