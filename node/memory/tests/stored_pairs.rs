//! Two statements stored one after the other, through the rules and apply as the node does it: what becomes of the
//! second. Rows carry the ids of the memory semantics' table of pairs.

use waggle_memory::apply::apply;
use waggle_memory::command::{Command, Entry, NewEvidence, NewMemory, Remember, ResolveConflict};
use waggle_memory::id::{EvidenceId, LinkId, MemoryId, PairId, Principal, TenantId};
use waggle_memory::invariant;
use waggle_memory::kind::{Confidence, Kind, Origin};
use waggle_memory::memory::{Memory, State, VectorDraft};
use waggle_memory::outcome::{Outcome, Remembered};
use waggle_memory::read::{StatementInput, read_statement};
use waggle_memory::scope::Scope;
use waggle_memory::tables::model::Model;
use waggle_memory::tables::typed::TenantRows;
use waggle_memory::time::{Millis, Stamp};

/// 10 February 2027, a Wednesday.
const START: i64 = 1_802_217_600_000;

struct Shard {
    tables: Model,
    clock: i64,
    ids: u128,
}

impl Shard {
    fn new() -> Self {
        Self {
            tables: Model::default(),
            clock: START,
            ids: 0,
        }
    }

    fn id(&mut self) -> [u8; 16] {
        self.ids += 1;
        self.ids.to_be_bytes()
    }

    fn tenant() -> TenantId {
        "acme".parse().expect("a valid tenant id")
    }

    fn run(&mut self, author: &str, command: Command) -> Outcome {
        self.clock += 60_000;
        let entry = Entry {
            stamp: Stamp {
                wall: Millis(self.clock),
                logical: 0,
            },
            principal: Principal(author.to_owned()),
            request: None,
            command,
        };
        let outcome = apply(&mut self.tables, &entry).outcome;
        let violations = invariant::check(self.tables.rows());
        assert!(violations.is_empty(), "{violations:?}");
        outcome
    }

    fn store(&mut self, author: &str, project: &str, session: &str, kind: Kind, content: &str) -> Remembered {
        let label: String = content.split_whitespace().take(8).collect::<Vec<_>>().join(" ");
        let observed_at = Millis(self.clock);
        let statement = read_statement(&StatementInput {
            label: &label,
            content,
            kind,
            author,
            observed_at,
        });
        let memory = NewMemory {
            id: MemoryId::from_bytes(self.id()),
            label,
            content: content.to_owned(),
            kind,
            tags: Vec::new(),
            source_prompt: String::new(),
            confidence: Confidence::Explicit,
            valid_from: None,
            default_valid_from: None,
            valid_to: None,
            due: None,
            statement,
            rules_version: 1,
            evidence: NewEvidence {
                id: EvidenceId::from_bytes(self.id()),
                span: None,
                text: content.to_owned(),
                observed_at: None,
            },
            vector: VectorDraft::None,
            similar: None,
        };
        let command = Remember {
            tenant: Self::tenant(),
            scope: Scope {
                project: project.to_owned(),
                agent_id: String::new(),
                session_id: session.to_owned(),
            },
            namespace: "default".to_owned(),
            origin: Origin::Manual,
            pair: PairId::from_bytes(self.id()),
            turns: Vec::new(),
            memories: vec![memory],
            links: Vec::new(),
        };
        match self.run(author, Command::Remember(Box::new(command))) {
            Outcome::Remembered(remembered) => *remembered,
            other => panic!("{content}: {other:?}"),
        }
    }

    fn rows(&self) -> (TenantId, &Model) {
        (Self::tenant(), &self.tables)
    }

    fn memory(&self, id: MemoryId) -> Memory {
        let (tenant, tables) = self.rows();
        TenantRows::new(tables, &tenant).memory(id).expect("it was stored")
    }

    /// What the second of two stored statements did, in words.
    fn outcome(&self, first: MemoryId, second: &Remembered) -> String {
        let (tenant, tables) = self.rows();
        let stored = &second.memories[0];
        let mut words = match stored.merged {
            Some(reason) => format!("merge {}", reason.word()),
            None => "keep".to_owned(),
        };
        for link in TenantRows::new(tables, &tenant).links_at(stored.id, 100) {
            let resolved = link
                .resolution
                .as_ref()
                .map_or("", |r| if r.resolved { " resolved" } else { " open" });
            words += &format!(", {}{resolved}", link.relationship);
        }
        if self.memory(first).state_at(Millis(self.clock)) == State::Closed {
            words += ", first closed";
        }
        words
    }
}

fn pair(kind: Kind, first: &str, second: &str) -> String {
    let mut shard = Shard::new();
    let first = shard.store("key:a", "p", "s1", kind, first).memories[0].id;
    let second = shard.store("key:a", "p", "s2", kind, second);
    shard.outcome(first, &second)
}

#[test]
fn pairs_of_facts() {
    for (id, first, second, expected) in [
        ("P01", "The API uses gRPC", "the  api uses GRPC", "merge exact_content"),
        (
            "P05",
            "JWT tokens expire after 15 minutes",
            "JWTs expire after fifteen minutes",
            "merge canonical_form",
        ),
        (
            "P10",
            "The deploy runs every Friday at 5 pm",
            "Deploys run every Friday at 17:00",
            "merge canonical_form",
        ),
        (
            "P12",
            "Backend framework is FastAPI",
            "FastAPI is the backend framework",
            "merge canonical_form",
        ),
        (
            "P16",
            "The feature flag is on for EU users",
            "The feature flag is not on for EU users",
            "keep, contradicts open",
        ),
        (
            "P18",
            "The service is enabled in production",
            "The service is disabled in production",
            "keep, contradicts open",
        ),
        (
            "P19",
            "JWT tokens expire after 15 minutes",
            "JWT tokens expire after 60 minutes",
            "keep, contradicts open",
        ),
        (
            "P22",
            "Alice owns the payments service",
            "Bob owns the payments service",
            "keep, contradicts open",
        ),
        ("P23", "Alice works on payments", "Bob works on payments", "keep"),
        (
            "P30",
            "The user lives in Delhi",
            "The user lives in Mumbai",
            "keep, contradicts open",
        ),
        (
            "P31",
            "The user lives in Delhi",
            "The user moved from Delhi to Mumbai",
            "keep, updates resolved, first closed",
        ),
        (
            "P32",
            "The API uses gRPC between services",
            "The API uses gRPC",
            "keep, derived_from",
        ),
        (
            "P32",
            "The API uses gRPC",
            "The API uses gRPC between services",
            "keep, derived_from",
        ),
        ("P33", "Billing depends on auth", "Auth depends on billing", "keep"),
        (
            "P34",
            "The service runs Python 3.1",
            "The service runs Python 3.10",
            "keep, contradicts open",
        ),
    ] {
        assert_eq!(pair(Kind::Fact, first, second), expected, "{id}: {first} / {second}");
    }
}

#[test]
fn pairs_of_decisions_and_preferences() {
    for (id, kind, first, second, expected) in [
        (
            "P09",
            Kind::Decision,
            "We use Postgres in production",
            "We use PostgreSQL in production",
            "merge canonical_form",
        ),
        (
            "P24",
            Kind::Decision,
            "We decided to use PostgreSQL",
            "We decided to use MySQL",
            "keep, contradicts open",
        ),
        (
            "P25",
            Kind::Decision,
            "We use Redis for caching",
            "We use PostgreSQL for storage",
            "keep",
        ),
        (
            "P27",
            Kind::Decision,
            "We will deploy on Fargate",
            "We moved to Kubernetes",
            "keep, updates open",
        ),
        (
            "P15",
            Kind::Preference,
            "I like dark mode",
            "I do not like dark mode",
            "keep, contradicts open",
        ),
        (
            "P21",
            Kind::Preference,
            "I prefer tabs",
            "I prefer spaces",
            "keep, contradicts open",
        ),
    ] {
        assert_eq!(pair(kind, first, second), expected, "{id}: {first} / {second}");
    }
}

#[test]
fn p02_the_same_text_of_two_sessions_is_one_memory_with_the_evidence_of_both() {
    let mut shard = Shard::new();
    let first = shard
        .store("key:a", "p", "s1", Kind::Fact, "The API uses gRPC")
        .memories[0]
        .id;
    shard.store("key:a", "p", "s2", Kind::Fact, "The API uses gRPC");
    let (tenant, tables) = shard.rows();
    let sessions: Vec<String> = TenantRows::new(tables, &tenant)
        .evidence(first, 10)
        .into_iter()
        .map(|(_, e)| e.scope.session_id)
        .collect();
    assert_eq!(sessions, ["s2", "s1"]);
}

#[test]
fn p13_three_wordings_are_one_memory_with_two_aliases_and_three_pieces_of_evidence() {
    let mut shard = Shard::new();
    let first = shard
        .store("key:a", "p", "", Kind::Fact, "JWT tokens expire after 15 minutes")
        .memories[0]
        .id;
    shard.store("key:a", "p", "", Kind::Fact, "JWTs expire after fifteen minutes");
    shard.store("key:a", "p", "", Kind::Fact, "JWTs expire after 15 min");
    let memory = shard.memory(first);
    assert_eq!((memory.aliases.len(), memory.evidence_count, memory.version), (2, 3, 3));
    // A wording that is known already adds evidence and nothing else.
    let again = shard.store("key:a", "p", "", Kind::Fact, "JWTs expire after fifteen minutes");
    assert_eq!(again.memories[0].merged.map(|r| r.word()), Some("exact_content"));
    assert_eq!(shard.memory(first).aliases.len(), 2);
}

#[test]
fn p37_projects_and_the_tenant_are_apart() {
    let mut shard = Shard::new();
    for project in ["y", "", "z"] {
        let stored = shard.store("key:a", project, "", Kind::Note, "Another item");
        assert_eq!(stored.memories[0].merged, None, "project '{project}'");
    }
}

#[test]
fn p38_i_of_two_authors_are_two_people() {
    let mut shard = Shard::new();
    let first = shard
        .store("key:a", "p", "", Kind::Preference, "I prefer tabs")
        .memories[0]
        .id;
    let same = shard.store("key:b", "p", "", Kind::Preference, "I prefer tabs");
    assert_eq!(shard.outcome(first, &same), "keep");
    let other = shard.store("key:b", "p", "", Kind::Preference, "I prefer spaces");
    // b contradicts b's own earlier word, and not a's.
    let (tenant, tables) = shard.rows();
    let against: Vec<MemoryId> = TenantRows::new(tables, &tenant)
        .links_at(other.memories[0].id, 10)
        .iter()
        .map(|link| link.other_end(other.memories[0].id))
        .collect();
    assert_eq!(against, [same.memories[0].id]);
}

#[test]
fn p41_a_closed_memory_takes_no_merge() {
    let mut shard = Shard::new();
    let mysql = shard
        .store("key:a", "p", "", Kind::Decision, "We use MySQL as our database")
        .memories[0]
        .id;
    let switched = shard.store(
        "key:a",
        "p",
        "",
        Kind::Decision,
        "We switched our database from MySQL to PostgreSQL",
    );
    assert_eq!(
        shard.memory(mysql).state_at(Millis(shard.clock)),
        State::Closed,
        "{switched:?}"
    );
    let again = shard.store("key:a", "p", "", Kind::Decision, "We use MySQL as our database");
    assert_eq!(again.memories[0].merged, None);
    assert_eq!(shard.memory(mysql).state_at(Millis(shard.clock)), State::Closed);
}

#[test]
fn a_resolution_closes_the_loser_and_can_be_reversed() {
    let mut shard = Shard::new();
    let first = shard
        .store("key:a", "p", "", Kind::Fact, "JWT tokens expire after 15 minutes")
        .memories[0]
        .id;
    let second = shard.store("key:a", "p", "", Kind::Fact, "JWT tokens expire after 60 minutes");
    let (link, second): (LinkId, MemoryId) = (second.conflicts[0], second.memories[0].id);
    let resolve = |shard: &mut Shard, winner| {
        let command = ResolveConflict {
            tenant: Shard::tenant(),
            link,
            winner,
            note: String::new(),
            valid_to: None,
        };
        shard.run("key:a", Command::ResolveConflict(command))
    };
    resolve(&mut shard, Some(second));
    assert_eq!(shard.memory(first).superseded_by, Some(second));
    assert_eq!(shard.memory(first).state_at(Millis(shard.clock)), State::Closed);
    resolve(&mut shard, Some(first));
    assert_eq!(shard.memory(first).superseded_by, None);
    assert_eq!(shard.memory(first).state_at(Millis(shard.clock)), State::Current);
    assert_eq!(shard.memory(second).state_at(Millis(shard.clock)), State::Closed);
    // Both stay: nobody is superseded any more.
    resolve(&mut shard, None);
    assert_eq!(shard.memory(second).state_at(Millis(shard.clock)), State::Current);
}

#[test]
fn e18_what_is_used_for_nothing_any_more_closes_every_use_of_it() {
    let ended = "We're no longer using MongoDB.";
    for (first, second, expected) in [
        ("We use MongoDB", ended, "keep, updates resolved, first closed"),
        (
            "We use MongoDB for sessions",
            ended,
            "keep, updates resolved, first closed",
        ),
        (
            "We decided to use MongoDB for the ledger.",
            ended,
            "keep, updates resolved, first closed",
        ),
        (
            "We decided to use Zephyrix",
            "We stopped using Zephyrix.",
            "keep, updates resolved, first closed",
        ),
        // What ends is the use for one thing, or of another thing.
        (
            "We use MongoDB for sessions",
            "We no longer use MongoDB for logs.",
            "keep",
        ),
        ("We use MongoDB", "We no longer use MongoDB for logs.", "keep"),
        ("We use Redis for sessions", ended, "keep"),
        ("I use MongoDB for sessions", ended, "keep"),
    ] {
        assert_eq!(pair(Kind::Decision, first, second), expected, "{first} / {second}");
    }
}

#[test]
fn p15_a_conflict_of_yes_and_no_says_what_was_said_and_denied() {
    let mut shard = Shard::new();
    shard.store("key:a", "p", "", Kind::Preference, "I like dark mode");
    let second = shard.store("key:a", "p", "", Kind::Preference, "I do not like dark mode");
    let (tenant, tables) = shard.rows();
    let link = TenantRows::new(tables, &tenant)
        .link(second.conflicts[0])
        .expect("a conflict");
    assert_eq!(link.reason, "said and denied: i like dark mode");
}
