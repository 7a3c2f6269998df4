//! Memories and links as answers show them: with conflicts, evidence and the state of their vector.

use std::collections::BTreeSet;

use waggle_memory::id::{LinkId, MemoryId};
use waggle_memory::kind::Relationship;
use waggle_memory::link::Link;
use waggle_memory::memory::Memory;
use waggle_memory::tables::Item;
use waggle_memory::tables::typed::TenantRows;
use waggle_memory::time::Millis;
use waggle_proto::wire;

/// Most conflicts shown at one memory.
const CONFLICTS_SHOWN_MAX: usize = 16;
/// Most evidence shown with a full memory.
const EVIDENCE_SHOWN_MAX: usize = 20;
/// Most links of one memory that are looked at for an answer.
pub(super) const LINKS_READ_MAX: usize = 1_000;

/// The conflicts at a memory; none costs nothing, because a memory counts its open ones.
pub(super) fn conflicts_at(rows: TenantRows<'_>, memory: &Memory, with_resolved: bool) -> Vec<Link> {
    if memory.open_conflict_count == 0 && !with_resolved {
        return Vec::new();
    }
    rows.links_at(memory.id, LINKS_READ_MAX)
        .into_iter()
        .filter(|link| link.relationship.is_conflict() && (with_resolved || link.is_open_conflict()))
        .take(CONFLICTS_SHOWN_MAX)
        .collect()
}

fn mark(memory: MemoryId, link: &Link) -> wire::ConflictMark {
    let open = link.is_open_conflict();
    wire::ConflictMark {
        link_id: link.id.bytes().to_vec(),
        relationship: u32::from(link.relationship.number()),
        with: link.other_end(memory).bytes().to_vec(),
        resolved: !open,
        updated_by_other: open && link.relationship == Relationship::Updates && link.target == memory,
    }
}

/// A memory as lists show it.
pub(super) fn brief(rows: TenantRows<'_>, memory: &Memory, at: Millis) -> (wire::Memory, Vec<Link>) {
    let conflicts = conflicts_at(rows, memory, false);
    let mut view = wire::memory(memory, &[], at);
    hide_absent_winner(rows, memory, &mut view);
    view.conflicts = conflicts.iter().map(|link| mark(memory.id, link)).collect();
    (view, conflicts)
}

/// No answer names a winner that was erased, or that a part of a graph did not bring along.
fn hide_absent_winner(rows: TenantRows<'_>, memory: &Memory, view: &mut wire::Memory) {
    if let Some(winner) = memory.superseded_by {
        view.superseded_by = rows
            .resolved(winner)
            .map(|winner| winner.id.bytes().to_vec())
            .unwrap_or_default();
    }
}

/// A memory with everything.
pub(super) fn full(rows: TenantRows<'_>, memory: &Memory, at: Millis) -> wire::Memory {
    let evidence: Vec<_> = rows
        .evidence(memory.id, EVIDENCE_SHOWN_MAX)
        .into_iter()
        .map(|(_, e)| e)
        .collect();
    let mut view = wire::memory(memory, &evidence, at);
    hide_absent_winner(rows, memory, &mut view);
    view.conflicts = conflicts_at(rows, memory, true)
        .iter()
        .map(|link| mark(memory.id, link))
        .collect();
    let item = Item::Memory(memory.id);
    view.has_vector = rows.vector(item).is_some();
    view.awaits_vector = !view.has_vector && rows.awaits_vector(item);
    view
}

/// Links by id, in the order given; those that are gone are left out.
pub(super) fn links(rows: TenantRows<'_>, ids: &[LinkId]) -> Vec<wire::Link> {
    ids.iter()
        .filter_map(|id| rows.link(*id))
        .map(|link| wire::link(&link))
        .collect()
}

/// Links whose both ends are shown, each once.
pub(super) fn links_among(rows: TenantRows<'_>, memories: &[Memory]) -> Vec<wire::Link> {
    let shown: BTreeSet<MemoryId> = memories.iter().map(|memory| memory.id).collect();
    let mut links = Vec::new();
    for memory in memories.iter().filter(|memory| memory.link_count > 0) {
        let from_here = rows.links_from(memory.id, LINKS_READ_MAX);
        links.extend(
            from_here
                .iter()
                .filter(|link| shown.contains(&link.target))
                .map(wire::link),
        );
    }
    links
}

/// A short note for the first use of a project name: similar names that exist may be what was meant.
pub(super) fn scope_note(rows: TenantRows<'_>, project: &str) -> String {
    let similar = similar_names(project, rows.projects(1_000).into_iter().map(|p| p.name));
    if similar.is_empty() {
        format!("first use of project '{project}'")
    } else {
        format!(
            "first use of project '{project}'; similar known projects: {}",
            similar.join(", ")
        )
    }
}

/// Up to three known names that are near to a given one.
pub(super) fn similar_names(given: &str, known: impl Iterator<Item = String>) -> Vec<String> {
    let given_key = waggle_memory::scope::name_key(given);
    let mut near: Vec<(usize, String)> = known
        .filter(|name| !name.is_empty())
        .filter_map(|name| {
            let key = waggle_memory::scope::name_key(&name);
            let distance = edit_distance(&given_key, &key);
            let contained =
                key.len() >= 3 && given_key.len() >= 3 && (key.contains(&given_key) || given_key.contains(&key));
            let most = (given_key.chars().count().max(key.chars().count()) / 3).max(1);
            (distance > 0 && (distance <= most || contained)).then_some((distance, name))
        })
        .collect();
    near.sort();
    near.truncate(3);
    near.into_iter().map(|(_, name)| name).collect()
}

/// Levenshtein distance in characters, of at most the first 64 of each.
fn edit_distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().take(64).collect(), b.chars().take(64).collect());
    let mut previous: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = i;
        let mut left = i + 1;
        let mut row = vec![left];
        for (y, above) in b.iter().zip(previous.iter().skip(1)) {
            let cost = diagonal + usize::from(x != y);
            left = cost.min(above + 1).min(left + 1);
            diagonal = *above;
            row.push(left);
        }
        previous = row;
    }
    previous.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn similar_names_are_found_by_spelling_and_containment() {
        let known = || {
            ["payments", "payment-api", "waggle", "x"]
                .into_iter()
                .map(str::to_owned)
        };
        assert_eq!(similar_names("paymnts", known()), ["payments"]);
        assert_eq!(similar_names("wagle", known()), ["waggle"]);
        assert_eq!(similar_names("payment", known()), ["payments", "payment-api"]);
        assert!(similar_names("zebra", known()).is_empty());
    }
}
