//! Where subject, verb group and the rest stand in one sentence. English, by closed lists and word order; a sentence
//! that does not fit has no clause, and then nothing is claimed about it.

use super::term::{Term, TermKind};
use super::words::{ADVERBS, BE, DETERMINERS, DO, Form, HAVE, MODALS, PREPOSITIONS, is_in};
use crate::read::list::{WordList, list};

/// The parts of one sentence, as indexes into its terms.
#[derive(Clone, Debug)]
pub(crate) struct Clause {
    /// A phrase before the subject ("In production, ...").
    pub(crate) lead: (usize, usize),
    pub(crate) subject: (usize, usize),
    /// From the first auxiliary to the main verb.
    pub(crate) group: (usize, usize),
    /// Base of the main verb.
    pub(crate) verb: &'static str,
    /// Where the main verb stands.
    pub(crate) verb_at: usize,
    pub(crate) form: Form,
    /// Base of a verb that governs the main one: "decided to use" has `decide`.
    pub(crate) outer: Option<&'static str>,
    pub(crate) modal: Option<String>,
    pub(crate) negations: usize,
    /// "no longer", "not any more".
    pub(crate) ended: bool,
    pub(crate) passive: bool,
    pub(crate) progressive: bool,
    pub(crate) perfect: bool,
    /// The first auxiliary stands in the past: was, were, had, did.
    pub(crate) past_aux: bool,
    /// "used to".
    pub(crate) used_to: bool,
    /// "going to".
    pub(crate) going_to: bool,
    /// No subject: "Use Redis", "Let's use Redis".
    pub(crate) imperative: bool,
    pub(crate) lets: bool,
    /// Also, too, as well.
    pub(crate) addition: bool,
    /// Now, again, from now on.
    pub(crate) now: bool,
}

/// Verbs that govern another by "to".
const WITH_TO: WordList = WordList::new(
    "decide choose plan want need have agree opt start begin continue intend prefer like love hate \
     elect hope expect aim try switch commit promise vote consent tend refuse decline forget",
);
/// Verbs that govern another by its ing-form.
const WITH_ING: WordList = WordList::new(
    "stop start begin avoid continue finish quit keep consider like love hate prefer enjoy recommend \
     suggest try",
);

/// Terms looked at for a verb; a longer subject is not understood.
const SUBJECT_MAX: usize = 16;

/// The clause that `terms`, one sentence, makes.
pub(crate) fn parse(terms: &[Term]) -> Option<Clause> {
    let lead = leading_phrase(terms);
    let mut base = lead.1;
    let mut lets = false;
    if terms.get(base)?.is_one_of(list!("let")) && terms.get(base + 1)?.is_one_of(list!("us")) {
        (base, lets) = (base + 2, true);
    }
    let adverbs = terms
        .get(base..)?
        .iter()
        .take_while(|t| t.is_one_of(ADVERBS) || t.is_one_of(list!("please not")))
        .count();
    let start = (base + adverbs..terms.len().min(base + SUBJECT_MAX))
        .take_while(|i| terms.get(*i).is_some_and(|t| !t.is_mark()))
        .find(|i| starts_group(terms, base, base + adverbs, *i, lets))?;
    let imperative = start == base + adverbs;
    let mut subject = (base + adverbs, start);
    if imperative {
        // "Also use Redis", "Never deploy": the adverbs belong to the verb.
        subject = (base, base);
    }
    let mut clause = Clause {
        lead,
        subject,
        group: (start, start),
        verb: "be",
        verb_at: start,
        form: Form::Base,
        outer: None,
        modal: None,
        negations: 0,
        ended: false,
        passive: false,
        progressive: false,
        perfect: false,
        past_aux: false,
        used_to: false,
        going_to: false,
        imperative,
        lets,
        addition: false,
        now: false,
    };
    // Adverbs between subject and verb belong to the group.
    while !imperative
        && clause.subject.1 > clause.subject.0 + 1
        && terms
            .get(clause.subject.1 - 1)
            .is_some_and(|t| t.is_one_of(ADVERBS) || t.is_one_of(list!("no not longer")))
    {
        clause.subject.1 -= 1;
    }
    clause.group.0 = clause.subject.1;
    read_group(terms, &mut clause)?;
    read_govern(terms, &mut clause);
    let rest = terms.get(clause.group.1..).unwrap_or_default();
    clause.addition |= rest.iter().any(|t| t.is_one_of(list!("too also additionally")))
        || rest.windows(2).any(|w| matches!(w, [a, b] if (a.is_one_of(list!("as")) && b.is_one_of(list!("well"))) || (a.is_one_of(list!("in")) && b.is_one_of(list!("addition")))));
    clause.now |= rest.iter().any(|t| t.is_one_of(list!("now again")));
    Some(clause)
}

fn leading_phrase(terms: &[Term]) -> (usize, usize) {
    let opens = terms.first().is_some_and(|t| {
        t.kind == TermKind::Word
            && t.is_one_of(list!(
                "for in on at as with from since after before during until by instead"
            ))
    });
    let comma = terms.iter().take(12).position(|t| t.kind == TermKind::Comma);
    match comma {
        Some(comma) if opens => (0, comma + 1),
        // Without a comma: "For caching we use Redis", "As of March 1 the price is $30".
        _ if opens => {
            let person = (2..terms.len().min(10)).find(|i| terms.get(*i).is_some_and(|t| t.is_one_of(list!("we i"))));
            let dated = (1..terms.len().min(4))
                .find(|i| terms.get(*i).is_some_and(|t| t.kind == TermKind::Date))
                .map(|i| i + 1);
            person.or(dated).map_or((0, 0), |end| (0, end))
        }
        _ => (0, 0),
    }
}

fn is_auxiliary(term: &Term) -> bool {
    term.kind == TermKind::Word
        && (term.is_one_of(BE) || term.is_one_of(HAVE) || term.is_one_of(DO) || term.is_one_of(MODALS))
}

fn starts_group(terms: &[Term], base: usize, head: usize, at: usize, lets: bool) -> bool {
    let Some(term) = terms.get(at) else { return false };
    if is_auxiliary(term) {
        // "Do not deploy" and "Have a look" are imperatives, "Are you" is a question.
        return at > head || term.is_one_of(list!("do be"));
    }
    let Some((_, form)) = term.verb else { return false };
    let next = terms.get(at + 1);
    let next_finite = next.is_some_and(is_auxiliary);
    if at == head {
        return form == Form::Base && (lets || !(next_finite || is_compound(terms, at)));
    }
    let Some(previous) = at.checked_sub(1).and_then(|i| terms.get(i)) else {
        return false;
    };
    if previous.is_one_of(DETERMINERS) || previous.is_one_of(PREPOSITIONS) || previous.lower == "'s" {
        return false;
    }
    match form {
        Form::Ing | Form::Participle => false,
        Form::Past => true,
        Form::S => !next_finite && !previous.is_one_of(list!("i we you they")),
        Form::Base => {
            let subject = terms.get(base..at).unwrap_or_default();
            let last = subject
                .iter()
                .rev()
                .find(|t| !t.is_one_of(ADVERBS) && !t.is_one_of(list!("no not longer")));
            let plural = last.is_some_and(|t| {
                t.is_one_of(list!("i we you they people data"))
                    || (matches!(t.kind, TermKind::Word | TermKind::Name)
                        && t.lower.len() > 2
                        && t.lower.ends_with('s')
                        && !t.lower.ends_with("ss"))
            });
            !next_finite && (plural || subject.iter().any(|t| t.is_one_of(list!("and"))))
        }
    }
}

/// "Deploy time is 5 minutes": the first word is no imperative, an auxiliary follows its noun phrase.
fn is_compound(terms: &[Term], at: usize) -> bool {
    for term in terms.iter().skip(at + 1).take(4) {
        if is_auxiliary(term) {
            return true;
        }
        let opens = term.is_mark()
            || term.is_one_of(DETERMINERS)
            || term.is_one_of(PREPOSITIONS)
            || term.is_one_of(super::words::PRONOUNS);
        if opens || term.is_one_of(list!("and or but that whether if sure")) {
            return false;
        }
    }
    false
}

fn read_group(terms: &[Term], clause: &mut Clause) -> Option<()> {
    let (mut be, mut have, mut helper) = (false, false, false);
    let mut at = clause.group.0;
    let mut first_auxiliary = true;
    loop {
        let Some(term) = terms.get(at).filter(|t| !t.is_mark()) else {
            // The sentence ends in an auxiliary: "We do.", "It is."
            if !be && !have {
                return None;
            }
            (clause.verb, clause.verb_at) = (if be { "be" } else { "have" }, at.saturating_sub(1));
            clause.group.1 = at;
            return Some(());
        };
        if term.is_one_of(list!("not never")) {
            clause.negations += 1;
        } else if term.is_one_of(list!("no")) && terms.get(at + 1).is_some_and(|t| t.is_one_of(list!("longer more"))) {
            clause.negations += 1;
            clause.ended = true;
            at += 1;
        } else if term.is_one_of(ADVERBS) || term.is_one_of(list!("please")) {
            clause.addition |= term.is_one_of(list!("also too"));
            clause.now |= term.is_one_of(list!("now again"));
        } else if term.is_one_of(MODALS) {
            clause.modal = Some(term.lower.clone());
            helper = true;
            first_auxiliary = false;
        } else if term.is_one_of(DO) && !be && !have && !helper {
            clause.past_aux |= term.lower == "did" && first_auxiliary;
            helper = true;
            first_auxiliary = false;
        } else if term.is_one_of(BE) {
            clause.past_aux |= first_auxiliary && term.is_one_of(list!("was were"));
            clause.perfect |= have;
            (be, first_auxiliary) = (true, false);
        } else if term.is_one_of(HAVE) && !be && !have {
            clause.past_aux |= first_auxiliary && term.lower == "had";
            (have, first_auxiliary) = (true, false);
        } else if be && term.is_one_of(list!("going")) && terms.get(at + 1).is_some_and(|t| t.is_one_of(list!("to"))) {
            clause.going_to = true;
            (be, helper) = (false, true);
            at += 1;
        } else {
            return main_verb(terms, clause, at, be, have, helper);
        }
        at += 1;
    }
}

fn main_verb(terms: &[Term], clause: &mut Clause, at: usize, be: bool, have: bool, helper: bool) -> Option<()> {
    let term = terms.get(at)?;
    let found = term.verb.filter(|_| term.kind == TermKind::Word);
    match found {
        Some((verb, Form::Ing)) if be => {
            (clause.verb, clause.form, clause.progressive) = (verb, Form::Ing, true);
        }
        Some((verb, form @ (Form::Past | Form::Participle))) if be => {
            (clause.verb, clause.form, clause.passive) = (verb, form, true);
        }
        Some((verb, form @ (Form::Past | Form::Participle))) if have => {
            (clause.verb, clause.form, clause.perfect) = (verb, form, true);
        }
        // "have run", "has come": the participle looks like the base.
        Some((verb, Form::Base))
            if have
                && is_in(
                    list!("run come become cost cut fit hit let put read set shut split quit"),
                    verb,
                ) =>
        {
            (clause.verb, clause.form, clause.perfect) = (verb, Form::Participle, true);
        }
        Some((verb, Form::Base)) if be && is_in(list!("set put cut shut split read cost run"), verb) => {
            (clause.verb, clause.form, clause.passive) = (verb, Form::Participle, true);
        }
        _ if be => {
            (clause.verb, clause.verb_at) = ("be", at.saturating_sub(1));
            clause.group.1 = at;
            return Some(());
        }
        _ if have => {
            (clause.verb, clause.verb_at) = ("have", at.saturating_sub(1));
            clause.group.1 = at;
            if term.is_one_of(list!("to")) {
                clause.group.1 = at;
            }
            return Some(());
        }
        Some((verb, form)) if helper || at >= clause.group.0 => {
            (clause.verb, clause.form) = (verb, form);
        }
        _ => return None,
    }
    clause.verb_at = at;
    clause.group.1 = at + 1;
    Some(())
}

/// "decided not to use", "stopped using", "used to use", "have to use".
fn read_govern(terms: &[Term], clause: &mut Clause) {
    for _ in 0..3 {
        let mut at = clause.group.1;
        let mut negations = 0;
        while terms
            .get(at)
            .is_some_and(|t| t.is_one_of(list!("not")) || t.is_one_of(list!("actively just also")))
        {
            negations += usize::from(terms.get(at).is_some_and(|t| t.is_one_of(list!("not"))));
            at += 1;
        }
        let next = terms.get(at);
        let after = terms.get(at + 1);
        if next.is_some_and(|t| t.is_one_of(list!("to")))
            && (is_in(WITH_TO, clause.verb) || (clause.verb == "use" && clause.form == Form::Past))
            && let Some(after) = after
            && let Some((verb, Form::Base)) = after.verb
            && !(clause.verb == "switch" && after.kind != TermKind::Word)
        {
            clause.used_to |= clause.verb == "use";
            clause.outer = Some(clause.verb);
            (clause.verb, clause.verb_at, clause.form) = (verb, at + 1, Form::Base);
            clause.negations += negations;
            clause.group.1 = at + 2;
        } else if is_in(WITH_ING, clause.verb)
            && negations == 0
            && let Some((verb, Form::Ing)) = next.and_then(|t| t.verb)
        {
            clause.outer = Some(clause.verb);
            (clause.verb, clause.verb_at, clause.form) = (verb, at, Form::Ing);
            clause.group.1 = at + 1;
        } else {
            break;
        }
    }
    if clause.verb == "have" && terms.get(clause.group.1).is_some_and(|t| t.is_one_of(list!("to"))) {
        clause.modal.get_or_insert_with(|| "must".to_owned());
    }
}

/// A prepositional phrase: the index of the preposition and the end of its noun phrase.
pub(crate) fn phrases(terms: &[Term], from: usize) -> Vec<(usize, usize)> {
    let mut found: Vec<(usize, usize)> = Vec::new();
    let mut open: Option<usize> = None;
    for (at, term) in terms.iter().enumerate().skip(from) {
        let opens =
            term.kind == TermKind::Word && (term.is_one_of(PREPOSITIONS) || term.is_one_of(list!("only if unless")));
        let closes = term.is_mark() || term.is_one_of(list!("and or but so"));
        if opens || closes {
            if let Some(start) = open.take()
                && at > start + 1
            {
                found.push((start, at));
            } else if let Some(start) = open
                && opens
            {
                // "only for", "instead of": one phrase.
                open = Some(start);
            }
            if opens {
                let glued = at
                    .checked_sub(1)
                    .and_then(|i| terms.get(i))
                    .is_some_and(|t| t.is_one_of(list!("only instead rather except because")));
                open = Some(if glued { at - 1 } else { at });
            }
        }
    }
    if let Some(start) = open
        && terms.len() > start + 1
    {
        found.push((start, terms.len()));
    }
    found
}
