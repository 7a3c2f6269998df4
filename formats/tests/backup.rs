//! The JSON backup: what is written is read back, the same graph is the same bytes, and nothing else is taken for it.

#![allow(clippy::unwrap_used, reason = "a test")]

mod generate;

use ed25519_dalek::{Signer, SigningKey};
use generate::Draw;
use proptest::prelude::*;
use waggle_formats::backup::{Header, Options, Reader, Summary, Writer, verify};
use waggle_formats::error::{ReadError, WriteError};
use waggle_formats::signature::Signature;
use waggle_memory::record::Record;
use waggle_memory::time::Millis;

fn header(draw: &mut Draw) -> Header {
    Header {
        tenant_id: "acme".to_owned(),
        exported_at: Millis(1_800_000_000_000),
        read_at: "a read point \"7\"".to_owned(),
        scope: draw.scope(),
        embedding_model_id: "minilm".to_owned(),
        rules_version: 1,
    }
}

fn write(header: &Header, records: &[Record]) -> (Vec<u8>, Summary) {
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes, header).unwrap();
    records.iter().for_each(|record| writer.record(record).unwrap());
    let summary = writer.finish().unwrap();
    (bytes, summary)
}

fn read(bytes: &[u8], options: Options) -> Result<(Header, Vec<Record>, Summary), ReadError> {
    let mut reader = Reader::open(bytes, options)?;
    let mut records = Vec::new();
    while let Some(record) = reader.next_record()? {
        records.push(record);
    }
    Ok((reader.header().clone(), records, reader.summary().unwrap().clone()))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn graphs_come_back_as_they_were_and_are_the_same_bytes_again(seed: u64) {
        let mut draw = Draw::new(seed);
        let header = header(&mut draw);
        let records = draw.graph();
        let (bytes, written) = write(&header, &records);
        let (read_header, read_records, summary) = read(&bytes, Options::default()).unwrap();
        prop_assert_eq!(&read_header, &header);
        prop_assert_eq!(&read_records, &records);
        prop_assert_eq!(&summary, &written);
        prop_assert_eq!(write(&read_header, &read_records).0, bytes);
    }

    #[test]
    fn a_changed_or_cut_file_is_refused(seed: u64, at: prop::sample::Index, with in 1u8.., cut: bool) {
        let mut draw = Draw::new(seed);
        let header = header(&mut draw);
        let (mut bytes, _) = write(&header, &draw.graph());
        // What follows the hash is not hashed: the signature is, by itself, and blanks mean nothing.
        let end = bytes.windows(14).rposition(|part| part == b"\"content_hash\"").unwrap() + 80;
        let at = at.index(end);
        if cut { bytes.truncate(at) } else { bytes[at] ^= with }
        prop_assert!(verify(&bytes[..], Options::default()).is_err());
    }

    #[test]
    fn arbitrary_bytes_are_refused_without_a_panic(bytes: Vec<u8>) {
        prop_assert!(verify(&bytes[..], Options::default()).is_err());
    }
}

/// What is optional is sometimes there, so that the test above tests it.
#[test]
fn every_member_of_the_format_is_made_by_the_generator() {
    let mut keys = std::collections::BTreeSet::new();
    for seed in 0..50 {
        let mut draw = Draw::new(seed);
        let header = header(&mut draw);
        let (bytes, _) = write(&header, &draw.graph());
        note_set(&serde_json::from_slice(&bytes).unwrap(), String::new(), &mut keys);
    }
    let keys: Vec<String> = keys.into_iter().collect();
    let expected = include_str!("backup_members.txt");
    if std::env::var_os("UPDATE").is_some() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/backup_members.txt");
        std::fs::write(path, keys.join("\n") + "\n").unwrap();
        return;
    }
    assert_eq!(keys, expected.lines().collect::<Vec<_>>());
}

/// Paths of all members that hold something; lists and keys of metadata are skipped.
fn note_set(value: &serde_json::Value, path: String, keys: &mut std::collections::BTreeSet<String>) {
    match value {
        serde_json::Value::Object(members) => {
            if path.contains('.') {
                assert!(members.keys().is_sorted(), "{path}: keys are not sorted");
            }
            for (key, value) in members {
                let path = if path.is_empty() {
                    key.clone()
                } else {
                    format!("{path}.{key}")
                };
                if !value.is_null() {
                    keys.insert(path.clone());
                }
                if key != "metadata" {
                    note_set(value, path, keys);
                }
            }
        }
        serde_json::Value::Array(items) => items.iter().for_each(|item| note_set(item, path.clone(), keys)),
        _ => {}
    }
}

fn sample() -> (Header, Vec<Record>) {
    // A seed whose graph has records of every sort.
    (0..)
        .map(|seed| {
            let mut draw = Draw::new(seed);
            (header(&mut draw), draw.graph())
        })
        .find(|(_, records)| {
            let sorts: std::collections::BTreeSet<_> = records
                .iter()
                .map(|r| format!("{r:?}").split('(').next().unwrap().to_owned())
                .collect();
            sorts.len() == 6
        })
        .unwrap()
}

#[test]
fn a_signature_is_checked_with_the_key_of_the_caller() {
    let (header, records) = sample();
    let key = SigningKey::from_bytes(&[7; 32]);
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes, &header).unwrap();
    records.iter().for_each(|record| writer.record(record).unwrap());
    writer
        .finish_signed(|hash| Signature {
            public_key: key.verifying_key().to_bytes(),
            bytes: key.sign(hash.as_bytes()).to_bytes(),
        })
        .unwrap();
    let (_, summary) = verify(&bytes[..], Options::default()).unwrap();
    assert!(summary.is_signed_by(|public| *public == key.verifying_key().to_bytes()));
    assert!(!summary.is_signed_by(|_| false), "a signature by somebody else");
    let text = String::from_utf8(bytes).unwrap();
    let at = text.rfind("\"value\":\"").unwrap() + 9;
    let other = if &text[at..=at] == "0" { "1" } else { "0" };
    let forged = format!("{}{other}{}", &text[..at], &text[at + 1..]);
    let (_, summary) = verify(forged.as_bytes(), Options::default()).unwrap();
    assert!(!summary.is_signed_by(|_| true), "another signature");
}

#[test]
fn a_link_without_an_end_is_refused_or_left_out() {
    let (header, records) = sample();
    let (bytes, whole) = write(&header, &records);
    let link = records
        .iter()
        .find_map(|record| match record {
            Record::Link(link) => Some(link.clone()),
            _ => None,
        })
        .unwrap();
    // The end gets another id, in the one link only.
    let text = String::from_utf8(bytes).unwrap();
    let source = format!("\"id\":\"{}\"", link.id);
    let at = text.find(&source).unwrap();
    let line_end = at + text[at..].find('\n').unwrap();
    let line = text[at..line_end].replace(
        &format!("\"source_id\":\"{}\"", link.source),
        "\"source_id\":\"00000000-0000-7000-8000-000000000000\"",
    );
    let line = match &link.resolution {
        Some(_) => line.replace(&format!("\"winner\":\"{}\"", link.source), "\"winner\":null"),
        None => line,
    };
    let dangling = with_hash(&format!("{}{line}{}", &text[..at], &text[line_end..]));
    match verify(dangling.as_bytes(), Options::default()) {
        Err(error @ ReadError::Dangling(_)) => {
            assert_eq!(error.code(), "dangling_edge");
            assert!(error.to_string().contains(&link.id.to_string()), "{error}");
        }
        other => panic!("{other:?}"),
    }
    let (_, kept, summary) = read(dangling.as_bytes(), Options { allow_dangling: true }).unwrap();
    assert_eq!((kept.len(), summary.dangling_dropped), (records.len() - 1, 1));
    assert_eq!(summary.counts.edges, whole.counts.edges - 1);
    let mut writer = Writer::new(Vec::new(), &header).unwrap();
    assert!(matches!(
        writer.record(&Record::Link(link)),
        Err(WriteError::Dangling(_))
    ));
}

/// Puts the right hash into a changed file.
fn with_hash(text: &str) -> String {
    use sha2::{Digest, Sha256};
    let at = text.rfind("\"content_hash\"").unwrap();
    let digest: String = Sha256::digest(&text.as_bytes()[..at])
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    format!(
        "{}\"content_hash\":\"sha256:{digest}\",\n\"signature\":null}}\n",
        &text[..at]
    )
}

#[test]
fn what_is_wrong_is_said_with_its_place_and_without_the_content() {
    let (header, records) = sample();
    let (bytes, _) = write(&header, &records);
    let text = String::from_utf8(bytes).unwrap();
    for (from, to, expected) in [
        (
            "\"format\":\"waggle-cluster-backup\"",
            "\"schema_version\":7",
            "this is no waggle-cluster-backup",
        ),
        ("\"format_version\":1", "\"format_version\":2", "version 2"),
        ("\"node_type\":\"", "\"node_type\":\"hunter2", "nodes[0]"),
        (
            "\"valid_from_stated\":",
            "\"valid_from_stated\":\"hunter2\",\"hunter2\":",
            "expected a boolean",
        ),
        ("\"text_version\":1", "\"text_version\":0.5", "expected u32"),
        (
            "\"evidence_count\":",
            "\"evidence\":1,\"evidence_count\":",
            "unknown field 'evidence'",
        ),
        (
            "\"sessions\":[",
            "\"transcripts\":[",
            "expected the member \"sessions\"",
        ),
        ("\"sessions\":[", "\"sessions\":[]],", "sessions"),
        ("\"tenant_id\":\"acme\"", "\"tenant_id\":[[[[", "tenant_id"),
    ] {
        assert!(text.contains(from), "{from}");
        let error = verify(text.replacen(from, to, 1).as_bytes(), Options::default()).unwrap_err();
        let message = error.to_string();
        assert!(message.contains(expected), "{from} -> {to}: {message}");
        assert!(!message.contains("hunter2"), "{message}");
    }
    let error = verify(
        text.replacen("\"format_version\":1", "\"format_version\":2", 1)
            .as_bytes(),
        Options::default(),
    );
    assert_eq!(error.unwrap_err().code(), "schema_version_incompatible");
    let changed = text.replacen("\"read_at\":\"a", "\"read_at\":\"b", 1);
    assert_eq!(
        verify(changed.as_bytes(), Options::default()).unwrap_err().code(),
        "hash_verification_failed"
    );
}

#[test]
fn records_twice_out_of_order_or_beyond_a_bound_are_refused() {
    let (header, records) = sample();
    let mut writer = Writer::new(Vec::new(), &header).unwrap();
    writer.record(&records[0]).unwrap();
    assert!(matches!(writer.record(&records[0]), Err(WriteError::OutOfOrder { .. })));
    let mut draw = Draw::new(1);
    let mut memory = draw.memory();
    memory.memory.label = "x".repeat(801);
    let error = writer.record(&Record::Memory(Box::new(memory.clone()))).unwrap_err();
    assert!(
        error.to_string().contains("label has 801 bytes; the limit is 800"),
        "{error}"
    );
    memory.memory.label = "x".to_owned();
    memory.memory.metadata = "{\"b\":1, \"a\":2}".to_owned();
    let error = writer.record(&Record::Memory(Box::new(memory))).unwrap_err();
    assert!(error.to_string().contains("canonical"), "{error}");
}

#[test]
fn deep_nesting_and_endless_values_stop_at_their_bound() {
    let deep = format!("{{\"format\":{}", "[".repeat(100_000));
    assert!(verify(deep.as_bytes(), Options::default()).is_err());
    let endless = std::io::Read::chain(&b"{\"format\":\""[..], std::io::repeat(b'x'));
    let error = verify(endless, Options::default()).unwrap_err();
    assert_eq!(error.code(), "payload_too_large", "{error}");
}
