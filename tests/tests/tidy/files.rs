//! How long files may be, and words that must not stand in them.

use std::collections::BTreeMap;
use std::env;
use std::fs;

use anyhow::{Context, Result};
use waggle_tests::workspace::root;

use crate::repository::{read, report, tracked_files};

const FILE_LINES_MAX: usize = 400;

/// Files above the limit are listed in long_files.txt with their length. They may shrink; `UPDATE=1` writes the list
/// anew, and whoever reads the change sees what grew.
#[test]
fn files_stay_short_or_at_least_do_not_grow() -> Result<()> {
    let list = root().join("tests/tests/tidy/long_files.txt");
    let mut long = BTreeMap::new();
    for path in tracked_files()?
        .iter()
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
    {
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
        let (lines, path) = line
            .split_once(' ')
            .with_context(|| format!("read {line:?} of {}", list.display()))?;
        known.insert(path.to_owned(), lines.parse::<usize>()?);
    }
    let mut problems = Vec::new();
    for (path, lines) in &long {
        match known.get(path) {
            None => problems.push(format!(
                "{path} has {lines} lines; split it by meaning below {FILE_LINES_MAX}"
            )),
            Some(before) if lines > before => problems.push(format!("{path} grew from {before} to {lines} lines")),
            Some(_) => {}
        }
    }
    if !problems.is_empty() {
        problems
            .push("where a file is long for a good reason: UPDATE=1 cargo test -p waggle-tests --test tidy".to_owned());
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
        let Ok(text) = fs::read_to_string(root().join(&path)) else {
            continue;
        };
        for (number, line) in text.lines().enumerate() {
            for word in banned.iter().filter(|word| has(line, word)) {
                problems.push(format!("{}:{}: {word}", path.display(), number + 1));
            }
        }
    }
    report(problems)
}

/// A folder counts where a path begins with it: `c:/x/` and `src/x/` are other folders.
fn has(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !word.starts_with('/') || before.is_none_or(|before| !before.is_alphanumeric() && !":.-_~".contains(before))
    })
}
