//! Antigravity (desktop and command line). JSON, `~/.gemini/config/mcp_config.json`; earlier versions of the desktop
//! program use `~/.gemini/antigravity/mcp_config.json`, which is taken where it exists alone; `.agents/mcp_config.json` for
//! a project. `mcpServers.NAME = {serverUrl, headers}`; variables are not replaced, so the key stands in the file.
//! Documented at <https://antigravity.google/docs/mcp> and <https://antigravity.google/docs/cli/mcp>; that variables are
//! not replaced: <https://github.com/google-antigravity/antigravity-cli/issues/233>.

use super::{Client, common};
use crate::connect::target::Reference;

pub(crate) const CLIENT: Client = Client {
    id: "antigravity",
    name: "Antigravity",
    signs: |places| {
        ["config", "antigravity", "antigravity-cli"]
            .iter()
            .map(|name| places.home(".gemini").join(name))
            .collect()
    },
    files: |places| {
        vec![
            places.home(".gemini/config/mcp_config.json"),
            places.home(".gemini/antigravity/mcp_config.json"),
        ]
    },
    project_files: &[".agents/mcp_config.json"],
    reference: Reference::Nothing,
    entry: |target, _| common(target, "serverUrl", Reference::Nothing),
    rules_file: "AGENTS.md",
    afterwards: "in MCP servers, refresh",
};
