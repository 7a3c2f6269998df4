//! Nearest by meaning: what duplicate detection asks before a write.

use waggle_memory::tables::Item;

use crate::lexical::bit;
use crate::text;
use crate::vectors::NO_ROW;

use super::TenantIndex;
use super::filter::{Compiled, Verdict};
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
        let prepared = self.vectors.query(components, scale);
        let mut top = Top::new(&self.columns, limit);
        if self.len() > COMPARED_MAX {
            let rows = self.rows_sharing_rare_words(text, &compiled);
            self.vectors
                .compare(&prepared, &rows, |slot, cosine| top.offer(cosine, slot));
        } else {
            let mut passes = Vec::new();
            compiled.mark(self, &mut passes);
            self.vectors.scan(
                &prepared,
                |slot| bit(&passes, slot),
                |slot, cosine| top.offer(cosine, slot),
            );
        }
        let found = top.sorted();
        found
            .into_iter()
            .take(limit)
            .filter_map(|(cosine, slot)| Some((*self.columns.item.get(slot as usize)?, cosine)))
            .collect()
    }

    /// Rows of the vectors of documents that pass the filter and hold one of the rarest words of `text`, ascending. Only
    /// these are looked at: nothing here grows with the tenant.
    fn rows_sharing_rare_words(&self, text: &str, filter: &Compiled) -> Vec<u32> {
        let terms = text::query_terms(text);
        let mut words: Vec<(usize, &str)> = terms
            .terms
            .iter()
            .map(|term| (self.lexicon.frequency(&term.text), term.text.as_str()))
            .filter(|(frequency, _)| *frequency > 0)
            .collect();
        words.sort_unstable();
        let mut slots = Vec::new();
        let mut taken = 0;
        for (frequency, word) in words.into_iter().take(WORDS_MAX) {
            taken += frequency;
            if taken > COMPARED_MAX {
                break;
            }
            self.lexicon.slots_of(word, |slot| slots.push(slot));
        }
        slots.sort_unstable();
        slots.dedup();
        let mut rows: Vec<u32> = slots
            .into_iter()
            .filter(|slot| bit(&self.alive, *slot) && filter.verdict(&self.columns, *slot as usize) == Verdict::Passes)
            .map(|slot| self.columns.vector_row[slot as usize])
            .filter(|row| *row != NO_ROW)
            .collect();
        rows.sort_unstable();
        rows
    }
}
