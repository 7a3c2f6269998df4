//! Two files that must agree with others, because the tools that read them do not look elsewhere.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use crate::crates::BANNED_CRATES;
use crate::licences::LICENCES;
use crate::repository::{read, report};

#[test]
fn deny_toml_has_the_same_lists() -> Result<()> {
    let deny = toml_file("deny.toml")?;
    let texts = |value: Option<&toml::Value>| -> BTreeSet<String> {
        let list = value
            .and_then(toml::Value::as_array)
            .map(Vec::as_slice)
            .unwrap_or_default();
        list.iter()
            .filter_map(|entry| entry.as_str().or_else(|| entry.get("crate")?.as_str()))
            .map(str::to_owned)
            .collect()
    };
    let plain = |list: &[&str]| -> BTreeSet<String> {
        list.iter()
            .flat_map(|entry| entry.split(" WITH ").next())
            .map(str::to_owned)
            .collect()
    };
    let allowed: BTreeSet<String> = texts(deny.get("licenses").and_then(|part| part.get("allow")))
        .iter()
        .filter_map(|entry| entry.split(" WITH ").next().map(str::to_owned))
        .collect();
    ensure!(
        allowed == plain(LICENCES),
        "licences: deny.toml {allowed:?}, tidy {:?}",
        plain(LICENCES)
    );
    let banned = texts(deny.get("bans").and_then(|part| part.get("deny")));
    ensure!(
        banned == plain(BANNED_CRATES),
        "banned crates: deny.toml {banned:?}, tidy {BANNED_CRATES:?}"
    );
    Ok(())
}

#[test]
fn the_lints_of_the_pure_domain_include_those_of_the_rest() -> Result<()> {
    // clippy takes the nearest clippy.toml and forgets the one above it.
    let (general, memory) = (toml_file("clippy.toml")?, toml_file("node/memory/clippy.toml")?);
    let general = general.as_table().context("clippy.toml is no table")?;
    let mut problems = Vec::new();
    for (key, value) in general {
        let own = memory.get(key);
        let missing: Vec<String> = match (value, own) {
            (toml::Value::Array(rules), Some(toml::Value::Array(own))) => rules
                .iter()
                .map(rule_path)
                .filter(|path| !own.iter().any(|rule| rule_path(rule) == *path))
                .collect(),
            (value, Some(own)) if value == own => Vec::new(),
            (value, _) => vec![value.to_string()],
        };
        problems.extend(
            missing
                .into_iter()
                .map(|rule| format!("node/memory/clippy.toml lacks {key}: {rule}")),
        );
    }
    for banned in ["std::collections::HashMap", "std::collections::HashSet"] {
        let types = memory
            .get("disallowed-types")
            .and_then(toml::Value::as_array)
            .map(Vec::as_slice)
            .unwrap_or_default();
        if !types.iter().any(|rule| rule_path(rule) == banned) {
            problems.push(format!("node/memory/clippy.toml does not ban {banned}"));
        }
    }
    report(problems)
}

fn toml_file(name: &str) -> Result<toml::Value> {
    toml::from_str(&read(Path::new(name))?).with_context(|| format!("read {name}"))
}

/// A lint rule is a path, or a table with a path and a reason.
fn rule_path(rule: &toml::Value) -> String {
    rule.as_str()
        .or_else(|| rule.get("path")?.as_str())
        .unwrap_or_default()
        .to_owned()
}
