//! What is persisted: entries of the Raft log and rows of the tables.
//!
//! Log messages are read for ever: numbers are never reused, fields are only added (`log/*.proto`). Decoders are total:
//! bytes that are not a message of this format give a [`Malformed`], never a panic.

mod row_kind;

pub use row_kind::RowKind;
