//! Tables of configurations and what is wrong with them.

use std::path::Path;

use waggle_config::checked::{self, RaftConfig};
use waggle_config::explain;
use waggle_config::keys::Role;
use waggle_config::raw::Raw;

const TLS: &str = "[tls]\nca_file = \"ca.pem\"\ncertificate_file = \"c.pem\"\nkey_file = \"c.key\"\n";

fn problems_of(role: Role, file: &str) -> Vec<String> {
    let raw = Raw::parse(file, Path::new("f.toml"));
    let result = match role {
        Role::Node => checked::node(&raw).map(|_| ()),
        Role::Gateway => checked::gateway(&raw).map(|_| ()),
    };
    match result {
        Ok(()) => Vec::new(),
        Err(problems) => problems.0.iter().map(ToString::to_string).collect(),
    }
}

fn check_node(more: &str, expect: &[&str]) {
    assert_eq!(problems_of(Role::Node, &format!("{more}{TLS}")), expect, "{more}");
}

fn check_gateway(more: &str, expect: &[&str]) {
    let files = "pepper_file = \"p\"\ncluster_secret_file = \"s\"\n";
    assert_eq!(
        problems_of(Role::Gateway, &format!("[gateway]\n{files}{more}{TLS}")),
        expect,
        "{more}"
    );
}

#[test]
fn what_is_missing_is_listed_at_once() {
    let found = problems_of(Role::Node, "");
    assert_eq!(found.len(), 4, "{found:?}");
    assert!(
        found[0].starts_with("node.data_dir is missing; set it in the file, or as WAGGLE__NODE__DATA_DIR: "),
        "{}",
        found[0]
    );
    assert!(found[3].starts_with("tls.key_file is missing"), "{}", found[3]);
}

#[test]
fn numbers_of_consensus_must_fit_together() {
    check_node("[node]\ndata_dir = \"d\"\n", &[]);
    check_node(
        "[node]\ndata_dir = \"d\"\n[raft]\nelection_timeout_max = \"600ms\"\n",
        &[
            "f.toml:4: raft.election_timeout_max 600ms is not above raft.election_timeout_min 600ms; \
           twice the minimum is usual: without a spread, followers stand against each other",
        ],
    );
    check_node(
        "[node]\ndata_dir = \"d\"\n[raft]\nheartbeat_interval = \"320ms\"\nelection_timeout_min = \"600ms\"\n",
        &[
            "f.toml:5: raft.election_timeout_min 600ms is not above the longest silence of a healthy leader, 705ms \
           (two raft.heartbeat_interval of 320ms and a tick of 13/64 of it); raise the timeout or lower the interval",
        ],
    );
}

#[test]
fn the_defaults_fit_together() {
    let raft = RaftConfig::standard();
    let silence = raft.heartbeat_interval() * 2 + raft.heartbeat_interval() * 13 / 64;
    assert!(silence < raft.election_timeout_min());
}

#[test]
fn listeners_without_tls_stay_on_loopback() {
    check_node(
        "[node]\ndata_dir = \"d\"\nadmin_listen = \"0.0.0.0:7711\"\n",
        &[
            "f.toml:3: node.admin_listen 0.0.0.0:7711 is not a loopback address, and this listener has no TLS; \
           listen on 127.0.0.1 or ::1; reach it from elsewhere through a tunnel or a proxy that authenticates",
        ],
    );
    check_gateway(
        "listen = \"127.0.0.1:7701\"\n",
        &["gateway.listen and gateway.admin_listen are both 127.0.0.1:7701; give them different ports"],
    );
}

#[test]
fn hosts_and_origins_are_named_exactly() {
    check_gateway(
        "public_hosts = [\"memory.example.org\"]\nlisten = \"0.0.0.0:7700\"\n",
        &[],
    );
    check_gateway(
        "listen = \"0.0.0.0:7700\"\n",
        &[
            "f.toml:4: gateway.listen 0.0.0.0:7700 takes calls from everywhere, but gateway.public_hosts names no host; \
           name the hosts that clients use, or listen on one address",
        ],
    );
    check_gateway(
        "public_hosts = [\"https://memory.example.org\", \"*\"]\nallowed_origins = [\"*\"]\n",
        &[
            "f.toml:4: gateway.public_hosts: 'https://memory.example.org' is not a host name; \
             write the name as in a URL, without scheme and path, such as memory.example.org",
            "f.toml:4: gateway.public_hosts: '*' is not a host name; \
             write the name as in a URL, without scheme and path, such as memory.example.org",
            "f.toml:5: gateway.allowed_origins: '*' is not an origin; \
             write scheme, host and port without a path, such as https://studio.example.org",
        ],
    );
}

#[test]
fn times_of_calls_fit_together() {
    check_gateway(
        "[limits]\ncall_time_default = \"40s\"\ncall_time_max = \"35s\"\n",
        &["f.toml:5: limits.call_time_default 40s is above limits.call_time_max 35s; lower the first"],
    );
}

#[test]
fn a_key_of_the_other_role_is_a_mistake() {
    check_node(
        "[node]\ndata_dir = \"d\"\n[limits]\nreads_per_minute = 10\n",
        &["f.toml:4: limits.reads_per_minute means nothing to a node; remove it"],
    );
}

#[test]
fn the_examples_are_right() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/examples");
    checked::node(&Raw::load(&examples.join("node.toml"))).expect("docs/examples/node.toml");
    checked::gateway(&Raw::load(&examples.join("gateway.toml"))).expect("docs/examples/gateway.toml");
}

#[test]
fn every_value_says_where_it_came_from() {
    let mut raw = Raw::parse("[node]\ndata_dir = \"/d\"\n", Path::new("/etc/f.toml"));
    raw.overlay_environment([("WAGGLE__RAFT__HEARTBEAT_INTERVAL".to_owned(), "100ms".to_owned())]);
    raw.overlay_flag("node.listen", "--listen", "127.0.0.1:1");
    let rows = explain::rows(&raw, Role::Node);
    let row = |key: &str| {
        let row = rows.iter().find(|row| row.key == key).expect("known key");
        (row.value.clone().unwrap_or_default(), row.origin.clone())
    };
    assert_eq!(row("node.data_dir"), ("/d".into(), "/etc/f.toml:2".into()));
    assert_eq!(
        row("raft.heartbeat_interval"),
        ("100ms".into(), "environment WAGGLE__RAFT__HEARTBEAT_INTERVAL".into())
    );
    assert_eq!(row("node.listen"), ("127.0.0.1:1".into(), "flag --listen".into()));
    assert_eq!(row("recall.index_bytes_max"), ("512MiB".into(), "default".into()));
    assert_eq!(row("tls.ca_file"), (String::new(), "not set".into()));
}

/// docs/configuration.md holds the tables that the registry makes. `UPDATE=1 cargo test` writes them anew.
#[test]
fn the_reference_page_is_fresh() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/configuration.md");
    let page = std::fs::read_to_string(&path).expect("docs/configuration.md");
    let fresh = with_table(
        &with_table(&page, "keys", &explain::keys_reference()),
        "limits",
        &explain::limits_reference(),
    );
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, fresh).expect("write docs/configuration.md");
    } else {
        assert!(
            page == fresh,
            "docs/configuration.md is stale: run UPDATE=1 cargo test -p waggle-config"
        );
    }
}

fn with_table(page: &str, name: &str, table: &str) -> String {
    let (begin, end) = (format!("<!-- {name}: generated -->\n"), format!("<!-- {name}: end -->"));
    let (before, rest) = page.split_once(&begin).expect("the page has the mark of the table");
    let (_, after) = rest.split_once(&end).expect("the page has the end mark of the table");
    format!("{before}{begin}{table}{end}{after}")
}
