//! The licences of all that is linked into the product.

use anyhow::{Context, Result, ensure};

use crate::cargo::{metadata, packages};
use crate::crates::TARGETS;
use crate::repository::report;

/// deny.toml has the same list; a test compares the two.
pub(crate) const LICENCES: &[&str] = &[
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "CDLA-Permissive-2.0",
    "ISC",
    "MIT",
    "MIT-0",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

#[test]
fn every_licence_is_one_that_we_can_live_with() -> Result<()> {
    let mut problems = Vec::new();
    for package in packages(&metadata(&["--filter-platform", TARGETS[0]])?)? {
        let name = package["name"].as_str().unwrap_or_default();
        match package["license"].as_str() {
            None => problems.push(format!("{name}: no licence in its manifest")),
            Some(licence) if !licence_allowed(licence)? => problems.push(format!("{name}: {licence}")),
            Some(_) => {}
        }
    }
    report(problems)
}

/// Expressions are words, AND, OR (in old manifests a slash) and brackets; AND binds closer.
fn licence_allowed(expression: &str) -> Result<bool> {
    let spaced = expression
        .replace('(', " ( ")
        .replace(')', " ) ")
        .replace('/', " OR ")
        .replace(" WITH ", "\u{0}");
    let words: Vec<String> = spaced
        .split_whitespace()
        .map(|word| word.replace('\u{0}', " WITH "))
        .collect();
    let mut rest = words.as_slice();
    let allowed = any_of(&mut rest).with_context(|| format!("read the licence {expression:?}"))?;
    ensure!(rest.is_empty(), "read the licence {expression:?}: {rest:?} is left");
    Ok(allowed)
}

fn any_of(rest: &mut &[String]) -> Result<bool> {
    let mut allowed = all_of(rest)?;
    while let Some((_, after)) = rest.split_first().filter(|(word, _)| *word == "OR") {
        *rest = after;
        allowed |= all_of(rest)?;
    }
    Ok(allowed)
}

fn all_of(rest: &mut &[String]) -> Result<bool> {
    let mut allowed = one(rest)?;
    while let Some((_, after)) = rest.split_first().filter(|(word, _)| *word == "AND") {
        *rest = after;
        allowed &= one(rest)?;
    }
    Ok(allowed)
}

fn one(rest: &mut &[String]) -> Result<bool> {
    let (word, after) = rest.split_first().context("it ends too early")?;
    *rest = after;
    if word != "(" {
        return Ok(LICENCES.contains(&word.as_str()));
    }
    let allowed = any_of(rest)?;
    let (closing, after) = rest.split_first().context("a bracket is not closed")?;
    ensure!(closing == ")", "a bracket is not closed before {closing}");
    *rest = after;
    Ok(allowed)
}

#[test]
fn licence_expressions_are_understood() -> Result<()> {
    for (expression, allowed) in [
        ("MIT", true),
        ("GPL-3.0", false),
        ("MIT/Apache-2.0", true),
        ("GPL-3.0 OR MIT", true),
        ("GPL-3.0 AND MIT", false),
        ("(MIT OR GPL-3.0) AND Unicode-3.0", true),
        ("MIT AND (GPL-3.0 OR AGPL-3.0)", false),
        ("Apache-2.0 WITH LLVM-exception OR GPL-3.0", true),
    ] {
        ensure!(licence_allowed(expression)? == allowed, "{expression}");
    }
    Ok(())
}
