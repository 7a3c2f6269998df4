//! Claude Code. JSON, `~/.claude.json` for the user (or `.claude.json` in `$CLAUDE_CONFIG_DIR`), `.mcp.json` for a project:
//! `mcpServers.NAME = {type: "http", url, headers}`; `${NAME}` is replaced from the environment.
//! Documented at <https://code.claude.com/docs/en/mcp> (scopes; environment variable expansion).

use serde_json::json;

use super::{Client, common, with_first};
use crate::connect::entry::Entry;
use crate::connect::places::Places;
use crate::connect::target::{Reference, Target, Way};

pub(crate) const CLIENT: Client = Client {
    id: "claude-code",
    name: "Claude Code",
    signs: |places| {
        vec![
            places.home(".claude.json"),
            places.or_home("CLAUDE_CONFIG_DIR", ".claude"),
        ]
    },
    files: |places| vec![file(places)],
    project_files: &[".mcp.json"],
    reference: Reference::Braces,
    entry,
    rules_file: "CLAUDE.md",
    afterwards: "start a new session; `/mcp` shows the connection",
};

fn file(places: &Places) -> std::path::PathBuf {
    places.or_home("CLAUDE_CONFIG_DIR", "").join(".claude.json")
}

fn entry(target: &Target, _text: &str) -> Entry {
    let mut entry = common(target, "url", CLIENT.reference);
    let kind = if target.way == Way::Bridge { "stdio" } else { "http" };
    entry.value = with_first("type", json!(kind), entry.value);
    entry
}
