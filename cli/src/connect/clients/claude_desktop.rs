//! Claude Desktop. Remote servers are added inside the program (Settings, Connectors) and are called from the vendor's
//! machines, so there is no file to edit and an address of this machine cannot work. What can be written is a child
//! process: JSON, `claude_desktop_config.json`, `mcpServers.NAME = {command, args}`.
//! Documented at <https://support.claude.com/en/articles/11175166> (remote connectors) and
//! <https://modelcontextprotocol.io/docs/develop/connect-local-servers> (the file and its places).

use super::{Client, common};
use crate::connect::entry::Entry;
use crate::connect::target::{Reference, Target, Way};

pub(crate) const CLIENT: Client = Client {
    id: "claude-desktop",
    name: "Claude Desktop",
    signs: |places| vec![places.application("Claude")],
    files: |places| vec![places.application("Claude").join("claude_desktop_config.json")],
    project_files: &[],
    reference: Reference::Nothing,
    entry,
    rules_file: "CLAUDE.md",
    afterwards: "restart Claude Desktop",
};

fn entry(target: &Target, _text: &str) -> Entry {
    let target = Target {
        way: Way::Bridge,
        ..target.clone()
    };
    common(&target, "url", Reference::Nothing)
}

/// What a person pastes into the program.
pub(crate) fn instructions(target: &Target, reachable: bool) -> String {
    let reach = if reachable {
        "The calls come from Anthropic's machines: the address must be reachable from the internet over HTTPS."
    } else {
        "This address is one of this machine, and the calls come from Anthropic's machines: it will not work. \
         Use a public HTTPS address, or `waggle connect claude-desktop --bridge`, which runs `waggle mcp` here."
    };
    format!(
        "Claude Desktop: Settings, Connectors, Add custom connector\n  Name           {}\n  URL            {}\n  \
         Header         Authorization\n  Value          Bearer (the API key)\n{reach}\n",
        crate::connect::entry::NAME,
        target.url,
    )
}
