//! Gemini CLI. JSON with comments, `~/.gemini/settings.json` for the user, `.gemini/settings.json` for a project:
//! `mcpServers.NAME = {httpUrl, headers}` (`url` would mean the older event-stream transport); `$NAME` and `${NAME}` are
//! replaced from the environment. Documented at <https://geminicli.com/docs/tools/mcp-server> and
//! <https://geminicli.com/docs/cli/configuration>.

use super::{Client, common};
use crate::connect::target::Reference;

pub(crate) const CLIENT: Client = Client {
    id: "gemini",
    name: "Gemini CLI",
    // The directory alone may be Antigravity's.
    signs: |places| vec![places.or_home("GEMINI_CLI_HOME", "").join(".gemini/settings.json")],
    files: |places| vec![places.or_home("GEMINI_CLI_HOME", "").join(".gemini/settings.json")],
    project_files: &[".gemini/settings.json"],
    reference: Reference::Braces,
    entry: |target, _| common(target, "httpUrl", Reference::Braces),
    rules_file: "GEMINI.md",
    afterwards: "start a new session; `/mcp` shows the connection",
};
