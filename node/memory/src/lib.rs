//! The memory domain: memories, links, evidence, transcripts, and what every command does to them.
//!
//! Pure: no IO, no async, no clock, no randomness, no serde. Time, ids, vectors and extracted drafts are arguments, so
//! the same entries give the same state on every replica.

pub mod id;
pub mod kind;
pub mod time;

pub mod change;
pub mod clear;
pub mod link;
pub mod memory;
pub mod meta;
pub mod placement;
pub mod scope;
pub mod statement;
pub mod transcript;

pub mod command;
pub mod export;
pub mod import;
pub mod outcome;
pub mod tables;

pub mod apply;
pub mod handoff;
pub mod invariant;

pub mod extract;
pub mod rank;
pub mod read;
pub mod record;
pub mod time_words;
pub mod topics;
