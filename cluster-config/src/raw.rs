//! What the file, the environment and the flags say, before anybody judges it as a whole: each value read by the kind
//! of its key, with the place that it came from. Serde would stop at the first wrong key; an operator wants to hear of
//! all of them at once, with line numbers, so the file is walked against the registry instead.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::keys::{self, Key, Kind, Role};
use crate::problem::{Origin, Problem};

/// A value of the right kind and in its range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    Text(String),
    Path(PathBuf),
    Listen(SocketAddr),
    List(Vec<String>),
    Number(u64),
    Time(Duration),
}

/// A value and where it came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Given {
    pub value: Value,
    pub origin: Origin,
}

/// All that was said, and all that was wrong with how it was said.
#[derive(Clone, Debug, Default)]
pub struct Raw {
    pub(crate) values: BTreeMap<&'static str, Given>,
    pub(crate) problems: Vec<Problem>,
    /// Sections that the file has: they say which role it is for.
    sections: Vec<String>,
}

/// What one place gives for a key, before its kind is known.
enum Said<'a> {
    Text(&'a str),
    Number(u64),
    List(Vec<String>),
    Other(&'static str),
}

impl Raw {
    /// Reads a file. One that cannot be read is a problem like any other.
    pub fn load(path: &Path) -> Self {
        match std::fs::read_to_string(path) {
            Ok(text) => Self::parse(&text, path),
            Err(error) => {
                let problem = Problem::new("config_unreadable", format!("read {}: {error}", path.display()))
                    .advice("name a file that exists and that this user may read");
                Self {
                    problems: vec![problem],
                    ..Self::default()
                }
            }
        }
    }

    /// Reads the text of a file; `path` is for messages and as the start of relative paths.
    pub fn parse(text: &str, path: &Path) -> Self {
        let mut raw = Self::default();
        let line_of = |offset: usize| 1 + text.bytes().take(offset).filter(|byte| *byte == b'\n').count();
        let at = |offset: usize| Origin::File {
            path: path.to_owned(),
            line: line_of(offset),
        };
        let (table, errors) = DeTable::parse_recoverable(text);
        for error in errors {
            let offset = error.span().map_or(0, |span| span.start);
            raw.problems
                .push(Problem::new("config_syntax", error.message().to_owned()).at(at(offset)));
        }
        let base = path.parent().unwrap_or(Path::new(""));
        for (section, inside) in table.get_ref() {
            let name = section.get_ref();
            let Some(inside) = inside.get_ref().as_table() else {
                raw.unknown(name, at(section.span().start));
                continue;
            };
            raw.sections.push(name.to_string());
            for (word, value) in inside {
                let path = format!("{name}.{}", word.get_ref());
                let origin = at(word.span().start);
                match keys::find(&path) {
                    Some(key) => raw.take(key, &said(value), origin, base),
                    None => raw.unknown(&path, origin),
                }
            }
        }
        raw
    }

    /// Lets the environment override: every variable that starts with `WAGGLE__`.
    pub fn overlay_environment(&mut self, variables: impl IntoIterator<Item = (String, String)>) {
        for (variable, text) in variables {
            let Some(name) = variable.strip_prefix("WAGGLE__") else {
                continue;
            };
            let path = name.to_lowercase().replacen("__", ".", 1);
            let origin = Origin::Environment {
                variable: variable.clone(),
            };
            match keys::find(&path) {
                Some(key) => self.take(key, &Said::Text(&text), origin, Path::new("")),
                None => self.unknown(&path, origin),
            }
        }
    }

    /// Lets a flag of the command line override.
    pub fn overlay_flag(&mut self, path: &'static str, flag: &str, text: &str) {
        let origin = Origin::Flag { name: flag.to_owned() };
        match keys::find(path) {
            Some(key) => self.take(key, &Said::Text(text), origin, Path::new("")),
            None => self.unknown(path, origin),
        }
    }

    /// The role that the file is for, by its sections; None if it could be both or neither.
    pub fn role(&self) -> Option<Role> {
        let has = |role: Role| self.sections.iter().any(|section| section == role.word());
        match (has(Role::Node), has(Role::Gateway)) {
            (true, false) => Some(Role::Node),
            (false, true) => Some(Role::Gateway),
            _ => None,
        }
    }

    fn take(&mut self, key: &'static Key, said: &Said<'_>, origin: Origin, base: &Path) {
        match read(key.kind, said, base) {
            Ok(value) => {
                self.values.insert(key.path, Given { value, origin });
            }
            Err(why) => {
                self.problems
                    .push(Problem::new("config_bad_value", format!("{}: {why}", key.path)).at(origin));
            }
        }
    }

    fn unknown(&mut self, path: &str, origin: Origin) {
        let problem = Problem::new("config_unknown_key", format!("unknown key '{}'", path.escape_debug())).at(origin);
        self.problems.push(match keys::nearest(path) {
            Some(near) => problem.advice(format!("did you mean '{near}'?")),
            None => problem.advice("remove it; `waggle config show` lists the keys"),
        });
    }
}

fn said<'a>(value: &'a Spanned<DeValue<'_>>) -> Said<'a> {
    match value.get_ref() {
        DeValue::String(text) => Said::Text(text),
        DeValue::Integer(number) => match u64::from_str_radix(number.as_str(), number.radix()) {
            Ok(number) => Said::Number(number),
            Err(_) => Said::Other("a number that is negative or too large"),
        },
        DeValue::Array(items) => items
            .iter()
            .map(|item| item.get_ref().as_str().map(str::to_owned))
            .collect::<Option<Vec<_>>>()
            .map_or(Said::Other("a list with something else than texts"), Said::List),
        DeValue::Float(_) => Said::Other("a number with a fraction"),
        DeValue::Boolean(_) => Said::Other("true or false"),
        DeValue::Datetime(_) => Said::Other("a date"),
        DeValue::Table(_) => Said::Other("a table"),
    }
}

fn read(kind: Kind, said: &Said<'_>, base: &Path) -> Result<Value, String> {
    match (kind, said) {
        (_, Said::Other(what)) => Err(format!("{what} does not fit; expected {}", expected(kind))),
        (Kind::Text, Said::Text(text)) => Ok(Value::Text((*text).to_owned())),
        (Kind::Word(words), Said::Text(text)) if words.contains(text) => Ok(Value::Text((*text).to_owned())),
        (Kind::Path, Said::Text(text)) if !text.is_empty() => Ok(Value::Path(base.join(text))),
        (Kind::Listen, Said::Text(text)) => text
            .parse()
            .map(Value::Listen)
            .map_err(|_| format!("'{text}' is not {}", expected(kind))),
        (Kind::Remote, Said::Text(text)) if is_remote(text) => Ok(Value::Text((*text).to_owned())),
        (Kind::List, Said::List(items)) => Ok(Value::List(items.clone())),
        // In the environment and in flags a list is written with commas.
        (Kind::List, Said::Text(text)) => Ok(Value::List(
            text.split(',')
                .map(str::trim)
                .filter(|part| !part.is_empty())
                .map(str::to_owned)
                .collect(),
        )),
        (Kind::Count { min, max }, said) => {
            let number = match said {
                Said::Number(number) => Some(*number),
                Said::Text(text) => text.parse().ok(),
                _ => None,
            };
            within(number, min, max, kind).map(Value::Number)
        }
        (Kind::Bytes { min, max }, said) => {
            let number = match said {
                Said::Number(number) => Some(*number),
                Said::Text(text) => parse_bytes(text),
                _ => None,
            };
            within(number, min, max, kind).map(Value::Number)
        }
        (Kind::Time { min, max }, Said::Text(text)) => match parse_time(text) {
            Some(time) if (min..=max).contains(&time) => Ok(Value::Time(time)),
            Some(_) => Err(format!("'{text}' is out of range; expected {}", expected(kind))),
            None => Err(format!("'{text}' is not {}", expected(kind))),
        },
        (_, Said::Text(text)) => Err(format!("'{text}' does not fit; expected {}", expected(kind))),
        (_, Said::Number(number)) => Err(format!("{number} does not fit; expected {}", expected(kind))),
        (_, Said::List(_)) => Err(format!("a list does not fit; expected {}", expected(kind))),
    }
}

fn within(number: Option<u64>, min: u64, max: u64, kind: Kind) -> Result<u64, String> {
    match number {
        Some(number) if (min..=max).contains(&number) => Ok(number),
        Some(number) => Err(format!("{number} is out of range; expected {}", expected(kind))),
        None => Err(format!("expected {}", expected(kind))),
    }
}

/// What a kind of value looks like, for messages and for the reference page.
pub fn expected(kind: Kind) -> String {
    match kind {
        Kind::Text => "a text".to_owned(),
        Kind::Word(words) => format!("one of {}", words.join(", ")),
        Kind::Path => "a path".to_owned(),
        Kind::Listen => "an IP address and a port, such as 127.0.0.1:7700".to_owned(),
        Kind::Remote => "a host and a port, such as node-1.example.org:7710".to_owned(),
        Kind::List => "a list of texts".to_owned(),
        Kind::Count { min, max } => format!("a number from {min} to {max}"),
        Kind::Bytes { min, max } => format!("bytes from {} to {}, such as 512MiB", show_bytes(min), show_bytes(max)),
        Kind::Time { min, max } => format!(
            "a time from {} to {}, such as 150ms or 30s",
            show_time(min),
            show_time(max)
        ),
    }
}

pub(crate) fn is_remote(text: &str) -> bool {
    text.rsplit_once(':').is_some_and(|(host, port)| {
        !host.is_empty() && !host.contains(['/', '@', ' ']) && port.parse::<u16>().is_ok_and(|port| port > 0)
    })
}

const BYTE_UNITS: [(&str, u64); 5] = [
    ("TiB", 1 << 40),
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("B", 1),
];
const TIME_UNITS: [(&str, u64); 5] = [
    ("ms", 1),
    ("s", 1_000),
    ("m", 60_000),
    ("h", 3_600_000),
    ("d", 86_400_000),
];

fn parse_bytes(text: &str) -> Option<u64> {
    let (number, factor) = BYTE_UNITS
        .iter()
        .find_map(|(unit, factor)| text.strip_suffix(unit).map(|number| (number, *factor)))
        .unwrap_or((text, 1));
    number.trim().parse::<u64>().ok()?.checked_mul(factor)
}

fn parse_time(text: &str) -> Option<Duration> {
    let (number, factor) = TIME_UNITS
        .iter()
        .find_map(|(unit, factor)| text.strip_suffix(unit).map(|number| (number, *factor)))?;
    number
        .trim()
        .parse::<u64>()
        .ok()?
        .checked_mul(factor)
        .map(Duration::from_millis)
}

pub(crate) fn show_bytes(bytes: u64) -> String {
    BYTE_UNITS
        .iter()
        .find(|(_, factor)| bytes >= *factor && bytes.is_multiple_of(*factor))
        .map_or_else(
            || format!("{bytes}B"),
            |(unit, factor)| format!("{}{unit}", bytes / factor),
        )
}

pub(crate) fn show_time(time: Duration) -> String {
    let millis = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    TIME_UNITS
        .iter()
        .rev()
        .find(|(_, factor)| millis >= *factor && millis % factor == 0)
        .map_or_else(
            || format!("{millis}ms"),
            |(unit, factor)| format!("{}{unit}", millis / factor),
        )
}

#[cfg(test)]
mod tests;
