//! Edits JSON with comments in place: what is not ours keeps every byte. The text is never printed anew; an edit is a few
//! insertions and deletions at places that a parse of the text gave.
//!
//! Accepted is what editors accept: comments and trailing commas. Anything looser (single quotes, missing commas, bare
//! names) is malformed, because the client that owns the file would not read it either.

mod list;

use jsonc_parser::ast::{Object, ObjectProp, Value as Ast};
use jsonc_parser::common::Ranged as _;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};
use serde_json::{Map, Value};

use super::edit::{Splice, TextStyle, apply};
use super::malformed::Malformed;
use list::{put_in, take_out};

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

#[cfg(test)]
mod tests;
