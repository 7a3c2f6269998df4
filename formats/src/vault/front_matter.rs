//! Writes front matter: YAML whose strings are JSON strings, one key a line, lists of records one record a line.

use std::fmt::Write as _;

/// Lines of `key: value` in the order in which they are added.
#[derive(Default)]
pub(super) struct FrontMatter {
    text: String,
}

impl FrontMatter {
    pub(super) fn text(&mut self, key: &str, value: &str) {
        self.raw(key, &quoted(value));
    }

    /// A number, `null` or anything else that is YAML already.
    pub(super) fn raw(&mut self, key: &str, value: &str) {
        let _ = writeln!(self.text, "{key}: {value}");
    }

    pub(super) fn texts<'a>(&mut self, key: &str, values: impl Iterator<Item = &'a str>) {
        let values: Vec<String> = values.map(quoted).collect();
        self.raw(key, &format!("[{}]", values.join(", ")));
    }

    pub(super) fn records(&mut self, key: &str, records: &[String]) {
        if records.is_empty() {
            return self.raw(key, "[]");
        }
        let _ = writeln!(self.text, "{key}:");
        for record in records {
            let _ = writeln!(self.text, "  - {record}");
        }
    }

    /// The whole front matter with its two marks.
    pub(super) fn finish(self) -> String {
        format!("---\n{}---\n", self.text)
    }
}

/// One record on one line: `{"key": value, ...}`.
#[derive(Default)]
pub(super) struct Flow {
    text: String,
}

impl Flow {
    pub(super) fn text(self, key: &str, value: &str) -> Self {
        self.raw(key, &quoted(value))
    }

    pub(super) fn raw(mut self, key: &str, value: &str) -> Self {
        let comma = if self.text.is_empty() { "" } else { ", " };
        let _ = write!(self.text, "{comma}\"{key}\": {value}");
        self
    }

    pub(super) fn finish(self) -> String {
        format!("{{{}}}", self.text)
    }
}

/// A JSON string that is also a YAML string on one line: what YAML takes for a line break or refuses is escaped too.
pub(super) fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}' => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::super::yaml;
    use super::*;

    #[test]
    fn every_character_comes_back() {
        let hostile: String = (0..=0x3000u32)
            .chain([0xfeff, 0xfffd, 0xfffe, 0xffff, 0x1f600, 0x10ffff])
            .filter_map(char::from_u32)
            .collect();
        let mut front = FrontMatter::default();
        front.text("a", &hostile);
        front.records("b", &[Flow::default().text("c", &hostile).finish()]);
        let text = front.finish();
        let inner = text.strip_prefix("---\n").unwrap().strip_suffix("---\n").unwrap();
        let yaml = yaml::parse(inner).unwrap();
        assert_eq!(yaml.text_of("a"), Some(hostile.as_str()));
        assert_eq!(yaml.get("b").unwrap().list()[0].text_of("c"), Some(hostile.as_str()));
        assert!(serde_json::from_str::<String>(&quoted(&hostile)).unwrap() == hostile);
    }
}
