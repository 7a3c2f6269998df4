//! Nearest by meaning: what duplicate detection asks before a write.

use waggle_memory::tables::Item;

use crate::lexical::bit;
use crate::text;

use super::TenantIndex;
use super::filter::Compiled;
use super::query::Filter;
use super::top::Top;

/// Up to so many documents all are compared; above, those that share a rare word. So a write costs about the same in a
/// large tenant as in a small one. What is lost: near duplicates without any rare word in common, which no rule merges
/// below a cosine of 0.97.
const COMPARED_MAX: usize = 4_000;
/// Rarest words that are looked at.
const WORDS_MAX: usize = 8;

impl TenantIndex {
    /// The items that pass `filter` and whose cosine with a vector of this index's model is highest, best first, at most
    /// `limit`; `text` is what the vector was made from. The vector is unit length: component i is
    /// `components[i] * scale`.
    pub fn nearest(
        &self,
        text: &str,
        components: &[i8],
        scale: f32,
        filter: &Filter,
        limit: usize,
    ) -> Vec<(Item, f32)> {
        if components.len() != self.dimensions {
            return Vec::new();
        }
        let compiled = Compiled::new(filter, &self.names);
        let mut passes = Vec::new();
        compiled.mark(self, &mut passes);
        if self.len() > COMPARED_MAX {
            let alike = self.sharing_rare_words(text);
            passes
                .iter_mut()
                .zip(alike)
                .for_each(|(passes, alike)| *passes &= alike);
        }
        let prepared = self.vectors.query(components, scale);
        let mut top = Top::new(&self.columns, limit);
        self.vectors.scan(
            &prepared,
            |slot| bit(&passes, slot),
            |slot, cosine| top.offer(cosine, slot),
        );
        let found = top.sorted();
        found
            .into_iter()
            .take(limit)
            .filter_map(|(cosine, slot)| Some((*self.columns.item.get(slot as usize)?, cosine)))
            .collect()
    }

    /// One bit a slot: whether it holds one of the rarest words of `text`.
    fn sharing_rare_words(&self, text: &str) -> Vec<u64> {
        let mut bits = vec![0_u64; self.columns.len().div_ceil(64)];
        let terms = text::query_terms(text);
        let mut words: Vec<(usize, &str)> = terms
            .terms
            .iter()
            .map(|term| (self.lexicon.frequency(&term.text), term.text.as_str()))
            .filter(|(frequency, _)| *frequency > 0)
            .collect();
        words.sort_unstable();
        let mut taken = 0;
        for (frequency, word) in words.into_iter().take(WORDS_MAX) {
            taken += frequency;
            if taken > COMPARED_MAX {
                break;
            }
            self.lexicon.slots_of(word, |slot| {
                if let Some(bits) = bits.get_mut(slot as usize / 64) {
                    *bits |= 1 << (slot % 64);
                }
            });
        }
        bits
    }
}
