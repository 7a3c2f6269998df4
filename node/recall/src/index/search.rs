//! One search: filter, two lanes, fusion, one hit for a memory and its turns.

use std::cell::RefCell;
use std::collections::HashMap;

use waggle_memory::id::TurnId;
use waggle_memory::rank::{self, Candidate, Fused, Lane, LaneBounds, Parts, Tuning};
use waggle_memory::tables::Item;

use crate::lexical::{Collection, Weighted, bit};
use crate::text::{self, Form, QueryTerms};
use crate::vectors::NO_ROW;

use super::columns::flag;
use super::filter::Compiled;
use super::query::{Counts, Hit, IndexAnswer, IndexQuery};
use super::top::Top;
use super::{TenantIndex, each_bit};

/// Numbers of one search, one place a slot. A thread keeps them for its next search.
#[derive(Default)]
pub(super) struct Scratch {
    pub(super) passes: Vec<u64>,
    /// BM25; 0 where no word matches.
    pub(super) words: Vec<f32>,
    /// Cosine; NaN where there is none.
    meaning: Vec<f32>,
}

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

/// What a lane found: its best, and among them the very best, whose neighbours count, first.
pub(super) type Found = Vec<(f32, u32)>;

/// What the scan over the vectors saw as a whole.
struct Meaning {
    found: Found,
    best: Option<f32>,
    /// The lowest cosine, 0 without any.
    low: f32,
}

impl TenantIndex {
    /// Answers a query. Takes no lock and reads no clock; an answer depends on the living documents and the query only.
    pub fn search(&self, query: &IndexQuery<'_>) -> IndexAnswer {
        SCRATCH.with_borrow_mut(|scratch| self.search_with(query, scratch))
    }

    fn search_with(&self, query: &IndexQuery<'_>, scratch: &mut Scratch) -> IndexAnswer {
        let terms = text::query_terms(query.text);
        let filter = Compiled::new(query.filter, &self.names);
        let (in_scope, passed) = filter.mark(self, &mut scratch.passes);
        let mut answer = IndexAnswer {
            query_terms: terms.words,
            awaiting_vectors: self.awaiting_among(&scratch.passes),
            counts: Counts {
                documents: self.len(),
                in_scope,
                passed,
                ..Counts::default()
            },
            ..IndexAnswer::default()
        };
        if query.text.trim().is_empty() && query.vector.is_none() {
            answer.hits = self.newest(query, &scratch.passes);
            answer.candidates = passed;
            return answer;
        }
        let by_words = self.search_words(query, &terms, passed, scratch);
        let by_meaning = self.search_meaning(query, scratch);
        answer.best_cosine = by_meaning.best;
        answer.no_match = rank::nothing_matches(!by_words.is_empty(), by_meaning.best, query.tuning);
        if !answer.no_match {
            self.rank(query, &terms, &filter, &by_words, &by_meaning, scratch, &mut answer);
        }
        if query.explain || answer.hits.is_empty() {
            self.count_removed(query, &filter, scratch, &mut answer.counts);
        }
        if query.explain {
            self.explain(&terms, by_words, by_meaning.found, &mut answer.hits);
        }
        answer
    }

    /// No words and no meaning: what passes, newest first.
    fn newest(&self, query: &IndexQuery<'_>, passes: &[u64]) -> Vec<Hit> {
        let mut top = Top::new(&self.columns, query.limit);
        each_bit(passes).for_each(|slot| top.offer(1.0, slot));
        let mut found = top.sorted();
        found.truncate(query.limit);
        found
            .into_iter()
            .map(|(score, slot)| self.hit(slot, score, Parts::default(), false))
            .collect()
    }

    fn search_words(&self, query: &IndexQuery<'_>, terms: &QueryTerms, passed: usize, scratch: &mut Scratch) -> Found {
        scratch.words.clear();
        scratch.words.resize(self.columns.len(), 0.0);
        let weighted: Vec<Weighted<'_>> = terms
            .terms
            .iter()
            .map(|term| Weighted {
                text: &term.text,
                weight: if term.form == Form::Written {
                    query.tuning.written_form_weight
                } else {
                    1.0
                },
            })
            .collect();
        let collection = Collection {
            count: passed,
            average_length: self.total_length as f32 / self.len().max(1) as f32,
            lengths: &self.columns.length,
            counted: (self.dead > 0 || passed < self.len()).then_some(&scratch.passes),
            k1: query.tuning.k1,
            b: query.tuning.b,
        };
        self.lexicon.score(&weighted, &collection, &mut scratch.words);
        let mut top = Top::new(&self.columns, query.tuning.candidates_per_lane);
        for slot in each_bit(&scratch.passes) {
            let score = scratch.words[slot as usize];
            if score > 0.0 {
                top.offer(score, slot);
            }
        }
        top.finish(query.tuning.neighbours_of)
    }

    fn search_meaning(&self, query: &IndexQuery<'_>, scratch: &mut Scratch) -> Meaning {
        let mut meaning = Meaning {
            found: Vec::new(),
            best: None,
            low: 0.0,
        };
        scratch.meaning.clear();
        let Some(vector) = query.vector.filter(|vector| vector.components.len() == self.dimensions) else {
            return meaning;
        };
        scratch.meaning.resize(self.columns.len(), f32::NAN);
        let prepared = self.vectors.query(vector.components, vector.scale);
        let mut top = Top::new(&self.columns, query.tuning.candidates_per_lane);
        let (mut lowest, mut best) = (f32::INFINITY, f32::NEG_INFINITY);
        let Scratch {
            passes,
            meaning: cosines,
            ..
        } = scratch;
        self.vectors.scan(
            &prepared,
            |slot| bit(passes, slot),
            |slot, cosine| {
                cosines[slot as usize] = cosine;
                lowest = lowest.min(cosine);
                best = best.max(cosine);
                top.offer(cosine, slot);
            },
        );
        if lowest.is_finite() {
            (meaning.low, meaning.best) = (lowest, Some(best));
        }
        meaning.found = top.finish(query.tuning.neighbours_of);
        meaning
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "the intermediate results of one search, which has no life of its own"
    )]
    fn rank(
        &self,
        query: &IndexQuery<'_>,
        terms: &QueryTerms,
        filter: &Compiled,
        by_words: &Found,
        by_meaning: &Meaning,
        scratch: &Scratch,
        answer: &mut IndexAnswer,
    ) {
        let pool = self.pool(by_words, &by_meaning.found, scratch, query.tuning);
        let named = self.speakers.named(
            terms
                .terms
                .iter()
                .filter(|term| term.form.is_word())
                .map(|term| term.text.as_str()),
        );
        let session = self
            .names
            .sessions
            .find(query.prefer.session)
            .filter(|number| *number != 0);
        let agent = self
            .names
            .agents
            .find(query.prefer.agent_key)
            .filter(|number| *number != 0);
        let asks = (if terms.analysis.asks_when { flag::SAYS_WHEN } else { 0 })
            | (if terms.analysis.asks_number {
                flag::SAYS_NUMBER
            } else {
                0
            });
        let candidates: Vec<Candidate> = pool
            .iter()
            .map(|slot| {
                let at = *slot as usize;
                let around = self.around(at, &scratch.passes);
                let flags = self.columns.flags[at];
                Candidate {
                    item: self.columns.item[at],
                    lexical: Lane {
                        own: scratch.words[at],
                        around: around.map(|near| near.map_or(0.0, |near| scratch.words[near as usize])),
                    },
                    dense: scratch
                        .meaning
                        .get(at)
                        .filter(|cosine| !cosine.is_nan())
                        .map(|cosine| Lane {
                            own: *cosine,
                            around: around.map(|near| {
                                near.map(|near| scratch.meaning[near as usize])
                                    .filter(|near| !near.is_nan())
                                    .unwrap_or(*cosine)
                            }),
                        }),
                    named: named.is_some_and(|speaker| self.is_by(at, speaker)),
                    same_polarity: terms.analysis.negated && flags & flag::NEGATED != 0,
                    answers: asks & flags != 0,
                    same_session: session == Some(self.columns.session[at]),
                    same_agent: agent == Some(self.columns.agent[at]),
                    superseded: self.is_superseded(at, filter),
                    confidence: self.columns.confidence[at],
                    valid_from: self.columns.valid_from(at),
                }
            })
            .collect();
        let bounds = LaneBounds {
            dense_low: by_meaning.low,
        };
        let fused = rank::fuse(&candidates, &bounds, query.now, query.tuning);
        answer.candidates = candidates.len();
        answer.hits = self.merge(query, &pool, &candidates, fused);
    }

    /// Slots worth ranking: the best of both lanes, and the neighbours of the very best.
    fn pool(&self, words: &Found, meaning: &Found, scratch: &Scratch, tuning: &Tuning) -> Vec<u32> {
        let mut pool: Vec<u32> = words.iter().chain(meaning).map(|(_, slot)| *slot).collect();
        for lane in [words, meaning] {
            for (_, slot) in lane.iter().take(tuning.neighbours_of) {
                pool.extend(self.around(*slot as usize, &scratch.passes).into_iter().flatten());
            }
        }
        pool.sort_unstable();
        pool.dedup();
        pool
    }

    /// The turns around a turn that the filter leaves, too: what may not be read may not lend its score either.
    fn around(&self, slot: usize, passes: &[u64]) -> [Option<u32>; 4] {
        self.chains
            .around(self.columns.chain[slot], self.columns.turn_index[slot])
            .map(|near| near.filter(|near| bit(passes, *near)))
    }

    /// Whether a speaker said it: a turn of theirs, or a memory that came from one.
    fn is_by(&self, slot: usize, speaker: u32) -> bool {
        self.columns.speaker[slot] == speaker
            || self.columns.from_turns[slot]
                .iter()
                .filter_map(|turn| self.slots.get(&Item::Turn(*turn)))
                .any(|turn| self.columns.speaker[*turn as usize] == speaker)
    }

    /// Whether a turn's memories were ended, and none of them holds.
    fn is_superseded(&self, slot: usize, filter: &Compiled) -> bool {
        if self.memories_of.is_empty() {
            return false;
        }
        let Item::Turn(turn) = self.columns.item[slot] else {
            return false;
        };
        let Some(memories) = self.memories_of.get(&turn) else {
            return false;
        };
        let readable = |memory: &&u32| filter.readable(&self.columns, **memory as usize);
        memories.iter().any(|memory| readable(&memory))
            && memories
                .iter()
                .filter(readable)
                .all(|memory| self.columns.valid_to[*memory as usize] <= filter.moment())
    }

    /// One hit for a memory and the turns it came from: the memory, with the better score of the two. A turn with several
    /// memories lends its score to the best of them only; else one utterance would fill the answer.
    fn merge(&self, query: &IndexQuery<'_>, pool: &[u32], candidates: &[Candidate], fused: Vec<Fused>) -> Vec<Hit> {
        let mut places: HashMap<TurnId, usize> = HashMap::new();
        let linked = if self.memories_of.is_empty() {
            &fused[..0]
        } else {
            &fused[..]
        };
        for (place, one) in linked.iter().enumerate() {
            if let Item::Turn(turn) = candidates[one.candidate].item
                && self.memories_of.contains_key(&turn)
            {
                places.insert(turn, place);
            }
        }
        let mut fused = fused;
        let mut turns_of: HashMap<usize, Vec<usize>> = HashMap::new();
        let mut taken = vec![false; fused.len()];
        let mut lent_to_any = false;
        for place in 0..fused.len() {
            let slot = pool[fused[place].candidate] as usize;
            if matches!(self.columns.item[slot], Item::Turn(_)) {
                continue;
            }
            let mut turns: Vec<usize> = self.columns.from_turns[slot]
                .iter()
                .filter_map(|turn| places.get(turn).copied())
                .collect();
            turns.sort_unstable();
            for turn in &turns {
                let lent = std::mem::replace(&mut taken[*turn], true);
                if !lent && fused[*turn].score > fused[place].score {
                    fused[place].score = fused[*turn].score;
                    lent_to_any = true;
                }
            }
            if !turns.is_empty() {
                turns_of.insert(
                    fused[place].candidate,
                    turns.iter().map(|turn| fused[*turn].candidate).collect(),
                );
            }
        }
        let mut kept: Vec<Fused> = fused
            .into_iter()
            .zip(taken)
            .filter(|(_, taken)| !taken)
            .map(|(one, _)| one)
            .collect();
        if lent_to_any {
            kept.sort_unstable_by(|a, b| rank::order(a, b, candidates));
        }
        kept.truncate(query.limit);
        kept.into_iter()
            .map(|one| {
                let candidate = &candidates[one.candidate];
                let mut hit = self.hit(pool[one.candidate], one.score, one.parts, candidate.superseded);
                hit.bm25 = candidate.lexical.own;
                hit.cosine = candidate.dense.map(|lane| lane.own);
                hit.turns = turns_of
                    .get(&one.candidate)
                    .into_iter()
                    .flatten()
                    .filter_map(|turn| match candidates[*turn].item {
                        Item::Turn(turn) => Some(turn),
                        Item::Memory(_) => None,
                    })
                    .collect();
                hit
            })
            .collect()
    }

    fn hit(&self, slot: u32, score: f32, parts: Parts, superseded: bool) -> Hit {
        Hit {
            item: self.columns.item[slot as usize],
            turns: Vec::new(),
            score,
            superseded,
            bm25: 0.0,
            lexical_rank: None,
            cosine: None,
            dense_rank: None,
            matched_terms: Vec::new(),
            parts,
        }
    }

    /// Whether an item has a vector in the index.
    pub fn has_vector(&self, item: Item) -> bool {
        self.slots
            .get(&item)
            .is_some_and(|slot| self.columns.vector_row[*slot as usize] != NO_ROW)
    }
}
