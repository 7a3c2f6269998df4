//! Rules about the repository itself that a machine can check: which crate may use which, what may be linked, what must
//! be documented, how long files may be, which words must not appear. They run as a test so that one command checks all.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use waggle_tests::workspace::root;

/// Our crates and what each may use of ours. The arrows point down; whoever needs a new one changes the design first.
const ARROWS: &[(&str, &[&str])] = &[
    ("waggle-memory", &[]),
    ("waggle-proto", &["waggle-memory"]),
    ("waggle-config", &["waggle-memory"]),
    ("waggle-shard", &["waggle-memory", "waggle-proto", "waggle-config"]),
    ("waggle-recall", &["waggle-memory", "waggle-config"]),
    ("waggle-store", &["waggle-memory", "waggle-proto", "waggle-config", "waggle-shard"]),
    ("waggle-federation", &["waggle-memory", "waggle-proto", "waggle-config", "waggle-shard"]),
    (
        "waggle-node",
        &[
            "waggle-memory",
            "waggle-proto",
            "waggle-config",
            "waggle-shard",
            "waggle-recall",
            "waggle-store",
            "waggle-federation",
        ],
    ),
    // Never shard, store, recall or federation: a gateway reaches them over the network only.
    ("waggle-gateway", &["waggle-memory", "waggle-proto", "waggle-config"]),
    // Recall for `waggle model`, memory and proto for the admin commands.
    (
        "waggle",
        &["waggle-gateway", "waggle-node", "waggle-config", "waggle-memory", "waggle-proto", "waggle-recall"],
    ),
    ("waggle-chaos", &["waggle-memory", "waggle-proto", "waggle-config", "waggle-gateway"]),
    (
        "waggle-tests",
        &["waggle-memory", "waggle-proto", "waggle-config", "waggle-gateway", "waggle-shard", "waggle-store"],
    ),
];

/// Libraries that only some of our crates may name, so that each can be replaced in one place.
const KEPT: &[(&str, &[&str])] = &[
    ("rocksdb", &["waggle-store"]),
    ("openraft", &["waggle-shard", "waggle-store"]),
    ("quinn", &["waggle-federation"]),
    ("rmcp", &["waggle-gateway"]),
    ("tokenizers", &["waggle-recall"]),
    ("clap", &["waggle"]),
];

/// What would let time, chance, IO or the wire into the pure domain.
const NOT_IN_MEMORY: &[&str] =
    &["tokio", "futures", "serde", "serde_json", "prost", "rocksdb", "tracing", "log", "rand", "getrandom", "chrono"];

/// A second TLS provider can make a process panic at its start; the others are unmaintained.
const BANNED_CRATES: &[&str] =
    &["aws-lc-rs", "aws-lc-sys", "aws-lc-fips-sys", "openssl", "openssl-sys", "native-tls", "backoff", "instant"];
const TARGETS: &[&str] = &["x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu", "aarch64-apple-darwin"];

/// deny.toml has the same list; a test compares the two.
const LICENCES: &[&str] = &[
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

const FILE_LINES_MAX: usize = 400;

// --- what is used

#[test]
fn our_crates_use_each_other_only_along_the_arrows() -> Result<()> {
    let arrows: BTreeMap<&str, &[&str]> = ARROWS.iter().copied().collect();
    let mut problems = Vec::new();
    for (name, package) in our_packages(&metadata(&["--no-deps"])?)? {
        let Some(allowed) = arrows.get(name.as_str()) else {
            problems.push(format!("{name} is not in the table of arrows"));
            continue;
        };
        for dependency in dependencies(&package) {
            if arrows.contains_key(dependency.as_str()) && !allowed.contains(&dependency.as_str()) {
                problems.push(format!("{name} uses {dependency}"));
            }
            if KEPT.iter().any(|(library, users)| *library == dependency && !users.contains(&name.as_str())) {
                problems.push(format!("{name} uses {dependency}, which other crates keep to themselves"));
            }
            if name == "waggle-memory" && NOT_IN_MEMORY.contains(&dependency.as_str()) && !only_for_tests(&package, &dependency)
            {
                problems.push(format!("{name} is pure and uses {dependency}"));
            }
        }
    }
    report(problems)
}

#[test]
fn one_tls_provider_and_no_banned_crate_on_any_platform() -> Result<()> {
    let mut problems = Vec::new();
    for target in TARGETS {
        let metadata = metadata(&["--filter-platform", target])?;
        let names = resolved_names(&metadata)?;
        for banned in BANNED_CRATES {
            if names.contains(*banned) {
                problems.push(format!("{target}: {banned} (find out why with: cargo tree -i {banned} --target {target})"));
            }
        }
        if !names.contains("ring") {
            problems.push(format!("{target}: ring, our TLS provider, is missing"));
        }
    }
    report(problems)
}

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

#[test]
fn deny_toml_has_the_same_lists() -> Result<()> {
    let deny = toml_file("deny.toml")?;
    let texts = |value: Option<&toml::Value>| -> BTreeSet<String> {
        let list = value.and_then(toml::Value::as_array).map(Vec::as_slice).unwrap_or_default();
        list.iter()
            .filter_map(|entry| entry.as_str().or_else(|| entry.get("crate")?.as_str()))
            .map(str::to_owned)
            .collect()
    };
    let plain = |list: &[&str]| -> BTreeSet<String> {
        list.iter().flat_map(|entry| entry.split(" WITH ").next()).map(str::to_owned).collect()
    };
    let allowed: BTreeSet<String> = texts(deny.get("licenses").and_then(|part| part.get("allow")))
        .iter()
        .filter_map(|entry| entry.split(" WITH ").next().map(str::to_owned))
        .collect();
    ensure!(allowed == plain(LICENCES), "licences: deny.toml {allowed:?}, tidy {:?}", plain(LICENCES));
    let banned = texts(deny.get("bans").and_then(|part| part.get("deny")));
    ensure!(banned == plain(BANNED_CRATES), "banned crates: deny.toml {banned:?}, tidy {BANNED_CRATES:?}");
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
            (toml::Value::Array(rules), Some(toml::Value::Array(own))) => {
                rules.iter().map(rule_path).filter(|path| !own.iter().any(|rule| rule_path(rule) == *path)).collect()
            }
            (value, Some(own)) if value == own => Vec::new(),
            (value, _) => vec![value.to_string()],
        };
        problems.extend(missing.into_iter().map(|rule| format!("node/memory/clippy.toml lacks {key}: {rule}")));
    }
    for banned in ["std::collections::HashMap", "std::collections::HashSet"] {
        let types = memory.get("disallowed-types").and_then(toml::Value::as_array).map(Vec::as_slice).unwrap_or_default();
        if !types.iter().any(|rule| rule_path(rule) == banned) {
            problems.push(format!("node/memory/clippy.toml does not ban {banned}"));
        }
    }
    report(problems)
}

// --- what is documented

#[test]
fn every_invariant_that_code_cites_is_documented() -> Result<()> {
    let documented = cited(&fs::read_to_string(root().join("docs/invariants.md")).context("read docs/invariants.md")?);
    let mut problems = Vec::new();
    for path in tracked_files()?.iter().filter(|path| is_code(path)) {
        for invariant in cited(&read(path)?) {
            if !documented.contains(&invariant) {
                problems.push(format!("{} cites {invariant}, which docs/invariants.md does not have", path.display()));
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
    ensure!(!codes.is_empty(), "no line like (\"not_found\", 404) in {}", source.display());
    let mut pages = BTreeSet::new();
    for entry in fs::read_dir(root().join("docs/errors")).context("list docs/errors")? {
        let path = entry?.path();
        let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default().to_owned();
        if path.extension().is_some_and(|extension| extension == "md") && stem != "README" {
            pages.insert(stem);
        }
    }
    let mut problems: Vec<String> = codes.difference(&pages).map(|code| format!("docs/errors/{code}.md is missing")).collect();
    problems.extend(pages.difference(&codes).map(|page| format!("docs/errors/{page}.md is about no known code")));
    report(problems)
}

// --- what is written

/// Files above the limit are listed in tests/tidy/long_files.txt with their length. They may shrink; `UPDATE=1` writes
/// the list anew, and whoever reads the change sees what grew.
#[test]
fn files_stay_short_or_at_least_do_not_grow() -> Result<()> {
    let list = root().join("tests/tidy/long_files.txt");
    let mut long = BTreeMap::new();
    for path in tracked_files()?.iter().filter(|path| path.extension().is_some_and(|extension| extension == "rs")) {
        let lines = read(path)?.lines().count();
        if lines > FILE_LINES_MAX {
            long.insert(path.display().to_string(), lines);
        }
    }
    if env::var_os("UPDATE").is_some() {
        let text: String = long.iter().map(|(path, lines)| format!("{lines} {path}\n")).collect();
        fs::write(&list, text).context("write the list of long files")?;
        return Ok(());
    }
    let mut known = BTreeMap::new();
    for line in fs::read_to_string(&list).unwrap_or_default().lines() {
        let (lines, path) = line.split_once(' ').with_context(|| format!("read {line:?} of {}", list.display()))?;
        known.insert(path.to_owned(), lines.parse::<usize>()?);
    }
    let mut problems = Vec::new();
    for (path, lines) in &long {
        match known.get(path) {
            None => problems.push(format!("{path} has {lines} lines; split it by meaning below {FILE_LINES_MAX}")),
            Some(before) if lines > before => problems.push(format!("{path} grew from {before} to {lines} lines")),
            Some(_) => {}
        }
    }
    if !problems.is_empty() {
        problems.push("where a file is long for a good reason: UPDATE=1 cargo test -p waggle-tests --test tidy".to_owned());
    }
    report(problems)
}

#[test]
fn nothing_names_the_machine_it_was_written_on() -> Result<()> {
    // Put together from halves, or this file would find itself.
    let banned = [
        concat!("/wo", "rk/"),
        concat!("/ro", "ot/"),
        concat!("registry.", "npmjs"),
        concat!("registry.", "yarnpkg"),
        concat!("index.", "crates.io"),
        concat!("static.", "crates.io"),
        concat!("py", "pi.org"),
        concat!("python", "hosted.org"),
        concat!("deb.", "debian.org"),
        concat!("proxy.", "golang.org"),
    ];
    let mut problems = Vec::new();
    for path in tracked_files()? {
        // Binary files have no words.
        let Ok(text) = fs::read_to_string(root().join(&path)) else { continue };
        for (number, line) in text.lines().enumerate() {
            for word in banned.iter().filter(|word| line.contains(**word)) {
                problems.push(format!("{}:{}: {word}", path.display(), number + 1));
            }
        }
    }
    report(problems)
}

// --- reading the repository

fn report(problems: Vec<String>) -> Result<()> {
    ensure!(problems.is_empty(), "{} problems:\n  {}", problems.len(), problems.join("\n  "));
    Ok(())
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(root().join(path)).with_context(|| format!("read {}", path.display()))
}

/// Files that git knows or would take, without those that were deleted and not yet committed.
fn tracked_files() -> Result<Vec<PathBuf>> {
    let listed = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard", "-z"])
        .current_dir(root())
        .output()
        .context("run git ls-files")?;
    ensure!(listed.status.success(), "git ls-files: {}", String::from_utf8_lossy(&listed.stderr));
    let names = String::from_utf8(listed.stdout).context("read the file names of git")?;
    let mut files: Vec<PathBuf> = names.split_terminator('\0').map(PathBuf::from).collect();
    files.retain(|path| root().join(path).is_file());
    ensure!(!files.is_empty(), "git knows no files here");
    Ok(files)
}

fn is_code(path: &Path) -> bool {
    path.extension().is_some_and(|extension| ["rs", "proto", "py", "mjs", "sh"].iter().any(|code| extension == *code))
}

fn toml_file(name: &str) -> Result<toml::Value> {
    toml::from_str(&read(Path::new(name))?).with_context(|| format!("read {name}"))
}

/// A lint rule is a path, or a table with a path and a reason.
fn rule_path(rule: &toml::Value) -> String {
    rule.as_str().or_else(|| rule.get("path")?.as_str()).unwrap_or_default().to_owned()
}

/// All I-00 in a text.
fn cited(text: &str) -> BTreeSet<String> {
    let bytes = text.as_bytes();
    let digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    let word = |at: usize| bytes.get(at).is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'-');
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

// --- reading cargo

/// Offline first: what is compiled is here. Packages of another platform may have to be fetched.
fn metadata(options: &[&str]) -> Result<Value> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut said = String::new();
    for network in [&["--offline"][..], &[]] {
        let output = Command::new(&cargo)
            .args(["metadata", "--format-version", "1", "--locked"])
            .args(options)
            .args(network)
            .current_dir(root())
            .output()
            .context("run cargo metadata")?;
        if output.status.success() {
            return serde_json::from_slice(&output.stdout).context("read the output of cargo metadata");
        }
        said = String::from_utf8_lossy(&output.stderr).into_owned();
    }
    bail!("cargo metadata {}: {said}", options.join(" "))
}

fn packages(metadata: &Value) -> Result<&[Value]> {
    Ok(metadata["packages"].as_array().context("find the packages in cargo's metadata")?)
}

fn our_packages(metadata: &Value) -> Result<BTreeMap<String, Value>> {
    let members = metadata["workspace_members"].as_array().context("find the members in cargo's metadata")?;
    let ours = packages(metadata)?.iter().filter(|package| members.contains(&package["id"]));
    Ok(ours.map(|package| (package["name"].as_str().unwrap_or_default().to_owned(), package.clone())).collect())
}

fn dependencies(package: &Value) -> BTreeSet<String> {
    let list = package["dependencies"].as_array().map(Vec::as_slice).unwrap_or_default();
    list.iter().filter_map(|dependency| dependency["name"].as_str()).map(str::to_owned).collect()
}

fn only_for_tests(package: &Value, name: &str) -> bool {
    let list = package["dependencies"].as_array().map(Vec::as_slice).unwrap_or_default();
    list.iter().filter(|dependency| dependency["name"] == name).all(|dependency| dependency["kind"] == "dev")
}

/// What would really be compiled: optional packages that nobody turns on are in the lock file only.
fn resolved_names(metadata: &Value) -> Result<BTreeSet<String>> {
    let names: BTreeMap<&str, &str> = packages(metadata)?
        .iter()
        .filter_map(|package| Some((package["id"].as_str()?, package["name"].as_str()?)))
        .collect();
    let nodes = metadata["resolve"]["nodes"].as_array().context("find the resolved packages")?;
    Ok(nodes.iter().filter_map(|node| names.get(node["id"].as_str()?)).map(|name| (*name).to_owned()).collect())
}

// --- licence expressions: words, AND, OR (or the old slash), brackets; AND binds closer

fn licence_allowed(expression: &str) -> Result<bool> {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ").replace(" WITH ", "\u{0}");
    let words: Vec<String> = spaced.split_whitespace().map(|word| word.replace('\u{0}', " WITH ")).collect();
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
