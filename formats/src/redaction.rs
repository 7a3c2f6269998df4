//! How an export takes secrets out: the caller gives the rule, this module counts what it did.

use std::cell::Cell;

/// A text without its secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redacted {
    /// What may be written.
    pub text: String,
    /// Places that were replaced.
    pub count: usize,
}

/// Replaces every secret of a text by a mark. Must give the same for the same text.
pub type Redact<'a> = &'a dyn Fn(&str) -> Redacted;

/// Applies the rule and adds up. A text that is written in several places is counted where it belongs, once: use
/// [`Redactor::again`] for the others.
pub(crate) struct Redactor<'a> {
    rule: Redact<'a>,
    count: Cell<usize>,
}

impl<'a> Redactor<'a> {
    pub(crate) fn new(rule: Redact<'a>) -> Self {
        Self {
            rule,
            count: Cell::new(0),
        }
    }

    /// The text without secrets, counted.
    pub(crate) fn text(&self, text: &str) -> String {
        let redacted = (self.rule)(text);
        self.count.set(self.count.get().saturating_add(redacted.count));
        redacted.text
    }

    /// The text without secrets, counted elsewhere.
    pub(crate) fn again(&self, text: &str) -> String {
        (self.rule)(text).text
    }

    /// Places replaced so far.
    pub(crate) fn count(&self) -> usize {
        self.count.get()
    }
}
