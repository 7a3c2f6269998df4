//! Reading one statement for duplicate and conflict detection: what it says as fingerprints that apply can compare.
//!
//! Runs on the leader before a proposal. Two statements with equal canonical fingerprints are safe to merge: the form
//! holds everything that a gate protects. When in doubt two forms stay different. Text that is not English gets an
//! exact and a canonical form and no claims.

mod compare;
mod gates;

pub(crate) mod list;

pub(crate) mod canonical;
pub(crate) mod choice;
pub(crate) mod clause;
pub(crate) mod dates;
pub(crate) mod modality;
pub(crate) mod named;
pub(crate) mod numbers;
mod polarity;
mod roles;
pub(crate) mod slots;
pub(crate) mod spelling;
pub(crate) mod technologies;
pub(crate) mod term;
pub(crate) mod token;
mod values;
pub(crate) mod verbs;
mod when_levels;
pub(crate) mod words;

pub use compare::{PairOutcome, compare};
pub use gates::{Gate, blocking_gates};

use crate::kind::{Kind, Modality};
use crate::read::list::list;
use crate::statement::{Fingerprint, Statement};
use crate::time::Millis;
use canonical::Atom;
use choice::Choice;
use clause::Clause;
use slots::Slots;
use term::{Term, TermKind};

/// One statement and who says it when.
#[derive(Clone, Copy, Debug)]
pub struct StatementInput<'a> {
    /// Short name.
    pub label: &'a str,
    /// The statement.
    pub content: &'a str,
    /// What sort of memory it is or would be.
    pub kind: Kind,
    /// The principal, as text: whom `I` means.
    pub author: &'a str,
    /// When it was said; relative dates count from here.
    pub observed_at: Millis,
}

/// Longest sentence, in terms, whose structure is read; longer ones only have forms.
const SENTENCE_MAX: usize = 120;
/// Sentences of one statement whose structure is read.
const SENTENCES_MAX: usize = 8;

/// One sentence, read.
pub(crate) struct Sentence {
    pub(crate) clause: Option<Clause>,
    pub(crate) atoms: Vec<Atom>,
    pub(crate) modality: Modality,
    pub(crate) choice: Option<Choice>,
    pub(crate) slots: Slots,
}

/// "Deadline: March 15" is "Deadline is March 15".
fn labelled(terms: &[Term]) -> Option<Vec<Term>> {
    let at = terms
        .iter()
        .take(6)
        .position(|t| t.kind == TermKind::Break)
        .filter(|at| (1..=4).contains(at))?;
    let colon = terms.get(at).is_some_and(|t| t.shown == ":");
    let head = terms
        .get(..at)?
        .iter()
        .all(|t| matches!(t.kind, TermKind::Word | TermKind::Name | TermKind::Technology));
    let value = terms.get(at + 1)?;
    if !colon || !head || !value.is_value() || clause::parse(terms).is_some() {
        return None;
    }
    let mut out = terms.to_vec();
    let is = out.get_mut(at)?;
    (is.text, is.lower, is.kind) = ("is".to_owned(), "is".to_owned(), TermKind::Word);
    Some(out)
}

/// Reads one sentence of terms.
pub(crate) fn read_sentence(terms: &[Term], asked: bool, author: &str, observed_at: Millis) -> Sentence {
    let rewritten = labelled(terms);
    let terms = rewritten.as_deref().unwrap_or(terms);
    let atoms = canonical::atoms(terms);
    if terms.len() > SENTENCE_MAX {
        let modality = if asked { Modality::Question } else { Modality::Asserted };
        return Sentence {
            clause: None,
            atoms,
            modality,
            choice: None,
            slots: Slots::default(),
        };
    }
    let clause = clause::parse(terms);
    let modality = modality::modality(terms, asked, clause.as_ref(), observed_at);
    let choice = clause.as_ref().and_then(|clause| choice::read(terms, clause));
    let slots = match (&clause, modality) {
        (Some(clause), Modality::Asserted | Modality::Planned) => {
            slots::read(terms, clause, choice.as_ref(), &atoms, author, observed_at)
        }
        _ => Slots::default(),
    };
    Sentence {
        clause,
        atoms,
        modality,
        choice,
        slots,
    }
}

/// Everything read in one statement.
pub(crate) struct Reading {
    pub(crate) terms: Vec<Term>,
    pub(crate) sentences: Vec<Sentence>,
    pub(crate) modality: Modality,
    pub(crate) exact: String,
    header: String,
}

impl Reading {
    fn form(&self) -> String {
        let mut form = format!("{}|{}", self.modality.number(), self.header);
        for (i, sentence) in self.sentences.iter().enumerate() {
            if i > 0 {
                form.push_str(" . ");
            }
            form.push_str(&join(&sentence.atoms));
        }
        form
    }
}

fn join(atoms: &[Atom]) -> String {
    atoms.iter().map(|a| a.text.as_str()).collect::<Vec<_>>().join(" ")
}

/// Reads all sentences of `content`.
pub(crate) fn read(content: &str, author: &str, observed_at: Millis) -> Reading {
    let tokens = token::tokens(content);
    let terms = term::terms(content, &tokens, dates::day_of(observed_at));
    let body = terms.get(canonical::lead_in(&terms)..).unwrap_or_default();
    let mut sentences = Vec::new();
    for (i, (from, to, asked)) in canonical::sentences(body).into_iter().enumerate() {
        let sentence = body.get(from..to).unwrap_or_default();
        if i < SENTENCES_MAX {
            sentences.push(read_sentence(sentence, asked, author, observed_at));
        } else {
            let modality = if asked { Modality::Question } else { Modality::Asserted };
            let atoms = canonical::atoms(sentence);
            sentences.push(Sentence {
                clause: None,
                atoms,
                modality,
                choice: None,
                slots: Slots::default(),
            });
        }
    }
    // The weakest sentence speaks for all: a statement with a guess in it is a guess.
    let modality = sentences
        .iter()
        .map(|s| s.modality)
        .filter(|m| *m != Modality::Asserted)
        .max_by_key(|m| weakness(*m));
    let header = slots::person_of(&terms, author);
    let exact = canonical::exact_form(content, &tokens);
    Reading {
        sentences,
        modality: modality.unwrap_or(Modality::Asserted),
        exact,
        header,
        terms,
    }
}

fn weakness(modality: Modality) -> u8 {
    match modality {
        Modality::Asserted => 0,
        Modality::Planned => 1,
        Modality::Past => 2,
        Modality::Hedged => 3,
        Modality::Conditional => 4,
        Modality::Question => 5,
    }
}

/// Reads one statement.
pub fn read_statement(input: &StatementInput<'_>) -> Statement {
    let reading = read(input.content, input.author, input.observed_at);
    let label = term_text(input.label, input.observed_at);
    // An entity is its name: two names with one description are two entities.
    let name = if input.kind == Kind::Entity && !reading.exact.contains(&input.label.trim().to_lowercase()) {
        format!("|{}", label.join(" "))
    } else {
        String::new()
    };
    let form = format!("{}{name}", reading.form());
    let count: usize = reading.sentences.iter().map(|s| s.atoms.len()).sum();
    let enough = count >= 2 || (count == 1 && input.kind == Kind::Entity);
    let canonical = enough.then(|| Fingerprint::of("canonical", &form));
    let acronym = enough.then(|| initials(&label)).flatten().and_then(|initials| {
        let spelled = label.join(" ");
        let at = form
            .find(&spelled)
            .filter(|at| is_boundary(&form, *at, spelled.len()))?;
        let short = format!("{}{initials}{}", form.get(..at)?, form.get(at + spelled.len()..)?);
        Some(Fingerprint::of("canonical", &short))
    });
    let mut claims = Vec::new();
    let mut ends = Vec::new();
    for sentence in reading.sentences.iter().filter(|s| s.modality == reading.modality) {
        claims.extend(sentence.slots.claims());
        ends.extend(sentence.slots.ends());
    }
    claims.truncate(Statement::PARTS_MAX);
    ends.truncate(Statement::PARTS_MAX);
    // The same text of another author, or about another day, is another statement.
    let days: Vec<&str> = reading
        .terms
        .iter()
        .filter(|t| t.kind == TermKind::Date)
        .map(|t| t.text.as_str())
        .collect();
    let exact = format!("{}|{}|{}{name}", reading.header, days.join(" "), reading.exact);
    Statement {
        exact: Fingerprint::of("exact", &exact),
        canonical,
        label: Fingerprint::of("label", &label.join(" ")),
        acronym,
        general: general_forms(&reading),
        modality: reading.modality,
        claims,
        ends,
    }
}

fn is_boundary(form: &str, at: usize, length: usize) -> bool {
    let before = form
        .get(..at)
        .and_then(|f| f.chars().next_back())
        .is_none_or(|c| c == ' ' || c == '|');
    let after = form
        .get(at + length..)
        .and_then(|f| f.chars().next())
        .is_none_or(|c| c == ' ' || c == '|');
    before && after
}

fn term_text(text: &str, observed_at: Millis) -> Vec<String> {
    let terms = term::terms(text, &token::tokens(text), dates::day_of(observed_at));
    canonical::atoms(&terms).into_iter().map(|a| a.text).collect()
}

/// The initials of a name of three words or more.
fn initials(label: &[String]) -> Option<String> {
    let words: Vec<&String> = label
        .iter()
        .filter(|w| !words::is_in(list!("of and for in"), w))
        .collect();
    let plain = words.iter().all(|w| w.chars().all(char::is_alphabetic));
    (plain && (3..=10).contains(&words.len())).then(|| words.iter().filter_map(|w| w.chars().next()).collect())
}

/// Canonical forms of a one-sentence statement with one qualifier, or all from one on, left out.
fn general_forms(reading: &Reading) -> Vec<Fingerprint> {
    let [sentence] = reading.sentences.as_slice() else {
        return Vec::new();
    };
    let atoms = &sentence.atoms;
    if atoms.len() > SENTENCE_MAX {
        return Vec::new();
    }
    let opens = |at: usize| {
        atoms
            .get(at)
            .is_some_and(|a| a.kind == TermKind::Word && words::is_in(words::QUALIFIERS, &a.text))
    };
    let starts: Vec<usize> = (2..atoms.len())
        .filter(|at| {
            opens(*at)
                && !(opens(at - 1)
                    && atoms
                        .get(at - 1)
                        .is_some_and(|a| a.text == "only" || a.text == "except"))
        })
        .collect();
    let mut forms = Vec::new();
    let mut push = |kept: Vec<&Atom>, dropped: &[Atom]| {
        let denies = dropped.iter().any(|a| words::is_in(words::NEGATIONS, &a.text));
        let content = kept.iter().filter(|a| words::is_content(&a.text)).count();
        if denies || dropped.is_empty() || content < 2 || forms.len() >= Statement::PARTS_MAX {
            return;
        }
        let kept: Vec<&str> = kept.iter().map(|a| a.text.as_str()).collect();
        let form = format!("{}|{}{}", reading.modality.number(), reading.header, kept.join(" "));
        let fingerprint = Fingerprint::of("canonical", &form);
        if !forms.contains(&fingerprint) {
            forms.push(fingerprint);
        }
    };
    for (i, start) in starts.iter().enumerate() {
        let end = starts.get(i + 1).copied().unwrap_or(atoms.len());
        let tail = atoms.get(*start..).unwrap_or_default();
        push(atoms.iter().take(*start).collect(), tail);
        if end < atoms.len() {
            let dropped = atoms.get(*start..end).unwrap_or_default();
            push(
                atoms.iter().take(*start).chain(atoms.iter().skip(end)).collect(),
                dropped,
            );
        }
    }
    forms
}

/// G2: whether memories of these kinds may merge.
pub fn kinds_may_merge(a: Kind, b: Kind) -> bool {
    use Kind::{Concept, Decision, Entity, Fact, Note, Preference};
    let (low, high) = if a <= b { (a, b) } else { (b, a) };
    low == high
        || matches!(
            (low, high),
            (Entity, Concept | Note) | (Concept | Fact | Preference | Decision, Note)
        )
}
