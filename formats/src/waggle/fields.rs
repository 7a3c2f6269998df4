//! Fields of a line: present, absent or null, of the right type or refused by name.

use serde_json::{Map, Value};
use uuid::Uuid;
use waggle_memory::time::Millis;

use super::Changes;
use crate::json::{self, Word};

pub(crate) type Object = Map<String, Value>;

/// Name-based ids of Waggle's ids live under this one.
const NAMESPACE: Uuid = Uuid::from_u128(0x6a3c_52de_0f5b_5c1f_9d2e_7a41_c0de_ab11);

/// The line as an object.
pub(crate) fn object(line: Value) -> Result<Object, String> {
    match line {
        Value::Object(members) => Ok(members),
        _ => Err("expected an object".to_owned()),
    }
}

/// A text, empty where absent or null.
pub(crate) fn text(line: &Object, field: &str) -> Result<String, String> {
    match line.get(field) {
        None | Some(Value::Null) => Ok(String::new()),
        Some(Value::String(text)) => Ok(text.replace('\0', "\u{fffd}")),
        Some(_) => Err(format!("{field}: expected a text")),
    }
}

/// A text that must be there and not blank.
pub(crate) fn needed(line: &Object, field: &str) -> Result<String, String> {
    let text = text(line, field)?;
    if text.trim().is_empty() {
        return Err(format!("{field} is missing or blank"));
    }
    Ok(text)
}

/// Texts, without blank ones.
pub(crate) fn texts(line: &Object, field: &str) -> Result<Vec<String>, String> {
    match line.get(field) {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Array(items)) => items
            .iter()
            .map(|item| match item {
                Value::String(text) => Ok(text.trim().replace('\0', "\u{fffd}")),
                _ => Err(format!("{field}: expected texts")),
            })
            .filter(|item| item.as_ref().map_or(true, |text| !text.is_empty()))
            .collect(),
        Some(_) => Err(format!("{field}: expected a list")),
    }
}

/// A time, if there is one. Waggle writes RFC 3339; a time without an offset is UTC.
pub(crate) fn time(line: &Object, field: &str) -> Result<Option<Millis>, String> {
    let text = text(line, field)?;
    let text = text.trim();
    if text.is_empty() {
        return Ok(None);
    }
    let plain = text.replacen(' ', "T", 1);
    let with_zone = format!("{plain}Z");
    let day = format!("{plain}T00:00:00Z");
    [plain.as_str(), &with_zone, &day]
        .into_iter()
        .find_map(Millis::read)
        .map(Some)
        .ok_or_else(|| format!("{field}: expected a time such as 2026-01-31T12:00:00Z"))
}

/// A number that counts something, 0 where absent.
pub(crate) fn count(line: &Object, field: &str) -> Result<u32, String> {
    match line.get(field) {
        None | Some(Value::Null) => Ok(0),
        Some(value) => value
            .as_u64()
            .and_then(|number| u32::try_from(number).ok())
            .ok_or_else(|| format!("{field}: expected a number from 0 to {}", u32::MAX)),
    }
}

/// A UUID; anything else becomes one that is made of its text, and always the same one.
pub(crate) fn uuid(text: &str, changes: &mut Changes) -> Uuid {
    Uuid::try_parse(text.trim()).unwrap_or_else(|_| {
        changes.ids_renamed += 1;
        derived(text)
    })
}

/// The UUID that stands for a text.
pub(crate) fn derived(text: &str) -> Uuid {
    Uuid::new_v5(&NAMESPACE, text.as_bytes())
}

/// Metadata as an object: Waggle also writes it as a text of JSON.
pub(crate) fn metadata(line: &Object) -> Object {
    match line.get("metadata") {
        Some(Value::Object(members)) => members.clone(),
        Some(Value::String(text)) => match json::parse::<Value>(text.as_bytes()) {
            Ok(Value::Object(members)) => members,
            _ => Object::new(),
        },
        _ => Object::new(),
    }
}

/// The text, cut to `bytes_max` on a character boundary.
pub(crate) fn cut(text: String, bytes_max: usize, changes: &mut Changes) -> String {
    if text.len() <= bytes_max {
        return text;
    }
    changes.cut += 1;
    let mut text = text;
    text.truncate(text.floor_char_boundary(bytes_max));
    text
}

/// Takes members of an object by name, absent ones as null.
pub(crate) fn take(from: &mut Object, names: &[&str], into: &mut Object) {
    for name in names {
        let value = from.shift_remove(*name).unwrap_or(Value::Null);
        into.insert((*name).to_owned(), value);
    }
}
