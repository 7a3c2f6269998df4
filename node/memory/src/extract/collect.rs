//! From clauses to drafts: classifies, names and dates them, and finds their entities.

use std::collections::BTreeMap;

use super::classify::{Class, classify};
use super::dates::dated;
use super::english::is_english;
use super::label::label;
use super::links::{Facts, faulted, links};
use super::names::{Entity, code, introduced};
use super::secrets::secrets;
use super::split::{Joint, Piece, pieces};
use super::{Draft, Extraction, Speaker};
use crate::kind::{Confidence, Kind, Modality};
use crate::read::dates::day_of;
use crate::read::term::{Term, terms};
use crate::read::token::tokens;
use crate::read::words::is_content;
use crate::read::{Sentence, StatementInput, read_sentence, read_statement};
use crate::statement::Statement;
use crate::time::Millis;

/// Who speaks, and how drafts are marked.
#[derive(Clone, Copy)]
pub(crate) struct Said<'a> {
    pub(crate) author: &'a str,
    pub(crate) observed_at: Millis,
    pub(crate) origin: &'static str,
    /// Statements that no rule knows become notes: the author gave them as memories.
    pub(crate) keep_all: bool,
    /// Most statements; reading stops when there are more.
    pub(crate) statements_max: usize,
}

impl Said<'_> {
    pub(crate) fn statement(&self, label: &str, content: &str, kind: Kind) -> Statement {
        read_statement(&StatementInput {
            label,
            content,
            kind,
            author: self.author,
            observed_at: self.observed_at,
        })
    }
}

/// What was found so far.
#[derive(Default)]
pub(crate) struct Collected {
    drafts: Vec<Draft>,
    facts: Vec<Facts>,
    entities: Vec<(Draft, Facts)>,
    names: BTreeMap<String, usize>,
    pub(crate) statements: usize,
    pub(crate) redactions: u32,
    sentences: usize,
}

impl Collected {
    /// Adds what one message says.
    pub(crate) fn message(&mut self, text: &str, speaker: Speaker, said: Said<'_>) {
        let hidden = secrets(text);
        self.redactions = self
            .redactions
            .saturating_add(u32::try_from(hidden.len()).unwrap_or(u32::MAX));
        let found = pieces(text, day_of(said.observed_at));
        let first_sentence = self.sentences;
        // Where the draft of each piece stands.
        let mut places: Vec<Option<usize>> = vec![None; found.len()];
        let promised = promises(&found, speaker);
        for (index, piece) in found.iter().enumerate() {
            self.sentences = self.sentences.max(first_sentence + piece.sentence + 1);
            let secret = hidden
                .iter()
                .any(|(from, to)| *from < piece.span.1 && piece.span.0 < *to);
            let enough = self.statements > said.statements_max;
            if secret || enough || promised.get(index) == Some(&true) {
                continue;
            }
            let sentence = read_sentence(&piece.terms, piece.asked, said.author, said.observed_at);
            let place = self.piece(text, piece, &sentence, speaker, said, first_sentence);
            if let Some(slot) = places.get_mut(index) {
                *slot = place;
            }
            self.names_of(piece, &sentence, place.is_some(), speaker, said, first_sentence);
        }
        for (index, piece) in found.iter().enumerate() {
            if let Joint::HasReason(other) = piece.joint
                && let (Some(Some(source)), Some(Some(target))) = (places.get(index), places.get(other))
            {
                if let Some(facts) = self.facts.get_mut(*source) {
                    facts.reason = Some(*target);
                }
                self.mark_rationale(*target, found.get(index).zip(found.get(other)));
            }
        }
        self.mark_faults();
        // A sentence between the two messages keeps their neighbours apart.
        self.sentences += 1;
    }

    /// A reason after "because" is a rationale; one before "so" is a fact of its own.
    fn mark_rationale(&mut self, target: usize, pair: Option<(&Piece, &Piece)>) {
        let after = pair.is_some_and(|(source, reason)| reason.span.0 > source.span.0);
        if let Some(draft) = self.drafts.get_mut(target)
            && after
            && draft.kind == Kind::Fact
        {
            add_tag(&mut draft.tags, "decision-rationale");
        }
    }

    /// A fact that finds fault with a technology beside a decision is its rationale.
    fn mark_faults(&mut self) {
        let decided: Vec<(usize, Vec<String>)> = self
            .drafts
            .iter()
            .zip(&self.facts)
            .filter(|(d, _)| d.kind == Kind::Decision)
            .map(|(d, f)| (f.sentence, d.tags.clone()))
            .collect();
        for (draft, facts) in self.drafts.iter_mut().zip(&self.facts) {
            let beside = decided.iter().any(|(sentence, tags)| {
                sentence.abs_diff(facts.sentence) == 1
                    && faulted(draft.kind, &facts.terms)
                        .iter()
                        .any(|name| super::links::is_rival(tags, name))
            });
            if beside {
                add_tag(&mut draft.tags, "decision-rationale");
            }
        }
    }

    fn piece(
        &mut self,
        text: &str,
        piece: &Piece,
        sentence: &Sentence,
        speaker: Speaker,
        said: Said<'_>,
        first_sentence: usize,
    ) -> Option<usize> {
        let class = classify(piece, sentence, speaker).or_else(|| fallback(piece, sentence, said))?;
        let parts = parts(text, piece, sentence, &class);
        let mut first = None;
        for part in parts {
            self.statements += 1;
            // A part of a list of choices is read again: it has its own slot.
            let own_terms;
            let own_sentence;
            let (terms, sentence) = if part.own {
                own_terms = terms(&part.content, &tokens(&part.content), day_of(said.observed_at));
                own_sentence = read_sentence(&own_terms, piece.asked, said.author, said.observed_at);
                (own_terms.as_slice(), &own_sentence)
            } else {
                (piece.terms.as_slice(), sentence)
            };
            let class = if part.own {
                classify_part(piece, terms, sentence, speaker).unwrap_or_else(|| class.clone())
            } else {
                class.clone()
            };
            let label = label(class.kind, sentence, &part.content);
            let statement = said.statement(&label, &part.content, class.kind);
            let when = dated(
                terms,
                sentence,
                class.tags.iter().any(|t| t == "todo"),
                said.observed_at,
            );
            let mut statement = statement;
            if speaker == Speaker::Assistant {
                withdraw_ends(&mut statement);
            }
            let mut tags = class.tags;
            add_tag(&mut tags, said.origin);
            add_tag(&mut tags, speaker_tag(speaker));
            tags.sort();
            tags.dedup();
            tags.retain(|t| t.len() <= 64);
            tags.truncate(32);
            first = first.or(Some(self.drafts.len()));
            self.drafts.push(Draft {
                label,
                content: part.content,
                kind: class.kind,
                tags,
                confidence: class.confidence,
                speaker,
                span: part.span,
                valid_from: when.valid_from,
                valid_to: when.valid_to,
                due: when.due,
                statement,
            });
            self.facts.push(Facts {
                terms: terms.to_vec(),
                clause: sentence.clause.clone(),
                reason: None,
                sentence: first_sentence + piece.sentence,
                entity: false,
            });
        }
        first
    }

    /// Paths and identifiers of every English clause, people and teams of clauses that made a memory.
    fn names_of(
        &mut self,
        piece: &Piece,
        sentence: &Sentence,
        kept: bool,
        speaker: Speaker,
        said: Said<'_>,
        first_sentence: usize,
    ) {
        if !is_english(&piece.terms) {
            return;
        }
        let mut found = code(&piece.terms);
        if kept && let Some(clause) = &sentence.clause {
            found.extend(introduced(&piece.terms, clause));
        }
        for Entity { name, span, path } in found {
            let key = name.to_lowercase();
            if self.names.contains_key(&key) || self.entities.len() >= said.statements_max {
                continue;
            }
            self.names.insert(key, self.entities.len());
            let mut tags = vec![said.origin.to_owned(), speaker_tag(speaker).to_owned()];
            if path {
                tags.push("code-path".to_owned());
            }
            tags.sort();
            let draft = Draft {
                label: name.clone(),
                content: name.clone(),
                kind: Kind::Entity,
                tags,
                confidence: Confidence::Inferred,
                speaker,
                span,
                valid_from: None,
                valid_to: None,
                due: None,
                statement: said.statement(&name, &name, Kind::Entity),
            };
            let facts = Facts {
                sentence: first_sentence + piece.sentence,
                entity: true,
                ..Facts::default()
            };
            self.entities.push((draft, facts));
        }
    }

    /// Keeps at most `max` drafts, statements before entities.
    pub(crate) fn truncate(&mut self, max: usize) {
        self.drafts.truncate(max);
        self.facts.truncate(max);
        self.entities.truncate(max.saturating_sub(self.drafts.len()));
    }

    /// The drafts in the order of statements, then entities, with their links.
    pub(crate) fn finish(self) -> Extraction {
        let Self {
            mut drafts,
            mut facts,
            entities,
            redactions,
            ..
        } = self;
        for (draft, fact) in entities {
            drafts.push(draft);
            facts.push(fact);
        }
        let links = links(&drafts, &facts);
        Extraction {
            drafts,
            links,
            redactions,
            over_limit: false,
        }
    }
}

fn add_tag(tags: &mut Vec<String>, tag: &str) {
    if !tags.iter().any(|t| t == tag) {
        tags.push(tag.to_owned());
        tags.sort();
    }
}

fn speaker_tag(speaker: Speaker) -> &'static str {
    match speaker {
        Speaker::User => "speaker:user",
        Speaker::Assistant => "speaker:assistant",
    }
}

/// Which pieces stand in a sentence that an assistant promises to remember: dropped whole.
fn promises(found: &[Piece], speaker: Speaker) -> Vec<bool> {
    let promised: Vec<usize> = found
        .iter()
        .filter(|p| speaker == Speaker::Assistant && super::english::is_promise(&p.terms))
        .map(|p| p.sentence)
        .collect();
    found.iter().map(|p| promised.contains(&p.sentence)).collect()
}

/// The assistant never closes anything: what it says ended is an open update.
fn withdraw_ends(statement: &mut Statement) {
    if !statement.ends.is_empty() {
        for claim in &mut statement.claims {
            claim.change = true;
        }
        statement.ends.clear();
    }
}

/// A statement given as a memory that no rule knows.
fn fallback(piece: &Piece, sentence: &Sentence, said: Said<'_>) -> Option<Class> {
    let content = piece
        .terms
        .iter()
        .filter(|t| !t.is_mark() && is_content(&t.lower))
        .count();
    let known = sentence.clause.is_some() || piece.bullet;
    let fits =
        said.keep_all && known && content >= 2 && sentence.modality != Modality::Question && is_english(&piece.terms);
    fits.then(|| Class {
        kind: Kind::Note,
        tags: Vec::new(),
        confidence: Confidence::Inferred,
    })
}

fn classify_part(piece: &Piece, terms: &[Term], sentence: &Sentence, speaker: Speaker) -> Option<Class> {
    classify(
        &Piece {
            terms: terms.to_vec(),
            ..piece.clone()
        },
        sentence,
        speaker,
    )
}

struct Part {
    content: String,
    span: (usize, usize),
    /// Its content is not the piece's own.
    own: bool,
}

/// "We use Redis for caching and PostgreSQL for storage" is two choices; everything else is one statement.
fn parts(text: &str, piece: &Piece, sentence: &Sentence, class: &Class) -> Vec<Part> {
    let plain = |span: (usize, usize)| {
        text.get(span.0..span.1)
            .unwrap_or_default()
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
    };
    let whole = vec![Part {
        content: plain(piece.span),
        span: piece.span,
        own: false,
    }];
    let Some(choice) = sentence.choice.as_ref().filter(|c| c.chosen.len() > 1 && !c.listed) else {
        return whole;
    };
    let chosen_kind = matches!(class.kind, Kind::Decision | Kind::Preference);
    let Some(start) = choice
        .chosen
        .first()
        .and_then(|c| piece.terms.get(c.range.0))
        .map(|t| t.start)
        .filter(|_| chosen_kind)
    else {
        return whole;
    };
    let head = plain((piece.span.0, start));
    let mut parts = Vec::new();
    for chosen in &choice.chosen {
        let inner = piece.terms.get(chosen.range.0..chosen.range.1).unwrap_or_default();
        let (Some(first), Some(last)) = (inner.first(), inner.last()) else {
            return whole;
        };
        let span = (first.start, last.end);
        let content = format!("{head} {}", plain(span)).trim().to_owned();
        let span = if parts.is_empty() { (piece.span.0, span.1) } else { span };
        parts.push(Part {
            content,
            span,
            own: true,
        });
    }
    parts
}
