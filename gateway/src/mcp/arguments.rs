//! Arguments of a call, checked against the table before anything runs. A refusal names the field, the limit and the
//! value, and for an unknown field the nearest known one.

use std::collections::BTreeMap;

use rmcp::model::JsonObject;
use serde_json::Value;
use uuid::Uuid;
use waggle_memory::time::Millis;
use xxhash_rust::xxh3::Xxh3;

use crate::fault::Fault;
use crate::mcp::schema::{Field, FieldKind, ToolSpec};
use crate::mcp::times;

/// Longest piece of a caller's value that a refusal repeats.
const QUOTED_CHARS_MAX: usize = 80;

/// A checked value.
#[derive(Clone, Debug, PartialEq)]
enum Argument {
    Text(String),
    Integer(i64),
    Number(f64),
    Flag(bool),
    Texts(Vec<String>),
    Id([u8; 16]),
    Ids(Vec<Vec<u8>>),
    Time(Millis),
}

/// All arguments of a call, defaults filled in.
#[derive(Clone, Debug, Default)]
pub(crate) struct Arguments {
    values: BTreeMap<&'static str, Argument>,
}

impl Arguments {
    pub(crate) fn check(tool: &ToolSpec, given: &JsonObject, now: Millis) -> Result<Self, Fault> {
        let allowed: Vec<&str> = tool
            .fields()
            .filter(|field| field.listed)
            .map(|field| field.name)
            .collect();
        for name in given.keys() {
            if !tool.fields().any(|field| field.name == name) {
                return Err(unknown_field(name, &allowed));
            }
        }
        let mut values = BTreeMap::new();
        for field in tool.fields() {
            let value = match given.get(field.name) {
                Some(Value::Null) if matches!(field.kind, FieldKind::Depth) => None,
                Some(value) => Some(check_value(field, value, now)?),
                None if field.required => {
                    let what = format!(
                        "field '{}' is missing; required: {}",
                        field.name,
                        tool.fields()
                            .filter(|field| field.required)
                            .map(|field| field.name)
                            .collect::<Vec<_>>()
                            .join(", ")
                    );
                    return Err(Fault::validation(field.name, what));
                }
                None => default_of(field),
            };
            if let Some(value) = value {
                values.insert(field.name, value);
            }
        }
        Ok(Self { values })
    }

    /// "" where nothing was given.
    pub(crate) fn text(&self, name: &str) -> &str {
        self.optional_text(name).unwrap_or_default()
    }

    pub(crate) fn optional_text(&self, name: &str) -> Option<&str> {
        match self.values.get(name) {
            Some(Argument::Text(text)) => Some(text),
            _ => None,
        }
    }

    pub(crate) fn integer(&self, name: &str) -> i64 {
        self.optional_integer(name).unwrap_or_default()
    }

    pub(crate) fn optional_integer(&self, name: &str) -> Option<i64> {
        match self.values.get(name) {
            Some(Argument::Integer(number)) => Some(*number),
            _ => None,
        }
    }

    /// An integer whose limits are those of the wire.
    pub(crate) fn count(&self, name: &str) -> u32 {
        u32::try_from(self.integer(name)).unwrap_or_default()
    }

    pub(crate) fn number(&self, name: &str) -> f64 {
        match self.values.get(name) {
            Some(Argument::Number(number)) => *number,
            _ => 0.0,
        }
    }

    pub(crate) fn flag(&self, name: &str) -> bool {
        matches!(self.values.get(name), Some(Argument::Flag(true)))
    }

    pub(crate) fn texts(&self, name: &str) -> &[String] {
        self.optional_texts(name).unwrap_or_default()
    }

    pub(crate) fn optional_texts(&self, name: &str) -> Option<&[String]> {
        match self.values.get(name) {
            Some(Argument::Texts(texts)) => Some(texts),
            _ => None,
        }
    }

    pub(crate) fn optional_id(&self, name: &str) -> Option<[u8; 16]> {
        match self.values.get(name) {
            Some(Argument::Id(id)) => Some(*id),
            _ => None,
        }
    }

    /// The bytes of several ids.
    pub(crate) fn ids(&self, name: &str) -> &[Vec<u8>] {
        match self.values.get(name) {
            Some(Argument::Ids(ids)) => ids,
            _ => &[],
        }
    }

    /// The bytes of an id; empty where none was given, as on the wire.
    pub(crate) fn id(&self, name: &str) -> Vec<u8> {
        self.optional_id(name).map(Vec::from).unwrap_or_default()
    }

    pub(crate) fn optional_time(&self, name: &str) -> Option<Millis> {
        match self.values.get(name) {
            Some(Argument::Time(time)) => Some(*time),
            _ => None,
        }
    }

    pub(crate) fn scope(&self) -> waggle_proto::wire::Scope {
        waggle_proto::wire::Scope {
            project: self.text("project").to_owned(),
            agent_id: self.text("agent_id").to_owned(),
            session_id: self.text("session_id").to_owned(),
        }
    }
}

fn default_of(field: &Field) -> Option<Argument> {
    match &field.kind {
        FieldKind::Text { default, .. } | FieldKind::Word { default, .. } => {
            default.map(|text| Argument::Text(text.to_owned()))
        }
        FieldKind::Integer { default, .. } => default.map(Argument::Integer),
        FieldKind::Number { default, .. } => default.map(Argument::Number),
        FieldKind::Flag { default } => Some(Argument::Flag(*default)),
        FieldKind::Texts { .. }
        | FieldKind::Words { .. }
        | FieldKind::Depth
        | FieldKind::Id
        | FieldKind::Ids { .. }
        | FieldKind::Time => None,
    }
}

fn check_value(field: &Field, value: &Value, now: Millis) -> Result<Argument, Fault> {
    match &field.kind {
        FieldKind::Text { bytes_max, .. } => check_text(field.name, value, *bytes_max).map(Argument::Text),
        FieldKind::Word { allowed, aliases, .. } => {
            let word = value
                .as_str()
                .ok_or_else(|| wrong_type(field.name, "a string", value))?;
            let canonical = aliases
                .iter()
                .find(|(alias, _)| *alias == word)
                .map_or(word, |(_, canonical)| canonical);
            check_word(field.name, canonical, &allowed()).map(Argument::Text)
        }
        FieldKind::Integer { min, max, .. } => {
            let number = whole(value).ok_or_else(|| wrong_type(field.name, "an integer", value))?;
            if number < *min || number > *max {
                return Err(outside(
                    field.name,
                    &number.to_string(),
                    &min.to_string(),
                    &max.to_string(),
                ));
            }
            Ok(Argument::Integer(number))
        }
        FieldKind::Number { min, max, .. } => {
            let number = value
                .as_f64()
                .ok_or_else(|| wrong_type(field.name, "a number", value))?;
            if number < *min || number > *max {
                return Err(outside(
                    field.name,
                    &number.to_string(),
                    &min.to_string(),
                    &max.to_string(),
                ));
            }
            Ok(Argument::Number(number))
        }
        FieldKind::Flag { .. } => value
            .as_bool()
            .map(Argument::Flag)
            .ok_or_else(|| wrong_type(field.name, "true or false", value)),
        FieldKind::Texts {
            items_max, bytes_max, ..
        } => {
            let items = list(field.name, value, *items_max)?;
            let texts = items
                .iter()
                .map(|item| check_text(field.name, item, *bytes_max))
                .collect::<Result<_, _>>()?;
            Ok(Argument::Texts(texts))
        }
        FieldKind::Words { items_max, allowed } => {
            let allowed = allowed();
            let words = list(field.name, value, *items_max)?
                .iter()
                .map(|item| {
                    let word = item
                        .as_str()
                        .ok_or_else(|| wrong_type(field.name, "an array of strings", value))?;
                    check_word(field.name, word, &allowed)
                })
                .collect::<Result<_, _>>()?;
            Ok(Argument::Texts(words))
        }
        FieldKind::Depth => whole(value)
            .map(|depth| Argument::Integer(depth.max(0)))
            .ok_or_else(|| Fault::validation(field.name, format!("{} must be an integer or null", field.name))),
        FieldKind::Id => check_id(field.name, value).map(Argument::Id),
        FieldKind::Ids { items_max } => {
            let items = list(field.name, value, *items_max)?.iter();
            let ids = items.map(|item| check_id(field.name, item).map(Vec::from));
            ids.collect::<Result<_, _>>().map(Argument::Ids)
        }
        FieldKind::Time => {
            let text = value
                .as_str()
                .ok_or_else(|| wrong_type(field.name, "a string", value))?;
            times::parse(text, now).map(Argument::Time).map_err(|why| {
                Fault::validation(
                    field.name,
                    format!("field '{}' is '{}', which {why}", field.name, quoted(text)),
                )
            })
        }
    }
}

fn check_id(name: &str, value: &Value) -> Result<[u8; 16], Fault> {
    let text = value.as_str().ok_or_else(|| wrong_type(name, "a string", value))?;
    // Only the usual form: the library would also read braces and URNs.
    match Uuid::try_parse(text) {
        Ok(id) if text.len() == 36 => Ok(id.into_bytes()),
        _ => Err(Fault::validation(
            name,
            format!(
                "field '{name}' is '{}', not an id; use the id of an answer, such as 0197c1f2-7a64-7000-8000-2f1d3c5e7a90",
                quoted(text)
            ),
        )),
    }
}

fn check_text(name: &str, value: &Value, bytes_max: usize) -> Result<String, Fault> {
    let text = value.as_str().ok_or_else(|| wrong_type(name, "a string", value))?;
    if text.len() > bytes_max {
        let advice = match name {
            "content" => "store one statement, and long text with decompose_and_store",
            "user_message" | "assistant_response" => "split the text into several turns",
            _ => "shorten it",
        };
        return Err(Fault::new(
            "payload_too_large",
            format!(
                "field '{name}' has {} bytes; the limit is {bytes_max}; {advice}",
                text.len()
            ),
        )
        .with_field(name));
    }
    if text.contains('\0') {
        return Err(Fault::validation(
            name,
            format!("field '{name}' has a NUL character; remove it"),
        ));
    }
    Ok(if name == "label" {
        plain_label(text)
    } else {
        text.to_owned()
    })
}

/// Labels are one line without control characters.
fn plain_label(text: &str) -> String {
    let spaced = text
        .chars()
        .map(|c| if matches!(c, '\n' | '\r' | '\t') { ' ' } else { c });
    spaced.filter(|c| !c.is_control()).collect::<String>().trim().to_owned()
}

fn check_word(name: &str, word: &str, allowed: &[&str]) -> Result<String, Fault> {
    if allowed.contains(&word) {
        return Ok(word.to_owned());
    }
    let hint = nearest(word, allowed)
        .map(|near| format!("; did you mean '{near}'?"))
        .unwrap_or_else(|| ";".to_owned());
    Err(Fault::validation(
        name,
        format!(
            "field '{name}' is '{}'{hint} Allowed: {}",
            quoted(word),
            allowed.join(", ")
        ),
    ))
}

fn list<'a>(name: &str, value: &'a Value, items_max: usize) -> Result<&'a [Value], Fault> {
    let items = value
        .as_array()
        .ok_or_else(|| wrong_type(name, "an array of strings", value))?;
    if items.len() > items_max {
        return Err(Fault::validation(
            name,
            format!("field '{name}' has {} entries; the limit is {items_max}", items.len()),
        ));
    }
    Ok(items)
}

/// 5 and 5.0 are the same number in JSON.
fn whole(value: &Value) -> Option<i64> {
    value.as_i64().or_else(|| {
        let number = value.as_f64()?;
        (number.fract() == 0.0 && number.abs() < 1e15).then_some(number as i64)
    })
}

fn wrong_type(name: &str, expected: &str, value: &Value) -> Fault {
    let got = match value {
        Value::Null => "null; leave the field out instead",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    };
    Fault::validation(name, format!("field '{name}' must be {expected}, not {got}"))
}

fn outside(name: &str, actual: &str, min: &str, max: &str) -> Fault {
    Fault::validation(name, format!("field '{name}' is {actual}; the limit is {min} to {max}"))
}

/// `unknown field 'user_text'; did you mean 'user_message'? Allowed: ...`.
pub(crate) fn unknown_field(name: &str, allowed: &[&str]) -> Fault {
    let hint = nearest(name, allowed)
        .map(|near| format!(" did you mean '{near}'?"))
        .unwrap_or_default();
    Fault::validation(
        &name.chars().take(QUOTED_CHARS_MAX).collect::<String>(),
        format!(
            "unknown field '{}';{hint} Allowed: {}",
            quoted(name),
            allowed.join(", ")
        ),
    )
}

fn quoted(text: &str) -> String {
    let mut short: String = text
        .chars()
        .take(QUOTED_CHARS_MAX)
        .flat_map(char::escape_debug)
        .collect();
    if text.chars().nth(QUOTED_CHARS_MAX).is_some() {
        short.push('…');
    }
    short
}

/// The allowed word at the smallest edit distance, unless nothing is near.
fn nearest<'a>(word: &str, allowed: &[&'a str]) -> Option<&'a str> {
    let word: Vec<char> = word.chars().take(64).collect();
    let scored = allowed
        .iter()
        .map(|candidate| (distance(&word, &candidate.chars().collect::<Vec<_>>()), *candidate));
    let (best, candidate) = scored.min_by_key(|(distance, _)| *distance)?;
    let longest = word.len().max(candidate.chars().count());
    (best * 3 <= longest * 2).then_some(candidate)
}

/// Levenshtein.
fn distance(one: &[char], two: &[char]) -> usize {
    let mut row: Vec<usize> = (0..=two.len()).collect();
    for (i, a) in one.iter().enumerate() {
        let mut diagonal = i;
        let mut left = i + 1;
        for (b, above) in two.iter().zip(row.iter_mut().skip(1)) {
            let replaced = diagonal + usize::from(a != b);
            diagonal = *above;
            left = replaced.min(*above + 1).min(left + 1);
            *above = left;
        }
        if let Some(first) = row.first_mut() {
            *first = i + 1;
        }
    }
    row.last().copied().unwrap_or_default()
}

/// The arguments as one number: equal for equal JSON whatever the order of fields, and whether a default is spelled out
/// or left away. The cursor is not part of them.
pub(crate) fn fingerprint(tool: &ToolSpec, given: &JsonObject) -> u64 {
    let mut hasher = Xxh3::new();
    hasher.update(tool.name.as_bytes());
    let is_default =
        |name: &str, value: &Value| tool.fields().any(|field| field.name == name && field.is_default(value));
    let mut names: Vec<&String> = given
        .iter()
        .filter(|(name, value)| name.as_str() != "cursor" && !is_default(name, value))
        .map(|(name, _)| name)
        .collect();
    names.sort();
    for name in names {
        hasher.update(&[0]);
        hasher.update(name.as_bytes());
        hasher.update(&[0]);
        // Values are primitives or flat arrays: their text is canonical.
        if let Some(value) = given.get(name) {
            hasher.update(value.to_string().as_bytes());
        }
    }
    hasher.digest()
}

#[cfg(test)]
mod tests;
