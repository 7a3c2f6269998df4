//! Links between the drafts of one call: reasons, stated needs, entities, shared words. Conflicts are not looked for
//! here; apply finds them against everything that is stored.

use crate::read::list::{WordList, list};
use std::collections::{BTreeMap, BTreeSet};

use super::{Draft, DraftLink};
use crate::kind::{Confidence, Kind, Relationship};
use crate::read::choice::text_of;
use crate::read::clause::Clause;
use crate::read::technologies::{category_of_word, technology};
use crate::read::term::{Term, TermKind};
use crate::read::words::{is_content, is_in, singular, spelling};

/// Most links of one call.
const LINKS_MAX: usize = 2_000;
/// Shared words kept on a link.
const SHARED_MAX: usize = 8;

/// What the linker knows of a draft beside itself.
#[derive(Clone, Debug, Default)]
pub(crate) struct Facts {
    pub(crate) terms: Vec<Term>,
    pub(crate) clause: Option<Clause>,
    /// The draft that is its reason.
    pub(crate) reason: Option<usize>,
    /// Number of its sentence; user and assistant count on.
    pub(crate) sentence: usize,
    /// An entity: has no words of its own to share.
    pub(crate) entity: bool,
}

struct Linker<'a> {
    drafts: &'a [Draft],
    facts: &'a [Facts],
    links: Vec<DraftLink>,
    joined: BTreeSet<(usize, usize)>,
}

/// The links of one call, strongest reasons first.
pub(crate) fn links(drafts: &[Draft], facts: &[Facts]) -> Vec<DraftLink> {
    let mut linker = Linker {
        drafts,
        facts,
        links: Vec::new(),
        joined: BTreeSet::new(),
    };
    linker.reasons();
    linker.faults();
    linker.needs();
    linker.entities();
    linker.answers();
    linker.shared();
    linker.links
}

/// Content words of a draft, for sharing: verbs of use say nothing.
pub(crate) fn content_words(terms: &[Term]) -> BTreeSet<String> {
    terms
        .iter()
        .filter(|t| matches!(t.kind, TermKind::Word | TermKind::Name | TermKind::Technology) && is_content(&t.lower))
        .filter(|t| {
            !is_in(
                list!("use uses using used choose chose chosen prefer need needs must"),
                &t.lower,
            )
        })
        .map(|t| singular(&spelling(&t.text)))
        .collect()
}

/// Words that find fault with something.
const FAULTS: WordList = WordList::new(
    "painful slow unreliable expensive hard difficult buggy broken issue issues problem problems fail fails \
     failed failing lack lacks limited flaky unstable complex complicated cumbersome brittle fragile missing poor bad \
     worse struggle struggles painfully outdated deprecated unmaintained insecure unsupported blocking not cannot leak \
     leaks crash crashes costly heavy confusing",
);

/// The technologies that a draft finds fault with: only facts do.
pub(crate) fn faulted(kind: Kind, terms: &[Term]) -> Vec<&str> {
    let fault = terms.iter().any(|t| t.kind == TermKind::Word && t.is_one_of(FAULTS));
    if kind != Kind::Fact || !fault {
        return Vec::new();
    }
    terms
        .iter()
        .filter(|t| t.kind == TermKind::Technology)
        .map(|t| t.text.as_str())
        .collect()
}

impl Linker<'_> {
    fn add(
        &mut self,
        source: usize,
        target: usize,
        relationship: Relationship,
        confidence: Confidence,
        reason: String,
        shared: Vec<String>,
    ) {
        let pair = (source.min(target), source.max(target));
        if source == target || self.links.len() >= LINKS_MAX || !self.joined.insert(pair) {
            return;
        }
        let shared_terms = shared.into_iter().take(SHARED_MAX).collect();
        self.links.push(DraftLink {
            source,
            target,
            relationship,
            confidence,
            reason,
            shared_terms,
        });
    }

    fn weakest(&self, a: usize, b: usize) -> Confidence {
        let weak = [a, b]
            .iter()
            .any(|i| self.drafts.get(*i).is_some_and(|d| d.confidence == Confidence::Weak));
        if weak { Confidence::Weak } else { Confidence::Inferred }
    }

    fn reasons(&mut self) {
        for (source, facts) in self.facts.iter().enumerate() {
            if let Some(target) = facts.reason {
                let confidence = self.weakest(source, target);
                self.add(
                    source,
                    target,
                    Relationship::DependsOn,
                    confidence,
                    "the sentence gives it as the reason".to_owned(),
                    Vec::new(),
                );
            }
        }
    }

    /// The sentence next to a decision that finds fault with a rival of the chosen option.
    fn faults(&mut self) {
        for (source, draft) in self.drafts.iter().enumerate() {
            if draft.kind != Kind::Decision {
                continue;
            }
            let Some(here) = self.facts.get(source) else { continue };
            let has_reason = self
                .facts
                .iter()
                .enumerate()
                .any(|(i, _)| self.joined.contains(&(source.min(i), source.max(i))));
            if has_reason {
                continue;
            }
            let target = self.drafts.iter().zip(self.facts).position(|(other, facts)| {
                facts.sentence.abs_diff(here.sentence) == 1
                    && faulted(other.kind, &facts.terms)
                        .iter()
                        .any(|name| is_rival(&draft.tags, name))
            });
            if let Some(target) = target {
                let confidence = self.weakest(source, target);
                self.add(
                    source,
                    target,
                    Relationship::DependsOn,
                    confidence,
                    "finds fault with the other option".to_owned(),
                    Vec::new(),
                );
            }
        }
    }

    /// "X depends on Y", and another statement is about Y.
    fn needs(&mut self) {
        let subjects: Vec<BTreeSet<String>> = self.facts.iter().map(subject_words).collect();
        let mut by_word: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (i, words) in subjects.iter().enumerate() {
            for word in words {
                by_word.entry(word).or_default().push(i);
            }
        }
        for source in 0..self.facts.len() {
            let Some(needed) = self.facts.get(source).and_then(needed_words) else {
                continue;
            };
            let Some(first) = needed.iter().next().and_then(|w| by_word.get(w.as_str())) else {
                continue;
            };
            let found = first
                .iter()
                .copied()
                .find(|i| *i != source && subjects.get(*i).is_some_and(|s| needed.is_subset(s)));
            if let Some(target) = found {
                let confidence = self.weakest(source, target);
                let shared = needed.iter().cloned().collect();
                self.add(
                    source,
                    target,
                    Relationship::DependsOn,
                    confidence,
                    "the sentence states the dependency".to_owned(),
                    shared,
                );
            }
        }
    }

    fn entities(&mut self) {
        let names: Vec<(usize, String)> = self
            .drafts
            .iter()
            .enumerate()
            .filter(|(_, d)| d.kind == Kind::Entity)
            .map(|(i, d)| (i, d.label.to_lowercase()))
            .take(64)
            .collect();
        for (source, draft) in self.drafts.iter().enumerate() {
            if draft.kind == Kind::Entity {
                continue;
            }
            let content = draft.content.to_lowercase();
            for (target, name) in &names {
                if content.contains(name.as_str()) {
                    let label = self.drafts.get(*target).map(|d| d.label.clone()).unwrap_or_default();
                    self.add(
                        source,
                        *target,
                        Relationship::RelatesTo,
                        Confidence::Inferred,
                        format!("mentions {label}"),
                        vec![label],
                    );
                }
            }
        }
        // Names that one request or sentence mentions together.
        let code: Vec<usize> = names
            .iter()
            .map(|(i, _)| *i)
            .filter(|i| self.drafts.get(*i).is_some_and(|d| is_code(&d.label)))
            .collect();
        for pair in code.windows(2) {
            if let [a, b] = pair
                && self
                    .facts
                    .get(*a)
                    .zip(self.facts.get(*b))
                    .is_some_and(|(x, y)| x.sentence == y.sentence)
            {
                self.add(
                    *b,
                    *a,
                    Relationship::RelatesTo,
                    Confidence::Inferred,
                    "named in one sentence".to_owned(),
                    Vec::new(),
                );
            }
        }
    }

    /// A suggestion or choice after a question about its category.
    fn answers(&mut self) {
        for (target, question) in self.drafts.iter().enumerate().filter(|(_, d)| d.kind == Kind::Question) {
            let Some(asked) = self.facts.get(target) else { continue };
            let categories: Vec<(&str, &Term)> = asked
                .terms
                .iter()
                .filter_map(|t| Some((category_of_word(&t.text)?, t)))
                .collect();
            for (source, draft) in self.drafts.iter().enumerate().skip(target + 1) {
                let answers = draft
                    .tags
                    .iter()
                    .filter_map(|t| t.strip_prefix("choice:"))
                    .filter_map(technology)
                    .find_map(|t| {
                        categories.iter().find(|(category, _)| {
                            t.categories.contains(category) || t.categories.iter().any(|c| c.ends_with(category))
                        })
                    });
                if let Some((_, term)) = answers
                    && question.kind != draft.kind
                {
                    self.add(
                        source,
                        target,
                        Relationship::RelatesTo,
                        Confidence::Weak,
                        "answers the question".to_owned(),
                        vec![term.lower.clone()],
                    );
                }
            }
        }
    }

    /// Two or more shared content words. Without vectors such a link stays weak, unless one holds the other's label.
    fn shared(&mut self) {
        let words: Vec<BTreeSet<String>> = self
            .facts
            .iter()
            .map(|f| {
                if f.entity {
                    BTreeSet::new()
                } else {
                    content_words(&f.terms)
                }
            })
            .collect();
        for (target, earlier) in words.iter().enumerate() {
            for (source, later) in words.iter().enumerate().skip(target + 1) {
                if self.links.len() >= LINKS_MAX {
                    return;
                }
                let shared: Vec<String> = later.intersection(earlier).take(SHARED_MAX).cloned().collect();
                if shared.len() >= 2 {
                    let reason = format!("both are about {}", shared.join(", "));
                    self.add(
                        source,
                        target,
                        Relationship::RelatesTo,
                        Confidence::Weak,
                        reason,
                        shared,
                    );
                }
            }
        }
    }
}

fn is_code(label: &str) -> bool {
    label.contains(['/', '.', '_', '('])
        || label.chars().filter(|c| c.is_uppercase()).count() >= 2 && !label.contains(' ')
}

/// A rejected or previous option, or another one of the category of the chosen one.
pub(crate) fn is_rival(tags: &[String], name: &str) -> bool {
    let is = |prefix: &str| tags.iter().any(|t| t.strip_prefix(prefix) == Some(name));
    let rival = technology(name).is_some_and(|t| t.categories.iter().any(|c| tags.iter().any(|tag| tag == c)));
    is("rejected:") || is("previous:") || (rival && !is("choice:"))
}

fn subject_words(facts: &Facts) -> BTreeSet<String> {
    let subject = facts
        .clause
        .as_ref()
        .and_then(|c| facts.terms.get(c.subject.0..c.subject.1))
        .unwrap_or_default();
    if facts.entity {
        BTreeSet::new()
    } else {
        text_of(subject)
            .split(' ')
            .filter(|w| is_content(w))
            .map(str::to_owned)
            .collect()
    }
}

/// What a sentence says its subject needs.
fn needed_words(facts: &Facts) -> Option<BTreeSet<String>> {
    let clause = facts.clause.as_ref()?;
    let rest = facts.terms.get(clause.group.1..)?;
    let after = |preposition: WordList| rest.iter().position(|t| t.is_one_of(preposition)).map(|at| at + 1);
    let start = match clause.verb {
        "depend" | "rely" => after(list!("on"))?,
        "require" | "need" if !clause.passive => 0,
        "block" if clause.passive => after(list!("by"))?,
        _ if clause.negations > 0 && clause.modal.as_deref().is_some_and(|m| is_in(list!("can may must"), m)) => {
            after(list!("before until without"))?
        }
        _ => return None,
    };
    let object = rest.get(start..)?;
    let end = object
        .iter()
        .position(|t| t.is_mark() || t.is_one_of(list!("and or but for in on to is are was has have before after")))
        .unwrap_or(object.len());
    let words: BTreeSet<String> = text_of(object.get(..end)?)
        .split(' ')
        .filter(|w| is_content(w))
        .map(str::to_owned)
        .collect();
    (!words.is_empty()).then_some(words)
}
