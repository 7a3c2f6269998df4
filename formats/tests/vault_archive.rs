//! A vault as one file: the same twice, and every hostile one refused.

#![allow(clippy::unwrap_used, reason = "a test")]

mod pages_support;

use std::io::{Cursor, Write};

use pages_support::vault::*;
use pages_support::*;
use waggle_formats::graph::Graph;
use waggle_formats::vault::{self, ArchiveLimits, BASE_PATH, Importer};

fn zip_of(entries: &[(&str, &[u8])]) -> Vec<u8> {
    let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in entries {
        zip.start_file(*name, zip::write::SimpleFileOptions::default()).unwrap();
        zip.write_all(bytes).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

#[test]
fn a_zip_is_the_same_twice_and_comes_back() {
    let (_, graph) = three();
    let vault = export(&graph);
    let bytes = vault::write_zip(&vault, Cursor::new(Vec::new())).unwrap().into_inner();
    let again = vault::write_zip(&export(&graph), Cursor::new(Vec::new()))
        .unwrap()
        .into_inner();
    assert_eq!(bytes, again);
    let plan = read_zip(bytes, &ArchiveLimits::UPLOAD, &graph).unwrap();
    assert_eq!((plan.changes, plan.unchanged), (Vec::new(), 3));
}

#[test]
fn hostile_zips_are_refused() {
    let refused = |bytes: Vec<u8>, limits: &ArchiveLimits| {
        read_zip(bytes, limits, &Graph::default())
            .expect_err("refused")
            .to_string()
    };
    let upload = ArchiveLimits::UPLOAD;
    for path in [
        "../a.md",
        "/a.md",
        "a/../../b.md",
        "a//b.md",
        "C:\\a.md",
        "a\\b.md",
        "a/./b.md",
        "a\u{1}.md",
    ] {
        assert!(refused(zip_of(&[(path, b"x")]), &upload).contains("refused"), "{path}");
    }
    assert!(refused(zip_of(&[("a.exe", b"x")]), &upload).contains("only '.md'"));
    assert!(refused(zip_of(&[("a.md", b"\xff\xfe")]), &upload).contains("UTF-8"));
    assert!(refused(zip_of(&[("a.md", &vec![b'x'; (1 << 20) + 1])]), &upload).contains("a.md"));
    assert!(refused(zip_of(&[(BASE_PATH, b"{}")]), &upload).contains("vault.json"));
    assert!(refused(b"no zip".to_vec(), &upload).contains("ZIP"));

    // The same name twice: two names of equal length, one overwritten in the bytes.
    let bytes = zip_of(&[("a.md", b"x"), ("b.md", b"y")]);
    let mut doubled = bytes;
    let mut at = 0;
    while let Some(found) = doubled[at..].windows(4).position(|w| w == b"b.md") {
        doubled[at + found] = b'a';
        at += found + 4;
    }
    let message = refused(doubled, &upload);
    assert!(message.contains("twice"), "{message}");

    let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
    zip.add_symlink("a.md", "/etc/passwd", zip::write::SimpleFileOptions::default())
        .unwrap();
    assert!(refused(zip.finish().unwrap().into_inner(), &upload).contains("link"));

    let few = ArchiveLimits { files_max: 2, ..upload };
    let many: Vec<String> = (0..9).map(|n| format!("{n}.md")).collect();
    let entries: Vec<(&str, &[u8])> = many.iter().map(|n| (n.as_str(), &b"x"[..])).collect();
    assert!(refused(zip_of(&entries), &few).contains("more than 2 files"));
    let small = ArchiveLimits {
        unpacked_bytes_max: 10,
        ..upload
    };
    assert!(refused(zip_of(&[("a.md", b"xxxxxxxxxxx")]), &small).contains("unpacks to more than 10 bytes"));
    let tiny = ArchiveLimits {
        archive_bytes_max: 10,
        ..upload
    };
    assert!(refused(zip_of(&[("a.md", b"x")]), &tiny).contains("more than 10 bytes"));
    let blown: Vec<String> = (0..40).map(|n| format!("{n}.md")).collect();
    let million = vec![b'x'; 1 << 20];
    let entries: Vec<(&str, &[u8])> = blown.iter().map(|n| (n.as_str(), million.as_slice())).collect();
    let message = refused(zip_of(&entries), &upload);
    assert!(message.contains("200 times"), "{message}");
    // What editors leave beside notes is no reason to refuse.
    let plan = read_zip(
        zip_of(&[(".obsidian/app.json", b"{}"), ("a.md", b"x")]),
        &upload,
        &Graph::default(),
    )
    .unwrap();
    assert_eq!(plan.changes.len(), 1);
}

#[test]
fn json_must_be_paths_and_texts_once_each() {
    let (tenant, graph) = (tenant(), Graph::default());
    let error = |json: &str| {
        let mut importer = Importer::new(&tenant, &graph);
        vault::read_json(json, &ArchiveLimits::UPLOAD, &mut importer)
            .expect_err(json)
            .to_string()
    };
    assert!(error("{\"a.md\":\"x\",\"a.md\":\"y\"}").contains("twice"));
    assert!(error("{\"../a.md\":\"x\"}").contains("refused"));
    assert!(error("{\"a.md\":1}").contains("JSON object"));
    assert!(error("[]").contains("JSON object"));
    assert!(error("{} {}").contains("JSON object"));
}
