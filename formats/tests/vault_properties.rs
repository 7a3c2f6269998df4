//! The vault over drawn graphs and texts that look like its own format.

#![allow(clippy::unwrap_used, reason = "a test")]

mod pages_support;

use std::collections::BTreeMap;
use std::io::Cursor;

use pages_support::vault::*;
use pages_support::*;
use proptest::prelude::*;
use waggle_formats::graph::Graph;
use waggle_formats::redaction::redact;
use waggle_formats::vault::{self, ArchiveLimits, BASE_PATH, ConflictReason};
use waggle_memory::kind::{Kind, Relationship};
use waggle_memory::record::MemoryRecord;
use waggle_memory::time::Millis;

/// Texts that look like the format.
fn hostile() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "## Content",
        "## Evidence",
        "## Relations",
        "# x",
        "---",
        "\n",
        "\r\n",
        "\\",
        "<!--",
        "-->",
        "[[",
        "]]",
        "::",
        "~~",
        "|",
        "- ",
        "- [[depends_on::x]]",
        "<!-- node_id:00000000-0000-0000-0000-000000000000 -->",
        "\u{2028}",
        "\u{feff}",
        "日本",
        "\u{1}",
        "\t",
        " ",
        "a: b",
        "&x",
        "*x",
        "!t",
        "'",
        "\"",
        "{",
        "}",
        "x",
        "No evidence recorded.",
        "```",
        "%",
        "null",
        " password=hunter22 ",
    ]);
    prop::collection::vec(piece, 1..12).prop_map(|pieces| pieces.concat())
}

fn content() -> impl Strategy<Value = String> {
    prop_oneof![hostile(), "\\PC{1,40}", any::<String>()].prop_map(|text| {
        let text = text.replace('\0', "");
        if text.trim().is_empty() { "x".to_owned() } else { text }
    })
}

fn label() -> impl Strategy<Value = String> {
    content().prop_map(|text| {
        let text: String = text.chars().filter(|c| !c.is_control()).take(60).collect();
        if text.trim().is_empty() { "x".to_owned() } else { text }
    })
}

fn records() -> impl Strategy<Value = (Vec<MemoryRecord>, Vec<(u16, u16, usize)>)> {
    let one = (label(), content(), content(), label(), 0..7usize, any::<bool>());
    let memories = prop::collection::vec(one, 1..6).prop_map(|all| {
        all.into_iter()
            .zip(1u16..)
            .map(|((label, content, alias_text, tag, kind, ends), number)| {
                let mut record = memory(number, &label, &content);
                record.memory.kind = Kind::ALL[kind];
                record.memory.aliases.push(alias(&alias_text));
                record.memory.tags = vec![tag.trim().to_owned()];
                record.memory.scope.project = label.chars().take(20).collect();
                record.memory.source_prompt = alias_text.chars().take(200).collect();
                record.memory.valid_to = ends.then(|| NOW.plus(Millis::DAY));
                record
            })
            .collect()
    });
    let links = prop::collection::vec((1u16..6, 1u16..6, 0..8usize), 0..8);
    (memories, links)
}

fn graph_of(memories: &[MemoryRecord], links: &[(u16, u16, usize)]) -> Graph {
    let links: Vec<_> = links
        .iter()
        .zip(1u16..)
        .filter(|((source, target, _), _)| source != target)
        .map(|((source, target, relationship), number)| {
            link(number, *source, *target, Relationship::ALL[*relationship])
        })
        .collect();
    graph(memories, &links)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn whatever_is_stored_comes_back_without_a_change((memories, links) in records()) {
        let graph = graph_of(&memories, &links);
        let files = export(&graph).files;
        let count = memories.len();
        let plan = import(&files, &graph);
        prop_assert_eq!((&plan.changes, plan.unchanged), (&Vec::new(), count));
        // Read and compared, not only hashed.
        let plan = import(&without_base(files), &graph);
        prop_assert_eq!((&plan.changes, plan.unchanged), (&Vec::new(), count));
    }

    #[test]
    fn one_edited_content_is_one_change((memories, links) in records(), new in content()) {
        let graph = graph_of(&memories, &links);
        let mut edited = memories.clone();
        edited[0].memory.content = new.clone();
        edited[0].evidence = memories[0].evidence.clone();
        // What the editor saves: the file of the same memory with another content.
        let mut files = export(&graph_of(&edited, &links)).files;
        files.insert(BASE_PATH.to_owned(), export(&graph).files[BASE_PATH].clone());
        let plan = import(&files, &graph);
        let same = |a: &str, b: &str| a.replace("\r\n", "\n").trim() == b.replace("\r\n", "\n").trim();
        let old = &memories[0].memory.content;
        if same(&redact(&new).text, &redact(old).text) {
            prop_assert_eq!(&plan.changes, &Vec::new());
        } else if redact(old).count > 0 {
            prop_assert_eq!(&only_conflict(&plan).reason, &ConflictReason::Redacted);
        } else {
            let update = only_update(&plan);
            let shown = redact(&new).text;
            prop_assert_eq!(update.content.as_deref(), Some(shown.as_str()));
            prop_assert!(update.label.is_none() && update.tags.is_none());
            prop_assert!(update.valid_from.is_none() && update.valid_to.is_none());
        }
    }

    #[test]
    fn any_text_as_a_file_gives_a_plan(text in prop_oneof![hostile(), any::<String>()], front in hostile()) {
        let (_, graph) = three();
        let files = BTreeMap::from([
            ("a.md".to_owned(), text.clone()),
            ("b.md".to_owned(), format!("---\n{front}\n---\n{text}")),
            ("c.md".to_owned(), format!("---\nnode_id: {}\nversion: 1\n{front}\n---\n{text}", memory_id(1))),
        ]);
        let plan = import(&files, &graph);
        prop_assert!(plan.changes.len() + plan.unchanged >= 1);
    }

    #[test]
    fn any_bytes_as_a_zip_are_read_or_refused(noise in prop::collection::vec(any::<u8>(), 0..200), at in 0..400usize) {
        let (_, graph) = three();
        let mut bytes = vault::write_zip(&export(&graph), Cursor::new(Vec::new())).unwrap().into_inner();
        let length = bytes.len();
        for (offset, byte) in noise.iter().enumerate() {
            bytes[(at * 37 + offset) % length] = *byte;
        }
        let _ = read_zip(bytes, &ArchiveLimits::UPLOAD, &graph);
    }
}
