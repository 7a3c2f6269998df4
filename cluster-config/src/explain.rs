//! Says which values hold and where each came from, and writes the reference page from the same registry.

use std::fmt::Write as _;

use crate::checked::effective;
use crate::keys::{self, Default, Key, Role};
use crate::limits::{self, Bound, Unit};
use crate::raw::{Raw, Value, expected, show_bytes, show_time};

/// One key as it holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    pub key: &'static str,
    /// None: not set, and no default.
    pub value: Option<String>,
    pub origin: String,
    pub variable: String,
    pub doc: &'static str,
}

/// Every key of a role. Secrets never stand in a configuration, only the names of their files, so nothing is masked.
pub fn rows(raw: &Raw, role: Role) -> Vec<Row> {
    keys::ALL
        .iter()
        .filter(|key| key.roles.contains(&role))
        .map(|key| {
            let (value, origin) = match effective(raw, key) {
                Some((value, origin)) => (Some(show(key, &value)), origin.to_string()),
                None => (None, "not set".to_owned()),
            };
            Row {
                key: key.path,
                value,
                origin,
                variable: key.variable(),
                doc: key.doc,
            }
        })
        .collect()
}

/// The reference of all keys, as a Markdown table.
pub fn keys_reference() -> String {
    let mut page = String::from("| key | for | default | expected | |\n|---|---|---|---|---|\n");
    for key in keys::ALL {
        let roles: Vec<_> = key.roles.iter().map(|role| role.word()).collect();
        let default = match key.default {
            Default::Required => "**required**".to_owned(),
            Default::Nothing => "-".to_owned(),
            _ => effective(&Raw::default(), key)
                .map_or_else(String::new, |(value, _)| format!("`{}`", show(key, &value))),
        };
        // Writing to a String cannot fail.
        let _ = writeln!(
            page,
            "| `{}` | {} | {default} | {} | {} |",
            key.path,
            roles.join(", "),
            expected(key.kind),
            key.doc
        );
    }
    page
}

/// The reference of all bounds, as a Markdown table.
pub fn limits_reference() -> String {
    let mut page = String::from("| bound | value | what | costs |\n|---|---|---|---|\n");
    for bound in limits::ALL {
        let _ = writeln!(
            page,
            "| `{}` | {} | {} | {} |",
            bound.name,
            show_bound(bound),
            bound.doc.trim(),
            bound.cost
        );
    }
    page
}

fn show_bound(bound: &Bound) -> String {
    match bound.unit {
        Unit::Bytes => show_bytes(bound.value),
        Unit::Count => bound.value.to_string(),
        Unit::Tokens => format!("{} tokens", bound.value),
        Unit::PerMinute => format!("{} a minute", bound.value),
        Unit::Millis => show_time(std::time::Duration::from_millis(bound.value)),
    }
}

fn show(key: &Key, value: &Value) -> String {
    match value {
        Value::Text(text) => text.clone(),
        Value::Path(path) => path.display().to_string(),
        Value::Listen(address) => address.to_string(),
        Value::List(items) => items.join(", "),
        Value::Number(number) if matches!(key.kind, keys::Kind::Bytes { .. }) => show_bytes(*number),
        Value::Number(number) => number.to_string(),
        Value::Time(time) => show_time(*time),
    }
}
