//! Who may open which directory, and with which settings RocksDB really runs.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::fs;
use std::path::Path;

use waggle_memory::meta::{ClusterId, NodeId};
use waggle_store::{Database, Identity, OpenError, Start, StoreOptions};

const OURS: Identity = Identity {
    cluster: ClusterId([0xab; 16]),
    node: NodeId(3),
};

fn open(path: &Path, start: Start) -> Result<std::sync::Arc<Database>, OpenError> {
    Database::open(path, &StoreOptions::development(start))
}

fn created() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    drop(open(directory.path(), Start::Fresh(OURS)).unwrap());
    directory
}

fn code(found: Result<std::sync::Arc<Database>, OpenError>) -> &'static str {
    match found {
        Ok(_) => "opened",
        Err(error) => error.code(),
    }
}

#[test]
fn a_first_start_creates_and_every_later_one_knows_its_data() {
    let parent = tempfile::tempdir().unwrap();
    let path = parent.path().join("a/b");
    assert_eq!(Database::read_identity(&path).unwrap(), None);
    drop(open(&path, Start::Fresh(OURS)).unwrap());
    assert_eq!(Database::read_identity(&path).unwrap(), Some(OURS));
    assert_eq!(open(&path, Start::Known(OURS)).unwrap().identity(), OURS);
    assert_eq!(open(&path, Start::Any).unwrap().identity(), OURS);
    assert_eq!(code(open(&path, Start::Fresh(OURS))), "data_not_empty");
}

#[test]
fn another_identity_is_refused_with_both_names() {
    let directory = created();
    for other in [
        Identity {
            node: NodeId(4),
            ..OURS
        },
        Identity {
            cluster: ClusterId([1; 16]),
            ..OURS
        },
    ] {
        let error = open(directory.path(), Start::Known(other)).unwrap_err();
        assert_eq!(error.code(), "data_wrong_identity");
        let text = error.to_string();
        assert!(
            text.contains(&OURS.to_string()) && text.contains(&other.to_string()),
            "{text}"
        );
    }
}

#[test]
fn a_known_identity_never_starts_on_missing_data() {
    let empty = tempfile::tempdir().unwrap();
    assert_eq!(code(open(empty.path(), Start::Known(OURS))), "data_missing");
    assert_eq!(
        code(open(&empty.path().join("nothing"), Start::Known(OURS))),
        "data_missing"
    );
    assert!(!empty.path().join("nothing").exists(), "a refusal makes no directory");
    assert_eq!(code(open(empty.path(), Start::Any)), "data_missing");

    let wiped = created();
    fs::remove_dir_all(wiped.path().join("db")).unwrap();
    let error = open(wiped.path(), Start::Known(OURS)).unwrap_err();
    assert_eq!(error.code(), "data_missing");
    assert!(error.to_string().contains("acknowledged data could be lost"), "{error}");

    let nameless = created();
    fs::remove_file(nameless.path().join("identity")).unwrap();
    assert_eq!(code(open(nameless.path(), Start::Known(OURS))), "data_missing");
    assert_eq!(code(open(nameless.path(), Start::Fresh(OURS))), "data_not_empty");
}

#[test]
fn a_database_of_somebody_else_under_our_identity_file_is_refused() {
    let (ours, theirs) = (created(), tempfile::tempdir().unwrap());
    drop(
        open(
            theirs.path(),
            Start::Fresh(Identity {
                node: NodeId(9),
                ..OURS
            }),
        )
        .unwrap(),
    );
    fs::remove_dir_all(ours.path().join("db")).unwrap();
    fs::rename(theirs.path().join("db"), ours.path().join("db")).unwrap();
    assert_eq!(code(open(ours.path(), Start::Known(OURS))), "data_wrong_identity");
}

#[test]
fn a_creation_that_did_not_end_starts_over() {
    let directory = created();
    fs::remove_file(directory.path().join("identity")).unwrap();
    fs::write(directory.path().join("creating"), "").unwrap();
    assert_eq!(code(open(directory.path(), Start::Known(OURS))), "data_missing");
    drop(open(directory.path(), Start::Fresh(OURS)).unwrap());
    drop(open(directory.path(), Start::Known(OURS)).unwrap());
}

#[test]
fn later_formats_and_damaged_identities_are_refused() {
    let directory = created();
    let file = directory.path().join("identity");
    let text = fs::read_to_string(&file).unwrap();
    assert!(text.starts_with("format = 1\nneeds = 0.1.0\n"), "{text}");
    fs::write(
        &file,
        text.replace("format = 1", "format = 2")
            .replace("needs = 0.1.0", "needs = 0.7.0"),
    )
    .unwrap();
    let error = open(directory.path(), Start::Known(OURS)).unwrap_err();
    assert_eq!(error.code(), "data_newer_format");
    assert!(
        error
            .to_string()
            .contains("data is format 2, needs waggle 0.7.0 or newer"),
        "{error}"
    );
    for damaged in [
        "",
        "format = x",
        "format = 1\ncluster = 12\nnode = 3\n",
        "format = 1\n",
        "\u{0}\u{0}",
    ] {
        fs::write(&file, damaged).unwrap();
        assert_eq!(
            code(open(directory.path(), Start::Known(OURS))),
            "data_damaged_identity",
            "{damaged:?}"
        );
    }
    fs::write(&file, [0xff, 0xfe]).unwrap();
    assert_eq!(
        code(open(directory.path(), Start::Known(OURS))),
        "data_damaged_identity"
    );
}

#[test]
fn a_directory_in_use_and_paths_that_are_none_are_refused() {
    let directory = created();
    let held = open(directory.path(), Start::Known(OURS)).unwrap();
    let error = open(directory.path(), Start::Known(OURS)).unwrap_err();
    assert_eq!(error.code(), "data_locked");
    assert!(
        error.to_string().contains("another process uses this data directory"),
        "{error}"
    );
    drop(held);
    assert_eq!(code(open(directory.path(), Start::Known(OURS))), "opened");

    let file = directory.path().join("identity");
    assert_eq!(code(open(&file, Start::Known(OURS))), "data_not_a_directory");
    assert_eq!(
        code(open(&file.join("below"), Start::Fresh(OURS))),
        "data_not_a_directory"
    );
    assert!(matches!(
        Database::read_identity(&file),
        Err(OpenError::NotADirectory { .. })
    ));

    fs::write(directory.path().join("notes.txt"), "").unwrap();
    fs::remove_file(file).unwrap();
    let error = open(directory.path(), Start::Fresh(OURS)).unwrap_err();
    assert_eq!(error.code(), "data_not_empty");
}

#[test]
fn a_damaged_database_does_not_open() {
    let directory = created();
    fs::write(directory.path().join("db/CURRENT"), "MANIFEST-999999\n").unwrap();
    assert_eq!(code(open(directory.path(), Start::Known(OURS))), "data_database");
}

#[test]
fn the_reserve_is_a_matter_of_free_bytes() {
    let directory = created();
    let mut options = StoreOptions::development(Start::Known(OURS));
    options.reserve_bytes = 1;
    let database = Database::open(directory.path(), &options).unwrap();
    assert!(database.free_bytes().unwrap() > 1);
    assert!(!database.is_below_reserve().unwrap());
    drop(database);
    options.reserve_bytes = u64::MAX;
    assert!(
        Database::open(directory.path(), &options)
            .unwrap()
            .is_below_reserve()
            .unwrap()
    );
}

/// RocksDB corrects settings that do not go together, silently. So look at what it says that it runs with.
#[test]
fn rocksdb_runs_with_the_settings_that_durability_rests_on() {
    let directory = created();
    let database = open(directory.path(), Start::Known(OURS)).unwrap();
    let newest = fs::read_dir(database.database_path())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.file_name().unwrap().to_string_lossy().starts_with("OPTIONS-"))
        .max()
        .unwrap();
    let text = fs::read_to_string(newest).unwrap();
    for setting in [
        "wal_recovery_mode=kPointInTimeRecovery",
        "recycle_log_file_num=4",
        "track_and_verify_wals_in_manifest=true",
        "max_total_wal_size=67108864",
        "db_write_buffer_size=33554432",
        "max_open_files=256",
        "max_background_jobs=2",
        "paranoid_checks=true",
        "manual_wal_flush=false",
    ] {
        assert!(
            text.lines().any(|line| line.trim() == setting),
            "{setting} is not in\n{text}"
        );
    }
    for family in ["raft_log", "raft_meta", "state", "index", "transcript", "vector"] {
        assert!(text.contains(&format!("[CFOptions \"{family}\"]")), "{family}");
    }
    assert_eq!(text.matches("partition_filters=true").count(), 6);
    assert_eq!(text.matches("index_type=kTwoLevelIndexSearch").count(), 6);
}
