//! What was given out so far: records are counted, and doubles and links without an end are held back.

use std::collections::HashSet;

use waggle_memory::id::MemoryId;
use waggle_memory::record::Record;

use super::reader::Report;
use crate::error::{Dangling, Place, ReadError};
use crate::limits::{NODES_MAX, RECORDS_MAX};

/// Links without an end that an error lists.
const DANGLING_LISTED_MAX: usize = 100;

/// Counts records, and refuses doubles and links without an end.
#[derive(Default)]
pub(crate) struct Taken {
    pub(crate) report: Report,
    nodes: HashSet<MemoryId>,
    others: HashSet<[u8; 16]>,
    last: Option<u8>,
}

impl Taken {
    /// Whether the record is to be given out.
    pub(crate) fn take(&mut self, record: &Record, place: &Place) -> Result<bool, ReadError> {
        let counts = &mut self.report.counts;
        let (sort, count, limit) = match record {
            Record::Session(_) => (0, &mut counts.sessions, RECORDS_MAX),
            Record::Turn(..) => (1, &mut counts.transcripts, RECORDS_MAX),
            Record::Memory(_) => (2, &mut counts.nodes, NODES_MAX),
            Record::Link(_) => (3, &mut counts.edges, RECORDS_MAX),
            Record::Redirect(_) => (4, &mut counts.redirects, RECORDS_MAX),
            Record::Tombstone(..) => (5, &mut counts.tombstones, RECORDS_MAX),
        };
        if self.last != Some(sort) {
            self.others.clear();
            self.last = Some(sort);
        }
        let new = match record {
            Record::Session(_) => true,
            Record::Turn(turn, _) => self.others.insert(turn.id.bytes()),
            Record::Memory(memory) => self.nodes.insert(memory.memory.id),
            Record::Link(link) => self.others.insert(link.id.bytes()),
            Record::Redirect(redirect) => self.others.insert(redirect.from.bytes()),
            Record::Tombstone(id, _) => self.others.insert(id.bytes()),
        };
        if !new {
            return Err(ReadError::Malformed {
                place: place.clone(),
                why: "a record with this id was there before".to_owned(),
            });
        }
        if let Record::Link(link) = record {
            for end in [link.source, link.target] {
                if !self.nodes.contains(&end) {
                    self.report.changes.dangling_dropped += 1;
                    if self.report.dangling.len() < DANGLING_LISTED_MAX {
                        self.report.dangling.push(Dangling { link: link.id, end });
                    }
                    return Ok(false);
                }
            }
        }
        if *count >= limit {
            return Err(ReadError::TooLarge {
                place: place.clone(),
                what: "records of one sort",
                limit,
            });
        }
        *count += 1;
        Ok(true)
    }
}
