//! Words: for each term the slots that hold it, with counts, and BM25 over them. Keeps no text: a term is known by a
//! keyed hash of it, so the index of a tenant cannot be read back into words.

mod postings;

use std::collections::HashMap;
use std::hash::{BuildHasher, BuildHasherDefault, Hasher, RandomState};

use postings::Postings;

/// Terms and where they stand. Slots are given in ascending order and never taken back; who owns the slots tells the
/// living from the dead.
pub(crate) struct Lexicon {
    terms: HashMap<u64, Postings, BuildHasherDefault<AlreadyHashed>>,
    /// Keyed, so that nobody can choose words whose hashes collide.
    hasher: RandomState,
    posting_bytes: usize,
    /// Reused while counting the terms of one document.
    counting: Vec<u64>,
}

/// One term of a query with its share of the score.
pub(crate) struct Weighted<'a> {
    pub(crate) text: &'a str,
    pub(crate) weight: f32,
}

/// What BM25 needs to know about the documents.
pub(crate) struct Collection<'a> {
    /// Documents that a query may find. Rarity is counted among them: a name that is on every page of one project is no
    /// clue there, however rare it is elsewhere in the tenant, and closed namespaces do not show through scores.
    pub(crate) count: usize,
    /// Mean length of all living documents, in terms.
    pub(crate) average_length: f32,
    /// Length of each slot.
    pub(crate) lengths: &'a [u16],
    /// Which slots count, as bits; None while all do.
    pub(crate) counted: Option<&'a [u64]>,
    pub(crate) k1: f32,
    pub(crate) b: f32,
}

impl Lexicon {
    pub(crate) fn new() -> Self {
        Self {
            terms: HashMap::default(),
            hasher: RandomState::new(),
            posting_bytes: 0,
            counting: Vec::new(),
        }
    }

    /// Notes a term of the document that [`Self::commit`] will name.
    pub(crate) fn count(&mut self, term: &str) {
        let hash = self.hasher.hash_one(term);
        self.counting.push(hash);
    }

    /// Adds the noted terms to `slot`, which must be higher than all before.
    pub(crate) fn commit(&mut self, slot: u32) {
        let mut counting = std::mem::take(&mut self.counting);
        counting.sort_unstable();
        for same in counting.chunk_by(|a, b| a == b) {
            let postings = self.terms.entry(same[0]).or_default();
            let before = postings.bytes_used();
            postings.push(slot, same.len());
            self.posting_bytes += postings.bytes_used() - before;
        }
        counting.clear();
        self.counting = counting;
    }

    /// Adds the BM25 of each term to `scores`, one number a slot. Returns which of the terms exist among what counts.
    pub(crate) fn score(&self, terms: &[Weighted<'_>], collection: &Collection<'_>, scores: &mut [f32]) -> Vec<bool> {
        let average = collection.average_length;
        // Lengths repeat, so their part of the formula is worked out once for each that is common.
        let norm =
            |length: u16| collection.k1 * (1.0 - collection.b + collection.b * f32::from(length) / average.max(1.0));
        let table: Vec<f32> = (0..256_u16).map(norm).collect();
        terms
            .iter()
            .map(|term| {
                let Some(postings) = self.terms.get(&self.hasher.hash_one(term.text)) else {
                    return false;
                };
                let frequency = match collection.counted {
                    None => postings.count(),
                    Some(counted) => postings.iter().filter(|(slot, _)| bit(counted, *slot)).count(),
                };
                // What holds the term outside is scored all the same: an empty answer tells that it exists.
                let gain = term.weight * idf(collection.count.max(1), frequency.max(1)) * (collection.k1 + 1.0);
                for (slot, count) in postings.iter() {
                    let slot = slot as usize;
                    let (Some(length), Some(score)) = (collection.lengths.get(slot), scores.get_mut(slot)) else {
                        break;
                    };
                    let norm = table
                        .get(usize::from(*length))
                        .copied()
                        .unwrap_or_else(|| norm(*length));
                    *score += gain * count / (count + norm);
                }
                frequency > 0
            })
            .collect()
    }

    /// In how many slots the term stands, dead ones included.
    pub(crate) fn frequency(&self, term: &str) -> usize {
        self.terms
            .get(&self.hasher.hash_one(term))
            .map_or(0, |postings| postings.count())
    }

    /// Calls `found` for each slot that holds the term.
    pub(crate) fn slots_of(&self, term: &str, mut found: impl FnMut(u32)) {
        if let Some(postings) = self.terms.get(&self.hasher.hash_one(term)) {
            postings.iter().for_each(|(slot, _)| found(slot));
        }
    }

    /// The same for the slots that `renumber` keeps, under their new numbers, which must keep their order.
    pub(crate) fn compacted(&self, renumber: impl Fn(u32) -> Option<u32>) -> Self {
        let mut kept = Self {
            hasher: self.hasher.clone(),
            ..Self::new()
        };
        for (hash, postings) in &self.terms {
            let mut fresh = Postings::default();
            for (slot, count) in postings.iter() {
                if let Some(slot) = renumber(slot) {
                    fresh.push(slot, count as usize);
                }
            }
            if fresh.count() > 0 {
                fresh.shrink();
                kept.posting_bytes += fresh.bytes_used();
                kept.terms.insert(*hash, fresh);
            }
        }
        kept
    }

    /// Bytes held, slack of growing lists included.
    pub(crate) fn resident_bytes(&self) -> usize {
        // One control byte for each place of the table; lists grow by doubling, so they are three quarters full.
        self.terms.capacity() * 8 / 7 * (size_of::<(u64, Postings)>() + 1) + self.posting_bytes * 4 / 3
    }
}

/// Always positive, so a word that all documents share still counts for a little.
fn idf(documents: usize, frequency: usize) -> f32 {
    let (n, df) = (documents as f32, frequency as f32);
    (1.0 + (n - df + 0.5).max(0.0) / (df + 0.5)).ln()
}

pub(crate) fn bit(bits: &[u64], slot: u32) -> bool {
    bits.get(slot as usize / 64)
        .is_some_and(|word| word >> (slot % 64) & 1 == 1)
}

/// The keys are hashes already.
#[derive(Default)]
struct AlreadyHashed(u64);

impl Hasher for AlreadyHashed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rare_words_and_short_texts_score_higher() {
        let mut lexicon = Lexicon::new();
        for (slot, text) in ["red fox", "red dog", "red fox and many more words than the others"]
            .iter()
            .enumerate()
        {
            text.split(' ').for_each(|word| lexicon.count(word));
            lexicon.commit(slot as u32);
        }
        let mut scores = [0.0; 3];
        let collection = Collection {
            count: 3,
            average_length: 13.0 / 3.0,
            lengths: &[2, 2, 9],
            counted: None,
            k1: 0.9,
            b: 0.4,
        };
        let terms = [
            Weighted {
                text: "red",
                weight: 1.0,
            },
            Weighted {
                text: "fox",
                weight: 1.0,
            },
        ];
        assert_eq!(lexicon.score(&terms, &collection, &mut scores), [true, true]);
        assert!(scores[0] > scores[2] && scores[2] > scores[1], "{scores:?}");
        let kept = lexicon.compacted(|slot| slot.checked_sub(1));
        let mut slots = Vec::new();
        kept.slots_of("fox", |slot| slots.push(slot));
        assert_eq!(slots, [1]);
    }
}
