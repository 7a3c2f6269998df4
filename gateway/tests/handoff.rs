//! The route of hand-offs before a scripted node: who may, what is refused, what travels, what is answered.

mod support;

use bytes::Bytes;
use http::{Method, StatusCode};
use http_body_util::Full;
use serde_json::{Value, json};
use support::stub::failure;
use support::{Reply, Running};
use waggle_memory::meta::KeyScopes;
use waggle_proto::wire::HandoffReply;
use waggle_proto::wire::error_detail::Family;

const PATH: &str = "/api/transcripts/handoff";

fn transcript() -> Value {
    json!({
        "project": "P", "session_id": "s", "source": "chat",
        "messages": [
            {"role": "user", "content": "hello", "message_id": "m1", "timestamp": "2026-01-02T03:04:05Z"},
            {"role": "assistant", "content": "hi"},
        ],
    })
}

fn code(reply: &Reply) -> (u16, String) {
    let code = reply.body["error_code"].as_str().unwrap_or_default();
    (reply.status.as_u16(), code.to_owned())
}

#[tokio::test]
async fn a_transcript_travels_as_it_is_and_the_report_says_what_was_done() {
    let running = Running::start().await;
    let key = running.key(KeyScopes::GRAPH_WRITE);
    *running.stub.handoff_reply.lock().expect("reply") = HandoffReply {
        records_written: 1,
        records_skipped: 1,
        logical_turns: 1,
        memories_created: 2,
        memories_reused: 3,
        conflicts: 4,
        over_limit: 1,
        ..HandoffReply::default()
    };
    let path = format!("{PATH}?tool_boundary_splits_blocks=true&first_position=7&dry_run=false");
    let reply = running.post(&path, &key, transcript().to_string()).await;
    assert_eq!(reply.status, StatusCode::OK, "{:?}", reply.body);
    assert!(reply.headers.contains_key("x-request-id"));
    for (name, expect) in [
        ("input_message_count", json!(2)),
        ("transcript_records_written", json!(1)),
        ("transcript_records_skipped", json!(1)),
        ("logical_turns_processed", json!(1)),
        ("unpaired_trailing_blocks", json!(0)),
        ("nodes_created", json!(2)),
        ("nodes_reused", json!(3)),
        ("conflicts", json!(4)),
        ("scope", json!({"project": "P", "agent_id": "", "session_id": "s"})),
        ("export_skipped", json!(true)),
    ] {
        assert_eq!(reply.body[name], expect, "{name}");
    }
    let warnings = reply.body["warnings"].as_array().expect("warnings");
    assert_eq!(warnings[0], "member 'source' is ignored");
    assert!(
        warnings[1]
            .as_str()
            .is_some_and(|text| text.starts_with("extraction_limit"))
    );
    let sent = running
        .stub
        .handoffs
        .lock()
        .expect("handoffs")
        .pop()
        .expect("a hand-off");
    assert_eq!(
        (sent.first_position, sent.tool_boundary_splits_blocks, sent.dry_run),
        (7, true, false)
    );
    let [first, second] = sent.messages.as_slice() else {
        panic!("{:?}", sent.messages)
    };
    assert_eq!(
        (first.role, first.text.as_str(), first.message_id.as_str()),
        (1, "hello", "m1")
    );
    assert_eq!((first.timestamp, second.timestamp), (Some(1_767_323_045_000), None));
    let context = running
        .stub
        .contexts
        .lock()
        .expect("contexts")
        .pop()
        .expect("a context");
    assert_eq!(context.tenant, "acme");
}

#[tokio::test]
async fn who_may_not_and_what_cannot_be_read_reaches_no_node() {
    let running = Running::start().await;
    let key = running.key(KeyScopes::GRAPH_WRITE);
    let reader = running.key(KeyScopes::GRAPH_READ);
    let good = transcript().to_string();
    let post = |key: String, path: String, body: String| {
        let running = &running;
        async move { code(&running.post(&path, &key, body).await) }
    };
    assert_eq!(post("wg_none".to_owned(), PATH.to_owned(), good.clone()).await.0, 401);
    assert_eq!(
        post(reader, PATH.to_owned(), good.clone()).await,
        (403, "authorization_failed".to_owned())
    );
    for (query, body, expect) in [
        ("", "{".to_owned(), (400, "malformed_request")),
        ("", "{}".to_owned(), (400, "validation_failed")),
        ("", "[".repeat(100), (400, "malformed_request")),
        (
            "",
            json!({"messages": [{"role": "user", "content": ""}]}).to_string(),
            (400, "validation_failed"),
        ),
        ("?dry_run=perhaps", good.clone(), (400, "validation_failed")),
        ("?dryrun=true", good.clone(), (400, "validation_failed")),
        (
            "",
            format!("{good}{}", " ".repeat(16 * 1024 * 1024)),
            (413, "payload_too_large"),
        ),
    ] {
        let found = post(key.clone(), format!("{PATH}{query}"), body).await;
        assert_eq!((found.0, found.1.as_str()), expect, "{query}");
    }
    let get = running
        .request(Method::GET, PATH, Some(&key))
        .body(Full::new(Bytes::new()));
    let reply = running.send(get.expect("a request")).await;
    assert_eq!(code(&reply), (405, "method_not_allowed".to_owned()));
    let plain = running
        .request(Method::POST, PATH, Some(&key))
        .header("content-type", "text/plain")
        .body(Full::new(Bytes::from(good)));
    assert_eq!(code(&running.send(plain.expect("a request")).await).0, 415);
    assert!(running.stub.handoffs.lock().expect("handoffs").is_empty());
}

#[tokio::test]
async fn what_the_node_refuses_and_what_it_had_no_time_for_is_told() {
    let running = Running::start().await;
    let key = running.key(KeyScopes::GRAPH_WRITE);
    let refusal = failure("message_id_reused", Family::Rejected);
    running.stub.failures.lock().expect("failures").push(refusal);
    let reply = running.post(PATH, &key, transcript().to_string()).await;
    assert_eq!(code(&reply), (409, "message_id_reused".to_owned()));

    *running.stub.handoff_reply.lock().expect("reply") = HandoffReply {
        records_written: 1,
        messages_left: 1,
        logical_turns_left: 1,
        ..HandoffReply::default()
    };
    let reply = running.post(PATH, &key, transcript().to_string()).await;
    assert_eq!(code(&reply), (503, "service_unavailable".to_owned()));
    assert!(reply.headers.contains_key("retry-after"));
    assert_eq!(reply.body["details"]["transcript_records_written"], 1);
}

#[tokio::test]
async fn a_transcript_without_a_session_is_warned_about() {
    let running = Running::start().await;
    let key = running.key(KeyScopes::GRAPH_WRITE);
    let body = json!({"messages": [{"role": "user", "content": "hello"}]});
    let reply = running.post(PATH, &key, body.to_string()).await;
    let warning = reply.body["warnings"][0].as_str().unwrap_or_default();
    assert!(warning.starts_with("no session_id"), "{:?}", reply.body);
}
