//! The block of rules, in the files of a directory that the chosen clients read.

use std::path::{Path, PathBuf};

use super::report::Line;
use super::{Which, run};
use crate::connect::clients::Client;
use crate::connect::malformed::Malformed;
use crate::connect::plan::State;
use crate::connect::{file, rules};
use crate::failure;

pub(super) fn connect(which: &Which, lines: &mut Vec<Line>) {
    let Some(dir) = &which.rules else { return };
    for (client, path) in files(dir, lines) {
        let mut line = edit(client, path, which.dry_run, |text| rules::set(text).map(Some));
        if line.problem.is_none() {
            line.state = State::Connected;
        }
        lines.push(line);
    }
}

pub(super) fn disconnect(which: &Which, lines: &mut Vec<Line>) {
    let Some(dir) = &which.rules else { return };
    for (client, path) in files(dir, lines) {
        if !path.exists() {
            lines.push(Line::new(client, Some(path), State::Absent));
            continue;
        }
        // A file that held nothing else was made for the block.
        let line = edit(client, path, which.dry_run, |text| {
            rules::remove(text).map(|rest| (!rest.is_empty() || text.is_empty()).then_some(rest))
        });
        lines.push(line);
    }
}

/// One file for each name, with the first client that reads it.
fn files(dir: &Path, lines: &[Line]) -> Vec<(&'static Client, PathBuf)> {
    let mut files: Vec<(&'static Client, PathBuf)> = Vec::new();
    for line in lines {
        let path = dir.join(line.client.rules_file);
        if !files.iter().any(|(_, known)| *known == path) {
            files.push((line.client, path));
        }
    }
    files
}

fn edit(
    client: &'static Client,
    path: PathBuf,
    dry_run: bool,
    change: impl FnOnce(&str) -> Result<Option<String>, Malformed>,
) -> Line {
    let text = match file::read(&path) {
        Ok(text) => text,
        Err(error) => return Line::failed(client, Some(path), error.to_string(), failure::GENERAL),
    };
    match change(text.as_deref().unwrap_or_default()) {
        Ok(after) => run::save(client, path, text.as_deref(), after.as_deref(), false, dry_run),
        Err(at) => Line::malformed(client, path, at),
    }
}
