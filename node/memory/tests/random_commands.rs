//! Random sequences of commands: after every entry all invariants hold, nothing panics, and a second replica that is
//! given the same entries has the same rows.

use proptest::prelude::*;
use waggle_memory::apply::apply;
use waggle_memory::clear::{Clear, ClearPoint, ClearTarget};
use waggle_memory::command::{
    AttachVectors, Canonicalize, Command, Entry, LateVector, NewEvidence, NewLink, NewMemory, NewSpan, NewTurn,
    Remember, Request, ResolveConflict, StoreLink, UpdateMemory,
};
use waggle_memory::export::{Export, ExportKinds, ExportScope};
use waggle_memory::handoff::{NewMessage, RememberMessages, StoreMessages};
use waggle_memory::id::{EvidenceId, LinkId, MemoryId, MessageId, PairId, Principal, RequestId, TenantId, TurnId};
use waggle_memory::import::prepare::Preparation;
use waggle_memory::import::{ImportRecords, ImportStrategy};
use waggle_memory::invariant;
use waggle_memory::kind::{Confidence, Kind, Modality, Origin, Relationship, Role};
use waggle_memory::memory::{Vector, VectorDraft};
use waggle_memory::outcome::Outcome;
use waggle_memory::record::Record;
use waggle_memory::scope::Scope;
use waggle_memory::statement::{Claim, Fingerprint, StatedEnd, Statement};
use waggle_memory::tables::Item;
use waggle_memory::tables::model::Model;
use waggle_memory::tables::typed::TenantRows;
use waggle_memory::time::{Millis, Stamp};

/// Small worlds meet each other: few names, few values, so that duplicates, conflicts and repeated ids are common.
#[derive(Clone, Debug)]
enum Step {
    Store {
        project: u8,
        text: u8,
        slot: u8,
        value: u8,
        negated: bool,
        change: bool,
        ends: bool,
        kind: u8,
        pending: bool,
    },
    Say {
        project: u8,
        session: u8,
        texts: Vec<(u8, u8)>,
    },
    Link {
        a: u8,
        b: u8,
        relationship: u8,
    },
    Resolve {
        which: u8,
        winner: u8,
    },
    Update {
        which: u8,
        text: u8,
        value: u8,
    },
    Delete {
        which: u8,
    },
    Attach,
    /// Records of what is there, some of them changed, some of them of memories that were erased since.
    Import {
        strategy: u8,
        change: u8,
        keep: bool,
    },
    Unlink {
        which: u8,
    },
    HandOff {
        project: u8,
        session: u8,
        messages: Vec<(u8, u8)>,
    },
    Extract {
        turns: Vec<u8>,
        text: u8,
        value: u8,
    },
    Canonicalize {
        which: Vec<u8>,
        canonical: u8,
    },
    /// One step of a clearing, or the next one of a clearing that is not over.
    Clear {
        target: u8,
        rows_max: u8,
    },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..2u8, 0..12u8, 0..3u8, 0..3u8, any::<bool>(), any::<bool>(), any::<bool>(), 0..7u8, any::<bool>()).prop_map(
            |(project, text, slot, value, negated, change, ends, kind, pending)| Step::Store {
                project, text, slot, value, negated, change, ends, kind, pending
            }
        ),
        3 => (0..2u8, 0..3u8, proptest::collection::vec((0..12u8, 0..3u8), 0..4))
            .prop_map(|(project, session, texts)| Step::Say { project, session, texts }),
        2 => (any::<u8>(), any::<u8>(), 1..9u8).prop_map(|(a, b, relationship)| Step::Link { a, b, relationship }),
        2 => (any::<u8>(), 0..3u8).prop_map(|(which, winner)| Step::Resolve { which, winner }),
        2 => (any::<u8>(), 0..12u8, 0..3u8).prop_map(|(which, text, value)| Step::Update { which, text, value }),
        1 => any::<u8>().prop_map(|which| Step::Delete { which }),
        1 => Just(Step::Attach),
        2 => (1..4u8, any::<u8>(), any::<bool>())
            .prop_map(|(strategy, change, keep)| Step::Import { strategy, change, keep }),
        1 => any::<u8>().prop_map(|which| Step::Unlink { which }),
        2 => (0..2u8, 0..3u8, proptest::collection::vec((0..6u8, 0..2u8), 0..4))
            .prop_map(|(project, session, messages)| Step::HandOff { project, session, messages }),
        2 => (proptest::collection::vec(any::<u8>(), 0..3), 0..12u8, 0..3u8)
            .prop_map(|(turns, text, value)| Step::Extract { turns, text, value }),
        2 => (proptest::collection::vec(any::<u8>(), 1..4), any::<u8>())
            .prop_map(|(which, canonical)| Step::Canonicalize { which, canonical }),
        1 => (0..5u8, 1..20u8).prop_map(|(target, rows_max)| Step::Clear { target, rows_max }),
    ]
}

fn tenant() -> TenantId {
    "acme".parse().expect("a valid tenant id")
}

/// Makes ids in order, and remembers what exists.
#[derive(Default)]
struct World {
    counter: u128,
    memories: Vec<MemoryId>,
    links: Vec<LinkId>,
    /// What the tenant holds, and what an earlier export had.
    records: Vec<Record>,
    older: Vec<Record>,
    /// Turns of handed-off messages, with project and session.
    handed_off: Vec<(TurnId, u8, u8)>,
    /// A clearing that is not over.
    clearing: Option<(ClearTarget, ClearPoint)>,
}

impl World {
    fn bytes(&mut self) -> [u8; 16] {
        self.counter += 1;
        self.counter.to_be_bytes()
    }

    fn pick<T: Copy>(from: &[T], which: u8) -> Option<T> {
        from.get(usize::from(which) % from.len().max(1)).copied()
    }

    fn statement(text: u8, slot: u8, value: u8, negated: bool, change: bool, ends: bool) -> Statement {
        let slot_text = format!("slot {slot}");
        let value_text = format!("value {value}");
        let claim = Claim {
            slot: Fingerprint::of("slot", &slot_text),
            value: Fingerprint::of("value", &value_text),
            negated,
            change,
            slot_text,
            value_text,
        };
        let ended = StatedEnd {
            slot: claim.slot,
            value: Fingerprint::of("value", &format!("value {}", (value + 1) % 3)),
            at: None,
            value_text: "an older value".to_owned(),
        };
        Statement {
            exact: Fingerprint::of("exact", &format!("{text}-{slot}-{value}-{negated}")),
            canonical: Some(Fingerprint::of(
                "canonical",
                &format!("{}-{slot}-{value}-{negated}", text / 2),
            )),
            label: Fingerprint::of("label", &text.to_string()),
            acronym: None,
            general: if text.is_multiple_of(3) {
                vec![Fingerprint::of("canonical", &format!("0-{slot}-{value}-{negated}"))]
            } else {
                Vec::new()
            },
            modality: if text == 11 {
                Modality::Hedged
            } else {
                Modality::Asserted
            },
            claims: vec![claim],
            ends: if ends { vec![ended] } else { Vec::new() },
        }
    }

    fn memory(
        &mut self,
        text: u8,
        statement: Statement,
        kind: Kind,
        span: Option<NewSpan>,
        pending: bool,
    ) -> NewMemory {
        let vector = Vector {
            model: "m".to_owned(),
            scale_bits: 1.0f32.to_bits(),
            components: vec![1, 2, 3],
        };
        let id = MemoryId::from_bytes(self.bytes());
        self.memories.push(id);
        NewMemory {
            id,
            label: format!("label {text}"),
            content: format!("content {text}"),
            kind,
            tags: vec![format!("t{}", text % 3)],
            source_prompt: String::new(),
            confidence: Confidence::Inferred,
            valid_from: None,
            default_valid_from: None,
            valid_to: None,
            due: None,
            statement,
            rules_version: 1,
            evidence: NewEvidence {
                id: EvidenceId::from_bytes(self.bytes()),
                span,
                text: format!("content {text}"),
                observed_at: None,
            },
            vector: if pending {
                VectorDraft::Pending
            } else {
                VectorDraft::Ready(vector)
            },
            similar: None,
        }
    }

    fn remember(&mut self, project: u8, session: &str, turns: Vec<NewTurn>, memories: Vec<NewMemory>) -> Command {
        let links = (1..memories.len())
            .map(|target| NewLink {
                id: LinkId::from_bytes(self.bytes()),
                source: 0,
                target: u32::try_from(target).expect("few memories"),
                relationship: Relationship::RelatesTo,
                confidence: Confidence::Inferred,
                weight_thousandths: 1_000,
                reason: "said together".to_owned(),
                shared_terms: Vec::new(),
            })
            .collect();
        Command::Remember(Box::new(Remember {
            tenant: tenant(),
            scope: Scope {
                project: format!("P{project}"),
                agent_id: "a".to_owned(),
                session_id: session.to_owned(),
            },
            namespace: "default".to_owned(),
            origin: Origin::Observe,
            pair: PairId::from_bytes(self.bytes()),
            turns,
            memories,
            links,
        }))
    }

    fn command(&mut self, step: &Step) -> Option<Command> {
        Some(match step {
            Step::Store {
                project,
                text,
                slot,
                value,
                negated,
                change,
                ends,
                kind,
                pending,
            } => {
                let statement = Self::statement(*text, *slot, *value, *negated, *change, *ends);
                let kind = Kind::from_number(kind + 1)?;
                let memory = self.memory(*text, statement, kind, None, *pending);
                self.remember(*project, "", Vec::new(), vec![memory])
            }
            Step::Say {
                project,
                session,
                texts,
            } => {
                let turn = NewTurn {
                    id: TurnId::from_bytes(self.bytes()),
                    role: Role::User,
                    text: "something was said".to_owned(),
                    observed_at: Millis(1_000),
                    vector: VectorDraft::Pending,
                };
                let mut memories = Vec::new();
                for (text, value) in texts {
                    let statement = Self::statement(*text, 0, *value, false, false, false);
                    let span = NewSpan {
                        turn: 0,
                        start: 0,
                        end: 9,
                    };
                    memories.push(self.memory(*text, statement, Kind::Fact, Some(span), false));
                }
                self.remember(*project, &format!("s{session}"), vec![turn], memories)
            }
            Step::HandOff {
                project,
                session,
                messages,
            } => self.hand_off(*project, *session, messages),
            Step::Extract { turns, text, value } => self.extract(turns, *text, *value)?,
            Step::Link { a, b, relationship } => {
                let id = LinkId::from_bytes(self.bytes());
                self.links.push(id);
                Command::StoreLink(StoreLink {
                    tenant: tenant(),
                    id,
                    source: Self::pick(&self.memories, *a)?,
                    target: Self::pick(&self.memories, *b)?,
                    relationship: Relationship::from_number(*relationship)?,
                    weight_thousandths: 500,
                })
            }
            Step::Resolve { which, winner } => Command::ResolveConflict(ResolveConflict {
                tenant: tenant(),
                link: Self::pick(&self.links, *which)?,
                winner: if *winner == 0 {
                    None
                } else {
                    Self::pick(&self.memories, *winner)
                },
                note: String::new(),
                valid_to: None,
            }),
            Step::Update { which, text, value } => Command::UpdateMemory(Box::new(UpdateMemory {
                tenant: tenant(),
                id: Self::pick(&self.memories, *which)?,
                expected_version: None,
                based_on_version: 1,
                label: None,
                content: Some(format!("content {text}")),
                tags: None,
                valid_from: None,
                valid_to: None,
                statement: Some(Self::statement(*text, 0, *value, false, false, false)),
                rules_version: 1,
                note: String::new(),
                vector: Some(VectorDraft::Pending),
            })),
            Step::Delete { which } => Command::DeleteMemory {
                tenant: tenant(),
                id: Self::pick(&self.memories, *which)?,
            },
            Step::Unlink { which } => Command::DeleteLink {
                tenant: tenant(),
                id: Self::pick(&self.links, *which)?,
            },
            Step::Import { strategy, change, keep } => self.import(*strategy, *change, *keep)?,
            Step::Canonicalize { which, canonical } => Command::Canonicalize(Canonicalize {
                tenant: tenant(),
                memories: which
                    .iter()
                    .filter_map(|which| Self::pick(&self.memories, *which))
                    .collect(),
                canonical: Self::pick(&self.memories, *canonical)?,
            }),
            Step::Clear { target, rows_max } => {
                let fresh = match target {
                    0 => ClearTarget::All,
                    1 => ClearTarget::Project("p1".to_owned()),
                    2 => ClearTarget::Session {
                        project: Some("P0".to_owned()),
                        session: "s1".to_owned(),
                    },
                    _ => ClearTarget::Session {
                        project: None,
                        session: format!("s{}", target % 3),
                    },
                };
                let (target, from) = match self.clearing.take() {
                    Some((target, point)) => (target, Some(point)),
                    None => (fresh, None),
                };
                Command::Clear(Clear {
                    tenant: tenant(),
                    target,
                    from,
                    rows_max: u32::from(*rows_max),
                })
            }
            Step::Attach => Command::AttachVectors(AttachVectors {
                tenant: tenant(),
                items: self
                    .memories
                    .iter()
                    .map(|id| LateVector {
                        item: Item::Memory(*id),
                        text_version: 1,
                        vector: Some(Vector {
                            model: "m".to_owned(),
                            scale_bits: 0,
                            components: vec![0],
                        }),
                    })
                    .collect(),
            }),
        })
    }
}

impl World {
    /// An older export, or the one of this moment, with versions and texts that differ here and there.
    fn import(&mut self, strategy: u8, change: u8, keep: bool) -> Option<Command> {
        let mut records = if change.is_multiple_of(2) {
            self.older.clone()
        } else {
            self.records.clone()
        };
        if keep {
            self.older = self.records.clone();
        }
        for (at, record) in records.iter_mut().enumerate() {
            let differs = (at + usize::from(change)).is_multiple_of(3);
            match record {
                Record::Memory(record) if differs => {
                    record.memory.content = format!("imported {change}");
                    record.memory.version += u32::from(change % 3);
                    record.memory.valid_to = None;
                }
                Record::Link(link) if differs => {
                    link.weight_thousandths = u32::from(change);
                    link.version += u32::from(change % 2);
                }
                _ => {}
            }
        }
        let prepared = Preparation {
            author: None,
            project: change.is_multiple_of(5).then(|| "branch".to_owned()),
            new_ids: change.is_multiple_of(5),
        };
        Some(Command::ImportRecords(Box::new(ImportRecords {
            tenant: tenant(),
            strategy: ImportStrategy::from_number(strategy)?,
            await_vectors: !change.is_multiple_of(7),
            records: records
                .into_iter()
                .filter_map(|record| prepared.prepare(record))
                .collect(),
        })))
    }

    fn hand_off(&mut self, project: u8, session: u8, messages: &[(u8, u8)]) -> Command {
        let messages = messages
            .iter()
            .map(|(identity, content)| {
                let id = TurnId::from_bytes(self.bytes());
                self.handed_off.push((id, project, session));
                NewMessage {
                    identity: MessageId::from_bytes([*identity; 16]),
                    content: Fingerprint(u64::from(*content)),
                    pair: PairId::from_bytes(self.bytes()),
                    turn: NewTurn {
                        id,
                        role: Role::Assistant,
                        text: "something was handed over".to_owned(),
                        observed_at: Millis(1_000),
                        vector: VectorDraft::Pending,
                    },
                }
            })
            .collect();
        let Command::Remember(remember) = self.remember(project, &format!("s{session}"), Vec::new(), Vec::new()) else {
            unreachable!("remember makes Remember")
        };
        Command::StoreMessages(Box::new(StoreMessages {
            tenant: remember.tenant,
            scope: remember.scope,
            namespace: remember.namespace,
            messages,
        }))
    }

    /// Some of the turns were never stored, are of another session, or were extracted from: apply must tell.
    fn extract(&mut self, turns: &[u8], text: u8, value: u8) -> Option<Command> {
        let chosen: Vec<_> = turns
            .iter()
            .filter_map(|which| Self::pick(&self.handed_off, *which))
            .collect();
        let (_, project, session) = *chosen.first()?;
        let span = NewSpan {
            turn: 0,
            start: 0,
            end: 9,
        };
        let statement = Self::statement(text, 0, value, false, false, false);
        let memory = self.memory(text, statement, Kind::Decision, Some(span), true);
        let Command::Remember(remember) = self.remember(project, &format!("s{session}"), Vec::new(), vec![memory])
        else {
            unreachable!("remember makes Remember")
        };
        Some(Command::RememberMessages(Box::new(RememberMessages {
            turns: chosen.into_iter().map(|(turn, ..)| turn).collect(),
            remember: *remember,
        })))
    }
}

/// Conflicts exist under ids that apply made; later steps resolve them, too.
fn known_links(model: &Model, world: &mut World) {
    for memory in &world.memories {
        for link in TenantRows::new(model, &tenant()).links_from(*memory, 100) {
            if !world.links.contains(&link.id) {
                world.links.push(link.id);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn invariants_hold_after_every_entry_and_replicas_agree(steps in proptest::collection::vec(step(), 1..60)) {
        let (mut model, mut replica, mut world) = (Model::default(), Model::default(), World::default());
        for (at, step) in steps.iter().enumerate() {
            known_links(&model, &mut world);
            if matches!(step, Step::Import { .. }) {
                let tenant = tenant();
                let rows = TenantRows::new(&model, &tenant);
                world.records = Export::new(rows, ExportScope::default(), ExportKinds::ALL).collect();
            }
            let Some(command) = world.command(step) else { continue };
            let at = i64::try_from(at).expect("few steps");
            // Now and then the clock goes back: stamps must not.
            let stamp = Stamp { wall: Millis(10_000 + at * 10 - (at % 7) * 15), logical: 0 };
            let request = Request { id: RequestId(format!("r{at}")), arguments: 7 };
            let entry = Entry { stamp, principal: Principal("key:a".to_owned()), request: Some(request), command };
            let applied = apply(&mut model, &entry);
            prop_assert_eq!(&apply(&mut replica, &entry), &applied);
            if let (Outcome::Cleared(cleared), Command::Clear(clear)) = (&applied.outcome, &entry.command) {
                world.clearing = cleared.next.clone().map(|point| (clear.target.clone(), point));
            }
            let violations = invariant::check(model.rows());
            prop_assert!(violations.is_empty(), "after step {} {:?}: {:?}", at, step, violations);
            // A retry gives the first outcome and changes no memory.
            let before = model.clone();
            let again = apply(&mut model, &entry);
            prop_assert_eq!(&again.outcome, &applied.outcome);
            prop_assert!(again.effects.changed.is_empty());
            let changed = before.rows().zip(model.rows()).filter(|(a, b)| a != b).count();
            prop_assert!(changed <= 1, "a retry changed {} rows besides the stamp", changed);
            apply(&mut replica, &entry);
        }
        prop_assert_eq!(model, replica);
    }

    #[test]
    fn a_request_id_used_with_other_arguments_is_refused(text in 0..12u8) {
        let (mut model, mut world) = (Model::default(), World::default());
        let store = Step::Store { project: 0, text, slot: 0, value: 0, negated: false, change: false, ends: false, kind: 0, pending: false };
        let mut entry = |arguments, world: &mut World| {
            let command = world.command(&store).expect("a store is always possible");
            let request = Request { id: RequestId("same".to_owned()), arguments };
            let stamp = Stamp { wall: Millis(5), logical: 0 };
            apply(&mut model, &Entry { stamp, principal: Principal("key:a".to_owned()), request: Some(request), command }).outcome
        };
        let first = entry(1, &mut world);
        prop_assert_eq!(entry(1, &mut world), first);
        prop_assert!(matches!(entry(2, &mut world), Outcome::Rejected(_)));
    }
}
