//! docs/tool-reference.md is written from the table of tools, so that the page cannot say anything else than the code.
//! `UPDATE=1` writes the page; without it the test compares.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs};

use serde_json::Value;

use super::memory_capabilities::result_schema;
use crate::mcp::schema::{Field, FieldKind, Hints, NAME_ALIASES, TOOLS, ToolSet, ToolSpec};

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/tool-reference.md");

const COMMAND: &str = "UPDATE=1 cargo nextest run -p waggle-gateway reference_page";

/// What fields mean that have no words in the table, because `instructions` say it once or the name says it alone.
const SHARED: [(&str, &str); 24] = [
    ("project", "what a memory belongs to; projects do not see each other"),
    ("agent_id", "who speaks: a label of the caller's choice"),
    ("session_id", "one conversation"),
    ("token_budget", "the most that the answer may take"),
    ("cursor", "`next_cursor` of a truncated answer"),
    ("node_id", "the memory"),
    ("memory_id", "the memory"),
    ("source_id", "where the edge begins"),
    ("target_id", "where the edge ends"),
    ("weight", "how strong the edge is"),
    ("tags", "words of your own"),
    ("max_depth", "steps along edges"),
    ("max_nodes", "most memories"),
    ("max_topics", "most topics"),
    ("limit", "most entries"),
    ("threshold", "least similarity"),
    ("include_invalidated", "closed and scheduled memories, too"),
    ("confirm", "do it; without it the counts are told and nothing is erased"),
    ("dry_run", "tell what would happen and change nothing"),
    ("output_path", "its last part becomes the offered file name"),
    ("root_path", "as the other path"),
    ("input_path", "refused: the server opens no file by name"),
    ("depth", "no effect"),
    ("max_subqueries", "no effect"),
];

#[test]
fn the_page_about_tools_says_what_the_table_says() {
    let page = render();
    if env::var_os("UPDATE").is_some() {
        fs::write(PAGE, page).expect("write docs/tool-reference.md");
        return;
    }
    let written = fs::read_to_string(Path::new(PAGE)).unwrap_or_default();
    let stale = page
        .lines()
        .zip(written.lines().chain(std::iter::repeat("(nothing)")))
        .enumerate()
        .find(|(_, (now, before))| now != before);
    if let Some((at, (now, before))) = stale {
        panic!(
            "docs/tool-reference.md, line {}: has '{before}', must have '{now}'; {COMMAND}",
            at + 1
        );
    }
    // Not assert_eq, which would print both pages.
    assert!(
        page == written,
        "docs/tool-reference.md goes on behind the last tool; {COMMAND}"
    );
}

#[test]
fn every_tool_has_a_schema_of_its_result() {
    for tool in &TOOLS {
        assert!(
            !result_schema(tool.name).is_null(),
            "{}: describe its result",
            tool.name
        );
    }
}

#[test]
fn no_listed_field_is_left_without_words() {
    let shared: BTreeSet<&str> = SHARED.iter().map(|(name, _)| *name).collect();
    let bare = TOOLS.iter().flat_map(ToolSpec::fields);
    for field in bare.filter(|field| field.listed && field.description.is_empty()) {
        assert!(shared.contains(field.name), "{} has no description", field.name);
    }
}

fn render() -> String {
    let mut page = String::from(
        "# Tool reference\n\n\
         Written by a test from the table of tools in the gateway's code; do not edit it. To renew it:\n\n",
    );
    write!(page, "    {COMMAND}\n\n").unwrap();
    page.push_str(
        "What the tools mean, with examples, is in [memory-semantics.md](memory-semantics.md); paths, pages, times and\n\
         failures are in [tools.md](tools.md).\n\n\
         * Sizes are bytes of UTF-8. A field that the table of its tool does not have is refused.\n\
         * A *time* is RFC 3339, a date (the start of that day in UTC), or one of `30s`, `5m`, `2h`, `3d`, `1w` (ago), `today`,\n  \
           `yesterday`, `this week`, `last week`, `this month`, `last month`, `recently`.\n\
         * An *id* is a UUID as text, as answers give it.\n\
         * *Accepted, not listed*: works, but the schema that clients see does not name it. Such fields and names are there\n  \
           for programs that were written for the older product Waggle.\n\
         * In the fields of an answer, `?` means that it may be missing, `[]` that it is a list. An answer that has\n  \
           `truncated: true` goes on with `next_cursor`.\n\n",
    );
    index(&mut page);
    for tool in &TOOLS {
        describe(&mut page, tool);
    }
    page
}

/// All tools in one table.
fn index(page: &mut String) {
    page.push_str("| tool | needs | reads only | destructive | repeatable | core |\n|---|---|---|---|---|---|\n");
    for tool in &TOOLS {
        let Hints {
            read_only,
            destructive,
            idempotent,
        } = tool.hints;
        writeln!(
            page,
            "| [{0}](#{0}) | {1} | {2} | {3} | {4} | {5} |",
            tool.name,
            needs(tool),
            mark(read_only),
            mark(destructive),
            mark(idempotent),
            mark(tool.core)
        )
        .unwrap();
    }
}

fn mark(yes: bool) -> &'static str {
    if yes { "yes" } else { "" }
}

fn needs(tool: &ToolSpec) -> String {
    match tool.scopes.words().as_slice() {
        [] => "any valid key".to_owned(),
        words => words.join(" and "),
    }
}

fn describe(page: &mut String, tool: &ToolSpec) {
    write!(page, "\n## {}\n\n{}. {}\n\n", tool.name, tool.title, tool.description).unwrap();
    let paths: Vec<_> = ToolSet::ALL
        .into_iter()
        .filter(|set| set.has(tool))
        .map(|set| format!("`{}`", set.path()))
        .collect();
    writeln!(page, "* Needs: {}", needs(tool)).unwrap();
    writeln!(page, "* On: {}", paths.join(", ")).unwrap();
    writeln!(page, "* Hints: {}", hints(tool.hints)).unwrap();
    let aliases: Vec<_> = NAME_ALIASES
        .iter()
        .filter(|(_, kind)| *kind == tool.kind)
        .map(|(name, _)| format!("`{name}`"))
        .collect();
    if !aliases.is_empty() {
        writeln!(page, "* Other names, accepted, not listed: {}", aliases.join(", ")).unwrap();
    }
    page.push('\n');
    let (listed, unlisted): (Vec<_>, Vec<_>) = tool.fields().partition(|field| field.listed);
    fields(page, &listed);
    if !unlisted.is_empty() {
        page.push_str("\nAccepted, not listed:\n\n");
        fields(page, &unlisted);
    }
    page.push_str("\nThe answer:\n\n");
    result(page, tool.name);
}

fn hints(hints: Hints) -> String {
    let all = [
        ("readOnly", hints.read_only),
        ("destructive", hints.destructive),
        ("idempotent", hints.idempotent),
        ("openWorld", false),
    ];
    all.map(|(name, value)| format!("{name} {value}")).join(", ")
}

fn fields(page: &mut String, fields: &[&Field]) {
    page.push_str("| field | type | default | limits | |\n|---|---|---|---|---|\n");
    for field in fields {
        let shared = SHARED.iter().find(|(name, _)| *name == field.name);
        let words = match shared {
            Some((_, words)) if field.description.is_empty() => *words,
            _ => field.description,
        };
        let default = if field.required {
            "**required**".to_owned()
        } else {
            default(&field.kind)
        };
        writeln!(
            page,
            "| `{}` | {} | {default} | {} | {words} |",
            field.name,
            kind(&field.kind),
            limits(&field.kind)
        )
        .unwrap();
    }
}

fn kind(kind: &FieldKind) -> &'static str {
    match kind {
        FieldKind::Text { .. } => "string",
        FieldKind::Word { .. } => "one of",
        FieldKind::Integer { .. } => "integer",
        FieldKind::Number { .. } => "number",
        FieldKind::Flag { .. } => "boolean",
        FieldKind::Texts { .. } => "list of strings",
        FieldKind::Words { .. } => "list of",
        FieldKind::Depth => "integer or null",
        FieldKind::Id => "id",
        FieldKind::Ids { .. } => "list of ids",
        FieldKind::Time => "time",
    }
}

fn default(kind: &FieldKind) -> String {
    let code = |value: &dyn std::fmt::Display| format!("`{value}`");
    match kind {
        FieldKind::Text { default: Some(""), .. } => code(&"\"\""),
        FieldKind::Text {
            default: Some(text), ..
        }
        | FieldKind::Word {
            default: Some(text), ..
        } => code(text),
        FieldKind::Integer {
            default: Some(number), ..
        } => code(number),
        FieldKind::Number {
            default: Some(number), ..
        } => code(number),
        FieldKind::Flag { default } => code(default),
        FieldKind::Texts { empty: true, .. } | FieldKind::Words { .. } => code(&"[]"),
        _ => String::new(),
    }
}

fn limits(kind: &FieldKind) -> String {
    match kind {
        FieldKind::Text { bytes_max, .. } => format!("{} bytes", grouped(*bytes_max as u64)),
        FieldKind::Word { allowed, aliases, .. } => {
            let also = aliases
                .iter()
                .map(|(alias, word)| format!("; `{alias}`, not listed, means `{word}`"));
            quoted(&allowed()) + &also.collect::<String>()
        }
        FieldKind::Integer { min, max, .. } => {
            format!("{} to {}", grouped(min.unsigned_abs()), grouped(max.unsigned_abs()))
        }
        FieldKind::Number { min, max, .. } => format!("{min} to {max}"),
        FieldKind::Texts {
            items_max, bytes_max, ..
        } => format!("{items_max} of {bytes_max} bytes"),
        FieldKind::Words { items_max, allowed } => format!("{items_max} of {}", quoted(&allowed())),
        FieldKind::Depth => "less than 0 means 0; null or none means as deep as allowed".to_owned(),
        FieldKind::Ids { items_max } => format!("at most {items_max}"),
        FieldKind::Flag { .. } | FieldKind::Id | FieldKind::Time => String::new(),
    }
}

fn quoted(words: &[&str]) -> String {
    let words: Vec<_> = words.iter().map(|word| format!("`{word}`")).collect();
    words.join(", ")
}

/// 65536 as 65,536.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// The parts of an answer, from what `memory_capabilities` says of them.
fn result(page: &mut String, tool: &str) {
    page.push_str("| part | fields |\n|---|---|\n");
    match result_schema(tool) {
        Value::Object(parts) => {
            for (part, value) in &parts {
                let name = match part.as_str() {
                    "fields" => "top level",
                    "page" => "top level, pages",
                    part => &format!("`{}`", part.replace(' ', "`, `")),
                };
                writeln!(page, "| {name} | {} |", names(value)).unwrap();
            }
        }
        value => writeln!(page, "| top level | {} |", names(&value)).unwrap(),
    }
}

/// `a b[]? c[] {d e}` with commas between the names.
fn names(value: &Value) -> String {
    let text = value.as_str().unwrap_or_default();
    let words: Vec<_> = text.split_whitespace().collect();
    let text = words.join(", ").replace(", {", " {");
    format!("`{text}`")
}
