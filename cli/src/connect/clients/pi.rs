//! Pi. JSON, `mcp.json` in `$PI_CODING_AGENT_DIR` (default `~/.pi/agent`), `.pi/mcp.json` for a project:
//! `mcpServers.NAME = {url, headers}`; `${NAME}` is replaced from the environment in headers, not in the address.
//! Documented in the program's own `docs/mcp.md`; `pi mcp add` writes the same form.

use super::{Client, common};
use crate::connect::target::Reference;

pub(crate) const CLIENT: Client = Client {
    id: "pi",
    name: "Pi",
    signs: |places| vec![places.or_home("PI_CODING_AGENT_DIR", ".pi/agent")],
    files: |places| vec![places.or_home("PI_CODING_AGENT_DIR", ".pi/agent").join("mcp.json")],
    project_files: &[".pi/mcp.json"],
    reference: Reference::Braces,
    entry: |target, _| common(target, "url", Reference::Braces),
    rules_file: "AGENTS.md",
    afterwards: "start a new session",
};
