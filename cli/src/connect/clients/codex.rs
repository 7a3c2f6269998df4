//! Codex. TOML, `config.toml` in `$CODEX_HOME` (default `~/.codex`), for a trusted project `.codex/config.toml`:
//! `[mcp_servers.NAME]` with `url` and `bearer_token_env_var`, which names the variable; a token in the file goes into
//! `http_headers`. Documented at <https://developers.openai.com/codex/mcp>.

use serde_json::json;

use super::{Client, command};
use crate::connect::entry::{Entry, Place};
use crate::connect::target::{Reference, Target, Way};

pub(crate) const CLIENT: Client = Client {
    id: "codex",
    name: "Codex",
    signs: |places| vec![places.or_home("CODEX_HOME", ".codex")],
    files: |places| vec![places.or_home("CODEX_HOME", ".codex").join("config.toml")],
    project_files: &[".codex/config.toml"],
    reference: Reference::NamedField,
    entry,
    rules_file: "AGENTS.md",
    afterwards: "start a new session; `codex mcp list` shows it",
};

fn entry(target: &Target, _text: &str) -> Entry {
    let value = match target.way {
        Way::Reference => json!({"url": target.url, "bearer_token_env_var": target.variable}),
        Way::KeyInFile => {
            json!({"url": target.url, "http_headers": {"Authorization": target.authorization(CLIENT.reference)}})
        }
        Way::Bridge => command(target),
    };
    Entry {
        place: Place::Toml("mcp_servers"),
        value,
        item: None,
    }
}
