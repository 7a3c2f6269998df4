//! What an explanation adds to an answer: what was left out and why, and what each hit matched.

use std::collections::HashMap;

use crate::lexical::bit;
use crate::text::QueryTerms;

use super::filter::{Compiled, Verdict};
use super::query::{Counts, Hit, IndexQuery};
use super::search::{Found, Scratch};
use super::top;
use super::{TenantIndex, each_bit};

impl TenantIndex {
    /// What matches by word or meaning and was left out, by the first reason.
    pub(super) fn count_removed(
        &self,
        query: &IndexQuery<'_>,
        filter: &Compiled,
        scratch: &Scratch,
        counts: &mut Counts,
    ) {
        let passes = |slot: u32| bit(&scratch.passes, slot);
        let mut count = |slot: u32| {
            let removed = match filter.verdict(&self.columns, slot as usize) {
                Verdict::Passes | Verdict::Hidden => return,
                Verdict::Scope => &mut counts.removed_by_scope,
                Verdict::Record => &mut counts.removed_by_record,
                Verdict::Type => &mut counts.removed_by_type_or_tag,
                Verdict::Closed => &mut counts.removed_closed,
                Verdict::Scheduled => &mut counts.removed_scheduled,
                Verdict::Period => &mut counts.removed_by_period,
            };
            *removed += 1;
        };
        let by_word = |slot: u32| scratch.words.get(slot as usize).is_some_and(|score| *score > 0.0);
        each_bit(&self.alive)
            .filter(|slot| !passes(*slot) && by_word(*slot))
            .for_each(&mut count);
        let Some(vector) = query.vector.filter(|vector| vector.components.len() == self.dimensions) else {
            return;
        };
        let prepared = self.vectors.query(vector.components, vector.scale);
        let hidden = |slot: u32| passes(slot) || by_word(slot) || !filter.readable(&self.columns, slot as usize);
        self.vectors.scan(
            &prepared,
            |slot| !hidden(slot),
            |slot, cosine| {
                if cosine >= query.tuning.meaning_floor {
                    count(slot);
                }
            },
        );
    }

    pub(super) fn explain(&self, terms: &QueryTerms, words: Found, meaning: Found, hits: &mut [Hit]) {
        let mut place_of: HashMap<u32, usize> = HashMap::new();
        for (place, hit) in hits.iter().enumerate() {
            if let Some(slot) = self.slots.get(&hit.item) {
                place_of.insert(*slot, place);
            }
        }
        for term in terms.terms.iter().filter(|term| term.form.is_word()) {
            self.lexicon.slots_of(&term.text, |slot| {
                if let Some(hit) = place_of.get(&slot).and_then(|place| hits.get_mut(*place)) {
                    hit.matched_terms.push(term.text.clone());
                }
            });
        }
        for (mut lane, is_words) in [(words, true), (meaning, false)] {
            top::sort(&self.columns, &mut lane);
            for (rank, (_, slot)) in (1_u32..).zip(lane) {
                if let Some(hit) = place_of.get(&slot).and_then(|place| hits.get_mut(*place)) {
                    if is_words {
                        hit.lexical_rank = Some(rank);
                    } else {
                        hit.dense_rank = Some(rank);
                    }
                }
            }
        }
    }
}
