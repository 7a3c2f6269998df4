//! Commands that need no server: help, configuration, certificates, keys in files, exit codes.

mod common;

use std::fs;

use common::{run, stderr, stdout, waggle};

fn home() -> tempfile::TempDir {
    tempfile::tempdir().expect("temporary directory")
}

#[test]
fn help_names_every_noun_and_no_old_name() {
    let home = home();
    let output = run(home.path(), &["--help"]);
    assert_eq!(output.status.code(), Some(0));
    let text = stdout(&output);
    for noun in [
        "dev",
        "node",
        "gateway",
        "status",
        "tenant",
        "key",
        "memory",
        "replay",
        "export",
        "import",
        "connect",
        "disconnect",
        "mcp",
        "doctor",
        "features",
        "demo",
        "config",
        "cert",
        "version",
    ] {
        assert!(
            text.lines().any(|line| line.trim_start().starts_with(noun)),
            "{noun} is missing in\n{text}"
        );
    }
    assert!(!text.contains("create-tenant"), "{text}");
    assert!(
        text.contains("WAGGLE__SECTION__KEY"),
        "the order of precedence is missing in\n{text}"
    );
    let dev = stdout(&run(home.path(), &["dev", "--help"]));
    assert!(!dev.contains("conformance"), "{dev}");
}

#[test]
fn wrong_usage_ends_with_2_and_starts_nothing() {
    let home = home();
    for arguments in [
        &["nodes"][..],
        &["dev", "--lisen", "1"],
        &["key", "create"],
        &["memory", "search", "x", "--limit", "0"],
        &[],
    ] {
        let output = run(home.path(), arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", stderr(&output));
        assert!(stdout(&output).is_empty(), "{arguments:?}");
    }
}

#[test]
fn the_version_is_data() {
    let home = home();
    let output = run(home.path(), &["version", "--json"]);
    let data: serde_json::Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    assert_eq!(data["version"], env!("CARGO_PKG_VERSION"));
    assert!(stdout(&run(home.path(), &["--version"])).starts_with("waggle 0."));
}

#[test]
fn all_problems_of_a_configuration_are_listed_with_78() {
    let home = home();
    let file = home.path().join("node.toml");
    fs::write(&file, "[node]\ndata_dri = \"d\"\nadmin_listen = \"0.0.0.0:1\"\n").expect("write");
    let output = run(home.path(), &["config", "check", file.to_str().expect("path")]);
    assert_eq!(output.status.code(), Some(78));
    let text = stderr(&output);
    for part in [
        "node.toml:2: unknown key 'node.data_dri'; did you mean 'node.data_dir'? [config_unknown_key]",
        "node.data_dir is missing",
        "node.toml:3: node.admin_listen 0.0.0.0:1 is not a loopback address",
        "tls.key_file is missing",
    ] {
        assert!(text.contains(part), "{part}\nis missing in\n{text}");
    }
}

#[test]
fn the_origin_of_every_value_is_shown() {
    let home = home();
    let file = home.path().join("node.toml");
    fs::write(&file, "[node]\ndata_dir = \"/d\"\n").expect("write");
    let output = waggle(home.path())
        .args(["config", "show", "--effective", "--origin"])
        .arg(&file)
        .env("WAGGLE__LOG__FORMAT", "json")
        .output()
        .expect("start");
    let text = stdout(&output);
    let line = |key: &str| {
        text.lines()
            .find(|line| line.starts_with(key))
            .unwrap_or_default()
            .to_owned()
    };
    assert!(line("node.data_dir").ends_with("node.toml:2"), "{text}");
    assert!(
        line("log.format").ends_with("environment WAGGLE__LOG__FORMAT"),
        "{text}"
    );
    assert!(line("raft.heartbeat_interval").ends_with("default"), "{text}");
}

#[test]
fn a_role_without_certificates_does_not_start_and_names_the_file() {
    let home = home();
    let node = home.path().join("node.toml");
    let tls = "[tls]\nca_file = \"ca.pem\"\ncertificate_file = \"node-1.pem\"\nkey_file = \"node-1.key\"\n";
    fs::write(&node, format!("[node]\ndata_dir = \"d\"\n{tls}")).expect("write");
    let arguments = ["node", "--config", node.to_str().expect("path")];
    let output = run(home.path(), &arguments);
    assert_eq!(output.status.code(), Some(78), "{}", stderr(&output));
    assert!(stderr(&output).contains("ca.pem"), "{}", stderr(&output));

    let dir = home.path().to_str().expect("path");
    for verb in ["create-ca", "create-gateway"] {
        let output = run(home.path(), &["cert", verb, "--dir", dir]);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    }
    fs::rename(home.path().join("gateway-1.pem"), home.path().join("node-1.pem")).expect("rename");
    fs::rename(home.path().join("gateway-1.key"), home.path().join("node-1.key")).expect("rename");
    let output = run(home.path(), &arguments);
    assert_eq!(output.status.code(), Some(78));
    assert!(
        stderr(&output).contains("this certificate is for gateway 1"),
        "{}",
        stderr(&output)
    );
    assert!(!home.path().join("d").exists(), "a refused start leaves nothing behind");

    let again = run(home.path(), &["cert", "create-ca", "--dir", dir]);
    assert_eq!(again.status.code(), Some(78), "the authority is not replaced");
    let list = stdout(&run(home.path(), &["cert", "list", "--dir", dir, "--json"]));
    let list: serde_json::Value = serde_json::from_str(&list).expect("JSON");
    assert_eq!(list["certificates"].as_array().map(Vec::len), Some(2));
}

#[test]
fn certificates_are_renewed_when_asked_or_when_due() {
    let home = home();
    let dir = home.path().to_str().expect("path");
    for verb in ["create-ca", "create-node", "create-gateway"] {
        assert_eq!(run(home.path(), &["cert", verb, "--dir", dir]).status.code(), Some(0));
    }
    let renew = |more: &[&str]| {
        run(
            home.path(),
            &[&["cert", "renew", "--json", "--dir", dir], more].concat(),
        )
    };
    assert_eq!(renew(&[]).status.code(), Some(2), "it has to be said which");
    let unknown = renew(&["--role", "node", "--id", "7"]);
    assert_eq!(unknown.status.code(), Some(3), "{}", stderr(&unknown));
    assert!(
        stderr(&unknown).contains("holds no certificate for node 7"),
        "{}",
        stderr(&unknown)
    );

    let read = |name: &str| fs::read(home.path().join(name)).expect("read");
    let (certificate, key) = (read("node-1.pem"), read("node-1.key"));
    let nothing = renew(&["--all", "--within", "30d"]);
    assert_eq!(nothing.status.code(), Some(0), "{}", stderr(&nothing));
    let told: serde_json::Value = serde_json::from_str(&stdout(&nothing)).expect("JSON");
    assert_eq!(told["renewed"].as_array().map(Vec::len), Some(0));
    assert_eq!(told["kept"].as_array().map(Vec::len), Some(2));
    assert_eq!(
        (read("node-1.pem"), read("node-1.key")),
        (certificate.clone(), key.clone())
    );

    assert_eq!(renew(&["--role", "node"]).status.code(), Some(0));
    assert_eq!(
        (read("node-1.pem.previous"), read("node-1.key.previous")),
        (certificate.clone(), key.clone())
    );
    assert!(read("node-1.pem") != certificate && read("node-1.key") != key);
    let within_life = renew(&["--all", "--within", "400d"]);
    let told: serde_json::Value = serde_json::from_str(&stdout(&within_life)).expect("JSON");
    assert_eq!(told["renewed"].as_array().map(Vec::len), Some(2));
    let list = stdout(&run(home.path(), &["cert", "list", "--dir", dir]));
    assert_eq!(list.matches(" ok ").count(), 3, "{list}");
}

#[test]
fn a_node_without_identity_does_not_start() {
    let home = home();
    let dir = home.path().to_str().expect("path");
    for verb in ["create-ca", "create-node"] {
        assert_eq!(run(home.path(), &["cert", verb, "--dir", dir]).status.code(), Some(0));
    }
    let node = home.path().join("node.toml");
    let tls = "[tls]\nca_file = \"ca.pem\"\ncertificate_file = \"node-1.pem\"\nkey_file = \"node-1.key\"\n";
    fs::write(&node, format!("[node]\ndata_dir = \"d\"\n{tls}")).expect("write");
    let output = run(home.path(), &["node", "--config", node.to_str().expect("path")]);
    assert_eq!(output.status.code(), Some(78), "{}", stderr(&output));
    assert!(
        stderr(&output).contains("holds no identity") && stderr(&output).contains("waggle cluster init"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn client_commands_say_what_they_lack() {
    let home = home();
    let output = run(home.path(), &["status"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("WAGGLE_ADMIN_URL"), "{}", stderr(&output));

    let output = run(home.path(), &["status", "--url", "http://127.0.0.1:9"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        stderr(&output).contains("no API key is known here"),
        "{}",
        stderr(&output)
    );

    // Port 9 has no listener.
    let output = waggle(home.path())
        .args(["status", "--url", "http://127.0.0.1:9"])
        .env("WAGGLE_KEY", "wg_x")
        .output()
        .expect("start");
    assert_eq!(output.status.code(), Some(6), "{}", stderr(&output));
    assert!(stderr(&output).contains("waggle dev"), "{}", stderr(&output));
}

#[cfg(unix)]
#[test]
fn a_key_file_that_others_may_read_is_refused() {
    use std::os::unix::fs::PermissionsExt as _;
    let home = home();
    let file = home.path().join("key");
    fs::write(&file, "wg_dev_a_b_c\n").expect("write");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).expect("chmod");
    let arguments = [
        "status",
        "--url",
        "http://127.0.0.1:9",
        "--key-file",
        file.to_str().expect("path"),
    ];
    let output = run(home.path(), &arguments);
    assert_eq!(output.status.code(), Some(78));
    assert!(stderr(&output).contains("chmod 600"), "{}", stderr(&output));
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).expect("chmod");
    assert_eq!(run(home.path(), &arguments).status.code(), Some(6));
}

#[test]
fn an_id_that_is_a_path_is_refused_before_it_is_sent() {
    let home = home();
    let output = waggle(home.path())
        .args([
            "key",
            "revoke",
            "--api-key-id",
            "../tenants",
            "--url",
            "http://127.0.0.1:9",
        ])
        .env("WAGGLE_KEY", "wg_x")
        .output()
        .expect("start");
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    // The old name knows 0 and 1 only.
    let output = waggle(home.path())
        .args([
            "revoke-api-key",
            "--api-key-id",
            "../tenants",
            "--url",
            "http://127.0.0.1:9",
        ])
        .env("WAGGLE_KEY", "wg_x")
        .output()
        .expect("start");
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
}
