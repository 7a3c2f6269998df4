//! Edits JSON with comments in place: what is not ours keeps every byte. The text is never printed anew; an edit is a few
//! insertions and deletions at places that a parse of the text gave.
//!
//! Accepted is what editors accept: comments and trailing commas. Anything looser (single quotes, missing commas, bare
//! names) is malformed, because the client that owns the file would not read it either.

use jsonc_parser::ast::{Object, ObjectProp, Value as Ast};
use jsonc_parser::common::Ranged as _;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};
use serde_json::{Map, Value};

use super::edit::{Splice, TextStyle, apply};
use super::malformed::Malformed;

const BOM: char = '\u{feff}';

/// The value at a path of property names; None where a step is missing.
pub(crate) fn get(text: &str, path: &[&str]) -> Result<Option<Value>, Malformed> {
    let body = without_bom(text);
    let Some(root) = parse(body)? else { return Ok(None) };
    let mut at = &root;
    for (depth, name) in path.iter().enumerate() {
        let object = as_object(body, at, path.get(..depth).unwrap_or_default())?;
        match property(body, object, name)? {
            Some((_, found)) => at = &found.value,
            None => return Ok(None),
        }
    }
    Ok(Some(to_value(at)))
}

/// Sets the value at a path, making the objects on the way.
pub(crate) fn set(text: &str, path: &[&str], value: &Value) -> Result<String, Malformed> {
    edit(text, |body, root| {
        let style = TextStyle::of(body);
        let Some(root) = root else {
            let whole = path.iter().rev().fold(value.clone(), |inner, name| nest(name, inner));
            return Ok(vec![after_comments(body, &style, &whole)]);
        };
        let mut at = root;
        for (depth, name) in path.iter().enumerate() {
            let object = as_object(body, at, path.get(..depth).unwrap_or_default())?;
            let rest = path.get(depth + 1..).unwrap_or_default();
            match property(body, object, name)? {
                Some((_, found)) if rest.is_empty() => {
                    let indent = style.indent_at(body, found.range.start);
                    let inline = !spans_lines(body, object);
                    return Ok(vec![Splice::replace(
                        found.value.range().start..found.value.range().end,
                        style.value(value, &indent, inline),
                    )]);
                }
                Some((_, found)) => at = &found.value,
                None => {
                    let inner = rest.iter().rev().fold(value.clone(), |inner, name| nest(name, inner));
                    return Ok(insert(body, object, name, &inner, &style));
                }
            }
        }
        Ok(Vec::new())
    })
}

/// Removes the property at a path; the text is the same when there is none.
pub(crate) fn remove(text: &str, path: &[&str]) -> Result<String, Malformed> {
    let Some((name, parents)) = path.split_last() else {
        return Ok(text.to_owned());
    };
    edit(text, |body, root| {
        let Some(mut at) = root else { return Ok(Vec::new()) };
        for (depth, parent) in parents.iter().enumerate() {
            let object = as_object(body, at, path.get(..depth).unwrap_or_default())?;
            match property(body, object, parent)? {
                Some((_, found)) => at = &found.value,
                None => return Ok(Vec::new()),
            }
        }
        let object = as_object(body, at, parents)?;
        let items: Vec<_> = object.properties.iter().map(|one| span(one.range)).collect();
        Ok(match property(body, object, name)? {
            Some((index, _)) => take_out(body, span(object.range), &items, index),
            None => Vec::new(),
        })
    })
}

/// Puts an object into the array at a path of one name, in the place of one with the same `id`, else at the end.
pub(crate) fn set_item(text: &str, array: &str, id: &str, value: &Value) -> Result<String, Malformed> {
    match get(text, &[array])? {
        None => set(text, &[array], &Value::Array(vec![value.clone()])),
        Some(_) => edit(text, |body, root| {
            let style = TextStyle::of(body);
            let Some(found) = array_at(body, root, array)? else {
                return Ok(Vec::new());
            };
            let same = found.elements.iter().find(|one| to_value(one)["id"] == id);
            if let Some(same) = same {
                let indent = style.indent_at(body, same.range().start);
                return Ok(vec![Splice::replace(
                    span(same.range()),
                    style.value(value, &indent, false),
                )]);
            }
            let items: Vec<_> = found.elements.iter().map(|one| span(one.range())).collect();
            Ok(put_in(body, span(found.range), &items, &style, &|indent, inline| {
                style.value(value, indent, inline)
            }))
        }),
    }
}

/// Removes the object with the `id` from the array.
pub(crate) fn remove_item(text: &str, array: &str, id: &str) -> Result<String, Malformed> {
    edit(text, |body, root| {
        let Some(found) = array_at(body, root, array)? else {
            return Ok(Vec::new());
        };
        let items: Vec<_> = found.elements.iter().map(|one| span(one.range())).collect();
        let index = found.elements.iter().position(|one| to_value(one)["id"] == id);
        Ok(index.map_or_else(Vec::new, |index| take_out(body, span(found.range), &items, index)))
    })
}

fn array_at<'a, 'b>(
    body: &str,
    root: Option<&'b Ast<'a>>,
    name: &str,
) -> Result<Option<&'b jsonc_parser::ast::Array<'a>>, Malformed> {
    let Some(root) = root else { return Ok(None) };
    let object = as_object(body, root, &[])?;
    match property(body, object, name)? {
        None => Ok(None),
        Some((_, found)) => found
            .value
            .as_array()
            .map(Some)
            .ok_or_else(|| Malformed::at(body, found.value.range().start, format!("'{name}' is not a list"))),
    }
}

type Splices = Result<Vec<Splice>, Malformed>;

fn edit(text: &str, plan: impl FnOnce(&str, Option<&Ast<'_>>) -> Splices) -> Result<String, Malformed> {
    let body = without_bom(text);
    let root = parse(body)?;
    let splices = plan(body, root.as_ref())?;
    let changed = apply(body, splices);
    Ok(if text.starts_with(BOM) {
        format!("{BOM}{changed}")
    } else {
        changed
    })
}

fn without_bom(text: &str) -> &str {
    text.strip_prefix(BOM).unwrap_or(text)
}

fn parse(body: &str) -> Result<Option<Ast<'_>>, Malformed> {
    let options = ParseOptions {
        allow_comments: true,
        allow_trailing_commas: true,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    };
    parse_to_ast(body, &CollectOptions::default(), &options)
        .map(|parsed| parsed.value)
        .map_err(|error| Malformed {
            line: error.line_display(),
            column: error.column_display(),
            what: error.kind().to_string(),
        })
}

fn as_object<'a, 'b>(body: &str, value: &'b Ast<'a>, path: &[&str]) -> Result<&'b Object<'a>, Malformed> {
    value.as_object().ok_or_else(|| {
        let name = path
            .last()
            .map_or_else(|| "the file".to_owned(), |name| format!("'{name}'"));
        Malformed::at(body, value.range().start, format!("{name} is not an object"))
    })
}

/// The one property of a name. Two of the same name are refused: readers differ in which one counts.
fn property<'a, 'b>(
    body: &str,
    object: &'b Object<'a>,
    name: &str,
) -> Result<Option<(usize, &'b ObjectProp<'a>)>, Malformed> {
    let mut found = object
        .properties
        .iter()
        .enumerate()
        .filter(|(_, one)| one.name.as_str() == name);
    let first = found.next();
    match found.next() {
        Some((_, second)) => Err(Malformed::at(
            body,
            second.range.start,
            format!("'{name}' is here a second time"),
        )),
        None => Ok(first),
    }
}

fn to_value(ast: &Ast<'_>) -> Value {
    match ast {
        Ast::StringLit(text) => Value::String(text.value.to_string()),
        Ast::NumberLit(number) => serde_json::from_str(number.value).unwrap_or(Value::Null),
        Ast::BooleanLit(word) => Value::Bool(word.value),
        Ast::NullKeyword(_) => Value::Null,
        Ast::Array(array) => array.elements.iter().map(to_value).collect(),
        Ast::Object(object) => Value::Object(
            object
                .properties
                .iter()
                .map(|one| (one.name.as_str().to_owned(), to_value(&one.value)))
                .collect(),
        ),
    }
}

fn nest(name: &str, inner: Value) -> Value {
    Value::Object(Map::from_iter([(name.to_owned(), inner)]))
}

/// A document of nothing, or of comments only, gets its object at the end.
fn after_comments(body: &str, style: &TextStyle, whole: &Value) -> Splice {
    let text = style.value(whole, "", false);
    if body.trim().is_empty() {
        return Splice::replace(0..body.len(), format!("{text}{}", style.newline));
    }
    let gap = if body.ends_with('\n') { "" } else { style.newline };
    Splice::replace(body.len()..body.len(), format!("{gap}{text}{}", style.newline))
}

fn span(range: jsonc_parser::common::Range) -> std::ops::Range<usize> {
    range.start..range.end
}

fn spans_lines(body: &str, object: &Object<'_>) -> bool {
    body.get(span(object.range)).is_some_and(|text| text.contains('\n')) || object.properties.is_empty()
}

fn insert(body: &str, object: &Object<'_>, name: &str, value: &Value, style: &TextStyle) -> Vec<Splice> {
    let items: Vec<_> = object.properties.iter().map(|one| span(one.range)).collect();
    put_in(body, span(object.range), &items, style, &|indent, inline| {
        format!("{}: {}", Value::from(name), style.value(value, indent, inline))
    })
}

/// Adds an item at the end of a bracketed list of items.
fn put_in(
    body: &str,
    whole: std::ops::Range<usize>,
    items: &[std::ops::Range<usize>],
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
fn take_out(body: &str, whole: std::ops::Range<usize>, items: &[std::ops::Range<usize>], index: usize) -> Vec<Splice> {
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

#[cfg(test)]
mod tests;
