//! Links of an import. A triple has one link, whatever its id in the file.

use super::Import;
use crate::apply::links::is_full;
use crate::apply::transaction::Transaction;
use crate::id::MemoryId;
use crate::import::{ConflictReason, ImportStrategy, RecordKind};
use crate::kind::Relationship;
use crate::link::{Link, Resolution};

/// Most memories visited by one command in search of cycles of `updates`; beyond, further such links are left out and
/// named.
pub(super) const CYCLE_VISITS_MAX: usize = 50_000;

pub(super) fn take_in(tx: &mut Transaction<'_>, import: &mut Import, file: &Link) {
    let file = well_formed(file);
    let there = match tx.rows().link(file.id) {
        Some(there) if !joins_the_same(&there, &file) => {
            return refuse(import, &file, ConflictReason::OtherLink, "");
        }
        Some(there) => Some(there),
        None => tx.rows().link_of(file.source, file.relationship, file.target),
    };
    match there {
        Some(there) => unite(tx, import, &there, &file),
        None => insert(tx, import, file),
    }
}

/// Only conflicts have a resolution, and only an end can win.
fn well_formed(file: &Link) -> Link {
    let mut link = file.clone();
    link.weight_thousandths = link.weight_thousandths.min(1_000);
    link.resolution = match link.resolution {
        _ if !link.relationship.is_conflict() => None,
        None => Some(Resolution::open()),
        Some(mut resolution) => {
            resolution.winner = resolution.winner.filter(|id| *id == link.source || *id == link.target);
            Some(resolution)
        }
    };
    link
}

fn joins_the_same(a: &Link, b: &Link) -> bool {
    let turned = a.relationship.is_symmetric() && (a.source, a.target) == (b.target, b.source);
    a.relationship == b.relationship && (turned || (a.source, a.target) == (b.source, b.target))
}

fn insert(tx: &mut Transaction<'_>, import: &mut Import, link: Link) {
    if link.source == link.target {
        return refuse(import, &link, ConflictReason::SelfLink, "");
    }
    if tx.rows().memory(link.source).is_none() || tx.rows().memory(link.target).is_none() {
        import.report.dangling += 1;
        return import.conflict(RecordKind::Link, link.id.bytes(), ConflictReason::Dangling, "");
    }
    if is_full(tx, link.source) || is_full(tx, link.target) {
        return refuse(import, &link, ConflictReason::Full, "");
    }
    if link.relationship == Relationship::Updates && may_close_cycle(tx, import, link.source, link.target) {
        return refuse(import, &link, ConflictReason::Cycle, "");
    }
    tx.insert_link(link);
    import.report.links.created += 1;
}

fn unite(tx: &mut Transaction<'_>, import: &mut Import, there: &Link, file: &Link) {
    let differs = differing(there, file);
    let wins = match import.strategy {
        ImportStrategy::SkipExisting => false,
        ImportStrategy::Merge => file.version > there.version,
        ImportStrategy::Overwrite => file.version > there.version || !differs.is_empty(),
    };
    if wins {
        let new = Link {
            id: there.id,
            source: there.source,
            target: there.target,
            version: file.version.max(there.version.saturating_add(1)),
            ..file.clone()
        };
        tx.replace_link(there, new);
        import.report.links.updated += 1;
        return;
    }
    import.report.links.unchanged += 1;
    let same_version = file.version == there.version && import.strategy == ImportStrategy::Merge;
    if same_version && !differs.is_empty() {
        import.conflict(RecordKind::Link, file.id.bytes(), ConflictReason::Differs, &differs);
    }
}

fn refuse(import: &mut Import, link: &Link, why: ConflictReason, field: &str) {
    import.report.links.unchanged += 1;
    import.conflict(RecordKind::Link, link.id.bytes(), why, field);
}

fn differing(there: &Link, file: &Link) -> String {
    let resolution = |link: &Link| {
        let resolution = link.resolution.as_ref();
        resolution.map(|r| (r.resolved, r.winner, r.note.clone(), r.stated))
    };
    let pairs = [
        ("weight", there.weight_thousandths != file.weight_thousandths),
        ("confidence", there.confidence != file.confidence),
        ("origin", there.origin != file.origin),
        ("reason", there.reason != file.reason),
        ("shared_terms", there.shared_terms != file.shared_terms),
        ("resolution", resolution(there) != resolution(file)),
    ];
    super::memories::names_of(&pairs)
}

/// Whether `source` is reached from `target` along updates links, or may be: the search has a bound.
fn may_close_cycle(tx: &Transaction<'_>, import: &mut Import, source: MemoryId, target: MemoryId) -> bool {
    // Nothing leads to a memory that replaces others and is replaced by none.
    if !tx.rows().is_updated(source) {
        return false;
    }
    let mut seen = std::collections::BTreeSet::from([target]);
    let mut waiting = vec![target];
    while let Some(memory) = waiting.pop() {
        if memory == source {
            return true;
        }
        for next in tx.rows().updated_by(memory, import.cycle_visits_left) {
            if import.cycle_visits_left == 0 {
                return true;
            }
            import.cycle_visits_left -= 1;
            if seen.insert(next) {
                waiting.push(next);
            }
        }
        if import.cycle_visits_left == 0 {
            return true;
        }
    }
    false
}
