//! Every constant of ranking, with its unit, range, default and the reason for the default. Tuned on one half of a public
//! conversation benchmark and on cases of our own, on nothing else; the standard error there is 1.8 points of
//! recall@10, so a default moves only for more than that or for a reason in words.

use crate::kind::Confidence;

/// The constants. Build with [`Tuning::default`] and change single fields.
#[derive(Clone, Debug, PartialEq)]
pub struct Tuning {
    /// BM25: how fast repeated words stop counting. No unit, 0 to 3. 0.9: short texts rarely repeat a word by accident.
    pub k1: f32,
    /// BM25: how much a long text is held back. No unit, 0 to 1. 0.4: turns differ in length for no good reason.
    pub b: f32,
    /// What a match of the written form adds to that of the stem, as a share of its BM25. 0 to 1. 0.1: an exact name or
    /// spelling decides between near-equals; 0.5 costs half a point of recall@10.
    pub written_form_weight: f32,

    /// Weight of words in the sum. Share, 0 to 1. 0.5 against 0.5: recall@10 .779, where 0.6 gives .765, 0.7 .759 and
    /// words alone .732; at 0.4 the other speaker's evidence sinks (.829 from .861).
    pub lexical_weight: f32,
    /// Weight of meaning in the sum. Share, 0 to 1.
    pub dense_weight: f32,
    /// What a turn takes of the words of its neighbours: two before, before, after, two after. Share, 0 to 1 each.
    /// Together with those of meaning they are worth 6.5 points of recall@10, and 12 where the other speaker answers: an
    /// answer often shares no word with the question before it.
    pub lexical_spread: [f32; 4],
    /// The same for meaning. Smaller, because sentence vectors of neighbours are alike anyway.
    pub dense_spread: [f32; 4],

    /// Factor for what the one speaker named in the query said. 1 to 1.5. 1.12: 1 costs 1.6 points of recall@10 on turns
    /// alone, and through the whole product 1.15 finds 1.6 points less where the evidence is the other speaker's. A
    /// multiplier, never a filter, for that reason.
    pub speaker_boost: f32,
    /// Factor for what says when, if the query asks when, and for a number, if it asks how many. 1 to 1.5.
    /// 1.15: half a point of recall@10 and one of MRR.
    pub answer_boost: f32,
    /// Factor for a negated memory when the query is about what is forbidden or rejected. 1 to 1.5. 1.15: more than any
    /// preference, less than a second matching word.
    pub polarity_boost: f32,
    /// Factor for a memory that somebody stored as such, against a turn, which has neighbours to take from. 1 to 1.5.
    /// 1.15: about what spreading gives an average turn. What extraction found gets none: through the whole product 1.15
    /// for it costs 0.7 points of recall@10, because it repeats its turn.
    pub memory_boost: f32,
    /// Factor for the session of the query. 1 to 1.05: reorders near-equal hits only.
    pub session_boost: f32,
    /// Factor for the agent of the query. 1 to 1.05: weaker than the session, because memory is shared.
    pub agent_boost: f32,
    /// Factor for what holds or was said right now; halves every [`Self::recency_half_life_days`]. 1 to 1.05.
    pub recency_boost: f32,
    /// Days after which half of the recency boost is left. 1 to 3,650.
    pub recency_half_life_days: f32,
    /// Factor for hedged, conditional and suggested memories. 0.8 to 1. 0.97: after an equal plain statement.
    pub weak_factor: f32,

    /// Cosine below which the model says nothing. Belongs to all-MiniLM-L6-v2: 19 in 20 pairs of a question and an unrelated
    /// utterance lie below 0.3, four in five of a question and its evidence above.
    pub meaning_floor: f32,
    /// How much more meaning is expected of an item without a vector for each share of words above the usual. 0 to 1. 0.5:
    /// with a fifth of the vectors missing recall@10 is .760, where their words alone give .743; with all vectors .779.
    pub meaning_per_words: f32,
    /// Candidates that each lane hands on. Count, 50 to 2,000. 400: with 2,600 turns 200 lose nothing, because a candidate of
    /// one lane is scored by both; the rest is margin for larger tenants.
    pub candidates_per_lane: usize,
    /// Best candidates of each lane whose neighbours become candidates too. Count, 0 to the lane's candidates.
    pub neighbours_of: usize,
}

impl Default for Tuning {
    fn default() -> Self {
        Self {
            k1: 0.9,
            b: 0.4,
            written_form_weight: 0.1,
            answer_boost: 1.15,
            lexical_weight: 0.5,
            dense_weight: 0.5,
            lexical_spread: [0.2, 0.4, 0.4, 0.2],
            dense_spread: [0.1, 0.25, 0.25, 0.1],
            speaker_boost: 1.12,
            polarity_boost: 1.15,
            memory_boost: 1.15,
            session_boost: 1.02,
            agent_boost: 1.01,
            recency_boost: 1.02,
            recency_half_life_days: 30.0,
            weak_factor: 0.97,
            meaning_floor: 0.3,
            meaning_per_words: 0.5,
            candidates_per_lane: 400,
            neighbours_of: 100,
        }
    }
}

impl Tuning {
    /// The factor of a confidence.
    pub fn confidence_factor(&self, confidence: Confidence) -> f32 {
        match confidence {
            Confidence::Explicit | Confidence::Inferred => 1.0,
            Confidence::Weak => self.weak_factor,
        }
    }
}
