//! Windsurf. JSON, `~/.codeium/windsurf/mcp_config.json`, for the user only: `mcpServers.NAME = {serverUrl, headers}`;
//! `${env:NAME}` is replaced from the environment. Documented at <https://docs.windsurf.com/windsurf/cascade/mcp>.

use super::{Client, common};
use crate::connect::target::Reference;

pub(crate) const CLIENT: Client = Client {
    id: "windsurf",
    name: "Windsurf",
    signs: |places| vec![places.home(".codeium/windsurf"), places.application("Windsurf")],
    files: |places| vec![places.home(".codeium/windsurf/mcp_config.json")],
    project_files: &[],
    reference: Reference::EnvBraces,
    entry: |target, _| common(target, "serverUrl", Reference::EnvBraces),
    rules_file: "AGENTS.md",
    afterwards: "restart Windsurf from where the variable is set",
};
