//! Records as the members of files show them. Fields are declared in the order of their names, so that what serde writes
//! is canonical; a test of the backup checks it.

pub(crate) mod link;
pub(crate) mod memory;
pub(crate) mod statement;
pub(crate) mod transcript;

use waggle_memory::record::Record;

/// A record, as it stands in a file.
pub(crate) fn to_json(record: &Record) -> Result<Vec<u8>, serde_json::Error> {
    match record {
        Record::Session(session) => serde_json::to_vec(&transcript::SessionShape::from(session)),
        Record::Turn(turn, message) => serde_json::to_vec(&transcript::TurnShape::new(turn, *message)),
        Record::Memory(memory) => serde_json::to_vec(&memory::MemoryShape::from(&**memory)),
        Record::Link(link) => serde_json::to_vec(&link::LinkShape::from(&**link)),
        Record::Redirect(redirect) => serde_json::to_vec(&memory::RedirectShape::from(redirect)),
        Record::Tombstone(id, tombstone) => serde_json::to_vec(&memory::TombstoneShape::new(*id, tombstone)),
    }
}
