//! Secrets are found in every free text of a record, never shown, and gone after redaction.

#![allow(clippy::unwrap_used, reason = "a test")]

mod generate;

use generate::Draw;
use waggle_formats::check::check;
use waggle_formats::secrets::{redact, scan};
use waggle_memory::kind::Relationship;
use waggle_memory::link::Resolution;
use waggle_memory::memory::Memory;
use waggle_memory::record::{MemoryRecord, Record};

const KEY: &str = "AKIAABCDEFGHIJKLMNOP";

fn memory() -> MemoryRecord {
    (0..)
        .map(|seed| Draw::new(seed).memory())
        .find(|m| {
            let s = &m.memory.statement;
            let missing = m.memory.aliases.is_empty() || m.evidence.is_empty() || m.versions.is_empty();
            let unread = m.memory.tags.is_empty() || s.claims.is_empty() || s.ends.is_empty();
            !missing && !unread
        })
        .unwrap()
}

fn check_field(field: &str, record: Record) {
    let mut record = record;
    let findings = scan(&record);
    assert_eq!(findings.len(), 1, "{field}: {findings:?}");
    assert_eq!(
        (findings[0].field.as_str(), findings[0].kind.word()),
        (field, "api_key")
    );
    assert!(!findings[0].to_string().contains(KEY) && !format!("{findings:?}").contains(KEY));
    assert_eq!(redact(&mut record), 1, "{field}");
    let shown = format!("{record:?}");
    // What rules read in the text is read again, without the mark if the text has none.
    let marked = field.starts_with("statement") || shown.contains("[secret:api_key]");
    assert!(!shown.contains(KEY) && marked, "{field}: {shown}");
    assert_eq!(check(&record), Ok(()), "{field}");
    assert_eq!((scan(&record), redact(&mut record)), (vec![], 0));
}

#[test]
fn every_text_of_a_memory_is_looked_at() {
    type Set = fn(&mut MemoryRecord, String);
    let fields: [(&str, Set); 12] = [
        ("label", |m, text| m.memory.label = text),
        ("content", |m, text| m.memory.content = text),
        ("tags[0]", |m, text| m.memory.tags[0] = text),
        ("aliases[0].text", |m, text| m.memory.aliases[0].text = text),
        ("source_prompt", |m, text| m.memory.source_prompt = text),
        ("metadata", |m, text| {
            m.memory.metadata = format!("{{\"a\":[{{\"b\":\"{text}\"}}]}}")
        }),
        ("statement.claims[0].slot_text", |m, text| {
            m.memory.statement.claims[0].slot_text = text
        }),
        ("statement.claims[0].value_text", |m, text| {
            m.memory.statement.claims[0].value_text = text
        }),
        ("statement.ends[0].value_text", |m, text| {
            m.memory.statement.ends[0].value_text = text
        }),
        ("evidence_records[0].source_text", |m, text| m.evidence[0].1.text = text),
        ("versions[0].label", |m, text| m.versions[0].label = text),
        ("versions[0].content", |m, text| m.versions[0].content = text),
    ];
    for (field, set) in fields {
        let mut record = memory();
        set(&mut record, format!("deploy with {KEY} please"));
        check_field(field, Record::Memory(Box::new(record)));
    }
}

#[test]
fn turns_sessions_and_links_are_looked_at() {
    let mut draw = Draw::new(5);
    let mut turn = draw.turn();
    turn.text = format!("the key is {KEY}");
    check_field("text", Record::Turn(Box::new(turn), None));
    let mut session = draw.session();
    session.title = KEY.to_owned();
    check_field("title", Record::Session(session));
    let (a, b) = (draw.memory().memory.id, draw.memory().memory.id);
    let mut link = draw.link(a, b);
    link.relationship = Relationship::Contradicts;
    link.resolution = Some(Resolution::open());
    link.reason = format!("shares {KEY}");
    check_field("reason", Record::Link(Box::new(link.clone())));
    link.reason = String::new();
    link.resolution.as_mut().unwrap().note = KEY.to_owned();
    check_field("resolution.note", Record::Link(Box::new(link)));
}

#[test]
fn metadata_is_read_by_its_keys_too() {
    let mut record = memory();
    record.memory.metadata = "{\"db\":{\"password\":\"correct horse\"},\"policy\":\"password policy\"}".to_owned();
    let mut record = Record::Memory(Box::new(record));
    assert_eq!(scan(&record).len(), 1);
    assert_eq!(redact(&mut record), 1);
    assert_eq!((scan(&record), redact(&mut record)), (vec![], 0));
    let Record::Memory(memory) = record else { panic!() };
    assert_eq!(
        memory.memory.metadata,
        "{\"db\":{\"password\":\"[secret:password]\"},\"policy\":\"password policy\"}"
    );
}

#[test]
fn fingerprints_of_a_secret_are_made_again_without_it() {
    let mut record = memory();
    record.memory.content = format!("the key is {KEY}");
    record.memory.aliases[0].text = format!("use {KEY}");
    let before: Memory = record.memory.clone();
    let mut record = Record::Memory(Box::new(record));
    assert_eq!(redact(&mut record), 2);
    let Record::Memory(after) = record else { panic!() };
    assert_ne!(after.memory.statement.exact, before.statement.exact);
    assert_eq!(after.memory.aliases[0].exact, None);
    assert_eq!(after.memory.content, "the key is [secret:api_key]");
}

#[test]
fn a_label_that_grows_is_cut_to_its_bound() {
    let mut record = memory();
    record.memory.label = format!("{} pwd=abcd", "é".repeat(394));
    let mut record = Record::Memory(Box::new(record));
    assert_eq!(redact(&mut record), 1);
    assert_eq!(check(&record), Ok(()));
}

#[test]
fn what_is_no_secret_stays() {
    let mut draw = Draw::new(9);
    for _ in 0..50 {
        for record in draw.graph() {
            let mut redacted = record.clone();
            assert_eq!(redact(&mut redacted), 0);
            assert_eq!(redacted, record);
        }
    }
}
