//! Cursor. JSON, `~/.cursor/mcp.json` for the user, `.cursor/mcp.json` for a project: `mcpServers.NAME = {url, headers}`;
//! `${env:NAME}` is replaced from the environment. Documented at <https://cursor.com/docs/mcp> (config interpolation).

use super::{Client, common};
use crate::connect::target::Reference;

pub(crate) const CLIENT: Client = Client {
    id: "cursor",
    name: "Cursor",
    signs: |places| vec![places.home(".cursor"), places.application("Cursor")],
    files: |places| vec![places.home(".cursor/mcp.json")],
    project_files: &[".cursor/mcp.json"],
    reference: Reference::EnvBraces,
    entry: |target, _| common(target, "url", Reference::EnvBraces),
    rules_file: "AGENTS.md",
    afterwards: "restart Cursor from where the variable is set",
};
