//! Containers of ours and of other programs.

#![allow(dead_code, reason = "each test binary uses a part")]
#![allow(unreachable_pub, reason = "a module of tests")]

use std::io::{Cursor, Write};

use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use waggle_formats::abhi::{Importer, Info, Reader, Report, Summary, Writer};
use waggle_formats::error::ReadError;
use waggle_memory::id::Principal;
use waggle_memory::record::{MemoryRecord, Record};
use waggle_memory::time::Millis;
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use crate::generate::{Draw, canonical};

pub fn info() -> Info {
    Info {
        tenant_id: "acme".to_owned(),
        embedding_model_id: "minilm".to_owned(),
        embedding_dim: 384,
        include_low_confidence_edges: true,
        ..Info::default()
    }
}

pub fn importer() -> Importer {
    Importer {
        author: Principal("key:importer".to_owned()),
        at: Millis(1_700_000_000_000),
    }
}

pub fn write(records: &[Record], info: Info) -> (Vec<u8>, Summary) {
    let mut out = Cursor::new(Vec::new());
    let mut writer = Writer::new(&mut out, info, None).unwrap();
    records.iter().for_each(|record| writer.record(record).unwrap());
    let summary = writer.finish().unwrap();
    (out.into_inner(), summary)
}

pub fn read(bytes: &[u8], allow_dangling: bool) -> Result<(Vec<Record>, Report), ReadError> {
    let mut reader = Reader::open(Cursor::new(bytes), None)?;
    let mut records = Vec::new();
    let report = reader.records(&importer(), allow_dangling, |record| {
        records.push(record);
        Ok::<(), ReadError>(())
    })?;
    Ok((records, report))
}

/// A ZIP as any other program would make it.
pub fn zip(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in members {
        zip.start_file(*name, SimpleFileOptions::default()).unwrap();
        zip.write_all(bytes).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

pub fn sha(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

pub const LINES: [&str; 4] = [
    "transcripts.jsonl",
    "nodes.jsonl",
    "edges.jsonl",
    "context_windows.jsonl",
];

/// A foreign file with the given lines, its hashes made here and not by the crate.
pub fn foreign(lines: [&[Value]; 4], change: impl FnOnce(&mut Value)) -> Vec<u8> {
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
    let mut all: Vec<(&str, &[u8])> = LINES
        .iter()
        .copied()
        .zip(texts.iter().map(|text| text.as_bytes()))
        .collect();
    all.push(("manifest.json", manifest.as_bytes()));
    zip(&all)
}

pub fn node(id: &str, label: &str) -> Value {
    json!({"id": id, "label": label, "content": format!("{label} is used."), "node_type": "fact"})
}

pub const A: &str = "0190c0de-0000-7000-8000-00000000000a";
pub const B: &str = "0190c0de-0000-7000-8000-00000000000b";

pub fn edge(source: &str, target: &str, relationship: &str) -> Value {
    json!({"id": format!("{source}>{target}>{relationship}"), "source_id": source, "target_id": target,
        "relationship": relationship})
}

pub fn memories(records: &[Record]) -> Vec<&MemoryRecord> {
    records
        .iter()
        .filter_map(|record| match record {
            Record::Memory(memory) => Some(&**memory),
            _ => None,
        })
        .collect()
}

pub fn sample() -> Vec<Record> {
    (0..)
        .map(|seed| Draw::new(seed).graph())
        .find(|records| {
            let memories = memories(records).len();
            let links = records
                .iter()
                .filter(|record| matches!(record, Record::Link(_)))
                .count();
            memories > 3 && links > 2
        })
        .unwrap()
}
