//! Records of exports and the command that takes them in.

use waggle_memory::id::{EvidenceId, LinkId, MemoryId, TurnId};
use waggle_memory::import::{ImportRecords, ImportStrategy};
use waggle_memory::record::{MemoryRecord, Record, Redirect};

use super::{Draw, Sort};

impl Draw {
    pub fn import(&mut self) -> ImportRecords {
        ImportRecords {
            tenant: self.tenant(),
            strategy: self.pick(&[
                ImportStrategy::Merge,
                ImportStrategy::SkipExisting,
                ImportStrategy::Overwrite,
            ]),
            await_vectors: self.flag(),
            records: (0..6).map(|sort| self.record(sort)).collect(),
        }
    }

    pub fn record(&mut self, sort: usize) -> Record {
        match sort {
            0 => Record::Session(self.session()),
            1 => {
                let mut turn = self.turn();
                turn.id = TurnId::from_bytes(self.old_or_new(Sort::Turn));
                Record::Turn(Box::new(turn), self.maybe(Self::message))
            }
            2 => Record::Memory(Box::new(self.memory_record())),
            3 => {
                let mut link = self.link();
                if self.near {
                    link.id = LinkId::from_bytes(self.old_or_new(Sort::Link));
                    link.version = link.version.max(1);
                }
                Record::Link(Box::new(link))
            }
            4 => Record::Redirect(Redirect {
                from: self.memory_id(),
                to: self.memory_id(),
            }),
            _ => Record::Tombstone(self.memory_id(), self.tombstone()),
        }
    }

    fn old_or_new(&mut self, sort: Sort) -> [u8; 16] {
        if self.flag() { self.new_id(sort) } else { self.id(sort) }
    }

    /// With `near` a record that may come in.
    fn memory_record(&mut self) -> MemoryRecord {
        let mut memory = self.memory();
        memory.id = MemoryId::from_bytes(self.old_or_new(Sort::Memory));
        let mut evidence: Vec<_> = self.list(|draw| (draw.u32(), draw.evidence()));
        let mut versions = self.list(Self::version);
        if self.near {
            memory.version = memory.version.max(1) + u32::try_from(versions.len()).unwrap();
            memory.text_version = 1;
            memory.valid_to = None;
            memory.evidence_count = 3;
            for (number, (at, piece)) in (1..).zip(&mut evidence) {
                *at = number;
                piece.id = EvidenceId::from_bytes(u128::from(self.number() % 9).to_be_bytes());
                if let Some(span) = &mut piece.turn {
                    span.end = span.end.max(span.start);
                }
            }
            for (number, version) in (1..).zip(&mut versions) {
                version.version = number;
            }
        }
        MemoryRecord {
            memory,
            evidence,
            versions,
        }
    }
}
