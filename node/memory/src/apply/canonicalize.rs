//! A deliberate merge: wordings, evidence, tags, validity and links of several memories flow into one; their ids lead
//! there from then on.

use std::collections::BTreeSet;

use super::delete::remove_versions;
use super::duplicates::united;
use super::links::leads_to;
use super::transaction::Transaction;
use crate::change::ChangeKind;
use crate::command::Canonicalize;
use crate::id::{MemoryId, TurnId};
use crate::kind::Relationship;
use crate::link::Link;
use crate::memory::{Alias, ChangeReason, Evidence, Memory};
use crate::outcome::{Canonicalized, Outcome, Rejection};
use crate::tables::{Item, Row, TenantKey};

/// Most rows (links and evidence) that one merge moves: what a single log entry may cost.
const ROWS_MAX: u32 = 20_000;

pub(super) fn apply_canonicalize(tx: &mut Transaction<'_>, command: &Canonicalize) -> Result<Outcome, Rejection> {
    let canonical = found(tx, command.canonical)?;
    let merged = check(tx, command, &canonical)?;
    let mut done = Canonicalized {
        id: canonical.id,
        merged: merged.iter().map(|memory| memory.id).collect(),
        links_moved: 0,
        links_dropped: 0,
        aliases_added: 0,
    };
    if merged.is_empty() {
        return Ok(Outcome::Canonicalized(Box::new(done)));
    }
    for memory in &merged {
        move_links(tx, memory.id, canonical.id, &mut done);
    }
    // The links have changed its counts, and maybe what it was superseded by.
    let old = found(tx, canonical.id)?;
    let mut new = old.clone();
    for memory in &merged {
        done.aliases_added += take_in(tx, &mut new, memory);
        move_evidence(tx, &mut new, memory.id);
    }
    let ids: BTreeSet<MemoryId> = done.merged.iter().copied().collect();
    let reopened = new.valid_to.is_none() && old.valid_to.is_some();
    if reopened || new.superseded_by.is_some_and(|winner| ids.contains(&winner)) {
        new.superseded_by = None;
    }
    tx.change_memory(&old, new, ChangeReason::Merge);
    for memory in &merged {
        // Its counts of links have changed; nothing else of the row matters for its removal.
        remove_versions(tx, memory);
        tx.note_memory(ChangeKind::Merged, memory, Some(canonical.id));
        tx.remove_memory(memory);
        tx.put(TenantKey::Redirect(memory.id), Row::Redirect(canonical.id));
    }
    Ok(Outcome::Canonicalized(Box::new(done)))
}

fn found(tx: &Transaction<'_>, id: MemoryId) -> Result<Memory, Rejection> {
    tx.rows().resolved(id).ok_or_else(|| Rejection::NotFound {
        what: "memory",
        id: id.to_string(),
    })
}

/// The memories to merge, each once, without those that are merged already.
fn check(tx: &Transaction<'_>, command: &Canonicalize, canonical: &Memory) -> Result<Vec<Memory>, Rejection> {
    if command.memories.len() > Canonicalize::MEMORIES_MAX {
        let why = format!(
            "{} memories in one merge; at most {}",
            command.memories.len(),
            Canonicalize::MEMORIES_MAX
        );
        return Err(Rejection::LimitExceeded { why });
    }
    let mut merged: Vec<Memory> = Vec::new();
    for id in &command.memories {
        let memory = found(tx, *id)?;
        if memory.id == canonical.id || merged.iter().any(|known| known.id == memory.id) {
            continue;
        }
        if memory.scope.project_key() != canonical.scope.project_key() {
            let why = format!(
                "{} belongs to project '{}' and the canonical memory to '{}'; merge inside one project only",
                memory.id, memory.scope.project, canonical.scope.project
            );
            return Err(Rejection::Invalid { field: "node_ids", why });
        }
        merged.push(memory);
    }
    let links: u32 = merged.iter().map(|m| m.link_count).fold(0, u32::saturating_add);
    if links.saturating_add(canonical.link_count) > Memory::LINKS_MAX {
        let why = format!("together they have more than {} links", Memory::LINKS_MAX);
        return Err(Rejection::LimitExceeded { why });
    }
    let evidence = merged.iter().map(|m| m.evidence_count.min(Memory::EVIDENCE_KEPT_MAX));
    if evidence.fold(links, u32::saturating_add) > ROWS_MAX {
        let why = format!("their links and evidence are more than {ROWS_MAX} rows; merge fewer at a time");
        return Err(Rejection::LimitExceeded { why });
    }
    Ok(merged)
}

fn move_links(tx: &mut Transaction<'_>, from: MemoryId, to: MemoryId, done: &mut Canonicalized) {
    let most = usize::try_from(Memory::LINKS_MAX).unwrap_or(usize::MAX);
    for link in tx.rows().links_at(from, most) {
        let other = link.other_end(from);
        if link.is_open_conflict() && other == to {
            // The two are one now: the question is settled.
            tx.note_link(ChangeKind::Resolved, &link);
        }
        let linked = is_there(tx, &link, from, to);
        let closes_cycle = !linked && other != to && closes_a_cycle(tx, &link, from, to);
        if other == to || linked || closes_cycle {
            tx.remove_link(&link, from);
            done.links_dropped = done.links_dropped.saturating_add(1);
        } else {
            tx.move_link(&link, from, to);
            done.links_moved = done.links_moved.saturating_add(1);
        }
        // Only what is linked is found again when the winner is erased.
        let winner = (other != to && !closes_cycle).then_some(to);
        follow_winner(tx, other, from, winner);
    }
}

fn is_there(tx: &Transaction<'_>, link: &Link, from: MemoryId, to: MemoryId) -> bool {
    let (source, target) = moved_ends(link, from, to);
    tx.rows().link_of(source, link.relationship, target).is_some()
}

fn closes_a_cycle(tx: &Transaction<'_>, link: &Link, from: MemoryId, to: MemoryId) -> bool {
    let (source, target) = moved_ends(link, from, to);
    link.relationship == Relationship::Updates && leads_to(tx, target, source)
}

fn moved_ends(link: &Link, from: MemoryId, to: MemoryId) -> (MemoryId, MemoryId) {
    let moved = |end: MemoryId| if end == from { to } else { end };
    (moved(link.source), moved(link.target))
}

/// What was superseded by a merged memory is superseded by what took it in.
fn follow_winner(tx: &mut Transaction<'_>, loser: MemoryId, from: MemoryId, winner: Option<MemoryId>) {
    let loser = tx.rows().memory(loser).filter(|loser| loser.superseded_by == Some(from));
    if let Some(mut loser) = loser {
        loser.superseded_by = winner;
        tx.rewrite_memory(loser);
    }
}

/// Wordings, tags, confidence and validity. Gives the number of new aliases.
fn take_in(tx: &Transaction<'_>, canonical: &mut Memory, memory: &Memory) -> u32 {
    let own = Alias {
        text: memory.content.clone(),
        author: memory.author.clone(),
        added_at: tx.now,
        exact: Some(memory.statement.reading()),
    };
    // A name that its own statement does not contain is a wording, too.
    let name = (!memory.content.contains(&memory.label)).then(|| Alias {
        text: memory.label.clone(),
        exact: None,
        ..own.clone()
    });
    let mut added = 0;
    for alias in std::iter::once(own).chain(name).chain(memory.aliases.iter().cloned()) {
        let known = alias.text == canonical.content || canonical.aliases.iter().any(|there| there.text == alias.text);
        if !known && canonical.aliases.len() < Memory::ALIASES_MAX {
            canonical.aliases.push(alias);
            added += 1;
        }
    }
    canonical.tags = united(&canonical.tags, &memory.tags);
    canonical.confidence = canonical.confidence.min(memory.confidence);
    canonical.valid_from = canonical.valid_from.min(memory.valid_from);
    canonical.valid_from_stated |= memory.valid_from_stated;
    canonical.valid_to = match (canonical.valid_to, memory.valid_to) {
        (Some(one), Some(two)) => Some(one.max(two)),
        _ => None,
    };
    canonical.due = canonical.due.or(memory.due);
    if canonical.source_prompt.is_empty() {
        canonical.source_prompt.clone_from(&memory.source_prompt);
    }
    added
}

/// Evidence gets the next numbers of the canonical memory, oldest first, and its turns name that one.
fn move_evidence(tx: &mut Transaction<'_>, canonical: &mut Memory, from: MemoryId) {
    let most = usize::try_from(Memory::EVIDENCE_KEPT_MAX)
        .unwrap_or(usize::MAX)
        .saturating_add(1);
    let mut evidence: Vec<(u32, Evidence)> = tx.rows().evidence(from, most);
    evidence.reverse();
    let mut turns: BTreeSet<TurnId> = BTreeSet::new();
    for (number, evidence) in evidence {
        turns.extend(evidence.turn.as_ref().map(|span| span.turn));
        tx.delete(TenantKey::Evidence(from, number));
        tx.add_evidence(canonical, evidence);
    }
    for turn in turns {
        if let Some(mut turn) = tx.rows().turn(turn) {
            let named = turn.memories.contains(&canonical.id);
            turn.memories.iter_mut().filter(|id| **id == from).for_each(|id| *id = canonical.id);
            if named {
                let mut seen = BTreeSet::new();
                turn.memories.retain(|id| seen.insert(*id));
            }
            tx.changed(Item::Turn(turn.id));
            tx.put(TenantKey::Turn(turn.id), Row::Turn(Box::new(turn)));
        }
    }
}
