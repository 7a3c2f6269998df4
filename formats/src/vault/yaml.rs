//! Reads front matter. The grammar is that of a YAML library, so that what editors of notes write back is understood;
//! what makes YAML dangerous is refused while its events arrive, before anything is built: anchors and aliases (a few
//! bytes cannot stand for many), tags (a text cannot choose a type), deep nesting, too many values, more than one
//! document, a key given twice.

use std::collections::BTreeMap;

use saphyr_parser::{Event, Parser, ScalarStyle, Span};

/// Deepest nesting of front matter.
const DEPTH_MAX: usize = 8;
/// Most values: a memory has at most 1,000 pieces of evidence of a dozen fields, and its links.
const VALUES_MAX: usize = 200_000;

/// A value of front matter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Yaml {
    Null,
    /// Any scalar but null, as text: which type it should have is for its reader to say.
    Scalar(String),
    List(Vec<Yaml>),
    Map(BTreeMap<String, Yaml>),
}

/// Why front matter cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {why}")]
pub(super) struct BadYaml {
    /// Line of the file, from 1.
    pub(super) line: usize,
    pub(super) why: String,
}

impl Yaml {
    /// The text of a scalar; None for null and for what is no scalar.
    pub(super) fn text(&self) -> Option<&str> {
        match self {
            Self::Scalar(text) => Some(text),
            _ => None,
        }
    }

    /// The items of a list; nothing for what is no list.
    pub(super) fn list(&self) -> &[Self] {
        match self {
            Self::List(items) => items,
            _ => &[],
        }
    }

    /// The value of a key of a mapping.
    pub(super) fn get(&self, key: &str) -> Option<&Self> {
        match self {
            Self::Map(entries) => entries.get(key),
            _ => None,
        }
    }

    /// The text under a key.
    pub(super) fn text_of(&self, key: &str) -> Option<&str> {
        self.get(key).and_then(Self::text)
    }
}

/// What is open while events arrive.
enum Open {
    List(Vec<Yaml>),
    Map(BTreeMap<String, Yaml>, Option<String>),
}

/// Reads one document whose root is a mapping (or nothing at all: an empty mapping).
pub(super) fn parse(text: &str) -> Result<Yaml, BadYaml> {
    let mut open: Vec<Open> = Vec::new();
    let mut root = None;
    for (count, event) in Parser::new_from_str(text).enumerate() {
        let (event, span) = event.map_err(|e| bad(e.marker().line(), e.info()))?;
        let here = |why| bad(line_of(&span), why);
        if count > VALUES_MAX {
            return Err(here("more values than front matter may have"));
        }
        let done = match event {
            Event::Alias(_) => return Err(here("aliases are not accepted: write the value out")),
            Event::Scalar(_, _, anchor, Some(_)) | Event::Scalar(_, _, anchor @ 1.., None) => {
                return Err(here(extra(anchor)));
            }
            Event::SequenceStart(anchor @ 1.., _) | Event::MappingStart(anchor @ 1.., _) => {
                return Err(here(extra(anchor)));
            }
            Event::SequenceStart(anchor, Some(_)) | Event::MappingStart(anchor, Some(_)) => {
                return Err(here(extra(anchor)));
            }
            Event::SequenceStart(..) | Event::MappingStart(..) if open.len() >= DEPTH_MAX => {
                return Err(here("nested too deeply"));
            }
            Event::SequenceStart(..) => {
                open.push(Open::List(Vec::new()));
                continue;
            }
            Event::MappingStart(..) => {
                open.push(Open::Map(BTreeMap::new(), None));
                continue;
            }
            Event::Scalar(text, style, ..) => scalar(text.into_owned(), style),
            Event::SequenceEnd | Event::MappingEnd => match open.pop() {
                Some(Open::List(items)) => Yaml::List(items),
                Some(Open::Map(entries, _)) => Yaml::Map(entries),
                None => return Err(here("closes what was not opened")),
            },
            Event::DocumentStart(_) if root.is_some() => return Err(here("more than one document")),
            _ => continue,
        };
        put(&mut open, &mut root, done).map_err(here)?;
    }
    match root {
        None | Some(Yaml::Null) => Ok(Yaml::Map(BTreeMap::new())),
        Some(map @ Yaml::Map(_)) => Ok(map),
        Some(_) => Err(bad(1, "must be lines of 'key: value'")),
    }
}

fn extra(anchor: usize) -> &'static str {
    if anchor > 0 {
        "anchors are not accepted: write the value out"
    } else {
        "type tags (!...) are not accepted: quote the text"
    }
}

/// Null only where it stands without quotes; everything else is text.
fn scalar(text: String, style: ScalarStyle) -> Yaml {
    if style == ScalarStyle::Plain && matches!(text.as_str(), "" | "~" | "null" | "Null" | "NULL") {
        Yaml::Null
    } else {
        Yaml::Scalar(text)
    }
}

/// Puts a finished value where it belongs: into the list or mapping that is open, or at the root.
fn put(open: &mut [Open], root: &mut Option<Yaml>, value: Yaml) -> Result<(), &'static str> {
    match open.last_mut() {
        None => *root = Some(value),
        Some(Open::List(items)) => items.push(value),
        Some(Open::Map(entries, key)) => match key.take() {
            None => match value {
                Yaml::Scalar(text) => *key = Some(text),
                _ => return Err("a key must be a text"),
            },
            Some(name) => {
                if entries.insert(name, value).is_some() {
                    return Err("the same key twice");
                }
            }
        },
    }
    Ok(())
}

fn line_of(span: &Span) -> usize {
    span.start.line()
}

/// The parser counts from the line after the opening `---`.
fn bad(line: usize, why: &str) -> BadYaml {
    BadYaml {
        line: line.saturating_add(1),
        why: why.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn why(text: &str) -> String {
        parse(text).expect_err(text).to_string()
    }

    #[test]
    fn what_note_editors_write_is_read() {
        let text = "a: plain text\nb: \"quoted \\u2028 \\\"x\\\"\"\nc: 'single ''q'''\nd: [x, \"y\"]\ne:\n  - 1\n  - null\n\
                    f:\n  - {\"k\": \"v\", \"n\": null}\ng:\nh: 'null'\ni: |\n  two\n  lines\n";
        let yaml = parse(text).unwrap();
        assert_eq!(yaml.text_of("a"), Some("plain text"));
        assert_eq!(yaml.text_of("b"), Some("quoted \u{2028} \"x\""));
        assert_eq!(yaml.text_of("c"), Some("single 'q'"));
        assert_eq!(yaml.get("d").unwrap().list().len(), 2);
        assert_eq!(yaml.get("e").unwrap().list()[1], Yaml::Null);
        assert_eq!(yaml.get("f").unwrap().list()[0].text_of("k"), Some("v"));
        assert_eq!(yaml.get("g"), Some(&Yaml::Null));
        assert_eq!(yaml.text_of("h"), Some("null"));
        assert_eq!(yaml.text_of("i"), Some("two\nlines\n"));
        assert_eq!(parse("").unwrap(), Yaml::Map(BTreeMap::new()));
    }

    #[test]
    fn what_makes_yaml_dangerous_is_refused_with_its_line() {
        assert_eq!(
            why("a: &x [1]\nb: *x\n"),
            "line 2: anchors are not accepted: write the value out"
        );
        assert!(why("a: !!binary abc\n").contains("type tags"));
        assert!(why("a: !x {b: c}\n").contains("type tags"));
        assert!(why("b: *x\n").contains("line 2"));
        assert!(why("a: 1\nb: 2\na: 3\n").contains("line 4: the same key twice"));
        assert!(why("a: [[[[[[[[1]]]]]]]]").contains("nested too deeply"));
        assert!(parse(&format!("a: {}", "[".repeat(5_000))).is_err());
        assert!(why("- a\n- b\n").contains("key: value"));
        assert!(why("a: 1\n---\nb: 2\n").contains("more than one document"));
        assert!(why("? [a]\n: b\n").contains("a key must be a text"));
    }

    #[test]
    fn many_values_are_refused_and_long_ones_read_in_linear_time() {
        assert!(why(&format!("a: [{}]", "1,".repeat(300_000))).contains("more values"));
        let long = "x".repeat(1 << 20);
        assert_eq!(
            parse(&format!("a: \"{long}\"")).unwrap().text_of("a").map(str::len),
            Some(1 << 20)
        );
        assert_eq!(
            parse(&format!("a: {long}")).unwrap().text_of("a").map(str::len),
            Some(1 << 20)
        );
    }
}
