//! A few records of a graph.

use waggle_memory::id::{EvidenceId, LinkId, MemoryId, PairId, Principal, TurnId};
use waggle_memory::kind::{Confidence, Kind, Modality, Origin, Relationship, Role};
use waggle_memory::link::Link;
use waggle_memory::memory::{Evidence, Memory, TurnSpan};
use waggle_memory::record::{MemoryRecord, Record};
use waggle_memory::scope::Scope;
use waggle_memory::statement::{Fingerprint, Statement};
use waggle_memory::time::Millis;
use waggle_memory::transcript::Turn;

pub fn id(number: u8) -> [u8; 16] {
    let mut bytes = [7; 16];
    bytes[15] = number;
    bytes
}

pub fn scope() -> Scope {
    Scope {
        project: "shop".to_owned(),
        agent_id: "claude".to_owned(),
        session_id: "s1".to_owned(),
    }
}

pub fn memory(number: u8, content: &str) -> Record {
    let at = Millis(1_700_000_000_000 + i64::from(number));
    Record::Memory(Box::new(MemoryRecord {
        memory: Memory {
            id: MemoryId::from_bytes(id(number)),
            namespace: "default".to_owned(),
            scope: scope(),
            label: format!("label {number}"),
            content: content.to_owned(),
            kind: Kind::Decision,
            tags: vec!["observed".to_owned()],
            aliases: Vec::new(),
            source_prompt: String::new(),
            metadata: String::new(),
            evidence_count: 1,
            confidence: Confidence::Inferred,
            valid_from: at,
            valid_from_stated: false,
            valid_to: None,
            recorded_at: at,
            updated_at: at,
            version: 1,
            text_version: 1,
            author: Principal("key:author".to_owned()),
            due: None,
            superseded_by: None,
            statement: Statement {
                exact: Fingerprint(u64::from(number)),
                canonical: None,
                label: Fingerprint(900),
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
        evidence: vec![(
            1,
            Evidence {
                id: EvidenceId::from_bytes(id(100 + number)),
                turn: Some(TurnSpan {
                    turn: TurnId::from_bytes(id(90)),
                    turn_index: 0,
                    role: Role::User,
                    start: 0,
                    end: 3,
                }),
                scope: scope(),
                text: "we".to_owned(),
                observed_at: at,
                author: Principal("key:author".to_owned()),
            },
        )],
        versions: Vec::new(),
    }))
}

pub fn link(number: u8, source: u8, target: u8) -> Record {
    Record::Link(Box::new(Link {
        id: LinkId::from_bytes(id(number)),
        source: MemoryId::from_bytes(id(source)),
        target: MemoryId::from_bytes(id(target)),
        relationship: Relationship::DependsOn,
        weight_thousandths: 800,
        confidence: Confidence::Weak,
        origin: Origin::Observe,
        reason: "said together".to_owned(),
        shared_terms: Vec::new(),
        author: Principal("key:author".to_owned()),
        created_at: Millis(1_700_000_000_000),
        version: 1,
        resolution: None,
    }))
}

pub fn turn() -> Record {
    let turn = Turn {
        id: TurnId::from_bytes(id(90)),
        pair: PairId::from_bytes(id(91)),
        scope: scope(),
        role: Role::User,
        turn_index: 0,
        text: "we decided it".to_owned(),
        observed_at: Millis(1_700_000_000_000),
        recorded_at: Millis(1_700_000_000_001),
        author: Principal("key:author".to_owned()),
        memories: vec![MemoryId::from_bytes(id(1)), MemoryId::from_bytes(id(2))],
    };
    Record::Turn(Box::new(turn), None)
}

/// So many memories in a row of links, with the turn that they rest on.
pub fn chain(memories: u8) -> Vec<Record> {
    let mut records = vec![turn()];
    records.extend((1..=memories).map(|number| memory(number, &format!("content {number}"))));
    records.extend((2..=memories).map(|number| link(200 + number, number, number - 1)));
    records
}
