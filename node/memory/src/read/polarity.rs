//! Polarity: the whole statement said or denied, opposites, permission against prohibition.

use super::canonical::Atom;
use super::compare::HOLDS;
use super::list::list;
use super::slots::{Reader, SlotValue, Slots, person_of};
use super::words::{Form, is_in, opposite_pair};

impl Reader<'_> {
    /// The whole statement without its negation, and with each strong opposite left open.
    pub(super) fn polarity(&mut self, atoms: &[Atom]) {
        let denied = |a: &Atom| is_in(list!("not never"), &a.text);
        let negations = atoms
            .iter()
            .filter(|a| denied(a) || is_in(list!("no none neither nor"), &a.text))
            .count();
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
            let mut words: Vec<&str> = bare
                .iter()
                .copied()
                .filter(|w| !is_in(list!("stop stopped quit have"), w))
                .collect();
            if let Some(place) = words
                .iter()
                .position(|w| super::words::verb(w).is_some_and(|(b, f)| b == self.clause.verb && f == Form::Ing))
                && let Some(word) = words.get_mut(place)
            {
                *word = self.clause.verb;
            }
            let form = words.join(" ");
            return self.end(format!("{header}holds|{form}"), form.clone(), HOLDS.to_owned(), form);
        }
        if negations > 1 || bare.len() < 2 || bare.len() > 60 {
            return;
        }
        let form = bare.join(" ");
        let negated = negations == 1;
        if ended {
            return self.end(format!("{header}holds|{form}"), form.clone(), HOLDS.to_owned(), form);
        }
        let push = |out: &mut Slots, slot: String, slot_text: String, value: &str, negated: bool| {
            let value_text = if negated {
                format!("not: {value}")
            } else {
                value.to_owned()
            };
            out.claims.push(SlotValue {
                slot,
                slot_text,
                value: value.to_owned(),
                value_text,
                negated,
                change: false,
            });
        };
        push(
            &mut self.out,
            format!("{header}holds|{form}"),
            form.clone(),
            HOLDS,
            negated,
        );
        for (place, word) in bare.iter().enumerate() {
            let Some((pair, true)) = opposite_pair(word) else {
                continue;
            };
            if pair == "on" && !is_state(&bare, place) {
                continue;
            }
            let mut open = bare.clone();
            let slot_name = format!("#{pair}");
            if let Some(hole) = open.get_mut(place) {
                *hole = &slot_name;
            }
            let slot = format!("{header}state|{}", open.join(" "));
            push(
                &mut self.out,
                slot,
                form.replacen(word, "...", 1),
                word,
                negated && !is_in(list!("always never"), word),
            );
        }
        // "may" against "must not".
        if let Some(modal) = self.clause.modal.as_deref().filter(|m| is_in(list!("may can must"), m)) {
            let allowed = !negated && is_in(list!("may can"), modal);
            let forbidden = negated;
            if allowed || forbidden {
                let rest: Vec<&str> = bare.iter().copied().filter(|w| *w != modal).collect();
                let value = if allowed { "allowed" } else { "forbidden" };
                push(
                    &mut self.out,
                    format!("{header}permit|{}", rest.join(" ")),
                    rest.join(" "),
                    value,
                    false,
                );
            }
        }
    }
}

fn is_state(words: &[&str], place: usize) -> bool {
    let before = place
        .checked_sub(1)
        .and_then(|i| words.get(i))
        .copied()
        .unwrap_or_default();
    let after = words.get(place + 1).copied();
    is_in(
        list!("is was be turn turned switch switched stay remain default to"),
        before,
    ) && after.is_none_or(|w| is_in(super::words::PREPOSITIONS, w) || w == "," || is_in(list!("by only"), w))
}
