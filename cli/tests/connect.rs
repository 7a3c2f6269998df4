//! `waggle connect` and `waggle disconnect` as people run them: files in a home of their own.

#[allow(dead_code, reason = "each test uses a part")]
mod common;

use std::fs;
use std::path::Path;
use std::process::Output;

use common::{run, stderr, stdout, waggle};
use serde_json::Value;

const KEY: &str = "wg_dev_abc_secretsecret_check";

/// Nothing listens there; connecting makes no call.
fn connect(home: &Path, arguments: &[&str]) -> Output {
    waggle(home)
        .args(arguments)
        .env("WAGGLE_URL", "http://127.0.0.1:9/mcp")
        .env("WAGGLE_KEY", KEY)
        .env_remove("CLAUDE_CONFIG_DIR")
        .env_remove("CODEX_HOME")
        .env_remove("OPENCODE_CONFIG_DIR")
        .current_dir(home)
        .output()
        .expect("start the binary")
}

fn json(output: &Output) -> Value {
    serde_json::from_str(&stdout(output))
        .unwrap_or_else(|error| panic!("{error}: {}{}", stdout(output), stderr(output)))
}

fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(dir)
        .expect("list")
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort_unstable();
    names
}

#[test]
fn a_client_is_connected_once_and_disconnected_without_a_trace() {
    let home = tempfile::tempdir().expect("home");
    let file = home.path().join(".claude.json");
    let before = "{\r\n  \"numStartups\": 3, // mine\r\n}\r\n";
    fs::write(&file, before).expect("write");
    let first = json(&connect(home.path(), &["connect", "claude-code", "--json"]));
    let line = &first["clients"][0];
    assert_eq!(
        (&line["state"], &line["changed"]),
        (&"connected".into(), &true.into()),
        "{first}"
    );
    assert!(!first.to_string().contains("secretsecret"), "{first}");
    let written = fs::read_to_string(&file).expect("read");
    assert!(
        written.contains("\"Authorization\": \"Bearer ${WAGGLE_KEY}\"\r\n"),
        "{written}"
    );
    assert!(
        written.starts_with("{\r\n  \"numStartups\": 3, // mine\r\n"),
        "{written}"
    );

    let second = json(&connect(home.path(), &["connect", "claude-code", "--json"]));
    assert_eq!(second["clients"][0]["changed"], false, "{second}");
    assert_eq!(
        names(home.path()).len(),
        2,
        "one change, one backup: {:?}",
        names(home.path())
    );

    let gone = json(&connect(home.path(), &["disconnect", "claude-code", "--json"]));
    assert_eq!(gone["clients"][0]["changed"], true, "{gone}");
    assert_eq!(fs::read_to_string(&file).expect("read"), before);
}

#[test]
fn a_dry_run_shows_and_changes_nothing() {
    let home = tempfile::tempdir().expect("home");
    fs::create_dir(home.path().join(".codex")).expect("directory");
    let output = connect(home.path(), &["connect", "codex", "--dry-run"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stdout(&output).contains("+[mcp_servers.waggle]"), "{}", stdout(&output));
    assert!(names(&home.path().join(".codex")).is_empty());
}

#[cfg(unix)]
#[test]
fn a_key_in_a_file_is_private_and_said() {
    use std::os::unix::fs::PermissionsExt as _;
    let home = tempfile::tempdir().expect("home");
    let dir = home.path().join(".config/zed");
    fs::create_dir_all(&dir).expect("directory");
    fs::write(dir.join("settings.json"), "{}").expect("write");
    let output = connect(home.path(), &["connect", "zed"]);
    assert!(
        stdout(&output).contains("warning: the key stands in"),
        "{}",
        stdout(&output)
    );
    assert!(!stdout(&output).contains("secretsecret"), "{}", stdout(&output));
    let mode = fs::metadata(dir.join("settings.json"))
        .expect("file")
        .permissions()
        .mode()
        & 0o777;
    assert_eq!(mode, 0o600);
    let project = connect(home.path(), &["connect", "zed", "--project-dir"]);
    assert_eq!(
        project.status.code(),
        Some(2),
        "a key does not go into a project: {}",
        stdout(&project)
    );
    assert!(!home.path().join(".zed").exists());
}

#[test]
fn a_malformed_file_is_left_and_named_with_its_place() {
    let home = tempfile::tempdir().expect("home");
    let dir = home.path().join(".cursor");
    fs::create_dir(&dir).expect("directory");
    fs::write(
        dir.join("mcp.json"),
        "{\n  \"mcpServers\": {\n    \"a\": 1\n    \"b\": 2\n  }\n}\n",
    )
    .expect("write");
    for (command, code) in [
        (&["connect", "cursor"][..], 78),
        (&["connect", "cursor", "--check"], 9),
        (&["disconnect", "cursor"], 78),
    ] {
        let output = connect(home.path(), command);
        assert_eq!(output.status.code(), Some(code), "{}", stderr(&output));
        assert!(stderr(&output).contains("line 3, column 11"), "{}", stderr(&output));
    }
    assert_eq!(names(&dir), ["mcp.json"]);
}

#[test]
fn a_check_says_how_each_client_stands() {
    let home = tempfile::tempdir().expect("home");
    fs::create_dir(home.path().join(".cursor")).expect("directory");
    fs::create_dir(home.path().join(".openwaggle")).expect("directory");
    fs::write(
        home.path().join(".openwaggle/mcp.json"),
        r#"{"mcpServers":{"waggle":{"url":"http://other/mcp"}}}"#,
    )
    .expect("write");
    let output = connect(
        home.path(),
        &["connect", "cursor", "openwaggle", "pi", "--check", "--json"],
    );
    assert_eq!(output.status.code(), Some(9), "{}", stderr(&output));
    let states: Vec<Value> = json(&output)["clients"]
        .as_array()
        .expect("list")
        .iter()
        .map(|line| line["state"].clone())
        .collect();
    assert_eq!(states, ["absent", "differs", "not installed"]);

    connect(home.path(), &["connect", "cursor"]);
    let output = connect(home.path(), &["connect", "cursor", "--check", "--json"]);
    assert_eq!(
        output.status.code(),
        Some(9),
        "nothing listens at the address: {}",
        stdout(&output)
    );
    assert_eq!(json(&output)["clients"][0]["state"], "connected");
}

#[test]
fn rules_come_and_go_with_the_client() {
    let home = tempfile::tempdir().expect("home");
    fs::write(home.path().join("AGENTS.md"), "# Ours\n").expect("write");
    let output = connect(home.path(), &["connect", "codex", "cursor", "claude-code", "--rules"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let text = fs::read_to_string(home.path().join("AGENTS.md")).expect("read");
    assert!(
        text.starts_with("# Ours\n\n<!-- waggle:begin") && text.contains("query_graph"),
        "{text}"
    );
    assert!(home.path().join("CLAUDE.md").exists());
    connect(
        home.path(),
        &["disconnect", "codex", "cursor", "claude-code", "--rules"],
    );
    assert_eq!(
        fs::read_to_string(home.path().join("AGENTS.md")).expect("read"),
        "# Ours\n"
    );
    // Also when backups of an earlier round are there.
    connect(home.path(), &["connect", "cursor"]);
    connect(home.path(), &["disconnect", "cursor"]);
    for made in ["CLAUDE.md", ".codex/config.toml", ".cursor/mcp.json", ".claude.json"] {
        assert!(!home.path().join(made).exists(), "{made} was made by connecting");
    }
}

#[test]
fn wrong_usage_is_refused_before_anything_is_written() {
    let home = tempfile::tempdir().expect("home");
    for arguments in [
        &["connect"][..],
        &["connect", "emacs"],
        &["connect", "cursor", "--all"],
        &["connect", "cursor", "--key-env", "1 x"],
        &["connect", "cursor", "--url", "ftp://h"],
        &["connect", "windsurf", "--project-dir"],
    ] {
        let output = connect(home.path(), arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", stderr(&output));
    }
    assert!(names(home.path()).is_empty());
}

#[test]
fn claude_desktop_gets_text_or_a_bridge() {
    let home = tempfile::tempdir().expect("home");
    let output = connect(home.path(), &["connect", "claude-desktop"]);
    assert!(stdout(&output).contains("Add custom connector"), "{}", stdout(&output));
    let key = home.path().join("key");
    fs::write(&key, KEY).expect("write");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).expect("chmod");
    }
    let output = waggle(home.path())
        .args([
            "connect",
            "claude-desktop",
            "--bridge",
            "--url",
            "http://127.0.0.1:9",
            "--key-file",
        ])
        .arg(&key)
        .output()
        .expect("start the binary");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let places = [".config/Claude", "Library/Application Support/Claude"];
    let file = places
        .iter()
        .map(|dir| home.path().join(dir).join("claude_desktop_config.json"))
        .find(|path| path.exists())
        .expect("the file");
    let written: Value = serde_json::from_str(&fs::read_to_string(file).expect("read")).expect("JSON");
    assert_eq!(written["mcpServers"]["waggle"]["args"][2], "http://127.0.0.1:9/mcp");
    assert_eq!(written["mcpServers"]["waggle"]["args"][4], key.to_str().expect("path"));
}

#[test]
fn features_are_listed() {
    let home = tempfile::tempdir().expect("home");
    let output = run(home.path(), &["features", "--json"]);
    let data = json(&output);
    assert_eq!(data["clients"].as_array().map(Vec::len), Some(12));
    assert!(
        data["tools"]
            .as_array()
            .is_some_and(|tools| tools.iter().any(|tool| tool["name"] == "query_graph"))
    );
    assert!(data["commands"].to_string().contains("key create"));
}

#[test]
fn a_check_ends_with_nine_whatever_is_wrong() {
    let home = tempfile::tempdir().expect("home");
    fs::write(home.path().join(".claude.json"), "{\"mcpServers\": ").expect("write");
    let output = connect(home.path(), &["connect", "claude-code", "--check", "--json"]);
    assert_eq!(output.status.code(), Some(9), "{}", stderr(&output));
    let line = json(&output)["clients"][0].clone();
    assert_eq!(
        (&line["state"], &line["line"]),
        (&"unreadable".into(), &1.into()),
        "{line}"
    );
    let output = connect(home.path(), &["connect", "claude-code"]);
    assert_eq!(output.status.code(), Some(78), "{}", stderr(&output));
}

#[test]
fn a_dry_run_says_how_a_client_stands_now() {
    let home = tempfile::tempdir().expect("home");
    let state = |arguments: &[&str]| {
        let output = connect(home.path(), arguments);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let line = json(&output)["clients"][0].clone();
        (
            line["state"].as_str().expect("a state").to_owned(),
            line["changed"] == true,
        )
    };
    let dry = ["connect", "claude-code", "--dry-run", "--json"];
    assert_eq!(state(&dry), ("absent".to_owned(), false));
    fs::write(home.path().join(".claude.json"), "{}").expect("write");
    assert_eq!(state(&dry), ("absent".to_owned(), false));
    assert_eq!(
        state(&["connect", "claude-code", "--json"]),
        ("connected".to_owned(), true)
    );
    assert_eq!(state(&dry), ("connected".to_owned(), false));
    let file = home.path().join(".claude.json");
    let other = fs::read_to_string(&file)
        .expect("read")
        .replace("127.0.0.1:9", "127.0.0.1:8");
    fs::write(&file, other).expect("write");
    assert_eq!(state(&dry), ("differs".to_owned(), false));
}

#[cfg(unix)]
#[test]
fn a_file_that_held_a_key_gets_its_mode_back() {
    use std::os::unix::fs::PermissionsExt as _;
    let home = tempfile::tempdir().expect("home");
    let file = home.path().join(".config/zed/settings.json");
    fs::create_dir_all(file.parent().expect("a folder")).expect("make it");
    fs::write(&file, "{\"theme\": \"dark\"}").expect("write");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).expect("chmod");
    let mode = || file.metadata().expect("a file").permissions().mode() & 0o777;
    let output = waggle(home.path())
        .args(["connect", "zed"])
        .env("WAGGLE_URL", "http://127.0.0.1:9/mcp")
        .env("WAGGLE_KEY", KEY)
        .env("XDG_CONFIG_HOME", home.path().join(".config"))
        .output()
        .expect("start the binary");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(fs::read_to_string(&file).expect("read").contains(KEY));
    assert_eq!(mode(), 0o600);
    let output = connect(home.path(), &["disconnect", "zed"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(fs::read_to_string(&file).expect("read"), "{\"theme\": \"dark\"}");
    assert_eq!(mode(), 0o644);
}
