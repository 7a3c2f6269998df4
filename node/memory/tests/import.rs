//! Exports and imports: a graph comes back as it was, a second time changes nothing, and two graphs meet by the rules.

use proptest::prelude::*;
use waggle_memory::apply::apply;
use waggle_memory::command::{
    Command, Entry, NewEvidence, NewLink, NewMemory, NewSpan, NewTurn, Remember, ResolveConflict, StoreLink,
    UpdateMemory,
};
use waggle_memory::export::{Export, ExportKinds, ExportScope};
use waggle_memory::handoff::{Named, NewMessage, RememberMessages, StoreMessages, content_of, identity_of};
use waggle_memory::id::{EvidenceId, LinkId, MemoryId, PairId, Principal, TenantId, TurnId};
use waggle_memory::import::prepare::Preparation;
use waggle_memory::import::{ConflictReason, ImportRecords, ImportStrategy, Imported};
use waggle_memory::invariant;
use waggle_memory::kind::{Confidence, Kind, Modality, Origin, Relationship, Role};
use waggle_memory::link::Link;
use waggle_memory::memory::{Alias, ChangeReason, VectorDraft, Version};
use waggle_memory::outcome::{Outcome, Rejection};
use waggle_memory::record::{MemoryRecord, Record};
use waggle_memory::scope::Scope;
use waggle_memory::statement::{Claim, Fingerprint, Statement};
use waggle_memory::tables::model::Model;
use waggle_memory::tables::overlay::Overlay;
use waggle_memory::tables::typed::TenantRows;
use waggle_memory::tables::{Key, Row};
use waggle_memory::time::{Millis, Stamp};

fn tenant() -> TenantId {
    "acme".parse().expect("a valid tenant id")
}

/// Draws numbers; the same seed gives the same graph.
struct Draw(u64);

impl Draw {
    fn number(&mut self) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    fn below(&mut self, end: u64) -> u64 {
        self.number() % end
    }

    fn flag(&mut self) -> bool {
        self.below(2) == 0
    }
}

struct World {
    model: Model,
    draw: Draw,
    made: u128,
    at: i64,
}

impl World {
    /// A tenant after `steps` calls of every sort.
    fn grown(seed: u64, steps: u64) -> Self {
        let mut world = Self {
            model: Model::default(),
            draw: Draw(seed),
            made: u128::from(seed % 1_000) << 64,
            at: 1_700_000_000_000,
        };
        for _ in 0..steps {
            world.step();
        }
        world
    }

    fn bytes(&mut self) -> [u8; 16] {
        self.made += 1;
        self.made.to_be_bytes()
    }

    fn apply(&mut self, command: Command) -> Outcome {
        self.at += 7;
        let principal = Principal(format!("key:{}", self.draw.below(2)));
        applied(&mut self.model, self.at, &principal, command)
    }

    fn ids(&self) -> Vec<MemoryId> {
        TenantRows::new(&self.model, &tenant())
            .memories_after(None, 1_000)
            .iter()
            .map(|m| m.id)
            .collect()
    }

    fn pick(&mut self) -> MemoryId {
        let ids = self.ids();
        let at = usize::try_from(self.draw.below(64)).expect("small");
        ids.get(at % ids.len().max(1))
            .copied()
            .unwrap_or(MemoryId::from_bytes([9; 16]))
    }

    fn statement(&mut self) -> Statement {
        let (text, slot, value) = (self.draw.below(40), self.draw.below(4), self.draw.below(3));
        Statement {
            exact: Fingerprint(text),
            canonical: self.draw.flag().then_some(Fingerprint(100 + text)),
            label: Fingerprint(200 + text % 8),
            acronym: None,
            general: if text.is_multiple_of(5) {
                vec![Fingerprint(103)]
            } else {
                Vec::new()
            },
            modality: Modality::Asserted,
            claims: vec![Claim {
                slot: Fingerprint(slot),
                value: Fingerprint(value),
                negated: self.draw.flag(),
                change: self.draw.flag(),
                slot_text: format!("slot {slot}"),
                value_text: format!("value {value}"),
            }],
            ends: Vec::new(),
        }
    }

    fn memory(&mut self, span: bool) -> NewMemory {
        let number = self.draw.below(90);
        NewMemory {
            id: MemoryId::from_bytes(self.bytes()),
            label: format!("label {number}"),
            content: format!("content {number} — ünïcode"),
            kind: Kind::ALL[usize::try_from(self.draw.below(7)).expect("small")],
            tags: vec![format!("t{}", number % 4), "observed".to_owned()],
            source_prompt: if self.draw.flag() {
                "a note".to_owned()
            } else {
                String::new()
            },
            confidence: Confidence::ALL[usize::try_from(self.draw.below(3)).expect("small")],
            valid_from: self.draw.flag().then_some(Millis(1_600_000_000_000)),
            default_valid_from: Some(Millis(1_650_000_000_000)),
            valid_to: self.draw.below(5).eq(&0).then_some(Millis(1_800_000_000_000)),
            due: self.draw.flag().then_some(Millis(1_790_000_000_000)),
            statement: self.statement(),
            rules_version: 3,
            evidence: NewEvidence {
                id: EvidenceId::from_bytes(self.bytes()),
                span: span.then_some(NewSpan {
                    turn: 0,
                    start: 0,
                    end: 4,
                }),
                text: "said".to_owned(),
                observed_at: Some(Millis(self.at - 5)),
            },
            vector: VectorDraft::Pending,
            similar: None,
        }
    }

    fn remember(&mut self, turns: u64) -> Command {
        let turns: Vec<NewTurn> = (0..turns)
            .map(|number| NewTurn {
                id: TurnId::from_bytes(self.bytes()),
                role: Role::ALL[usize::try_from(number % 4).expect("small")],
                text: format!("said {number} at {}", self.at),
                observed_at: Millis(self.at - 5),
                vector: VectorDraft::Pending,
            })
            .collect();
        let memories: Vec<NewMemory> = (0..self.draw.below(4))
            .map(|_| self.memory(!turns.is_empty()))
            .collect();
        let links = (1..memories.len())
            .map(|target| NewLink {
                id: LinkId::from_bytes(self.bytes()),
                source: 0,
                target: u32::try_from(target).expect("small"),
                relationship: Relationship::RelatesTo,
                confidence: Confidence::Weak,
                weight_thousandths: 700,
                reason: "share a word".to_owned(),
                shared_terms: vec!["word".to_owned()],
            })
            .collect();
        Command::Remember(Box::new(Remember {
            tenant: tenant(),
            scope: Scope {
                project: ["Pay", "pay", "Docs", ""][usize::try_from(self.draw.below(4)).expect("small")].to_owned(),
                agent_id: ["", "claude", "Codex"][usize::try_from(self.draw.below(3)).expect("small")].to_owned(),
                session_id: ["", "s1", "s2"][usize::try_from(self.draw.below(3)).expect("small")].to_owned(),
            },
            namespace: "default".to_owned(),
            origin: Origin::Observe,
            pair: PairId::from_bytes(self.bytes()),
            turns,
            memories,
            links,
        }))
    }

    fn step(&mut self) {
        let command = match self.draw.below(11) {
            0..=3 => {
                let turns = self.draw.below(3);
                self.remember(turns)
            }
            4 => self.update(),
            5 => Command::StoreLink(StoreLink {
                tenant: tenant(),
                id: LinkId::from_bytes(self.bytes()),
                source: self.pick(),
                target: self.pick(),
                relationship: Relationship::ALL[usize::try_from(self.draw.below(8)).expect("small")],
                weight_thousandths: 321,
            }),
            6 => Command::DeleteMemory {
                tenant: tenant(),
                id: self.pick(),
            },
            7 | 8 => self.resolve(),
            9 => self.messages(),
            _ => self.extraction(),
        };
        self.apply(command);
    }

    /// A part of a transcript, some of whose messages may be stored already.
    fn messages(&mut self) -> Command {
        let messages = (0..self.draw.below(4)).map(|_| {
            let name = format!("m{}", self.draw.below(6));
            let text = format!("said under {name}");
            NewMessage {
                identity: identity_of(Named::ById(&name), Role::User, &text),
                content: content_of(Role::User, &text),
                pair: PairId::from_bytes(self.bytes()),
                turn: NewTurn {
                    id: TurnId::from_bytes(self.bytes()),
                    role: Role::User,
                    text,
                    observed_at: Millis(self.at - 5),
                    vector: VectorDraft::Pending,
                },
            }
        });
        let messages = messages.collect();
        Command::StoreMessages(Box::new(StoreMessages {
            tenant: tenant(),
            scope: handed_over(),
            namespace: "default".to_owned(),
            messages,
        }))
    }

    /// What one message says.
    fn extraction(&mut self) -> Command {
        let turns = TenantRows::new(&self.model, &tenant()).turns_after(None, 1_000);
        let turns: Vec<TurnId> = turns
            .iter()
            .filter(|turn| turn.scope == handed_over())
            .map(|turn| turn.id)
            .take(1)
            .collect();
        let Command::Remember(remember) = self.remember(0) else {
            unreachable!("that is what it makes")
        };
        Command::RememberMessages(Box::new(RememberMessages {
            turns,
            remember: Remember {
                scope: handed_over(),
                ..*remember
            },
        }))
    }

    fn update(&mut self) -> Command {
        let id = self.pick();
        let version = TenantRows::new(&self.model, &tenant())
            .memory(id)
            .map_or(1, |memory| memory.version);
        Command::UpdateMemory(Box::new(UpdateMemory {
            tenant: tenant(),
            id,
            expected_version: None,
            based_on_version: version,
            label: None,
            content: Some(format!("changed {}", self.at)),
            tags: Some(vec!["changed".to_owned()]),
            valid_from: None,
            valid_to: None,
            statement: Some(self.statement()),
            rules_version: 3,
            note: if self.draw.flag() {
                "it changed".to_owned()
            } else {
                String::new()
            },
            vector: Some(VectorDraft::Pending),
        }))
    }

    fn resolve(&mut self) -> Command {
        let links = TenantRows::new(&self.model, &tenant()).links_after(None, 1_000);
        let conflict = links.iter().find(|link| link.is_open_conflict());
        let winner = conflict.map(|link| if self.draw.flag() { link.source } else { link.target });
        Command::ResolveConflict(ResolveConflict {
            tenant: tenant(),
            link: conflict.map_or(LinkId::from_bytes([7; 16]), |link| link.id),
            winner: winner.filter(|_| self.draw.flag()),
            note: "decided".to_owned(),
            valid_to: None,
        })
    }
}

fn handed_over() -> Scope {
    Scope {
        project: "Pay".to_owned(),
        agent_id: "claude".to_owned(),
        session_id: "handed over".to_owned(),
    }
}

fn applied(model: &mut Model, at: i64, principal: &Principal, command: Command) -> Outcome {
    let entry = Entry {
        stamp: Stamp {
            wall: Millis(at),
            logical: 0,
        },
        principal: principal.clone(),
        request: None,
        command,
    };
    let outcome = apply(model, &entry).outcome;
    let violations = invariant::check(model.rows());
    assert!(violations.is_empty(), "{violations:?}");
    outcome
}

fn records(model: &Model) -> Vec<Record> {
    Export::new(
        TenantRows::new(model, &tenant()),
        ExportScope::default(),
        ExportKinds::ALL,
    )
    .collect()
}

fn import_of(strategy: ImportStrategy, records: Vec<Record>) -> Command {
    Command::ImportRecords(Box::new(ImportRecords {
        tenant: tenant(),
        strategy,
        await_vectors: true,
        records,
    }))
}

fn import(model: &mut Model, strategy: ImportStrategy, records: Vec<Record>) -> Imported {
    let principal = Principal("key:importer".to_owned());
    match applied(model, 1_760_000_000_000, &principal, import_of(strategy, records)) {
        Outcome::Imported(imported) => *imported,
        other => panic!("not imported: {other:?}"),
    }
}

/// All rows but the stamp, which every entry moves.
fn rows(model: &Model) -> Vec<(Key, Row)> {
    let rows = model.rows().filter(|(key, _)| matches!(key, Key::Tenant(..)));
    rows.map(|(key, row)| (key.clone(), row.clone())).collect()
}

fn memory_of(records: &mut [Record]) -> &mut MemoryRecord {
    let found = records.iter_mut().find_map(|record| match record {
        Record::Memory(record) => Some(&mut **record),
        _ => None,
    });
    found.expect("there is a memory")
}

/// Sets what commands set rarely.
fn set_every_field(records: &mut [Record]) {
    let other = memory_of(records).memory.id;
    for record in records.iter_mut() {
        let Record::Memory(record) = record else { continue };
        let MemoryRecord { memory, versions, .. } = &mut **record;
        // Nothing supersedes itself.
        memory.superseded_by = Some(other).filter(|other| *other != memory.id);
        memory.source_prompt = "where it came from".to_owned();
        memory.aliases.push(Alias {
            text: format!("another wording of {}", memory.id),
            author: Principal("user:x#y".to_owned()),
            added_at: Millis(5),
            exact: Some(Fingerprint(77)),
        });
        memory.aliases.dedup_by(|a, b| a.text == b.text);
        let last = memory.version;
        memory.version = last + 1;
        versions.push(Version {
            note: "why".to_owned(),
            version: last,
            recorded_at: memory.updated_at,
            replaced_at: memory.updated_at.plus(9),
            replaced_by: Principal("key:1".to_owned()),
            reason: ChangeReason::Import,
            label: "an old label".to_owned(),
            content: "an old text".to_owned(),
            kind: Kind::Question,
            tags: vec!["old".to_owned()],
            valid_from: Millis(3),
            valid_to: Some(Millis(4)),
            superseded_by: Some(other),
        });
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn a_graph_comes_back_as_it_was_and_a_second_time_changes_nothing(seed: u64, steps in 1..60_u64) {
        let mut file = records(&World::grown(seed, steps).model);
        if file.iter().any(|record| matches!(record, Record::Memory(_))) {
            set_every_field(&mut file);
        }
        let mut empty = Model::default();
        let first = import(&mut empty, ImportStrategy::Merge, file.clone());
        prop_assert_eq!(&records(&empty), &file);
        prop_assert_eq!(first.conflict_count, 0);
        let before = rows(&empty);
        for strategy in [ImportStrategy::Merge, ImportStrategy::SkipExisting, ImportStrategy::Overwrite] {
            let again = import(&mut empty, strategy, file.clone());
            prop_assert_eq!(rows(&empty), before.clone());
            prop_assert_eq!((again.memories.created, again.memories.updated, again.links.created), (0, 0, 0));
            prop_assert_eq!((again.turns.created, again.conflict_count), (0, 0));
        }
    }

    #[test]
    fn the_order_of_a_file_does_not_matter(seed: u64, steps in 1..40_u64) {
        let file = records(&World::grown(seed, steps).model);
        let (mut forwards, mut backwards) = (Model::default(), Model::default());
        import(&mut forwards, ImportStrategy::Merge, file.clone());
        let memories = |record: &Record| matches!(record, Record::Memory(_));
        // Memories keep their order among themselves: it is the order in which turns name them.
        let (mut others, graph): (Vec<Record>, Vec<Record>) = file.into_iter().partition(|record| !memories(record));
        others.reverse();
        others.extend(graph);
        import(&mut backwards, ImportStrategy::Merge, others);
        prop_assert_eq!(records(&forwards), records(&backwards));
    }

    #[test]
    fn two_graphs_meet_without_breaking_an_invariant_and_settle(a: u64, b: u64, strategy in 1..=3_u8) {
        let strategy = ImportStrategy::from_number(strategy).expect("a strategy");
        let (mut ours, theirs) = (World::grown(a, 40), World::grown(b, 40));
        // The same ids with other contents are common.
        let file = records(&World::grown(a, 60).model);
        let untouched = theirs.model.clone();
        import(&mut ours.model, strategy, records(&theirs.model));
        prop_assert_eq!(&theirs.model, &untouched);
        import(&mut ours.model, strategy, file.clone());
        let before = rows(&ours.model);
        import(&mut ours.model, strategy, file);
        prop_assert_eq!(rows(&ours.model), before);
    }

    #[test]
    fn trying_it_out_tells_the_same_and_writes_nothing(seed: u64) {
        let mut world = World::grown(seed, 20);
        let file = records(&World::grown(seed.wrapping_add(1), 30).model);
        let entry = Entry {
            stamp: Stamp { wall: Millis(1_760_000_000_000), logical: 0 },
            principal: Principal("key:importer".to_owned()),
            request: None,
            command: import_of(ImportStrategy::Merge, file),
        };
        let before = world.model.clone();
        let tried = apply(&mut Overlay::new(&before), &entry);
        prop_assert_eq!(tried, apply(&mut world.model, &entry));
    }

    #[test]
    fn a_branch_has_ids_of_its_own_in_its_project_and_the_same_ones_again(seed: u64) {
        let mut world = World::grown(seed, 30);
        let branch = Preparation { author: None, project: Some("Branch".to_owned()), new_ids: true };
        let file: Vec<Record> = records(&world.model).into_iter().filter_map(|r| branch.prepare(r)).collect();
        let memories = world.ids().len();
        import(&mut world.model, ImportStrategy::Merge, file.clone());
        prop_assert_eq!(world.ids().len(), 2 * memories);
        let before = rows(&world.model);
        import(&mut world.model, ImportStrategy::Merge, file);
        prop_assert_eq!(rows(&world.model), before);
    }
}

/// A tenant with two memories in a session and a link, and its records.
fn small() -> (Model, Vec<Record>) {
    for seed in 0.. {
        let world = World::grown(seed, 12);
        let file = records(&world.model);
        let has_link = file.iter().any(|record| matches!(record, Record::Link(_)));
        let has_turn = file.iter().any(|record| matches!(record, Record::Turn(..)));
        if has_link && has_turn {
            return (world.model, file);
        }
    }
    unreachable!("some seed has a link")
}

/// A transcript of two messages, the first of them extracted from.
fn handed_over_twice(world: &mut World) -> Command {
    let names = ["m1", "m2"].map(|name| {
        let text = format!("said under {name}");
        NewMessage {
            identity: identity_of(Named::ById(name), Role::User, &text),
            content: content_of(Role::User, &text),
            pair: PairId::from_bytes([1; 16]),
            turn: NewTurn {
                id: TurnId::from_bytes(world.bytes()),
                role: Role::User,
                text,
                observed_at: Millis(9),
                vector: VectorDraft::Pending,
            },
        }
    });
    Command::StoreMessages(Box::new(StoreMessages {
        tenant: tenant(),
        scope: handed_over(),
        namespace: "default".to_owned(),
        messages: names.into(),
    }))
}

#[test]
fn a_transcript_that_was_imported_is_not_stored_again() {
    let mut world = World::grown(1, 0);
    let command = handed_over_twice(&mut world);
    world.apply(command);
    let command = world.extraction();
    world.apply(command);
    let file = records(&world.model);
    let extracted = |file: &[Record]| {
        let messages = file.iter().filter_map(|record| match record {
            Record::Turn(_, message) => message.map(|message| message.extracted),
            _ => None,
        });
        messages.collect::<Vec<bool>>()
    };
    assert_eq!(extracted(&file), [true, false]);

    let mut copy = World::grown(2, 0);
    import(&mut copy.model, ImportStrategy::Merge, file.clone());
    let before = rows(&copy.model);
    let command = handed_over_twice(&mut copy);
    assert!(matches!(
        copy.apply(command),
        Outcome::MessagesStored { written: 0, .. }
    ));
    let command = copy.extraction();
    assert_eq!(copy.apply(command), Outcome::AlreadyExtracted);
    assert_eq!(rows(&copy.model), before);

    // Where the transcript was handed over again before the import, each message has one turn that it is.
    let mut late = World::grown(3, 0);
    let command = handed_over_twice(&mut late);
    late.apply(command);
    let imported = import(&mut late.model, ImportStrategy::Merge, file.clone());
    assert_eq!(imported.turns.created, 2);
    assert_eq!(extracted(&records(&late.model)).len(), 2);

    // A file of an earlier release has no identities; a later one of the same turns brings them.
    let bare = file.iter().cloned().map(|record| match record {
        Record::Turn(turn, _) => Record::Turn(turn, None),
        other => other,
    });
    let mut earlier = World::grown(4, 0);
    import(&mut earlier.model, ImportStrategy::Merge, bare.collect());
    assert!(extracted(&records(&earlier.model)).is_empty());
    assert_eq!(
        import(&mut earlier.model, ImportStrategy::SkipExisting, file.clone())
            .turns
            .updated,
        0
    );
    assert_eq!(import(&mut earlier.model, ImportStrategy::Merge, file).turns.updated, 2);
    assert_eq!(rows(&earlier.model), before);
}

#[test]
fn the_higher_version_wins_and_the_former_state_stays_as_a_version() {
    let (mut model, mut file) = small();
    let record = memory_of(&mut file);
    let (id, version) = (record.memory.id, record.memory.version);
    let former = record.memory.content.clone();
    record.memory.content = "a later text".to_owned();
    record.memory.version = version + 3;
    record.memory.text_version = version + 3;
    let imported = import(&mut model, ImportStrategy::Merge, file.clone());
    assert_eq!((imported.memories.updated, imported.conflict_count), (1, 0));
    let tenant = tenant();
    let rows_now = TenantRows::new(&model, &tenant);
    let memory = rows_now.memory(id).expect("it is there");
    assert_eq!((memory.content.as_str(), memory.version), ("a later text", version + 3));
    let kept = rows_now.versions(id, 1).pop().expect("a version");
    assert_eq!(
        (kept.version, kept.content, kept.reason),
        (version, former, ChangeReason::Import)
    );
    // The older file again: nothing goes back.
    let before = rows(&model);
    let (_, older) = small();
    import(&mut model, ImportStrategy::Merge, older);
    assert_eq!(rows(&model), before);
}

#[test]
fn equal_versions_that_differ_stay_and_are_named_unless_overwritten() {
    let (mut model, mut file) = small();
    let record = memory_of(&mut file);
    let (id, version) = (record.memory.id, record.memory.version);
    record.memory.content = "another text".to_owned();
    record.memory.tags.push("zz".to_owned());
    let before = rows(&model);
    let imported = import(&mut model, ImportStrategy::Merge, file.clone());
    let conflict = imported.conflicts.first().expect("a conflict");
    assert_eq!((conflict.id, conflict.why), (id.bytes(), ConflictReason::Differs));
    assert_eq!(conflict.field, "content,tags");
    assert_eq!(rows(&model), before);
    import(&mut model, ImportStrategy::SkipExisting, file.clone());
    assert_eq!(rows(&model), before);
    let imported = import(&mut model, ImportStrategy::Overwrite, file);
    assert_eq!(imported.memories.updated, 1);
    let tenant = tenant();
    let memory = TenantRows::new(&model, &tenant).memory(id).expect("it is there");
    assert_eq!((memory.content.as_str(), memory.version), ("another text", version + 1));
}

#[test]
fn what_was_erased_stays_erased_and_what_lives_is_not_erased() {
    let (mut model, file) = small();
    let id = memory_of(&mut file.clone()).memory.id;
    let erase = Command::DeleteMemory { tenant: tenant(), id };
    let (_, alive) = small();
    applied(&mut model, 1_750_000_000_000, &Principal("key:1".to_owned()), erase);
    let with_tombstone = records(&model);
    let imported = import(&mut model, ImportStrategy::Overwrite, file);
    assert!(
        imported
            .conflicts
            .iter()
            .any(|c| c.id == id.bytes() && c.why == ConflictReason::Erased)
    );
    let tenant = tenant();
    assert!(TenantRows::new(&model, &tenant).memory(id).is_none());
    // The other way round.
    let mut other = Model::default();
    import(&mut other, ImportStrategy::Merge, alive);
    let imported = import(&mut other, ImportStrategy::Merge, with_tombstone);
    assert!(
        imported
            .conflicts
            .iter()
            .any(|c| c.id == id.bytes() && c.why == ConflictReason::Alive)
    );
    assert!(TenantRows::new(&other, &tenant).memory(id).is_some());
}

fn link_between(id: u8, source: MemoryId, target: MemoryId) -> Record {
    Record::Link(Box::new(Link {
        id: LinkId::from_bytes([id; 16]),
        source,
        target,
        relationship: Relationship::Updates,
        weight_thousandths: 1_000,
        confidence: Confidence::Explicit,
        origin: Origin::Manual,
        reason: String::new(),
        shared_terms: Vec::new(),
        author: Principal("key:1".to_owned()),
        created_at: Millis(1),
        version: 1,
        resolution: None,
    }))
}

#[test]
fn links_without_an_end_to_themselves_or_in_a_circle_are_left_out() {
    let mut model = Model::default();
    let mut file: Vec<Record> = records(&World::grown(3, 40).model);
    file.retain(|record| matches!(record, Record::Memory(_)));
    let ids: Vec<MemoryId> = file
        .iter()
        .filter_map(|r| {
            if let Record::Memory(m) = r {
                Some(m.memory.id)
            } else {
                None
            }
        })
        .collect();
    let [a, b, c] = ids[..3] else {
        panic!("too few memories")
    };
    let nowhere = MemoryId::from_bytes([0xee; 16]);
    file.extend([link_between(1, a, nowhere), link_between(2, b, b)]);
    file.extend([link_between(3, a, b), link_between(4, b, c), link_between(5, c, a)]);
    let imported = import(&mut model, ImportStrategy::Merge, file);
    assert_eq!((imported.links.created, imported.dangling), (2, 1));
    let why: Vec<ConflictReason> = imported.conflicts.iter().map(|conflict| conflict.why).collect();
    assert_eq!(
        why,
        [
            ConflictReason::Dangling,
            ConflictReason::SelfLink,
            ConflictReason::Cycle
        ]
    );
}

#[test]
fn a_record_that_breaks_a_rule_refuses_the_whole_import() {
    let (_, file) = small();
    type Harm = fn(&mut MemoryRecord);
    let harms: [(&str, Harm); 9] = [
        ("label", |r| r.memory.label = " ".to_owned()),
        ("content", |r| r.memory.content = "x".repeat(65_537)),
        ("content", |r| r.memory.content = "a\0b".to_owned()),
        ("valid_to", |r| r.memory.valid_to = Some(r.memory.valid_from)),
        ("version", |r| r.memory.version = 0),
        ("version", |r| r.memory.text_version = r.memory.version + 1),
        ("evidence", |r| r.memory.evidence_count = 0),
        ("observed_at", |r| r.memory.recorded_at = Millis(i64::MAX)),
        ("tags", |r| r.memory.tags = vec![String::new(); 257]),
    ];
    for (expected, harm) in harms {
        let mut file = file.clone();
        harm(memory_of(&mut file));
        let mut model = Model::default();
        let principal = Principal("key:1".to_owned());
        let outcome = applied(&mut model, 1, &principal, import_of(ImportStrategy::Merge, file));
        match outcome {
            Outcome::Rejected(Rejection::Invalid { field, .. }) => assert_eq!(field, expected),
            other => panic!("{expected}: {other:?}"),
        }
        assert!(rows(&model).is_empty());
    }
}

#[test]
fn an_export_of_a_scope_has_its_memories_and_only_links_inside() {
    for seed in 0..20 {
        let world = World::grown(seed, 60);
        let tenant = tenant();
        let rows = TenantRows::new(&world.model, &tenant);
        let scope = ExportScope {
            project: " PAY ".to_owned(),
            ..ExportScope::default()
        };
        let file: Vec<Record> = Export::new(rows, scope, ExportKinds::ALL).collect();
        let inside: Vec<MemoryId> = file
            .iter()
            .filter_map(|r| {
                if let Record::Memory(m) = r {
                    Some(m.memory.id)
                } else {
                    None
                }
            })
            .collect();
        let expected: Vec<MemoryId> = rows
            .memories_after(None, 1_000)
            .into_iter()
            .filter(|memory| memory.scope.project_key() == "pay")
            .map(|memory| memory.id)
            .collect();
        assert_eq!(inside, expected);
        let links = file
            .iter()
            .filter_map(|r| if let Record::Link(link) = r { Some(link) } else { None });
        let links: Vec<&Link> = links.map(|link| &**link).collect();
        assert!(
            links
                .iter()
                .all(|link| inside.contains(&link.source) && inside.contains(&link.target))
        );
        let all = rows.links_after(None, 1_000);
        let expected = all
            .iter()
            .filter(|l| inside.contains(&l.source) && inside.contains(&l.target))
            .count();
        assert_eq!(links.len(), expected);
        assert!(!file.iter().any(|record| matches!(record, Record::Tombstone(..))));
        let mut model = Model::default();
        let imported = import(&mut model, ImportStrategy::Merge, file);
        assert_eq!(imported.dangling, 0);
    }
}
