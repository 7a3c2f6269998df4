//! Zed. JSON with comments and trailing commas, `settings.json` in `~/.config/zed` (Windows: `%APPDATA%\Zed`),
//! `.zed/settings.json` for a project: `context_servers.NAME = {url, headers}` or `{command, args}`; variables are not
//! replaced in headers, so the key stands in the file. Documented at <https://zed.dev/docs/ai/mcp>; that variables are not
//! replaced: <https://github.com/zed-industries/zed/issues/60459>.

use std::path::PathBuf;

use super::{Client, common};
use crate::connect::entry::Place;
use crate::connect::places::{Places, Platform};
use crate::connect::target::Reference;

pub(crate) const CLIENT: Client = Client {
    id: "zed",
    name: "Zed",
    signs: |places| vec![dir(places)],
    files: |places| vec![dir(places).join("settings.json")],
    project_files: &[".zed/settings.json"],
    reference: Reference::Nothing,
    entry: |target, _| {
        let mut entry = common(target, "url", Reference::Nothing);
        entry.place = Place::Json(&["context_servers"]);
        entry
    },
    rules_file: "AGENTS.md",
    afterwards: "nothing: Zed reads its settings anew",
};

fn dir(places: &Places) -> PathBuf {
    match places.platform() {
        Platform::Windows => places.application("Zed"),
        _ => places.config("zed"),
    }
}
