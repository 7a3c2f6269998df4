//! Small texts of a bundle.

use waggle_memory::kind::Kind;

/// Line breaks and other control characters become blanks.
pub(super) fn one_line(text: &str) -> String {
    let plain: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    plain.trim().to_owned()
}

/// At most so many bytes, on a character boundary, marked if it was cut.
pub(super) fn cut_text(text: &str, bytes_max: usize) -> String {
    if text.len() <= bytes_max {
        return text.to_owned();
    }
    let end = text
        .char_indices()
        .map(|(at, _)| at)
        .take_while(|at| at + '…'.len_utf8() <= bytes_max)
        .last();
    format!("{}…", text.get(..end.unwrap_or(0)).unwrap_or_default())
}

/// A kind in a count.
pub(super) fn plural(kind: Kind, count: usize) -> &'static str {
    match kind {
        Kind::Fact => noun("fact", "facts", count),
        Kind::Entity => noun("entity", "entities", count),
        Kind::Concept => noun("concept", "concepts", count),
        Kind::Preference => noun("preference", "preferences", count),
        Kind::Decision => noun("decision", "decisions", count),
        Kind::Question => noun("question", "questions", count),
        Kind::Note => noun("note", "notes", count),
    }
}

/// A word in a count.
pub(super) fn noun(one: &'static str, many: &'static str, count: usize) -> &'static str {
    if count == 1 { one } else { many }
}
