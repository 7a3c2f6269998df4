//! Graphs for the tests of the pages (vault, bundle, HTML).

#![allow(dead_code, unreachable_pub, reason = "each test binary uses a part")]
#![allow(clippy::unwrap_used, reason = "a test")]

pub mod vault;

use waggle_formats::graph::Graph;
use waggle_memory::id::{EvidenceId, LinkId, MemoryId, PairId, Principal, TenantId, TurnId};
use waggle_memory::kind::{Confidence, Kind, Modality, Origin, Relationship, Role};
use waggle_memory::link::{Link, Resolution};
use waggle_memory::memory::{Alias, ChangeReason, Evidence, Memory, Tombstone, TurnSpan, Version};
use waggle_memory::record::{MemoryRecord, Record};
use waggle_memory::scope::Scope;
use waggle_memory::statement::{Fingerprint, Statement};
use waggle_memory::time::Millis;
use waggle_memory::transcript::Turn;

/// 2026-03-01.
pub const NOW: Millis = Millis(1_772_323_200_000);

pub fn tenant() -> TenantId {
    "acme".parse().unwrap()
}

fn bytes(kind: u8, number: u16) -> [u8; 16] {
    let [high, low] = number.to_be_bytes();
    [kind, 0, 0, 0, 0, 0, 0x70, 0, 0x80, 0, 0, 0, 0, 0, high, low]
}

pub fn memory_id(number: u16) -> MemoryId {
    MemoryId::from_bytes(bytes(1, number))
}

pub fn link_id(number: u16) -> LinkId {
    LinkId::from_bytes(bytes(2, number))
}

pub fn scope(project: &str) -> Scope {
    Scope {
        project: project.to_owned(),
        agent_id: "codex".to_owned(),
        session_id: "s-1".to_owned(),
    }
}

pub fn author() -> Principal {
    Principal("key:k1".to_owned())
}

/// A memory of one version with one piece of evidence from a turn.
pub fn memory(number: u16, label: &str, content: &str) -> MemoryRecord {
    MemoryRecord {
        memory: Memory {
            id: memory_id(number),
            namespace: "team/payments".to_owned(),
            scope: scope("Payments"),
            label: label.to_owned(),
            content: content.to_owned(),
            kind: Kind::Fact,
            tags: vec!["observed".to_owned(), "storage".to_owned()],
            aliases: Vec::new(),
            source_prompt: String::new(),
            metadata: String::new(),
            evidence_count: 1,
            confidence: Confidence::Inferred,
            valid_from: NOW.plus(-10 * Millis::DAY),
            valid_from_stated: false,
            valid_to: None,
            recorded_at: NOW.plus(-10 * Millis::DAY),
            updated_at: NOW.plus(-10 * Millis::DAY),
            version: 1,
            text_version: 1,
            author: author(),
            due: None,
            superseded_by: None,
            statement: Statement {
                exact: Fingerprint(u64::from(number)),
                canonical: None,
                label: Fingerprint(u64::from(number)),
                acronym: None,
                general: Vec::new(),
                modality: Modality::Asserted,
                claims: Vec::new(),
                ends: Vec::new(),
            },
            rules_version: 1,
            link_count: 0,
            open_conflict_count: 0,
        },
        evidence: vec![(1, evidence(number, content))],
        versions: Vec::new(),
    }
}

pub fn evidence(number: u16, text: &str) -> Evidence {
    Evidence {
        id: EvidenceId::from_bytes(bytes(3, number)),
        turn: Some(TurnSpan {
            turn: TurnId::from_bytes(bytes(4, number)),
            turn_index: u32::from(number),
            role: Role::User,
            start: 0,
            end: 7,
        }),
        scope: scope("Payments"),
        text: text.chars().take(500).collect(),
        observed_at: NOW.plus(-10 * Millis::DAY),
        author: author(),
    }
}

pub fn alias(text: &str) -> Alias {
    Alias {
        text: text.to_owned(),
        author: author(),
        added_at: NOW,
        exact: None,
    }
}

pub fn link(number: u16, source: u16, target: u16, relationship: Relationship) -> Link {
    Link {
        id: link_id(number),
        source: memory_id(source),
        target: memory_id(target),
        relationship,
        weight_thousandths: 1_000,
        confidence: Confidence::Inferred,
        origin: Origin::Observe,
        reason: "the text says so".to_owned(),
        shared_terms: Vec::new(),
        author: author(),
        created_at: NOW.plus(-9 * Millis::DAY),
        version: 1,
        resolution: relationship.is_conflict().then(Resolution::open),
    }
}

pub fn turn(number: u16, text: &str) -> Turn {
    Turn {
        id: TurnId::from_bytes(bytes(4, number)),
        pair: PairId::from_bytes(bytes(5, number)),
        scope: scope("Payments"),
        role: Role::User,
        turn_index: u32::from(number),
        text: text.to_owned(),
        observed_at: NOW.plus(-10 * Millis::DAY),
        recorded_at: NOW.plus(-10 * Millis::DAY),
        author: author(),
        memories: vec![memory_id(number)],
    }
}

pub fn tombstone(number: u16) -> Record {
    let tombstone = Tombstone {
        deleted_at: NOW,
        author: author(),
        receipt: "r".to_owned(),
        deleted_links: 0,
        turns_kept: 0,
        of: None,
    };
    Record::Tombstone(memory_id(number), tombstone)
}

/// The memory after a change: the old state becomes a version.
pub fn changed(record: &MemoryRecord, change: impl FnOnce(&mut Memory)) -> MemoryRecord {
    let mut next = record.clone();
    let old = &record.memory;
    next.versions.push(Version {
        note: String::new(),
        version: old.version,
        recorded_at: old.updated_at,
        replaced_at: old.updated_at.plus(Millis::DAY),
        replaced_by: author(),
        reason: ChangeReason::Update,
        label: old.label.clone(),
        content: old.content.clone(),
        kind: old.kind,
        tags: old.tags.clone(),
        valid_from: old.valid_from,
        valid_to: old.valid_to,
        superseded_by: None,
    });
    next.memory.version += 1;
    next.memory.updated_at = old.updated_at.plus(Millis::DAY);
    change(&mut next.memory);
    next
}

pub fn graph(memories: &[MemoryRecord], links: &[Link]) -> Graph {
    let memories = memories.iter().map(|m| Record::Memory(Box::new(m.clone())));
    let links = links.iter().map(|l| Record::Link(Box::new(l.clone())));
    Graph::collect(memories.chain(links)).unwrap()
}
