use std::path::PathBuf;

use serde_json::Value;

use super::*;
use crate::connect::places::Platform;
use crate::connect::plan::{self, Removal, State};
use crate::connect::target::Bridge;

fn target(way: Way) -> Target {
    Target {
        url: "http://127.0.0.1:7700/mcp".to_owned(),
        variable: "WAGGLE_KEY".to_owned(),
        key: Some("wg_dev_k_s_c".to_owned()),
        way,
        bridge: Bridge {
            program: "/usr/bin/waggle".to_owned(),
            arguments: ["mcp", "--url", "http://127.0.0.1:7700/mcp", "--key-file", "/k"]
                .map(str::to_owned)
                .to_vec(),
        },
    }
}

fn client(id: &str) -> &'static Client {
    Client::find(id).expect("a client")
}

/// What a parser that is not ours reads from a file of the client.
fn read(client: &Client, text: &str) -> Value {
    match client.entry(&target(Way::Reference), "").place {
        Place::Toml(_) => ::toml::from_str(text).expect("TOML"),
        Place::Json(_) => serde_json::from_str(text).expect("JSON"),
    }
}

/// (client, the file where there was none).
const NEW_FILES: [(&str, &str); 12] = [
    (
        "antigravity",
        r#"{"mcpServers":{"waggle":{"serverUrl":"http://127.0.0.1:7700/mcp","headers":{"Authorization":"Bearer wg_dev_k_s_c"}}}}"#,
    ),
    (
        "claude-code",
        r#"{"mcpServers":{"waggle":{"type":"http","url":"http://127.0.0.1:7700/mcp","headers":{"Authorization":"Bearer ${WAGGLE_KEY}"}}}}"#,
    ),
    (
        "claude-desktop",
        r#"{"mcpServers":{"waggle":{"command":"/usr/bin/waggle","args":["mcp","--url","http://127.0.0.1:7700/mcp","--key-file","/k"]}}}"#,
    ),
    (
        "codex",
        r#"{"mcp_servers":{"waggle":{"url":"http://127.0.0.1:7700/mcp","bearer_token_env_var":"WAGGLE_KEY"}}}"#,
    ),
    (
        "cursor",
        r#"{"mcpServers":{"waggle":{"url":"http://127.0.0.1:7700/mcp","headers":{"Authorization":"Bearer ${env:WAGGLE_KEY}"}}}}"#,
    ),
    (
        "gemini",
        r#"{"mcpServers":{"waggle":{"httpUrl":"http://127.0.0.1:7700/mcp","headers":{"Authorization":"Bearer ${WAGGLE_KEY}"}}}}"#,
    ),
    (
        "opencode",
        r#"{"mcp":{"waggle":{"type":"remote","url":"http://127.0.0.1:7700/mcp","headers":{"Authorization":"Bearer {env:WAGGLE_KEY}"},"oauth":false}}}"#,
    ),
    (
        "openwaggle",
        r#"{"mcpServers":{"waggle":{"url":"http://127.0.0.1:7700/mcp","headers":{"Authorization":"Bearer ${WAGGLE_KEY}"}}}}"#,
    ),
    (
        "pi",
        r#"{"mcpServers":{"waggle":{"url":"http://127.0.0.1:7700/mcp","headers":{"Authorization":"Bearer ${WAGGLE_KEY}"}}}}"#,
    ),
    (
        "vscode",
        r#"{"servers":{"waggle":{"type":"http","url":"http://127.0.0.1:7700/mcp","headers":{"Authorization":"Bearer ${input:waggle-key}"}}},"inputs":[{"type":"promptString","id":"waggle-key","description":"API key of the Waggle gateway","password":true}]}"#,
    ),
    (
        "windsurf",
        r#"{"mcpServers":{"waggle":{"serverUrl":"http://127.0.0.1:7700/mcp","headers":{"Authorization":"Bearer ${env:WAGGLE_KEY}"}}}}"#,
    ),
    (
        "zed",
        r#"{"context_servers":{"waggle":{"url":"http://127.0.0.1:7700/mcp","headers":{"Authorization":"Bearer wg_dev_k_s_c"}}}}"#,
    ),
];

#[test]
fn every_client_gets_its_own_form() {
    assert_eq!(NEW_FILES.map(|(id, _)| id), ALL.map(|client| client.id));
    for (id, wanted) in NEW_FILES {
        let text = plan::connect(client(id), &target(Way::Reference), "").expect("connected");
        let wanted: Value = serde_json::from_str(wanted).expect("JSON");
        assert_eq!(read(client(id), &text), wanted, "{id}:\n{text}");
    }
}

#[test]
fn only_clients_without_references_hold_the_key() {
    for client in ALL {
        let text = plan::connect(client, &target(Way::Reference), "").expect("connected");
        let holds = text.contains("wg_dev_k_s_c");
        assert_eq!(
            holds,
            client.reference == Reference::Nothing && client.id != "claude-desktop",
            "{}",
            client.id
        );
        let text = plan::connect(client, &target(Way::Bridge), "").expect("connected");
        assert!(
            !text.contains("wg_dev"),
            "{}: the bridge reads the key itself",
            client.id
        );
        assert!(text.contains("/usr/bin/waggle"), "{}", client.id);
    }
}

/// Files as people have them, for clients of each form.
const FILES: [(&str, &str); 7] = [
    (
        "claude-code",
        "{\n  \"numStartups\": 7,\n  \"projects\": {\"/p\": {\"mcpServers\": {\"waggle\": 1}}},\n  \"mcpServers\": {}\n}",
    ),
    ("cursor", "{\"mcpServers\":{\"a\":{\"command\":\"x\"}}}\n"),
    (
        "zed",
        "// settings\n{\n  \"theme\": \"One\", // light\n  \"context_servers\": {\n    \"a\": {},\n  },\n}\n",
    ),
    ("vscode", "{\r\n\t\"inputs\": [],\r\n\t\"servers\": {\r\n\t}\r\n}\r\n"),
    (
        "codex",
        "# mine\nmodel = \"o\"\n\n[mcp_servers.a]\ncommand = \"x\" # keep\n\n[tui]\ntheme = 'dark'\n",
    ),
    (
        "opencode",
        "{\n    \"mcp\": {\n        \"a\": {\"type\": \"local\", \"command\": [\"x\"]}\n    }\n}\n",
    ),
    ("gemini", "{}"),
];

#[test]
fn the_rest_of_a_file_stays_and_disconnecting_restores_every_byte() {
    for (id, before) in FILES {
        let client = client(id);
        for way in [Way::Reference, Way::KeyInFile, Way::Bridge] {
            let target = target(way);
            let after = plan::connect(client, &target, before).expect("connected");
            assert_eq!(
                plan::connect(client, &target, &after).expect("connected"),
                after,
                "{id}: a second time"
            );
            assert_eq!(
                plan::state(client, &target, &after).expect("state"),
                State::Connected,
                "{id}"
            );
            assert_eq!(
                plan::state(client, &target, before).expect("state"),
                State::Absent,
                "{id}"
            );
            let mut rest = after.lines();
            for line in before.lines() {
                let kept = line.trim().trim_end_matches(['{', '}', '[', ']', ',']);
                assert!(rest.any(|one| one.contains(kept)), "{id}: lost '{line}' in\n{after}");
            }
            let removal = plan::disconnect(client, &target, &after, &[before.to_owned()]).expect("disconnected");
            assert_eq!(removal, Removal::Text(before.to_owned()), "{id}");
            let other = plan::disconnect(client, &target, &after, &["{}".to_owned(), before.to_owned()]);
            assert_eq!(
                other.expect("disconnected"),
                Removal::Text(before.to_owned()),
                "{id}: an older backup"
            );
        }
    }
}

#[test]
fn a_file_that_was_edited_since_loses_our_entry_alone() {
    for (id, before) in FILES {
        if before == "{}" {
            continue;
        }
        let client = client(id);
        let target = target(Way::Reference);
        let after = plan::connect(client, &target, before).expect("connected");
        let edited = after
            .replace("\"a\"", "\"b\"")
            .replace("[tui]", "[gui]")
            .replace("numStartups", "starts");
        let wanted = before
            .replace("\"a\"", "\"b\"")
            .replace("[tui]", "[gui]")
            .replace("numStartups", "starts");
        match plan::disconnect(client, &target, &edited, &[before.to_owned()]).expect("disconnected") {
            Removal::Text(text) => {
                assert_eq!(
                    plan::state(client, &target, &text).expect("state"),
                    State::Absent,
                    "{id}"
                );
                let same = |text: &str| text.split_whitespace().collect::<String>();
                assert_eq!(same(&text), same(&wanted), "{id}");
            }
            other => panic!("{id}: {other:?}"),
        }
    }
}

#[test]
fn a_file_that_connecting_made_goes_with_the_entry() {
    for client in ALL {
        let target = target(Way::Reference);
        let made = plan::connect(client, &target, "").expect("connected");
        assert_eq!(
            plan::disconnect(client, &target, &made, &[]).expect("disconnected"),
            Removal::Delete,
            "{}",
            client.id
        );
        let empty = plan::disconnect(client, &target, "", &[]).expect("disconnected");
        assert_eq!(empty, Removal::Nothing, "{}", client.id);
    }
}

#[test]
fn another_address_differs_and_added_fields_do_not() {
    let cursor = client("cursor");
    let text = plan::connect(cursor, &target(Way::Reference), "").expect("connected");
    let other = text.replace("7700", "7800");
    assert_eq!(
        plan::state(cursor, &target(Way::Reference), &other).expect("state"),
        State::Differs
    );
    let more = text.replace("\"url\"", "\"disabled\": false, \"url\"");
    assert_eq!(
        plan::state(cursor, &target(Way::Reference), &more).expect("state"),
        State::Connected
    );
    let changed = plan::connect(cursor, &target(Way::Reference), &other).expect("connected");
    assert_eq!(changed, text);
}

#[test]
fn a_check_without_a_key_accepts_any_key_in_the_file() {
    let zed = client("zed");
    let text = plan::connect(zed, &target(Way::Reference), "").expect("connected");
    let blind = Target {
        key: None,
        ..target(Way::Reference)
    };
    assert_eq!(plan::state(zed, &blind, &text).expect("state"), State::Connected);
    let broken = text.replace("wg_dev_k_s_c", "${WAGGLE_KEY}");
    assert_eq!(plan::state(zed, &blind, &broken).expect("state"), State::Differs);
}

#[test]
fn the_question_of_vs_code_goes_when_the_key_is_in_the_file() {
    let vscode = client("vscode");
    let asked = plan::connect(vscode, &target(Way::Reference), "").expect("connected");
    let told = plan::connect(vscode, &target(Way::KeyInFile), &asked).expect("connected");
    let read: Value = serde_json::from_str(&told).expect("JSON");
    assert_eq!(
        read["servers"]["waggle"]["headers"]["Authorization"],
        "Bearer wg_dev_k_s_c"
    );
    assert!(read["inputs"].as_array().is_none_or(Vec::is_empty), "{told}");
}

#[test]
fn files_are_where_each_platform_has_them() {
    let places = |platform| {
        Places::new(platform, |name| match name {
            "HOME" | "USERPROFILE" => Some(PathBuf::from("/h")),
            "APPDATA" => Some(PathBuf::from("/h/AppData/Roaming")),
            _ => None,
        })
        .expect("a home")
    };
    for (id, linux, macos, windows) in [
        ("antigravity", ".gemini/config/mcp_config.json", "", ""),
        ("claude-code", ".claude.json", "", ""),
        (
            "claude-desktop",
            ".config/Claude/claude_desktop_config.json",
            "Library/Application Support/Claude/claude_desktop_config.json",
            "AppData/Roaming/Claude/claude_desktop_config.json",
        ),
        ("codex", ".codex/config.toml", "", ""),
        ("cursor", ".cursor/mcp.json", "", ""),
        ("gemini", ".gemini/settings.json", "", ""),
        ("opencode", ".config/opencode/opencode.json", "", ""),
        ("openwaggle", ".openwaggle/mcp.json", "", ""),
        ("pi", ".pi/agent/mcp.json", "", ""),
        (
            "vscode",
            ".config/Code/User/mcp.json",
            "Library/Application Support/Code/User/mcp.json",
            "AppData/Roaming/Code/User/mcp.json",
        ),
        ("windsurf", ".codeium/windsurf/mcp_config.json", "", ""),
        (
            "zed",
            ".config/zed/settings.json",
            "",
            "AppData/Roaming/Zed/settings.json",
        ),
    ] {
        for (platform, wanted) in [
            (Platform::Linux, linux),
            (Platform::MacOs, macos),
            (Platform::Windows, windows),
        ] {
            let wanted = PathBuf::from("/h").join(if wanted.is_empty() { linux } else { wanted });
            assert_eq!(
                client(id).file(&places(platform), None),
                Some(wanted),
                "{id} on {platform:?}"
            );
        }
    }
}

#[test]
fn opencode_keeps_the_form_that_a_file_has() {
    let client = client("opencode");
    for (before, version_2) in [
        ("", false),
        ("{}", false),
        (r#"{"mcp": {}}"#, false),
        (r#"{"mcp": {"a": {"type": "local", "command": ["x"]}}}"#, false),
        (r#"{"mcp": {"servers": {"type": "local", "command": ["x"]}}}"#, false),
        (r#"{"mcp": {"servers": {}}}"#, true),
        (
            r#"{"mcp": {"servers": {"a": {"type": "local", "command": ["x"]}}}}"#,
            true,
        ),
    ] {
        let after = plan::connect(client, &target(Way::Reference), before).expect("connected");
        let value: serde_json::Value = serde_json::from_str(&after).expect("JSON");
        assert_eq!(value["mcp"]["waggle"].is_object(), !version_2, "{before}: {after}");
        assert_eq!(
            value["mcp"]["servers"]["waggle"].is_object(),
            version_2,
            "{before}: {after}"
        );
    }
}
