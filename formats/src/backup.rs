//! The JSON backup, `waggle-cluster-backup` version 1: everything that is kept of a graph, in one object.
//!
//! Members, in this order: format, format_version, tenant_id, exported_at, read_at, scope, embedding_model_id,
//! rules_version, sessions, transcripts, nodes, edges, redirects, tombstones, counts, content_hash, signature. Records
//! stand one on a line, sorted by id (sessions by project and session), their keys sorted; the same records with the
//! same header are the same bytes.
//!
//! `content_hash` is the SHA-256 of all bytes before the quotation mark that opens its own name.
//!
//! What rules read in a text (`statement`) is in the file, though it could be read again: a merged or updated memory was
//! read with the words of another author or day, other rules read other things, and without its fingerprints a repeated
//! import or hand-off would not find what is there. Counts of links at a memory are not in it: storing the links makes
//! them. Neither are vectors, keys, policies and audit.

mod reader;
mod writer;

pub use reader::{Options, Reader, verify};
pub use writer::Writer;

use serde::{Deserialize, Serialize};
use waggle_memory::scope::Scope;
use waggle_memory::time::Millis;

use crate::counts::Counts;
use crate::signature::Signature;

/// The value of `format`.
pub const FORMAT: &str = "waggle-cluster-backup";
/// The value of `format_version`.
pub const VERSION: u32 = 1;

/// Members that hold records, in order.
const SECTIONS: [&str; 6] = ["sessions", "transcripts", "nodes", "edges", "redirects", "tombstones"];

/// What a backup says about itself before the records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// Whose graph it was. Never chooses where an import goes.
    pub tenant_id: String,
    /// When it was written.
    pub exported_at: Millis,
    /// The read point, opaque.
    pub read_at: String,
    /// What was exported; empty fields do not filter.
    pub scope: Scope,
    /// The model of the vectors that are not in the file.
    pub embedding_model_id: String,
    /// The rules in force when it was written.
    pub rules_version: u32,
}

/// What a backup holds, known at its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// Records by sort.
    pub counts: Counts,
    /// `sha256:` and 64 hexadecimal digits.
    pub content_hash: String,
    /// By whom, if it was signed.
    pub signature: Option<Signature>,
    /// Size of the file.
    pub bytes: u64,
    /// Links that were left out because an end is missing; reading with `allow_dangling` only.
    pub dangling_dropped: u64,
}

impl Summary {
    /// Whether a trusted key signed this very content. `trusted` says which public keys count.
    pub fn is_signed_by(&self, trusted: impl FnOnce(&[u8; 32]) -> bool) -> bool {
        self.signature
            .is_some_and(|signature| trusted(&signature.public_key) && signature.fits(&self.content_hash))
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ScopeShape {
    agent_id: String,
    project: String,
    session_id: String,
}
