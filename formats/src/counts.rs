//! How many records of each sort a file holds.

use serde::{Deserialize, Serialize};

/// Records by sort, in the words of the files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Counts {
    /// Links.
    pub edges: u64,
    /// Memories.
    pub nodes: u64,
    /// Ids that were merged away.
    pub redirects: u64,
    /// Sessions.
    pub sessions: u64,
    /// Marks of erased memories.
    pub tombstones: u64,
    /// Turns.
    pub transcripts: u64,
}
