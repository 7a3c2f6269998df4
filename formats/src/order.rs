//! What a file promises about its records: sorted by sort and id, none twice, links with both ends, bounded counts.

use waggle_memory::record::Record;
use waggle_memory::scope::name_key;

use crate::counts::Counts;
use crate::error::Dangling;
use crate::limits::{NODES_MAX, RECORDS_MAX};

/// Where a record belongs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    Session(String, String),
    Turn([u8; 16]),
    Memory([u8; 16]),
    Link([u8; 16]),
    Redirect([u8; 16]),
    Tombstone([u8; 16]),
}

impl Key {
    fn of(record: &Record) -> Self {
        match record {
            Record::Session(session) => Self::Session(name_key(&session.project), session.session_id.clone()),
            Record::Turn(turn, _) => Self::Turn(turn.id.bytes()),
            Record::Memory(record) => Self::Memory(record.memory.id.bytes()),
            Record::Link(link) => Self::Link(link.id.bytes()),
            Record::Redirect(redirect) => Self::Redirect(redirect.from.bytes()),
            Record::Tombstone(id, _) => Self::Tombstone(id.bytes()),
        }
    }
}

/// Why a record does not belong where it is.
#[derive(Debug)]
pub(crate) enum Misplaced {
    OutOfOrder,
    Dangling(Dangling),
    TooMany { what: &'static str, limit: u64 },
}

/// Checks records in the order of a file.
#[derive(Default)]
pub(crate) struct Order {
    last: Option<Key>,
    /// Ascending, as they came: 16 bytes a memory.
    nodes: Vec<[u8; 16]>,
    pub(crate) counts: Counts,
}

impl Order {
    /// Takes the next record. One that is misplaced is not counted.
    pub(crate) fn take(&mut self, record: &Record) -> Result<(), Misplaced> {
        let key = Key::of(record);
        if self.last.as_ref().is_some_and(|last| *last >= key) {
            return Err(Misplaced::OutOfOrder);
        }
        if let Record::Link(link) = record {
            for end in [link.source, link.target] {
                if self.nodes.binary_search(&end.bytes()).is_err() {
                    self.last = Some(key);
                    return Err(Misplaced::Dangling(Dangling { link: link.id, end }));
                }
            }
        }
        let (count, what, limit) = match record {
            Record::Session(_) => (&mut self.counts.sessions, "sessions", RECORDS_MAX),
            Record::Turn(..) => (&mut self.counts.transcripts, "turns", RECORDS_MAX),
            Record::Memory(_) => (&mut self.counts.nodes, "memories", NODES_MAX),
            Record::Link(_) => (&mut self.counts.edges, "links", RECORDS_MAX),
            Record::Redirect(_) => (&mut self.counts.redirects, "redirects", RECORDS_MAX),
            Record::Tombstone(..) => (&mut self.counts.tombstones, "tombstones", RECORDS_MAX),
        };
        if *count >= limit {
            return Err(Misplaced::TooMany { what, limit });
        }
        *count += 1;
        if let Key::Memory(id) = key {
            self.nodes.push(id);
        }
        self.last = Some(key);
        Ok(())
    }
}
