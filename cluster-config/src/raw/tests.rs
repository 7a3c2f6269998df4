use super::*;

#[test]
fn sizes_and_times_are_read_and_shown_alike() {
    for (text, bytes) in [
        ("0", 0),
        ("17", 17),
        ("1KiB", 1024),
        ("512MiB", 512 << 20),
        ("3GiB", 3 << 30),
    ] {
        assert_eq!(parse_bytes(text), Some(bytes), "{text}");
        assert_eq!(parse_bytes(&show_bytes(bytes)), Some(bytes), "{text}");
    }
    for (text, millis) in [
        ("0ms", 0),
        ("150ms", 150),
        ("30s", 30_000),
        ("2h", 7_200_000),
        ("90d", 7_776_000_000),
    ] {
        assert_eq!(parse_time(text), Some(Duration::from_millis(millis)), "{text}");
        assert_eq!(show_time(Duration::from_millis(millis)), text);
    }
    for bad in ["", "5", "ms", "-1s", "1.5s", "99999999999999999999d"] {
        assert_eq!(parse_time(bad), None, "{bad}");
    }
}

/// Reads a file and says what is wrong with it, line by line.
fn check(file: &str, environment: &[(&str, &str)], expect: &[&str]) {
    let mut raw = Raw::parse(file, Path::new("f.toml"));
    raw.overlay_environment(
        environment
            .iter()
            .map(|(name, text)| ((*name).to_owned(), (*text).to_owned())),
    );
    let found: Vec<String> = raw.problems.iter().map(ToString::to_string).collect();
    assert_eq!(found, expect, "{file}");
}

#[test]
fn all_mistakes_of_form_are_found_at_once() {
    check("[node]\ndata_dir = \"d\"\n", &[], &[]);
    check(
        "[node]\ndata_dri = \"d\"\nlisten = \"here\"\nstore_bytes_max = 0\n\n[raft]\nheartbeat_interval = 150\n",
        &[],
        &[
            "f.toml:2: unknown key 'node.data_dri'; did you mean 'node.data_dir'?",
            "f.toml:3: node.listen: 'here' is not an IP address and a port, such as 127.0.0.1:7700",
            "f.toml:4: node.store_bytes_max: 0 is out of range; expected bytes from 32MiB to 1TiB, such as 512MiB",
            "f.toml:7: raft.heartbeat_interval: 150 does not fit; expected a time from 10ms to 10s, such as 150ms or 30s",
        ],
    );
    check(
        "data_dir = \"d\"",
        &[],
        &["f.toml:1: unknown key 'data_dir'; did you mean 'node.data_dir'?"],
    );
    check(
        "[recall]\nindex_bytes_max = \"1MiB\"",
        &[],
        &[
            "f.toml:2: recall.index_bytes_max: 1048576 is out of range; expected bytes from 16MiB to 1TiB, such as 512MiB",
        ],
    );
    check(
        "",
        &[
            ("WAGGLE__LOG__FORMAT", "xml"),
            ("WAGGLE__LOG__FROMAT", "json"),
            ("WAGGLE_LOG", "debug"),
        ],
        &[
            "environment WAGGLE__LOG__FORMAT: log.format: 'xml' does not fit; expected one of auto, text, json",
            "environment WAGGLE__LOG__FROMAT: unknown key 'log.fromat'; did you mean 'log.format'?",
        ],
    );
}

#[test]
fn later_places_win() {
    let mut raw = Raw::parse("[gateway]\npublic_hosts = [\"a\", \"b\"]\n", Path::new("f.toml"));
    let hosts = |raw: &Raw| raw.values.get("gateway.public_hosts").map(|given| given.value.clone());
    assert_eq!(hosts(&raw), Some(Value::List(vec!["a".into(), "b".into()])));
    raw.overlay_environment([("WAGGLE__GATEWAY__PUBLIC_HOSTS".to_owned(), "c, d".to_owned())]);
    assert_eq!(hosts(&raw), Some(Value::List(vec!["c".into(), "d".into()])));
    raw.overlay_flag("gateway.public_hosts", "--public-host", "e");
    assert_eq!(hosts(&raw), Some(Value::List(vec!["e".into()])));
    assert_eq!(raw.role(), Some(Role::Gateway));
}

#[test]
fn relative_paths_start_at_the_file() {
    let raw = Raw::parse("[node]\ndata_dir = \"data\"\n", Path::new("/etc/waggle/node.toml"));
    let given = raw.values.get("node.data_dir").map(|given| given.value.clone());
    assert_eq!(given, Some(Value::Path("/etc/waggle/data".into())));
}
