//! A graph as a folder of Markdown files that people can read and edit, and the way back.
//!
//! [`write()`] gives one file per memory and the merge base; [`Importer`] takes files and gives a [`Plan`]: what to change
//! so that the graph says what the files say. Nothing is changed here; the caller executes the plan. Paths are
//! decoration: the front matter of a file decides which memory it is.
//!
//! Three sides are compared field by field: what the file said when it was written (the base), what it says now, and
//! what the graph says now. Only a field that changed in the file alone is written; one that changed on both sides is a
//! conflict and stays as it is. What is missing from a file deletes nothing.

mod archive;
mod base;
mod body;
mod changes;
mod fields;
mod front_matter;
mod import;
mod new_memory;
mod note;
mod paths;
mod plan;
mod relations;
mod targets;
mod write;
mod yaml;

pub use archive::{ArchiveError, ArchiveLimits, Packer, belongs, is_zip_of_notes, read_json, read_zip, write_zip};
pub use import::Importer;
pub use plan::{
    Change, Conflict, ConflictReason, EvidenceClaim, MemoryRef, Plan, StoreLink, StoreMemory, StubNote, UpdateMemory,
};
pub use write::{Vault, VaultOptions, write};

/// Where the merge base stands in a vault.
pub const BASE_PATH: &str = ".waggle/vault.json";

/// Most bytes of one file of a vault.
pub const FILE_BYTES_MAX: usize = 1 << 20;
