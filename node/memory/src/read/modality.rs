//! How one sentence is meant (gate G9).

use super::clause::Clause;
use super::dates::day_of;
use super::term::{Term, TermKind};
use super::words::{Form, HEDGE_FIRST, HEDGE_PHRASES, HEDGES, MODALS, is_in};
use crate::kind::Modality;
use crate::read::list::list;
use crate::time::Millis;

/// Whether `phrase`, blank-separated words, stands in `terms` in that order without a gap.
pub(crate) fn has_phrase(terms: &[Term], phrase: &str) -> bool {
    let first = phrase.split(' ').next().unwrap_or_default();
    terms
        .iter()
        .enumerate()
        .filter(|(_, t)| t.lower == first)
        .any(|(at, _)| {
            phrase
                .split(' ')
                .enumerate()
                .all(|(i, w)| terms.get(at + i).is_some_and(|t| t.lower == w))
        })
}

/// "What database", "Do we", "I wonder whether": asked, not said.
pub(crate) fn is_asked(terms: &[Term], asked: bool) -> bool {
    const OPEN: &[&str] = &[
        "i would like to know",
        "i would love to know",
        "i want to know",
        "i wonder",
        "i am wondering",
        "wondering if",
        "do you know",
        "any idea",
        "not sure if",
        "not sure whether",
        "i need to know",
        "we need to know",
        "we need to find out",
        "unclear whether",
        "unclear if",
        "open question",
        "tell me if",
        "tell me whether",
    ];
    let first = terms.first();
    let wh = first.is_some_and(|t| t.is_one_of(list!("what which who whom whose why how")))
        && terms.get(1..6).unwrap_or_default().iter().any(|t| {
            t.is_one_of(list!(
                "do does did is are was were should can could would will shall may might"
            ))
        });
    let inverted = first.is_some_and(|t| {
        t.is_one_of(list!(
            "do does did is are was were should can could would will shall has have may"
        ))
    }) && terms
        .get(1)
        .is_some_and(|t| t.is_one_of(list!("i we you he she it they the this that there our my anyone")))
        && !first.is_some_and(|t| t.is_one_of(list!("do have")));
    asked
        || wh
        || inverted
        || OPEN
            .iter()
            .any(|p| has_phrase(terms.get(..terms.len().min(8)).unwrap_or_default(), p))
}

/// Holds only if something else does.
pub(crate) fn is_conditional(terms: &[Term]) -> bool {
    const PHRASES: &[&str] = &[
        "in case",
        "provided that",
        "assuming that",
        "as long as",
        "on condition that",
        "depending on",
        "only when",
    ];
    terms.iter().enumerate().any(|(at, t)| {
        (t.is_one_of(list!("if unless assuming provided")) && t.kind == TermKind::Word)
            && !at
                .checked_sub(1)
                .and_then(|i| terms.get(i))
                .is_some_and(|p| p.is_one_of(list!("know wonder ask see check sure even as the")))
    }) || PHRASES.iter().any(|p| has_phrase(terms, p))
}

/// A guess or a wish.
pub(crate) fn is_hedged(terms: &[Term], clause: Option<&Clause>) -> bool {
    if terms.iter().any(|t| t.kind == TermKind::Word && t.is_one_of(HEDGES)) {
        return true;
    }
    if terms.iter().any(|t| t.is_one_of(HEDGE_FIRST)) && HEDGE_PHRASES.iter().any(|p| has_phrase(terms, p)) {
        return true;
    }
    let Some(clause) = clause else { return false };
    // "may" with a person who decides is a guess; "Admins may delete users" is a permission.
    let subject = terms.get(clause.subject.0..clause.subject.1).unwrap_or_default();
    let person = subject
        .iter()
        .any(|t| t.is_one_of(list!("i we it they there he she that this")))
        || subject.is_empty();
    let inner = terms.get(clause.group.0..clause.group.1 + 1).unwrap_or_default();
    clause.modal.as_deref() == Some("may")
        && clause.negations == 0
        && (person
            || clause.verb == "be"
            || clause.verb == "have"
            || clause.verb == "need"
            || inner.iter().any(|t| t.is_one_of(list!("be have need"))))
}

/// The modality of one sentence.
pub(crate) fn modality(terms: &[Term], asked: bool, clause: Option<&Clause>, observed_at: Millis) -> Modality {
    if is_asked(terms, asked) {
        return Modality::Question;
    }
    if is_conditional(terms) {
        return Modality::Conditional;
    }
    if is_hedged(terms, clause) {
        return Modality::Hedged;
    }
    let Some(clause) = clause else {
        return Modality::Asserted;
    };
    let outer_plan = clause
        .outer
        .is_some_and(|o| is_in(list!("plan intend aim hope expect"), o))
        || (clause.verb == "plan" && !clause.passive && clause.progressive);
    let will = clause
        .modal
        .as_deref()
        .is_some_and(|m| is_in(list!("will shall"), m) && is_in(MODALS, m));
    if will || clause.going_to || outer_plan {
        return Modality::Planned;
    }
    // "We are moving to Kafka in Q3": the date is to come.
    let today = day_of(observed_at);
    let ahead = terms.iter().any(|t| {
        t.days
            .is_some_and(|(first, _)| today.is_some_and(|today| first > today))
    });
    if clause.progressive && ahead {
        return Modality::Planned;
    }
    let was = clause.past_aux && clause.outer != Some("have") && !clause.passive && !clause.perfect;
    let used = clause.verb == "use" && clause.form == Form::Past && !clause.perfect && !clause.passive;
    let then = terms
        .iter()
        .any(|t| t.is_one_of(list!("previously formerly originally initially")));
    if clause.used_to || was || used || then {
        return Modality::Past;
    }
    Modality::Asserted
}
