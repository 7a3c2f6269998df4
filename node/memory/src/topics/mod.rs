//! What a set of memories is about: communities along links, with unlinked memories joined by the words they share.
//!
//! Pure and bounded; the caller chooses the memories and their ties. It must not read tables.

mod communities;

use std::collections::BTreeMap;

use crate::extract::content_words;
use crate::read::{term, token};

pub use communities::{Tie, communities};

/// Content words of one memory that are compared.
pub const WORDS_MAX: usize = 32;
/// Bytes of a text that are read for its words.
const TEXT_BYTES_MAX: usize = 2_048;
/// A word that more memories have says nothing of what they are about.
const SHARERS_MAX: usize = 64;
/// In a small set a word may be in so many of its memories.
const SHARERS_MIN: usize = 8;
/// Memories that an unlinked one is tied to by words.
const NEIGHBOURS_MAX: usize = 8;
/// Strength of one shared word that no third memory has; a relates_to link that a person drew has 500,000.
const WORD_STRENGTH: u64 = 200_000;
/// Words that name a topic.
const NAME_WORDS_MAX: usize = 3;

/// Memories that belong together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Positions in the list given, most central first.
    pub members: Vec<usize>,
    /// The words that tell it from the others, most telling first; empty when its memories share none.
    pub words: Vec<String>,
    /// Nothing ties these to anything: they are together only because they are alone.
    pub unlinked: bool,
}

/// The content words of a text: sorted, each once, in their comparison form, at most [`WORDS_MAX`].
pub fn words_of(text: &str) -> Vec<String> {
    let mut end = text.len().min(TEXT_BYTES_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let text = text.get(..end).unwrap_or_default();
    let terms = term::terms(text, &token::tokens(text), None);
    content_words(&terms).into_iter().take(WORDS_MAX).collect()
}

/// The groups among memories, given the words of each ([`words_of`]) and the ties between them: largest first, what is
/// tied to nothing last, in one group.
pub fn groups(words: &[Vec<String>], ties: &[Tie]) -> Vec<Group> {
    let sharers = sharers(words);
    let mut all = ties.to_vec();
    all.extend(ties_by_words(words, ties, &sharers));
    let mut of_node = communities(words.len(), &all);
    let pull = pulls(words.len(), &all);
    take_in_single(&mut of_node, &pull);

    let mut members: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (node, community) in of_node.iter().enumerate() {
        members.entry(*community).or_default().push(node);
    }
    let (alone, together): (Vec<_>, Vec<_>) = members.into_values().partition(|members| members.len() == 1);
    let mut groups: Vec<Group> = together
        .into_iter()
        .map(|members| group(members, words, &sharers, &pull, &of_node))
        .collect();
    groups.sort_by(|a, b| {
        let first = |group: &Group| group.members.iter().min().copied();
        b.members.len().cmp(&a.members.len()).then(first(a).cmp(&first(b)))
    });
    let alone: Vec<usize> = alone.into_iter().flatten().collect();
    if !alone.is_empty() {
        groups.push(Group {
            members: alone,
            words: Vec::new(),
            unlinked: true,
        });
    }
    groups
}

/// Which memories have a word.
type Sharers<'a> = BTreeMap<&'a str, Vec<usize>>;

fn sharers(words: &[Vec<String>]) -> Sharers<'_> {
    let mut sharers: Sharers<'_> = BTreeMap::new();
    for (node, words) in words.iter().enumerate() {
        for word in words.iter().take(WORDS_MAX) {
            sharers.entry(word).or_default().push(node);
        }
    }
    sharers
}

/// Ties of memories without any link to those that share their rarer words.
fn ties_by_words(words: &[Vec<String>], ties: &[Tie], sharers: &Sharers<'_>) -> Vec<Tie> {
    let mut linked = vec![false; words.len()];
    for tie in ties.iter().filter(|tie| tie.a != tie.b) {
        for end in [tie.a, tie.b] {
            if let Some(linked) = linked.get_mut(end) {
                *linked = true;
            }
        }
    }
    let most = (words.len() / 4).clamp(SHARERS_MIN, SHARERS_MAX);
    let mut found = Vec::new();
    for (node, (own, linked)) in words.iter().zip(&linked).enumerate() {
        if *linked {
            continue;
        }
        let mut near: BTreeMap<usize, u64> = BTreeMap::new();
        for word in own.iter().take(WORDS_MAX) {
            let with = sharers.get(word.as_str()).map(Vec::as_slice).unwrap_or_default();
            if !(2..=most).contains(&with.len()) {
                continue;
            }
            let others = u64::try_from(with.len() - 1).unwrap_or(u64::MAX);
            for other in with.iter().filter(|other| **other != node) {
                *near.entry(*other).or_insert(0) += WORD_STRENGTH / others;
            }
        }
        let mut near: Vec<(usize, u64)> = near.into_iter().collect();
        near.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(&b.0)));
        found.extend(near.into_iter().take(NEIGHBOURS_MAX).map(|(other, strength)| Tie {
            a: node,
            b: other,
            strength,
        }));
    }
    found
}

/// What each node is tied to, and how strongly.
fn pulls(nodes: usize, ties: &[Tie]) -> Vec<Vec<(usize, u64)>> {
    let mut pulls = vec![Vec::new(); nodes];
    for tie in ties
        .iter()
        .filter(|tie| tie.a != tie.b && tie.a < nodes && tie.b < nodes)
    {
        for (from, to) in [(tie.a, tie.b), (tie.b, tie.a)] {
            if let Some(row) = pulls.get_mut(from) {
                row.push((to, tie.strength));
            }
        }
    }
    pulls
}

/// A memory with ties is never a topic of its own: it goes where its strongest tie leads.
fn take_in_single(of_node: &mut [usize], pulls: &[Vec<(usize, u64)>]) {
    let mut sizes: BTreeMap<usize, usize> = BTreeMap::new();
    for community in of_node.iter() {
        *sizes.entry(*community).or_insert(0) += 1;
    }
    for (node, pulls) in pulls.iter().enumerate() {
        let Some(here) = of_node.get(node).copied() else {
            continue;
        };
        if sizes.get(&here) != Some(&1) {
            continue;
        }
        let strongest = pulls
            .iter()
            .max_by_key(|(other, strength)| (*strength, std::cmp::Reverse(*other)));
        let there = strongest.and_then(|(other, _)| of_node.get(*other).copied());
        if let (Some(there), Some(place)) = (there, of_node.get_mut(node)) {
            *place = there;
            *sizes.entry(there).or_insert(0) += 1;
            sizes.remove(&here);
        }
    }
}

fn group(
    mut members: Vec<usize>,
    words: &[Vec<String>],
    sharers: &Sharers<'_>,
    pulls: &[Vec<(usize, u64)>],
    of_node: &[usize],
) -> Group {
    let inside = |node: &usize| {
        let here = of_node.get(*node);
        let pulls = pulls.get(*node).map(Vec::as_slice).unwrap_or_default();
        pulls
            .iter()
            .filter(|(other, _)| of_node.get(*other) == here)
            .fold(0_u64, |sum, (_, strength)| sum.saturating_add(*strength))
    };
    members.sort_by_cached_key(|node| (std::cmp::Reverse(inside(node)), *node));
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    for word in members.iter().filter_map(|node| words.get(*node)).flatten() {
        *counts.entry(word).or_insert(0) += 1;
    }
    // Frequent here and rare elsewhere.
    let telling = |word: &str, count: u64| {
        let everywhere = sharers.get(word).map_or(1, |with| with.len().max(1));
        count * count * 1_000 / u64::try_from(everywhere).unwrap_or(u64::MAX)
    };
    let mut named: Vec<(u64, u64, &str)> = counts
        .iter()
        .filter(|(_, count)| **count > 1)
        .map(|(word, count)| (telling(word, *count), *count, *word))
        .collect();
    if named.is_empty() {
        // No word twice: those of the most central memory.
        let central = members.first().and_then(|node| words.get(*node));
        named = central
            .into_iter()
            .flatten()
            .map(|word| (1, 1, word.as_str()))
            .collect();
    }
    named.sort_by(|a, b| b.0.cmp(&a.0).then(b.1.cmp(&a.1)).then(a.2.cmp(b.2)));
    Group {
        words: named
            .into_iter()
            .take(NAME_WORDS_MAX)
            .map(|(_, _, word)| word.to_owned())
            .collect(),
        members,
        unlinked: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn members(texts: &[&str], ties: &[(usize, usize)]) -> Vec<(Vec<usize>, bool)> {
        let words: Vec<Vec<String>> = texts.iter().map(|text| words_of(text)).collect();
        let ties: Vec<Tie> = ties
            .iter()
            .map(|(a, b)| Tie {
                a: *a,
                b: *b,
                strength: 500_000,
            })
            .collect();
        groups(&words, &ties)
            .into_iter()
            .map(|group| {
                let mut members = group.members;
                members.sort_unstable();
                (members, group.unlinked)
            })
            .collect()
    }

    #[test]
    fn f12_unlinked_memories_join_by_shared_words() {
        let texts = [
            "Postgres stores the invoices",
            "The Postgres backup runs at night",
            "Alice likes green tea",
            "Green tea is served in the kitchen",
            "Zebras sleep standing",
        ];
        assert_eq!(
            members(&texts, &[]),
            [(vec![0, 1], false), (vec![2, 3], false), (vec![4], true)]
        );
    }

    #[test]
    fn what_nothing_ties_is_one_group_and_not_one_each() {
        let texts = ["Zebras sleep standing", "Clocks strike twelve", "Rivers freeze"];
        assert_eq!(members(&texts, &[]), [(vec![0, 1, 2], true)]);
        assert!(members(&[], &[]).is_empty());
    }

    #[test]
    fn links_count_more_than_words() {
        let texts = [
            "Postgres stores invoices",
            "Postgres runs at night",
            "Deploys on Friday",
            "Deploys need approval",
        ];
        let linked = members(&texts, &[(0, 2), (1, 3)]);
        assert_eq!(linked, [(vec![0, 2], false), (vec![1, 3], false)]);
    }

    #[test]
    fn a_topic_is_named_by_its_own_words() {
        let texts = [
            "Postgres stores the invoices",
            "The Postgres backup runs at night",
            "Night trains are late",
        ];
        let words: Vec<Vec<String>> = texts.iter().map(|text| words_of(text)).collect();
        let found = groups(
            &words,
            &[Tie {
                a: 0,
                b: 1,
                strength: 900_000,
            }],
        );
        let first = found.first().map(|group| group.words.clone()).unwrap_or_default();
        assert!(first.iter().any(|word| word.starts_with("postgres")), "{first:?}");
        assert!(
            first.iter().all(|word| word != "observed" && !word.contains("speaker")),
            "{first:?}"
        );
    }

    #[test]
    fn long_texts_are_read_in_part_and_cut_between_characters() {
        let words = words_of(&"ü".repeat(50_000));
        assert!(words.len() <= WORDS_MAX);
        assert_eq!(words_of(""), Vec::<String>::new());
    }
}
