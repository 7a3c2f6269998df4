//! What a clause says about when it holds and when it falls due.

use crate::kind::Modality;
use crate::read::Sentence;
use crate::read::dates::{day_of, start_of};
use crate::read::list::list;
use crate::read::term::{Term, TermKind};
use crate::read::words::is_in;
use crate::time::Millis;

/// Validity and due date of a statement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Dated {
    pub(crate) valid_from: Option<Millis>,
    pub(crate) valid_to: Option<Millis>,
    pub(crate) due: Option<Millis>,
}

/// Reads the dates of one clause. A period as a start is its first day, as a due date its last.
pub(crate) fn dated(terms: &[Term], sentence: &Sentence, todo: bool, observed_at: Millis) -> Dated {
    let mut out = Dated::default();
    let today = day_of(observed_at);
    let change =
        sentence.choice.as_ref().is_some_and(|c| c.change || c.dropped) || sentence.slots.ends.iter().any(|_| true);
    let chosen = sentence.choice.is_some();
    let falls = todo
        || sentence.modality == Modality::Planned
        || terms
            .iter()
            .any(|t| t.is_one_of(list!("deadline due release launch ship milestone scheduled planned")));
    for (at, term) in terms.iter().enumerate().filter(|(_, t)| t.kind == TermKind::Date) {
        let Some((first, last)) = term.days else { continue };
        let before = at
            .checked_sub(1)
            .and_then(|i| terms.get(i))
            .map_or("", |t| t.lower.as_str());
        let past = today.is_some_and(|today| first <= today);
        let start = is_in(list!("since from starting effective"), before)
            || (before == "of" && terms.iter().any(|t| t.is_one_of(list!("as"))));
        // "last month", "in 2024": when something was chosen or changed is when it began to hold.
        let began = past
            && (change || chosen)
            && sentence.modality != Modality::Planned
            && !is_in(list!("to by until"), before);
        if is_in(list!("until till"), before) {
            out.valid_to = out.valid_to.or_else(|| start_of(last).map(|at| at.plus(Millis::DAY)));
        } else if (start || began) && out.valid_from.is_none() {
            out.valid_from = start_of(first);
        } else if falls && out.due.is_none() {
            out.due = start_of(last);
        }
    }
    if out
        .valid_to
        .is_some_and(|to| out.valid_from.unwrap_or(observed_at).0 >= to.0)
    {
        out.valid_to = None;
    }
    out
}
