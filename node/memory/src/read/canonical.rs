//! Normal forms of a statement. Everything a gate protects stays in the canonical form; only what says nothing is
//! dropped: articles, intensifiers, lead-ins, helper verbs.

use super::clause::{Clause, parse};
use super::term::{Term, TermKind};
use super::token::{Token, TokenKind};
use super::words::{ARTICLES, Form, INTENSIFIERS, MODALS, is_in};
use crate::read::list::{WordList, list};

/// One unit of a canonical form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Atom {
    pub(crate) text: String,
    /// A preposition that opens a qualifier, a mark: kept for general forms.
    pub(crate) kind: TermKind,
    /// As said, to tell "on" the state from "on" the preposition.
    pub(crate) verb: bool,
}

/// Same after NFC, case folding, white space and final punctuation; case stays in code and flags.
pub(crate) fn exact_form(text: &str, tokens: &[Token]) -> String {
    let last = tokens
        .iter()
        .rposition(|t| t.kind != TokenKind::Punct || !is_in(list!(". ! …"), &t.text))
        .map_or(0, |i| i + 1);
    let mut form = String::with_capacity(text.len());
    let mut end = 0;
    for token in tokens.iter().take(last) {
        if token.start < end {
            // A further word of a contraction.
            continue;
        }
        if token.spaced && !form.is_empty() {
            form.push(' ');
        }
        let raw = text.get(token.start..token.end).unwrap_or_default();
        let cased = matches!(
            token.kind,
            TokenKind::Path | TokenKind::Url | TokenKind::Flag | TokenKind::Quoted
        ) || (raw.contains('_') && !raw.bytes().any(|b| b.is_ascii_lowercase()));
        if cased {
            form.push_str(raw);
        } else {
            use unicode_normalization::UnicodeNormalization;
            form.extend(raw.nfc().flat_map(char::to_lowercase));
        }
        end = token.end;
    }
    form
}

/// How many terms at the start are a lead-in that says nothing ("Reminder:", "Remember that", "Actually,").
pub(crate) fn lead_in(terms: &[Term]) -> usize {
    const FREE: &[&str] = &[
        "please remember that",
        "remember that",
        "please note that",
        "note that",
        "keep in mind that",
        "just so you know",
        "for the record",
        "to be clear",
        "by the way",
        "as a reminder",
        "just a reminder",
        "as discussed",
        "in fact",
        "just to confirm",
        "to clarify",
        "actually",
        "understood",
        "ok",
        "okay",
        "btw",
        "fyi",
        "so",
        "yes",
        "yeah",
        "yep",
        "and",
        "but",
        "well",
        "basically",
        "please be aware that",
        "be aware that",
        "quick note",
        "it turn out that",
        "turn out",
        "i want you to remember that",
        "i would like you to remember that",
        "remember",
        "great news",
        "alright",
        "first of all",
        "as of now",
        "of course",
    ];
    const WITH_MARK: &[&str] = &[
        "reminder",
        "note",
        "important",
        "update",
        "correction",
        "decision",
        "no",
        "nope",
        "great",
        "sure",
        "right",
        "thank",
        "thanks",
        "hey",
        "hi",
        "hello",
        "heads up",
        "memo",
        "fact",
        "info",
        "perfect",
        "good",
        "cool",
        "nice",
        "remember",
        "context",
        "background",
        "summary",
        "then",
        "however",
        "therefore",
        "anyway",
        "again",
        "sorry",
        "hm",
        "hmm",
        "requirement",
        "constraint",
        "preference",
        "rule",
        "also",
    ];
    // Their first words: most sentences start with none of them.
    const FIRST: WordList = WordList::new(
        "actually again alright also and anyway as background basically be btw but by constraint context cool correction decision fact first for fyi good great heads hello hey hi hm hmm however i important in info it just keep memo nice no nope note of ok okay perfect please preference quick remember reminder requirement right rule so sorry summary sure thank thanks then therefore to turn understood update well yeah yep yes",
    );
    let mut skipped = 0;
    for _ in 0..4 {
        let rest = terms.get(skipped..).unwrap_or_default();
        let matched = |phrase: &&str| {
            let mut words = 0;
            let fits = phrase.split(' ').enumerate().all(|(i, w)| {
                words = i + 1;
                rest.get(i).is_some_and(|t| t.lower == w || t.text == w)
            });
            (fits, words)
        };
        let marked = |words: usize| {
            rest.get(words)
                .is_some_and(|t| matches!(t.kind, TermKind::Comma | TermKind::Break | TermKind::Stop))
        };
        if !rest.first().is_some_and(|t| FIRST.has(&t.lower)) {
            break;
        }
        let free = FREE.iter().map(matched).filter(|(fits, _)| *fits).map(|(_, n)| n).max();
        let with_mark = WITH_MARK
            .iter()
            .map(matched)
            .filter(|(fits, n)| *fits && marked(*n))
            .map(|(_, n)| n)
            .max();
        let words = match (free, with_mark) {
            // "Remember to call" is a task, "Remember the Milk" a name; "So far" is none either.
            (Some(1), None)
                if rest.first().is_some_and(|t| t.is_one_of(list!("remember so well yes")))
                    && !marked(1)
                    && !subject_follows(rest) =>
            {
                0
            }
            (a, b) => a.max(b).unwrap_or(0),
        };
        if words == 0 || words >= rest.len() {
            break;
        }
        skipped += words + usize::from(marked(words));
    }
    if terms.get(skipped..).is_none_or(<[Term]>::is_empty) {
        0
    } else {
        skipped
    }
}

fn subject_follows(rest: &[Term]) -> bool {
    rest.get(1).is_some_and(|t| t.is_one_of(list!("i we our my the")))
}

/// The sentences of `terms`: ranges without their final mark, and whether each is asked.
pub(crate) fn sentences(terms: &[Term]) -> Vec<(usize, usize, bool)> {
    let mut found = Vec::new();
    let mut start = 0;
    for (at, term) in terms.iter().enumerate() {
        if matches!(term.kind, TermKind::Stop | TermKind::Ask) {
            if at > start {
                found.push((start, at, term.kind == TermKind::Ask));
            }
            start = at + 1;
        }
    }
    if terms.len() > start {
        found.push((start, terms.len(), false));
    }
    found
}

/// The canonical atoms of one sentence.
pub(crate) fn atoms(sentence: &[Term]) -> Vec<Atom> {
    let clause = parse(sentence);
    let ordered = clause
        .as_ref()
        .and_then(|c| active(sentence, c).or_else(|| swapped(sentence, c)));
    let terms: Vec<Term> = ordered.unwrap_or_else(|| sentence.to_vec());
    let uses = clause
        .as_ref()
        .is_some_and(|c| c.progressive && c.verb == "use" && c.outer.is_none() && !c.passive);
    let mut out: Vec<Atom> = Vec::with_capacity(terms.len());
    for (at, term) in terms.iter().enumerate() {
        let next = terms.get(at + 1);
        let last_text = out.last().map_or("", |a: &Atom| a.text.as_str());
        match term.kind {
            TermKind::Comma => {
                let list = next.is_none_or(|t| t.is_one_of(list!("and or but so")));
                if list || out.is_empty() || last_text == "," {
                    continue;
                }
            }
            TermKind::Word => {
                let article =
                    term.is_one_of(ARTICLES) && next.is_some_and(|t| !t.is_mark()) && (!term.capital || term.first);
                let helper = term.is_one_of(list!("do does"))
                    && next.is_some_and(|t| t.is_one_of(list!("not never")) || matches!(t.verb, Some((_, Form::Base))));
                let doubled = matches!(
                    (last_text, term.text.as_str()),
                    ("jwt", "token") | ("pin", "number") | ("atm", "machine")
                );
                // "are using" is "use": a habit either way.
                let progressive = uses
                    && term.is_one_of(list!("is are am"))
                    && next.is_some_and(|t| t.is_one_of(list!("using not")) || t.verb.is_none());
                if article || helper || doubled || progressive || term.is_one_of(INTENSIFIERS) {
                    continue;
                }
            }
            _ => {}
        }
        out.push(Atom {
            text: atom_text(term, last_text, uses),
            kind: term.kind,
            verb: term.verb.is_some(),
        });
    }
    while out.last().is_some_and(|a| a.kind == TermKind::Comma) {
        out.pop();
    }
    out
}

fn atom_text(term: &Term, last: &str, uses: bool) -> String {
    if term.kind != TermKind::Word {
        return term.text.clone();
    }
    match term.lower.as_str() {
        "are" | "am" => "is".to_owned(),
        "were" => "was".to_owned(),
        "has" => "have".to_owned(),
        "using" if uses => "use".to_owned(),
        // "expires in 15 minutes", "expires after 15 minutes"
        "in" | "within" if is_in(list!("expire expires expiring expired"), last) => "after".to_owned(),
        _ => match term.verb {
            Some((base, Form::S)) if base != "be" && base != "have" && term.text.len() < term.lower.len() => {
                base.to_owned()
            }
            _ => term.text.clone(),
        },
    }
}

/// Passive to active: "X was chosen for Y" is "we chose X for Y", "X is owned by A" is "A owns X".
fn active(terms: &[Term], clause: &Clause) -> Option<Vec<Term>> {
    const TURNED: WordList = WordList::new(
        "use choose select pick adopt deploy host own lead manage maintain replace drop cancel retire build \
         write approve reject review prefer oversee run test",
    );
    if !clause.passive || clause.outer.is_some() || clause.subject.1 <= clause.subject.0 || !is_in(TURNED, clause.verb)
    {
        return None;
    }
    let rest = terms.get(clause.group.1..)?;
    let by = rest.iter().position(|t| t.is_one_of(list!("by")));
    let agent_end = |by: usize| {
        (by + 1..rest.len())
            .find(|i| {
                rest.get(*i).is_some_and(|t| {
                    t.is_mark() || t.is_one_of(super::words::PREPOSITIONS) || t.is_one_of(list!("and or but"))
                })
            })
            .unwrap_or(rest.len())
    };
    let agent = by.map(|by| (by, agent_end(by))).filter(|(by, end)| {
        end > &(by + 1)
            && rest
                .get(by + 1)
                .is_some_and(|t| !matches!(t.kind, TermKind::Date | TermKind::Quantity))
    });
    let word = |text: &str, verb| Term { verb, ..plain(text) };
    let mut out: Vec<Term> = terms.get(..clause.subject.0)?.to_vec();
    match agent {
        Some((by, end)) => match rest.get(by + 1..end)? {
            [only] if only.is_one_of(list!("us")) => out.push(word("we", None)),
            [only] if only.is_one_of(list!("me")) => out.push(word("i", None)),
            agent => out.extend(agent.iter().cloned()),
        },
        None => out.push(word("we", None)),
    }
    let group = terms.get(clause.group.0..clause.group.1.saturating_sub(1))?;
    let past = group.iter().any(|t| t.is_one_of(list!("was were")));
    let mut perfect = false;
    for term in group {
        if term.is_one_of(list!("has have had")) {
            perfect = true;
            out.push(word(if term.lower == "had" { "had" } else { "have" }, None));
        } else if !term.is_one_of(super::words::BE) {
            out.push(term.clone());
        }
    }
    let modal = clause.modal.as_deref().is_some_and(|m| is_in(MODALS, m));
    // The past of the active form; "did not" keeps its base by the negation standing before it.
    let text = if perfect || (past && !modal) {
        past_of(clause.verb, perfect)
    } else {
        clause.verb.to_owned()
    };
    out.push(word(&text, Some((clause.verb, Form::Base))));
    out.extend(terms.get(clause.subject.0..clause.subject.1)?.iter().cloned());
    match agent {
        Some((by, end)) => {
            out.extend(rest.get(..by)?.iter().cloned());
            out.extend(rest.get(end..)?.iter().cloned());
        }
        None => out.extend(rest.iter().cloned()),
    }
    Some(out)
}

fn past_of(verb: &str, participle: bool) -> String {
    match (verb, participle) {
        ("choose", false) => "chose",
        ("choose", true) => "chosen",
        ("run", false) => "ran",
        ("write", false) => "wrote",
        ("write", true) => "written",
        ("lead", _) => "led",
        ("build", _) => "built",
        ("oversee", false) => "oversaw",
        ("oversee", true) => "overseen",
        ("drop", _) => "dropped",
        ("prefer", _) => "preferred",
        ("cancel", _) => "canceled",
        ("run", true) => "run",
        _ if verb.ends_with('e') => return format!("{verb}d"),
        _ if verb.ends_with('y') && verb != "deploy" => return format!("{}ied", verb.trim_end_matches('y')),
        _ => return format!("{verb}ed"),
    }
    .to_owned()
}

fn plain(text: &str) -> Term {
    Term {
        text: text.to_owned(),
        lower: text.to_owned(),
        shown: text.to_owned(),
        kind: TermKind::Word,
        start: 0,
        end: 0,
        capital: false,
        verb: None,
        days: None,
        first: false,
    }
}

/// "X is the R" is "the R is X": the role stands first.
fn swapped(terms: &[Term], clause: &Clause) -> Option<Vec<Term>> {
    let (from, to) = clause.subject;
    if clause.verb != "be" || clause.passive || clause.progressive || to <= from || clause.lead.1 > 0 {
        return None;
    }
    let subject = terms.get(from..to)?;
    let rest = terms.get(clause.group.1..)?;
    let role = rest.first()?.is_one_of(list!("the our"));
    let named = subject
        .iter()
        .all(|t| !t.is_one_of(super::words::DETERMINERS) && !t.is_one_of(list!("of my")))
        && !subject.first()?.is_one_of(super::words::PRONOUNS);
    let simple = rest.iter().all(|t| {
        !t.is_mark()
            && t.kind != TermKind::Quantity
            && t.kind != TermKind::Date
            && !t.is_one_of(list!("and or but only"))
    });
    if !(role && named && simple && rest.len() > 1) {
        return None;
    }
    let mut out: Vec<Term> = terms.get(..from)?.to_vec();
    out.extend(rest.iter().cloned());
    out.extend(terms.get(clause.group.0..clause.group.1)?.iter().cloned());
    out.extend(subject.iter().cloned());
    Some(out)
}

/// Words that make a form depend on who says it.
pub(crate) fn is_first_person(terms: &[Term]) -> bool {
    terms
        .iter()
        .any(|t| t.kind == TermKind::Word && t.is_one_of(list!("i me my mine myself")))
}
