//! Values of a subject: numbers, dates, places, names ("X is, costs, expires in VALUE"; "X moved from V to W").

use super::choice::{self, text_of};
use super::clause::phrases;
use super::dates::day_of;
use super::list::{WordList, list};
use super::slots::{Reader, holder_key};
use super::term::{Term, TermKind, terms as read_terms};
use super::token::tokens;
use super::when_levels::when_levels;
use super::words::{Form, is_in};
use crate::time::Millis;

/// Verbs whose quantity is the only one.
const MEASURES: WordList = WordList::new("expire cost equal last take hold fit weigh measure total charge retain");
/// Verbs whose date or clock time is the only one.
const OCCURS: WordList = WordList::new("open close start begin end launch ship release happen finish renew expire go");
/// Verbs that set a value.
const SETS: WordList = WordList::new(
    "raise increase reduce lower decrease change set update bump cut move postpone delay push reschedule \
     extend shift upgrade downgrade double forward",
);
/// Attributes whose value may be any short phrase.
const ATTRIBUTES: WordList = WordList::new(
    "owner lead manager maintainer supplier vendor name region timezone license currency codename \
     nickname capital host status severity",
);

impl Reader<'_> {
    /// Numbers, dates, places, names of a subject.
    pub(super) fn values(&mut self) {
        let clause = self.clause;
        let (verb, subject) = (
            clause.verb,
            self.terms.get(clause.subject.0..clause.subject.1).unwrap_or_default(),
        );
        let moved_object = is_in(SETS, verb)
            && !clause.passive
            && (clause.imperative || subject.iter().any(|t| t.is_one_of(list!("i we"))));
        let rest = self.rest().to_vec();
        let change = is_in(SETS, verb)
            && (clause.form != Form::Base || clause.passive || clause.modal.is_some() || clause.outer.is_some());
        let (holder, after): (Vec<Term>, usize) = if moved_object {
            let end = rest
                .iter()
                .position(|t| t.is_one_of(list!("from to by until")) || t.is_mark())
                .unwrap_or(rest.len());
            (rest.get(..end).unwrap_or_default().to_vec(), end)
        } else {
            (subject.to_vec(), 0)
        };
        if holder.is_empty()
            || holder
                .iter()
                .any(|t| t.is_one_of(list!("it this that they he she you there")))
                && !subject.iter().any(|t| t.is_one_of(list!("i we")))
        {
            return;
        }
        let key = holder_key(&holder, self.author);
        let text = holder
            .iter()
            .filter(|t| !t.is_one_of(list!("a an the our my your")))
            .map(|t| t.shown.as_str())
            .collect::<Vec<_>>()
            .join(" ")
            .replace(" 's", "'s");
        let tail = rest.get(after..).unwrap_or_default();
        if change
            && !(clause.passive && is_in(list!("set cut"), verb) && !tail.iter().any(|t| t.is_one_of(list!("from"))))
        {
            return self.set_value(&key, &text, tail);
        }
        if verb == "replace" {
            let (old, end) = choice::noun(tail, 0);
            let plain: Vec<&str> = tail
                .get(..end)
                .unwrap_or_default()
                .iter()
                .filter(|t| !t.is_one_of(list!("the a an old previous former existing policy rule limit setting")))
                .map(|t| t.text.as_str())
                .collect();
            if old.is_some() && !plain.is_empty() {
                self.end(format!("{key}|is|"), text, plain.join(" "), plain.join(" "));
            }
            return;
        }
        // "60 minutes, not 15": the tail names the old value.
        let cut = tail
            .iter()
            .position(|t| t.is_one_of(list!("not")) || (t.is_one_of(list!("instead rather"))))
            .unwrap_or(tail.len());
        let (now, old) = tail.split_at(cut);
        let found = self.attribute(verb, now);
        let Some((attribute, purpose, value, value_text)) = found else {
            return;
        };
        let slot = format!("{key}|{attribute}|{purpose}");
        let slot_text = slot_words(&text, &attribute, &purpose);
        let slot = self.narrowed(slot);
        if attribute.ends_with("when") {
            self.claim_when(&slot, &slot_text, now, false);
            let levels = when_levels(old);
            if let Some((level, value, value_text)) = levels.into_iter().next_back() {
                self.end(format!("{slot}|{level}"), slot_text, value, value_text);
            }
            return;
        }
        self.claim(slot.clone(), slot_text.clone(), value, value_text.clone(), false);
        if let Some((value, value_text)) = old_value(old, &value_text) {
            self.end(slot, slot_text, value, value_text);
        }
    }

    /// The attribute, further purpose, value key and value in words.
    fn attribute(&self, verb: &str, tail: &[Term]) -> Option<(String, String, String, String)> {
        let clause = self.clause;
        let dates: Vec<&Term> = tail.iter().filter(|t| t.kind == TermKind::Date).collect();
        let quantities: Vec<&Term> = tail.iter().filter(|t| t.kind == TermKind::Quantity).collect();
        let join = |terms: &[&Term]| {
            let keys: Vec<&str> = terms.iter().map(|t| t.text.as_str()).collect();
            let shown: Vec<&str> = terms.iter().map(|t| t.shown.as_str()).collect();
            (keys.join(" "), shown.join(" "))
        };
        let purpose = other_phrases(tail);
        let planned = clause.passive && is_in(list!("plan schedule expect"), verb);
        let due = verb == "be" && tail.iter().take(2).any(|t| t.is_one_of(list!("due scheduled planned")));
        let dated = verb == "be"
            && !clause.passive
            && dates.first().is_some_and(|d| {
                tail.iter()
                    .take_while(|t| t.text != d.text)
                    .all(|t| t.is_one_of(list!("on in at for by a the")))
            });
        if !dates.is_empty() && (planned || due || dated) {
            let (value, shown) = join(&dates);
            return Some(("when".to_owned(), purpose, value, shown));
        }
        if !dates.is_empty()
            && is_in(OCCURS, verb)
            && (verb != "go" || tail.first().is_some_and(|t| t.is_one_of(list!("live"))))
        {
            let (value, shown) = join(&dates);
            return Some((format!("{verb}{} when", object_of(tail)), purpose, value, shown));
        }
        if let [quantity] = quantities.as_slice()
            && is_in(MEASURES, verb)
        {
            let (value, shown) = amount(tail, quantity);
            return Some((format!("{verb}{}", object_of(tail)), purpose, value, shown));
        }
        let first = tail
            .iter()
            .position(|t| !t.is_one_of(list!("a an the now just at on in only approximately currently")));
        let preposition = tail
            .first()
            .filter(|t| t.is_one_of(list!("at in on")))
            .map(|t| t.lower.clone());
        let value_at = first.and_then(|i| tail.get(i).map(|t| (i, t)));
        let place = (verb == "be" && !clause.passive && preposition.is_some())
            || (is_in(list!("live reside"), verb) && preposition.is_some())
            || (clause.passive && is_in(list!("locate base host house"), verb) && preposition.is_some());
        if let Some((at, term)) = value_at
            && place
        {
            let (named, end) = choice::noun(tail, at);
            let named = named?;
            if term.kind == TermKind::Code {
                return Some(("at".to_owned(), other_phrases(tail.get(end..)?), named.key, named.shown));
            }
            let sure = verb != "be" || matches!(term.kind, TermKind::Name);
            let place = sure && term.kind != TermKind::Quantity && (preposition.as_deref() != Some("on"));
            return place.then(|| {
                (
                    "where".to_owned(),
                    other_phrases(tail.get(end..).unwrap_or_default()),
                    named.key,
                    named.shown,
                )
            });
        }
        if clause.passive && is_in(list!("call name"), verb) {
            let (named, _) = choice::noun(tail, 0);
            return named.map(|n| ("name".to_owned(), String::new(), n.key, n.shown));
        }
        if is_in(list!("listen run"), verb)
            && let Some(port) = tail.iter().position(|t| t.is_one_of(list!("port")))
            && let Some(number) = tail.get(port + 1).filter(|t| t.kind == TermKind::Quantity)
        {
            return Some((
                "port".to_owned(),
                String::new(),
                number.text.clone(),
                number.shown.clone(),
            ));
        }
        if verb == "have"
            && let [label, number] = tail
                .iter()
                .filter(|t| !t.is_one_of(list!("the a an")))
                .collect::<Vec<_>>()
                .as_slice()
            && label.is_one_of(list!("id number port version"))
        {
            return Some((
                label.lower.clone(),
                String::new(),
                number.text.clone(),
                number.shown.clone(),
            ));
        }
        if verb != "be" || clause.passive || clause.progressive {
            return None;
        }
        let (_, term) = value_at?;
        if let ([quantity], TermKind::Quantity) = (quantities.as_slice(), term.kind) {
            let (value, shown) = amount(tail, quantity);
            return Some(("is".to_owned(), purpose, value, shown));
        }
        let subject = self.terms.get(clause.subject.0..clause.subject.1).unwrap_or_default();
        let head = subject.iter().take_while(|t| !t.is_one_of(list!("of for in"))).last();
        let free = head.is_some_and(|t| is_in(ATTRIBUTES, &t.text)) && tail.len() <= 4;
        let article = tail.first().is_some_and(|t| t.is_one_of(list!("a an")));
        if !article && (term.is_value() || free) && term.kind != TermKind::Date {
            let (named, end) = choice::noun(tail, 0);
            let named = named
                .filter(|_| end == tail.len() || tail.get(end).is_some_and(|t| t.is_one_of(list!("for in on"))))?;
            return Some(("is".to_owned(), purpose, named.value().to_owned(), named.shown));
        }
        None
    }

    /// "was raised from 100 to 200", "we moved the meeting to Friday", "the user moved from Delhi to Mumbai".
    fn set_value(&mut self, key: &str, text: &str, tail: &[Term]) {
        let to = tail.iter().rposition(|t| t.is_one_of(list!("to until")));
        let from = tail.iter().position(|t| t.is_one_of(list!("from")));
        let Some(new) = to.and_then(|to| tail.get(to + 1..)) else {
            return;
        };
        let Some((attribute, value, shown)) = plain_value(new) else {
            return;
        };
        let purpose = other_phrases(tail.get(to.unwrap_or(0) + 1..).unwrap_or_default());
        let slot = format!("{key}|{attribute}|{purpose}");
        let slot_text = slot_words(text, attribute, &purpose);
        let before = from.and_then(|from| tail.get(from + 1..to.unwrap_or(tail.len()).max(from + 1)));
        let old = before.and_then(plain_value);
        let slot = self.narrowed(slot);
        if attribute == "when" {
            self.claim_when(&slot, &slot_text, new, old.is_none());
            let levels = before.map(when_levels).unwrap_or_default();
            if let Some((level, value, value_text)) = levels.into_iter().next_back() {
                self.end(format!("{slot}|{level}"), slot_text, value, value_text);
            }
            return;
        }
        self.claim(slot.clone(), slot_text.clone(), value, shown.clone(), old.is_none());
        if let Some((_, mut value, old_shown)) = old {
            if let Some((with_unit, _)) = unit_from(&old_shown, &shown)
                && value.starts_with("n:")
                && !old_shown.contains(' ')
            {
                value = with_unit;
            }
            self.end(slot, slot_text, value, old_shown);
        }
    }

    /// A date fills a slot for each level it names: March does not contradict March 15, but April does.
    fn claim_when(&mut self, slot: &str, slot_text: &str, terms: &[Term], change: bool) {
        let mut levels = when_levels(terms);
        if self.clause.negations > 0 {
            // "Not in March" denies the month, not the year.
            levels = levels.into_iter().next_back().into_iter().collect();
        }
        for (level, value, shown) in levels {
            self.claim(format!("{slot}|{level}"), slot_text.to_owned(), value, shown, change);
        }
    }
}

fn slot_words(text: &str, attribute: &str, purpose: &str) -> String {
    let attribute = match attribute {
        "is" | "when" | "at" => String::new(),
        "where" => " place".to_owned(),
        "expire" => " expiry".to_owned(),
        other => format!(" {}", other.trim_end_matches(" when")),
    };
    let purpose = if purpose.is_empty() {
        String::new()
    } else {
        format!(" ({purpose})")
    };
    format!("{text}{attribute}{purpose}")
}

/// The object between the verb and its value: "release A on Monday" is not "release B on Tuesday".
fn object_of(tail: &[Term]) -> String {
    let end = tail
        .iter()
        .position(|t| {
            t.is_mark()
                || t.is_one_of(super::words::PREPOSITIONS)
                || matches!(t.kind, TermKind::Date | TermKind::Quantity)
        })
        .unwrap_or(tail.len());
    let text = text_of(tail.get(..end).unwrap_or_default());
    if text.is_empty() { text } else { format!(" {text}") }
}

/// Phrases of the tail that hold no value of their own: further purposes of the slot.
pub(super) fn other_phrases(tail: &[Term]) -> String {
    let mut found: Vec<String> = phrases(tail, 0)
        .into_iter()
        .filter_map(|(start, end)| {
            let inner = tail.get(start + 1..end)?;
            let head = tail.get(start)?;
            let valued = inner
                .iter()
                .any(|t| matches!(t.kind, TermKind::Date | TermKind::Quantity | TermKind::Code));
            let own = head.is_one_of(list!("per at")) || (head.is_one_of(list!("in of")) && start == 0);
            (!valued && !own).then(|| text_of(inner))
        })
        .filter(|t| !t.is_empty())
        .collect();
    found.sort();
    found.join(", ")
}

/// A quantity with the noun it counts and its rate: "100 requests per minute".
fn amount(tail: &[Term], quantity: &Term) -> (String, String) {
    let at = tail.iter().position(|t| t.start == quantity.start).unwrap_or(0);
    let mut end = at + 1;
    let mut rate = false;
    while let Some(term) = tail.get(end) {
        let per = term.is_one_of(list!("per")) || term.text == "/";
        let stops = (!per && (term.is_mark() || term.is_one_of(super::words::PREPOSITIONS)))
            || term.is_one_of(list!("and or but so because"))
            || term.kind == TermKind::Date;
        if stops {
            break;
        }
        rate |= per;
        end += 1;
    }
    let taken = tail.get(at..end).unwrap_or_default();
    let keys: Vec<&str> = taken
        .iter()
        .filter(|t| !t.is_one_of(list!("a an the each every")) || !rate)
        .map(|t| t.text.as_str())
        .collect();
    let shown: Vec<&str> = taken.iter().map(|t| t.shown.as_str()).collect();
    (keys.join(" "), shown.join(" "))
}

/// A value after "to" or "from": attribute, key, words.
fn plain_value(terms: &[Term]) -> Option<(&'static str, String, String)> {
    let at = terms.iter().position(|t| !t.is_one_of(list!("a an the")))?;
    let first = terms.get(at)?;
    match first.kind {
        TermKind::Date => {
            let dates: Vec<&Term> = terms.iter().filter(|t| t.kind == TermKind::Date).collect();
            let keys: Vec<&str> = dates.iter().map(|t| t.text.as_str()).collect();
            let shown: Vec<&str> = dates.iter().map(|t| t.shown.as_str()).collect();
            Some(("when", keys.join(" "), shown.join(" ")))
        }
        TermKind::Quantity => {
            let (value, shown) = amount(terms, first);
            Some(("is", value, shown))
        }
        TermKind::Name => {
            let (named, _) = choice::noun(terms, at);
            named.map(|n| ("where", n.key, n.shown))
        }
        TermKind::Technology | TermKind::Code => {
            let (named, _) = choice::noun(terms, at);
            named.map(|n| ("is", n.value().to_owned(), n.shown))
        }
        _ => None,
    }
}

/// The old value after "not", with the unit of the new one if it names none.
fn old_value(old: &[Term], new_shown: &str) -> Option<(String, String)> {
    let at = old.iter().position(|t| t.is_value())?;
    let (_, key, shown) = plain_value(old.get(at..)?)?;
    if key.starts_with("n:")
        && !shown.contains(' ')
        && let Some(found) = unit_from(&shown, new_shown)
    {
        return Some(found);
    }
    Some((key, shown))
}

fn unit_from(number: &str, new_shown: &str) -> Option<(String, String)> {
    let (_, unit) = new_shown.split_once(' ')?;
    let text = format!("{number} {unit}");
    let terms = read_terms(&text, &tokens(&text), day_of(Millis(0)));
    let keys: Vec<&str> = terms.iter().map(|t| t.text.as_str()).collect();
    (terms.first()?.kind == TermKind::Quantity).then(|| (keys.join(" "), text.clone()))
}
