//! The clients that we know, one file for each: which files it reads, in which form, and where that is documented.

mod antigravity;
pub(crate) mod claude_code;
pub(crate) mod claude_desktop;
mod codex;
mod cursor;
mod gemini;
mod opencode;
mod openwaggle;
mod pi;
mod vscode;
mod windsurf;
mod zed;

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::entry::{Entry, Place};
use super::places::Places;
use super::target::{Reference, Target, Way};

/// Everything that is particular to a client.
#[derive(Debug)]
pub(crate) struct Client {
    /// What people type.
    pub(crate) id: &'static str,
    pub(crate) name: &'static str,
    /// Any of these exists where the program is installed.
    pub(crate) signs: fn(&Places) -> Vec<PathBuf>,
    /// The files of the user, the first that exists is used, else the first.
    pub(crate) files: fn(&Places) -> Vec<PathBuf>,
    /// The same below the directory of a project; empty if the client has none.
    pub(crate) project_files: &'static [&'static str],
    pub(crate) reference: Reference,
    entry: fn(&Target, &str) -> Entry,
    /// The file with rules for agents.
    pub(crate) rules_file: &'static str,
    /// What makes the program see the change.
    pub(crate) afterwards: &'static str,
}

/// By id.
pub(crate) const ALL: [&Client; 12] = [
    &antigravity::CLIENT,
    &claude_code::CLIENT,
    &claude_desktop::CLIENT,
    &codex::CLIENT,
    &cursor::CLIENT,
    &gemini::CLIENT,
    &opencode::CLIENT,
    &openwaggle::CLIENT,
    &pi::CLIENT,
    &vscode::CLIENT,
    &windsurf::CLIENT,
    &zed::CLIENT,
];

impl Client {
    pub(crate) fn find(id: &str) -> Option<&'static Self> {
        ALL.into_iter().find(|client| client.id == id)
    }

    /// Our entry for a target, in the form that fits what the file says already.
    pub(crate) fn entry(&self, target: &Target, text: &str) -> Entry {
        (self.entry)(target, text)
    }

    /// The file to edit, for the user or for a project.
    pub(crate) fn file(&self, places: &Places, project: Option<&Path>) -> Option<PathBuf> {
        let candidates = match project {
            None => (self.files)(places),
            Some(dir) => self.project_files.iter().map(|name| dir.join(name)).collect(),
        };
        let existing = candidates.iter().find(|path| path.exists()).cloned();
        existing.or_else(|| candidates.into_iter().next())
    }

    pub(crate) fn is_installed(&self, places: &Places) -> bool {
        (self.signs)(places).iter().any(|path| path.exists())
    }
}

/// The form that most clients share: `mcpServers`, an address and headers; or a command.
fn common(target: &Target, url_field: &str, reference: Reference) -> Entry {
    let value = match target.way {
        Way::Bridge => command(target),
        _ => json!({url_field: target.url, "headers": {"Authorization": target.authorization(reference)}}),
    };
    Entry {
        place: Place::Json(&["mcpServers"]),
        value,
        item: None,
    }
}

fn command(target: &Target) -> Value {
    json!({"command": target.bridge.program, "args": target.bridge.arguments})
}

/// An object with a field in front of the others.
fn with_first(name: &str, first: Value, rest: Value) -> Value {
    let mut fields = serde_json::Map::from_iter([(name.to_owned(), first)]);
    if let Value::Object(rest) = rest {
        fields.extend(rest);
    }
    Value::Object(fields)
}

#[cfg(test)]
mod tests;
