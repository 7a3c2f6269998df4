//! Erasing a memory: content, versions, aliases, evidence, links, vector and index rows go; a tombstone stays, and so
//! do the turns it rested on, until transcripts are cleared.

use std::collections::BTreeSet;

use super::transaction::Transaction;
use crate::change::ChangeKind;
use crate::id::{MemoryId, TurnId};
use crate::memory::{Erased, Memory, Tombstone};
use crate::outcome::{Outcome, Rejection};
use crate::tables::{Item, Row, TenantKey};

pub(super) fn apply_delete(tx: &mut Transaction<'_>, given: MemoryId) -> Result<Outcome, Rejection> {
    let id = tx.rows().follow(given);
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
            id: given.to_string(),
        });
    };
    let tombstone = erase(tx, &memory);
    Ok(Outcome::Deleted {
        id,
        deleted: true,
        label: memory.label,
        deleted_links: tombstone.deleted_links,
        turns_kept: tombstone.turns_kept,
        receipt: tombstone.receipt,
    })
}

/// Erases a memory that is there, and gives the tombstone that it leaves.
pub(super) fn erase(tx: &mut Transaction<'_>, memory: &Memory) -> Tombstone {
    let id = memory.id;
    let deleted_links = remove_links(tx, id);
    let turns_kept = remove_evidence(tx, id);
    remove_versions(tx, memory);
    tx.note_memory(ChangeKind::Deleted, memory, None);
    tx.remove_memory(memory);
    let tombstone = Tombstone {
        deleted_at: tx.now,
        author: tx.principal.clone(),
        receipt: tx.receipt(id),
        deleted_links,
        turns_kept,
        of: Some(Erased {
            scope: memory.scope.clone(),
            kind: memory.kind,
            recorded_at: memory.recorded_at,
            content_hash: content_hash(memory),
        }),
    };
    tx.put(TenantKey::Tombstone(id), Row::Tombstone(tombstone.clone()));
    tombstone
}

fn content_hash(memory: &Memory) -> [u8; 16] {
    let mut hasher = xxhash_rust::xxh3::Xxh3::new();
    hasher.update(memory.label.as_bytes());
    hasher.update(&[0]);
    hasher.update(memory.content.as_bytes());
    hasher.digest128().to_be_bytes()
}

/// Removes the kept earlier versions.
pub(super) fn remove_versions(tx: &mut Transaction<'_>, memory: &Memory) {
    let oldest = memory.version.saturating_sub(Memory::VERSIONS_KEPT_MAX).max(1);
    for version in oldest..memory.version {
        tx.delete(TenantKey::Version(memory.id, version));
    }
}

fn remove_links(tx: &mut Transaction<'_>, id: MemoryId) -> u32 {
    let most = usize::try_from(Memory::LINKS_MAX).unwrap_or(usize::MAX);
    let links = tx.rows().links_at(id, most);
    for link in &links {
        tx.remove_link(link, id);
        release(tx, link.other_end(id), id);
    }
    u32::try_from(links.len()).unwrap_or(u32::MAX)
}

/// What was superseded by an erased memory stays ended, and no longer names it.
fn release(tx: &mut Transaction<'_>, other: MemoryId, gone: MemoryId) {
    let loser = tx.rows().memory(other).filter(|other| other.superseded_by == Some(gone));
    if let Some(mut loser) = loser {
        loser.superseded_by = None;
        tx.rewrite_memory(loser);
    }
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
    unname(tx, &turns, id);
    u32::try_from(turns.len()).unwrap_or(u32::MAX)
}

/// Takes a memory out of the lists of turns that it no longer rests on.
pub(super) fn unname(tx: &mut Transaction<'_>, turns: &BTreeSet<TurnId>, id: MemoryId) {
    for turn in turns {
        if let Some(mut turn) = tx.rows().turn(*turn) {
            turn.memories.retain(|memory| *memory != id);
            tx.changed(Item::Turn(turn.id));
            tx.put(TenantKey::Turn(turn.id), Row::Turn(Box::new(turn)));
        }
    }
}
