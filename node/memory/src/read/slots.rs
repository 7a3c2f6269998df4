//! Slots and values: what a sentence claims of a single-valued attribute, and which old value it ends (section on
//! slots of the memory semantics). Slots are exact: subject, attribute and further purposes must all be the same.

use super::canonical::Atom;
use super::choice::{self, Choice, text_of};
use super::clause::{Clause, phrases};
use super::compare::HOLDS;
use super::dates::start_of;
use super::list::list;
use super::technologies::{category_of_word, technology};
use super::term::Term;
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

/// Who does it, as a key: the author for I, the project for we.
pub(crate) fn subject_key(terms: &[Term], clause: &Clause, author: &str) -> String {
    let subject = terms.get(clause.subject.0..clause.subject.1).unwrap_or_default();
    if clause.imperative || clause.lets {
        return "we".to_owned();
    }
    holder_key(subject, author)
}

pub(super) fn holder_key(subject: &[Term], author: &str) -> String {
    let text = text_of(subject);
    match text.as_str() {
        "i" => format!("author {author}"),
        "we" | "us" => "we".to_owned(),
        _ => owned(subject, &text, author),
    }
}

fn owned(subject: &[Term], text: &str, author: &str) -> String {
    if subject.iter().any(|t| t.is_one_of(list!("my mine i me"))) {
        format!("author {author} {text}")
    } else {
        text.to_owned()
    }
}

/// Reads the slots of one sentence.
pub(super) struct Reader<'a> {
    pub(super) terms: &'a [Term],
    pub(super) clause: &'a Clause,
    pub(super) author: &'a str,
    pub(super) out: Slots,
}

/// Claims and ends of one sentence. `atoms` are its canonical atoms.
pub(crate) fn read(
    terms: &[Term],
    clause: &Clause,
    choice: Option<&Choice>,
    atoms: &[Atom],
    author: &str,
    observed_at: Millis,
) -> Slots {
    let mut reader = Reader {
        terms,
        clause,
        author,
        out: Slots::default(),
    };
    if !clause.addition {
        reader.choice(choice);
        reader.taste();
        if choice.is_none() {
            reader.values();
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
    pub(super) fn rest(&self) -> &[Term] {
        self.terms.get(self.clause.group.1..).unwrap_or_default()
    }

    /// A phrase before the subject narrows every slot: "In staging, the limit is 5".
    pub(super) fn narrowed(&self, slot: String) -> String {
        let lead = self
            .terms
            .get(self.clause.lead.0..self.clause.lead.1)
            .unwrap_or_default();
        if lead.is_empty() {
            slot
        } else {
            format!("{slot}|{}", text_of(lead))
        }
    }

    pub(super) fn claim(&mut self, slot: String, slot_text: String, value: String, value_text: String, change: bool) {
        if self.clause.ended {
            return self.end(slot, slot_text, value, value_text);
        }
        let negated = self.clause.negations > 0;
        self.out.claims.push(SlotValue {
            slot,
            slot_text,
            value,
            value_text,
            negated,
            change,
        });
    }

    pub(super) fn end(&mut self, slot: String, slot_text: String, value: String, value_text: String) {
        self.out.ends.push(SlotValue {
            slot,
            slot_text,
            value,
            value_text,
            negated: false,
            change: false,
        });
    }

    fn choice(&mut self, choice: Option<&Choice>) {
        let Some(choice) = choice else { return };
        let mut subject = subject_key(self.terms, self.clause, self.author);
        if self.clause.passive || self.clause.verb == "replace" && !subject.starts_with("author ") {
            "we".clone_into(&mut subject);
        }
        for chosen in &choice.chosen {
            let strict = chosen.named.technology.is_some() || chosen.named.mentions.is_none();
            if strict && !choice.dropped {
                self.use_of(&subject, &chosen.named);
            }
            let Some((category, purpose)) = choice.slot(chosen) else {
                continue;
            };
            let slot = format!("{subject}|choice|{category}|{purpose}");
            let slot_text = if purpose.is_empty() {
                category.replace('-', " ")
            } else {
                format!("{} for {purpose}", category.replace('-', " "))
            };
            let (value, shown) = (chosen.named.value().to_owned(), chosen.named.shown.clone());
            if choice.dropped {
                if self.clause.negations > 0 && !self.clause.ended {
                    // "We do not use X" denies; only "no longer" ends.
                    self.out.claims.push(SlotValue {
                        slot,
                        slot_text,
                        value,
                        value_text: shown,
                        negated: true,
                        change: false,
                    });
                } else {
                    self.end(slot, slot_text, value, shown);
                }
                continue;
            }
            if !choice.listed && strict {
                self.claim(
                    slot.clone(),
                    slot_text.clone(),
                    value,
                    shown,
                    choice.change && choice.previous.is_empty(),
                );
            }
            let ended = choice
                .previous
                .iter()
                .chain(choice.rejected.iter().filter(|_| choice.rejected_ends));
            for old in ended {
                self.end(
                    slot.clone(),
                    slot_text.clone(),
                    old.value().to_owned(),
                    old.shown.clone(),
                );
            }
        }
        // What was replaced or dropped without a category still ends "we use X".
        let old = choice
            .previous
            .iter()
            .chain(choice.rejected.iter().filter(|_| choice.rejected_ends));
        for old in old.filter(|o| o.technology.is_some() || o.mentions.is_none()) {
            self.end_of_use(&subject, old);
        }
        if choice.dropped && (self.clause.negations == 0 || self.clause.ended) {
            for chosen in &choice.chosen {
                if chosen.purposes.is_empty() && (chosen.named.technology.is_some() || chosen.named.mentions.is_none())
                {
                    self.end_of_use(&subject, &chosen.named);
                    // Who uses it for nothing any more does not use it for anything.
                    let named = &chosen.named;
                    let slot = format!("{subject}|uses|{}", named.value());
                    self.end(slot, "use".to_owned(), HOLDS.to_owned(), named.shown.clone());
                }
            }
        }
    }

    /// That something is used at all, whatever for: what a plain "we no longer use X" ends.
    fn use_of(&mut self, subject: &str, named: &choice::Named) {
        if self.clause.negations > 0 || self.clause.ended {
            return;
        }
        self.out.claims.push(SlotValue {
            slot: format!("{subject}|uses|{}", named.value()),
            slot_text: format!("use of {}", named.shown),
            value: HOLDS.to_owned(),
            value_text: named.shown.clone(),
            negated: false,
            change: false,
        });
    }

    /// Ends the plain statement "we use X".
    fn end_of_use(&mut self, subject: &str, named: &choice::Named) {
        let first = if subject.starts_with("author ") { "i" } else { "we" };
        let slot = format!("{}holds|{first} use {}", person(subject), named.value());
        self.end(slot, "use".to_owned(), HOLDS.to_owned(), named.shown.clone());
    }

    /// "My favorite editor is Vim", "PostgreSQL is my go-to database".
    fn taste(&mut self) {
        if self.clause.verb != "be" || self.clause.passive {
            return;
        }
        let subject = self
            .terms
            .get(self.clause.subject.0..self.clause.subject.1)
            .unwrap_or_default();
        let rest = self.rest();
        let (role, value) = if is_taste(subject) {
            (subject, rest)
        } else if is_taste(rest) {
            (rest, subject)
        } else {
            return;
        };
        let (named, end) = choice::noun(value, 0);
        let Some(named) = named.filter(|_| !value.is_empty()) else {
            return;
        };
        let purposes: Vec<String> = phrases(role, 0)
            .into_iter()
            .chain(
                phrases(value, end)
                    .into_iter()
                    .filter(|_| !std::ptr::eq(value, subject)),
            )
            .filter_map(|(from, _)| role.get(from + 1..).map(text_of))
            .collect();
        let head: Vec<&Term> = role
            .iter()
            .take_while(|t| !t.is_one_of(list!("for in at on")))
            .filter(|t| {
                !t.is_one_of(list!(
                    "my our the a favorite favourite go-to preferred default usual best"
                ))
            })
            .collect();
        let noun = head.iter().map(|t| t.text.as_str()).collect::<Vec<_>>().join("-");
        let known = named
            .technology
            .and_then(technology)
            .map_or(&[] as &[&str], |t| t.categories);
        let category = match known {
            [only] => (*only).to_owned(),
            _ => head
                .last()
                .and_then(|t| category_of_word(&t.text))
                .map_or(noun, str::to_owned),
        };
        let owner = if role.iter().any(|t| t.is_one_of(list!("my"))) {
            format!("author {}", self.author)
        } else {
            "we".to_owned()
        };
        let purpose = purposes.join(", ");
        self.claim(
            format!("{owner}|choice|{category}|{purpose}"),
            category.replace('-', " "),
            named.value().to_owned(),
            named.shown.clone(),
            false,
        );
    }
}

/// The header of a form that depends on who says it.
pub(crate) fn person_of(terms: &[Term], author: &str) -> String {
    if super::canonical::is_first_person(terms) {
        format!("by {author}|")
    } else {
        String::new()
    }
}

fn person(subject: &str) -> String {
    subject
        .strip_prefix("author ")
        .map_or(String::new(), |author| format!("by {author}|"))
}

/// "my favorite editor", "our go-to database".
pub(crate) fn is_taste(terms: &[Term]) -> bool {
    terms
        .iter()
        .any(|t| t.is_one_of(list!("favorite favourite go-to preferred")))
        && terms.iter().any(|t| t.is_one_of(list!("my our the")))
}
