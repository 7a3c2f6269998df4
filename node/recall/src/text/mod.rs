//! From text to the terms that are indexed and looked for. Linear in the length of the text, whatever it holds.
//!
//! Words: NFKC, lower case, accents folded, Snowball stem, irregular forms; the written form as well where it differs.
//! Identifiers: whole and in parts. Scripts without spaces: pairs of characters, and single ones. Dates: one term for
//! the day of the year, beside month and year as words. The same code reads documents and queries, so what is written
//! alike is found alike.

mod analyze;
pub mod calendar;
mod script;
pub mod speaker;
mod words;

#[cfg(test)]
mod tests;

pub use analyze::{Analysis, Context, Form, Limits, analyze, date_terms};
pub use speaker::speaker_of;

use std::collections::BTreeMap;

/// A term of a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueryTerm {
    /// The term.
    pub text: String,
    /// How it came to be.
    pub form: Form,
}

/// What is looked for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct QueryTerms {
    /// Each term once, in the order of the query, at most [`Limits::QUERY`]`.terms`.
    pub terms: Vec<QueryTerm>,
    /// Terms that stand for words of the query: all but second spellings.
    pub words: usize,
    /// What sort of query it is.
    pub analysis: Analysis,
}

/// Reads a query.
pub fn query_terms(query: &str) -> QueryTerms {
    let mut seen: BTreeMap<String, Form> = BTreeMap::new();
    let mut found = QueryTerms::default();
    // A single character is looked for only where no pair holds it: pairs say more.
    let mut singles: Vec<QueryTerm> = Vec::new();
    let mut has_pair = false;
    found.analysis = analyze(query, &Context::query(), &Limits::QUERY, &mut |text, form| {
        if seen.contains_key(text) {
            return;
        }
        seen.insert(text.to_owned(), form);
        let term = QueryTerm {
            text: text.to_owned(),
            form,
        };
        match form {
            Form::Single => singles.push(term),
            _ => {
                has_pair |= form == Form::Pair;
                found.terms.push(term);
            }
        }
    });
    if !has_pair {
        found.terms.append(&mut singles);
    }
    found.words = found.terms.iter().filter(|term| term.form.is_word()).count();
    found
}

/// Which of the wordings shares most terms with the query, if any shares one; for showing which alias was hit.
pub fn best_wording<'a>(query: &QueryTerms, wordings: impl IntoIterator<Item = &'a str>) -> Option<usize> {
    let mut best: Option<(usize, usize)> = None;
    for (index, wording) in wordings.into_iter().enumerate() {
        let mut shared: Vec<&str> = Vec::new();
        analyze(wording, &Context::query(), &Limits::DOCUMENT, &mut |text, form| {
            if form.is_word()
                && let Some(term) = query.terms.iter().find(|term| term.text == text)
                && !shared.contains(&term.text.as_str())
            {
                shared.push(&term.text);
            }
        });
        if !shared.is_empty() && best.is_none_or(|(count, _)| shared.len() > count) {
            best = Some((shared.len(), index));
        }
    }
    best.map(|(_, index)| index)
}
