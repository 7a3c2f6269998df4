//! Containers compared and merged.

#![allow(clippy::unwrap_used, reason = "a test")]

mod containers;
mod generate;

use std::io::Cursor;

use containers::{A, B, edge, foreign, importer, info, memories, node, read, sample, write};
use serde_json::{Value, json};
use waggle_formats::abhi::{Document, Prefer, Reader, diff, merge};
use waggle_memory::record::{MemoryRecord, Record};

fn document(nodes: &[Value], edges: &[Value]) -> Document {
    let bytes = foreign([&[], nodes, edges, &[]], |_| {});
    Document::load(&mut Reader::open(Cursor::new(bytes), None).unwrap()).unwrap()
}

#[test]
fn a_diff_names_what_was_added_removed_and_changed() {
    let old = document(&[node(A, "a"), node(B, "b")], &[edge(A, B, "part_of")]);
    let mut changed = node(A, "a");
    changed["content"] = "other words".into();
    let new = document(&[changed, node("c", "c")], &[]);
    let found = diff(&old, &new);
    assert_eq!(
        (found.nodes_added, found.nodes_removed),
        (vec!["c".to_owned()], vec![B.to_owned()])
    );
    assert_eq!(found.nodes_updated.len(), 1);
    assert_eq!(found.nodes_updated[0].1[0].field, "content");
    assert_eq!(found.nodes_updated[0].1[0].new, "other words");
    assert_eq!(found.edges_removed.len(), 1);
    assert_eq!(diff(&old, &old), Default::default());
}

#[test]
fn a_merge_keeps_the_changes_of_both_sides_and_says_where_they_clash() {
    let with = |field: &str, value: Value| {
        let mut node = node(A, "a");
        node[field] = value;
        node
    };
    let base = document(&[node(A, "a"), node(B, "b")], &[edge(A, B, "part_of")]);
    let left = document(
        &[with("content", "left words".into()), node(B, "b")],
        &[edge(A, B, "part_of")],
    );
    let right = document(&[with("tags", json!(["right"])), node("c", "c")], &[]);
    let merged = merge(&base, &left, &right, Prefer::Left);
    assert_eq!((merged.conflicts.len(), merged.dangling_dropped.len()), (0, 0));
    let records = merged.document.records(&importer()).unwrap();
    let found = memories(&records);
    assert_eq!(found.len(), 2, "b was removed by one side and not touched by the other");
    let a = found.iter().find(|record| record.memory.id.to_string() == A).unwrap();
    assert_eq!(
        (a.memory.content.as_str(), a.memory.tags.as_slice()),
        ("left words", &["right".to_owned()][..])
    );
    assert_eq!(a.memory.version, 2);
    let clash = document(
        &[with("content", "right words".into()), node(B, "b")],
        &[edge(A, B, "part_of")],
    );
    for (prefer, expected) in [(Prefer::Left, "left words"), (Prefer::Right, "right words")] {
        let merged = merge(&base, &left, &clash, prefer);
        assert_eq!(
            (merged.conflicts[0].id.as_str(), merged.conflicts[0].field.as_str()),
            (A, "content")
        );
        let records = merged.document.records(&importer()).unwrap();
        assert_eq!(memories(&records)[0].memory.content, expected);
    }
}

#[test]
fn merged_records_of_our_own_files_can_be_written() {
    let records = sample();
    let (bytes, _) = write(&records, info());
    let load = |bytes: &[u8]| Document::load(&mut Reader::open(Cursor::new(bytes), None).unwrap()).unwrap();
    let base = load(&bytes);
    let change = |at: usize, change: fn(&mut MemoryRecord)| {
        let mut records = records.clone();
        let memory = records
            .iter_mut()
            .filter(|record| matches!(record, Record::Memory(_)))
            .nth(at)
            .unwrap();
        if let Record::Memory(memory) = memory {
            change(memory);
        }
        load(&write(&records, info()).0)
    };
    let left = change(0, |memory| memory.memory.content = "left words".to_owned());
    let right = change(1, |memory| memory.memory.label = "right label".to_owned());
    let merged = merge(&base, &left, &right, Prefer::Right);
    assert_eq!(merged.conflicts, []);
    let again = merged.document.records(&importer()).unwrap();
    let (bytes, _) = write(&again, info());
    let (again, _) = read(&bytes, false).unwrap();
    let found = memories(&again);
    assert_eq!(
        (found[0].memory.content.as_str(), found[1].memory.label.as_str()),
        ("left words", "right label")
    );
    assert_eq!(found[2], memories(&records)[2]);
}
