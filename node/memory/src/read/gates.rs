//! The gates of a merge by label or meaning, where the forms differ and only similarity speaks for it.
//!
//! Strict on purpose: a true duplicate that stays costs little, a false merge loses a memory.

use super::canonical::Atom;
use super::term::{Term, TermKind};
use super::words::{self, is_in, opposite_pair};
use super::{Reading, StatementInput, kinds_may_merge, read, read_statement};
use crate::kind::Kind;
use crate::read::list::{WordList, list};

/// What must agree before two statements may merge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Gate {
    /// G1: same namespace and project; never reported here, apply knows it.
    Scope,
    /// G2: kinds that may merge.
    Kind,
    /// G3: negation and opposites.
    Polarity,
    /// G4: numbers with unit and currency, versions.
    Quantity,
    /// G5: dates, weekdays, clock times.
    Time,
    /// G6: names, identifiers, paths, and their order.
    Names,
    /// G7: who it is about.
    Subject,
    /// G8: purpose, limits, quantifiers.
    Purpose,
    /// G9: asserted, planned, hedged, conditional, past, question; must, should, may.
    Modality,
    /// G10: a closed memory takes no merge; never reported here, apply knows it.
    State,
}

/// The gates G2 to G9 that forbid to merge the two; empty when none does.
pub fn blocking_gates(a: &StatementInput<'_>, b: &StatementInput<'_>) -> Vec<Gate> {
    let mut gates = Vec::new();
    if !kinds_may_merge(a.kind, b.kind) {
        gates.push(Gate::Kind);
    }
    let (first, second) = (read_statement(a), read_statement(b));
    let same = first.exact == second.exact
        || (first.canonical.is_some() && first.canonical == second.canonical)
        || (first.acronym.is_some() && first.acronym == second.canonical)
        || (second.acronym.is_some() && second.acronym == first.canonical);
    if same {
        return gates;
    }
    let (x, y) = (
        read(a.content, a.author, a.observed_at),
        read(b.content, b.author, b.observed_at),
    );
    let mut check = |gate, differs: bool| {
        if differs {
            gates.push(gate);
        }
    };
    check(Gate::Polarity, polarity(&x) != polarity(&y));
    check(
        Gate::Quantity,
        sorted(&x, |t| t.kind == TermKind::Quantity) != sorted(&y, |t| t.kind == TermKind::Quantity),
    );
    check(
        Gate::Time,
        sorted(&x, |t| t.kind == TermKind::Date) != sorted(&y, |t| t.kind == TermKind::Date),
    );
    let substituted = substitution(&x, &y);
    let renamed = a.kind == Kind::Entity && b.kind == Kind::Entity && first.label != second.label;
    check(Gate::Names, names(&x) != names(&y) || substituted || renamed);
    check(Gate::Subject, subject(&x, a.author) != subject(&y, b.author));
    check(
        Gate::Purpose,
        purposes(&x) != purposes(&y)
            || listed(&x, words::QUANTIFIERS) != listed(&y, words::QUANTIFIERS)
            || listed(&x, words::LIMITS) != listed(&y, words::LIMITS),
    );
    check(
        Gate::Modality,
        x.modality != y.modality || listed(&x, words::MODAL_STRENGTH) != listed(&y, words::MODAL_STRENGTH),
    );
    gates
}

fn sorted(reading: &Reading, wanted: impl Fn(&Term) -> bool) -> Vec<&str> {
    let mut found: Vec<&str> = reading
        .terms
        .iter()
        .filter(|t| wanted(t))
        .map(|t| t.text.as_str())
        .collect();
    found.sort_unstable();
    found
}

fn listed(reading: &Reading, list: WordList) -> Vec<&str> {
    sorted(reading, |t| t.kind == TermKind::Word && is_in(list, &t.lower))
}

/// Negations by number, and every opposite by word.
fn polarity(reading: &Reading) -> (usize, Vec<&str>) {
    const DENY: WordList = WordList::new(
        "avoid reject refuse forbid forbidden prohibit prohibited drop dropped cancel canceled cancelled stop \
         stopped longer against ban banned exclude excluded",
    );
    let denied = |t: &&Term| t.is_one_of(words::NEGATIONS) || t.is_one_of(DENY);
    let count = reading.terms.iter().filter(denied).count();
    (
        count,
        sorted(reading, |t| {
            t.kind == TermKind::Word && opposite_pair(&t.lower).is_some() && t.lower != "on"
        }),
    )
}

/// Names in their order.
fn names(reading: &Reading) -> Vec<&str> {
    reading
        .terms
        .iter()
        .filter(|t| matches!(t.kind, TermKind::Name | TermKind::Technology | TermKind::Code) || !t.text.is_ascii())
        .map(|t| t.text.as_str())
        .collect()
}

/// Who the first sentence is about.
fn subject(reading: &Reading, author: &str) -> String {
    let Some(sentence) = reading.sentences.first() else {
        return String::new();
    };
    let singular = if super::canonical::is_first_person(&reading.terms) {
        author
    } else {
        ""
    };
    let verb = sentence
        .atoms
        .iter()
        .position(|a| a.verb || is_in(list!("is was have will must should can may would might could"), &a.text));
    let head = sentence.atoms.get(..verb.unwrap_or(1)).unwrap_or_default();
    let head: Vec<&str> = head.iter().map(|a| a.text.as_str()).collect();
    format!("{singular}|{}", head.join(" "))
}

/// What stands after for, as, in, on and their like.
fn purposes(reading: &Reading) -> Vec<String> {
    let mut found = Vec::new();
    for sentence in &reading.sentences {
        for (at, atom) in sentence.atoms.iter().enumerate() {
            if atom.kind == TermKind::Word
                && is_in(
                    list!("for as in on within between with during via across under by from to"),
                    &atom.text,
                )
            {
                let inner: Vec<&str> = sentence
                    .atoms
                    .iter()
                    .skip(at + 1)
                    .take(6)
                    .take_while(|a| {
                        !(a.kind == TermKind::Word && is_in(words::PREPOSITIONS, &a.text)) && a.kind != TermKind::Comma
                    })
                    .map(|a| a.text.as_str())
                    .collect();
                found.push(inner.join(" "));
            }
        }
    }
    found.sort();
    found
}

/// Whether the forms are the same but for a few words in one place: then those words are the difference, and whether
/// they mean the same nobody can tell by rule.
fn substitution(a: &Reading, b: &Reading) -> bool {
    let flat = |r: &Reading| -> Vec<Atom> { r.sentences.iter().flat_map(|s| s.atoms.iter().cloned()).collect() };
    let (a, b) = (flat(a), flat(b));
    let same = |pair: &(&Atom, &Atom)| pair.0.text == pair.1.text;
    let prefix = a.iter().zip(&b).take_while(same).count();
    let room = a.len().min(b.len()) - prefix;
    let suffix = a.iter().rev().zip(b.iter().rev()).take(room).take_while(same).count();
    let (left, right) = (a.len() - prefix - suffix, b.len() - prefix - suffix);
    prefix + suffix > 0 && left <= 3 && right <= 3 && left + right > 0
}
