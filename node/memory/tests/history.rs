//! Merging by hand, clearing, the feed of changes: what they leave behind.

use waggle_memory::apply::apply;
use waggle_memory::change::{Change, ChangeKind};
use waggle_memory::clear::{Clear, ClearTarget, Cleared};
use waggle_memory::command::{
    Canonicalize, Command, Entry, NewEvidence, NewMemory, NewSpan, NewTurn, Remember, ResolveConflict, StoreLink,
    UpdateMemory,
};
use waggle_memory::extract::RULES_VERSION;
use waggle_memory::id::{EvidenceId, LinkId, MemoryId, PairId, Principal, TenantId, TurnId};
use waggle_memory::invariant;
use waggle_memory::kind::{Confidence, Kind, Origin, Relationship, Role};
use waggle_memory::memory::VectorDraft;
use waggle_memory::outcome::{Canonicalized, Outcome, Rejection};
use waggle_memory::read::{StatementInput, read_statement};
use waggle_memory::scope::Scope;
use waggle_memory::tables::model::Model;
use waggle_memory::tables::typed::TenantRows;
use waggle_memory::time::{Millis, Stamp};

const T0: i64 = 1_760_000_000_000;

fn tenant() -> TenantId {
    "acme".parse().expect("a valid tenant id")
}

fn memory_id(number: u8) -> MemoryId {
    MemoryId::from_bytes([number; 16])
}

/// One shard, written to by one author, checked after every command.
#[derive(Default)]
struct Shard {
    model: Model,
    count: u8,
}

impl Shard {
    fn run(&mut self, command: Command) -> Outcome {
        self.count += 1;
        let stamp = Stamp {
            wall: Millis(T0 + i64::from(self.count) * 1_000),
            logical: 0,
        };
        let principal = Principal("key:a".to_owned());
        let entry = Entry {
            stamp,
            principal,
            request: None,
            command,
        };
        let outcome = apply(&mut self.model, &entry).outcome;
        let violations = invariant::check(self.model.rows());
        assert!(violations.is_empty(), "{violations:?}");
        outcome
    }

    fn rows(&self, read: impl FnOnce(TenantRows<'_>)) {
        read(TenantRows::new(&self.model, &tenant()));
    }

    /// Stores a statement in a project and session; with a session, as something that was said.
    fn store(&mut self, id: u8, project: &str, session: &str, content: &str) -> MemoryId {
        let statement = read_statement(&StatementInput {
            label: content,
            content,
            kind: Kind::Decision,
            author: "key:a",
            observed_at: Millis(T0),
        });
        let turn = NewTurn {
            id: TurnId::from_bytes([100 + id; 16]),
            role: Role::User,
            text: content.to_owned(),
            observed_at: Millis(T0),
            vector: VectorDraft::Pending,
        };
        let said = !session.is_empty();
        let memory = NewMemory {
            id: memory_id(id),
            label: content.to_owned(),
            content: content.to_owned(),
            kind: Kind::Decision,
            tags: vec![format!("t{id}")],
            source_prompt: String::new(),
            confidence: Confidence::Explicit,
            valid_from: None,
            default_valid_from: None,
            valid_to: None,
            due: None,
            statement,
            rules_version: RULES_VERSION,
            evidence: NewEvidence {
                id: EvidenceId::from_bytes([id; 16]),
                span: said.then_some(NewSpan {
                    turn: 0,
                    start: 0,
                    end: 2,
                }),
                text: content.to_owned(),
                observed_at: None,
            },
            vector: VectorDraft::None,
            similar: None,
        };
        let outcome = self.run(Command::Remember(Box::new(Remember {
            tenant: tenant(),
            scope: Scope {
                project: project.to_owned(),
                agent_id: "coder".to_owned(),
                session_id: session.to_owned(),
            },
            namespace: "default".to_owned(),
            origin: Origin::Observe,
            pair: PairId::from_bytes([id; 16]),
            turns: if said { vec![turn] } else { Vec::new() },
            memories: vec![memory],
            links: Vec::new(),
        })));
        match outcome {
            Outcome::Remembered(remembered) => remembered.memories[0].id,
            other => panic!("{other:?}"),
        }
    }

    fn link(&mut self, number: u8, source: MemoryId, relationship: Relationship, target: MemoryId) -> Outcome {
        self.run(Command::StoreLink(StoreLink {
            tenant: tenant(),
            id: LinkId::from_bytes([number; 16]),
            source,
            target,
            relationship,
            weight_thousandths: 1_000,
        }))
    }

    fn merge(&mut self, memories: &[MemoryId], canonical: MemoryId) -> Result<Canonicalized, Rejection> {
        let command = Canonicalize {
            tenant: tenant(),
            memories: memories.to_vec(),
            canonical,
        };
        match self.run(Command::Canonicalize(command)) {
            Outcome::Canonicalized(done) => Ok(*done),
            Outcome::Rejected(rejection) => Err(rejection),
            other => panic!("{other:?}"),
        }
    }

    fn delete(&mut self, id: MemoryId) -> Outcome {
        self.run(Command::DeleteMemory { tenant: tenant(), id })
    }

    fn resolve(&mut self, link: LinkId, winner: MemoryId) {
        let command = ResolveConflict {
            tenant: tenant(),
            link,
            winner: Some(winner),
            note: String::new(),
            valid_to: None,
        };
        let outcome = self.run(Command::ResolveConflict(command));
        assert!(matches!(outcome, Outcome::ConflictResolved { .. }), "{outcome:?}");
    }

    /// Clears in steps of `rows_max` rows. Gives the steps.
    fn clear(&mut self, target: &ClearTarget, rows_max: u32) -> Vec<Cleared> {
        let mut steps: Vec<Cleared> = Vec::new();
        loop {
            let from = steps.last().and_then(|step| step.next.clone());
            if steps.last().is_some_and(|step| step.next.is_none()) {
                return steps;
            }
            assert!(steps.len() < 200, "a clearing ends");
            let command = Clear {
                tenant: tenant(),
                target: target.clone(),
                from,
                rows_max,
            };
            match self.run(Command::Clear(command)) {
                Outcome::Cleared(step) => steps.push(*step),
                other => panic!("{other:?}"),
            }
        }
    }

    fn feed(&self) -> Vec<(ChangeKind, MemoryId)> {
        let mut feed = Vec::new();
        self.rows(|rows| {
            let changes = rows.changes_back(rows.state().changes, 1_000);
            feed = changes
                .into_iter()
                .map(|(_, change)| (change.kind, change.memory))
                .collect();
        });
        feed.reverse();
        feed
    }
}

#[test]
fn f15_a_merge_inside_one_project_moves_links_and_keeps_the_id_resolving() {
    let mut shard = Shard::default();
    let a = shard.store(1, "shop", "s1", "We use Postgres for orders");
    let b = shard.store(2, "shop", "s2", "The order data lives in a PostgreSQL cluster");
    let c = shard.store(3, "shop", "", "Orders are exported every night");
    shard.link(60, c, Relationship::DependsOn, b);
    shard.link(61, a, Relationship::RelatesTo, b);
    let done = shard.merge(&[b, a], a).expect("one project");
    assert_eq!(done.merged, [b]);
    assert_eq!((done.links_moved, done.links_dropped, done.aliases_added), (1, 1, 1));
    shard.rows(|rows| {
        assert!(rows.memory(b).is_none());
        let found = rows.resolved(b).expect("the merged id resolves");
        assert_eq!((found.id, found.evidence_count, found.link_count), (a, 2, 1));
        assert!(
            found
                .aliases
                .iter()
                .any(|alias| alias.text.contains("PostgreSQL cluster"))
        );
        assert!(found.tags.contains(&"t2".to_owned()));
        assert_eq!(
            rows.link_of(c, Relationship::DependsOn, a).map(|l| l.id),
            Some(LinkId::from_bytes([60; 16]))
        );
        let turn = rows.turn(TurnId::from_bytes([102; 16])).expect("the turn stays");
        assert_eq!(turn.memories, [a]);
    });
    // Every command takes the merged id for the memory that took it in.
    let again = shard.merge(&[b], a).expect("a repetition");
    assert!(again.merged.is_empty());
    let linked = shard.link(62, b, Relationship::PartOf, c);
    assert!(
        matches!(linked, Outcome::LinkStored { created: true, .. }),
        "{linked:?}"
    );
    let itself = shard.link(63, b, Relationship::PartOf, a);
    assert!(
        matches!(itself, Outcome::Rejected(Rejection::Invalid { .. })),
        "{itself:?}"
    );
    // The old wording stored anew is found in the merged memory.
    assert_eq!(
        shard.store(4, "shop", "", "The order data lives in a PostgreSQL cluster"),
        a
    );
    let first = shard.delete(b);
    let Outcome::Deleted {
        id,
        deleted: true,
        receipt,
        ..
    } = first
    else {
        panic!("{first:?}");
    };
    assert_eq!(id, a);
    let second = shard.delete(b);
    assert!(matches!(second, Outcome::Deleted { deleted: false, receipt: ref same, .. } if *same == receipt));
}

#[test]
fn f15_a_merge_across_projects_is_refused() {
    let mut shard = Shard::default();
    let a = shard.store(1, "shop", "", "We use Postgres for orders");
    let b = shard.store(2, "bank", "", "The ledger is kept in Oracle");
    let refused = shard.merge(&[b], a).expect_err("two projects");
    assert!(
        matches!(refused, Rejection::Invalid { field: "node_ids", .. }),
        "{refused:?}"
    );
    shard.rows(|rows| assert!(rows.memory(b).is_some()));
}

#[test]
fn a_conflict_between_merged_memories_ends_as_resolved() {
    let mut shard = Shard::default();
    let a = shard.store(1, "shop", "", "The deadline is in May");
    let b = shard.store(2, "shop", "", "Delivery was promised for spring");
    shard.link(60, a, Relationship::Contradicts, b);
    shard.merge(&[b], a).expect("one project");
    shard.rows(|rows| {
        assert!(rows.conflicts_back(false, None, 10).is_empty());
        assert_eq!(rows.memory(a).map(|m| m.open_conflict_count), Some(0));
    });
    assert!(shard.feed().iter().any(|(kind, _)| *kind == ChangeKind::Resolved));
}

#[test]
fn superseded_by_never_names_an_erased_memory() {
    let mut shard = Shard::default();
    let old = shard.store(1, "shop", "", "We use Postgres for orders");
    let new = shard.store(2, "shop", "", "Orders are kept by a supplier");
    shard.link(60, new, Relationship::Updates, old);
    shard.resolve(LinkId::from_bytes([60; 16]), new);
    shard.rows(|rows| assert_eq!(rows.memory(old).and_then(|m| m.superseded_by), Some(new)));
    shard.delete(new);
    shard.rows(|rows| {
        let old = rows.memory(old).expect("the loser stays");
        assert_eq!(old.superseded_by, None);
        assert!(old.valid_to.is_some(), "and stays ended");
    });
}

#[test]
fn what_was_superseded_by_a_merged_memory_names_what_took_it_in() {
    let mut shard = Shard::default();
    let old = shard.store(1, "shop", "", "We use Postgres for orders");
    let new = shard.store(2, "shop", "", "Orders are kept by a supplier");
    let same = shard.store(3, "shop", "", "A supplier holds the order data");
    shard.link(60, new, Relationship::Updates, old);
    shard.resolve(LinkId::from_bytes([60; 16]), new);
    shard.merge(&[new], same).expect("one project");
    shard.rows(|rows| {
        assert_eq!(rows.memory(old).and_then(|m| m.superseded_by), Some(same));
        let link = rows.link(LinkId::from_bytes([60; 16])).expect("moved");
        assert_eq!(link.resolution.and_then(|r| r.winner), Some(same));
    });
}

#[test]
fn the_reason_of_an_open_conflict_follows_an_update_of_one_side() {
    let mut shard = Shard::default();
    let a = shard.store(1, "shop", "", "We use Postgres as the orders database");
    let b = shard.store(2, "shop", "", "We use MySQL as the orders database");
    let mut reason = String::new();
    shard.rows(|rows| {
        let id = rows.conflicts_back(false, None, 10);
        assert_eq!(id.len(), 1, "the two contradict each other");
        reason = rows.link(id[0]).expect("there").reason;
    });
    let content = "We use Oracle as the orders database";
    let statement = read_statement(&StatementInput {
        label: content,
        content,
        kind: Kind::Decision,
        author: "key:a",
        observed_at: Millis(T0),
    });
    shard.run(Command::UpdateMemory(Box::new(UpdateMemory {
        tenant: tenant(),
        id: b,
        expected_version: None,
        based_on_version: 1,
        label: None,
        content: Some(content.to_owned()),
        tags: None,
        valid_from: None,
        valid_to: None,
        statement: Some(statement),
        rules_version: RULES_VERSION,
        note: String::new(),
        vector: None,
    })));
    shard.rows(|rows| {
        let links = rows.links_at(a, 10);
        let link = links.iter().find(|link| link.is_open_conflict()).expect("still open");
        assert!(reason.to_lowercase().contains("mysql"), "{reason}");
        assert!(!link.reason.to_lowercase().contains("mysql"), "{}", link.reason);
        assert!(link.reason.to_lowercase().contains("oracle"), "{}", link.reason);
    });
}

#[test]
fn the_feed_tells_in_order_what_happened_and_a_moment_is_found_in_it() {
    let mut shard = Shard::default();
    let a = shard.store(1, "shop", "s1", "We use Postgres for orders");
    let b = shard.store(2, "shop", "", "Orders are kept by a supplier");
    shard.link(60, b, Relationship::Updates, a);
    shard.resolve(LinkId::from_bytes([60; 16]), b);
    shard.store(3, "shop", "s2", "We use Postgres for orders");
    shard.delete(b);
    let kinds: Vec<ChangeKind> = shard.feed().into_iter().map(|(kind, _)| kind).collect();
    use ChangeKind::{Closed, Created, Deleted, Linked, Resolved};
    assert_eq!(kinds, [Created, Created, Linked, Closed, Resolved, Created, Deleted]);
    shard.rows(|rows| {
        let at = |second: i64| rows.last_change_by(Millis(T0 + second * 1_000));
        assert_eq!([at(0), at(1), at(2), at(3), at(4), at(99)], [0, 1, 2, 3, 5, 7]);
        let change: Change = rows.change(1).expect("the first");
        assert_eq!(
            (change.scope.project.as_str(), change.scope.session_id.as_str()),
            ("shop", "s1")
        );
        let tombstone = rows.tombstone(b).expect("a tombstone");
        let of = tombstone.of.expect("what is left");
        assert_eq!((of.scope.project.as_str(), of.kind), ("shop", Kind::Decision));
    });
}

#[test]
fn clearing_a_session_spares_what_rests_on_others_too() {
    let mut shard = Shard::default();
    let shared = shard.store(1, "shop", "s1", "We use Postgres for orders");
    assert_eq!(shard.store(2, "shop", "s2", "We use Postgres for orders"), shared);
    let alone = shard.store(3, "shop", "s1", "Orders are exported every night");
    let steps = shard.clear(
        &ClearTarget::Session {
            project: None,
            session: "s1".to_owned(),
        },
        1_000,
    );
    let sum = |of: fn(&Cleared) -> u64| steps.iter().map(of).sum::<u64>();
    assert_eq!(sum(|s| s.memories_by_kind.iter().sum()), 1);
    assert_eq!((sum(|s| s.evidence), sum(|s| s.turns), sum(|s| s.sessions)), (1, 2, 1));
    shard.rows(|rows| {
        assert!(rows.memory(alone).is_none() && rows.tombstone(alone).is_some());
        let shared = rows.memory(shared).expect("it rests on another session");
        assert_eq!(shared.scope.session_id, "s2");
        assert_eq!(rows.evidence(shared.id, 10).len(), 1);
        assert!(rows.session("shop", "s1").is_none() && rows.session("shop", "s2").is_some());
        assert_eq!(rows.state().counters.turns, 1);
    });
}

#[test]
fn a_clearing_in_small_steps_erases_what_one_large_step_does_and_nothing_else() {
    for rows_max in [1, 7, 10_000] {
        let mut shard = Shard::default();
        for id in 0..20 {
            shard.store(
                id + 1,
                "shop",
                &format!("s{}", id % 3),
                &format!("Order {id} was sent to customer {id}"),
            );
        }
        let other = shard.store(50, "bank", "s1", "The ledger is kept in Oracle");
        shard.link(60, other, Relationship::RelatesTo, memory_id(1));
        let steps = shard.clear(&ClearTarget::Project(" SHOP ".to_owned()), rows_max);
        assert_eq!(
            rows_max == 10_000,
            steps.len() == 1,
            "{rows_max}: {} steps",
            steps.len()
        );
        let sum = |of: fn(&Cleared) -> u64| steps.iter().map(of).sum::<u64>();
        assert_eq!(sum(|s| s.memories_by_kind.iter().sum()), 20);
        assert_eq!((sum(|s| s.links), sum(|s| s.turns), sum(|s| s.sessions)), (1, 20, 3));
        shard.rows(|rows| {
            let counters = rows.state().counters;
            assert_eq!((counters.memories(), counters.turns, counters.links_total()), (1, 1, 0));
            let shop = rows.project("shop").expect("the name of the project stays");
            assert_eq!((shop.counters.memories(), shop.counters.text_bytes), (0, 0));
            assert_eq!(rows.memory(other).map(|m| m.link_count), Some(0));
        });
        shard.clear(&ClearTarget::All, rows_max);
        shard.rows(|rows| {
            assert_eq!(rows.state().counters.memories(), 0);
            assert_eq!(rows.state().counters.text_bytes, 0);
            assert!(rows.agents(10).is_empty() && rows.sessions(None, 10).is_empty());
        });
    }
}
