//! `.abhi`: our own files come back exactly and are the same bytes again; foreign ones come in by the rules of imports;
//! hostile ones are refused.

#![allow(clippy::unwrap_used, reason = "a test")]

mod generate;

use std::io::{Cursor, Write};

use ed25519_dalek::{Signer, SigningKey};
use generate::{Draw, canonical};
use proptest::prelude::*;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use waggle_formats::abhi::{Document, Encryption, Importer, Info, MAGIC, Prefer, Reader, Report, Summary, Writer};
use waggle_formats::abhi::{diff, inspect, merge, validate};
use waggle_formats::error::ReadError;
use waggle_formats::signature::Signature;
use waggle_memory::id::Principal;
use waggle_memory::kind::{Confidence, Kind, Relationship};
use waggle_memory::record::{MemoryRecord, Record};
use waggle_memory::time::Millis;
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

fn info() -> Info {
    Info {
        tenant_id: "acme".to_owned(),
        embedding_model_id: "minilm".to_owned(),
        embedding_dim: 384,
        include_low_confidence_edges: true,
        ..Info::default()
    }
}

fn importer() -> Importer {
    Importer {
        author: Principal("key:importer".to_owned()),
        at: Millis(1_700_000_000_000),
    }
}

fn write(records: &[Record], info: Info) -> (Vec<u8>, Summary) {
    let mut out = Cursor::new(Vec::new());
    let mut writer = Writer::new(&mut out, info, None).unwrap();
    records.iter().for_each(|record| writer.record(record).unwrap());
    let summary = writer.finish().unwrap();
    (out.into_inner(), summary)
}

fn read(bytes: &[u8], allow_dangling: bool) -> Result<(Vec<Record>, Report), ReadError> {
    let mut reader = Reader::open(Cursor::new(bytes), None)?;
    let mut records = Vec::new();
    let report = reader.records(&importer(), allow_dangling, |record| {
        records.push(record);
        Ok::<(), ReadError>(())
    })?;
    Ok((records, report))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn our_own_files_come_back_exactly_and_are_the_same_bytes_again(seed: u64) {
        let records = Draw::new(seed).graph();
        let (bytes, summary) = write(&records, info());
        let (again, report) = read(&bytes, false).unwrap();
        prop_assert_eq!(&again, &records);
        prop_assert_eq!(report.counts, summary.counts);
        prop_assert_eq!(report.changes, Default::default());
        prop_assert_eq!(write(&again, info()).0, bytes);
    }

    #[test]
    fn damaged_files_are_refused_or_read_without_a_panic(seed in 0u64..20, at: prop::sample::Index, with in 1u8.., cut: bool) {
        let (mut bytes, _) = write(&Draw::new(seed).graph(), info());
        let at = at.index(bytes.len());
        if cut { bytes.truncate(at) } else { bytes[at] ^= with }
        let _read = read(&bytes, true);
        let _found = validate(Cursor::new(&bytes), None, &importer());
    }

    #[test]
    fn arbitrary_bytes_are_refused_without_a_panic(mut bytes: Vec<u8>, magic: bool) {
        if magic {
            bytes.splice(0..0, MAGIC);
        }
        prop_assert!(read(&bytes, true).is_err());
    }
}

/// A ZIP as any other program would make it.
fn zip(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in members {
        zip.start_file(*name, SimpleFileOptions::default()).unwrap();
        zip.write_all(bytes).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

fn sha(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

const LINES: [&str; 4] = ["transcripts.jsonl", "nodes.jsonl", "edges.jsonl", "context_windows.jsonl"];

/// A foreign file with the given lines, its hashes made here and not by the crate.
fn foreign(lines: [&[Value]; 4], change: impl FnOnce(&mut Value)) -> Vec<u8> {
    let texts: Vec<String> = lines
        .iter()
        .map(|lines| lines.iter().map(|line| canonical(&line.to_string()) + "\n").collect())
        .collect();
    let members: serde_json::Map<String, Value> = LINES
        .iter()
        .zip(&texts)
        .map(|(name, text)| {
            let about = json!({"sha256": sha(text.as_bytes()), "size": text.len(), "encrypted": false});
            ((*name).to_owned(), about)
        })
        .collect();
    let mut manifest = json!({
        "schema_version": "2.0.0", "tenant": "other", "members": members, "scope": "all",
        "signatures": {"algorithm": "ed25519", "present": false},
        "encryption": {"enabled": false, "algorithm": ""}, "repos": [{"id": "r1", "name": "billing"}],
    });
    let hashed = canonical(&manifest.to_string()) + &texts.concat();
    manifest["content_hash"] = format!("sha256:{}", sha(hashed.as_bytes())).into();
    manifest["created_at"] = "2026-01-01T00:00:00Z".into();
    manifest["export_context"] = json!({"edge_filter": {}});
    change(&mut manifest);
    let manifest = canonical(&manifest.to_string());
    let mut all: Vec<(&str, &[u8])> = LINES.iter().copied().zip(texts.iter().map(|text| text.as_bytes())).collect();
    all.push(("manifest.json", manifest.as_bytes()));
    zip(&all)
}

fn node(id: &str, label: &str) -> Value {
    json!({"id": id, "label": label, "content": format!("{label} is used."), "node_type": "fact"})
}

const A: &str = "0190c0de-0000-7000-8000-00000000000a";
const B: &str = "0190c0de-0000-7000-8000-00000000000b";

fn edge(source: &str, target: &str, relationship: &str) -> Value {
    json!({"id": format!("{source}>{target}>{relationship}"), "source_id": source, "target_id": target,
        "relationship": relationship})
}

fn memories(records: &[Record]) -> Vec<&MemoryRecord> {
    records
        .iter()
        .filter_map(|record| match record {
            Record::Memory(memory) => Some(&**memory),
            _ => None,
        })
        .collect()
}

#[test]
fn foreign_lines_come_in_by_the_rules_of_imports() {
    let full = json!({
        "id": A, "label": "Database\ndecision", "content": "We chose PostgreSQL.", "node_type": "decision",
        "tags": ["b", "a", "b"], "aliases": ["Postgres it is."], "project": "billing", "session_id": "s1",
        "created_at": "2025-03-01T10:00:00+00:00", "updated_at": "2025-04-01T10:00:00.5Z", "valid_from": null,
        "valid_to": "2026-01-01", "author": "somebody",
        "metadata": "{\"superseded_by\":\"x\",\"n\":1.5}",
        "evidence_records": [
            {"evidence_id": "e1", "source_text": "No evidence recorded.", "observed_at": "2025-03-01T10:00:00Z"},
            {"evidence_id": "e2", "source_text": "we chose PostgreSQL", "observed_at": "2025-03-01T09:00:00Z"}
        ],
    });
    let plain = json!({"id": "memory-7", "label": "Cache", "content": "Redis caches.", "node_type": "gadget"});
    let nodes = [full, plain];
    let edges = [
        json!({"id": "e", "source_id": A, "target_id": "memory-7", "relationship": "custom_rel", "weight": 0.25}),
        json!({"id": "f", "source_id": A, "target_id": "memory-7", "relationship": "contradicts",
            "metadata": {"edge_confidence": 0.9}}),
        json!({"id": "g", "source_id": A, "target_id": "memory-7", "relationship": "relates_to",
            "metadata": {"edge_confidence": 0.5}}),
        edge(A, A, "part_of"),
    ];
    let turns = [json!({"id": "t1", "transcript_text": "we chose PostgreSQL", "role": "user", "session_id": "s1",
        "turn_index": 3, "observed_at": "2025-03-01 09:00:00", "project": "billing"})];
    let windows = [json!({"id": "w", "session_id": "s1", "repo_id": "r1", "title": "Databases",
        "created_at": "2025-03-01T08:00:00Z"})];
    let bytes = foreign([&turns, &nodes, &edges, &windows], |_| {});
    let (records, report) = read(&bytes, false).unwrap();
    assert_eq!((report.counts.nodes, report.counts.edges, report.counts.transcripts, report.counts.sessions), (2, 3, 1, 1));
    assert_eq!((report.changes.self_links_dropped, report.changes.relationships_replaced), (1, 1));
    assert_eq!(report.changes.evidence_dropped, 1);
    let found = memories(&records);
    let memory = &found[0].memory;
    assert_eq!(memory.id.to_string(), A);
    assert_eq!((memory.label.as_str(), memory.kind), ("Database decision", Kind::Decision));
    assert_eq!(memory.tags, ["a", "b"]);
    assert_eq!(memory.valid_from, memory.recorded_at);
    assert_eq!(memory.recorded_at.to_string(), "2025-03-01T10:00:00.000Z");
    assert_eq!(memory.updated_at.to_string(), "2025-04-01T10:00:00.500Z");
    assert_eq!(memory.valid_to.unwrap().to_string(), "2026-01-01T00:00:00.000Z");
    assert_eq!(memory.aliases[0].text, "Postgres it is.");
    assert_eq!(memory.metadata, "{\"claimed_author\":\"somebody\",\"n\":1.5,\"superseded_by\":\"x\"}");
    assert_eq!((memory.author.0.as_str(), memory.superseded_by), ("key:importer", None));
    assert_eq!(found[0].evidence.len(), 1);
    let other = &found[1];
    assert_eq!(other.memory.kind, Kind::Note);
    assert_eq!(other.memory.metadata, "{\"waggle_id\":\"memory-7\",\"waggle_node_type\":\"gadget\"}");
    assert_eq!(other.evidence[0].1.author.0, "key:importer");
    let links: Vec<_> = records
        .iter()
        .filter_map(|record| match record {
            Record::Link(link) => Some(link),
            _ => None,
        })
        .collect();
    assert_eq!((links[0].relationship, links[0].weight_thousandths), (Relationship::RelatesTo, 250));
    assert!(links[0].reason.contains("custom_rel"));
    assert_eq!(links[0].target, other.memory.id);
    let confidences: Vec<Confidence> = links.iter().map(|link| link.confidence).collect();
    assert_eq!(confidences, [Confidence::Explicit, Confidence::Inferred, Confidence::Weak]);
    assert!(links[1].is_open_conflict());
    let Record::Session(session) = &records[0] else { panic!("{:?}", records[0]) };
    assert_eq!((session.project.as_str(), session.title.as_str()), ("billing", "Databases"));
    // The same file twice is the same records: nothing to change the second time.
    assert_eq!(read(&bytes, false).unwrap().0, records);
}

#[test]
fn a_link_without_an_end_is_named_or_left_out() {
    let nodes = [node(A, "a"), node(B, "b")];
    let edges = [edge(A, B, "part_of"), edge(A, "0190c0de-0000-7000-8000-00000000000c", "part_of")];
    let bytes = foreign([&[], &nodes, &edges, &[]], |_| {});
    let error = read(&bytes, false).unwrap_err();
    assert_eq!(error.code(), "dangling_edge");
    let (records, report) = read(&bytes, true).unwrap();
    assert_eq!((records.len(), report.changes.dangling_dropped), (3, 1));
    assert!(error.to_string().contains(&report.dangling[0].link.to_string()));
    let found = validate(Cursor::new(&bytes), None, &importer());
    assert!(!found.valid && found.errors.len() == 1, "{found:?}");
}

#[test]
fn a_bare_zip_is_read_and_an_empty_one_too() {
    let bytes = foreign([&[], &[], &[], &[]], |_| {});
    assert_eq!(read(&bytes, false).unwrap().0, []);
    let with_magic = [MAGIC.as_slice(), &bytes].concat();
    assert_eq!(read(&with_magic, false).unwrap().0, []);
    assert_eq!(write(&[], info()).0[..4], MAGIC);
}

#[test]
fn changed_hashes_versions_and_members_are_refused() {
    let nodes = [node(A, "a")];
    let code = |change: fn(&mut Value)| read(&foreign([&[], &nodes, &[], &[]], change), false).unwrap_err().code();
    assert_eq!(code(|m| m["content_hash"] = "sha256:00".into()), "hash_verification_failed");
    assert_eq!(code(|m| m["members"]["nodes.jsonl"]["sha256"] = "00".into()), "hash_verification_failed");
    assert_eq!(code(|m| m["tenant"] = "another".into()), "hash_verification_failed");
    assert_eq!(code(|m| m["schema_version"] = "3.0.0".into()), "schema_version_incompatible");
    assert_eq!(code(|m| drop(m["members"].as_object_mut().unwrap().remove("nodes.jsonl"))), "validation_failed");
    // These two are outside of the hash.
    assert!(read(&foreign([&[], &nodes, &[], &[]], |m| m["created_at"] = "x".into()), false).is_ok());
}

#[test]
fn hostile_zips_are_refused() {
    let good = foreign([&[], &[node(A, "a")], &[], &[]], |_| {});
    assert!(read(&good, false).is_ok());
    for name in ["../nodes.jsonl", "/nodes.jsonl", "nodes.jsonl/", "c:\\nodes.jsonl", "extra.txt", "signatures/"] {
        let error = read(&zip(&[("manifest.json", b"{}"), (name, b"")]), true).unwrap_err();
        assert!(matches!(error, ReadError::WrongFormat { .. }), "{name}: {error}");
        assert!(!error.to_string().contains(name), "{error}");
    }
    // A name twice: the second one is renamed in the finished bytes.
    let mut twice = zip(&[("nodes.jsonl", b"{}"), ("nodeX.jsonl", b"{}"), ("manifest.json", b"{}")]);
    while let Some(at) = twice.windows(11).position(|bytes| bytes == b"nodeX.jsonl") {
        twice[at + 4] = b's';
    }
    assert!(read(&twice, true).unwrap_err().to_string().contains("twice"));
    // 64 MiB of blanks pack into some kilobytes.
    let bomb = zip(&[("manifest.json", b"{}"), ("nodes.jsonl", &vec![b' '; 64 << 20])]);
    assert!(bomb.len() < 1 << 20);
    assert_eq!(read(&bomb, true).unwrap_err().code(), "payload_too_large");
    let many: Vec<String> = (0..100).map(|n| format!("member-{n}")).collect();
    let members: Vec<(&str, &[u8])> = many.iter().map(|name| (name.as_str(), b"".as_slice())).collect();
    assert_eq!(read(&zip(&members), true).unwrap_err().code(), "payload_too_large");
}

#[test]
fn lines_twice_or_malformed_are_refused_with_their_place_and_without_their_content() {
    let refused = |nodes: &[Value]| read(&foreign([&[], nodes, &[], &[]], |_| {}), true).unwrap_err().to_string();
    assert!(refused(&[node(A, "a"), node(A, "b")]).contains("nodes.jsonl[1]"));
    let message = refused(&[node(A, "a"), json!({"id": B, "label": " ", "content": "hunter2", "node_type": "fact"})]);
    assert!(message.contains("nodes.jsonl[1]") && message.contains("label") && !message.contains("hunter2"), "{message}");
    let message = refused(&[json!({"id": A, "label": "x", "content": "x", "node_type": "fact", "valid_from": "hunter2"})]);
    assert!(message.contains("valid_from") && !message.contains("hunter2"), "{message}");
}

fn sample() -> Vec<Record> {
    (0..)
        .map(|seed| Draw::new(seed).graph())
        .find(|records| {
            let memories = memories(records).len();
            let links = records.iter().filter(|record| matches!(record, Record::Link(_))).count();
            memories > 3 && links > 2
        })
        .unwrap()
}

#[test]
fn encrypted_files_need_their_passphrase() {
    let records = sample();
    let mut next = 0u8;
    let mut random = |bytes: &mut [u8]| {
        next += 1;
        bytes.fill(next);
    };
    let mut out = Cursor::new(Vec::new());
    let encryption = Encryption {
        passphrase: "correct horse",
        random: &mut random,
    };
    let mut writer = Writer::new(&mut out, info(), Some(encryption)).unwrap();
    records.iter().for_each(|record| writer.record(record).unwrap());
    writer.finish().unwrap();
    let bytes = out.into_inner();
    let mut reader = Reader::open(Cursor::new(&bytes), Some("correct horse")).unwrap();
    assert!(reader.manifest().is_encrypted());
    let mut again = Vec::new();
    let sink = |record| {
        again.push(record);
        Ok::<(), ReadError>(())
    };
    reader.records(&importer(), false, sink).unwrap();
    assert_eq!(again, records);
    for wrong in [None, Some("battery staple")] {
        let Err(error) = Reader::open(Cursor::new(&bytes), wrong) else { panic!() };
        assert!(matches!(error, ReadError::Passphrase(_)), "{error}");
    }
}

#[test]
fn signatures_are_checked_on_request() {
    let records = sample();
    let key = SigningKey::from_bytes(&[9; 32]);
    let mut out = Cursor::new(Vec::new());
    let mut writer = Writer::new(&mut out, info(), None).unwrap();
    records.iter().for_each(|record| writer.record(record).unwrap());
    let signed = writer
        .finish_signed(|hash| Signature {
            public_key: key.verifying_key().to_bytes(),
            bytes: key.sign(hash.as_bytes()).to_bytes(),
        })
        .unwrap();
    // Signed or not, the content is the same.
    assert_eq!(signed.content_hash, write(&records, info()).1.content_hash);
    let reader = Reader::open(Cursor::new(out.get_ref()), None).unwrap();
    assert!(reader.is_signed_by(|public| *public == key.verifying_key().to_bytes()));
    assert!(!reader.is_signed_by(|_| false));
    let found = validate(Cursor::new(out.get_ref()), None, &importer());
    assert_eq!((found.valid, found.signature_fits), (true, Some(true)));
}

#[test]
fn weak_links_that_only_relate_are_left_out_unless_asked_for() {
    let mut records = sample();
    let mut weak = 0;
    for record in &mut records {
        if let Record::Link(link) = record
            && link.resolution.is_none()
        {
            (link.relationship, link.confidence) = (Relationship::RelatesTo, Confidence::Weak);
            weak += 1;
        }
    }
    let (bytes, summary) = write(&records, Info { include_low_confidence_edges: false, ..info() });
    assert_eq!(summary.edges_filtered, weak);
    let inspection = inspect(Cursor::new(&bytes), None).unwrap();
    assert_eq!(inspection.manifest["export_context"]["edge_filter"]["edges_filtered"], weak);
    assert_eq!(inspection.edge_types.get("relates_to"), None);
    assert_eq!(inspection.lines[1], u64::try_from(memories(&records).len()).unwrap());
    assert_eq!(read(&bytes, false).unwrap().1.counts.edges, summary.counts.edges);
}

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
    assert_eq!((found.nodes_added, found.nodes_removed), (vec!["c".to_owned()], vec![B.to_owned()]));
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
    let left = document(&[with("content", "left words".into()), node(B, "b")], &[edge(A, B, "part_of")]);
    let right = document(&[with("tags", json!(["right"])), node("c", "c")], &[]);
    let merged = merge(&base, &left, &right, Prefer::Left);
    assert_eq!((merged.conflicts.len(), merged.dangling_dropped.len()), (0, 0));
    let records = merged.document.records(&importer()).unwrap();
    let found = memories(&records);
    assert_eq!(found.len(), 2, "b was removed by one side and not touched by the other");
    let a = found.iter().find(|record| record.memory.id.to_string() == A).unwrap();
    assert_eq!((a.memory.content.as_str(), a.memory.tags.as_slice()), ("left words", &["right".to_owned()][..]));
    assert_eq!(a.memory.version, 2);
    let clash = document(&[with("content", "right words".into()), node(B, "b")], &[edge(A, B, "part_of")]);
    for (prefer, expected) in [(Prefer::Left, "left words"), (Prefer::Right, "right words")] {
        let merged = merge(&base, &left, &clash, prefer);
        assert_eq!((merged.conflicts[0].id.as_str(), merged.conflicts[0].field.as_str()), (A, "content"));
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
        let memory = records.iter_mut().filter(|record| matches!(record, Record::Memory(_))).nth(at).unwrap();
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
    assert_eq!((found[0].memory.content.as_str(), found[1].memory.label.as_str()), ("left words", "right label"));
    assert_eq!(found[2], memories(&records)[2]);
}
