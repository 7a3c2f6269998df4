//! Who says a turn, where clients put the name in front: "Alice Johnson: I moved to Oslo."

/// Longest name that is taken for one, in bytes.
const NAME_BYTES_MAX: usize = 48;
/// Words of a name.
const NAME_WORDS_MAX: usize = 3;
/// Capitalised words before a colon that announce something else than a speaker.
const NOT_NAMES: &[&str] = &[
    "agenda",
    "answer",
    "caution",
    "context",
    "date",
    "decision",
    "error",
    "example",
    "fact",
    "fixme",
    "goal",
    "hint",
    "idea",
    "important",
    "info",
    "input",
    "note",
    "output",
    "plan",
    "problem",
    "question",
    "reminder",
    "result",
    "solution",
    "step",
    "subject",
    "summary",
    "task",
    "tip",
    "title",
    "todo",
    "update",
    "warning",
];

/// The name in front of a text, if one stands there.
pub fn speaker_of(text: &str) -> Option<&str> {
    let text = text.trim_start();
    let mut end = NAME_BYTES_MAX.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let colon = text[..end].find(':')?;
    let name = text[..colon].trim_end();
    // A time, a URL or a path has no space after its colon.
    if !text[colon + 1..].starts_with(char::is_whitespace) || name.is_empty() {
        return None;
    }
    let words = name.split(' ').count();
    let plain = name.split(' ').all(|word| {
        word.chars()
            .next()
            .is_some_and(|first| first.is_uppercase() || (first.is_alphabetic() && !first.is_lowercase()))
            && word
                .chars()
                .all(|c| c.is_alphanumeric() || matches!(c, '-' | '\'' | '’' | '.' | '_'))
    });
    let announces = NOT_NAMES.binary_search(&name.to_lowercase().as_str()).is_ok();
    (plain && words <= NAME_WORDS_MAX && !announces).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_leading_name_is_the_speaker() {
        assert!(NOT_NAMES.is_sorted());
        for (text, expected) in [
            ("Caroline: hi", Some("Caroline")),
            ("Alice Johnson: hi", Some("Alice Johnson")),
            ("  Zoë: hi", Some("Zoë")),
            ("田中: こんにちは", Some("田中")),
            ("TODO: add retries", None),
            ("Note: hi", None),
            ("http://x", None),
            ("12:30 is late", None),
            ("the plan is this: go", None),
            ("C:\\temp", None),
            ("", None),
        ] {
            assert_eq!(speaker_of(text), expected, "{text}");
        }
    }
}
