//! The Markdown below the front matter: label, content, evidence, relations. What is written is read back exactly: a
//! line of the content that would read as the start of a section or as a comment stands behind a backslash.

use std::fmt::Write as _;
use std::str::FromStr;

use waggle_memory::id::MemoryId;
use waggle_memory::scope::name_key;

/// Sections that a body may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Section {
    Head,
    Content,
    Evidence,
    Relations,
}

/// What stands below the front matter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Body {
    /// The first heading.
    pub(super) label: Option<String>,
    /// The content; None if there is neither a section of that name nor any other text.
    pub(super) content: Option<String>,
    /// Lines of the evidence, without their dash.
    pub(super) evidence: Vec<String>,
    pub(super) relations: Vec<RelationLine>,
    /// Lines among the relations that say nothing that can be read.
    pub(super) unreadable: Vec<String>,
}

/// One line of the relations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RelationLine {
    pub(super) relationship: String,
    pub(super) label: String,
    pub(super) target: Option<MemoryId>,
    pub(super) mark: Mark,
}

/// Whether a relation stands or is to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mark {
    Kept,
    Struck,
}

/// A body whose sections cannot be told apart.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the section '{0}' stands in it twice")]
pub(super) struct DoubledSection(&'static str);

/// Writes a body.
pub(super) fn write(label: &str, content: &str, evidence: &[String], relations: &[RelationLine]) -> String {
    let mut out = format!("\n# {}\n\n## Content\n\n", one_line(label));
    for (index, line) in content.split('\n').enumerate() {
        let newline = if index == 0 { "" } else { "\n" };
        let escape = if is_marked(line) { "\\" } else { "" };
        let _ = write!(out, "{newline}{escape}{line}");
    }
    out.push('\n');
    if !evidence.is_empty() {
        out.push_str("\n## Evidence\n\n");
        evidence.iter().for_each(|line| {
            let _ = writeln!(out, "- {}", one_line(line));
        });
    }
    if !relations.is_empty() {
        out.push_str("\n## Relations\n\n");
        relations.iter().for_each(|line| {
            let _ = writeln!(out, "{}", line.written());
        });
    }
    out
}

/// Reads a body.
pub(super) fn read(text: &str) -> Result<Body, DoubledSection> {
    let mut body = Body::default();
    let mut section = Section::Head;
    let mut seen = Vec::new();
    let (mut head, mut content) = (Vec::new(), None::<Vec<&str>>);
    for line in text.split('\n') {
        if let Some((next, name)) = heading(line) {
            if seen.contains(&next) {
                return Err(DoubledSection(name));
            }
            seen.push(next);
            section = next;
            if section == Section::Content {
                content = Some(Vec::new());
            }
            continue;
        }
        match section {
            Section::Head => read_head(line, &mut body, &mut head),
            Section::Content if !is_comment(line) => content.get_or_insert_default().push(unescaped(line)),
            Section::Evidence => body.evidence.extend(item(line).map(str::to_owned)),
            Section::Relations => read_relation(line, &mut body),
            Section::Content => {}
        }
    }
    body.content = match content {
        Some(lines) => Some(without_frame(&lines)),
        None => Some(head.join("\n").trim().to_owned()).filter(|text| !text.is_empty()),
    };
    Ok(body)
}

/// Above the first section stand the label and, in notes that people wrote by hand, everything else.
fn read_head<'a>(line: &'a str, body: &mut Body, loose: &mut Vec<&'a str>) {
    match line.strip_prefix("# ") {
        Some(label) if body.label.is_none() && loose.iter().all(|l| l.trim().is_empty()) => {
            body.label = Some(label.trim().to_owned());
        }
        _ if is_comment(line) => {}
        _ => loose.push(unescaped(line)),
    }
}

fn read_relation(line: &str, body: &mut Body) {
    if line.trim().is_empty() || is_comment(line) {
        return;
    }
    match item(line).and_then(RelationLine::read) {
        Some(relation) => body.relations.push(relation),
        None => body.unreadable.push(line.trim().chars().take(200).collect()),
    }
}

/// The section that a line opens.
fn heading(line: &str) -> Option<(Section, &'static str)> {
    let name = line.strip_prefix("## ")?.trim();
    [
        (Section::Content, "Content"),
        (Section::Evidence, "Evidence"),
        (Section::Relations, "Relations"),
    ]
    .into_iter()
    .find(|(_, known)| name.eq_ignore_ascii_case(known))
}

/// Whether the line would read as the start of a section or as a comment, or would once its backslashes are gone.
fn is_marked(line: &str) -> bool {
    let bare = line.trim_start_matches('\\');
    heading(bare).is_some() || bare.starts_with("<!--")
}

fn unescaped(line: &str) -> &str {
    match line.strip_prefix('\\') {
        Some(rest) if is_marked(line) => rest,
        _ => line,
    }
}

/// A comment on a line of its own says nothing.
fn is_comment(line: &str) -> bool {
    line.starts_with("<!--") && line.trim_end().ends_with("-->")
}

/// The blank line below the heading, and the one above the next section (or the end of the file), are no content.
fn without_frame(lines: &[&str]) -> String {
    let lines = match lines {
        ["", rest @ ..] => rest,
        all => all,
    };
    match lines {
        [rest @ .., ""] => rest.join("\n"),
        all => all.join("\n"),
    }
}

/// The text of a list item; None for a blank or other line.
fn item(line: &str) -> Option<&str> {
    let line = line.trim();
    line.strip_prefix("- ")
        .or_else(|| line.strip_prefix("* "))
        .map(str::trim)
}

/// Line breaks and other control characters become blanks.
pub(super) fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// A label inside of `[[...]]`: without what would end the brackets or start a comment.
pub(super) fn link_text(label: &str) -> String {
    let plain: String = one_line(label)
        .chars()
        .map(|c| match c {
            '[' => '(',
            ']' => ')',
            '|' => '/',
            '<' => '‹',
            '>' => '›',
            c => c,
        })
        .collect();
    plain.trim().to_owned()
}

/// How labels in relations are compared.
pub(super) fn link_key(label: &str) -> String {
    name_key(&link_text(label))
}

impl RelationLine {
    fn written(&self) -> String {
        let strike = if self.mark == Mark::Struck { "~~" } else { "" };
        let target = self
            .target
            .map(|id| format!(" <!-- node_id:{id} -->"))
            .unwrap_or_default();
        let label = link_text(&self.label);
        format!("- {strike}[[{}::{label}]]{strike}{target}", self.relationship)
    }

    /// Reads `[[depends_on::Label]] <!-- node_id:... -->`, struck through or not, with or without the comment; a plain
    /// `[[Label]]` relates to it.
    fn read(item: &str) -> Option<Self> {
        let (head, target) = match item.rsplit_once("<!--") {
            Some((head, comment)) => {
                let id = comment.trim().strip_prefix("node_id:")?.trim_end();
                let id = id.trim_end_matches("~~").trim_end().strip_suffix("-->")?.trim();
                (head.trim_end(), Some(MemoryId::from_str(id).ok()?))
            }
            None => (item, None),
        };
        let struck = head.strip_prefix("~~");
        let inner = struck.unwrap_or(head).trim();
        let inner = inner.strip_suffix("~~").unwrap_or(inner).trim_end();
        let inner = inner.strip_prefix("[[")?.strip_suffix("]]")?;
        let (relationship, label) = inner.split_once("::").unwrap_or(("relates_to", inner));
        (!label.trim().is_empty()).then(|| Self {
            relationship: relationship.trim().to_lowercase(),
            label: label.trim().to_owned(),
            target,
            mark: if struck.is_some() { Mark::Struck } else { Mark::Kept },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn relation(line: &str) -> Option<(String, String, bool, Mark)> {
        let body = read(&format!("## Relations\n\n{line}\n")).unwrap();
        body.relations
            .first()
            .map(|r| (r.relationship.clone(), r.label.clone(), r.target.is_some(), r.mark))
    }

    #[test]
    fn relations_are_read_as_people_write_them() {
        let id = "018f3c5a-0000-7000-8000-000000000001";
        let expect = |relationship: &str, label: &str, known, mark| {
            Some((relationship.to_owned(), label.to_owned(), known, mark))
        };
        let with_id = format!("- [[depends_on::A::b]] <!-- node_id:{id} -->");
        assert_eq!(relation(&with_id), expect("depends_on", "A::b", true, Mark::Kept));
        let struck = format!("- ~~[[updates::A]]~~ <!-- node_id:{id} -->");
        assert_eq!(relation(&struck), expect("updates", "A", true, Mark::Struck));
        let all_struck = format!("- ~~[[updates::A]] <!-- node_id:{id} -->~~");
        assert_eq!(relation(&all_struck), expect("updates", "A", true, Mark::Struck));
        assert_eq!(
            relation("* ~~[[Part_Of::A]]~~"),
            expect("part_of", "A", false, Mark::Struck)
        );
        assert_eq!(
            relation("- [[Plain]]"),
            expect("relates_to", "Plain", false, Mark::Kept)
        );
        assert_eq!(relation("- [[depends_on::]]"), None);
        assert_eq!(relation("- [[depends_on::A]] <!-- node_id:nonsense -->"), None);
        assert_eq!(relation("- depends on A"), None);
    }

    #[test]
    fn any_content_comes_back_as_it_was() {
        for content in [
            "plain",
            "",
            "\n",
            "\n\n",
            " \n\n x \n\n",
            "## Content",
            "## Evidence\n- a\n## Relations",
            "\\## Content",
            "\\\\\\## relations  ",
            "<!-- x -->",
            "<!--",
            "\\<!-- node_id:x -->",
            "---\na: b\n---",
            "# heading",
            "a\r\nb\r\n## Content\r\nc",
            "```\n## Content\n```",
            "\\",
            "- [[depends_on::X]]",
        ] {
            let relations = [RelationLine {
                relationship: "part_of".to_owned(),
                label: "a]] <!-- node_id:x -->".to_owned(),
                target: Some(MemoryId::from_bytes([1; 16])),
                mark: Mark::Kept,
            }];
            for (evidence, relations) in [
                (&[][..], &[][..]),
                (&["[user turn 1] ## Content".to_owned()][..], &relations[..]),
            ] {
                let body = read(&write("L", content, evidence, relations)).unwrap();
                assert_eq!(body.content.as_deref(), Some(content), "{content:?}");
                assert_eq!(body.label.as_deref(), Some("L"));
                assert_eq!(body.evidence, evidence);
                assert_eq!(body.relations.len(), relations.len());
                assert_eq!(body.unreadable.len(), 0);
            }
        }
    }

    #[test]
    fn a_note_without_sections_is_all_content() {
        let body = read("# Title\n\nSome text.\n\n- a list\n").unwrap();
        assert_eq!(body.label.as_deref(), Some("Title"));
        assert_eq!(body.content.as_deref(), Some("Some text.\n\n- a list"));
        assert!(read("## Content\na\n## Content\nb").is_err());
    }
}
