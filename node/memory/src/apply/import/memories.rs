//! Memories of an import, each with its evidence and earlier versions.

use std::collections::BTreeSet;

use super::{Import, turns};
use crate::apply::transaction::Transaction;
use crate::change::ChangeKind;
use crate::id::{EvidenceId, MemoryId};
use crate::import::{ConflictReason, ImportStrategy, RecordKind};
use crate::memory::{Alias, ChangeReason, Evidence, Memory, Version};
use crate::record::MemoryRecord;
use crate::tables::{Item, Row, TenantKey};

pub(super) fn take_in(tx: &mut Transaction<'_>, import: &mut Import, record: &MemoryRecord) {
    let id = record.memory.id;
    if tx.rows().tombstone(id).is_some() {
        import.report.memories.unchanged += 1;
        import.conflict(RecordKind::Memory, id.bytes(), ConflictReason::Erased, "");
        return;
    }
    if tx.rows().redirect(id).is_some() {
        import.report.memories.unchanged += 1;
        import.conflict(RecordKind::Memory, id.bytes(), ConflictReason::Merged, "");
        return;
    }
    let Some(there) = tx.rows().memory(id) else {
        insert(tx, import, record);
        import.report.memories.created += 1;
        return;
    };
    let changed = import.strategy != ImportStrategy::SkipExisting && unite(tx, import, &there, record);
    if changed {
        import.report.memories.updated += 1;
    } else {
        import.report.memories.unchanged += 1;
    }
}

fn insert(tx: &mut Transaction<'_>, import: &mut Import, record: &MemoryRecord) {
    turns::enter(tx, &record.memory);
    let namespace = tx.project_mut(&record.memory.scope.project_key()).namespace.clone();
    let memory = Memory {
        namespace,
        tags: sorted(&record.memory.tags),
        superseded_by: None,
        link_count: 0,
        open_conflict_count: 0,
        ..record.memory.clone()
    };
    let id = memory.id;
    for (number, evidence) in &record.evidence {
        put_evidence(tx, import, id, *number, evidence.clone());
    }
    for version in &record.versions {
        put_version(tx, &memory, version);
    }
    let vector = turns::awaited(import);
    tx.insert_memory(memory, &vector);
}

/// What superseded what, once all memories of the command are there: a winner that is not here supersedes nothing (I-23).
/// Where the stored version is another one, its own state stays.
pub(super) fn settle(tx: &mut Transaction<'_>, import: &Import, records: &[&MemoryRecord]) {
    for record in records {
        let file = &record.memory;
        let (Some(winner), Some(there)) = (file.superseded_by, tx.rows().memory(file.id)) else {
            continue;
        };
        let is_its_state = there.version == file.version || import.strategy == ImportStrategy::Overwrite;
        let takes = there.superseded_by.is_none() && is_its_state && import.strategy != ImportStrategy::SkipExisting;
        if takes && winner != file.id && tx.rows().memory(winner).is_some() {
            tx.rewrite_memory(Memory {
                superseded_by: Some(winner),
                ..there
            });
        }
    }
}

/// Brings a record together with the memory of its id. True when that changed something.
fn unite(tx: &mut Transaction<'_>, import: &mut Import, there: &Memory, record: &MemoryRecord) -> bool {
    let file = &record.memory;
    let differs = differing(there, file);
    let overwrites = import.strategy == ImportStrategy::Overwrite && !differs.is_empty();
    let mut new = if file.version > there.version {
        keep_as_version(tx, there, Some(record));
        taking(there, file, file.version)
    } else if overwrites {
        keep_as_version(tx, there, None);
        let mut new = taking(there, file, there.version.saturating_add(1));
        new.updated_at = tx.now;
        new.text_version = if same_text(there, file) {
            there.text_version
        } else {
            new.version
        };
        new
    } else {
        if file.version == there.version && !differs.is_empty() {
            import.conflict(RecordKind::Memory, file.id.bytes(), ConflictReason::Differs, &differs);
        }
        there.clone()
    };
    unite_aliases(&mut new, &file.aliases);
    let evidence_came = unite_evidence(tx, import, &mut new, record);
    let versions_came = unite_versions(tx, &new, &record.versions);
    let changed = new != *there;
    if changed {
        let kind = if new.version == there.version {
            ChangeKind::Evidence
        } else if there.valid_to.is_none() && new.valid_to.is_some() {
            ChangeKind::Closed
        } else {
            ChangeKind::Updated
        };
        tx.replace_memory(there, new.clone(), kind);
        if !same_text(there, &new) {
            let vector = turns::awaited(import);
            tx.set_vector(Item::Memory(new.id), &vector);
        }
    }
    changed || evidence_came || versions_came
}

/// `there` with the state of `file`. Identity, scope, evidence and links stay.
fn taking(there: &Memory, file: &Memory, version: u32) -> Memory {
    Memory {
        namespace: there.namespace.clone(),
        scope: there.scope.clone(),
        tags: sorted(&file.tags),
        superseded_by: None,
        aliases: there.aliases.clone(),
        evidence_count: there.evidence_count,
        version,
        link_count: there.link_count,
        open_conflict_count: there.open_conflict_count,
        ..file.clone()
    }
}

fn same_text(a: &Memory, b: &Memory) -> bool {
    a.label == b.label && a.content == b.content
}

/// Keeps the state that is replaced, unless the record has it among its versions.
fn keep_as_version(tx: &mut Transaction<'_>, there: &Memory, record: Option<&MemoryRecord>) {
    let ours = tx.version_of(there, ChangeReason::Import);
    let theirs = record
        .and_then(|record| record.versions.iter().find(|v| v.version == there.version))
        .filter(|theirs| states_equal(theirs, &ours));
    let kept = theirs.cloned().unwrap_or(ours);
    tx.put(TenantKey::Version(there.id, kept.version), Row::Version(Box::new(kept)));
}

fn states_equal(a: &Version, b: &Version) -> bool {
    (&a.label, &a.content, a.kind, &a.tags, a.valid_from, a.valid_to)
        == (&b.label, &b.content, b.kind, &b.tags, b.valid_from, b.valid_to)
}

fn unite_aliases(memory: &mut Memory, aliases: &[Alias]) {
    for alias in aliases {
        let known = memory.aliases.iter().any(|there| there.text == alias.text);
        if !known && memory.aliases.len() < Memory::ALIASES_MAX {
            memory.aliases.push(alias.clone());
        }
    }
}

/// Adds evidence that is not there. A full list takes no more: what came later is kept, and the same import again finds
/// the same list.
fn unite_evidence(tx: &mut Transaction<'_>, import: &mut Import, memory: &mut Memory, record: &MemoryRecord) -> bool {
    let most = usize::try_from(Memory::EVIDENCE_KEPT_MAX).unwrap_or(usize::MAX);
    let there = tx.rows().evidence(memory.id, most);
    let known: BTreeSet<EvidenceId> = there.iter().map(|(_, evidence)| evidence.id).collect();
    let mut room = most.saturating_sub(there.len());
    let mut came = false;
    for (_, evidence) in &record.evidence {
        if room == 0 || known.contains(&evidence.id) || memory.evidence_count == u32::MAX {
            continue;
        }
        memory.evidence_count = memory.evidence_count.saturating_add(1);
        put_evidence(tx, import, memory.id, memory.evidence_count, evidence.clone());
        room -= 1;
        came = true;
    }
    came
}

/// Evidence names the position that its turn has here.
fn put_evidence(tx: &mut Transaction<'_>, import: &mut Import, id: MemoryId, number: u32, mut evidence: Evidence) {
    if let Some(span) = &mut evidence.turn {
        if let Some(turn) = tx.rows().turn(span.turn) {
            span.turn_index = turn.turn_index;
        }
        turns::rests_on(import, id, span.turn);
    }
    tx.put(TenantKey::Evidence(id, number), Row::Evidence(Box::new(evidence)));
}

fn unite_versions(tx: &mut Transaction<'_>, memory: &Memory, versions: &[Version]) -> bool {
    let most = usize::try_from(Memory::VERSIONS_KEPT_MAX).unwrap_or(usize::MAX);
    let there = tx.rows().versions(memory.id, most);
    let known: BTreeSet<u32> = there.iter().map(|version| version.version).collect();
    let mut came = false;
    for version in versions.iter().filter(|version| !known.contains(&version.version)) {
        came |= put_version(tx, memory, version);
    }
    came
}

/// Versions so old that they would have been dropped are not taken in.
fn put_version(tx: &mut Transaction<'_>, memory: &Memory, version: &Version) -> bool {
    let kept = version.version < memory.version && memory.version - version.version <= Memory::VERSIONS_KEPT_MAX;
    if kept {
        tx.put(
            TenantKey::Version(memory.id, version.version),
            Row::Version(Box::new(version.clone())),
        );
    }
    kept
}

/// The fields in which a record differs from what is stored, by the names of the tool surface.
pub(crate) fn differing(there: &Memory, file: &Memory) -> String {
    let pairs = [
        ("label", there.label != file.label),
        ("content", there.content != file.content),
        ("node_type", there.kind != file.kind),
        ("tags", there.tags != sorted(&file.tags)),
        ("source_prompt", there.source_prompt != file.source_prompt),
        ("confidence", there.confidence != file.confidence),
        ("valid_from", there.valid_from != file.valid_from),
        ("valid_to", there.valid_to != file.valid_to),
        ("metadata", there.metadata != file.metadata),
        ("due", there.due != file.due),
    ];
    names_of(&pairs)
}

/// The names that are marked, separated by commas.
pub(super) fn names_of(pairs: &[(&str, bool)]) -> String {
    let differing: Vec<&str> = pairs
        .iter()
        .filter(|(_, differs)| *differs)
        .map(|(name, _)| *name)
        .collect();
    differing.join(",")
}

fn sorted(tags: &[String]) -> Vec<String> {
    let mut tags = tags.to_vec();
    tags.sort();
    tags.dedup();
    tags
}
