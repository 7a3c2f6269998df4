//! What the rules read in one statement, as data: the leader reads it before a proposal, the command carries it, and
//! apply compares it without knowing any rule. So two concurrent stores of one fact meet in apply, whatever each
//! leader knew, and a newer version of the rules never changes what an old entry does.

use crate::kind::Modality;
use crate::time::Millis;

/// A hash of one normal form (xxh3, 64 bits, of kind and text). Equal forms have equal fingerprints; apply checks the
/// compared memory's own fingerprints too, and shows nothing of the form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint(pub u64);

impl Fingerprint {
    /// The fingerprint of `text` under a namespace word such as "exact" or "slot", which keeps forms of different
    /// kinds apart.
    pub fn of(form: &str, text: &str) -> Self {
        let mut hasher = xxhash_rust::xxh3::Xxh3::new();
        hasher.update(form.as_bytes());
        hasher.update(&[0]);
        hasher.update(text.as_bytes());
        Self(hasher.digest())
    }
}

/// A value claimed for a slot (subject + attribute + purpose). Only single-valued slots make claims, and the polarity
/// of a whole statement, whose slot is the statement without its negation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// Which slot.
    pub slot: Fingerprint,
    /// Which value; two claims of one slot with different values contradict each other.
    pub value: Fingerprint,
    /// Denied instead of claimed: a denial contradicts the claim of the same value only.
    pub negated: bool,
    /// Said with a change verb ("moved to") without naming the old value: opens an `updates` link to the one current
    /// memory of the slot, instead of a contradiction.
    pub change: bool,
    /// The slot in words, for the reason shown to people ("database in production").
    pub slot_text: String,
    /// The value in words ("postgresql").
    pub value_text: String,
}

/// A stated end of something ("no longer X", "from X to Y", "Y, not X"): current memories that claim it are closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatedEnd {
    /// The slot that had the old value.
    pub slot: Fingerprint,
    /// The value that ended.
    pub value: Fingerprint,
    /// When it ended, if the statement says so; else the moment of recording.
    pub at: Option<Millis>,
    /// The old value in words.
    pub value_text: String,
}

/// Everything that duplicate and conflict rules need to know of one statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    /// Same text after NFC, case folding, white space and final punctuation (rule exact_content).
    pub exact: Fingerprint,
    /// Same content words in the same order after the canonical rewriting, all gates included (rule canonical_form).
    /// None when the text has too little content to be compared that way.
    pub canonical: Option<Fingerprint>,
    /// Same label (rule same_label needs similarity too).
    pub label: Fingerprint,
    /// The canonical form with its label, a name of three words or more, replaced by the initials; equal to the
    /// canonical form of the other memory when that one uses the acronym.
    pub acronym: Option<Fingerprint>,
    /// Canonical forms of the same statement with qualifiers left out: a memory whose `canonical` is among them is the
    /// more general one (link derived_from, specific to general).
    pub general: Vec<Fingerprint>,
    /// How it is meant.
    pub modality: Modality,
    /// Slots it fills.
    pub claims: Vec<Claim>,
    /// Ends it states.
    pub ends: Vec<StatedEnd>,
}

impl Statement {
    /// Exact and canonical form together: equal when the same words were said and meant the same, so "tomorrow" of two
    /// days, or "I" of two authors, are two readings.
    pub fn reading(&self) -> Fingerprint {
        let canonical = self.canonical.map_or(0, |form| form.0);
        Fingerprint::of("reading", &format!("{:016x}{canonical:016x}", self.exact.0))
    }

    /// Most claims, general forms or ends that one statement carries; more are dropped by the reader.
    pub const PARTS_MAX: usize = 8;
}
