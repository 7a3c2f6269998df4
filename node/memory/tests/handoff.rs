//! What the commands of a hand-off do to the tables: every message is stored once and extracted from once.

use waggle_memory::apply::apply;
use waggle_memory::command::{Command, Entry, NewEvidence, NewMemory, NewSpan, NewTurn, Remember};
use waggle_memory::handoff::{Named, NewMessage, RememberMessages, StoreMessages, content_of, identity_of};
use waggle_memory::id::{EvidenceId, MemoryId, PairId, Principal, TenantId, TurnId};
use waggle_memory::invariant;
use waggle_memory::kind::{Confidence, Kind, Origin, Role};
use waggle_memory::memory::VectorDraft;
use waggle_memory::outcome::{Outcome, Rejection};
use waggle_memory::read::{StatementInput, read_statement};
use waggle_memory::scope::Scope;
use waggle_memory::tables::model::Model;
use waggle_memory::tables::typed::TenantRows;
use waggle_memory::time::{Millis, Stamp};

fn tenant() -> TenantId {
    "acme".parse().expect("a tenant id")
}

fn scope(session: &str) -> Scope {
    Scope {
        project: "P".to_owned(),
        agent_id: "a".to_owned(),
        session_id: session.to_owned(),
    }
}

fn turn_id(number: u8) -> TurnId {
    TurnId::from_bytes([number; 16])
}

fn message(number: u8, name: &str, role: Role, text: &str) -> NewMessage {
    NewMessage {
        identity: identity_of(Named::ById(name), role, text),
        content: content_of(role, text),
        pair: PairId::from_bytes([1; 16]),
        turn: NewTurn {
            id: turn_id(number),
            role,
            text: text.to_owned(),
            observed_at: Millis(500),
            vector: VectorDraft::Pending,
        },
    }
}

fn store(session: &str, messages: Vec<NewMessage>) -> Command {
    Command::StoreMessages(Box::new(StoreMessages {
        tenant: tenant(),
        scope: scope(session),
        namespace: "p".to_owned(),
        messages,
    }))
}

/// A memory for each (turn position, span, content).
fn extract(session: &str, turns: &[u8], memories: &[(u32, (u32, u32), &str)]) -> Command {
    let memories = memories
        .iter()
        .zip(100..)
        .map(|((turn, (start, end), content), number)| {
            let input = StatementInput {
                label: content,
                content,
                kind: Kind::Decision,
                author: "key:a",
                observed_at: Millis(500),
            };
            NewMemory {
                id: MemoryId::from_bytes([number + turns.first().copied().unwrap_or(0); 16]),
                label: (*content).to_owned(),
                content: (*content).to_owned(),
                kind: Kind::Decision,
                tags: Vec::new(),
                source_prompt: String::new(),
                confidence: Confidence::Inferred,
                valid_from: None,
                default_valid_from: Some(Millis(500)),
                valid_to: None,
                due: None,
                statement: read_statement(&input),
                rules_version: 1,
                evidence: NewEvidence {
                    id: EvidenceId::from_bytes([number; 16]),
                    span: Some(NewSpan {
                        turn: *turn,
                        start: *start,
                        end: *end,
                    }),
                    text: (*content).to_owned(),
                    observed_at: Some(Millis(500)),
                },
                vector: VectorDraft::Pending,
                similar: None,
            }
        });
    Command::RememberMessages(Box::new(RememberMessages {
        turns: turns.iter().copied().map(turn_id).collect(),
        remember: Remember {
            tenant: tenant(),
            scope: scope(session),
            namespace: "p".to_owned(),
            origin: Origin::Handoff,
            pair: PairId::from_bytes([1; 16]),
            turns: Vec::new(),
            memories: memories.collect(),
            links: Vec::new(),
        },
    }))
}

#[derive(Default)]
struct Shard {
    model: Model,
    clock: i64,
}

impl Shard {
    fn run(&mut self, command: Command) -> Outcome {
        self.clock += 10;
        let entry = Entry {
            stamp: Stamp {
                wall: Millis(self.clock),
                logical: 0,
            },
            principal: Principal("key:a".to_owned()),
            request: None,
            command,
        };
        let outcome = apply(&mut self.model, &entry).outcome;
        let violations = invariant::check(self.model.rows());
        assert!(violations.is_empty(), "{violations:?}");
        outcome
    }

    fn stored(&mut self, session: &str, messages: Vec<NewMessage>) -> (Vec<TurnId>, u32) {
        match self.run(store(session, messages)) {
            Outcome::MessagesStored { turns, written } => (turns, written),
            other => panic!("{other:?}"),
        }
    }

    fn with_rows<T>(&self, read: impl Fn(TenantRows<'_>) -> T) -> T {
        let tenant = tenant();
        read(TenantRows::new(&self.model, &tenant))
    }

    fn turns(&self) -> u64 {
        self.with_rows(|rows| rows.state().counters.turns)
    }
}

#[test]
fn a_message_is_stored_once_whoever_brings_it_again() {
    let mut shard = Shard::default();
    let first = vec![
        message(1, "m1", Role::User, "hello"),
        message(2, "m2", Role::Tool, "ls"),
    ];
    assert_eq!(shard.stored("s", first), (vec![turn_id(1), turn_id(2)], 2));
    // The same two with other turn ids, a new one between, and one of them twice.
    let again = vec![
        message(3, "m1", Role::User, "hello"),
        message(4, "m3", Role::System, "be brief"),
        message(5, "m2", Role::Tool, "ls"),
        message(6, "m3", Role::System, "be brief"),
    ];
    assert_eq!(
        shard.stored("s", again),
        (vec![turn_id(1), turn_id(4), turn_id(2), turn_id(4)], 1)
    );
    assert_eq!(shard.turns(), 3);
    // Another session knows none of them.
    assert_eq!(
        shard.stored("t", vec![message(7, "m1", Role::User, "hello")]),
        (vec![turn_id(7)], 1)
    );
    let order = shard.with_rows(|rows| (0..4).map(|at| rows.turn_at("p", "s", at)).collect::<Vec<_>>());
    assert_eq!(order, [Some(turn_id(1)), Some(turn_id(2)), Some(turn_id(4)), None]);
    let roles = shard.with_rows(|rows| {
        let ids = [1, 2, 4].map(turn_id);
        ids.map(|id| rows.turn(id).map(|turn| (turn.role, turn.turn_index)))
    });
    assert_eq!(
        roles,
        [Some((Role::User, 0)), Some((Role::Tool, 1)), Some((Role::System, 2))]
    );
}

#[test]
fn a_name_that_comes_with_other_words_or_another_role_stores_nothing() {
    let mut shard = Shard::default();
    shard.stored("s", vec![message(1, "m1", Role::User, "hello")]);
    for clash in [
        message(3, "m1", Role::User, "bye"),
        message(3, "m1", Role::Assistant, "hello"),
    ] {
        let before = shard.model.clone();
        let outcome = shard.run(store("s", vec![message(2, "m2", Role::User, "new"), clash]));
        assert_eq!(outcome, Outcome::MessageReused { position: 1 });
        assert_eq!(shard.turns(), 1);
        let changed = before.rows().zip(shard.model.rows()).filter(|(a, b)| a != b).count();
        assert!(changed <= 2, "more than the stamp and the counters changed");
    }
    // Also between two messages of one command.
    let twice = vec![message(4, "m9", Role::User, "a"), message(5, "m9", Role::User, "b")];
    assert_eq!(shard.run(store("s", twice)), Outcome::MessageReused { position: 1 });
    assert_eq!(shard.turns(), 1);
}

#[test]
fn a_turn_is_extracted_from_once_and_its_evidence_points_to_it() {
    let mut shard = Shard::default();
    let said = "Hello. We chose PostgreSQL.";
    shard.stored(
        "s",
        vec![
            message(1, "m1", Role::User, "a question?"),
            message(2, "m2", Role::User, said),
        ],
    );
    let command = extract("s", &[1, 2], &[(1, (7, 27), "We chose PostgreSQL.")]);
    let Outcome::Remembered(remembered) = shard.run(command.clone()) else {
        panic!("not remembered")
    };
    let memory = remembered.memories[0].id;
    let (evidence, noted, marks) = shard.with_rows(|rows| {
        let evidence = rows.evidence(memory, 10).pop().map(|(_, evidence)| evidence);
        let noted = rows.turn(turn_id(2)).map(|turn| turn.memories);
        (
            evidence,
            noted,
            [1, 2].map(|turn| rows.message_of(turn_id(turn)).map(|m| m.extracted)),
        )
    });
    let span = evidence.expect("evidence").turn.expect("a span");
    assert_eq!((span.turn, span.turn_index, span.role), (turn_id(2), 1, Role::User));
    assert_eq!(&said[span.start as usize..span.end as usize], "We chose PostgreSQL.");
    assert_eq!(noted, Some(vec![memory]));
    assert_eq!(marks, [Some(true), Some(true)]);
    // Again, and with a message that is new beside one that is not.
    assert_eq!(shard.run(command), Outcome::AlreadyExtracted);
    shard.stored("s", vec![message(3, "m3", Role::Assistant, "Noted.")]);
    assert_eq!(shard.run(extract("s", &[2, 3], &[])), Outcome::AlreadyExtracted);
    assert!(matches!(shard.run(extract("s", &[3], &[])), Outcome::Remembered(_)));
    assert_eq!(shard.run(extract("s", &[3], &[])), Outcome::AlreadyExtracted);
}

#[test]
fn turns_that_do_not_fit_are_refused_and_change_nothing() {
    let mut shard = Shard::default();
    shard.stored("s", vec![message(1, "m1", Role::User, "hello")]);
    for (command, expect) in [
        (extract("s", &[9], &[]), "not_found"),
        (extract("s", &[1, 1], &[]), "not_found"),
        (extract("t", &[1], &[]), "validation_failed"),
        (extract("s", &[1], &[(0, (0, 99), "hello")]), "validation_failed"),
        (extract("s", &[1], &[(1, (0, 1), "hello")]), "validation_failed"),
        (store("s", vec![message(1, "m2", Role::User, "x")]), "already_exists"),
        (
            store(
                "s",
                vec![message(5, "m5", Role::User, "x"), message(5, "m6", Role::User, "y")],
            ),
            "already_exists",
        ),
    ] {
        let outcome = shard.run(command);
        let Outcome::Rejected(rejection) = &outcome else {
            panic!("{expect}: {outcome:?}")
        };
        assert_eq!(Rejection::code(rejection), expect);
    }
    assert_eq!(shard.turns(), 1);
    assert_eq!(
        shard.with_rows(|rows| rows.message_of(turn_id(1)).map(|m| m.extracted)),
        Some(false)
    );
}
