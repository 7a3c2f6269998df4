//! Lines of Waggle's files (`.abhi` and its JSON backup) and our records, both ways.
//!
//! What Waggle's fields cannot hold travels in `metadata.waggle_cluster` and is taken from there when it is well formed,
//! so that our own files come back exactly. Lines without it are read by the rules of imports: ids and times are kept,
//! an id that is no UUID becomes a name-based one, and what has no field here goes to the metadata.

pub(crate) mod edge;
pub(crate) mod fields;
pub(crate) mod node;
pub(crate) mod transcript;

use waggle_memory::id::Principal;
use waggle_memory::time::Millis;

/// Who imports: the author of what names none that is known here.
#[derive(Clone, Debug)]
pub struct Importer {
    /// From the credential.
    pub author: Principal,
    /// For records without a time.
    pub at: Millis,
}

/// What was changed while lines were read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Ids that were no UUID.
    pub ids_renamed: u64,
    /// Links whose relationship is not known here, now relates_to.
    pub relationships_replaced: u64,
    /// Links from a memory to itself, left out.
    pub self_links_dropped: u64,
    /// Links with an end that is not in the file, left out.
    pub dangling_dropped: u64,
    /// Placeholders for missing evidence, left out.
    pub evidence_dropped: u64,
    /// Texts, lists or metadata above a bound, cut or left out.
    pub cut: u64,
}

/// The member of metadata that holds what Waggle's fields cannot.
pub(crate) const OURS: &str = "waggle_cluster";
