//! `.abhi`: our own files come back exactly and are the same bytes again; foreign ones come in by the rules of imports;
//! hostile ones are refused.

#![allow(clippy::unwrap_used, reason = "a test")]

mod containers;
mod generate;

use std::io::Cursor;

use containers::{A, B, edge, foreign, importer, info, memories, node, read, sample, write, zip};
use ed25519_dalek::{Signer, SigningKey};
use generate::Draw;
use proptest::prelude::*;
use serde_json::{Value, json};
use waggle_formats::abhi::{Encryption, Info, MAGIC, Reader, Writer, inspect, validate};
use waggle_formats::error::ReadError;
use waggle_formats::signature::Signature;
use waggle_memory::kind::{Confidence, Kind, Relationship};
use waggle_memory::record::Record;

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
    let turns = [
        json!({"id": "t1", "transcript_text": "we chose PostgreSQL", "role": "user", "session_id": "s1",
        "turn_index": 3, "observed_at": "2025-03-01 09:00:00", "project": "billing"}),
    ];
    let windows = [
        json!({"id": "w", "session_id": "s1", "repo_id": "r1", "title": "Databases",
        "created_at": "2025-03-01T08:00:00Z"}),
    ];
    let bytes = foreign([&turns, &nodes, &edges, &windows], |_| {});
    let (records, report) = read(&bytes, false).unwrap();
    assert_eq!(
        (
            report.counts.nodes,
            report.counts.edges,
            report.counts.transcripts,
            report.counts.sessions
        ),
        (2, 3, 1, 1)
    );
    assert_eq!(
        (report.changes.self_links_dropped, report.changes.relationships_replaced),
        (1, 1)
    );
    assert_eq!(report.changes.evidence_dropped, 1);
    let found = memories(&records);
    let memory = &found[0].memory;
    assert_eq!(memory.id.to_string(), A);
    assert_eq!(
        (memory.label.as_str(), memory.kind),
        ("Database decision", Kind::Decision)
    );
    assert_eq!(memory.tags, ["a", "b"]);
    assert_eq!(memory.valid_from, memory.recorded_at);
    assert_eq!(memory.recorded_at.to_string(), "2025-03-01T10:00:00.000Z");
    assert_eq!(memory.updated_at.to_string(), "2025-04-01T10:00:00.500Z");
    assert_eq!(memory.valid_to.unwrap().to_string(), "2026-01-01T00:00:00.000Z");
    assert_eq!(memory.aliases[0].text, "Postgres it is.");
    assert_eq!(
        memory.metadata,
        "{\"claimed_author\":\"somebody\",\"n\":1.5,\"superseded_by\":\"x\"}"
    );
    assert_eq!((memory.author.0.as_str(), memory.superseded_by), ("key:importer", None));
    assert_eq!(found[0].evidence.len(), 1);
    let other = &found[1];
    assert_eq!(other.memory.kind, Kind::Note);
    assert_eq!(
        other.memory.metadata,
        "{\"waggle_id\":\"memory-7\",\"waggle_node_type\":\"gadget\"}"
    );
    assert_eq!(other.evidence[0].1.author.0, "key:importer");
    let links: Vec<_> = records
        .iter()
        .filter_map(|record| match record {
            Record::Link(link) => Some(link),
            _ => None,
        })
        .collect();
    assert_eq!(
        (links[0].relationship, links[0].weight_thousandths),
        (Relationship::RelatesTo, 250)
    );
    assert!(links[0].reason.contains("custom_rel"));
    assert_eq!(links[0].target, other.memory.id);
    let confidences: Vec<Confidence> = links.iter().map(|link| link.confidence).collect();
    assert_eq!(
        confidences,
        [Confidence::Explicit, Confidence::Inferred, Confidence::Weak]
    );
    assert!(links[1].is_open_conflict());
    let Record::Session(session) = &records[0] else {
        panic!("{:?}", records[0])
    };
    assert_eq!(
        (session.project.as_str(), session.title.as_str()),
        ("billing", "Databases")
    );
    // The same file twice is the same records: nothing to change the second time.
    assert_eq!(read(&bytes, false).unwrap().0, records);
}

#[test]
fn a_link_without_an_end_is_named_or_left_out() {
    let nodes = [node(A, "a"), node(B, "b")];
    let edges = [
        edge(A, B, "part_of"),
        edge(A, "0190c0de-0000-7000-8000-00000000000c", "part_of"),
    ];
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
    let code = |change: fn(&mut Value)| {
        read(&foreign([&[], &nodes, &[], &[]], change), false)
            .unwrap_err()
            .code()
    };
    assert_eq!(
        code(|m| m["content_hash"] = "sha256:00".into()),
        "hash_verification_failed"
    );
    assert_eq!(
        code(|m| m["members"]["nodes.jsonl"]["sha256"] = "00".into()),
        "hash_verification_failed"
    );
    assert_eq!(code(|m| m["tenant"] = "another".into()), "hash_verification_failed");
    assert_eq!(
        code(|m| m["schema_version"] = "3.0.0".into()),
        "schema_version_incompatible"
    );
    assert_eq!(
        code(|m| drop(m["members"].as_object_mut().unwrap().remove("nodes.jsonl"))),
        "validation_failed"
    );
    // These two are outside of the hash.
    assert!(
        read(
            &foreign([&[], &nodes, &[], &[]], |m| m["created_at"] = "x".into()),
            false
        )
        .is_ok()
    );
}

#[test]
fn hostile_zips_are_refused() {
    let good = foreign([&[], &[node(A, "a")], &[], &[]], |_| {});
    assert!(read(&good, false).is_ok());
    for name in [
        "../nodes.jsonl",
        "/nodes.jsonl",
        "nodes.jsonl/",
        "c:\\nodes.jsonl",
        "extra.txt",
        "signatures/",
    ] {
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
    let refused = |nodes: &[Value]| {
        read(&foreign([&[], nodes, &[], &[]], |_| {}), true)
            .unwrap_err()
            .to_string()
    };
    assert!(refused(&[node(A, "a"), node(A, "b")]).contains("nodes.jsonl[1]"));
    let message = refused(&[
        node(A, "a"),
        json!({"id": B, "label": " ", "content": "hunter2", "node_type": "fact"}),
    ]);
    assert!(
        message.contains("nodes.jsonl[1]") && message.contains("label") && !message.contains("hunter2"),
        "{message}"
    );
    let message =
        refused(&[json!({"id": A, "label": "x", "content": "x", "node_type": "fact", "valid_from": "hunter2"})]);
    assert!(
        message.contains("valid_from") && !message.contains("hunter2"),
        "{message}"
    );
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
        let Err(error) = Reader::open(Cursor::new(&bytes), wrong) else {
            panic!()
        };
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
    let (bytes, summary) = write(
        &records,
        Info {
            include_low_confidence_edges: false,
            ..info()
        },
    );
    assert_eq!(summary.edges_filtered, weak);
    let inspection = inspect(Cursor::new(&bytes), None).unwrap();
    assert_eq!(
        inspection.manifest["export_context"]["edge_filter"]["edges_filtered"],
        weak
    );
    assert_eq!(inspection.edge_types.get("relates_to"), None);
    assert_eq!(inspection.lines[1], u64::try_from(memories(&records).len()).unwrap());
    assert_eq!(read(&bytes, false).unwrap().1.counts.edges, summary.counts.edges);
}
