//! Adding to and taking from what stands between two brackets, with the commas, comments and lines round it.

use std::ops::Range;

use crate::connect::edit::{Splice, TextStyle};

/// Adds an item at the end of a bracketed list of items.
pub(super) fn put_in(
    body: &str,
    whole: Range<usize>,
    items: &[Range<usize>],
    style: &TextStyle,
    write: &dyn Fn(&str, bool) -> String,
) -> Vec<Splice> {
    let (open, close) = (whole.start + 1, whole.end - 1);
    let newline = style.newline;
    let outer = style.indent_at(body, whole.start);
    let Some((first, last)) = items.first().zip(items.last()) else {
        let inner = format!("{outer}{}", style.unit);
        let item = write(&inner, false);
        let inside = body.get(open..close).unwrap_or_default();
        let kept = inside.trim_end();
        if kept.trim().is_empty() {
            return vec![Splice::replace(
                open..close,
                format!("{newline}{inner}{item}{newline}{outer}"),
            )];
        }
        // There are comments in it; they stay before ours.
        let end = open + kept.len();
        let tail = if inside.get(kept.len()..).is_some_and(|rest| rest.contains('\n')) {
            String::new()
        } else {
            format!("{newline}{outer}")
        };
        return vec![Splice::replace(end..end, format!("{newline}{inner}{item}{tail}"))];
    };
    let comma = comma_after(body, last.end, close);
    let lines = body.get(open..first.start).is_some_and(|gap| gap.contains('\n'));
    if !lines {
        let item = write("", true);
        return match comma {
            Some(at) => vec![Splice::replace(at + 1..at + 1, format!(" {item},"))],
            None => vec![Splice::replace(last.end..last.end, format!(", {item}"))],
        };
    }
    let inner = style.indent_at(body, first.start);
    let item = write(&inner, false);
    match comma {
        Some(at) => {
            let end = after_same_line_comments(body, at + 1, close);
            vec![Splice::replace(end..end, format!("{newline}{inner}{item},"))]
        }
        None => {
            let end = after_same_line_comments(body, last.end, close);
            vec![
                Splice::replace(last.end..last.end, ",".to_owned()),
                Splice::replace(end..end, format!("{newline}{inner}{item}")),
            ]
        }
    }
}

/// Takes an item out of a bracketed list of items, with its line and one comma.
pub(super) fn take_out(body: &str, whole: Range<usize>, items: &[Range<usize>], index: usize) -> Vec<Splice> {
    let (open, close) = (whole.start + 1, whole.end - 1);
    let Some(item) = items.get(index) else {
        return Vec::new();
    };
    let before = index.checked_sub(1).and_then(|index| items.get(index));
    let comma = comma_after(body, item.end, items.get(index + 1).map_or(close, |next| next.start));
    let end = comma.map_or(item.end, |at| at + 1);
    if items.len() == 1 {
        let inside = format!(
            "{}{}",
            body.get(open..item.start).unwrap_or_default(),
            body.get(end..close).unwrap_or_default()
        );
        if inside.trim().is_empty() {
            return vec![Splice::replace(open..close, String::new())];
        }
    }
    let line_start = body
        .get(..item.start)
        .unwrap_or_default()
        .trim_end_matches([' ', '\t'])
        .len();
    let own_line = body.get(..line_start).is_some_and(|head| head.ends_with('\n'));
    let start = if own_line {
        let head = body.get(..line_start).unwrap_or_default();
        head.len() - if head.ends_with("\r\n") { 2 } else { 1 }
    } else {
        before.map_or(item.start, |before| {
            comma_after(body, before.end, item.start).map_or(before.end, |at| at + 1)
        })
    };
    let end = if own_line {
        after_same_line_comments(body, end, close)
    } else if before.is_none() {
        end + body
            .get(end..close)
            .map_or(0, |rest| rest.len() - rest.trim_start_matches([' ', '\t']).len())
    } else {
        end
    };
    let mut splices = vec![Splice::replace(start..end, String::new())];
    // The last one without a comma of its own takes the one before it along.
    if comma.is_none()
        && let Some(before) = before
        && let Some(at) = comma_after(body, before.end, item.start)
    {
        splices.insert(0, Splice::replace(at..at + 1, String::new()));
    }
    splices
}

/// Where the comma after an item is, past blanks and comments.
fn comma_after(body: &str, from: usize, to: usize) -> Option<usize> {
    let at = skip(body, from, to, true);
    (at < to && body.as_bytes().get(at) == Some(&b',')).then_some(at)
}

/// The end of the comments that follow on the same line, else the place itself.
fn after_same_line_comments(body: &str, from: usize, to: usize) -> usize {
    let at = skip(body, from, to, false);
    let skipped = body.get(from..at).unwrap_or_default();
    from + skipped.trim_end_matches([' ', '\t', '\r']).len()
}

/// Past blanks and comments; without `lines`, up to the end of the line.
fn skip(body: &str, from: usize, to: usize, lines: bool) -> usize {
    let mut at = from;
    while at < to {
        let rest = body.get(at..to).unwrap_or_default();
        if rest.starts_with("//") {
            at += rest.find('\n').unwrap_or(rest.len());
        } else if rest.starts_with("/*") {
            let length = rest.find("*/").map_or(rest.len(), |end| end + 2);
            if !lines && rest.get(..length).is_some_and(|comment| comment.contains('\n')) {
                return at;
            }
            at += length;
        } else if rest.starts_with([' ', '\t', '\r']) || (lines && rest.starts_with('\n')) {
            at += 1;
        } else {
            return at;
        }
    }
    at
}
