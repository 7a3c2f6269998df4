//! What is persisted: entries of the Raft log and rows of the tables.
//!
//! Log messages are read for ever: numbers are never reused, fields are only added (`log/common.proto` has the rules).
//! Decoders are total: bytes that are not a message of this format give a [`Malformed`], never a panic. The generated
//! types stay inside; outside there are only domain types and bytes.

pub mod limits;

mod command;
mod common;
mod history;
mod link;
mod malformed;
mod memory;
mod message;
mod meta;
mod outcome;
mod record;
mod row;
mod row_kind;
mod statement;
mod transcript;

#[expect(unreachable_pub, reason = "generated code")]
#[allow(clippy::all, reason = "generated code")]
mod generated {
    tonic::include_proto!("waggle.log.v1");
}

use prost::Message;
use waggle_memory::command::Entry;
use waggle_memory::record::Record;
use waggle_memory::tables::Row;

pub use malformed::Malformed;
pub use row_kind::RowKind;

use malformed::bounded_bytes;
use message::Persisted;

/// The bytes of an entry. Whoever proposes it first asks [`check_entry`].
pub fn encode_entry(entry: &Entry) -> Vec<u8> {
    entry.to_message().encode_to_vec()
}

/// Reads what [`encode_entry`] of this or an earlier release wrote.
pub fn decode_entry(bytes: &[u8]) -> Result<Entry, Malformed> {
    bounded_bytes(bytes.len(), limits::ENTRY_BYTES_MAX)?;
    Entry::from_message(decode(bytes)?)
}

/// Encodes an entry that is to be proposed and makes sure that every replica will decode it: once committed, an entry
/// that does not decode would halt them all.
pub fn check_entry(entry: &Entry) -> Result<Vec<u8>, Malformed> {
    let bytes = encode_entry(entry);
    decode_entry(&bytes)?;
    Ok(bytes)
}

/// The bytes of a row.
pub fn encode_row(row: &Row) -> Vec<u8> {
    row.to_message().encode_to_vec()
}

/// Reads what [`encode_row`] of this or an earlier release wrote, and makes sure that it is of the kind that its key
/// demands.
pub fn decode_row(kind: RowKind, bytes: &[u8]) -> Result<Row, Malformed> {
    bounded_bytes(bytes.len(), limits::ROW_BYTES_MAX)?;
    let row = Row::from_message(decode(bytes)?)?;
    let found = RowKind::of(&row);
    if found == kind {
        Ok(row)
    } else {
        Err(Malformed::WrongRow {
            expected: kind.word(),
            found: found.word(),
        })
    }
}

/// The bytes of one record, as it travels between processes.
pub fn encode_record(record: &Record) -> Vec<u8> {
    record.to_message().encode_to_vec()
}

/// Reads what [`encode_record`] wrote.
pub fn decode_record(bytes: &[u8]) -> Result<Record, Malformed> {
    bounded_bytes(bytes.len(), limits::ENTRY_BYTES_MAX)?;
    Record::from_message(decode(bytes)?)
}

fn decode<M: Message + Default>(bytes: &[u8]) -> Result<M, Malformed> {
    M::decode(bytes).map_err(|error| Malformed::NotAMessage(error.to_string()))
}

#[cfg(test)]
mod tests;
