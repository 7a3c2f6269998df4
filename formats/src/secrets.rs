//! Secrets in records, looked for before every export. A finding says what kind of secret stands in which field of
//! which record, never the value.
//!
//! Patterns and their bounds are those of the extraction (`waggle_memory::extract::secrets`): linear in the text.

mod fields;

use std::fmt;

use serde_json::Value;
use waggle_memory::extract::secrets::{Secret, SecretKind, find_secrets, is_named_secret};
use waggle_memory::memory::Memory;
use waggle_memory::read::{StatementInput, read_statement};
use waggle_memory::record::Record;

use crate::limits::METADATA_BYTES_MAX;
use crate::{check, json};

/// A secret in a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What it looks like.
    pub kind: SecretKind,
    /// Sort and id of the record.
    pub record: String,
    /// The field, such as `evidence_records[2].source_text`.
    pub field: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} in {} of {}", self.kind.word(), self.field, self.record)
    }
}

/// What is secret in a record.
pub fn scan(record: &Record) -> Vec<Finding> {
    // The walk over fields changes what it visits; a copy is one record.
    let mut copy = record.clone();
    let mut findings = Vec::new();
    let of = check::name(record);
    fields::visit(&mut copy, &mut |field, text| {
        for secret in secrets_of(field, text) {
            findings.push(Finding {
                kind: secret,
                record: of.clone(),
                field: field.to_owned(),
            });
        }
    });
    findings
}

/// Puts `[secret:kind]` in place of every secret and says how many there were. What rules read in a changed memory is
/// read again, because fingerprints of a short secret could be guessed. Spans of evidence still point to where the
/// words were.
pub fn redact(record: &mut Record) -> usize {
    let mut count = 0;
    let mut statement_changed = false;
    fields::visit(record, &mut |field, text| {
        let (redacted, found) = if field == fields::METADATA {
            redact_metadata(text)
        } else {
            redact_text(text, fields::bytes_max(field))
        };
        if found > 0 {
            statement_changed |= matches!(field, fields::LABEL | fields::CONTENT) || field.starts_with("statement");
            count += found;
            *text = redacted;
        }
    });
    if count == 0 {
        return 0;
    }
    // So would the fingerprint and the identity of the message.
    if let Record::Turn(_, message) = record {
        *message = None;
    }
    if let Record::Memory(memory) = record {
        for alias in &mut memory.memory.aliases {
            // The fingerprint of a redacted wording would find the secret again.
            if alias.text.contains("[secret:") {
                alias.exact = None;
            }
        }
        if statement_changed {
            read_again(&mut memory.memory);
        }
    }
    count
}

fn read_again(memory: &mut Memory) {
    memory.statement = read_statement(&StatementInput {
        label: &memory.label,
        content: &memory.content,
        kind: memory.kind,
        author: &memory.author.0,
        observed_at: memory.recorded_at,
    });
}

fn secrets_of(field: &str, text: &str) -> Vec<SecretKind> {
    if field == fields::METADATA {
        let mut value = parsed(text);
        let mut kinds = Vec::new();
        walk(&mut value, "", &mut |text, name| {
            kinds.extend(of_value(text, name).iter().map(|s| s.kind))
        });
        return kinds;
    }
    find_secrets(text).iter().map(|secret| secret.kind).collect()
}

pub(crate) fn redact_text(text: &str, bytes_max: usize) -> (String, usize) {
    let found = find_secrets(text);
    (replaced(text, &found, bytes_max), found.len())
}

pub(crate) fn redact_metadata(text: &str) -> (String, usize) {
    let mut value = parsed(text);
    let mut count = 0;
    walk(&mut value, "", &mut |text, name| {
        let found = of_value(text, name);
        count += found.len();
        *text = replaced(text, &found, usize::MAX);
    });
    let mut redacted = json::canonical(&value);
    // Marks may be longer than what they replace. Half an object is none, so it goes as a whole.
    if redacted.len() > METADATA_BYTES_MAX {
        redacted.clear();
    }
    (redacted, count)
}

fn parsed(text: &str) -> Value {
    json::parse(text.as_bytes()).unwrap_or(Value::String(text.to_owned()))
}

/// All of a text whose name makes it a secret, else what looks like one.
fn of_value(text: &str, name: &str) -> Vec<Secret> {
    if is_named_secret(name, text) {
        return vec![Secret {
            kind: SecretKind::Password,
            start: 0,
            end: text.len(),
        }];
    }
    // `key:ID` names who wrote, and says in these very letters what a password would look like.
    let principal = (name == "claimed_author").then(|| text.strip_prefix("key:")).flatten();
    match principal {
        Some(id) => find_secrets(id),
        None => find_secrets(text),
    }
}

/// Every text of a value with the name that it has. Names are texts, too.
fn walk(value: &mut Value, name: &str, visit: &mut impl FnMut(&mut String, &str)) {
    match value {
        Value::String(text) => visit(text, name),
        Value::Array(items) => items.iter_mut().for_each(|item| walk(item, name, visit)),
        Value::Object(members) => {
            let old = std::mem::take(members);
            for (mut key, mut value) in old {
                walk(&mut value, &key, visit);
                visit(&mut key, "");
                members.insert(key, value);
            }
        }
        _ => {}
    }
}

fn replaced(text: &str, found: &[Secret], bytes_max: usize) -> String {
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    for secret in found {
        out.push_str(text.get(at..secret.start).unwrap_or_default());
        out.push_str(&secret.kind.mark());
        at = secret.end;
    }
    out.push_str(text.get(at..).unwrap_or_default());
    // The mark may be longer than what it replaces.
    if out.len() > bytes_max {
        out.truncate(out.floor_char_boundary(bytes_max));
    }
    out
}
