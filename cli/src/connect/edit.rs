//! Small edits of a text, and the habits of the text that they follow: line ends and indentation.

use std::ops::Range;

use serde_json::Value;

/// Replaces a span of the text as it was before any edit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Splice {
    span: Range<usize>,
    text: String,
}

impl Splice {
    pub(crate) fn replace(span: Range<usize>, text: String) -> Self {
        Self { span, text }
    }
}

/// Applies splices that do not overlap, in the order of their places; of two at one place the first given comes first.
pub(crate) fn apply(text: &str, mut splices: Vec<Splice>) -> String {
    splices.sort_by_key(|splice| splice.span.start);
    let mut changed = String::with_capacity(text.len() + 256);
    let mut done = 0;
    for splice in &splices {
        changed.push_str(text.get(done..splice.span.start).unwrap_or_default());
        changed.push_str(&splice.text);
        done = splice.span.end;
    }
    changed.push_str(text.get(done..).unwrap_or_default());
    changed
}

/// How a text is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TextStyle {
    pub(crate) newline: &'static str,
    /// One step of indentation.
    pub(crate) unit: String,
}

impl TextStyle {
    /// The line end of the first line, and the indentation of the first indented line.
    pub(crate) fn of(text: &str) -> Self {
        let newline = match text.find('\n') {
            Some(at) if text.get(..at).is_some_and(|head| head.ends_with('\r')) => "\r\n",
            _ => "\n",
        };
        let indented = text.lines().find_map(|line| {
            let blank = line.len() - line.trim_start_matches([' ', '\t']).len();
            (blank > 0 && blank < line.trim_end().len()).then(|| line.get(..blank).unwrap_or_default())
        });
        let unit = match indented {
            Some(blank) if blank.starts_with('\t') => "\t".to_owned(),
            Some(blank) if blank.len() <= 8 => blank.to_owned(),
            _ => "  ".to_owned(),
        };
        Self { newline, unit }
    }

    /// The indentation of the line that a place is on.
    #[expect(clippy::unused_self, reason = "a question about the style of a text")]
    pub(crate) fn indent_at(&self, text: &str, offset: usize) -> String {
        let before = text.get(..offset).unwrap_or(text);
        let line = before
            .get(before.rfind('\n').map_or(0, |at| at + 1)..)
            .unwrap_or_default();
        let blank = line.len() - line.trim_start_matches([' ', '\t']).len();
        line.get(..blank).unwrap_or_default().to_owned()
    }

    /// A value as it would stand after a name on a line with this indentation, or on one line.
    pub(crate) fn value(&self, value: &Value, indent: &str, inline: bool) -> String {
        if inline {
            return one_line(value);
        }
        match value {
            Value::Object(fields) if !fields.is_empty() => {
                let deeper = format!("{indent}{}", self.unit);
                let fields: Vec<String> = fields
                    .iter()
                    .map(|(name, inner)| {
                        format!(
                            "{deeper}{}: {}",
                            Value::from(name.as_str()),
                            self.value(inner, &deeper, false)
                        )
                    })
                    .collect();
                self.bracket(['{', '}'], &fields, indent)
            }
            Value::Array(items) if items.iter().any(Value::is_object) => {
                let deeper = format!("{indent}{}", self.unit);
                let items: Vec<String> = items
                    .iter()
                    .map(|inner| format!("{deeper}{}", self.value(inner, &deeper, false)))
                    .collect();
                self.bracket(['[', ']'], &items, indent)
            }
            other => one_line(other),
        }
    }

    fn bracket(&self, [open, close]: [char; 2], lines: &[String], indent: &str) -> String {
        let newline = self.newline;
        let inside = lines.join(&format!(",{newline}"));
        format!("{open}{newline}{inside}{newline}{indent}{close}")
    }
}

/// On one line, with the blanks that people write.
fn one_line(value: &Value) -> String {
    match value {
        Value::Object(fields) if fields.is_empty() => "{}".to_owned(),
        Value::Object(fields) => {
            let fields: Vec<String> = fields
                .iter()
                .map(|(name, inner)| format!("{}: {}", Value::from(name.as_str()), one_line(inner)))
                .collect();
            format!("{{ {} }}", fields.join(", "))
        }
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(one_line).collect();
            format!("[{}]", items.join(", "))
        }
        other => other.to_string(),
    }
}
