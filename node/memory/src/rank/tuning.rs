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
    /// What a match of the written form adds to that of the stem, as a share of its BM25. 0 to 1. 0.25: an exact name or
    /// spelling decides between near-equals and does no more.
    pub written_form_weight: f32,

    /// Weight of words in the sum. Share, 0 to 1. 0.6 against 0.4: best of the grid from 0.3 to 0.8.
    pub lexical_weight: f32,
    /// Weight of meaning in the sum. Share, 0 to 1.
    pub dense_weight: f32,
    /// What a turn takes of the words of its neighbours: two before, before, after, two after. Share, 0 to 1 each.
    /// Together they are worth 8 points of recall@10: an answer often shares no word with the question before it.
    pub lexical_spread: [f32; 4],
    /// The same for meaning. Smaller, because sentence vectors of neighbours are alike anyway.
    pub dense_spread: [f32; 4],

    /// Factor for what the one speaker named in the query said. 1 to 1.5. A multiplier, never a filter: the other
    /// speaker often holds the answer.
    pub speaker_boost: f32,
    /// Factor for what says when, if the query asks when, and for a number, if it asks how many. 1 to 1.5.
    pub answer_boost: f32,
    pub dense_low_between: f32,
    pub dense_edge: f32,
    pub context_floor: f32,
    /// Factor for a negated memory when the query is about what is forbidden or rejected. 1 to 1.5. 1.15: more than any
    /// preference, less than a second matching word.
    pub polarity_boost: f32,
    /// Factor for a memory that somebody stored or extraction found, against a turn, which has neighbours to take from.
    /// 1 to 1.5. 1.15: about what spreading gives an average turn.
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

    /// Cosine below which the model says nothing. Belongs to all-MiniLM-L6-v2: of 800 pairs of unrelated sentences nine
    /// in ten lie below it.
    pub meaning_floor: f32,
    /// Candidates that each lane hands on. Count, 50 to 2,000. 400: 200 lose two points where the evidence is the other
    /// speaker's.
    pub candidates_per_lane: usize,
    /// Best candidates of each lane whose neighbours become candidates too. Count, 0 to the lane's candidates.
    pub neighbours_of: usize,
}

impl Default for Tuning {
    fn default() -> Self {
        Self {
            k1: 0.9,
            b: 0.4,
            written_form_weight: 0.25,
            answer_boost: 1.1,
            dense_low_between: 0.0,
            dense_edge: 0.0,
            context_floor: 0.0,
            lexical_weight: 0.6,
            dense_weight: 0.4,
            lexical_spread: [0.2, 0.4, 0.4, 0.2],
            dense_spread: [0.1, 0.25, 0.25, 0.1],
            speaker_boost: 1.15,
            polarity_boost: 1.15,
            memory_boost: 1.15,
            session_boost: 1.02,
            agent_boost: 1.01,
            recency_boost: 1.02,
            recency_half_life_days: 30.0,
            weak_factor: 0.97,
            meaning_floor: 0.2,
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
