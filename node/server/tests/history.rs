//! A whole node, called over gRPC in memory: what became of memories, merging by hand, clearing scopes.

#![allow(clippy::unwrap_used, reason = "a test")]
#![allow(clippy::disallowed_methods, reason = "tasks of a test end with it")]

mod support;

use prost::Message;
use tonic::transport::Channel;
use tonic::{Code, Status};
use waggle_memory::kind::{Kind, Relationship};
use waggle_proto::wire::clear_request::What;
use waggle_proto::wire::history_service_client::HistoryServiceClient;
use waggle_proto::wire::memory_service_client::MemoryServiceClient;
use waggle_proto::wire::*;

use support::Hosted;

/// A node and clients of its services.
struct Running {
    hosted: Hosted,
    memory: MemoryServiceClient<Channel>,
    history: HistoryServiceClient<Channel>,
}

impl Running {
    async fn start() -> Self {
        let hosted = Hosted::start().await;
        Self {
            memory: MemoryServiceClient::new(hosted.channel.clone()),
            history: HistoryServiceClient::new(hosted.channel.clone()),
            hosted,
        }
    }

    async fn end(self) {
        let Self {
            hosted,
            memory,
            history,
        } = self;
        drop((memory, history));
        hosted.end().await;
    }

    fn context(&self, request_id: &str) -> Option<CallContext> {
        Some(self.hosted.context(request_id))
    }

    async fn store(&mut self, scope: Scope, content: &str) -> Vec<u8> {
        let request = StoreMemoryRequest {
            context: self.context(""),
            scope: Some(scope),
            label: content.to_owned(),
            content: content.to_owned(),
            kind: u32::from(Kind::Decision.number()),
            ..StoreMemoryRequest::default()
        };
        let reply = self.memory.store_memory(request).await.unwrap().into_inner();
        reply.stored.unwrap().memory.unwrap().id
    }

    async fn say(&mut self, scope: Scope, text: &str) {
        let request = ObserveRequest {
            context: self.context(""),
            scope: Some(scope),
            user_message: text.to_owned(),
            ..ObserveRequest::default()
        };
        self.memory.observe(request).await.unwrap();
    }

    async fn link(&mut self, source: &[u8], relationship: Relationship, target: &[u8]) -> Link {
        let request = StoreLinkRequest {
            context: self.context(""),
            source: source.to_vec(),
            target: target.to_vec(),
            relationship: u32::from(relationship.number()),
            weight_thousandths: 1_000,
        };
        self.memory
            .store_link(request)
            .await
            .unwrap()
            .into_inner()
            .link
            .unwrap()
    }

    async fn update(&mut self, id: &[u8], content: &str) {
        let request = UpdateMemoryRequest {
            context: self.context(""),
            id: id.to_vec(),
            content: Some(content.to_owned()),
            ..UpdateMemoryRequest::default()
        };
        self.memory.update_memory(request).await.unwrap();
    }

    async fn delete(&mut self, id: &[u8]) -> DeleteMemoryReply {
        let request = DeleteMemoryRequest {
            context: self.context(""),
            id: id.to_vec(),
        };
        self.memory.delete_memory(request).await.unwrap().into_inner()
    }

    async fn history(&mut self, id: &[u8]) -> HistoryReply {
        let request = HistoryRequest {
            context: self.context(""),
            id: id.to_vec(),
            max_depth: 2,
        };
        self.history.history(request).await.unwrap().into_inner()
    }

    async fn timeline(&mut self, change: impl FnOnce(&mut TimelineRequest)) -> Result<TimelineReply, Status> {
        let mut request = TimelineRequest {
            context: self.context(""),
            limit: 25,
            max_depth: 2,
            include_evidence: true,
            ..TimelineRequest::default()
        };
        change(&mut request);
        Ok(self.history.timeline(request).await?.into_inner())
    }

    async fn conflicts(&mut self, scope: Scope, include_resolved: bool) -> Vec<Conflict> {
        let request = ListConflictsRequest {
            context: self.context(""),
            scope: Some(scope),
            include_resolved,
            limit: 25,
            until: None,
        };
        self.history
            .list_conflicts(request)
            .await
            .unwrap()
            .into_inner()
            .conflicts
    }

    async fn diff(&mut self, scope: Scope, since: i64) -> DiffReply {
        let request = DiffRequest {
            context: self.context(""),
            scope: Some(scope),
            since,
            until: None,
        };
        self.history.diff(request).await.unwrap().into_inner()
    }

    async fn clear(&mut self, request_id: &str, change: impl FnOnce(&mut ClearRequest)) -> Result<ClearReply, Status> {
        let mut request = ClearRequest {
            context: self.context(request_id),
            what: What::All.into(),
            ..ClearRequest::default()
        };
        change(&mut request);
        Ok(self.history.clear(request).await?.into_inner())
    }
}

fn project(name: &str) -> Scope {
    Scope {
        project: name.to_owned(),
        ..Scope::default()
    }
}

fn session(project: &str, session: &str) -> Scope {
    Scope {
        project: project.to_owned(),
        session_id: session.to_owned(),
        ..Scope::default()
    }
}

fn kinds_of_turns(reply: &QueryReply) -> Vec<(String, bool)> {
    reply
        .turns
        .iter()
        .map(|turn| (turn.text.clone(), turn.superseded))
        .collect()
}

fn kinds(reply: &TimelineReply) -> Vec<&str> {
    reply.items.iter().map(|item| item.kind.as_str()).collect()
}

fn code_of(status: &Status) -> String {
    ErrorDetail::decode(status.details()).unwrap().code
}

#[tokio::test(flavor = "multi_thread")]
async fn f1_f19_the_past_of_a_memory_is_told_from_either_end_of_a_link() {
    let mut node = Running::start().await;
    let reason = node.store(project("shop"), "The auditors demand data in Europe").await;
    let choice = node.store(project("shop"), "We host the shop in Frankfurt").await;
    node.link(&choice, Relationship::DependsOn, &reason).await;
    node.update(&choice, "We host the shop in Paris").await;
    node.update(&choice, "We host the shop in Dublin").await;
    let history = node.history(&choice).await;
    let versions: Vec<(u32, &str, &str)> = history
        .versions
        .iter()
        .map(|v| (v.version, v.reason.as_str(), v.content.as_str()))
        .collect();
    assert_eq!(
        versions,
        [
            (3, "update", "We host the shop in Dublin"),
            (2, "update", "We host the shop in Paris"),
            (1, "store", "We host the shop in Frankfurt"),
        ]
    );
    assert!(history.versions.iter().all(|version| version.author == "key:a"));
    assert_eq!(history.versions[0].changed, ["content"]);
    assert_eq!(history.evidence.len(), 3);
    // F1: the target of a link is as good a start as its source.
    let target = node.history(&reason).await;
    assert_eq!(target.related.len(), 1);
    assert_eq!(target.links.len(), 1);
    let around = node.timeline(|request| request.id = reason.clone()).await.unwrap();
    let seen = kinds(&around);
    for kind in ["node_created", "edge_depends_on", "node_updated", "evidence"] {
        assert!(seen.contains(&kind), "{kind} in {seen:?}");
    }
    assert!(
        around.items.windows(2).all(|pair| pair[0].at >= pair[1].at),
        "newest first"
    );
    let both = node
        .timeline(|request| {
            request.id = reason.clone();
            request.query = "hosting".to_owned();
        })
        .await
        .unwrap_err();
    assert_eq!(
        (both.code(), code_of(&both).as_str()),
        (Code::InvalidArgument, "validation_failed")
    );
    node.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn f4_a_turn_is_superseded_for_the_part_of_it_that_ended() {
    let mut node = Running::start().await;
    let said = "We chose Postgres as the orders database. I prefer short meetings in the morning.";
    let observed = ObserveRequest {
        context: node.context(""),
        scope: Some(session("shop", "s1")),
        user_message: said.to_owned(),
        ..ObserveRequest::default()
    };
    let observed = node.memory.observe(observed).await.unwrap().into_inner();
    let memories: Vec<Memory> = observed.stored.into_iter().filter_map(|stored| stored.memory).collect();
    assert!(memories.len() >= 2, "{memories:?}");
    let old = memories
        .iter()
        .find(|memory| memory.content.contains("Postgres"))
        .unwrap();
    let new = node.store(project("shop"), "Orders are kept by a supplier").await;
    let link = node.link(&new, Relationship::Updates, &old.id).await;
    let resolve = ResolveConflictRequest {
        context: node.context(""),
        link_id: link.id,
        winner: new,
        ..ResolveConflictRequest::default()
    };
    node.memory.resolve_conflict(resolve).await.unwrap();
    for (query, superseded) in [
        ("which orders database was chosen", true),
        ("which meetings are preferred", false),
    ] {
        let asked = QueryRequest {
            context: node.context(""),
            scope: Some(project("shop")),
            query: query.to_owned(),
            max_nodes: 5,
            mode: query_request::Mode::Replay.into(),
            ..QueryRequest::default()
        };
        let found = node.memory.query(asked).await.unwrap().into_inner();
        assert_eq!(kinds_of_turns(&found), [(said.to_owned(), superseded)], "{query}");
        // Two memories of the turn are left, and the one stored beside them.
        assert_eq!(found.total_in_scope, 2, "{query}");
    }
    node.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn f12_f20_every_scope_field_filters_and_deleted_memories_show_as_deleted() {
    let mut node = Running::start().await;
    let kept = node.store(session("shop", "s1"), "We host the shop in Frankfurt").await;
    let gone = node
        .store(
            session("shop", "s2"),
            "The password of the router is pinned to the wall",
        )
        .await;
    node.store(session("bank", "s1"), "The ledger is kept in Oracle").await;
    let one = node
        .store(project("bank"), "We use Postgres as the orders database")
        .await;
    let two = node.store(project("bank"), "We use MySQL as the orders database").await;
    let receipt = node.delete(&gone).await.receipt;
    let all = node.timeline(|_| {}).await.unwrap();
    assert_eq!(kinds(&all)[0], "node_deleted");
    assert!(
        all.items
            .iter()
            .all(|item| !item.label.contains("password") && !item.summary.contains("password")),
        "an erased text is nowhere"
    );
    let shop = node
        .timeline(|request| request.scope = Some(project("SHOP")))
        .await
        .unwrap();
    assert_eq!(kinds(&shop), ["node_deleted", "node_created", "node_created"]);
    let s1 = node
        .timeline(|request| request.scope = Some(session("shop", "s1")))
        .await
        .unwrap();
    assert_eq!(kinds(&s1), ["node_created"]);
    assert_eq!(s1.items[0].memory_id, kept);
    assert!(node.conflicts(project("shop"), true).await.is_empty());
    let conflicts = node.conflicts(project("bank"), false).await;
    assert_eq!(conflicts.len(), 1, "{conflicts:?}");
    assert_eq!(conflicts[0].source.as_ref().unwrap().id, two);
    assert_eq!(conflicts[0].target.as_ref().unwrap().id, one);
    let diff = node.diff(project("shop"), 0).await;
    assert_eq!(diff.added.len(), 1);
    assert_eq!(
        (diff.deleted.len(), diff.deleted[0].receipt.as_str()),
        (1, receipt.as_str())
    );
    assert_eq!(diff.deleted[0].content_hash.len(), 16);
    let bank = node.diff(project("bank"), 0).await;
    assert_eq!(
        (bank.added.len(), bank.contradictions.len(), bank.deleted.len()),
        (3, 1, 0)
    );
    let erased = node.history(&gone).await;
    assert!(erased.memory.is_none());
    assert_eq!(erased.tombstone.unwrap().receipt, receipt);
    node.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn f15_a_merged_id_keeps_resolving_in_every_call_that_takes_one() {
    let mut node = Running::start().await;
    let canonical = node.store(project("shop"), "We host the shop in Frankfurt").await;
    let merged = node
        .store(project("shop"), "Our web store runs in a German data centre")
        .await;
    let other = node.store(project("shop"), "The auditors demand data in Europe").await;
    node.link(&merged, Relationship::DependsOn, &other).await;
    let request = CanonicalizeRequest {
        context: node.context("m1"),
        ids: vec![merged.clone()],
        canonical: canonical.clone(),
    };
    let first = node.history.canonicalize(request.clone()).await.unwrap().into_inner();
    assert_eq!(
        (first.merged.as_slice(), first.links_moved),
        ([merged.clone()].as_slice(), 1)
    );
    let again = node.history.canonicalize(request).await.unwrap().into_inner();
    assert_eq!(again.merged, first.merged, "a retry gives the first answer");
    let history = node.history(&merged).await;
    assert_eq!(history.redirected_from, merged);
    assert_eq!(history.memory.unwrap().id, canonical);
    let related = RelatedRequest {
        context: node.context(""),
        id: merged.clone(),
        max_depth: 1,
        include_invalidated: false,
        limit: 10,
    };
    let related = node.memory.related(related).await.unwrap().into_inner();
    let ids: Vec<Vec<u8>> = related.nodes.iter().map(|n| n.memory.clone().unwrap().id).collect();
    assert_eq!(ids, [canonical.clone(), other.clone()]);
    node.update(&merged, "We host the shop in Berlin").await;
    let linked = node.link(&other, Relationship::RelatesTo, &merged).await;
    assert_eq!(linked.target, canonical);
    let found = QueryRequest {
        context: node.context(""),
        scope: Some(project("shop")),
        query: "German data centre".to_owned(),
        max_nodes: 5,
        ..QueryRequest::default()
    };
    let found = node.memory.query(found).await.unwrap().into_inner();
    assert!(
        found
            .nodes
            .iter()
            .any(|node| node.memory.as_ref().unwrap().id == canonical),
        "its wording is searched"
    );
    let bank = node.store(project("bank"), "The ledger is kept in Oracle").await;
    let across = CanonicalizeRequest {
        context: node.context(""),
        ids: vec![bank],
        canonical,
    };
    let refused = node.history.canonicalize(across).await.unwrap_err();
    assert_eq!(code_of(&refused), "validation_failed");
    assert!(node.delete(&merged).await.deleted);
    assert!(node.history(&merged).await.tombstone.is_some());
    node.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clearing_asks_first_counts_in_a_dry_run_and_repeats_its_answer() {
    let mut node = Running::start().await;
    for number in 0..30 {
        let scope = session("shop", if number % 2 == 0 { "s1" } else { "s2" });
        node.say(
            scope,
            &format!("We decided that order {number} goes to customer {number}."),
        )
        .await;
    }
    let kept = node.store(project("bank"), "The ledger is kept in Oracle").await;
    let asked = node.clear("", |r| (r.what, r.project) = (What::Project.into(), "shop".to_owned()));
    let asked = asked.await.unwrap_err();
    assert_eq!(code_of(&asked), "confirm_required");
    assert!(asked.message().contains("30 transcript turns"), "{}", asked.message());
    let dry = node
        .clear("", |r| {
            (r.what, r.project) = (What::Project.into(), "shop".to_owned());
            (r.confirm, r.dry_run) = (true, true);
        })
        .await
        .unwrap();
    let confirmed = |r: &mut ClearRequest| {
        (r.what, r.project, r.confirm) = (What::Project.into(), "shop".to_owned(), true);
    };
    let done = node.clear("c1", confirmed).await.unwrap();
    assert!(dry.dry_run && !done.dry_run && !done.receipt.is_empty());
    assert_eq!(
        (&dry.memories_by_kind, dry.links, dry.turns, dry.sessions),
        (&done.memories_by_kind, done.links, done.turns, done.sessions)
    );
    assert_eq!((done.turns, done.sessions), (30, 2));
    assert_eq!(
        node.clear("c1", confirmed).await.unwrap(),
        done,
        "a retry gives the first answer"
    );
    let empty = node.clear("c2", confirmed).await.unwrap();
    assert_eq!((empty.turns, empty.memories_by_kind.iter().sum::<u64>()), (0, 0));
    let found = QueryRequest {
        context: node.context(""),
        query: "order customer".to_owned(),
        scope: Some(project("shop")),
        max_nodes: 5,
        ..QueryRequest::default()
    };
    let found = node.memory.query(found).await.unwrap().into_inner();
    assert_eq!((found.nodes.len(), found.turns.len()), (0, 0));
    assert_eq!(found.empty_reason, "no_memories_in_scope");
    assert_eq!(node.history(&kept).await.memory.unwrap().id, kept);
    let all = node.clear("c3", |r| r.confirm = true).await.unwrap();
    assert_eq!(all.memories_by_kind.iter().sum::<u64>(), 1);
    node.end().await;
}
