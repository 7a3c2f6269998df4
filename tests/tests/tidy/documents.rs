//! What code says and documentation must have, and the other way round.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use waggle_tests::workspace::root;

use crate::repository::{read, report, tracked_files};

#[test]
fn every_invariant_that_code_cites_is_documented() -> Result<()> {
    let documented = cited(&fs::read_to_string(root().join("docs/invariants.md")).context("read docs/invariants.md")?);
    let mut problems = Vec::new();
    for path in tracked_files()?.iter().filter(|path| is_code(path)) {
        for invariant in cited(&read(path)?) {
            if !documented.contains(&invariant) {
                problems.push(format!(
                    "{} cites {invariant}, which docs/invariants.md does not have",
                    path.display()
                ));
            }
        }
    }
    report(problems)
}

#[test]
fn every_error_code_has_a_page_and_every_page_a_code() -> Result<()> {
    let source = root().join("gateway/src/error_codes.rs");
    let text = fs::read_to_string(&source).with_context(|| format!("read {}", source.display()))?;
    let codes = error_codes(&text);
    ensure!(
        !codes.is_empty(),
        "no line like (\"not_found\", 404) in {}",
        source.display()
    );
    let mut pages = BTreeSet::new();
    for entry in fs::read_dir(root().join("docs/errors")).context("list docs/errors")? {
        let path = entry?.path();
        let stem = path
            .file_stem()
            .and_then(|stem| stem.to_str())
            .unwrap_or_default()
            .to_owned();
        if path.extension().is_some_and(|extension| extension == "md") && stem != "README" {
            pages.insert(stem);
        }
    }
    let mut problems: Vec<String> = codes
        .difference(&pages)
        .map(|code| format!("docs/errors/{code}.md is missing"))
        .collect();
    problems.extend(
        pages
            .difference(&codes)
            .map(|page| format!("docs/errors/{page}.md is about no known code")),
    );
    report(problems)
}

fn is_code(path: &Path) -> bool {
    path.extension()
        .is_some_and(|extension| ["rs", "proto", "py", "mjs", "sh"].iter().any(|code| extension == *code))
}

/// All numbers of invariants in a text.
fn cited(text: &str) -> BTreeSet<String> {
    let bytes = text.as_bytes();
    let digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    let word = |at: usize| {
        bytes
            .get(at)
            .is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'-')
    };
    text.match_indices("I-")
        .map(|(at, _)| at)
        .filter(|&at| digit(at + 2) && digit(at + 3) && !word(at + 4) && (at == 0 || !word(at - 1)))
        .map(|at| text[at..at + 4].to_owned())
        .collect()
}

/// The codes of lines like `("not_found", 404),`.
fn error_codes(text: &str) -> BTreeSet<String> {
    let lines = text.lines().filter_map(|line| line.trim().strip_prefix("(\""));
    lines
        .filter_map(|line| line.split_once("\", "))
        .filter(|(_, status)| status.starts_with(|digit: char| digit.is_ascii_digit()))
        .map(|(code, _)| code.to_owned())
        .collect()
}
