//! `waggle mcp`, `waggle doctor` and `waggle demo` against a real server.

mod common;

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Output, Stdio};

use common::{run, stderr, stdout, waggle};
use serde_json::{Value, json};

/// `waggle dev` on free ports; killed at the end.
struct Dev {
    child: Child,
    ready: Value,
}

impl Dev {
    fn start(home: &Path, data: &str) -> Self {
        let mut child = waggle(home)
            .args(["dev", "--json", "--listen", "127.0.0.1:0", "--data"])
            .arg(home.join(data))
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("start the server");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("stdout"))
            .read_line(&mut line)
            .expect("read");
        let ready = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
        Self { child, ready }
    }
}

impl Drop for Dev {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Feeds the bridge all lines, ends its input, and gives its answers.
fn bridge(home: &Path, arguments: &[&str], lines: &[String]) -> (Output, Vec<Value>) {
    let mut child = waggle(home)
        .arg("mcp")
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("start the bridge");
    let mut stdin = child.stdin.take().expect("stdin");
    for line in lines {
        writeln!(stdin, "{line}").expect("write");
    }
    drop(stdin);
    let output = child.wait_with_output().expect("wait");
    let answers = stdout(&output)
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect();
    (output, answers)
}

fn answer(answers: &[Value], id: impl Into<Value>) -> &Value {
    let id = id.into();
    answers
        .iter()
        .find(|answer| answer["id"] == id)
        .unwrap_or_else(|| panic!("no answer to {id} in {answers:?}"))
}

fn initialize(id: u64) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}})
}

#[test]
fn a_client_of_standard_input_works_with_a_real_server() {
    let home = tempfile::tempdir().expect("home");
    let home = home.path();
    let dev = Dev::start(home, "data");

    let mut lines = vec![
        initialize(1).to_string(),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string(),
        "{ this is no JSON".to_owned(),
        "[]".to_owned(),
        String::new(),
        json!({"jsonrpc": "2.0", "id": "list", "method": "tools/list"}).to_string(),
        json!({"jsonrpc": "2.0", "id": 3, "method": "no/such"}).to_string(),
    ];
    for id in 100..140 {
        let call = json!({"name": "query_graph", "arguments": {"query": "nothing yet"}});
        lines.push(json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": call}).to_string());
    }
    let (output, answers) = bridge(home, &[], &lines);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(
        answers.len(),
        45,
        "one answer for each request and each bad line: {answers:?}"
    );
    assert_eq!(answer(&answers, 1)["result"]["protocolVersion"], "2025-06-18");
    assert!(
        answer(&answers, "list")["result"]["tools"]
            .as_array()
            .is_some_and(|tools| tools.len() > 5)
    );
    assert!(answer(&answers, 3)["error"]["code"].is_i64());
    for id in 100..140 {
        assert!(answer(&answers, id)["result"]["structuredContent"].is_object());
    }
    let codes: Vec<_> = answers
        .iter()
        .filter(|answer| answer["id"].is_null())
        .map(|answer| answer["error"]["code"].clone())
        .collect();
    assert_eq!(codes, [-32700, -32600]);

    // A wrong key and no server at all are answers, too.
    let wrong = home.join("wrong-key");
    std::fs::write(&wrong, "wg_dev_a_b_c").expect("write");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        std::fs::set_permissions(&wrong, std::fs::Permissions::from_mode(0o600)).expect("chmod");
    }
    let wrong = wrong.to_str().expect("path");
    let (output, answers) = bridge(home, &["--key-file", wrong], &[initialize(7).to_string()]);
    assert_eq!(
        (output.status.code(), answers.len()),
        (Some(0), 1),
        "{}",
        stderr(&output)
    );
    assert!(answer(&answers, 7)["error"]["message"].is_string(), "{answers:?}");
    let ping = json!({"jsonrpc": "2.0", "id": 9, "method": "ping"}).to_string();
    let (output, answers) = bridge(
        home,
        &["--url", "http://127.0.0.1:9"],
        &[initialize(8).to_string(), ping],
    );
    assert_eq!(
        (output.status.code(), answers.len()),
        (Some(0), 2),
        "{}",
        stderr(&output)
    );
    assert_eq!(answer(&answers, 9)["error"]["code"], -32001);

    doctor_finds_everything_well(home);
    demo_shows_a_conflict_and_cleans_up(home);
    keys_have_labels_and_default_scopes(home);
    a_second_server_keeps_the_first_context(home, &dev);
}

fn doctor_finds_everything_well(home: &Path) {
    let output = run(home, &["doctor", "--write", "--json"]);
    let data: Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    // How full this machine's disk is says nothing about the product.
    let failed: Vec<&Value> = data["checks"]
        .as_array()
        .expect("list")
        .iter()
        .filter(|check| check["status"] == "fail" && check["id"] != "disk")
        .collect();
    assert!(failed.is_empty(), "{failed:?}{}", stderr(&output));
    let exit = if data["status"] == "fail" { 9 } else { 0 };
    assert_eq!(
        output.status.code(),
        Some(exit),
        "{}{}",
        stdout(&output),
        stderr(&output)
    );
    let ids: Vec<&str> = data["checks"]
        .as_array()
        .expect("list")
        .iter()
        .filter_map(|one| one["id"].as_str())
        .collect();
    for id in [
        "context",
        "reachable",
        "tls",
        "clock",
        "protocol",
        "key",
        "version",
        "tools",
        "write",
        "data_dir",
        "disk",
    ] {
        assert!(ids.contains(&id), "{id} is missing in {ids:?}");
    }
    let output = run(home, &["doctor", "--url", "http://127.0.0.1:9"]);
    assert_eq!(output.status.code(), Some(9), "{}", stdout(&output));
}

fn demo_shows_a_conflict_and_cleans_up(home: &Path) {
    for round in 0..2 {
        let output = run(home, &["demo", "--json"]);
        assert_eq!(output.status.code(), Some(0), "round {round}: {}", stderr(&output));
        let data: Value = serde_json::from_str(&stdout(&output)).expect("JSON");
        let steps = data["steps"].as_array().expect("steps");
        assert_eq!(steps.len(), 6, "{data}");
        assert!(
            steps[1]["text"].as_str().is_some_and(|text| text.contains("Mara")),
            "{data}"
        );
        assert_eq!(steps[4]["loser_in_answers"], false, "{data}");
        assert!(steps[5]["node"]["superseded_by"].is_string(), "{data}");
    }
    let output = run(home, &["memory", "add", "ours alone", "--project", "real"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    for command in [
        &["demo", "--project", "real"][..],
        &["demo", "--clear", "--project", "real"],
    ] {
        let output = run(home, command);
        assert_eq!(output.status.code(), Some(5), "{}", stderr(&output));
    }
    let cleared = run(home, &["demo", "--clear", "--json"]);
    let cleared: Value = serde_json::from_str(&stdout(&cleared)).expect("JSON");
    assert!(cleared["deleted"].as_u64().is_some_and(|count| count > 3), "{cleared}");
    let again = run(home, &["demo", "--clear", "--json"]);
    let again: Value = serde_json::from_str(&stdout(&again)).expect("JSON");
    assert_eq!(again["deleted"], 0);
    assert!(stdout(&run(home, &["memory", "search", "ours", "--project", "real"])).contains("ours alone"));
}

fn keys_have_labels_and_default_scopes(home: &Path) {
    let tenant = run(home, &["tenant", "create", "--tenant-id", "blue", "--json"]);
    assert_eq!(tenant.status.code(), Some(0), "{}", stderr(&tenant));
    let made = run(
        home,
        &[
            "key",
            "create",
            "--tenant-id",
            "blue",
            "--name",
            "n",
            "--created-by",
            "Mara",
            "--json",
        ],
    );
    assert_eq!(made.status.code(), Some(0), "{}", stderr(&made));
    let made: Value = serde_json::from_str(&stdout(&made)).expect("JSON");
    assert_eq!(made["created_by"], "Mara");
    assert_eq!(made["scopes"], json!(["graph:read", "graph:write"]));
}

fn a_second_server_keeps_the_first_context(home: &Path, first: &Dev) {
    let second = Dev::start(home, "second");
    let port = second.ready["mcp_url"]
        .as_str()
        .and_then(|url| url.split(':').nth(2)?.split('/').next())
        .expect("a port")
        .to_owned();
    let data = |arguments: &[&str]| -> Value {
        let output = run(home, arguments);
        serde_json::from_str(&stdout(&output)).unwrap_or_else(|error| panic!("{error}: {}", stderr(&output)))
    };
    let context = data(&["doctor", "--json"])["checks"][0]["detail"].to_string();
    assert!(
        context.contains(first.ready["mcp_url"].as_str().expect("a URL")),
        "{context}"
    );
    let name = format!("dev-{port}");
    let context = data(&["doctor", "--json", "--context", &name])["checks"][0]["detail"].to_string();
    assert!(
        context.contains(second.ready["mcp_url"].as_str().expect("a URL")),
        "{context}"
    );
    let unknown = run(home, &["doctor", "--context", "nowhere"]);
    assert_eq!(unknown.status.code(), Some(9), "{}", stdout(&unknown));
}
