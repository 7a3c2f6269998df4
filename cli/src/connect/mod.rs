//! Connects other programs to a gateway: their configuration files, edited in place, and the text that tells their agents
//! how to use memory.
//!
//! Pure but for [`mod@file`]: which files a client has follows from the environment as [`places`] was given it, and an edit is
//! a function from text to text. Called by `waggle connect`, `waggle disconnect` and `waggle doctor`.

pub(crate) mod clients;
pub(crate) mod entry;
pub(crate) mod plan;
pub(crate) mod target;

pub(crate) mod file;
pub(crate) mod places;
pub(crate) mod rules;

pub(crate) mod diff;
pub(crate) mod edit;
pub(crate) mod jsonc;
pub(crate) mod malformed;
pub(crate) mod toml;
