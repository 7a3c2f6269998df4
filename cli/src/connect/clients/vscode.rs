//! VS Code (Copilot). JSON with comments, `mcp.json` in the user's profile (`Code/User`), `.vscode/mcp.json` for a project:
//! `servers.NAME = {type: "http", url, headers}`; a secret is an item of `inputs` (promptString, password) that is asked
//! for once, kept in the secret store, and used as `${input:ID}`.
//! Documented at <https://code.visualstudio.com/docs/copilot/reference/mcp-configuration>.

use serde_json::json;

use super::{Client, common, with_first};
use crate::connect::entry::{Entry, Item, Place};
use crate::connect::target::{PROMPT_ID, Reference, Target, Way};

pub(crate) const CLIENT: Client = Client {
    id: "vscode",
    name: "VS Code",
    signs: |places| vec![places.application("Code"), places.home(".vscode")],
    files: |places| vec![places.application("Code").join("User/mcp.json")],
    project_files: &[".vscode/mcp.json"],
    reference: Reference::Prompt,
    entry,
    rules_file: "AGENTS.md",
    afterwards: "start the server from the file or from `MCP: List Servers`; it asks for the key once",
};

fn entry(target: &Target, _text: &str) -> Entry {
    let common = common(target, "url", CLIENT.reference);
    let kind = if target.way == Way::Bridge { "stdio" } else { "http" };
    let question = json!({
        "type": "promptString",
        "id": PROMPT_ID,
        "description": "API key of the Waggle gateway",
        "password": true,
    });
    Entry {
        place: Place::Json(&["servers"]),
        value: with_first("type", json!(kind), common.value),
        item: (target.way == Way::Reference).then_some(Item {
            list: "inputs",
            value: question,
        }),
    }
}
