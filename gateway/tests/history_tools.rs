//! Tools about the past against the scripted node: pages, read points, tombstones, confirmations.

mod support;

use std::collections::BTreeSet;

use serde_json::{Value, json};
use support::Running;
use support::stub::{T0, memory, uuid_bytes};
use waggle_memory::meta::KeyScopes;

fn id(number: u64) -> String {
    uuid::Uuid::from_slice(&uuid_bytes(number))
        .expect("sixteen bytes")
        .to_string()
}

fn text_of(result: &Value) -> &str {
    result["content"][0]["text"].as_str().expect("a text block")
}

#[tokio::test]
async fn lists_about_the_past_show_every_entry_once_within_their_budget() {
    let gateway = Running::start().await;
    gateway
        .stub
        .memories
        .lock()
        .expect("memories")
        .extend((1..=30).map(|n| memory(n, 200)));
    let key = gateway.key(KeyScopes::GRAPH_READ);
    let walks = [
        (
            "timeline",
            json!({"limit": 120, "token_budget": 300}),
            vec![("items", 120)],
        ),
        (
            "list_conflicts",
            json!({"limit": 25, "token_budget": 700}),
            vec![("conflicts", 25)],
        ),
        (
            "graph_diff",
            json!({"since": "2026-05-01", "token_budget": 500}),
            vec![("added_nodes", 30), ("deleted_nodes", 1), ("contradiction_edges", 1)],
        ),
        (
            "get_node_history",
            json!({"node_id": id(1), "token_budget": 600}),
            vec![
                ("versions", 30),
                ("evidence_records", 10),
                ("related_nodes", 30),
                ("conflicts", 1),
            ],
        ),
    ];
    for (tool, mut arguments, lists) in walks {
        let budget = arguments["token_budget"].as_u64().expect("budget") as usize;
        let mut seen: Vec<Vec<String>> = vec![Vec::new(); lists.len()];
        for page in 0.. {
            assert!(page < 200, "{tool} ends");
            let result = gateway.call(&key, tool, arguments.clone()).await;
            let structured = &result["structuredContent"];
            assert_ne!(result["isError"], true, "{tool}: {structured}");
            let size = structured.to_string().len().max(text_of(&result).len());
            assert!(size <= budget * 4, "{tool}: {size} bytes in {budget} tokens");
            for ((list, _), seen) in lists.iter().zip(&mut seen) {
                seen.extend(structured[*list].as_array().into_iter().flatten().map(Value::to_string));
            }
            let Some(cursor) = structured["next_cursor"].as_str() else {
                break;
            };
            arguments["cursor"] = json!(cursor);
        }
        for ((list, expected), seen) in lists.iter().zip(&seen) {
            let distinct: BTreeSet<&String> = seen.iter().collect();
            assert_eq!((seen.len(), distinct.len()), (*expected, *expected), "{tool}.{list}");
        }
    }
    let diffs = gateway.stub.diffs.lock().expect("diffs");
    let (first, later) = diffs.split_first().expect("several pages");
    assert_eq!(first.until, None);
    assert!(!later.is_empty());
    assert!(
        later
            .iter()
            .all(|page| page.until == Some(T0 + 5) && page.since == first.since),
        "later pages read the period of the first"
    );
}

#[tokio::test]
async fn a_memory_shows_its_past_and_an_erased_one_its_tombstone() {
    let gateway = Running::start().await;
    let key = gateway.key(KeyScopes::GRAPH_READ);
    let result = gateway
        .call(
            &key,
            "get_node_history",
            json!({"node_id": id(8), "token_budget": 20_000}),
        )
        .await;
    let history = &result["structuredContent"];
    assert_eq!(history["redirected_from"], id(8));
    assert_eq!(history["node"]["id"], id(1));
    assert_eq!(history["versions"][0]["version"], 30);
    assert_eq!(history["versions"][0]["changed"], json!(["content"]));
    assert_eq!(history["versions"][0]["author"], "key:k30");
    assert_eq!(history["conflicts"][0]["relationship"], "contradicts");
    let result = gateway.call(&key, "get_node_history", json!({"node_id": id(99)})).await;
    let node = &result["structuredContent"]["node"];
    assert_eq!(
        (node["deleted"].as_bool(), node["receipt"].as_str()),
        (Some(true), Some("erased-99"))
    );
    assert!(
        node.get("label").is_none() && node["content_hash"].is_string(),
        "{node}"
    );
}

#[tokio::test]
async fn clearing_needs_a_confirmation_and_an_administrator() {
    let gateway = Running::start().await;
    let key = gateway.key(KeyScopes::GRAPH_WRITE.with(KeyScopes::ADMIN_WRITE));
    let asked = gateway.call(&key, "clear_project", json!({"project": "shop"})).await;
    let refused = &asked["structuredContent"];
    assert_eq!(
        (refused["error_code"].as_str(), refused["status_code"].as_u64()),
        (Some("confirm_required"), Some(400))
    );
    let done = gateway
        .call(
            &key,
            "clear_session",
            json!({"session_id": "s1", "project": "shop", "confirm": true}),
        )
        .await;
    let done = &done["structuredContent"];
    assert_eq!(
        (done["scope"].as_str(), done["session_id"].as_str()),
        (Some("session"), Some("s1"))
    );
    assert_eq!(
        (done["deleted_nodes"].as_u64(), done["deleted_transcripts"].as_u64()),
        (Some(4), Some(7))
    );
    assert_eq!(done["counts_by_node_type"], json!({"fact": 3, "decision": 1}));
    assert_eq!(done["receipt"], "cleared-1");
    let counted = gateway
        .call(&key, "clear_all", json!({"confirm": true, "dry_run": true}))
        .await;
    assert_eq!(counted["structuredContent"]["dry_run"], true);
    assert!(counted["structuredContent"].get("receipt").is_none());
    let writer = gateway.key(KeyScopes::GRAPH_WRITE);
    let refused = gateway.call(&writer, "clear_all", json!({"confirm": true})).await;
    assert_eq!(refused["structuredContent"]["error_code"], "authorization_failed");
    assert!(text_of(&refused).contains("admin:write"), "{}", text_of(&refused));
}

#[tokio::test]
async fn bad_arguments_are_refused_with_the_field_and_the_limit() {
    let gateway = Running::start().await;
    let key = gateway.key(KeyScopes::ALL);
    let many: Vec<String> = (0..51).map(id).collect();
    let table = [
        (
            "canonicalize_node",
            json!({"node_ids": [], "canonical_id": id(1)}),
            "'node_ids' is empty",
        ),
        (
            "canonicalize_node",
            json!({"node_ids": many, "canonical_id": id(1)}),
            "the limit is 50",
        ),
        (
            "canonicalize_node",
            json!({"node_ids": ["x"], "canonical_id": id(1)}),
            "not an id",
        ),
        (
            "canonicalize_node",
            json!({"node_ids": id(2), "canonical_id": id(1)}),
            "an array",
        ),
        ("clear_session", json!({"session_id": " ", "confirm": true}), "is blank"),
        ("clear_project", json!({"confirm": true}), "field 'project' is missing"),
        (
            "graph_diff",
            json!({"since": "2026-02-01", "until": "2026-01-01"}),
            "lies before since",
        ),
        ("list_conflicts", json!({"limit": 201}), "1 to 200"),
        (
            "timeline",
            json!({"node_id": id(1), "query": "x"}),
            "exclude each other",
        ),
        ("timeline", json!({"max_depth": 6}), "0 to 5"),
    ];
    for (tool, arguments, words) in table {
        let result = gateway.call(&key, tool, arguments.clone()).await;
        assert_eq!(
            result["structuredContent"]["error_code"], "validation_failed",
            "{tool} {arguments}"
        );
        assert!(text_of(&result).contains(words), "{tool}: {}", text_of(&result));
    }
    assert!(gateway.stub.contexts.lock().expect("contexts").is_empty());
}
