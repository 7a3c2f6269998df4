//! How the pages (vault, bundle, HTML) take secrets out of what they write, and count what they did. What is a secret is
//! decided in [`crate::secrets`].

use std::cell::Cell;

use crate::secrets::{redact_metadata, redact_text};

/// A text without its secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redacted {
    /// What may be written.
    pub text: String,
    /// Places that were replaced.
    pub count: usize,
}

/// Puts a mark in place of every secret of a text.
pub fn redact(text: &str) -> Redacted {
    let (text, count) = redact_text(text, usize::MAX);
    Redacted { text, count }
}

/// Redacts and adds up. A text that is written in several places is counted where it belongs, once: the others go
/// through [`Redactor::again`].
#[derive(Default)]
pub(crate) struct Redactor {
    count: Cell<usize>,
}

impl Redactor {
    /// The text without secrets, counted.
    pub(crate) fn text(&self, text: &str) -> String {
        self.counted(redact(text))
    }

    /// Metadata without secrets, counted; a key may say that its value is one.
    pub(crate) fn metadata(&self, json: &str) -> String {
        let (text, count) = redact_metadata(json);
        self.counted(Redacted { text, count })
    }

    fn counted(&self, redacted: Redacted) -> String {
        self.count.set(self.count.get().saturating_add(redacted.count));
        redacted.text
    }

    /// The text without secrets, counted elsewhere.
    pub(crate) fn again(&self, text: &str) -> String {
        redact(text).text
    }

    /// Places replaced so far.
    pub(crate) fn count(&self) -> usize {
        self.count.get()
    }
}
