//! OpenCode. JSON with comments, `opencode.json` or `opencode.jsonc` in `$OPENCODE_CONFIG_DIR` (default
//! `~/.config/opencode`), the same names in the directory of a project. Version 2 has `mcp.servers.NAME`, version 1
//! `mcp.NAME`; both `{type: "remote", url, headers}` or `{type: "local", command: [..]}`. Both read the form of version 1, so
//! only a file that has `mcp.servers` gets the other one. `{env:NAME}` is replaced from the environment.
//! Documented at <https://opencode.ai/docs/mcp-servers>, <https://opencode.ai/v1/docs/mcp-servers> and
//! <https://opencode.ai/docs/config>.

use serde_json::{Value, json};

use super::Client;
use crate::connect::entry::{Entry, Place};
use crate::connect::jsonc;
use crate::connect::places::Places;
use crate::connect::target::{Reference, Target, Way};

pub(crate) const CLIENT: Client = Client {
    id: "opencode",
    name: "OpenCode",
    signs: |places| vec![dir(places)],
    files: |places| {
        ["opencode.json", "opencode.jsonc"]
            .iter()
            .map(|name| dir(places).join(name))
            .collect()
    },
    project_files: &["opencode.json", "opencode.jsonc"],
    reference: Reference::CurlyEnv,
    entry,
    rules_file: "AGENTS.md",
    afterwards: "start a new session; `opencode mcp list` shows it",
};

fn dir(places: &Places) -> std::path::PathBuf {
    places
        .variable("OPENCODE_CONFIG_DIR")
        .unwrap_or_else(|| places.config("opencode"))
}

fn entry(target: &Target, text: &str) -> Entry {
    let value = match target.way {
        Way::Bridge => {
            let command: Vec<&String> = std::iter::once(&target.bridge.program)
                .chain(&target.bridge.arguments)
                .collect();
            json!({"type": "local", "command": command})
        }
        // Without `oauth: false` the client would try to sign in instead of using the header.
        _ => json!({
            "type": "remote",
            "url": target.url,
            "headers": {"Authorization": target.authorization(CLIENT.reference)},
            "oauth": false,
        }),
    };
    Entry {
        place: Place::Json(if is_version_2(text) {
            &["mcp", "servers"]
        } else {
            &["mcp"]
        }),
        value,
        item: None,
    }
}

/// Whether `mcp` has a group of servers: an object that is no server itself.
fn is_version_2(text: &str) -> bool {
    let servers = jsonc::get(text, &["mcp", "servers"]).ok().flatten();
    let servers = servers.as_ref().and_then(Value::as_object);
    servers.is_some_and(|all| !matches!(all.get("type").and_then(Value::as_str), Some("local" | "remote")))
}
