//! The weighted sum of two lanes. Each lane's raw scores are spread along the turns of a session, brought to 0..1,
//! added, and multiplied by small factors for what else is known.

use std::cmp::Ordering;

use crate::kind::Confidence;
use crate::rank::tuning::Tuning;
use crate::tables::Item;
use crate::time::Millis;

/// Raw score of one lane for one item, and those of the turns around it. Where there is no turn, words give 0; meaning
/// gives the item's own cosine, else the ends of a session would sink (0.6 points of recall@10).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Lane {
    /// Its own raw score.
    pub own: f32,
    /// Two before, before, after, two after.
    pub around: [f32; 4],
}

impl Lane {
    /// The score with what the neighbours give.
    pub fn spread(&self, shares: &[f32; 4]) -> f32 {
        self.own
            + self
                .around
                .iter()
                .zip(shares)
                .map(|(score, share)| score * share)
                .sum::<f32>()
    }
}

/// One item that a lane found, with everything that ranking looks at.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// What it is.
    pub item: Item,
    /// Words: BM25, 0 when no word matches.
    pub lexical: Lane,
    /// Meaning: cosine. None while it has no vector, or when the query has none.
    pub dense: Option<Lane>,
    /// Said by the one speaker whom the query names.
    pub named: bool,
    /// Negated, and the query is about what is forbidden or rejected.
    pub same_polarity: bool,
    /// Says when, and the query asks when; or a number, and it asks how many.
    pub answers: bool,
    /// From the session of the query.
    pub same_session: bool,
    /// From the agent of the query.
    pub same_agent: bool,
    /// A turn one of whose memories was ended and none of whose memories holds: it ranks after the others.
    pub superseded: bool,
    /// How far it can be trusted.
    pub confidence: Confidence,
    /// From when it holds; a turn: when it was said. Newer wins ties.
    pub valid_from: Millis,
}

/// Where the lanes' raw scores lie over everything that was searched, not only over the candidates: else the contrast of
/// a lane would depend on how many candidates it hands on.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LaneBounds {
    /// The lowest cosine.
    pub dense_low: f32,
}

/// What a score is made of.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Parts {
    /// Words, 0..1, before its weight.
    pub lexical: f32,
    /// Meaning, 0..1, before its weight; None without a vector.
    pub dense: Option<f32>,
    /// What neighbours gave to `lexical`.
    pub lexical_spread: f32,
    /// What neighbours gave to `dense`.
    pub dense_spread: f32,
    /// Product of all factors.
    pub boost: f32,
}

/// A candidate with its place in the order.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fused {
    /// Index in the candidates.
    pub candidate: usize,
    /// The score; the best possible one is about 1 before the factors.
    pub score: f32,
    /// As in the candidate.
    pub superseded: bool,
    /// What the score is made of.
    pub parts: Parts,
}

/// How much of a whole lane an item with all its neighbours could collect: 1 + the sum of the shares.
pub fn strength_of_spread(shares: &[f32; 4]) -> f32 {
    1.0 + shares.iter().sum::<f32>()
}

/// Whether an item matches by itself: a word, or a meaning above the model's floor.
pub fn matches(candidate: &Candidate, tuning: &Tuning) -> bool {
    candidate.lexical.own > 0.0 || candidate.dense.is_some_and(|lane| lane.own >= tuning.meaning_floor)
}

/// Whether raw scores say that nothing was found. Normalised ones cannot: the best of nothing still scores 1.
pub fn nothing_matches(any_word: bool, best_cosine: Option<f32>, tuning: &Tuning) -> bool {
    !any_word && best_cosine.is_none_or(|best| best < tuning.meaning_floor)
}

/// Scores the candidates that match by themselves and sorts them, best first. What only stands beside a match has lent its
/// score by then and is no answer.
pub fn fuse(candidates: &[Candidate], bounds: &LaneBounds, now: Millis, tuning: &Tuning) -> Vec<Fused> {
    let lexical_best = candidates
        .iter()
        .map(|c| c.lexical.spread(&tuning.lexical_spread))
        .fold(0.0_f32, f32::max);
    let dense_low = bounds.dense_low * strength_of_spread(&tuning.dense_spread);
    let dense_best = candidates
        .iter()
        .filter_map(|c| c.dense.map(|lane| lane.spread(&tuning.dense_spread)))
        .fold(f32::NEG_INFINITY, f32::max);
    let dense_range = dense_best - dense_low;
    // A lane in which nobody has a score yields its weight to the other one.
    let dense_speaks = dense_range.is_finite() && dense_range > f32::EPSILON;

    let mut fused: Vec<Fused> = candidates
        .iter()
        .enumerate()
        .filter(|(_, candidate)| matches(candidate, tuning))
        .map(|(index, candidate)| {
            let words = candidate.lexical.spread(&tuning.lexical_spread);
            let share = |score: f32| if lexical_best > 0.0 { score / lexical_best } else { 0.0 };
            let mut parts = Parts {
                lexical: share(words),
                lexical_spread: share(words - candidate.lexical.own),
                boost: boost(candidate, now, tuning),
                ..Parts::default()
            };
            if dense_speaks && let Some(lane) = candidate.dense {
                let meaning = lane.spread(&tuning.dense_spread);
                parts.dense = Some(((meaning - dense_low) / dense_range).max(0.0));
                parts.dense_spread = (meaning - lane.own) / dense_range;
            }
            Fused {
                candidate: index,
                score: sum(&parts, lexical_best > 0.0, tuning) * parts.boost,
                superseded: candidate.superseded,
                parts,
            }
        })
        .collect();
    if dense_speaks && lexical_best > 0.0 {
        stand_in(&mut fused, tuning);
    }
    fused.sort_unstable_by(|a, b| order(a, b, candidates));
    fused
}

/// Gives those without a vector the score that their words let expect: the usual meaning of candidates with a vector, more
/// of it the better the words match. Neither 0, by which they would sink, nor their words alone, by which they would rise
/// above everything that a second lane holds back.
fn stand_in(fused: &mut [Fused], tuning: &Tuning) {
    // Summed in whole millionths: the candidates come in no order that an answer may depend on.
    let (mut count, mut words, mut meaning) = (0_i64, 0_i64, 0_i64);
    for one in fused.iter().filter(|one| one.parts.lexical > 0.0) {
        if let Some(dense) = one.parts.dense {
            count += 1;
            words += millionths(one.parts.lexical);
            meaning += millionths(dense);
        }
    }
    if count == 0 {
        return;
    }
    let mean = |sum: i64| (sum as f64 / count as f64 / 1e6) as f32;
    for one in fused.iter_mut().filter(|one| one.parts.dense.is_none()) {
        let expected = mean(meaning) + tuning.meaning_per_words * (one.parts.lexical - mean(words));
        let parts = Parts {
            dense: Some(expected.clamp(0.0, 1.0)),
            ..one.parts
        };
        one.score = sum(&parts, true, tuning) * parts.boost;
    }
}

fn millionths(share: f32) -> i64 {
    (share * 1e6) as i64
}

/// The weighted sum over the lanes that speak for this item.
fn sum(parts: &Parts, lexical_speaks: bool, tuning: &Tuning) -> f32 {
    match parts.dense {
        Some(dense) if lexical_speaks => {
            let whole = tuning.lexical_weight + tuning.dense_weight;
            (tuning.lexical_weight * parts.lexical + tuning.dense_weight * dense) / whole
        }
        Some(dense) => dense,
        // Without a vector, because it is still to come or the model cannot read the text; see `stand_in`.
        None => parts.lexical,
    }
}

fn boost(candidate: &Candidate, now: Millis, tuning: &Tuning) -> f32 {
    let mut factor = tuning.confidence_factor(candidate.confidence);
    let given = [
        (candidate.named, tuning.speaker_boost),
        (candidate.same_polarity, tuning.polarity_boost),
        (candidate.answers, tuning.answer_boost),
        (candidate.same_session, tuning.session_boost),
        (candidate.same_agent, tuning.agent_boost),
        (is_stored_as_such(candidate), tuning.memory_boost),
    ];
    for (holds, by) in given {
        if holds {
            factor *= by;
        }
    }
    let days = (now.0.saturating_sub(candidate.valid_from.0)).max(0) as f32 / Millis::DAY as f32;
    factor * (1.0 + (tuning.recency_boost - 1.0) * (-days / tuning.recency_half_life_days.max(1.0)).exp2())
}

fn is_stored_as_such(candidate: &Candidate) -> bool {
    matches!(candidate.item, Item::Memory(_)) && candidate.confidence == Confidence::Explicit
}

/// Best first: what still holds before what is superseded, then the score, then the newer one, then the id.
pub fn order(a: &Fused, b: &Fused, candidates: &[Candidate]) -> Ordering {
    a.superseded
        .cmp(&b.superseded)
        .then(b.score.total_cmp(&a.score))
        .then_with(|| match (candidates.get(a.candidate), candidates.get(b.candidate)) {
            (Some(one), Some(two)) => two.valid_from.cmp(&one.valid_from).then(one.item.cmp(&two.item)),
            _ => a.candidate.cmp(&b.candidate),
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::{MemoryId, TurnId};

    fn turn(number: u8, lexical: f32, dense: Option<f32>) -> Candidate {
        Candidate {
            item: Item::Turn(TurnId::from_bytes([number; 16])),
            lexical: Lane {
                own: lexical,
                around: [0.0; 4],
            },
            dense: dense.map(|own| Lane { own, around: [own; 4] }),
            named: false,
            same_polarity: false,
            answers: false,
            same_session: false,
            same_agent: false,
            superseded: false,
            confidence: Confidence::Explicit,
            valid_from: Millis(0),
        }
    }

    fn check(candidates: &[Candidate], expected: &[usize]) {
        let fused = fuse(
            candidates,
            &LaneBounds { dense_low: 0.0 },
            Millis(Millis::DAY * 400),
            &Tuning::default(),
        );
        assert_eq!(fused.iter().map(|one| one.candidate).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn both_lanes_count_and_an_empty_one_yields_its_weight() {
        check(
            &[
                turn(1, 4.0, Some(0.3)),
                turn(2, 5.0, Some(0.9)),
                turn(3, 0.0, Some(0.5)),
            ],
            &[1, 0, 2],
        );
        check(&[turn(1, 4.0, None), turn(2, 5.0, None)], &[1, 0]);
        check(&[turn(1, 0.0, Some(0.4)), turn(2, 0.0, Some(0.9))], &[1, 0]);
    }

    #[test]
    fn what_matches_neither_word_nor_meaning_is_no_answer() {
        let mut beside = turn(1, 0.0, Some(0.1));
        beside.lexical.around = [9.0; 4];
        check(&[beside, turn(2, 1.0, Some(0.1))], &[1]);
        assert!(nothing_matches(false, Some(0.1), &Tuning::default()));
        assert!(!nothing_matches(true, None, &Tuning::default()));
        assert!(!nothing_matches(false, Some(0.5), &Tuning::default()));
    }

    #[test]
    fn a_missing_vector_neither_sinks_nor_lifts() {
        let both = [turn(1, 5.0, Some(0.9)), turn(2, 1.0, Some(0.4)), turn(3, 4.0, None)];
        check(&both, &[0, 2, 1]);
    }

    #[test]
    fn small_factors_reorder_near_equals_only() {
        let mut preferred = turn(2, 5.0, None);
        preferred.same_session = true;
        check(&[turn(1, 5.0, None), preferred.clone(), turn(3, 5.5, None)], &[2, 1, 0]);
        let mut memory = turn(9, 5.0, None);
        memory.item = Item::Memory(MemoryId::from_bytes([9; 16]));
        check(&[turn(1, 5.0, None), memory], &[1, 0]);
    }

    #[test]
    fn ties_go_to_the_newer_one_and_then_to_the_id_and_superseded_turns_go_last() {
        let mut newer = turn(3, 5.0, None);
        newer.valid_from = Millis(1);
        let mut superseded = turn(4, 9.0, None);
        superseded.superseded = true;
        check(
            &[superseded, turn(2, 5.0, None), turn(1, 5.0, None), newer],
            &[3, 2, 1, 0],
        );
    }
}
