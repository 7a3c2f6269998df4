//! decompose_and_store, get_topics, dedup_candidates and memory_replay before the scripted node, the replay also as REST.

mod support;

use std::collections::BTreeSet;

use bytes::Bytes;
use http::{Method, StatusCode};
use http_body_util::Full;
use serde_json::{Value, json};
use support::stub::insight::{ERASED, MISSING, TURNS};
use support::stub::uuid_bytes;
use support::{Reply, Running};
use waggle_memory::meta::KeyScopes;

fn id(number: u64) -> String {
    uuid::Uuid::from_slice(&uuid_bytes(number))
        .expect("sixteen bytes")
        .to_string()
}

async fn replay(gateway: &Running, key: &str, body: Value) -> Reply {
    gateway.post("/api/memory_replay", key, body.to_string()).await
}

#[tokio::test]
async fn a_decomposed_text_answers_what_became_of_it() {
    let gateway = Running::start().await;
    let key = gateway.key(KeyScopes::ALL);
    let arguments = json!({"content": "- one\n- two", "context": "numbers", "project": "shop"});
    let answer = gateway.call(&key, "decompose_and_store", arguments).await["structuredContent"].clone();
    assert_eq!(
        (&answer["created_count"], &answer["reused_count"]),
        (&json!(2), &json!(1))
    );
    assert_eq!(answer["context_node_id"], json!(id(3)));
    assert_eq!(answer["nodes"].as_array().map(Vec::len), Some(3));
    assert_eq!(answer["edges"][0]["relationship"], "part_of");
    assert_eq!(answer["conflicts"].as_array().map(Vec::len), Some(1));
    let too_long = gateway
        .call(
            &key,
            "decompose_and_store",
            json!({"content": "x".repeat(1024 * 1024 + 1)}),
        )
        .await;
    assert_eq!(too_long["structuredContent"]["error_code"], "payload_too_large");
}

#[tokio::test]
async fn topics_have_names_of_content_and_come_in_pages() {
    let gateway = Running::start().await;
    let key = gateway.key(KeyScopes::GRAPH_READ);
    let mut arguments = json!({"max_topics": 100, "token_budget": 1500});
    let mut seen = Vec::new();
    for _ in 0..20 {
        let answer = gateway.call(&key, "get_topics", arguments.clone()).await["structuredContent"].clone();
        assert_eq!(answer["total_clusters"], 8);
        assert!(answer["computed_at"].is_string() && answer["token_estimate"].as_u64() <= Some(1500));
        for cluster in answer["clusters"].as_array().expect("clusters") {
            let label = cluster["label"].as_str().expect("a label");
            assert!(label == "unlinked" || label.starts_with("postgresql"), "{label}");
            let tags = cluster["top_tags"].as_array().cloned().unwrap_or_default();
            assert!(tags.iter().all(|tag| tag == "db"), "{tags:?}");
            seen.push(cluster["cluster_id"].as_str().expect("an id").to_owned());
        }
        match answer["next_cursor"].as_str() {
            Some(cursor) => arguments["cursor"] = json!(cursor),
            None => break,
        }
    }
    assert_eq!(seen.len(), 8);
    assert_eq!(seen.iter().collect::<BTreeSet<_>>().len(), 8, "{seen:?}");
    assert_eq!(seen.last().map(String::as_str), Some("unlinked"));
}

#[tokio::test]
async fn candidates_say_what_blocks_them_and_what_was_left_out() {
    let gateway = Running::start().await;
    let key = gateway.key(KeyScopes::GRAPH_READ);
    let answer = gateway.call(&key, "dedup_candidates", json!({"threshold": 0.9})).await["structuredContent"].clone();
    assert_eq!(answer["threshold"], 0.9);
    assert_eq!(answer["total_nodes_scanned"], 3);
    assert_eq!(answer["warnings"], json!(["scan_cut"]));
    let blocked: Vec<&Value> = answer["pairs"]
        .as_array()
        .expect("pairs")
        .iter()
        .map(|pair| &pair["blocked_by"])
        .collect();
    assert_eq!(blocked, [&json!([]), &json!(["quantity"])]);
    assert_eq!(answer["pairs"][0]["similarity"], 0.9);
    for threshold in [0.8, 0.995] {
        let refused = gateway
            .call(&key, "dedup_candidates", json!({"threshold": threshold}))
            .await;
        assert_eq!(
            refused["structuredContent"]["error_code"], "validation_failed",
            "{threshold}"
        );
    }
}

#[tokio::test]
async fn a_replay_walks_every_turn_once_over_both_ways() {
    let gateway = Running::start().await;
    let key = gateway.key(KeyScopes::GRAPH_READ);
    for over_rest in [true, false] {
        let mut arguments = json!({"memory_id": id(1)});
        let mut seen = Vec::new();
        for _ in 0..40 {
            let answer = if over_rest {
                let reply = replay(&gateway, &key, arguments.clone()).await;
                assert_eq!(reply.status, StatusCode::OK, "{:?}", reply.body);
                reply.body
            } else {
                gateway.call(&key, "memory_replay", arguments.clone()).await["structuredContent"].clone()
            };
            assert_eq!(answer["count"], TURNS);
            let entries = answer["entries"].as_array().expect("entries");
            assert!(!entries.is_empty());
            seen.extend(
                entries
                    .iter()
                    .map(|entry| entry["transcript_id"].as_str().expect("an id").to_owned()),
            );
            match answer["next_cursor"].as_str() {
                Some(cursor) => arguments["cursor"] = json!(cursor),
                None => break,
            }
        }
        let expect: Vec<String> = (0..TURNS).map(|number| id(1_000 + number)).collect();
        assert_eq!(seen, expect, "over REST: {over_rest}");
    }
}

#[tokio::test]
async fn an_entry_of_a_replay_has_every_field_that_the_store_knows() {
    let gateway = Running::start().await;
    let key = gateway.key(KeyScopes::GRAPH_READ);
    let answer = replay(&gateway, &key, json!({"memory_id": id(1)})).await.body;
    let entries = answer["entries"].as_array().expect("entries");
    assert_eq!(entries[0]["span_start"], 0);
    assert_eq!(entries[0]["spans"], json!([[0, 10]]));
    assert_eq!(entries[1]["span_start"], Value::Null, "more than one span");
    assert!(entries[0].as_object().expect("fields").contains_key("archived_at"));
    assert_eq!(
        (&entries[2]["status"], &entries[3]["status"]),
        (&json!("ok"), &json!("truncated"))
    );
    assert_eq!(entries[0]["source_memory_id"], json!(id(1)));
    assert_eq!(answer["partial"], false);
    assert_eq!(answer["empty_reason"], Value::Null);

    let missing = replay(&gateway, &key, json!({"memory_id": id(MISSING)})).await;
    assert_eq!(missing.status, StatusCode::OK);
    assert_eq!(
        (&missing.body["count"], &missing.body["empty_reason"]),
        (&json!(0), &json!("not_found"))
    );
    let erased = replay(&gateway, &key, json!({"memory_id": id(ERASED)})).await;
    assert_eq!(erased.status, StatusCode::NOT_FOUND, "{:?}", erased.body);
}

#[tokio::test]
async fn the_depth_of_a_replay_is_an_integer_or_null() {
    let gateway = Running::start().await;
    let key = gateway.key(KeyScopes::GRAPH_READ);
    for depth in [json!(null), json!(0), json!(-4), json!(2.0)] {
        let reply = replay(&gateway, &key, json!({"memory_id": id(1), "depth": depth})).await;
        assert_eq!(reply.status, StatusCode::OK, "{depth}");
    }
    assert_eq!(
        *gateway.stub.depths.lock().expect("depths"),
        [None, Some(0), Some(0), Some(2)]
    );
    for depth in [json!("2"), json!(1.5), json!([1])] {
        let reply = replay(&gateway, &key, json!({"memory_id": id(1), "depth": depth})).await;
        assert_eq!(reply.status, StatusCode::BAD_REQUEST, "{depth}");
        let error = reply.body["error"].as_str().expect("a text");
        assert!(error.ends_with("depth must be an integer or null"), "{error}");
    }
}

#[tokio::test]
async fn a_replay_over_rest_passes_the_same_gate() {
    let gateway = Running::start().await;
    let write_only = gateway.key(KeyScopes::GRAPH_WRITE);
    let key = gateway.key(KeyScopes::GRAPH_READ);
    let body = json!({"memory_id": id(1)});
    assert_eq!(
        replay(&gateway, "", body.clone()).await.status,
        StatusCode::UNAUTHORIZED
    );
    assert_eq!(
        replay(&gateway, &write_only, body.clone()).await.status,
        StatusCode::FORBIDDEN
    );
    for wrong in [
        json!({"memory_id": "x"}),
        json!({}),
        json!({"memory_id": id(1), "bogus": 1}),
        json!([1]),
    ] {
        let reply = replay(&gateway, &key, wrong.clone()).await;
        assert_eq!(reply.status, StatusCode::BAD_REQUEST, "{wrong}");
    }
    let other = replay(&gateway, &key, json!({"memory_id": id(1), "agent_id": "somebody"})).await;
    assert_eq!(other.status, StatusCode::FORBIDDEN);
    let text = other.body["error"].as_str().expect("a text");
    assert!(text.contains("may only replay as itself"), "{text}");

    let get = gateway
        .request(Method::GET, "/api/memory_replay", Some(&key))
        .body(Full::new(Bytes::new()));
    assert_eq!(
        gateway.send(get.expect("a request")).await.status,
        StatusCode::METHOD_NOT_ALLOWED
    );
    let strange = gateway
        .request(Method::POST, "/api/memory_replay", Some(&key))
        .header("origin", "https://evil.example")
        .body(Full::new(Bytes::from(body.to_string())));
    assert_eq!(
        gateway.send(strange.expect("a request")).await.status,
        StatusCode::FORBIDDEN
    );
}
