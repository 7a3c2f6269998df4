//! Taking in records of an export: ids, texts, versions and times as they were; counters, index rows and vectors as for
//! everything else. The same records a second time change nothing.
//!
//! In this order, whatever the order of the command: sessions, turns by position, memories, links, tombstones, redirects;
//! then turns learn which memories rest on them.

mod links;
pub(crate) mod memories;
mod redirects;
mod turns;

use std::collections::BTreeMap;

use super::transaction::Transaction;
use crate::handoff::Message;
use crate::id::{MemoryId, TurnId};
use crate::import::check::check;
use crate::import::{ConflictReason, ImportRecords, ImportStrategy, Imported, RecordKind};
use crate::link::Link;
use crate::memory::Tombstone;
use crate::outcome::{Outcome, Rejection};
use crate::record::{MemoryRecord, Record, Redirect};
use crate::tables::{Row, TenantKey};
use crate::transcript::{Session, Turn};

pub(super) fn apply_import(tx: &mut Transaction<'_>, command: &ImportRecords) -> Result<Outcome, Rejection> {
    if command.records.len() > ImportRecords::RECORDS_MAX {
        let why = format!(
            "{} records in one command; at most {}",
            command.records.len(),
            ImportRecords::RECORDS_MAX
        );
        return Err(Rejection::LimitExceeded { why });
    }
    command.records.iter().try_for_each(check)?;
    let sorted = Sorted::of(&command.records);
    let mut import = Import {
        strategy: command.strategy,
        await_vectors: command.await_vectors,
        report: Imported::default(),
        rests_on: BTreeMap::new(),
        cycle_visits_left: links::CYCLE_VISITS_MAX,
    };
    for session in &sorted.sessions {
        turns::open_session(tx, &mut import, session);
    }
    for (turn, message) in &sorted.turns {
        turns::take_in(tx, &mut import, turn, *message);
    }
    for record in &sorted.memories {
        memories::take_in(tx, &mut import, record);
    }
    for link in &sorted.links {
        links::take_in(tx, &mut import, link);
    }
    memories::settle(tx, &import, &sorted.memories);
    for (id, tombstone) in &sorted.tombstones {
        take_in_tombstone(tx, &mut import, *id, tombstone);
    }
    redirects::take_in(tx, &mut import, &sorted.redirects);
    turns::note_memories(tx, &mut import, &sorted.turns);
    for session in &sorted.sessions {
        turns::close_session(tx, session);
    }
    Ok(Outcome::Imported(Box::new(import.report)))
}

/// What the parts of one import share.
struct Import {
    strategy: ImportStrategy,
    await_vectors: bool,
    report: Imported,
    /// Memories that were found to rest on a turn.
    rests_on: BTreeMap<TurnId, Vec<MemoryId>>,
    cycle_visits_left: usize,
}

impl Import {
    fn conflict(&mut self, record: RecordKind, id: [u8; 16], why: ConflictReason, field: &str) {
        self.report.conflict(record, id, why, field);
    }
}

/// The records of a command by sort. Turns in the order of their positions, so that they get the same ones here.
#[derive(Default)]
struct Sorted<'a> {
    sessions: Vec<&'a Session>,
    turns: Vec<(&'a Turn, Option<Message>)>,
    memories: Vec<&'a MemoryRecord>,
    links: Vec<&'a Link>,
    redirects: Vec<Redirect>,
    tombstones: Vec<(MemoryId, &'a Tombstone)>,
}

impl<'a> Sorted<'a> {
    fn of(records: &'a [Record]) -> Self {
        let mut sorted = Self::default();
        for record in records {
            match record {
                Record::Session(session) => sorted.sessions.push(session),
                Record::Turn(turn, message) => sorted.turns.push((turn, *message)),
                Record::Memory(record) => sorted.memories.push(record),
                Record::Link(link) => sorted.links.push(link),
                Record::Tombstone(id, tombstone) => sorted.tombstones.push((*id, tombstone)),
                Record::Redirect(redirect) => sorted.redirects.push(*redirect),
            }
        }
        sorted.turns.sort_by_cached_key(|(turn, _)| {
            (
                turn.scope.project_key(),
                turn.scope.session_id.clone(),
                turn.turn_index,
                turn.id,
            )
        });
        sorted
    }
}

/// An erased id stays erased; what lives here is not erased by somebody's file.
fn take_in_tombstone(tx: &mut Transaction<'_>, import: &mut Import, id: MemoryId, tombstone: &Tombstone) {
    if tx.rows().memory(id).is_some() {
        import.report.tombstones.unchanged += 1;
        import.conflict(RecordKind::Tombstone, id.bytes(), ConflictReason::Alive, "");
    } else if tx.rows().tombstone(id).is_some() || tx.rows().redirect(id).is_some() {
        import.report.tombstones.unchanged += 1;
    } else {
        tx.put(TenantKey::Tombstone(id), Row::Tombstone(tombstone.clone()));
        import.report.tombstones.created += 1;
    }
}
