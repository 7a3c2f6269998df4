//! Tokens to terms: the units of meaning that forms, slots and gates are made of. Several tokens may be one term
//! ("visual studio code", "fifteen minutes", "March 15").

use crate::read::list::{WordList, list};
use jiff::civil::Date;

use super::dates::{Direction, When, when};
use super::numbers::quantity;
use super::technologies::is_plain_word;
use super::token::{Token, TokenKind};
use super::words::{self, Form, is_in, singular, spelling, technology, verb};

/// What a term is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TermKind {
    Word,
    /// A proper name: capital inside a sentence, acronym, mixed case, or letters of another script.
    Name,
    Technology,
    Quantity,
    Date,
    /// Path, URL, flag, quoted text, code identifier: compares with case.
    Code,
    /// A comma.
    Comma,
    /// Colon, dash, slash, bracket: a boundary inside a sentence.
    Break,
    /// End of a sentence.
    Stop,
    /// Question mark.
    Ask,
}

/// A term.
#[derive(Clone, Debug)]
pub(crate) struct Term {
    /// The comparison text.
    pub(crate) text: String,
    /// The words in lower case, as said.
    pub(crate) lower: String,
    /// The words in their own case.
    pub(crate) shown: String,
    pub(crate) kind: TermKind,
    pub(crate) start: usize,
    pub(crate) end: usize,
    /// Starts with a capital.
    pub(crate) capital: bool,
    /// A verb form, if it may be one.
    pub(crate) verb: Option<(&'static str, Form)>,
    /// The days meant, for dates.
    pub(crate) days: Option<(Date, Date)>,
    /// First term of its sentence: a capital says nothing here.
    pub(crate) first: bool,
}

impl Term {
    /// Whether it is one of these plain words: "May" the month and "US" the country are none.
    pub(crate) fn is_one_of(&self, list: WordList) -> bool {
        (self.kind == TermKind::Word || self.is_mark()) && is_in(list, &self.lower)
    }

    pub(crate) fn is_mark(&self) -> bool {
        matches!(
            self.kind,
            TermKind::Comma | TermKind::Break | TermKind::Stop | TermKind::Ask
        )
    }

    /// Something that can be a value: a number, date, name, code.
    pub(crate) fn is_value(&self) -> bool {
        matches!(
            self.kind,
            TermKind::Name | TermKind::Technology | TermKind::Quantity | TermKind::Date | TermKind::Code
        )
    }
}

/// The terms of `tokens`; `today` is the day of speaking, if it can be told.
pub(crate) fn terms(text: &str, tokens: &[Token], today: Option<Date>) -> Vec<Term> {
    let past = in_the_past(tokens);
    let yearly = tokens
        .iter()
        .any(|t| is_in(list!("birthday birthdays anniversary born yearly annually"), &t.lower));
    let mut out: Vec<Term> = Vec::with_capacity(tokens.len());
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        let first = out
            .last()
            .is_none_or(|t: &Term| matches!(t.kind, TermKind::Stop | TermKind::Ask | TermKind::Break));
        let (mut term, taken) = one(tokens, at, today, past, yearly, first);
        let last = tokens.get(at + taken.saturating_sub(1)).unwrap_or(token);
        (term.start, term.end) = (token.start, last.end);
        term.shown = text
            .get(token.start..last.end)
            .unwrap_or_default()
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ");
        if token.start == last.start && taken == 1 && token.kind == TokenKind::Word {
            term.shown.clone_from(&token.text);
        }
        term.capital = token.text.starts_with(char::is_uppercase);
        term.first = first;
        // Runs of marks say no more than one.
        let doubled = term.is_mark() && out.last().is_some_and(|t| t.kind == term.kind);
        let says_nothing = term.kind == TermKind::Break && term.text.is_empty();
        if !(doubled || says_nothing) {
            out.push(term);
        }
        at += taken.max(1);
    }
    out
}

/// Whether the sentence tells of the past, for dates without a year.
fn in_the_past(tokens: &[Token]) -> bool {
    let future = tokens.iter().any(|t| {
        is_in(
            list!("will shall plan planned scheduled due deadline next upcoming"),
            &t.lower,
        )
    });
    let past = tokens.iter().any(|t| {
        is_in(list!("was were had did since ago"), &t.lower)
            || verb(&t.lower).is_some_and(|(_, form)| form == Form::Past)
    });
    past && !future
}

fn blank(kind: TermKind, text: String, lower: String) -> Term {
    Term {
        text,
        lower,
        shown: String::new(),
        kind,
        start: 0,
        end: 0,
        capital: false,
        verb: None,
        days: None,
        first: false,
    }
}

fn one(tokens: &[Token], at: usize, today: Option<Date>, past: bool, yearly: bool, first: bool) -> (Term, usize) {
    let Some(token) = tokens.get(at) else {
        return (blank(TermKind::Break, String::new(), String::new()), 1);
    };
    match token.kind {
        TokenKind::Punct => return (mark(token), 1),
        TokenKind::Path | TokenKind::Url | TokenKind::Flag | TokenKind::Quoted => {
            return (
                blank(TermKind::Code, format!("«{}»", token.text), token.lower.clone()),
                1,
            );
        }
        TokenKind::Word | TokenKind::Number => {}
    }
    if let Some((technology, taken)) = technology_at(tokens, at, first) {
        let mut term = blank(TermKind::Technology, technology.to_owned(), token.lower.clone());
        term.verb = None;
        return (term, taken);
    }
    let before = at
        .checked_sub(1)
        .and_then(|i| tokens.get(i))
        .map_or("", |t| t.lower.as_str());
    // "to", "by", "until" point ahead also in a sentence about the past: "we moved the meeting to Friday".
    let direction = if past && !is_in(list!("to by until till for before"), before) {
        Direction::Backward
    } else {
        Direction::Forward
    };
    if let Some(found) = today.and_then(|today| when(tokens, at, today, direction)) {
        let When { key, taken, days } = found;
        let key = match days {
            Some((day, last)) if yearly && day == last => format!("md:{:02}-{:02}", day.month(), day.day()),
            _ => key,
        };
        let mut term = blank(TermKind::Date, key, token.lower.clone());
        term.days = days;
        return (term, taken);
    }
    if let Some(found) = quantity(tokens, at) {
        return (blank(TermKind::Quantity, found.key, token.lower.clone()), found.taken);
    }
    (word(tokens, at, token, first), 1)
}

fn mark(token: &Token) -> Term {
    let (kind, text) = match token.text.as_str() {
        "," | "、" => (TermKind::Comma, ","),
        "." | "!" | "…" | ";" | "。" | "！" => (TermKind::Stop, "."),
        "?" | "？" => (TermKind::Ask, "?"),
        ":" | "—" | "(" | "[" | "{" => (TermKind::Break, ":"),
        "/" => (TermKind::Break, "/"),
        // Closing brackets and stray quotation marks.
        "=" | "+" | "|" | ">" => (TermKind::Break, token.text.as_str()),
        _ => (TermKind::Break, ""),
    };
    blank(kind, text.to_owned(), text.to_owned())
}

fn technology_at(tokens: &[Token], at: usize, first: bool) -> Option<(&'static str, usize)> {
    for count in (1..=3_usize).rev() {
        let Some(part) = tokens.get(at..at + count) else {
            continue;
        };
        if count > 1 && part.iter().any(|t| t.kind == TokenKind::Punct || t.lower.len() > 20) {
            continue;
        }
        let name = if let [only] = part {
            only.lower.clone()
        } else {
            part.iter().map(|t| t.lower.as_str()).collect::<Vec<_>>().join(" ")
        };
        if let Some(found) = technology(&name) {
            let token = tokens.get(at)?;
            let capital = token.text.starts_with(char::is_uppercase);
            if count == 1
                && is_plain_word(&name)
                && !(capital && (!first || !verb_like(&name)))
                && !chosen_before(tokens, at)
            {
                return None;
            }
            return Some((found.name, count));
        }
    }
    None
}

/// At the head of a sentence "Go" and "Rest" may be imperatives.
fn verb_like(name: &str) -> bool {
    is_in(
        list!(
            "go rest express spring react stripe bootstrap slack travis rails oracle remix poetry temporal linear cypress elastic"
        ),
        name,
    )
}

fn chosen_before(tokens: &[Token], at: usize) -> bool {
    let before = at
        .checked_sub(1)
        .and_then(|i| tokens.get(i))
        .map_or("", |t| t.lower.as_str());
    is_in(list!("use using uses chose choose prefer adopt adopted"), before)
}

fn word(tokens: &[Token], at: usize, token: &Token, first: bool) -> Term {
    let lower = token.lower.clone();
    let text = token.text.as_str();
    if lower == "'s" {
        return blank(TermKind::Word, "'s".to_owned(), lower);
    }
    let is_environment = text.contains('_') && text.len() > 2 && !text.bytes().any(|b| b.is_ascii_lowercase());
    if is_environment {
        return blank(TermKind::Code, format!("«{text}»"), lower);
    }
    let capital = text.starts_with(char::is_uppercase);
    let uppers = text.chars().filter(|c| c.is_uppercase()).count();
    let mixed = uppers > 1 || (!capital && uppers == 1);
    let foreign = !text.is_ascii();
    let code = text.contains(['_', '.', '(', '<', '#', '@', '\\', '$']);
    let known = is_in(words::PRONOUNS, &lower) || is_in(words::ADVERBS, &lower) || is_in(words::MODALS, &lower);
    let country = !first && is_in(list!("US IT WHO"), text);
    let upper_shout = !country
        && uppers == text.chars().count()
        && uppers > 1
        && (verb(&lower).is_some() || known || !words::is_content(&lower));
    if lower != "i"
        && !upper_shout
        && (mixed
            || foreign
            || code
            || (capital && !first && !known && words::is_content(&lower) && !starts_after_colon(tokens, at)))
    {
        // "JWTs" are several of "JWT".
        let base = text
            .strip_suffix('s')
            .filter(|b| b.len() > 1 && b.chars().all(char::is_uppercase));
        let key = base.map_or_else(|| spelling(&lower), str::to_lowercase);
        let mut term = blank(TermKind::Name, key, lower);
        if foreign && !mixed && !capital {
            term.kind = TermKind::Word;
        }
        return term;
    }
    let found = verb(&lower);
    let mut key = spelling(&lower);
    let next = tokens.get(at + 1).map_or("", |t| t.lower.as_str());
    let next_single = verb(next).is_some_and(|(_, form)| form != Form::Base) || is_in(list!("is was has does"), next);
    // At the head of a sentence "James owns it" has a name, "Deploys run" a plural: the verb tells.
    if !(first && capital && next_single) {
        key = singular(&key);
    }
    let mut term = blank(TermKind::Word, key, lower);
    term.verb = found;
    term
}

fn starts_after_colon(tokens: &[Token], at: usize) -> bool {
    at.checked_sub(1).and_then(|i| tokens.get(i)).is_some_and(|t| t.is(":"))
}
