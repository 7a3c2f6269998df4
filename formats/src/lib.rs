//! Files that a graph is exported to and imported from: records (`waggle_memory::record`) to bytes, and back.
//!
//! Pure: reads and writes through `std::io` traits that the caller gives, one record at a time; no files, no network, no
//! clock, no randomness. Every byte that is read counts as hostile. The gateway and the command line call this crate;
//! what is done with the records is theirs to decide.

pub mod limits;

pub mod check;
pub mod counts;
pub mod error;
pub mod secrets;
pub mod signature;

pub mod abhi;
pub mod backup;
pub mod graphml;
pub mod waggle_json;

pub mod graph;
pub mod redaction;

pub mod bundle;
pub mod html;
pub mod vault;

mod json;
mod order;
mod scanner;
mod shape;
mod waggle;
