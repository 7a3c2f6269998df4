//! Whole graphs as records, from a seed: every field is set somewhere, every optional part comes and goes.

#![allow(dead_code, reason = "each test binary uses a part")]
#![allow(unreachable_pub, reason = "a module of tests")]

use std::collections::BTreeMap;

use uuid::Uuid;
use waggle_memory::handoff::Message;
use waggle_memory::id::{EvidenceId, LinkId, MemoryId, MessageId, PairId, Principal, TurnId};
use waggle_memory::kind::{Confidence, Kind, Modality, Origin, Relationship, Role};
use waggle_memory::link::{Link, Resolution};
use waggle_memory::memory::{Alias, ChangeReason, Erased, Evidence, Memory, Tombstone, TurnSpan, Version};
use waggle_memory::record::{MemoryRecord, Record, Redirect};
use waggle_memory::scope::{Scope, name_key};
use waggle_memory::statement::{Claim, Fingerprint, StatedEnd, Statement};
use waggle_memory::time::Millis;
use waggle_memory::transcript::{Session, Turn};

/// Draws values: it spreads, and the same seed gives the same values.
pub struct Draw {
    state: u64,
}

const TEXTS: [&str; 9] = [
    "billing uses \"postgres\" \\ 16",
    "Zoë moved to the Basel office",
    "日本語のメモ\nsecond line\ttab",
    "a \u{1}\u{1f} control, \u{7f}, \u{2028} and \u{10ffff}",
    "<b>&amp; ]]> </script>",
    "trailing blanks  ",
    "null",
    "{\"not\":[\"json\"",
    "x",
];

impl Draw {
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    pub fn number(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.number() % u64::try_from(end.max(1)).unwrap()).unwrap()
    }

    pub fn pick<T: Clone>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())].clone()
    }

    pub fn flag(&mut self) -> bool {
        self.number().is_multiple_of(2)
    }

    pub fn maybe<T>(&mut self, make: impl FnOnce(&mut Self) -> T) -> Option<T> {
        if self.flag() { Some(make(self)) } else { None }
    }

    pub fn list<T>(&mut self, most: usize, make: impl Fn(&mut Self) -> T) -> Vec<T> {
        (0..self.below(most + 1)).map(|_| make(self)).collect()
    }

    pub fn uuid(&mut self) -> Uuid {
        Uuid::from_u64_pair(self.number(), self.number())
    }

    pub fn u32(&mut self) -> u32 {
        let number = u32::try_from(self.number() >> 32).unwrap();
        self.pick(&[0, 1, number % 1000, number, u32::MAX])
    }

    pub fn text(&mut self) -> String {
        let number = self.number() % 1000;
        format!("{} {number}", self.pick(&TEXTS))
    }

    pub fn short(&mut self) -> String {
        let text = self.text();
        self.pick(&[String::new(), text])
    }

    pub fn time(&mut self) -> Millis {
        let number = i64::try_from(self.number() % 4_000_000_000_000).unwrap();
        Millis(self.pick(&[0, -1, number, -number, number, i64::MIN, i64::MAX]))
    }

    pub fn fingerprint(&mut self) -> Fingerprint {
        let number = self.number();
        Fingerprint(self.pick(&[0, number, u64::MAX]))
    }

    pub fn principal(&mut self) -> Principal {
        Principal(format!("key:{}", self.number()))
    }

    pub fn scope(&mut self) -> Scope {
        Scope {
            project: self.short(),
            agent_id: self.short(),
            session_id: self.short(),
        }
    }

    fn validity(&mut self) -> (Millis, Option<Millis>) {
        let (a, b) = (self.time(), self.time());
        if a == b {
            return (a, None);
        }
        (a.min(b), self.maybe(|_| a.max(b)))
    }

    pub fn metadata(&mut self) -> String {
        let values = [
            String::new(),
            "{}".to_owned(),
            format!("{{\"a\":{{\"b\":[1,{{\"c\":null}}]}},\"z\":\"{}\"}}", self.number()),
            "{\"claimed_author\":\"key:old\",\"n\":-0.1,\"big\":1e300,\"é\":true}".to_owned(),
            format!("{{\"score\":0.{}7}}", self.number()),
        ];
        let text = self.pick(&values);
        if text.is_empty() { text } else { canonical(&text) }
    }

    pub fn statement(&mut self) -> Statement {
        Statement {
            exact: self.fingerprint(),
            canonical: self.maybe(Self::fingerprint),
            label: self.fingerprint(),
            acronym: self.maybe(Self::fingerprint),
            general: self.list(3, Self::fingerprint),
            modality: self.pick(Modality::ALL),
            claims: self.list(2, |draw| Claim {
                slot: draw.fingerprint(),
                value: draw.fingerprint(),
                negated: draw.flag(),
                change: draw.flag(),
                slot_text: draw.short(),
                value_text: draw.short(),
            }),
            ends: self.list(2, |draw| StatedEnd {
                slot: draw.fingerprint(),
                value: draw.fingerprint(),
                at: draw.maybe(Self::time),
                value_text: draw.short(),
            }),
        }
    }

    fn evidence(&mut self) -> Evidence {
        let (a, b) = (self.u32(), self.u32());
        Evidence {
            id: EvidenceId::from_uuid(self.uuid()),
            turn: self.maybe(|draw| TurnSpan {
                turn: TurnId::from_uuid(draw.uuid()),
                turn_index: draw.u32(),
                role: draw.pick(Role::ALL),
                start: a.min(b),
                end: a.max(b),
            }),
            scope: self.scope(),
            text: self.short(),
            observed_at: self.time(),
            author: self.principal(),
        }
    }

    fn version(&mut self, number: u32) -> Version {
        let (valid_from, valid_to) = self.validity();
        Version {
            note: self.short(),
            version: number,
            recorded_at: self.time(),
            replaced_at: self.time(),
            replaced_by: self.principal(),
            reason: ChangeReason::from_number(u8::try_from(self.below(5) + 1).unwrap()).unwrap(),
            label: self.text(),
            content: self.text(),
            kind: self.pick(Kind::ALL),
            tags: self.list(3, Self::text),
            valid_from,
            valid_to,
            superseded_by: self.maybe(|draw| MemoryId::from_uuid(draw.uuid())),
        }
    }

    pub fn memory(&mut self) -> MemoryRecord {
        let versions: Vec<Version> = (1..=u32::try_from(self.below(4)).unwrap())
            .map(|n| self.version(n))
            .collect();
        let version = u32::try_from(versions.len()).unwrap() + 1;
        let (valid_from, valid_to) = self.validity();
        let first = self.u32() / 2;
        let count = u32::try_from(self.below(4)).unwrap();
        MemoryRecord {
            memory: Memory {
                id: MemoryId::from_uuid(self.uuid()),
                namespace: self.short(),
                scope: self.scope(),
                label: self.text(),
                content: self.text(),
                kind: self.pick(Kind::ALL),
                tags: self.list(4, Self::text),
                aliases: self.list(3, |draw| Alias {
                    text: draw.text(),
                    author: draw.principal(),
                    added_at: draw.time(),
                    exact: draw.maybe(Self::fingerprint),
                }),
                source_prompt: self.short(),
                metadata: self.metadata(),
                evidence_count: self.u32(),
                confidence: self.pick(Confidence::ALL),
                valid_from,
                valid_from_stated: self.flag(),
                valid_to,
                recorded_at: self.time(),
                updated_at: self.time(),
                version,
                text_version: self.pick(&[1, version]),
                author: self.principal(),
                due: self.maybe(Self::time),
                superseded_by: self.maybe(|draw| MemoryId::from_uuid(draw.uuid())),
                statement: self.statement(),
                rules_version: self.u32(),
                link_count: 0,
                open_conflict_count: 0,
            },
            evidence: (0..count).map(|n| (first + n, self.evidence())).collect(),
            versions,
        }
    }

    pub fn turn(&mut self) -> Turn {
        Turn {
            id: TurnId::from_uuid(self.uuid()),
            pair: PairId::from_uuid(self.uuid()),
            scope: self.scope(),
            role: self.pick(Role::ALL),
            turn_index: self.u32(),
            text: self.text(),
            observed_at: self.time(),
            recorded_at: self.time(),
            author: self.principal(),
            memories: self.list(3, |draw| MemoryId::from_uuid(draw.uuid())),
        }
    }

    pub fn message(&mut self) -> Message {
        Message {
            identity: MessageId::from_uuid(self.uuid()),
            content: self.fingerprint(),
            extracted: self.flag(),
        }
    }

    pub fn session(&mut self) -> Session {
        Session {
            project: self.short(),
            session_id: self.short(),
            agents: self.list(3, Self::text),
            title: self.short(),
            first_used_at: self.time(),
            last_used_at: self.time(),
            turn_count: self.u32(),
            memory_count: self.u32(),
        }
    }

    fn resolution(&mut self, ends: [MemoryId; 2]) -> Resolution {
        let resolved = self.flag();
        Resolution {
            resolved,
            winner: if resolved {
                self.maybe(|draw| draw.pick(&ends))
            } else {
                None
            },
            note: self.short(),
            stated: self.flag(),
            by: self.maybe(Self::principal),
            at: self.maybe(Self::time),
            loser_valid_to_before: self.maybe(|draw| draw.maybe(Self::time)),
        }
    }

    pub fn link(&mut self, source: MemoryId, target: MemoryId) -> Link {
        let relationship = self.pick(Relationship::ALL);
        Link {
            id: LinkId::from_uuid(self.uuid()),
            source,
            target,
            relationship,
            weight_thousandths: u32::try_from(self.below(1001)).unwrap(),
            confidence: self.pick(Confidence::ALL),
            origin: self.pick(Origin::ALL),
            reason: self.short(),
            shared_terms: self.list(3, Self::text),
            author: self.principal(),
            created_at: self.time(),
            version: self.u32(),
            resolution: relationship.is_conflict().then(|| self.resolution([source, target])),
        }
    }

    pub fn tombstone(&mut self) -> Tombstone {
        Tombstone {
            deleted_at: self.time(),
            author: self.principal(),
            receipt: self.short(),
            deleted_links: self.u32(),
            turns_kept: self.u32(),
            of: self.maybe(|draw| Erased {
                scope: draw.scope(),
                kind: draw.pick(Kind::ALL),
                recorded_at: draw.time(),
                content_hash: u128::from(draw.number()).to_be_bytes(),
            }),
        }
    }

    /// A graph in the order of files.
    pub fn graph(&mut self) -> Vec<Record> {
        let sessions = self.list(4, Self::session);
        let sessions: BTreeMap<_, _> = sessions
            .into_iter()
            .map(|session| ((name_key(&session.project), session.session_id.clone()), session))
            .collect();
        let mut turns = self.list(6, |draw| (draw.turn(), draw.maybe(Self::message)));
        turns.sort_by_key(|(turn, _)| turn.id);
        let mut memories = self.list(8, Self::memory);
        memories.sort_by_key(|record| record.memory.id);
        let ids: Vec<MemoryId> = memories.iter().map(|record| record.memory.id).collect();
        let mut links = Vec::new();
        if ids.len() > 1 {
            for _ in 0..self.below(8) {
                let source = self.below(ids.len());
                let target = (source + 1 + self.below(ids.len() - 1)) % ids.len();
                links.push(self.link(ids[source], ids[target]));
            }
        }
        links.sort_by_key(|link| link.id);
        let mut redirects = self.list(3, |draw| Redirect {
            from: MemoryId::from_uuid(draw.uuid()),
            to: MemoryId::from_uuid(draw.uuid()),
        });
        redirects.sort_by_key(|redirect| redirect.from);
        let mut tombstones = self.list(3, |draw| (MemoryId::from_uuid(draw.uuid()), draw.tombstone()));
        tombstones.sort_by_key(|(id, _)| *id);
        sessions
            .into_values()
            .map(Record::Session)
            .chain(
                turns
                    .into_iter()
                    .map(|(turn, message)| Record::Turn(Box::new(turn), message)),
            )
            .chain(memories.into_iter().map(|record| Record::Memory(Box::new(record))))
            .chain(links.into_iter().map(|link| Record::Link(Box::new(link))))
            .chain(redirects.into_iter().map(Record::Redirect))
            .chain(
                tombstones
                    .into_iter()
                    .map(|(id, tombstone)| Record::Tombstone(id, tombstone)),
            )
            .collect()
    }
}

/// Keys sorted, no blanks.
pub fn canonical(text: &str) -> String {
    let mut value: serde_json::Value = serde_json::from_str(text).unwrap();
    value.sort_all_objects();
    value.to_string()
}
