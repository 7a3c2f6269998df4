//! Answers of several pages against the scripted node: everything once, within its budget, and cursors that belong to one
//! call.

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
async fn a_walk_shows_every_memory_once_within_its_budget() {
    let gateway = Running::start().await;
    gateway
        .stub
        .memories
        .lock()
        .expect("memories")
        .extend((1..=140).map(|n| memory(n, 200)));
    let key = gateway.key(KeyScopes::GRAPH_READ);
    for (max_nodes, token_budget) in [(1, 200), (5, 200), (200, 200), (20, 700), (50, 2_000), (200, 20_000)] {
        let mut seen = Vec::new();
        let mut arguments = json!({"query": "x", "max_nodes": max_nodes, "token_budget": token_budget});
        for page in 0.. {
            assert!(page < 200, "the walk ends");
            let result = gateway.call(&key, "query_graph", arguments.clone()).await;
            let structured = &result["structuredContent"];
            let size = structured.to_string().len().max(text_of(&result).len());
            assert!(size <= token_budget * 4, "{size} bytes in {token_budget} tokens");
            let nodes = structured["nodes"].as_array().expect("nodes");
            assert!(!nodes.is_empty(), "{structured}");
            seen.extend(nodes.iter().map(|node| node["id"].as_str().expect("id").to_owned()));
            assert_eq!(
                structured["truncated"].as_bool(),
                Some(structured["next_cursor"].is_string())
            );
            let Some(cursor) = structured["next_cursor"].as_str() else {
                break;
            };
            arguments["cursor"] = json!(cursor);
        }
        let distinct: BTreeSet<&String> = seen.iter().collect();
        assert_eq!(
            (seen.len(), distinct.len()),
            (max_nodes.min(140), max_nodes.min(140)),
            "max_nodes {max_nodes}"
        );
    }
    let queries = gateway.stub.queries.lock().expect("queries");
    let later = queries
        .iter()
        .find(|query| !query.shown.is_empty())
        .expect("a second page");
    assert_eq!(later.recorded_until, Some(T0));
}

#[tokio::test]
async fn other_lists_walk_too() {
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
            "get_related",
            json!({"node_id": id(1), "token_budget": 500}),
            "nodes",
            30,
        ),
        ("list_context_scopes", json!({"token_budget": 300}), "projects", 60),
        ("prime_context", json!({"token_budget": 300}), "nodes", 30),
        ("memory_capabilities", json!({"token_budget": 200}), "tools", 30),
    ];
    for (tool, mut arguments, list, expected) in walks {
        let budget = arguments["token_budget"].as_u64().expect("budget") as usize;
        let mut seen = Vec::new();
        for page in 0.. {
            assert!(page < 100, "{tool} ends");
            let result = gateway.call(&key, tool, arguments.clone()).await;
            let structured = &result["structuredContent"];
            let size = structured.to_string().len().max(text_of(&result).len());
            assert!(size <= budget * 4, "{tool}: {size} bytes in {budget} tokens");
            seen.extend(structured[list].as_array().into_iter().flatten().map(Value::to_string));
            let Some(cursor) = structured["next_cursor"].as_str() else {
                break;
            };
            arguments["cursor"] = json!(cursor);
        }
        let distinct: BTreeSet<&String> = seen.iter().collect();
        assert_eq!((seen.len(), distinct.len()), (expected, expected), "{tool}");
    }
}

#[tokio::test]
async fn short_briefs_keep_the_best_of_every_section() {
    let gateway = Running::start().await;
    let key = gateway.key(KeyScopes::GRAPH_READ);
    let result = gateway.call(&key, "prime_context", json!({"token_budget": 300})).await;
    let sections = result["structuredContent"]["sections"].as_array().expect("sections");
    assert_eq!(sections.len(), 3, "{sections:?}");
    assert!(
        text_of(&result).contains("## Decisions in force\n- \"line 2"),
        "{}",
        text_of(&result)
    );
}

#[tokio::test]
async fn cursors_are_bound_to_key_tool_and_arguments() {
    let gateway = Running::start().await;
    gateway
        .stub
        .memories
        .lock()
        .expect("memories")
        .extend((1..=60).map(|n| memory(n, 200)));
    let key = gateway.key(KeyScopes::GRAPH_READ);
    let arguments = json!({"query": "x", "token_budget": 500});
    let first = gateway.call(&key, "query_graph", arguments.clone()).await;
    let cursor = first["structuredContent"]["next_cursor"]
        .as_str()
        .expect("a cursor")
        .to_owned();
    let mut with = arguments.clone();
    with["cursor"] = json!(cursor);
    assert_eq!(gateway.call(&key, "query_graph", with.clone()).await["isError"], false);
    let mut changed = with.clone();
    changed["query"] = json!("y");
    let mut tampered = with.clone();
    tampered["cursor"] = json!(format!("{cursor}A"));
    let other = gateway.key(KeyScopes::GRAPH_READ);
    for (key, arguments) in [(&key, changed), (&key, tampered), (&other, with)] {
        let result = gateway.call(key, "query_graph", arguments).await;
        assert_eq!(result["structuredContent"]["error_code"], "invalid_cursor", "{result}");
    }
}
