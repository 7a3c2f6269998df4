//! Records on their way into commands of bounded size.

use std::collections::BTreeSet;
use std::sync::Arc;

use waggle_memory::id::{LinkId, MemoryId};
use waggle_memory::import::ImportRecords;
use waggle_memory::record::{MemoryRecord, Record};
use waggle_memory::tables::typed::TenantRows;
use waggle_memory::transcript::Session;

use crate::error::CallError;

/// Most bytes of one command, as records. The log takes 16 MiB.
const COMMAND_BYTES_MAX: usize = 12 * 1024 * 1024;
/// Sessions whose counts are settled at the end.
const SESSIONS_MAX: usize = 4_000;
/// Superseded memories that come once more at the end, and their bytes.
const SUPERSEDED_MAX: usize = 2_000;
const SUPERSEDED_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Links that a refusal names.
const DANGLING_SHOWN: usize = 20;

/// Records that wait for the next command.
#[derive(Default)]
pub(super) struct Batch {
    records: Vec<Record>,
    bytes: usize,
    last_bytes: usize,
    is_second: bool,
    /// Sessions of earlier commands: their counts are brought at the end, when everything that is counted is there.
    sessions: Vec<Session>,
    known: Arc<BTreeSet<MemoryId>>,
    /// Memories that were superseded by one that comes later: they come once more at the end.
    superseded: Vec<MemoryRecord>,
    superseded_bytes: usize,
}

impl Batch {
    pub(super) fn is_full_with(&self, bytes: usize) -> bool {
        // The sessions come once more at the end.
        let at_the_end = self.sessions.len() + self.superseded.len();
        self.records.len() + at_the_end >= ImportRecords::RECORDS_MAX
            || (!self.records.is_empty() && self.bytes + bytes + self.superseded_bytes > COMMAND_BYTES_MAX)
    }

    pub(super) fn push(&mut self, record: Record, bytes: usize) {
        self.bytes += bytes;
        if let Record::Memory(record) = &record {
            Arc::make_mut(&mut self.known).insert(record.memory.id);
        }
        self.records.push(record);
    }

    /// The records of the next command.
    pub(super) fn take(&mut self, is_last: bool) -> Vec<Record> {
        let mut records = std::mem::take(&mut self.records);
        self.last_bytes = std::mem::take(&mut self.bytes);
        if is_last {
            if self.is_second {
                records.extend(std::mem::take(&mut self.sessions).into_iter().map(Record::Session));
                let superseded = std::mem::take(&mut self.superseded).into_iter();
                records.extend(superseded.map(|record| Record::Memory(Box::new(record))));
            }
            return records;
        }
        self.is_second = true;
        records.iter().for_each(|record| self.remember_superseded(record));
        for record in &mut records {
            if let Record::Session(session) = record {
                if self.sessions.len() < SESSIONS_MAX {
                    self.sessions.push(session.clone());
                }
                session.memory_count = 0;
            }
        }
        records
    }

    fn remember_superseded(&mut self, record: &Record) {
        let Record::Memory(record) = record else { return };
        let memory = &record.memory;
        let comes_later = memory.superseded_by.is_some_and(|winner| !self.known.contains(&winner));
        let own = MemoryRecord {
            memory: memory.clone(),
            evidence: Vec::new(),
            versions: Vec::new(),
        };
        let bytes = own.bytes_about();
        if comes_later && self.superseded.len() < SUPERSEDED_MAX && self.superseded_bytes + bytes < SUPERSEDED_BYTES_MAX
        {
            self.superseded_bytes += bytes;
            self.superseded.push(own);
        }
    }

    pub(super) fn last_bytes(&self) -> usize {
        self.last_bytes
    }

    /// Memories that this import brought so far.
    pub(super) fn known_memories(&self) -> Arc<BTreeSet<MemoryId>> {
        Arc::clone(&self.known)
    }
}

/// Links with their ends.
pub(super) fn ends_of_links(records: &[Record]) -> Vec<(LinkId, [MemoryId; 2])> {
    let links = records.iter().filter_map(|record| match record {
        Record::Link(link) => Some((link.id, [link.source, link.target])),
        _ => None,
    });
    links.collect()
}

/// Links with an end that neither the import brings nor the tenant has.
pub(super) fn dangling(
    rows: TenantRows<'_>,
    links: &[(LinkId, [MemoryId; 2])],
    known: &BTreeSet<MemoryId>,
) -> Vec<LinkId> {
    let is_there = |end: &MemoryId| known.contains(end) || rows.memory(*end).is_some();
    let dangling = links.iter().filter(|(_, ends)| !ends.iter().all(is_there));
    dangling.map(|(id, _)| *id).collect()
}

pub(super) fn refuse_dangling(dangling: &[LinkId], commands: u32) -> Result<(), CallError> {
    if dangling.is_empty() {
        return Ok(());
    }
    let shown: Vec<String> = dangling.iter().take(DANGLING_SHOWN).map(ToString::to_string).collect();
    let so_far = if commands == 0 {
        "nothing was imported"
    } else {
        "what came before them was imported"
    };
    Err(CallError::rejected(
        "dangling_edge",
        format!(
            "{} edges have an end that is not there: {}; {so_far}; repeat with allow_dangling to leave them out",
            dangling.len(),
            shown.join(", ")
        ),
    ))
}
