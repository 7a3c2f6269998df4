//! Roles with one holder, and versions of what is run.

use super::choice::{self, text_of};
use super::list::{WordList, list};
use super::slots::{Reader, holder_key, subject_key};
use super::term::{Term, TermKind};
use super::values::other_phrases;
use super::words::is_in;

const ROLES: &[(&str, &str)] = &[
    ("own", "owner"),
    ("lead", "lead"),
    ("head", "lead"),
    ("manage", "manager"),
    ("maintain", "maintainer"),
    ("oversee", "manager"),
    ("supervise", "manager"),
];
const ROLE_NOUNS: WordList =
    WordList::new("owner lead leader manager maintainer supplier vendor ceo cto head supervisor");

impl Reader<'_> {
    /// One holder per role: "Alice owns X", "the owner of X is Alice", "Alice is the owner of X".
    pub(super) fn roles(&mut self) {
        let clause = self.clause;
        let subject = self
            .terms
            .get(clause.subject.0..clause.subject.1)
            .unwrap_or_default()
            .to_vec();
        let rest = self.rest().to_vec();
        if let Some((_, role)) = ROLES.iter().find(|(verb, _)| *verb == clause.verb) {
            let (object, end) = choice::noun(&rest, 0);
            let agent = clause
                .passive
                .then(|| rest.iter().position(|t| t.is_one_of(list!("by"))))
                .flatten();
            let (thing, holder) = match agent {
                Some(by) => (text_of(&subject), rest.get(by + 1..).unwrap_or_default().to_vec()),
                None if clause.passive => return,
                None => (object.map(|o| o.key).unwrap_or_default(), subject),
            };
            if !thing.is_empty()
                && !holder.is_empty()
                && (clause.passive
                    || rest
                        .get(end..)
                        .is_none_or(|r| !r.iter().any(|t| t.is_one_of(list!("and")))))
            {
                let value = holder_key(&holder, self.author);
                let shown = holder.iter().map(|t| t.shown.as_str()).collect::<Vec<_>>().join(" ");
                self.claim(
                    self.narrowed(format!("{thing}|{role}|")),
                    format!("{role} of {thing}"),
                    value,
                    shown,
                    false,
                );
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
            // "Carol is our CTO", "our new supplier": of the project.
            let bare = thing
                .split(' ')
                .all(|w| is_in(list!("new current main primary next first only"), w));
            let thing = if (thing.is_empty() || bare) && ours {
                "we".to_owned()
            } else {
                thing
            };
            (!thing.is_empty()).then_some((thing, role))
        };
        let definite = rest
            .first()
            .is_some_and(|t| t.is_one_of(list!("the our")) || matches!(t.kind, TermKind::Name))
            || rest.iter().any(|t| t.lower == "'s");
        let (thing, role, holder) = match (of(&subject), of(&rest)) {
            (Some((thing, role)), None) => (thing, role, rest.clone()),
            (None, Some((thing, role))) if definite => (thing, role, subject),
            _ => return,
        };
        let value = holder_key(&holder, self.author);
        let shown = holder.iter().map(|t| t.shown.as_str()).collect::<Vec<_>>().join(" ");
        self.out.claims.retain(|c| !c.slot.contains("|is|"));
        self.claim(
            self.narrowed(format!("{thing}|{role}|")),
            format!("{role} of {thing}"),
            value,
            shown,
            false,
        );
    }

    /// "runs Python 3.1": one version at a time.
    pub(super) fn version(&mut self) {
        let rest = self.rest().to_vec();
        let Some((at, name)) = rest
            .iter()
            .enumerate()
            .find(|(_, t)| t.kind == TermKind::Technology || t.kind == TermKind::Name)
        else {
            return;
        };
        let number = rest
            .get(at + 1)
            .filter(|t| t.kind == TermKind::Quantity && t.text.starts_with("n:"));
        let Some(number) = number.filter(|_| is_in(list!("run use be upgrade deploy"), self.clause.verb) && at <= 2)
        else {
            return;
        };
        let subject = subject_key(self.terms, self.clause, self.author);
        let purpose = other_phrases(rest.get(at + 2..).unwrap_or_default());
        let change = self.clause.verb == "upgrade";
        let (slot, text) = (
            format!("{subject}|version {}|{purpose}", name.text),
            format!("{} version", name.shown),
        );
        let (value, shown) = (number.text.clone(), number.shown.clone());
        let slot = self.narrowed(slot);
        self.claim(slot, text, value, shown, change);
    }
}
