//! Hand-offs to a whole node, called over gRPC in memory: what is stored, what it points to, and that neither haste nor
//! an early end does anything twice.

#![allow(clippy::unwrap_used, reason = "a test")]
#![allow(clippy::disallowed_methods, reason = "tasks of a test end with it")]

mod support;

use tonic::Code;
use tonic::transport::Channel;
use waggle_proto::wire::memory_service_client::MemoryServiceClient;
use waggle_proto::wire::query_request::Mode;
use waggle_proto::wire::transcript_service_client::TranscriptServiceClient;
use waggle_proto::wire::*;

use support::Hosted;

struct Running {
    hosted: Hosted,
    memory: MemoryServiceClient<Channel>,
    transcripts: TranscriptServiceClient<Channel>,
}

impl Running {
    async fn start() -> Self {
        let hosted = Hosted::start().await;
        Self {
            memory: MemoryServiceClient::new(hosted.channel.clone()),
            transcripts: TranscriptServiceClient::new(hosted.channel.clone()),
            hosted,
        }
    }

    async fn end(self) {
        let Self {
            hosted,
            memory,
            transcripts,
        } = self;
        drop((memory, transcripts));
        hosted.end().await;
    }

    fn request(&self, session: &str, messages: Vec<HandoffMessage>) -> HandoffRequest {
        HandoffRequest {
            context: Some(self.context()),
            scope: Some(Scope {
                project: "p".to_owned(),
                session_id: session.to_owned(),
                ..Scope::default()
            }),
            messages,
            time_ms: 30_000,
            ..HandoffRequest::default()
        }
    }

    fn context(&self) -> CallContext {
        self.hosted.context("one")
    }

    async fn handoff(&mut self, request: HandoffRequest) -> HandoffReply {
        self.transcripts.handoff(request).await.unwrap().into_inner()
    }
}

fn message(role: u32, text: &str, id: &str) -> HandoffMessage {
    HandoffMessage {
        role,
        text: text.to_owned(),
        timestamp: None,
        message_id: id.to_owned(),
    }
}

/// User and assistant, so often.
fn conversation(pairs: usize) -> Vec<HandoffMessage> {
    (0..pairs)
        .flat_map(|number| {
            let said = format!("We decided to keep shelf {number} for product {number}.");
            [
                message(1, &said, &format!("u{number}")),
                message(2, "Noted.", &format!("a{number}")),
            ]
        })
        .collect()
}

#[tokio::test]
async fn memories_rest_on_the_very_message_of_a_block() {
    let mut running = Running::start().await;
    let messages = vec![
        message(3, "Be brief.", ""),
        message(1, "We decided to use PostgreSQL for orders.", ""),
        message(4, "tool output", ""),
        message(1, "We decided to write the gateway in Rust.", ""),
        message(2, "Noted.", ""),
    ];
    let reply = running.handoff(running.request("s", messages)).await;
    assert_eq!((reply.records_written, reply.logical_turns), (5, 1));
    assert!(reply.memories_created >= 2, "{reply:?}");
    let query = QueryRequest {
        context: Some(running.context()),
        query: "What did we decide about PostgreSQL and Rust?".to_owned(),
        max_nodes: 20,
        mode: Mode::Replay.into(),
        ..QueryRequest::default()
    };
    let turns = running.memory.query(query).await.unwrap().into_inner().turns;
    let memories_of = |words: &str| {
        let turn = turns.iter().find(|turn| turn.text.contains(words)).unwrap();
        (turn.turn_index, turn.role, turn.memory_ids.clone())
    };
    let (database, language) = (memories_of("PostgreSQL"), memories_of("Rust"));
    assert_eq!((database.0, database.1), (1, 1));
    assert_eq!((language.0, language.1), (3, 1));
    assert!(!database.2.is_empty() && !language.2.is_empty());
    assert!(database.2.iter().all(|memory| !language.2.contains(memory)));
    running.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn identical_hand_offs_at_one_moment_are_one() {
    let running = Running::start().await;
    let calls = (0..4).map(|_| {
        let mut client = running.transcripts.clone();
        let request = running.request("s", conversation(20));
        tokio::spawn(async move { client.handoff(request).await.unwrap().into_inner() })
    });
    let calls: Vec<_> = calls.collect();
    let mut sums = (0, 0, 0);
    for call in calls {
        let reply = call.await.unwrap();
        assert_eq!(reply.records_written + reply.records_skipped, 40);
        sums.0 += reply.records_written;
        sums.1 += reply.logical_turns;
        sums.2 += reply.memories_created;
    }
    assert_eq!((sums.0, sums.1), (40, 20));
    let mut running = running;
    let again = running.handoff(running.request("s", conversation(20))).await;
    assert_eq!(
        (again.records_written, again.logical_turns, again.memories_created),
        (0, 0, 0)
    );
    let stats = StatsRequest {
        context: Some(running.context()),
        ..StatsRequest::default()
    };
    let stats = running.memory.stats(stats).await.unwrap().into_inner();
    assert_eq!(stats.memories, u64::from(sums.2));
    running.end().await;
}

#[tokio::test]
async fn a_hand_off_that_ended_early_is_completed_by_the_next() {
    let mut running = Running::start().await;
    let (mut written, mut turns, mut calls, mut time_ms) = (0, 0, 0, 0);
    loop {
        let request = HandoffRequest {
            time_ms,
            ..running.request("s", conversation(60))
        };
        let reply = running.handoff(request).await;
        written += reply.records_written;
        turns += reply.logical_turns;
        calls += 1;
        if reply.messages_left == 0 && reply.logical_turns_left == 0 {
            break;
        }
        assert!(calls < 100, "{reply:?}");
        // From no time at all to enough: the end comes before, between and after the steps.
        time_ms += 5;
    }
    assert!(calls > 1);
    assert_eq!((written, turns), (120, 60));
    running.end().await;
}

#[tokio::test]
async fn what_a_node_refuses_it_refuses_before_it_stores() {
    let mut running = Running::start().await;
    running.handoff(running.request("s", conversation(1))).await;
    for (messages, code, field) in [
        (
            vec![message(1, "new", "n"), message(1, "other words", "u0")],
            Code::AlreadyExists,
            "messages[1]",
        ),
        (
            vec![message(1, "new", "n"), message(9, "x", "")],
            Code::InvalidArgument,
            "messages[1].role",
        ),
        (
            vec![message(1, "new", "n"), message(1, " ", "")],
            Code::InvalidArgument,
            "messages[1].content",
        ),
    ] {
        let refused = running
            .transcripts
            .handoff(running.request("s", messages))
            .await
            .unwrap_err();
        assert_eq!(refused.code(), code, "{refused:?}");
        assert!(refused.message().contains(field), "{refused:?}");
    }
    let dry = HandoffRequest {
        dry_run: true,
        ..running.request("s", conversation(2))
    };
    let foreseen = running.handoff(dry).await;
    assert_eq!(
        (
            foreseen.records_written,
            foreseen.records_skipped,
            foreseen.logical_turns
        ),
        (2, 2, 1)
    );
    let done = running.handoff(running.request("s", conversation(2))).await;
    assert_eq!(
        (done.records_written, done.records_skipped, done.logical_turns),
        (2, 2, 1)
    );
    running.end().await;
}
