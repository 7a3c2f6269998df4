//! `.abhi` version 2: four bytes, then a ZIP with one line of canonical JSON for each record, a manifest with the hash of
//! every member, and optionally a signature and encryption. Older files are a bare ZIP.
//!
//! Members: transcripts.jsonl, nodes.jsonl, edges.jsonl, context_windows.jsonl, manifest.json, and for signed files
//! signatures/content.ed25519 and signatures/public_key.pem. Anything else in the ZIP is refused. The same records with
//! the same [`Info`] are the same bytes, unless they are encrypted with other randomness.
//!
//! Redirects and tombstones have no place among the lines; they stand in the member `waggle_cluster` of the manifest.

mod compare;
mod container;
mod crypt;
mod examine;
mod manifest;
mod merge;
mod reader;
mod taken;
mod writer;

pub use compare::{Diff, Document, FieldChange, diff};
pub use examine::{Inspection, Validation, inspect, validate};
pub use manifest::Manifest;
pub use merge::{MergeConflict, Merged, Prefer, merge};
pub(crate) use reader::record_of;
pub use reader::{Reader, Report};
pub(crate) use taken::Taken;
pub use writer::{Encryption, Info, Summary, Writer};

pub use crate::waggle::{Changes, Importer};

/// The version that is written.
pub const SCHEMA_VERSION: &str = "2.0.0";
/// What a file begins with.
pub const MAGIC: [u8; 4] = *b"WGL\x01";

const TRANSCRIPTS: &str = "transcripts.jsonl";
const NODES: &str = "nodes.jsonl";
const EDGES: &str = "edges.jsonl";
const WINDOWS: &str = "context_windows.jsonl";
const MANIFEST: &str = "manifest.json";
const SIGNATURE: &str = "signatures/content.ed25519";
const PUBLIC_KEY: &str = "signatures/public_key.pem";

/// Members with lines, in the order of the content hash.
const LINES: [&str; 4] = [TRANSCRIPTS, NODES, EDGES, WINDOWS];
/// All that a file may hold.
const MEMBERS: [&str; 7] = [TRANSCRIPTS, NODES, EDGES, WINDOWS, MANIFEST, SIGNATURE, PUBLIC_KEY];
