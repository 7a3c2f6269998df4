//! A transcript as JSON: `{project?, agent_id?, session_id?, messages: [{role, content, timestamp?, message_id?}]}`.
//! Read and checked message by message, so that what is wrong is named with its place, and a long transcript is never
//! held twice. The REST route and the command line read it with the same code.

use std::collections::BTreeMap;

use crate::http::entrance::names_tenant;
use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use jiff::{Timestamp, civil};
use serde_json::{Map, Value};
use waggle_config::limits::{HANDOFF_MESSAGES_MAX, MESSAGE_BYTES_MAX, SCOPE_PART_BYTES_MAX};
use waggle_memory::handoff::MESSAGE_ID_BYTES_MAX;
use waggle_memory::kind::Role;
use waggle_memory::time::Millis;

mod document;

pub use document::{Malformed, read_document};

/// The fields of a scope, as they stand at the top of a transcript.
pub const SCOPE_FIELDS: [&str; 3] = ["project", "agent_id", "session_id"];
/// The fields of a message.
const MESSAGE_FIELDS: [&str; 4] = ["role", "content", "timestamp", "message_id"];
/// How far a timestamp may lie ahead: clocks differ a little, more is a mistake.
const AHEAD_MAX: i64 = 5 * 60 * Millis::SECOND;
/// Names of ignored members that are remembered; further ones are only counted.
const IGNORED_MAX: usize = 20;
/// Letters of such a name that are repeated.
const NAME_CHARS_MAX: usize = 64;

/// Something in a transcript that cannot be taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Position of the message; None for the transcript as a whole.
    pub index: Option<usize>,
    /// The field.
    pub field: String,
    /// The end of a sentence about it.
    pub why: String,
}

impl Problem {
    fn new(index: Option<usize>, field: &str, why: impl Into<String>) -> Self {
        Self {
            index,
            field: field.to_owned(),
            why: why.into(),
        }
    }

    /// `messages[3].content`.
    pub fn place(&self) -> String {
        match self.index {
            Some(index) if self.field.is_empty() => format!("messages[{index}]"),
            Some(index) => format!("messages[{index}].{}", self.field),
            None => self.field.clone(),
        }
    }
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "field '{}' {}", self.place(), self.why)
    }
}

/// Project, agent and session; empty means not given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scope {
    /// Project.
    pub project: String,
    /// Agent.
    pub agent_id: String,
    /// Session.
    pub session_id: String,
}

/// One message that may be stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Who spoke.
    pub role: Role,
    /// What was said.
    pub content: String,
    /// When.
    pub timestamp: Option<Millis>,
    /// The client's name for it; empty without one.
    pub message_id: String,
}

/// A transcript that may be stored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Transcript {
    /// Where it belongs.
    pub scope: Scope,
    /// In order.
    pub messages: Vec<Message>,
    /// Members that nobody reads.
    pub ignored: Ignored,
}

/// Members that a transcript has and nobody reads, with how often they came.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ignored {
    of_transcript: BTreeMap<String, u64>,
    of_messages: BTreeMap<String, u64>,
    further: u64,
    names_tenant: bool,
}

impl Ignored {
    fn note(&mut self, name: &str, of_message: bool) {
        self.names_tenant |= !of_message && names_tenant(name);
        let known = if of_message {
            &mut self.of_messages
        } else {
            &mut self.of_transcript
        };
        let name: String = name.chars().take(NAME_CHARS_MAX).flat_map(char::escape_debug).collect();
        if known.len() < IGNORED_MAX || known.contains_key(&name) {
            *known.entry(name).or_default() += 1;
        } else {
            self.further += 1;
        }
    }

    /// Whether one of the transcript's own would choose a tenant.
    pub(crate) fn names_tenant(&self) -> bool {
        self.names_tenant
    }

    /// A sentence for each.
    pub fn warnings(&self) -> Vec<String> {
        let top = self
            .of_transcript
            .keys()
            .map(|name| format!("member '{name}' is ignored"));
        let inner = self.of_messages.iter();
        let inner = inner.map(|(name, count)| format!("member '{name}' of messages is ignored ({count} times)"));
        let mut all: Vec<String> = top.chain(inner).collect();
        if self.further > 0 {
            all.push(format!("members of other names are ignored ({} times)", self.further));
        }
        all
    }
}

/// Reads one message.
pub fn read_message(index: usize, value: &Value, now: Millis, ignored: &mut Ignored) -> Result<Message, Problem> {
    let wrong = |field: &str, why: String| Err(Problem::new(Some(index), field, why));
    if index >= HANDOFF_MESSAGES_MAX {
        return Err(too_many());
    }
    let Some(fields) = value.as_object() else {
        return wrong("", "must be an object with role and content".to_owned());
    };
    for name in fields.keys().filter(|name| !MESSAGE_FIELDS.contains(&name.as_str())) {
        ignored.note(name, true);
    }
    let text = |field: &str| text_of(fields, field).map_err(|why| Problem::new(Some(index), field, why));
    let Some(role) = text("role")? else {
        return wrong("role", "is missing; one of user, assistant, system, tool".to_owned());
    };
    let Ok(role) = role.parse::<Role>() else {
        return wrong("role", "must be one of user, assistant, system, tool".to_owned());
    };
    let Some(content) = text("content")?.filter(|content| !content.trim().is_empty()) else {
        return wrong(
            "content",
            "is missing or blank; leave messages without text out".to_owned(),
        );
    };
    if content.len() > MESSAGE_BYTES_MAX {
        return wrong(
            "content",
            format!("has {} bytes; the limit is {MESSAGE_BYTES_MAX}", content.len()),
        );
    }
    if content.contains('\0') {
        return wrong("content", "must not hold a NUL character".to_owned());
    }
    let timestamp = match text("timestamp")? {
        None => None,
        Some(given) => match instant(given) {
            Some(at) if at > now.plus(AHEAD_MAX) => {
                return wrong("timestamp", "lies more than 5 minutes ahead".to_owned());
            }
            Some(at) => Some(at),
            None => {
                return wrong(
                    "timestamp",
                    "is no ISO 8601 time; write it as 2026-07-28T09:30:00Z".to_owned(),
                );
            }
        },
    };
    let message_id = text("message_id")?.unwrap_or_default();
    if message_id.len() > MESSAGE_ID_BYTES_MAX {
        return wrong(
            "message_id",
            format!("has {} bytes; the limit is {MESSAGE_ID_BYTES_MAX}", message_id.len()),
        );
    }
    Ok(Message {
        role,
        content: content.to_owned(),
        timestamp,
        message_id: message_id.to_owned(),
    })
}

fn too_many() -> Problem {
    let why = format!("has more than {HANDOFF_MESSAGES_MAX} entries; hand the transcript off in parts");
    Problem::new(None, "messages", why)
}

/// Reads the fields of a scope from an object, whose other members are ignored.
pub fn read_scope(fields: &Map<String, Value>, ignored: &mut Ignored) -> Result<Scope, Problem> {
    let mut scope = Scope::default();
    for (name, value) in fields {
        if !scope.set(name, value)? {
            ignored.note(name, false);
        }
    }
    Ok(scope)
}

impl Scope {
    /// Takes one field. False when it is none of a scope.
    fn set(&mut self, name: &str, value: &Value) -> Result<bool, Problem> {
        let place = match name {
            "project" => &mut self.project,
            "agent_id" => &mut self.agent_id,
            "session_id" => &mut self.session_id,
            _ => return Ok(false),
        };
        let text = string_of(value)
            .map_err(|why| Problem::new(None, name, why))?
            .unwrap_or_default();
        check_scope_part(name, text)?;
        text.clone_into(place);
        Ok(true)
    }
}

/// Checks a value of project, agent or session.
pub fn check_scope_part(name: &str, text: &str) -> Result<(), Problem> {
    if text.len() > SCOPE_PART_BYTES_MAX {
        let why = format!("has {} bytes; the limit is {SCOPE_PART_BYTES_MAX}", text.len());
        return Err(Problem::new(None, name, why));
    }
    if text.contains('\0') {
        return Err(Problem::new(None, name, "must not hold a NUL character"));
    }
    Ok(())
}

fn text_of<'a>(fields: &'a Map<String, Value>, name: &str) -> Result<Option<&'a str>, String> {
    fields.get(name).map_or(Ok(None), string_of)
}

/// Null means not given.
fn string_of(value: &Value) -> Result<Option<&str>, String> {
    match value {
        Value::Null => Ok(None),
        Value::String(text) => Ok(Some(text)),
        _ => Err("must be a string".to_owned()),
    }
}

/// An ISO 8601 time; without a zone it is UTC, without a time of day the start of the day.
fn instant(text: &str) -> Option<Millis> {
    let text = text.trim();
    if let Ok(instant) = text.parse::<Timestamp>() {
        return Some(Millis(instant.as_millisecond()));
    }
    let moment = match text.len() {
        10 => text.parse::<Date>().ok()?.to_datetime(civil::Time::midnight()),
        _ => text.parse::<DateTime>().ok()?,
    };
    let instant = TimeZone::UTC.to_timestamp(moment).ok()?;
    Some(Millis(instant.as_millisecond()))
}

#[cfg(test)]
mod tests;
