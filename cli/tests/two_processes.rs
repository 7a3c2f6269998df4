//! `waggle dev`, its client commands, and then the same data as two processes over mutual TLS.

mod common;

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use common::{run, stderr, stdout, waggle};
use serde_json::Value;

/// A server; killed when the test fails.
struct Server {
    child: Child,
    name: &'static str,
    log: std::fs::File,
}

impl Server {
    /// Starts it and gives the first line of `stream` that `is_ready` takes.
    fn start(name: &'static str, mut command: Command, is_ready: impl Fn(&str) -> Option<Value>) -> (Self, Value) {
        let log = tempfile::tempfile().expect("temporary file");
        let reader = log.try_clone().expect("clone");
        let child = command
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .expect("start the server");
        let kept = reader.try_clone().expect("clone");
        let mut server = Self { child, name, log: kept };
        if name == "dev" {
            let mut line = String::new();
            let stdout = server.child.stdout.take().expect("stdout");
            BufReader::new(stdout).read_line(&mut line).expect("read");
            let ready = is_ready(&line).unwrap_or_else(|| panic!("dev said {line:?}; its log:\n{}", all(reader)));
            return (server, ready);
        }
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            let text = all(reader.try_clone().expect("clone"));
            if let Some(ready) = text.lines().find_map(&is_ready) {
                return (server, ready);
            }
            let ended = server.child.try_wait().expect("look");
            assert!(
                ended.is_none() && Instant::now() < deadline,
                "{name} is not ready ({ended:?}); its log:\n{text}"
            );
            pause();
        }
    }

    fn signal(&self, signal: &str) {
        let pid = self.child.id().to_string();
        let status = Command::new("kill").args([signal, &pid]).status().expect("kill");
        assert!(status.success());
    }

    /// Waits until its log has `text`.
    fn says(&self, text: &str) {
        let deadline = Instant::now() + Duration::from_secs(30);
        loop {
            let log = all(self.log.try_clone().expect("clone"));
            if log.contains(text) {
                return;
            }
            assert!(
                Instant::now() < deadline,
                "{} did not say '{text}'; its log:\n{log}",
                self.name
            );
            pause();
        }
    }

    fn stop(mut self) {
        self.signal("-TERM");
        let status = self.child.wait().expect("wait");
        assert_eq!(status.code(), Some(0), "{} ended with {status}", self.name);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Between two looks at a log, inside a loop with a deadline.
#[expect(clippy::disallowed_methods, reason = "a file has no event to wait for")]
fn pause() {
    std::thread::sleep(Duration::from_millis(20));
}

fn all(mut log: std::fs::File) -> String {
    use std::io::Seek as _;
    let mut text = String::new();
    log.rewind()
        .and_then(|()| log.read_to_string(&mut text))
        .expect("read the log");
    text
}

fn ready_in_log(line: &str) -> Option<Value> {
    serde_json::from_str::<Value>(line)
        .ok()
        .filter(|event| event["message"] == "ready")
}

fn dev(home: &Path, data: &Path) -> Command {
    let mut command = waggle(home);
    command
        .args(["dev", "--json", "--listen", "127.0.0.1:0", "--data"])
        .arg(data);
    command
}

fn gateway_of(home: &Path, data: &Path, node: &str) -> Command {
    let mut command = waggle(home);
    command
        .args(["gateway", "--config"])
        .arg(data.join("config/gateway.toml"))
        .env("WAGGLE__GATEWAY__LISTEN", "127.0.0.1:0")
        .env("WAGGLE__GATEWAY__ADMIN_LISTEN", "127.0.0.1:0")
        .env("WAGGLE__GATEWAY__NODES", format!("1@{node}"));
    command
}

fn json(home: &Path, arguments: &[&str]) -> Value {
    let output = run(home, arguments);
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", stderr(&output));
    serde_json::from_str(&stdout(&output)).unwrap_or_else(|error| panic!("{arguments:?}: {error}: {}", stdout(&output)))
}

#[cfg(unix)]
#[test]
fn dev_and_then_two_processes_serve_the_same_data() {
    let home = tempfile::tempdir().expect("temporary directory");
    let (home, data) = (home.path(), home.path().join("data"));
    let (server, ready) = Server::start("dev", dev(home, &data), |line| serde_json::from_str(line).ok());
    let key = ready["api_key"].as_str().expect("a key").to_owned();

    // A second one on the same data is told why it cannot start.
    let second = dev(home, &data).output().expect("start");
    assert_eq!(second.status.code(), Some(5), "{}", stderr(&second));
    assert!(
        stderr(&second).contains("another waggle process uses"),
        "{}",
        stderr(&second)
    );

    // Client commands find it by the context.
    let added = json(home, &["memory", "add", "we deploy on Fridays", "--json"]);
    let id = added["id"]
        .as_str()
        .or(added["node_id"].as_str())
        .or(added["node"]["id"].as_str())
        .expect("an id")
        .to_owned();
    let found = stdout(&run(home, &["memory", "search", "when do we deploy"]));
    assert!(found.contains("we deploy on Fridays"), "{found}");
    assert!(stdout(&run(home, &["memory", "show", &id])).contains("we deploy on Fridays"));
    let replay = json(
        home,
        &["replay", "--memory-id", &id, "--depth", "-1", "--full", "--json"],
    );
    assert_eq!(replay["empty_reason"], "no_transcripts", "{replay}");
    let told = stdout(&run(home, &["replay", "--memory-id", &id]));
    assert_eq!(told, "this memory rests on no transcript\n");
    let screen = stdout(&run(home, &["status"]));
    assert!(screen.contains("nod_1"), "{screen}");

    // Tenants and keys, with the operator's key of the data directory.
    let tenant = json(home, &["tenant", "create", "--tenant-id", "team", "--name", "Team"]);
    assert_eq!(
        (tenant["tenant_id"].as_str(), tenant["name"].as_str()),
        (Some("team"), Some("Team"))
    );
    json(home, &["create-tenant", "--tenant-id", "team", "--name", "Team"]);
    let made = json(home, &["key", "create", "--tenant-id", "team", "--name", "agents"]);
    let kid = made["api_key_id"].as_str().expect("an id").to_owned();
    assert!(
        made["raw_api_key"]
            .as_str()
            .is_some_and(|raw| raw.starts_with("wg_dev_")),
        "{made}"
    );
    let listed = json(home, &["key", "list", "--tenant-id", "team", "--json"]);
    assert_eq!(listed["api_keys"][0]["status"], "active");
    assert!(!listed.to_string().contains("raw_api_key"));
    assert_eq!(json(home, &["key", "revoke", "--api-key-id", &kid])["revoked"], true);
    assert_eq!(
        json(home, &["list-api-keys", "--tenant-id", "team", "--json"])["api_keys"][0]["status"],
        "revoked"
    );
    let unknown = run(home, &["key", "revoke", "--api-key-id", "nobody"]);
    assert_eq!(unknown.status.code(), Some(3), "{}", stderr(&unknown));
    assert!(
        stderr(&unknown).contains("docs/errors/not_found.md"),
        "{}",
        stderr(&unknown)
    );
    assert_eq!(
        run(home, &["revoke-api-key", "--api-key-id", "nobody"]).status.code(),
        Some(1)
    );
    server.stop();

    // The same key after a restart.
    let (server, ready) = Server::start("dev", dev(home, &data), |line| serde_json::from_str(line).ok());
    assert_eq!(ready["api_key"].as_str(), Some(key.as_str()));
    server.stop();

    // Two processes.
    let mut command = waggle(home);
    command.args(["node", "--config"]).arg(data.join("config/node.toml"));
    command.env("WAGGLE__NODE__LISTEN", "127.0.0.1:0");
    command.env("WAGGLE__NODE__ADMIN_LISTEN", "127.0.0.1:0");
    let (node, ready) = Server::start("node", command, ready_in_log);
    let address = ready["address"].as_str().expect("an address").to_owned();
    let (gateway, ready) = Server::start("gateway", gateway_of(home, &data, &address), ready_in_log);
    let url = format!("http://{}", ready["address"].as_str().expect("an address"));
    let found = stdout(&run(home, &["memory", "search", "when do we deploy", "--url", &url]));
    assert!(found.contains("we deploy on Fridays"), "{found}");
    // Renewed certificates are taken into use by both, and what was open goes on.
    let certificates = data.join("certificates");
    let certificates = certificates.to_str().expect("a path");
    let renewed = json(home, &["cert", "renew", "--all", "--dir", certificates, "--json"]);
    assert_eq!(renewed["renewed"].as_array().map(Vec::len), Some(2), "{renewed}");
    for server in [&node, &gateway] {
        server.signal("-HUP");
        server.says("certificate taken into use");
    }
    let found = stdout(&run(home, &["memory", "search", "when do we deploy", "--url", &url]));
    assert!(found.contains("we deploy on Fridays"), "{found}");
    std::fs::write(data.join("certificates/node-1.pem"), "nonsense").expect("write");
    node.says("the old ones stay in use");
    gateway.stop();
    // A new connection.
    let (gateway, ready) = Server::start("gateway", gateway_of(home, &data, &address), ready_in_log);
    let url = format!("http://{}", ready["address"].as_str().expect("an address"));
    let found = stdout(&run(home, &["memory", "search", "when do we deploy", "--url", &url]));
    assert!(found.contains("we deploy on Fridays"), "{found}");
    let busy = dev(home, &data).output().expect("start");
    assert_eq!(busy.status.code(), Some(5), "{}", stderr(&busy));
    gateway.stop();
    node.stop();
}
