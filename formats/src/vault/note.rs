//! One file of a vault, taken apart: which memory it is about and what it says of it. Nothing is judged here.

use std::str::FromStr;

use waggle_memory::id::MemoryId;
use waggle_memory::time::Millis;

use super::body::{self, Body};
use super::yaml::{self, Yaml};

/// A file, read.
#[derive(Clone, Debug)]
pub(super) struct Note {
    pub(super) path: String,
    front: Yaml,
    pub(super) body: Body,
}

/// Why a file cannot be read, or one of its fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BadField {
    pub(super) field: &'static str,
    pub(super) given: String,
    pub(super) why: String,
}

impl BadField {
    fn new(field: &'static str, given: &str, why: impl Into<String>) -> Self {
        Self {
            field,
            given: given.chars().take(200).collect(),
            why: why.into(),
        }
    }
}

/// What a file says about one field that may be absent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Said<T> {
    /// Nothing: there is no such key.
    Nothing,
    /// That there is no value.
    None,
    /// A value.
    Value(T),
}

impl Note {
    /// Takes a file apart. A file without front matter is a note that a person wrote.
    pub(super) fn read(path: &str, text: &str) -> Result<Self, BadField> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let converted;
        // An editor that writes CR LF does so on every line, the first included.
        let text = if text.split('\n').next().is_some_and(|first| first.ends_with('\r')) {
            converted = text.replace("\r\n", "\n");
            converted.as_str()
        } else {
            text
        };
        let (front, rest) = split(text);
        let front = yaml::parse(front).map_err(|e| BadField::new("front_matter", "", e.to_string()))?;
        let body = body::read(rest).map_err(|e| BadField::new("body", "", e.to_string()))?;
        let path = path.to_owned();
        Ok(Self { path, front, body })
    }

    /// A text of the front matter; None when it is absent, null or no text.
    pub(super) fn text(&self, key: &str) -> Option<&str> {
        self.front.text_of(key)
    }

    /// The records of a list of the front matter.
    pub(super) fn records(&self, key: &str) -> &[Yaml] {
        self.front.get(key).map(Yaml::list).unwrap_or_default()
    }

    /// Which memory it is about.
    pub(super) fn id(&self) -> Result<Option<MemoryId>, BadField> {
        let Some(text) = self.text("node_id").filter(|text| !text.trim().is_empty()) else {
            return Ok(None);
        };
        MemoryId::from_str(text.trim())
            .map(Some)
            .map_err(|_| BadField::new("node_id", text, "is not a UUID; remove the line to store a new memory"))
    }

    /// The version that was current when the file was written. The older product wrote none.
    pub(super) fn version(&self) -> Option<u32> {
        self.text("version").and_then(|text| text.parse().ok())
    }

    /// The label: the first heading, else the name of the file.
    pub(super) fn label(&self) -> &str {
        let stem = || {
            let name = self.path.rsplit('/').next().unwrap_or(&self.path);
            name.strip_suffix(".md").unwrap_or(name)
        };
        self.body
            .label
            .as_deref()
            .filter(|l| !l.is_empty())
            .unwrap_or_else(stem)
    }

    /// The tags, sorted and without doubles. A single text counts as a list of one.
    pub(super) fn tags(&self) -> Said<Vec<String>> {
        let mut tags: Vec<String> = match self.front.get("tags") {
            None => return Said::Nothing,
            Some(Yaml::Scalar(tag)) => vec![tag.trim().to_owned()],
            Some(other) => other
                .list()
                .iter()
                .filter_map(|tag| tag.text().map(|t| t.trim().to_owned()))
                .collect(),
        };
        tags.retain(|tag| !tag.is_empty());
        tags.sort();
        tags.dedup();
        Said::Value(tags)
    }

    /// A time of the front matter.
    pub(super) fn time(&self, key: &'static str) -> Result<Said<Millis>, BadField> {
        match self.front.get(key) {
            None => Ok(Said::Nothing),
            Some(Yaml::Scalar(text)) if !text.trim().is_empty() => parse_time(text)
                .map(Said::Value)
                .ok_or_else(|| BadField::new(key, text, "is not a time such as 2026-03-01T09:00:00Z or 2026-03-01")),
            Some(_) => Ok(Said::None),
        }
    }
}

/// RFC 3339, or a date: the start of that day in UTC.
pub(super) fn parse_time(text: &str) -> Option<Millis> {
    let text = text.trim();
    // How a time beyond the calendar is shown.
    if let Some(millis) = text.strip_suffix("ms").and_then(|n| n.parse().ok()) {
        return Some(Millis(millis));
    }
    if let Ok(at) = jiff::Timestamp::from_str(text) {
        return Some(Millis(at.as_millisecond()));
    }
    let date = jiff::civil::Date::from_str(text).ok()?;
    let start = jiff::Timestamp::from_str(&format!("{date}T00:00:00Z")).ok()?;
    Some(Millis(start.as_millisecond()))
}

/// Front matter and body. A mark that is never closed opens nothing.
fn split(text: &str) -> (&str, &str) {
    let Some(rest) = text.strip_prefix("---\n") else {
        return ("", text);
    };
    let mut at = 0;
    for line in rest.split_inclusive('\n') {
        if line.trim_end() == "---" {
            return (
                rest.get(..at).unwrap_or_default(),
                rest.get(at + line.len()..).unwrap_or_default(),
            );
        }
        at += line.len();
    }
    ("", text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_in_their_two_forms() {
        assert_eq!(parse_time("2026-03-01"), parse_time("2026-03-01T00:00:00Z"));
        assert_eq!(parse_time("1970-01-01T00:00:01.5+00:00"), Some(Millis(1_500)));
        assert_eq!(parse_time("March"), None);
    }

    #[test]
    fn line_ends_of_other_systems_are_read() {
        let note = Note::read(
            "a/b.md",
            "\u{feff}---\r\ntags: [b, a]\r\n---\r\n# L\r\n\r\n## Content\r\n\r\nx\r\ny\r\n",
        )
        .unwrap();
        assert_eq!(note.label(), "L");
        assert_eq!(note.body.content.as_deref(), Some("x\ny"));
        assert_eq!(note.tags(), Said::Value(vec!["a".to_owned(), "b".to_owned()]));
        assert_eq!(Note::read("a/b.md", "text").unwrap().label(), "b");
    }
}
