//! Slots and values: what a sentence claims of a single-valued attribute, and which old value it ends (section on
//! slots of the memory semantics). Slots are exact: subject, attribute and further purposes must all be the same.

use crate::read::list::{list, WordList};
use super::canonical::Atom;
use super::choice::{self, Choice, text_of};
use super::clause::{Clause, phrases};
use super::dates::{Direction, day_of, start_of};
use super::technologies::{category_of_word, technology};
use super::term::{Term, TermKind, terms as read_terms};
use super::token::tokens;
use super::words::{Form, is_in, opposite_pair};
use crate::statement::{Claim, Fingerprint, StatedEnd, Statement};
use crate::time::Millis;

/// A value of a slot, in keys and in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SlotValue {
    /// Subject and attribute, for comparison.
    pub(crate) slot: String,
    /// For people, and for labels.
    pub(crate) slot_text: String,
    pub(crate) value: String,
    pub(crate) value_text: String,
    pub(crate) negated: bool,
    pub(crate) change: bool,
}

/// Claims and ends of one sentence.
#[derive(Clone, Debug, Default)]
pub(crate) struct Slots {
    pub(crate) claims: Vec<SlotValue>,
    pub(crate) ends: Vec<SlotValue>,
    /// When the ends happened.
    pub(crate) at: Option<Millis>,
}

impl Slots {
    pub(crate) fn claims(&self) -> impl Iterator<Item = Claim> + '_ {
        self.claims.iter().take(Statement::PARTS_MAX).map(|c| Claim {
            slot: Fingerprint::of("slot", &c.slot),
            value: Fingerprint::of("value", &c.value),
            negated: c.negated,
            change: c.change,
            slot_text: c.slot_text.clone(),
            value_text: c.value_text.clone(),
        })
    }

    pub(crate) fn ends(&self) -> impl Iterator<Item = StatedEnd> + '_ {
        self.ends.iter().take(Statement::PARTS_MAX).map(|e| StatedEnd {
            slot: Fingerprint::of("slot", &e.slot),
            value: Fingerprint::of("value", &e.value),
            at: self.at,
            value_text: e.value_text.clone(),
        })
    }
}

/// Verbs whose quantity is the only one.
const MEASURES: WordList = WordList::new("expire cost equal last take hold fit weigh measure total charge retain");
/// Verbs whose date or clock time is the only one.
const OCCURS: WordList = WordList::new("open close start begin end launch ship release happen finish renew expire go");
/// Verbs that set a value.
const SETS: WordList = WordList::new("raise increase reduce lower decrease change set update bump cut move postpone delay push reschedule \
     extend shift upgrade downgrade double forward");
const ROLES: &[(&str, &str)] = &[
    ("own", "owner"), ("lead", "lead"), ("head", "lead"), ("manage", "manager"), ("maintain", "maintainer"),
    ("oversee", "manager"), ("supervise", "manager"),
];
const ROLE_NOUNS: WordList = WordList::new("owner lead leader manager maintainer supplier vendor ceo cto head supervisor");
/// Attributes whose value may be any short phrase.
const ATTRIBUTES: WordList = WordList::new("owner lead manager maintainer supplier vendor name region timezone license currency codename \
     nickname capital host status severity");

/// Who does it, as a key: the author for I, the project for we.
pub(crate) fn subject_key(terms: &[Term], clause: &Clause, author: &str) -> String {
    let subject = terms.get(clause.subject.0..clause.subject.1).unwrap_or_default();
    if clause.imperative || clause.lets {
        return "we".to_owned();
    }
    holder_key(subject, author)
}

fn holder_key(subject: &[Term], author: &str) -> String {
    let text = text_of(subject);
    match text.as_str() {
        "i" => format!("author {author}"),
        "we" | "us" => "we".to_owned(),
        _ => owned(subject, &text, author),
    }
}

fn owned(subject: &[Term], text: &str, author: &str) -> String {
    if subject.iter().any(|t| t.is_one_of(list!("my mine i me"))) { format!("author {author} {text}") } else { text.to_owned() }
}

struct Reader<'a> {
    terms: &'a [Term],
    clause: &'a Clause,
    author: &'a str,
    out: Slots,
}

/// Claims and ends of one sentence. `atoms` are its canonical atoms.
pub(crate) fn read(terms: &[Term], clause: &Clause, choice: Option<&Choice>, atoms: &[Atom], author: &str, observed_at: Millis) -> Slots {
    let mut reader = Reader { terms, clause, author, out: Slots::default() };
    if !clause.addition {
        reader.choice(choice);
        reader.taste();
        if choice.is_none() {
            reader.values(observed_at);
            reader.roles();
        }
        reader.version();
    }
    reader.polarity(atoms);
    let mut out = reader.out;
    out.at = stated_date(terms, observed_at);
    out
}

/// The first day of the first date in the sentence that is not to come.
fn stated_date(terms: &[Term], observed_at: Millis) -> Option<Millis> {
    let (first, _) = terms.iter().find_map(|t| t.days)?;
    start_of(first).filter(|at| at.0 <= observed_at.0)
}

impl Reader<'_> {
    fn rest(&self) -> &[Term] {
        self.terms.get(self.clause.group.1..).unwrap_or_default()
    }

    /// A phrase before the subject narrows every slot: "In staging, the limit is 5".
    fn narrowed(&self, slot: String) -> String {
        let lead = self.terms.get(self.clause.lead.0..self.clause.lead.1).unwrap_or_default();
        if lead.is_empty() { slot } else { format!("{slot}|{}", text_of(lead)) }
    }

    fn claim(&mut self, slot: String, slot_text: String, value: String, value_text: String, change: bool) {
        let negated = self.clause.negations > 0;
        self.out.claims.push(SlotValue { slot, slot_text, value, value_text, negated, change });
    }

    fn end(&mut self, slot: String, slot_text: String, value: String, value_text: String) {
        self.out.ends.push(SlotValue { slot, slot_text, value, value_text, negated: false, change: false });
    }

    fn choice(&mut self, choice: Option<&Choice>) {
        let Some(choice) = choice else { return };
        let mut subject = subject_key(self.terms, self.clause, self.author);
        if self.clause.passive || self.clause.verb == "replace" && !subject.starts_with("author ") {
            "we".clone_into(&mut subject);
        }
        for chosen in &choice.chosen {
            let Some((category, purpose)) = choice.slot(chosen) else { continue };
            let slot = format!("{subject}|choice|{category}|{purpose}");
            let slot_text =
                if purpose.is_empty() { category.replace('-', " ") } else { format!("{} for {purpose}", category.replace('-', " ")) };
            let (value, shown) = (chosen.named.value().to_owned(), chosen.named.shown.clone());
            if choice.dropped {
                if self.clause.negations > 0 && !self.clause.ended {
                    // "We do not use X" denies; only "no longer" ends.
                    self.out.claims.push(SlotValue { slot, slot_text, value, value_text: shown, negated: true, change: false });
                } else {
                    self.end(slot, slot_text, value, shown);
                }
                continue;
            }
            let strict = chosen.named.technology.is_some() || chosen.named.mentions.is_none();
            if !choice.listed && strict {
                self.claim(slot.clone(), slot_text.clone(), value, shown, choice.change && choice.previous.is_empty());
            }
            let ended = choice.previous.iter().chain(choice.rejected.iter().filter(|_| choice.rejected_ends));
            for old in ended {
                self.end(slot.clone(), slot_text.clone(), old.value().to_owned(), old.shown.clone());
            }
        }
        // What was replaced or dropped without a category still ends "we use X".
        let old = choice.previous.iter().chain(choice.rejected.iter().filter(|_| choice.rejected_ends));
        for old in old.filter(|o| o.technology.is_some() || o.mentions.is_none()) {
            self.end_of_use(&subject, old);
        }
        if choice.dropped && (self.clause.negations == 0 || self.clause.ended) {
            for chosen in &choice.chosen {
                if chosen.purposes.is_empty() && (chosen.named.technology.is_some() || chosen.named.mentions.is_none()) {
                    self.end_of_use(&subject, &chosen.named);
                }
            }
        }
    }

    /// Ends the plain statement "we use X".
    fn end_of_use(&mut self, subject: &str, named: &choice::Named) {
        let first = if subject.starts_with("author ") { "i" } else { "we" };
        let slot = format!("{}holds|{first} use {}", person(subject), named.value());
        self.end(slot, "use".to_owned(), "holds".to_owned(), named.shown.clone());
    }

    /// "My favorite editor is Vim", "PostgreSQL is my go-to database".
    fn taste(&mut self) {
        if self.clause.verb != "be" || self.clause.passive {
            return;
        }
        let subject = self.terms.get(self.clause.subject.0..self.clause.subject.1).unwrap_or_default();
        let rest = self.rest();
        let (role, value) = if is_taste(subject) { (subject, rest) } else if is_taste(rest) { (rest, subject) } else { return };
        let (named, end) = choice::noun(value, 0);
        let Some(named) = named.filter(|_| !value.is_empty()) else { return };
        let purposes: Vec<String> = phrases(role, 0)
            .into_iter()
            .chain(phrases(value, end).into_iter().filter(|_| !std::ptr::eq(value, subject)))
            .filter_map(|(from, _)| role.get(from + 1..).map(text_of))
            .collect();
        let head: Vec<&Term> = role.iter().take_while(|t| !t.is_one_of(list!("for in at on"))).filter(|t| !t.is_one_of(list!("my our the a favorite favourite go-to preferred default usual best"))).collect();
        let noun = head.iter().map(|t| t.text.as_str()).collect::<Vec<_>>().join("-");
        let known = named.technology.and_then(technology).map_or(&[] as &[&str], |t| t.categories);
        let category = match known {
            [only] => (*only).to_owned(),
            _ => head.last().and_then(|t| category_of_word(&t.text)).map_or(noun, str::to_owned),
        };
        let owner = if role.iter().any(|t| t.is_one_of(list!("my"))) { format!("author {}", self.author) } else { "we".to_owned() };
        let purpose = purposes.join(", ");
        self.claim(
            format!("{owner}|choice|{category}|{purpose}"),
            category.replace('-', " "),
            named.value().to_owned(),
            named.shown.clone(),
            false,
        );
    }

    /// Numbers, dates, places, names of a subject.
    fn values(&mut self, observed_at: Millis) {
        let clause = self.clause;
        let (verb, subject) = (clause.verb, self.terms.get(clause.subject.0..clause.subject.1).unwrap_or_default());
        let moved_object = is_in(SETS, verb) && !clause.passive && (clause.imperative || subject.iter().any(|t| t.is_one_of(list!("i we"))));
        let rest = self.rest().to_vec();
        let change = is_in(SETS, verb) && (clause.form != Form::Base || clause.passive || clause.modal.is_some() || clause.outer.is_some());
        let (holder, after): (Vec<Term>, usize) = if moved_object {
            let end = rest.iter().position(|t| t.is_one_of(list!("from to by until")) || t.is_mark()).unwrap_or(rest.len());
            (rest.get(..end).unwrap_or_default().to_vec(), end)
        } else {
            (subject.to_vec(), 0)
        };
        if holder.is_empty() || holder.iter().any(|t| t.is_one_of(list!("it this that they he she you there"))) && !subject.iter().any(|t| t.is_one_of(list!("i we"))) {
            return;
        }
        let key = holder_key(&holder, self.author);
        let text = holder.iter().filter(|t| !t.is_one_of(list!("a an the our my"))).map(|t| t.shown.as_str()).collect::<Vec<_>>().join(" ");
        let tail = rest.get(after..).unwrap_or_default();
        if change && !(clause.passive && is_in(list!("set cut"), verb) && !tail.iter().any(|t| t.is_one_of(list!("from")))) {
            return self.set_value(&key, &text, tail);
        }
        if verb == "replace" {
            let (old, end) = choice::noun(tail, 0);
            let plain: Vec<&str> = tail.get(..end).unwrap_or_default().iter().filter(|t| !t.is_one_of(list!("the a an old previous former existing policy rule limit setting"))).map(|t| t.text.as_str()).collect();
            if old.is_some() && !plain.is_empty() {
                self.end(format!("{key}|is|"), text, plain.join(" "), plain.join(" "));
            }
            return;
        }
        // "60 minutes, not 15": the tail names the old value.
        let cut = tail.iter().position(|t| t.is_one_of(list!("not")) || (t.is_one_of(list!("instead rather")))).unwrap_or(tail.len());
        let (now, old) = tail.split_at(cut);
        let found = self.attribute(verb, now, observed_at);
        let Some((attribute, purpose, value, value_text)) = found else { return };
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
    fn attribute(&self, verb: &str, tail: &[Term], _observed_at: Millis) -> Option<(String, String, String, String)> {
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
        let dated = verb == "be" && !clause.passive && dates.first().is_some_and(|d| {
            tail.iter().take_while(|t| t.text != d.text).all(|t| t.is_one_of(list!("on in at for by a the")))
        });
        if !dates.is_empty() && (planned || due || dated) {
            let (value, shown) = join(&dates);
            return Some(("when".to_owned(), purpose, value, shown));
        }
        if !dates.is_empty() && is_in(OCCURS, verb) && (verb != "go" || tail.first().is_some_and(|t| t.is_one_of(list!("live")))) {
            let (value, shown) = join(&dates);
            return Some((format!("{verb}{} when", object_of(tail)), purpose, value, shown));
        }
        if let [quantity] = quantities.as_slice()
            && is_in(MEASURES, verb)
        {
            let (value, shown) = amount(tail, quantity);
            return Some((format!("{verb}{}", object_of(tail)), purpose, value, shown));
        }
        let first = tail.iter().position(|t| !t.is_one_of(list!("a an the now just at on in only approximately currently")));
        let preposition = tail.first().filter(|t| t.is_one_of(list!("at in on"))).map(|t| t.lower.clone());
        let value_at = first.and_then(|i| tail.get(i).map(|t| (i, t)));
        let place = (verb == "be" && !clause.passive && preposition.is_some()) || (is_in(list!("live reside"), verb) && preposition.is_some())
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
            return place.then(|| ("where".to_owned(), other_phrases(tail.get(end..).unwrap_or_default()), named.key, named.shown));
        }
        if clause.passive && is_in(list!("call name"), verb) {
            let (named, _) = choice::noun(tail, 0);
            return named.map(|n| ("name".to_owned(), String::new(), n.key, n.shown));
        }
        if is_in(list!("listen run"), verb)
            && let Some(port) = tail.iter().position(|t| t.is_one_of(list!("port")))
            && let Some(number) = tail.get(port + 1).filter(|t| t.kind == TermKind::Quantity)
        {
            return Some(("port".to_owned(), String::new(), number.text.clone(), number.shown.clone()));
        }
        if verb == "have"
            && let [label, number] = tail.iter().filter(|t| !t.is_one_of(list!("the a an"))).collect::<Vec<_>>().as_slice()
            && label.is_one_of(list!("id number port version"))
        {
            return Some((label.lower.clone(), String::new(), number.text.clone(), number.shown.clone()));
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
            let named = named.filter(|_| end == tail.len() || tail.get(end).is_some_and(|t| t.is_one_of(list!("for in on"))))?;
            return Some(("is".to_owned(), purpose, named.value().to_owned(), named.shown));
        }
        None
    }

    /// "was raised from 100 to 200", "we moved the meeting to Friday", "the user moved from Delhi to Mumbai".
    fn set_value(&mut self, key: &str, text: &str, tail: &[Term]) {
        let to = tail.iter().rposition(|t| t.is_one_of(list!("to until")));
        let from = tail.iter().position(|t| t.is_one_of(list!("from")));
        let Some(new) = to.and_then(|to| tail.get(to + 1..)) else { return };
        let Some((attribute, value, shown)) = plain_value(new) else { return };
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

    /// One holder per role: "Alice owns X", "the owner of X is Alice", "Alice is the owner of X".
    fn roles(&mut self) {
        let clause = self.clause;
        let subject = self.terms.get(clause.subject.0..clause.subject.1).unwrap_or_default().to_vec();
        let rest = self.rest().to_vec();
        if let Some((_, role)) = ROLES.iter().find(|(verb, _)| *verb == clause.verb) {
            let (object, end) = choice::noun(&rest, 0);
            let agent = clause.passive.then(|| rest.iter().position(|t| t.is_one_of(list!("by")))).flatten();
            let (thing, holder) = match agent {
                Some(by) => (text_of(&subject), rest.get(by + 1..).unwrap_or_default().to_vec()),
                None if clause.passive => return,
                None => (object.map(|o| o.key).unwrap_or_default(), subject),
            };
            if !thing.is_empty() && !holder.is_empty() && (clause.passive || rest.get(end..).is_none_or(|r| !r.iter().any(|t| t.is_one_of(list!("and"))))) {
                let value = holder_key(&holder, self.author);
                let shown = holder.iter().map(|t| t.shown.as_str()).collect::<Vec<_>>().join(" ");
                self.claim(self.narrowed(format!("{thing}|{role}|")), format!("{role} of {thing}"), value, shown, false);
            }
            return;
        }
        if clause.verb != "be" || clause.passive {
            return;
        }
        let of = |side: &[Term]| -> Option<(String, String)> {
            let at = side.iter().position(|t| is_in(ROLE_NOUNS, &t.text))?;
            let role = side.get(at)?.text.replace("leader", "lead");
            let role = if role == "head" { "lead".to_owned() } else { role };
            let thing = if side.get(at + 1).is_some_and(|t| t.is_one_of(list!("of for"))) {
                text_of(side.get(at + 2..)?)
            } else {
                text_of(side.get(..at)?.split(|t| t.lower == "'s").next()?)
            };
            let ours = side.iter().any(|t| t.is_one_of(list!("our")));
            // "Carol is our CTO": of the project.
            let thing = if thing.is_empty() && ours { "we".to_owned() } else { thing };
            (!thing.is_empty()).then_some((thing, role))
        };
        let definite = rest.first().is_some_and(|t| t.is_one_of(list!("the our")) || matches!(t.kind, TermKind::Name)) || rest.iter().any(|t| t.lower == "'s");
        let (thing, role, holder) = match (of(&subject), of(&rest)) {
            (Some((thing, role)), None) => (thing, role, rest.clone()),
            (None, Some((thing, role))) if definite => (thing, role, subject),
            _ => return,
        };
        let value = holder_key(&holder, self.author);
        let shown = holder.iter().map(|t| t.shown.as_str()).collect::<Vec<_>>().join(" ");
        self.out.claims.retain(|c| !c.slot.contains("|is|"));
        self.claim(self.narrowed(format!("{thing}|{role}|")), format!("{role} of {thing}"), value, shown, false);
    }

    /// "runs Python 3.1": one version at a time.
    fn version(&mut self) {
        let rest = self.rest().to_vec();
        let Some((at, name)) = rest.iter().enumerate().find(|(_, t)| t.kind == TermKind::Technology || t.kind == TermKind::Name) else { return };
        let number = rest.get(at + 1).filter(|t| t.kind == TermKind::Quantity && t.text.starts_with("n:"));
        let Some(number) = number.filter(|_| is_in(list!("run use be upgrade deploy"), self.clause.verb) && at <= 2) else { return };
        let subject = subject_key(self.terms, self.clause, self.author);
        let purpose = other_phrases(rest.get(at + 2..).unwrap_or_default());
        let change = self.clause.verb == "upgrade";
        let (slot, text) = (format!("{subject}|version {}|{purpose}", name.text), format!("{} version", name.shown));
        let (value, shown) = (number.text.clone(), number.shown.clone());
        let slot = self.narrowed(slot);
        self.claim(slot, text, value, shown, change);
    }

    /// The whole statement without its negation, and with each strong opposite left open.
    fn polarity(&mut self, atoms: &[Atom]) {
        let denied = |a: &Atom| is_in(list!("not never"), &a.text);
        let negations = atoms.iter().filter(|a| denied(a) || is_in(list!("no none neither nor"), &a.text)).count();
        let header = person_of(self.terms, self.author);
        let ended = self.clause.ended;
        let mut bare: Vec<&str> = Vec::with_capacity(atoms.len());
        let mut at = 0;
        while let Some(atom) = atoms.get(at) {
            let next = atoms.get(at + 1).map_or("", |a| a.text.as_str());
            if denied(atom) {
                at += 1;
            } else if atom.text == "no" && is_in(list!("longer more"), next) {
                at += 2;
            } else if atom.text == "anymore" || (atom.text == "no" && !self.clause.imperative) {
                at += 1;
            } else {
                bare.push(&atom.text);
                at += 1;
            }
        }
        let stopped = self.clause.outer.filter(|o| is_in(list!("stop quit"), o)).is_some();
        if stopped {
            // "we stopped using X" ends "we use X".
            let mut words: Vec<&str> = bare.iter().copied().filter(|w| !is_in(list!("stop stopped quit have"), w)).collect();
            if let Some(place) = words.iter().position(|w| super::words::verb(w).is_some_and(|(b, f)| b == self.clause.verb && f == Form::Ing))
                && let Some(word) = words.get_mut(place)
            {
                *word = self.clause.verb;
            }
            let form = words.join(" ");
            return self.end(format!("{header}holds|{form}"), form.clone(), "holds".to_owned(), form);
        }
        if negations > 1 || bare.len() < 2 || bare.len() > 60 {
            return;
        }
        let form = bare.join(" ");
        let negated = negations == 1;
        if ended {
            return self.end(format!("{header}holds|{form}"), form.clone(), "holds".to_owned(), form);
        }
        let push = |out: &mut Slots, slot: String, slot_text: String, value: &str, negated: bool| {
            let value_text = if negated { format!("not: {value}") } else { value.to_owned() };
            out.claims.push(SlotValue { slot, slot_text, value: value.to_owned(), value_text, negated, change: false });
        };
        push(&mut self.out, format!("{header}holds|{form}"), form.clone(), "holds", negated);
        for (place, word) in bare.iter().enumerate() {
            let Some((pair, true)) = opposite_pair(word) else { continue };
            if pair == "on" && !is_state(&bare, place) {
                continue;
            }
            let mut open = bare.clone();
            let slot_name = format!("#{pair}");
            if let Some(hole) = open.get_mut(place) {
                *hole = &slot_name;
            }
            let slot = format!("{header}state|{}", open.join(" "));
            push(&mut self.out, slot, form.replacen(word, "...", 1), word, negated && !is_in(list!("always never"), word));
        }
        // "may" against "must not".
        if let Some(modal) = self.clause.modal.as_deref().filter(|m| is_in(list!("may can must"), m)) {
            let allowed = !negated && is_in(list!("may can"), modal);
            let forbidden = negated;
            if allowed || forbidden {
                let rest: Vec<&str> = bare.iter().copied().filter(|w| *w != modal).collect();
                let value = if allowed { "allowed" } else { "forbidden" };
                push(&mut self.out, format!("{header}permit|{}", rest.join(" ")), rest.join(" "), value, false);
            }
        }
    }
}

fn is_state(words: &[&str], place: usize) -> bool {
    let before = place.checked_sub(1).and_then(|i| words.get(i)).copied().unwrap_or_default();
    let after = words.get(place + 1).copied();
    is_in(list!("is was be turn turned switch switched stay remain default to"), before)
        && after.is_none_or(|w| is_in(super::words::PREPOSITIONS, w) || w == "," || is_in(list!("by only"), w))
}

/// The header of a form that depends on who says it.
pub(crate) fn person_of(terms: &[Term], author: &str) -> String {
    if super::canonical::is_first_person(terms) { format!("by {author}|") } else { String::new() }
}

fn person(subject: &str) -> String {
    subject.strip_prefix("author ").map_or(String::new(), |author| format!("by {author}|"))
}

/// "my favorite editor", "our go-to database".
pub(crate) fn is_taste(terms: &[Term]) -> bool {
    terms.iter().any(|t| t.is_one_of(list!("favorite favourite go-to preferred"))) && terms.iter().any(|t| t.is_one_of(list!("my our the")))
}

fn slot_words(text: &str, attribute: &str, purpose: &str) -> String {
    let attribute = match attribute {
        "is" | "when" | "at" => String::new(),
        "where" => " place".to_owned(),
        "expire" => " expiry".to_owned(),
        other => format!(" {}", other.trim_end_matches(" when")),
    };
    let purpose = if purpose.is_empty() { String::new() } else { format!(" ({purpose})") };
    format!("{text}{attribute}{purpose}")
}

/// The object between the verb and its value: "release A on Monday" is not "release B on Tuesday".
fn object_of(tail: &[Term]) -> String {
    let end = tail
        .iter()
        .position(|t| t.is_mark() || t.is_one_of(super::words::PREPOSITIONS) || matches!(t.kind, TermKind::Date | TermKind::Quantity))
        .unwrap_or(tail.len());
    let text = text_of(tail.get(..end).unwrap_or_default());
    if text.is_empty() { text } else { format!(" {text}") }
}

/// Phrases of the tail that hold no value of their own: further purposes of the slot.
fn other_phrases(tail: &[Term]) -> String {
    let mut found: Vec<String> = phrases(tail, 0)
        .into_iter()
        .filter_map(|(start, end)| {
            let inner = tail.get(start + 1..end)?;
            let head = tail.get(start)?;
            let valued = inner.iter().any(|t| matches!(t.kind, TermKind::Date | TermKind::Quantity | TermKind::Code));
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
        let stops = (term.is_mark() && !per)
            || (!per && term.is_one_of(super::words::PREPOSITIONS))
            || term.is_one_of(list!("and or but so because"))
            || term.kind == TermKind::Date;
        if stops {
            break;
        }
        rate |= per;
        end += 1;
    }
    let taken = tail.get(at..end).unwrap_or_default();
    let keys: Vec<&str> = taken.iter().filter(|t| !t.is_one_of(list!("a an the each every")) || !rate).map(|t| t.text.as_str()).collect();
    let shown: Vec<&str> = taken.iter().map(|t| t.shown.as_str()).collect();
    (keys.join(" "), shown.join(" "))
}

/// The levels that the dates in `terms` name, coarse to fine: level, key, words.
fn when_levels(terms: &[Term]) -> Vec<(&'static str, String, String)> {
    let dates: Vec<&Term> = terms.iter().filter(|t| t.kind == TermKind::Date).collect();
    let (days, clocks): (Vec<&Term>, Vec<&Term>) = dates.iter().partition(|t| !t.text.starts_with("t:"));
    let join = |terms: &[&Term]| {
        let keys: Vec<&str> = terms.iter().map(|t| t.text.as_str()).collect();
        let shown: Vec<&str> = terms.iter().map(|t| t.shown.as_str()).collect();
        (keys.join(" "), shown.join(" "))
    };
    let mut levels = Vec::new();
    match days.as_slice() {
        [] => {}
        [day] => {
            let shown = || day.shown.clone();
            match day.days {
                None => levels.push(("weekday", day.text.clone(), shown())),
                Some((first, last)) => {
                    let span = i64::from(last.since((jiff::Unit::Day, first)).map_or(0, |s| s.get_days()));
                    let quarter = (first.month() - 1) / 3 + 1;
                    let whole = span == 0 || first.day() == 1;
                    let fits = |most: i64| whole && span <= most;
                    if fits(366) {
                        levels.push(("year", first.year().to_string(), shown()));
                    }
                    if fits(92) {
                        levels.push(("quarter", format!("{} q{quarter}", first.year()), shown()));
                    }
                    if fits(31) {
                        levels.push(("month", format!("{} m{}", first.year(), first.month()), shown()));
                    }
                    if !whole || span == 0 {
                        levels.push(("day", day.text.clone(), shown()));
                    }
                }
            }
        }
        several => {
            let (value, shown) = join(several);
            levels.push(("span", value, shown));
        }
    }
    if !clocks.is_empty() {
        let (value, shown) = join(&clocks);
        levels.push(("time", value, shown));
    }
    levels
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
    let _ = Direction::Forward;
    let keys: Vec<&str> = terms.iter().map(|t| t.text.as_str()).collect();
    (terms.first()?.kind == TermKind::Quantity).then(|| (keys.join(" "), text.clone()))
}
