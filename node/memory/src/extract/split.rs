//! A message to clauses: sets aside what is nobody's statement, then bullets, sentences, clauses.

use crate::read::canonical::lead_in;
use crate::read::clause::parse;
use crate::read::list::{WordList, list};
use crate::read::term::{Term, TermKind, terms};
use crate::read::token::{Token, tokens};
use crate::read::words::is_in;
use jiff::civil::Date;

/// How a clause hangs on another one of its sentence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Joint {
    /// The other clause is the reason of this one.
    HasReason(usize),
    /// No more than standing beside it.
    Beside,
}

/// One clause.
#[derive(Clone, Debug)]
pub(crate) struct Piece {
    /// Bytes of the message, without lead-in and final mark.
    pub(crate) span: (usize, usize),
    /// Its terms, with places in the message.
    pub(crate) terms: Vec<Term>,
    pub(crate) asked: bool,
    pub(crate) joint: Joint,
    /// Number of its sentence in the message.
    pub(crate) sentence: usize,
    /// It is a list item.
    pub(crate) bullet: bool,
    /// "TODO:" or the like stood before it.
    pub(crate) todo: bool,
    /// A noun phrase given as a reason ("due to X"): no clause.
    pub(crate) phrase: bool,
}

/// A sentence of more terms is no sentence of a person; it makes no memory.
const SENTENCE_MAX: usize = 300;

const ABBREVIATIONS: WordList =
    WordList::new("etc vs approx mr mrs ms dr prof inc ltd corp co st no fig eq resp incl excl dept est min max jr sr");

/// The clauses of `text`.
pub(crate) fn pieces(text: &str, today: Option<Date>) -> Vec<Piece> {
    let mut found = Vec::new();
    let mut sentence = 0;
    for unit in units(text) {
        let part = text.get(unit.start..unit.end).unwrap_or_default();
        let all = tokens(part);
        let mut from = 0;
        for at in 0..all.len() {
            if let Some(asked) = ends_sentence(&all, at) {
                push_sentence(&mut found, part, &unit, all.get(from..at), asked, sentence, today);
                sentence += 1;
                from = at + 1;
            }
        }
        push_sentence(&mut found, part, &unit, all.get(from..), false, sentence, today);
        sentence += 1;
    }
    found
}

struct Unit {
    start: usize,
    end: usize,
    bullet: bool,
}

/// Paragraphs and list items; code, quotations, tables, logs, traces and headings are left out.
fn units(text: &str) -> Vec<Unit> {
    let mut found: Vec<Unit> = Vec::new();
    let mut fence: Option<&str> = None;
    let mut open = false;
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let (start, end) = (at, at + line.len());
        at = end;
        let bare = line.trim();
        let mark = if bare.starts_with("```") {
            Some("```")
        } else if bare.starts_with("~~~") {
            Some("~~~")
        } else {
            None
        };
        if let Some(mark) = mark {
            fence = match fence {
                Some(open) if open == mark => None,
                Some(open) => Some(open),
                None if bare.len() > 3 && bare.get(3..).is_some_and(|rest| rest.contains(mark)) => None,
                None => Some(mark),
            };
            open = false;
            continue;
        }
        if fence.is_some() || bare.is_empty() || is_set_aside(bare) {
            open = false;
            continue;
        }
        let indent = line.len() - line.trim_start().len();
        let body_end = start + line.trim_end().len();
        if let Some(width) = bullet_width(bare) {
            found.push(Unit {
                start: start + indent + width,
                end: body_end,
                bullet: true,
            });
            open = true;
            continue;
        }
        let goes_on = open
            && found
                .last()
                .is_some_and(|last| wraps(text.get(last.start..last.end).unwrap_or_default(), bare));
        if let Some(last) = found.last_mut().filter(|_| goes_on) {
            last.end = body_end;
        } else {
            found.push(Unit {
                start: start + indent,
                end: body_end,
                bullet: false,
            });
        }
        open = true;
    }
    found
}

/// Whether `next` goes on with the sentence of the lines before it.
fn wraps(before: &str, next: &str) -> bool {
    let last = before.rsplit('\n').next().unwrap_or(before);
    let finished = last.ends_with(['.', '!', '?', ':', ';']);
    !finished && (last.len() >= 60 || next.starts_with(char::is_lowercase))
}

fn is_set_aside(line: &str) -> bool {
    const LEVELS: WordList = WordList::new(
        "ERROR WARN WARNING INFO DEBUG TRACE FATAL [ERROR] [WARN] [INFO] [DEBUG] ERROR: WARN: INFO: DEBUG:",
    );
    let first = line.split_whitespace().next().unwrap_or_default();
    let stamp = first.trim_start_matches('[');
    let stamped = stamp.len() >= 10
        && stamp.bytes().take(4).all(|b| b.is_ascii_digit())
        && stamp.as_bytes().get(4) == Some(&b'-')
        && (stamp.contains('T')
            || line
                .split_whitespace()
                .nth(1)
                .is_some_and(|t| t.contains(':') && t.starts_with(|c: char| c.is_ascii_digit())));
    let trace = (first == "at" && line.contains('('))
        || [
            "Traceback",
            "File \"",
            "Caused by:",
            "thread '",
            "Exception in",
            "goroutine ",
        ]
        .iter()
        .any(|p| line.starts_with(p));
    let address = !line.contains(char::is_whitespace) && line.contains("://");
    line.starts_with('>')
        || line.starts_with('|')
        || line.starts_with("# ")
        || line.starts_with("##")
        || line.starts_with("$ ")
        || is_in(LEVELS, first)
        || stamped
        || trace
        || address
}

/// Bytes of a list marker with its blank.
fn bullet_width(line: &str) -> Option<usize> {
    let marker: usize = if line.starts_with(['-', '*', '+']) {
        1
    } else if line.starts_with('•') {
        '•'.len_utf8()
    } else {
        let digits = line.bytes().take_while(u8::is_ascii_digit).count();
        if !(1..=3).contains(&digits) || !matches!(line.as_bytes().get(digits), Some(b'.' | b')')) {
            return None;
        }
        digits + 1
    };
    let rest = line.get(marker..)?;
    let blank = rest.len() - rest.trim_start().len();
    if blank == 0 {
        return None;
    }
    // Task boxes.
    let boxed = ["[ ] ", "[x] ", "[X] "]
        .iter()
        .find(|b| rest.trim_start().starts_with(**b))
        .map_or(0, |b| b.len());
    Some(marker + blank + boxed)
}

/// Whether token `at` ends a sentence, and whether that is asked.
fn ends_sentence(all: &[Token], at: usize) -> Option<bool> {
    let token = all.get(at)?;
    if token.is("?") || token.is("？") {
        return Some(true);
    }
    if token.is("!") || token.is(";") || token.is("…") || token.is("。") || token.is("！") {
        return Some(false);
    }
    if !token.is(".") {
        return None;
    }
    let before = at
        .checked_sub(1)
        .and_then(|i| all.get(i))
        .map_or("", |t| t.lower.as_str());
    if is_in(ABBREVIATIONS, before) && all.get(at + 1).is_some() {
        // "min." and "no." may also end a sentence: a capital after it tells.
        let next = all.get(at + 1).is_some_and(|t| t.text.starts_with(char::is_uppercase));
        return (next && is_in(list!("etc no min max"), before)).then_some(false);
    }
    Some(false)
}

fn push_sentence(
    found: &mut Vec<Piece>,
    part: &str,
    unit: &Unit,
    all: Option<&[Token]>,
    asked: bool,
    sentence: usize,
    today: Option<Date>,
) {
    let Some(all) = all.filter(|all| !all.is_empty() && all.len() <= SENTENCE_MAX * 2) else {
        return;
    };
    let mut body = terms(part, all, today);
    while body
        .last()
        .is_some_and(|t| matches!(t.kind, TermKind::Comma | TermKind::Break))
    {
        body.pop();
    }
    let todo = body.first().is_some_and(|t| is_in(list!("todo to-do fixme"), &t.lower)) && body.len() > 2;
    let skip = if todo {
        1 + body
            .get(1..)
            .unwrap_or_default()
            .iter()
            .take_while(|t| t.is_mark())
            .count()
    } else {
        lead_in(&body)
    };
    let body = body.get(skip..).unwrap_or_default();
    if body.is_empty() || body.len() > SENTENCE_MAX {
        return;
    }
    let whole = asked
        || todo
        || body.iter().any(|t| t.is_one_of(list!("if unless")))
        || body
            .first()
            .is_some_and(|t| t.is_one_of(list!("what which who how why when where")));
    let cuts = if whole {
        vec![Cut {
            from: 0,
            to: body.len(),
            joint: Joint::Beside,
            phrase: false,
        }]
    } else {
        cut(body)
    };
    let base = found.len();
    for Cut {
        from,
        to,
        joint,
        phrase,
    } in cuts
    {
        let inner = body.get(from..to).unwrap_or_default();
        let (Some(first), Some(last)) = (inner.first(), inner.last()) else {
            continue;
        };
        let mut span = (unit.start + first.start, unit.start + last.end);
        if asked {
            // The question mark is part of what was said.
            span.1 += part
                .get(last.end..)
                .map_or(0, |rest| rest.find('?').filter(|at| *at < 4).map_or(0, |at| at + 1));
        }
        let mut terms: Vec<Term> = inner.to_vec();
        if let Some(first) = terms.first_mut() {
            first.first = true;
        }
        for term in &mut terms {
            term.start += unit.start;
            term.end += unit.start;
        }
        let joint = match joint {
            Joint::HasReason(other) => Joint::HasReason(base + other),
            Joint::Beside => Joint::Beside,
        };
        found.push(Piece {
            span,
            terms,
            asked,
            joint,
            sentence,
            bullet: unit.bullet,
            todo,
            phrase,
        });
    }
}

struct Cut {
    from: usize,
    to: usize,
    joint: Joint,
    phrase: bool,
}

fn is_clause(terms: &[Term]) -> bool {
    let near = terms.get(..terms.len().min(24)).unwrap_or_default();
    parse(near).is_some_and(|c| !c.imperative || c.lets)
}

fn any_clause(terms: &[Term]) -> bool {
    parse(terms.get(..terms.len().min(24)).unwrap_or_default()).is_some()
}

/// Cuts a sentence at dashes, and at "and", "but", "so", "because", "since" before a new subject and verb.
fn cut(body: &[Term]) -> Vec<Cut> {
    let mut cuts: Vec<Cut> = Vec::new();
    // "Because X, we chose Y."
    let mut from = 0;
    if body
        .first()
        .is_some_and(|t| t.is_one_of(list!("because since as given")))
        && let Some(comma) = body.iter().position(|t| t.kind == TermKind::Comma)
        && is_clause(body.get(comma + 1..).unwrap_or_default())
        && is_clause(body.get(1..comma).unwrap_or_default())
    {
        cuts.push(Cut {
            from: 1,
            to: comma,
            joint: Joint::Beside,
            phrase: false,
        });
        cuts.push(Cut {
            from: comma + 1,
            to: body.len(),
            joint: Joint::HasReason(0),
            phrase: false,
        });
        return cuts;
    }
    let mut joint = Joint::Beside;
    let mut reason_of: Option<usize> = None;
    let close =
        |cuts: &mut Vec<Cut>, from: usize, mut to: usize, joint: Joint, reason_of: Option<usize>, phrase: bool| {
            while to > from
                && body
                    .get(to - 1)
                    .is_some_and(|t| t.kind == TermKind::Comma || t.kind == TermKind::Break)
            {
                to -= 1;
            }
            let index = cuts.len();
            if let Some(cut) = reason_of.and_then(|i| cuts.get_mut(i)) {
                cut.joint = Joint::HasReason(index);
            }
            cuts.push(Cut {
                from,
                to,
                joint,
                phrase,
            });
        };
    let mut at = 1;
    while at < body.len() {
        let Some(term) = body.get(at) else { break };
        let conjunction =
            term.kind == TermKind::Word && term.is_one_of(list!("and but so because since therefore while whereas"));
        let dash = term.kind == TermKind::Break && term.text == ":" && term.shown.starts_with(['-', '—', '–']);
        let due = term.is_one_of(list!("due"))
            && body.get(at + 1).is_some_and(|t| t.is_one_of(list!("to")))
            && !body.get(at - 1).is_some_and(|t| t.is_one_of(list!("is are was be")));
        let of = term.is_one_of(list!("because")) && body.get(at + 1).is_some_and(|t| t.is_one_of(list!("of")));
        if !(conjunction || dash || due) || at <= from {
            at += 1;
            continue;
        }
        let left = body.get(from..at).unwrap_or_default();
        if due || of {
            if any_clause(left) {
                close(&mut cuts, from, at, joint, reason_of.take(), false);
                reason_of = Some(cuts.len() - 1);
                (from, joint) = (at + 2, Joint::Beside);
                let to = body.len();
                close(&mut cuts, from, to, joint, reason_of.take(), true);
                return cuts;
            }
            at += 1;
            continue;
        }
        let mut next = at + 1;
        while body
            .get(next)
            .is_some_and(|t| t.kind == TermKind::Comma || t.is_one_of(list!("then therefore also")))
        {
            next += 1;
        }
        let right = body.get(next..).unwrap_or_default();
        let that = right.first().is_some_and(|t| t.is_one_of(list!("that far")));
        if that || !any_clause(left) || !is_clause(right) {
            at += 1;
            continue;
        }
        close(&mut cuts, from, at, joint, reason_of.take(), false);
        let previous = cuts.len() - 1;
        joint = Joint::Beside;
        if term.is_one_of(list!("so therefore")) {
            joint = Joint::HasReason(previous);
        } else if term.is_one_of(list!("because since")) {
            reason_of = Some(previous);
        }
        from = next;
        at = next + 1;
    }
    close(&mut cuts, from, body.len(), joint, reason_of, false);
    cuts
}
