//! The managed block in AGENTS.md and the like: how agents shall use memory. Everything outside of the two markers is
//! somebody else's and stays as it is.

use super::edit::TextStyle;
use super::malformed::Malformed;

const BEGIN: &str = "<!-- waggle:begin (managed by `waggle connect`; `waggle disconnect` removes it) -->";
/// What a begin marker is known by, so that its words may change.
const BEGIN_MARK: &str = "<!-- waggle:begin";
const END: &str = "<!-- waggle:end -->";

/// The policy is the one that the gateway gives to clients that ask for it.
fn block(newline: &str) -> String {
    let text = format!("{BEGIN}\n{}{END}\n", waggle_gateway::MEMORY_POLICY);
    text.replace('\n', newline)
}

/// Where the block is, markers included, with the line end after it.
fn find(text: &str) -> Result<Option<std::ops::Range<usize>>, Malformed> {
    let Some(start) = text.find(BEGIN_MARK) else {
        return match text.find(END) {
            None => Ok(None),
            Some(at) => Err(Malformed::at(
                text,
                at,
                "an end marker of ours without its begin marker",
            )),
        };
    };
    let rest = text.get(start..).unwrap_or_default();
    let Some(length) = rest.find(END).map(|at| at + END.len()) else {
        return Err(Malformed::at(
            text,
            start,
            "a begin marker of ours without its end marker",
        ));
    };
    if let Some(second) = rest.get(1..).and_then(|rest| rest.find(BEGIN_MARK)) {
        return Err(Malformed::at(text, start + 1 + second, "a second begin marker of ours"));
    }
    let mut end = start + length;
    for newline in ["\r\n", "\n"] {
        if text.get(end..).is_some_and(|rest| rest.starts_with(newline)) {
            end += newline.len();
            break;
        }
    }
    Ok(Some(start..end))
}

/// The text with the block as it is today, in its place or at the end.
pub(crate) fn set(text: &str) -> Result<String, Malformed> {
    let newline = TextStyle::of(text).newline;
    let ours = block(newline);
    if let Some(span) = find(text)? {
        let (head, tail) = (
            text.get(..span.start).unwrap_or_default(),
            text.get(span.end..).unwrap_or_default(),
        );
        return Ok(format!("{head}{ours}{tail}"));
    }
    if text.is_empty() {
        return Ok(ours);
    }
    let gap = if text.ends_with('\n') {
        newline.to_owned()
    } else {
        newline.repeat(2)
    };
    Ok(format!("{text}{gap}{ours}"))
}

/// The text without the block and the blank line before it.
pub(crate) fn remove(text: &str) -> Result<String, Malformed> {
    let Some(span) = find(text)? else {
        return Ok(text.to_owned());
    };
    let (head, tail) = (
        text.get(..span.start).unwrap_or_default(),
        text.get(span.end..).unwrap_or_default(),
    );
    let head = ["\r\n\r\n", "\n\n"]
        .iter()
        .find(|blank| head.ends_with(**blank))
        .and_then(|blank| head.get(..head.len() - blank.len() / 2))
        .unwrap_or(head);
    Ok(format!("{head}{tail}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_block_comes_once_and_goes_without_a_trace() {
        for before in ["", "# Rules\n", "# Rules\r\n\r\nBe kind.\r\n"] {
            let after = set(before).expect("text");
            assert!(after.starts_with(before) && after.contains("prime_context"), "{after}");
            assert_eq!(set(&after).expect("text"), after, "a second time");
            assert_eq!(remove(&after).expect("text"), before);
            assert_eq!(after.contains("\r\n"), before.contains("\r\n"));
        }
        assert_eq!(remove("# Rules\n").expect("text"), "# Rules\n");
    }

    #[test]
    fn an_old_block_is_renewed_where_it_stands() {
        let text = "a\n<!-- waggle:begin v0 -->\nold\n<!-- waggle:end -->\nb\n";
        let after = set(text).expect("text");
        assert!(after.starts_with("a\n<!-- waggle:begin (") && after.ends_with("<!-- waggle:end -->\nb\n"));
        assert!(!after.contains("old"));
        assert_eq!(remove(text).expect("text"), "a\nb\n");
    }

    #[test]
    fn broken_markers_are_refused_with_their_place() {
        for (text, line) in [
            ("a\n<!-- waggle:begin -->\n", 2),
            ("a\n\n<!-- waggle:end -->\n", 3),
            ("<!-- waggle:begin -->\n<!-- waggle:begin -->\n<!-- waggle:end -->\n", 2),
        ] {
            assert_eq!(set(text).expect_err(text).line, line);
            assert_eq!(remove(text).expect_err(text).line, line);
        }
    }

    #[test]
    fn the_words_are_the_ones_of_the_gateway() {
        assert!(set("").expect("text").contains(waggle_gateway::MEMORY_POLICY));
    }
}
