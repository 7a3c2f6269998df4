//! Waggle's own JSON backup.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::io::Cursor;

use proptest::prelude::*;
use serde_json::{Value, json};
use waggle_formats::abhi::{Importer, Report};
use waggle_formats::error::ReadError;
use waggle_formats::waggle_json::Reader;
use waggle_memory::id::Principal;
use waggle_memory::record::Record;
use waggle_memory::time::Millis;

fn importer() -> Importer {
    Importer {
        author: Principal("key:importer".to_owned()),
        at: Millis(1_700_000_000_000),
    }
}

fn read(text: &str, allow_dangling: bool) -> Result<(Vec<Record>, Report), ReadError> {
    let mut reader = Reader::open(Cursor::new(text))?;
    let mut records = Vec::new();
    let report = reader.records(&importer(), allow_dangling, |record| {
        records.push(record);
        Ok::<(), ReadError>(())
    })?;
    Ok((records, report))
}

const A: &str = "0190c0de-0000-7000-8000-00000000000a";
const B: &str = "0190c0de-0000-7000-8000-00000000000b";

fn backup() -> Value {
    // Links stand before their ends on purpose.
    json!({
        "edges": [{"id": "e", "source_id": A, "target_id": B, "relationship": "depends_on", "weight": 0.5,
            "metadata": {}, "created_at": "2025-01-02T00:00:00Z"}],
        "exported_at": "2025-02-01T00:00:00Z",
        "schema_version": 7,
        "tenant_id": "local-default",
        "nodes": [
            {"id": A, "label": "a", "content": "We use PostgreSQL.", "node_type": "decision", "embedding": [0.1, 0.2],
                "created_at": "2025-01-01T00:00:00Z", "updated_at": "2025-01-01T00:00:00Z", "valid_from": null},
            {"id": B, "label": "b", "content": "It is fast.", "node_type": "fact"},
        ],
        "transcripts": [{"id": "t", "transcript_text": "hello", "role": "assistant", "turn_index": 1}],
        "context_windows": [{"id": "w", "repo_id": "r", "session_id": "s", "title": "Databases"}],
        "context_window_edges": [{"id": "x"}],
        "repos": [{"id": "r", "name": "billing"}],
    })
}

#[test]
fn members_in_any_order_are_read() {
    let text = backup().to_string();
    let reader = Reader::open(Cursor::new(&text)).unwrap();
    assert_eq!((reader.schema_version(), reader.tenant_id()), (7, "local-default"));
    let (records, report) = read(&text, false).unwrap();
    let sorts: Vec<&str> = records
        .iter()
        .map(|record| match record {
            Record::Session(session) if session.project == "billing" => "session",
            Record::Turn(turn, _) if turn.text == "hello" => "turn",
            Record::Memory(memory) if memory.memory.valid_from == memory.memory.recorded_at => "memory",
            Record::Link(link) if link.weight_thousandths == 500 => "link",
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(sorts, ["session", "turn", "memory", "memory", "link"]);
    assert_eq!((report.counts.nodes, report.counts.edges), (2, 1));
    assert_eq!(
        read(&text, false).unwrap().0,
        records,
        "the same file is the same records"
    );
}

#[test]
fn older_files_without_windows_and_pretty_ones_are_read() {
    let mut old = backup();
    for member in ["context_windows", "context_window_edges", "repos", "transcripts"] {
        old.as_object_mut().unwrap().remove(member);
    }
    old["schema_version"] = 3.into();
    old["edges"] = Value::Null;
    let (records, _) = read(&serde_json::to_string_pretty(&old).unwrap(), false).unwrap();
    assert_eq!(records.len(), 2);
}

#[test]
fn other_versions_files_and_dangling_links_are_refused() {
    let with = |member: &str, value: Value| {
        let mut backup = backup();
        backup[member] = value;
        read(&backup.to_string(), false).unwrap_err()
    };
    assert_eq!(with("schema_version", 8.into()).code(), "schema_version_incompatible");
    assert_eq!(with("nodes", json!([])).code(), "dangling_edge");
    assert_eq!(with("nodes", json!({})).code(), "validation_failed");
    let message = with(
        "nodes",
        json!([{"id": A, "label": "hunter2", "content": 7, "node_type": "fact"}]),
    )
    .to_string();
    assert!(
        message.contains("nodes.jsonl[0]") || message.contains("nodes[0]"),
        "{message}"
    );
    assert!(message.contains("content") && !message.contains("hunter2"), "{message}");
    let (records, report) = {
        let mut backup = backup();
        backup["nodes"].as_array_mut().unwrap().pop();
        read(&backup.to_string(), true).unwrap()
    };
    assert_eq!((records.len(), report.changes.dangling_dropped), (3, 1));
    for text in [
        "",
        "[]",
        "{}",
        "{\"schema_version\":7}",
        "{\"schema_version\":7,\"nodes\":[],\"nodes\":[]}",
        "{\"schema_version\":7,\"nodes\":[]} x",
    ] {
        assert!(read(text, true).is_err(), "{text}");
    }
}

proptest! {
    #[test]
    fn damaged_files_are_refused_or_read_without_a_panic(at: prop::sample::Index, with in 1u8..128, cut: bool) {
        let mut bytes = backup().to_string().into_bytes();
        let at = at.index(bytes.len());
        if cut { bytes.truncate(at) } else { bytes[at] ^= with }
        if let Ok(mut reader) = Reader::open(Cursor::new(&bytes)) {
            let _report = reader.records(&importer(), true, |_| Ok::<(), ReadError>(()));
        }
    }
}
