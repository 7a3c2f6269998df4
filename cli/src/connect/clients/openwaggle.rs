//! OpenWaggle. JSON, `~/.openwaggle/mcp.json` for the user, `.openwaggle/mcp.json` for a project:
//! `mcpServers.NAME = {url, headers}`; `${NAME}` is replaced from the environment. The form is Pi's, on which it is built.

use super::{Client, common};
use crate::connect::target::Reference;

pub(crate) const CLIENT: Client = Client {
    id: "openwaggle",
    name: "OpenWaggle",
    signs: |places| vec![places.home(".openwaggle")],
    files: |places| vec![places.home(".openwaggle/mcp.json")],
    project_files: &[".openwaggle/mcp.json"],
    reference: Reference::Braces,
    entry: |target, _| common(target, "url", Reference::Braces),
    rules_file: "AGENTS.md",
    afterwards: "restart OpenWaggle",
};
