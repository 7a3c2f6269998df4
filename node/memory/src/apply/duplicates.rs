//! Exact duplicates and merging. Apply finds what fingerprints can tell, whatever the leader knew when it planned, so
//! two concurrent stores of one fact end as one memory. What only similarity can tell comes in the command.

use super::transaction::{Transaction, is_open};
use crate::command::{DedupReason, NewMemory};
use crate::kind::Kind;
use crate::memory::{Alias, ChangeReason, Evidence, Memory};
use crate::outcome::StoredMemory;
use crate::tables::Form;
use crate::time::Millis;

/// Most stored memories of one fingerprint that are compared.
const CANDIDATES_MAX: usize = 64;
/// Most tags that a memory collects by merges, bookkeeping tags included.
const TAGS_MAX: usize = 64;

/// A stored memory that the new one repeats.
pub(super) struct Duplicate {
    pub(super) memory: Memory,
    pub(super) reason: DedupReason,
    pub(super) similarity_thousandths: u32,
}

pub(super) fn find(tx: &Transaction<'_>, project_key: &str, new: &NewMemory) -> Option<Duplicate> {
    let statement = &new.statement;
    let by_form = [
        (DedupReason::ExactContent, Form::Exact, Some(statement.exact)),
        // A wording that was merged in before is an alias of its memory.
        (DedupReason::ExactContent, Form::Exact, Some(statement.reading())),
        (DedupReason::CanonicalForm, Form::Canonical, statement.canonical),
        // One of the two spells out the name that the other abbreviates.
        (DedupReason::CanonicalForm, Form::Canonical, statement.acronym),
        (DedupReason::CanonicalForm, Form::Acronym, statement.canonical),
    ];
    for (reason, form, fingerprint) in by_form {
        let Some(fingerprint) = fingerprint else { continue };
        let ids = tx
            .rows()
            .with_fingerprint(project_key, form, fingerprint, CANDIDATES_MAX);
        let found = ids
            .into_iter()
            .filter_map(|id| tx.rows().memory(id))
            .find(|there| may_merge(tx, there, new));
        if let Some(memory) = found {
            return Some(Duplicate {
                memory,
                reason,
                similarity_thousandths: 1_000,
            });
        }
    }
    let similar = new.similar.as_ref()?;
    let memory = tx.rows().memory(similar.id)?;
    let unchanged = memory.text_version == similar.text_version && memory.scope.project_key() == project_key;
    let agrees = unchanged && kinds_states_and_times_agree(tx, &memory, new);
    agrees.then_some(Duplicate {
        memory,
        reason: similar.reason,
        similarity_thousandths: similar.similarity_thousandths,
    })
}

/// Equal words are not enough: "tomorrow" said on two days, or "I prefer tabs" said by two authors, differ in the
/// canonical form, which holds resolved dates and subjects.
fn may_merge(tx: &Transaction<'_>, there: &Memory, new: &NewMemory) -> bool {
    let (theirs, ours) = (&there.statement, &new.statement);
    let abbreviated = (ours.acronym.is_some() && ours.acronym == theirs.canonical)
        || (theirs.acronym.is_some() && theirs.acronym == ours.canonical);
    let same_reading = theirs.canonical == ours.canonical
        || abbreviated
        || there.aliases.iter().any(|alias| alias.exact == Some(ours.reading()));
    same_reading && theirs.modality == ours.modality && kinds_states_and_times_agree(tx, there, new)
}

fn kinds_states_and_times_agree(tx: &Transaction<'_>, there: &Memory, new: &NewMemory) -> bool {
    there.kind.may_merge_with(new.kind) && is_open(there, tx.now) && validity_agrees(there, new)
}

/// Gate G5: a stated validity blocks only if both state one and the two differ.
fn validity_agrees(there: &Memory, new: &NewMemory) -> bool {
    let from_agrees = !there.valid_from_stated || new.valid_from.is_none_or(|from| from == there.valid_from);
    let to_agrees = there.valid_to.is_none() || new.valid_to.is_none() || there.valid_to == new.valid_to;
    from_agrees && to_agrees
}

/// Merges `new` into a stored memory: it keeps id, label and content; the wording becomes an alias and evidence.
pub(super) fn merge(tx: &mut Transaction<'_>, found: Duplicate, new: &NewMemory, evidence: Evidence) -> StoredMemory {
    let old = found.memory;
    let mut memory = old.clone();
    let wording_known = memory.statement.exact == new.statement.exact
        || memory
            .aliases
            .iter()
            .any(|alias| alias.exact == Some(new.statement.reading()));
    let aliases_full = !wording_known && memory.aliases.len() >= Memory::ALIASES_MAX;
    let alias_added = !wording_known && !aliases_full;
    if alias_added {
        memory.aliases.push(Alias {
            text: new.content.clone(),
            author: evidence.author.clone(),
            added_at: tx.now,
            exact: Some(new.statement.reading()),
        });
    }
    memory.tags = united(&memory.tags, &new.tags);
    if memory.kind == Kind::Note && matches!(new.kind, Kind::Decision | Kind::Fact | Kind::Preference) {
        memory.kind = new.kind;
    }
    unite_validity(&mut memory, new);
    memory.confidence = memory.confidence.min(new.confidence);
    tx.add_evidence(&mut memory, evidence);
    let stored = StoredMemory {
        id: memory.id,
        merged: Some(found.reason),
        similarity_thousandths: found.similarity_thousandths,
        alias_added,
        aliases_full,
    };
    tx.change_memory(&old, memory, ChangeReason::Merge);
    stored
}

/// If one states a validity, the merged memory has it; of two defaults, the earlier.
fn unite_validity(memory: &mut Memory, new: &NewMemory) {
    match (memory.valid_from_stated, new.valid_from) {
        (false, Some(stated)) if memory.valid_to.is_none_or(|end| stated < end) => {
            memory.valid_from = stated;
            memory.valid_from_stated = true;
        }
        (false, None) => {
            memory.valid_from = memory
                .valid_from
                .min(new.default_valid_from.unwrap_or(Millis(i64::MAX)))
        }
        _ => {}
    }
    if memory.valid_to.is_none() && new.valid_to.is_some_and(|end| end > memory.valid_from) {
        memory.valid_to = new.valid_to;
    }
}

/// Sorted union, bounded.
pub(super) fn united(there: &[String], new: &[String]) -> Vec<String> {
    let mut tags: Vec<String> = there.to_vec();
    tags.extend(new.iter().filter(|tag| !there.contains(tag)).cloned());
    tags.truncate(TAGS_MAX);
    tags.sort();
    tags.dedup();
    tags
}
