//! Choices: which option a sentence takes, drops or replaces, and for what.

pub(crate) use super::named::{Named, noun, text_of};

use super::clause::{Clause, phrases};
use super::technologies::{category_of_word, technology};
use super::term::{Term, TermKind};
use super::words::is_in;
use crate::read::list::{WordList, list};

/// An option taken, with what for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Chosen {
    pub(crate) named: Named,
    /// Noun phrases after for, as, in, on.
    pub(crate) purposes: Vec<(String, String)>,
    /// Terms of the option and its phrases.
    pub(crate) range: (usize, usize),
}

/// What the sentence does with options.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Choice {
    pub(crate) chosen: Vec<Chosen>,
    /// "from y", "replace y with".
    pub(crate) previous: Vec<Named>,
    /// "over y", "instead of y", "not y".
    pub(crate) rejected: Vec<Named>,
    /// "instead of" and "not" end what they name; "over" does not.
    pub(crate) rejected_ends: bool,
    /// Dropped, stopped, no longer: `chosen` is what ended.
    pub(crate) dropped: bool,
    /// A change verb: moved to, switched to.
    pub(crate) change: bool,
    /// A matter of taste: prefer, always use.
    pub(crate) taste: bool,
    /// Several options without purposes of their own: none of them is the only one.
    pub(crate) listed: bool,
}

impl Choice {
    /// Category and further purpose of an option taken: the slot it fills.
    pub(crate) fn slot(&self, chosen: &Chosen) -> Option<(String, String)> {
        let named = &chosen.named;
        let mut category: Option<String> = named.own_category.map(str::to_owned);
        let mut rest: Vec<String> = Vec::new();
        for (preposition, text) in &chosen.purposes {
            let words: Vec<&str> = text.split(' ').filter(|w| !is_in(list!("our the my"), w)).collect();
            let (last, before) = words.split_last()?;
            let role = category_of_word(last);
            match (preposition.as_str(), role) {
                ("as", None) if category.is_none() => category = Some(words.join("-")),
                ("for" | "as", Some(role)) if category.is_none() => {
                    category = Some(role.to_owned());
                    if !before.is_empty() {
                        rest.push(before.join(" "));
                    }
                }
                _ => rest.push(words.join(" ")),
            }
        }
        let categories = named.technology_entry().map_or(&[] as &[&str], |t| t.categories);
        let language = categories == ["programming-language"];
        if category.is_none() {
            category = match categories {
                [only] if !language || self.taste || !rest.is_empty() => Some((*only).to_owned()),
                [] => named.class.map(str::to_owned),
                _ => None,
            };
        }
        if category.is_none() && rest.is_empty() {
            return None;
        }
        rest.sort();
        Some((category.unwrap_or_else(|| "choice".to_owned()), rest.join(", ")))
    }

    /// Category of an option for a tag, by purpose or by what it is.
    pub(crate) fn category(&self, chosen: &Chosen) -> Option<String> {
        let slot = self
            .slot(chosen)
            .map(|(category, _)| category)
            .filter(|c| c != "choice");
        let known = chosen.named.technology.or(chosen.named.mentions).and_then(technology);
        slot.or_else(|| {
            known.and_then(|t| {
                if let [only] = t.categories {
                    Some((*only).to_owned())
                } else {
                    None
                }
            })
        })
    }
}

/// Verb and particle of taking an option.
const TAKE: WordList = WordList::new("recommend suggest use choose pick select adopt prefer employ");
const TAKE_WITH: &[(&str, WordList)] = &[
    ("go", WordList::new("with for")),
    ("stick", WordList::new("with to")),
    ("stay", WordList::new("with on")),
    ("settle", WordList::new("on for")),
    ("decide", WordList::new("on for")),
    ("opt", WordList::new("for")),
    ("standardize", WordList::new("on")),
    ("deploy", WordList::new("on to with")),
    ("host", WordList::new("on with")),
    ("run", WordList::new("on")),
    ("rely", WordList::new("on")),
    ("switch", WordList::new("to from over")),
    ("move", WordList::new("to from over onto")),
    ("migrate", WordList::new("to from over")),
    ("change", WordList::new("to from")),
    ("convert", WordList::new("to from")),
    ("upgrade", WordList::new("from")),
    ("build", WordList::new("on with")),
    ("start", WordList::new("with")),
    ("keep", WordList::new("with")),
    ("agree", WordList::new("on")),
    ("land", WordList::new("on")),
];
const CHANGE: WordList = WordList::new("switch move migrate change convert upgrade replace swap");
const DROP: WordList = WordList::new(
    "drop abandon ditch retire deprecate cancel discard decommission kill reject avoid scrap sunset remove \
     decline",
);

/// Reads the choice in `terms`, one sentence with that clause.
pub(crate) fn read(terms: &[Term], clause: &Clause) -> Option<Choice> {
    let mut choice = read_object(terms, clause)?;
    // "For caching, we use Redis", "Instead of MySQL we use PostgreSQL"
    let lead = terms.get(clause.lead.0..clause.lead.1).unwrap_or_default();
    let timed = lead.iter().any(|t| t.kind == TermKind::Date);
    if let ([first, inner @ ..], [chosen], false) = (lead, choice.chosen.as_mut_slice(), timed) {
        if first.is_one_of(list!("for as in on at with")) {
            chosen.purposes.push((first.lower.clone(), text_of(inner)));
        } else if first.is_one_of(list!("instead")) {
            choice.rejected.extend(noun(inner, 1).0);
            choice.rejected_ends = true;
        }
    }
    Some(choice)
}

fn read_object(terms: &[Term], clause: &Clause) -> Option<Choice> {
    let subject = terms.get(clause.subject.0..clause.subject.1)?;
    let ours = clause.imperative
        || subject
            .iter()
            .any(|t| t.is_one_of(list!("i we us you team company user")));
    let rest_at = clause.group.1;
    let next = terms.get(rest_at);
    let mut choice = Choice {
        change: is_in(CHANGE, clause.verb),
        ..Choice::default()
    };
    choice.taste = is_in(list!("prefer"), clause.verb)
        || terms
            .get(clause.group.0..clause.group.1)?
            .iter()
            .any(|t| t.is_one_of(list!("always usually")));
    let stopped = clause.outer.is_some_and(|o| is_in(list!("stop quit avoid finish"), o));
    if clause.passive {
        return passive(terms, clause, choice);
    }
    if clause.verb == "replace" || clause.verb == "swap" {
        return replace(terms, clause, choice, ours);
    }
    if !ours {
        return None;
    }
    let two_words = |second: &str, third: &str| {
        next.is_some_and(|t| t.lower == second) && terms.get(rest_at + 1).is_some_and(|t| t.lower == third)
    };
    if (clause.verb == "get" && two_words("rid", "of")) || (clause.verb == "move" && two_words("away", "from")) {
        choice.dropped = true;
        return objects(terms, rest_at + 2, choice);
    }
    if (clause.verb == "move" && next.is_some_and(|t| t.is_one_of(list!("off"))))
        || (clause.verb == "rule" && next.is_some_and(|t| t.is_one_of(list!("out"))))
    {
        choice.dropped = true;
        return objects(terms, rest_at + 1, choice);
    }
    if is_in(DROP, clause.verb) {
        choice.dropped = clause.negations == 0;
        return objects(terms, rest_at, choice);
    }
    if is_in(TAKE, clause.verb) {
        choice.dropped = stopped || clause.negations > 0;
        // "used to" and "used for" are no choices.
        if next.is_some_and(|t| t.is_one_of(list!("to"))) {
            return None;
        }
        return objects(terms, rest_at, choice);
    }
    let (_, particles) = TAKE_WITH.iter().find(|(verb, _)| *verb == clause.verb)?;
    let mut at = rest_at;
    // "migrate the API to Kubernetes": what moves is the purpose.
    let mut moved = None;
    if choice.change || is_in(list!("deploy host run build standardize"), clause.verb) {
        if terms
            .get(at)
            .is_some_and(|t| t.is_one_of(list!("everything all it this")))
        {
            at += 1;
        }
        let (named, end) = noun(terms, at);
        if let Some(named) = named
            && terms.get(end).is_some_and(|t| t.is_one_of(*particles))
        {
            moved = Some(named);
            at = end;
        }
    }
    let particle = terms.get(at).filter(|t| t.is_one_of(*particles))?;
    choice.dropped = stopped || clause.negations > 0;
    if particle.is_one_of(list!("from")) {
        let (previous, end) = noun(terms, at + 1);
        choice.previous.extend(previous);
        if !terms.get(end).is_some_and(|t| t.is_one_of(list!("to"))) {
            return None;
        }
        at = end;
    } else if particle.is_one_of(list!("over")) {
        at += usize::from(terms.get(at + 1).is_some_and(|t| t.is_one_of(list!("to"))));
    }
    // A date or a number is moved to, not chosen.
    if terms
        .get(at + 1)
        .is_some_and(|t| matches!(t.kind, TermKind::Date | TermKind::Quantity))
    {
        return None;
    }
    let mut choice = objects(terms, at + 1, choice)?;
    // People move house; a project moves to another tool.
    let known = choice.chosen.iter().any(|c| c.named.mentions.is_some())
        || choice.previous.iter().any(|p| p.mentions.is_some());
    let project = clause.imperative || subject.iter().any(|t| t.is_one_of(list!("we team company")));
    if clause.verb == "move" && !known && !project {
        return None;
    }
    if let Some(moved) = moved {
        for chosen in &mut choice.chosen {
            chosen.purposes.push(("for".to_owned(), moved.key.clone()));
        }
    }
    Some(choice)
}

/// "FastAPI was chosen for the service", "MySQL was replaced by PostgreSQL".
fn passive(terms: &[Term], clause: &Clause, mut choice: Choice) -> Option<Choice> {
    let (named, end) = noun(terms.get(..clause.subject.1)?, clause.subject.0);
    let named = named.filter(|_| end == clause.subject.1)?;
    if clause.verb == "replace" {
        let by = terms.get(clause.group.1).filter(|t| t.is_one_of(list!("by with")));
        by?;
        choice.previous.push(named);
        return objects(terms, clause.group.1 + 1, choice);
    }
    let dropped = is_in(DROP, clause.verb);
    if !is_in(TAKE, clause.verb) && !dropped {
        return None;
    }
    choice.dropped = dropped != (clause.negations > 0);
    let (purposes, end) = purposes(terms, clause.group.1, terms.len());
    rejections(terms, end, &mut choice);
    choice.chosen.push(Chosen {
        named,
        purposes,
        range: (clause.subject.0, terms.len()),
    });
    Some(choice)
}

/// "replace Y with X", "X replaces Y".
fn replace(terms: &[Term], clause: &Clause, mut choice: Choice, ours: bool) -> Option<Choice> {
    let (old, end) = noun(terms, clause.group.1);
    let old = old?;
    if ours {
        let with = terms.get(end).filter(|t| t.is_one_of(list!("with by for")));
        with?;
        choice.previous.push(old);
        return objects(terms, end + 1, choice);
    }
    let (new, subject_end) = noun(terms.get(..clause.subject.1)?, clause.subject.0);
    let new = new.filter(|n| subject_end == clause.subject.1 && n.technology.is_some())?;
    choice.previous.push(old);
    let purposes = purposes(terms, end, terms.len()).0;
    choice.chosen.push(Chosen {
        named: new,
        purposes,
        range: (clause.subject.0, terms.len()),
    });
    Some(choice)
}

/// The options from term `at` on, with purposes and rejected ones.
fn objects(terms: &[Term], at: usize, mut choice: Choice) -> Option<Choice> {
    let mut at = at;
    for _ in 0..8 {
        let (named, end) = noun(terms, at);
        let Some(named) = named else { break };
        let (purposes, next) = purposes(terms, end, terms.len());
        choice.chosen.push(Chosen {
            named,
            purposes,
            range: (at, next),
        });
        at = next;
        at = rejections(terms, at, &mut choice);
        let mut joined = false;
        while terms
            .get(at)
            .is_some_and(|t| t.kind == TermKind::Comma || t.is_one_of(list!("and")))
        {
            joined = true;
            at += 1;
        }
        // "and we ..." starts a clause of its own.
        let verb_follows = terms.get(at).is_some_and(|t| {
            t.is_one_of(super::words::PRONOUNS) || t.is_one_of(list!("not because since so but then"))
        });
        if !joined || verb_follows {
            break;
        }
    }
    if choice.chosen.is_empty() {
        return None;
    }
    let without = choice.chosen.iter().filter(|c| c.purposes.is_empty()).count();
    choice.listed = choice.chosen.len() > 1 && without > 0;
    Some(choice)
}

/// "over y", "instead of y", "rather than y", ", not y".
fn rejections(terms: &[Term], at: usize, choice: &mut Choice) -> usize {
    let comma = usize::from(terms.get(at).is_some_and(|t| t.kind == TermKind::Comma));
    let here = at + comma;
    let is = |i: usize, list: WordList| terms.get(here + i).is_some_and(|t| t.is_one_of(list));
    let (skip, ends) = if is(0, list!("over")) {
        (1, false)
    } else if (is(0, list!("instead")) && is(1, list!("of"))) || (is(0, list!("rather")) && is(1, list!("than"))) {
        (2, true)
    } else if is(0, list!("not")) {
        (1, true)
    } else {
        return at;
    };
    let (named, end) = noun(terms, here + skip);
    if let Some(named) = named {
        choice.rejected.push(named);
        choice.rejected_ends |= ends;
        return purposes(terms, end, terms.len()).1;
    }
    at
}

/// The phrases that say what an option is for, from `from` on without a gap, and where they end.
fn purposes(terms: &[Term], from: usize, to: usize) -> (Vec<(String, String)>, usize) {
    let slice = terms.get(..to).unwrap_or_default();
    let (mut found, mut at) = (Vec::new(), from);
    while slice
        .get(at)
        .is_some_and(|t| t.is_one_of(list!("now too also again later already today everywhere")))
        && found.len() < 4
    {
        at += 1;
    }
    for (start, end) in phrases(slice, at) {
        if start != at || found.len() >= 4 {
            break;
        }
        let Some(preposition) = slice.get(start) else { break };
        if preposition.is_one_of(list!("over instead rather because since than")) {
            break;
        }
        let inner = slice.get(start + 1..end).unwrap_or_default();
        at = end;
        // When is no purpose.
        let timed = inner.iter().any(|t| t.kind == TermKind::Date);
        let text = text_of(inner);
        if !timed && !text.is_empty() {
            found.push((preposition.lower.clone(), text));
        }
    }
    (found, at)
}
