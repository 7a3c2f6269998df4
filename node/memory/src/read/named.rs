//! Noun phrases as options: their comparison text, and the technology or class of taste they are.

use super::list::{WordList, list};
use super::technologies::{Technology, alternative, category_of_word, technology};
use super::term::{Term, TermKind};
use super::words::{DETERMINERS, PREPOSITIONS};

/// An option as named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Named {
    /// The comparison text.
    pub(crate) key: String,
    /// As said.
    pub(crate) shown: String,
    /// The technology that it is, if it is just that.
    pub(crate) technology: Option<&'static str>,
    /// A technology it mentions: enough for a tag, not for a claim.
    pub(crate) mentions: Option<&'static str>,
    /// A category word in the name itself ("Redis cache").
    pub(crate) own_category: Option<&'static str>,
    /// Class of taste.
    pub(crate) class: Option<&'static str>,
}

impl Named {
    /// The value in tags and claims.
    pub(crate) fn value(&self) -> &str {
        self.technology.unwrap_or(&self.key)
    }

    /// The value in the shape of a tag: lower case, blanks and underscores become `-`.
    pub(crate) fn tag(&self) -> String {
        let value = self.technology.or(self.mentions).unwrap_or(&self.shown);
        value
            .trim_matches(['`', '"', '“', '”'])
            .to_lowercase()
            .replace([' ', '_'], "-")
    }

    pub(super) fn technology_entry(&self) -> Option<&'static Technology> {
        self.technology.and_then(technology)
    }
}

/// The comparison text of a noun phrase: without articles and possessives of the project.
pub(crate) fn text_of(terms: &[Term]) -> String {
    terms
        .iter()
        .filter(|t| !t.is_mark() && !t.is_one_of(list!("a an the our")))
        .map(|t| t.text.as_str())
        .collect::<Vec<_>>()
        .join(" ")
}

/// The noun phrase at `at`, as an option, and where it ends.
pub(crate) fn noun(terms: &[Term], at: usize) -> (Option<Named>, usize) {
    const NOT_NAMES: WordList =
        WordList::new("it this that them these those which something anything everything one ones");
    let mut end = at;
    while let Some(term) = terms.get(end) {
        let closes = term.is_mark()
            || (term.kind == TermKind::Word
                && (term.is_one_of(PREPOSITIONS)
                    || term.is_one_of(list!(
                        "and or but so because not too also again now later instead if unless already everywhere"
                    ))
                    || term.is_one_of(super::words::BE)
                    || term.is_one_of(super::words::MODALS)))
            || (term.kind == TermKind::Date)
            || end >= at + 8;
        if closes {
            break;
        }
        end += 1;
    }
    let words: Vec<&Term> = terms
        .get(at..end)
        .unwrap_or_default()
        .iter()
        .filter(|t| !t.is_one_of(DETERMINERS) || t.kind != TermKind::Word)
        .collect();
    let (Some(first), Some(last)) = (words.first(), words.last()) else {
        return (None, end);
    };
    if words.iter().any(|t| t.is_one_of(NOT_NAMES) && t.kind == TermKind::Word) {
        return (None, end);
    }
    let own_category = if words.len() > 1 {
        category_of_word(&last.text)
    } else {
        None
    };
    let technologies: Vec<&&Term> = words.iter().filter(|t| t.kind == TermKind::Technology).collect();
    let entry = technologies.first().and_then(|t| technology(&t.text)).map(|t| t.name);
    let generic = |t: &&Term| {
        t.kind == TermKind::Technology
            || t.kind == TermKind::Quantity
            || category_of_word(&t.text).is_some()
            || t.is_one_of(list!(
                "server servers instance cluster database framework managed self-hosted library editor apis"
            ))
    };
    let only = technologies.len() == 1 && words.iter().all(generic);
    let class = alternative(&first.text).filter(|_| {
        words.len() == 1
            || (words.len() == 2
                && last.is_one_of(list!("mode theme themes interface ui character characters unit units system clock format time indentation layout scheme colors")))
    });
    let key = if class.is_some() {
        first.text.clone()
    } else {
        words.iter().map(|t| t.text.as_str()).collect::<Vec<_>>().join(" ")
    };
    let named = Named {
        key,
        shown: words.iter().map(|t| t.shown.as_str()).collect::<Vec<_>>().join(" "),
        technology: if only { entry } else { None },
        mentions: entry,
        own_category,
        class,
    };
    (Some(named), end)
}
