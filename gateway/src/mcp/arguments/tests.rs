//! Every wrong argument, and the words that name it.

use super::*;
use crate::mcp::schema::find_tool;
use serde_json::json;

const ID: &str = "0197c1f2-7a64-7000-8000-2f1d3c5e7a90";

fn check(tool: &str, given: Value, expect: &str) {
    let spec = find_tool(tool).expect("a tool");
    let given = given.as_object().cloned().unwrap_or_default();
    let got = match Arguments::check(spec, &given, Millis(1_700_000_000_000)) {
        Ok(_) => "ok".to_owned(),
        Err(fault) => fault.text(),
    };
    assert!(
        got.starts_with(expect),
        "{tool} {given:?}\n  got    {got}\n  expect {expect}"
    );
}

#[test]
fn every_wrong_argument_is_named_before_anything_runs() {
    check(
        "observe_conversation",
        json!({"user_text": "x", "assistant_response": "y"}),
        "validation_failed: unknown field 'user_text'; did you mean 'user_message'? Allowed: user_message, \
         assistant_response, project, agent_id, session_id, observed_at",
    );
    check(
        "query_graph",
        json!({"query": "x", "zzzzzzzzzzzz": 1}),
        "validation_failed: unknown field 'zzzzzzzzzzzz'; Allowed:",
    );
    check("query_graph", json!({}), "validation_failed: field 'query' is missing");
    check(
        "query_graph",
        json!({"query": 5}),
        "validation_failed: field 'query' must be a string, not a number",
    );
    check(
        "query_graph",
        json!({"query": null}),
        "validation_failed: field 'query' must be a string, not null",
    );
    check(
        "query_graph",
        json!({"query": "x", "max_nodes": 0}),
        "validation_failed: field 'max_nodes' is 0; the limit is 1 to 200",
    );
    check(
        "query_graph",
        json!({"query": "x", "max_nodes": 201}),
        "validation_failed: field 'max_nodes' is 201;",
    );
    check(
        "query_graph",
        json!({"query": "x", "max_nodes": "5"}),
        "validation_failed: field 'max_nodes' must be an integer",
    );
    check(
        "query_graph",
        json!({"query": "x", "max_nodes": 5.5}),
        "validation_failed: field 'max_nodes' must be an integer",
    );
    check("query_graph", json!({"query": "x", "max_nodes": 5.0}), "ok");
    check(
        "query_graph",
        json!({"query": "x", "token_budget": 199}),
        "validation_failed: field 'token_budget' is 199;",
    );
    check("query_graph", json!({"query": "x", "retrieval_mode": "hybrid"}), "ok");
    check(
        "query_graph",
        json!({"query": "x", "retrieval_mode": "fuzion"}),
        "validation_failed: field 'retrieval_mode' is 'fuzion'; did you mean 'fusion'?",
    );
    check(
        "query_graph",
        json!({"query": "x", "node_types": ["fact", "fct"]}),
        "validation_failed: field 'node_types' is 'fct'",
    );
    check(
        "query_graph",
        json!({"query": "x", "tags": "a"}),
        "validation_failed: field 'tags' must be an array",
    );
    check(
        "query_graph",
        json!({"query": "x", "tags": [1]}),
        "validation_failed: field 'tags' must be a string",
    );
    check(
        "query_graph",
        json!({"query": "x", "tags": vec!["t"; 33]}),
        "validation_failed: field 'tags' has 33 entries; the limit is 32",
    );
    check(
        "query_graph",
        json!({"query": "x", "as_of": "garbage"}),
        "validation_failed: field 'as_of' is 'garbage', which is not a time; write it as 2026-07-28T09:30:00Z",
    );
    check(
        "query_graph",
        json!({"query": "x".repeat(8193)}),
        "payload_too_large: field 'query' has 8193 bytes; the limit is 8192",
    );
    check(
        "query_graph",
        json!({"query": "a\u{0}b"}),
        "validation_failed: field 'query' has a NUL",
    );
    check(
        "query_graph",
        json!({"query": "x", "explain": "yes"}),
        "validation_failed: field 'explain' must be true or false",
    );
    check(
        "store_node",
        json!({"label": "l", "content": "c", "node_type": "thing"}),
        "validation_failed: field 'node_type' is 'thing'",
    );
    check(
        "store_node",
        json!({"label": "l", "content": "c".repeat(65_537), "node_type": "fact"}),
        "payload_too_large: field 'content' has 65537 bytes; the limit is 65536; store one statement",
    );
    check(
        "store_node",
        json!({"label": "l".repeat(801), "content": "c", "node_type": "fact"}),
        "payload_too_large: field 'label'",
    );
    check(
        "store_node",
        json!({"label": "l", "content": "c", "node_type": "fact", "project": "p".repeat(257)}),
        "payload_too_large: field 'project'",
    );
    check(
        "store_edge",
        json!({"source_id": "x", "target_id": ID, "relationship": "updates"}),
        "validation_failed: field 'source_id' is 'x', not an id",
    );
    check(
        "store_edge",
        json!({"source_id": ID, "target_id": ID, "relationship": "updates", "weight": 1.5}),
        "validation_failed: field 'weight' is 1.5; the limit is 0 to 1",
    );
    check(
        "delete_node",
        json!({"node_id": ID.replace('-', "")}),
        "validation_failed: field 'node_id'",
    );
    check("delete_node", json!({"node_id": ID}), "ok");
    check(
        "prime_context",
        json!({"depth": 3, "max_subqueries": 2, "mode": "fast"}),
        "ok",
    );
    check("memory_capabilities", json!({}), "ok");
}

#[test]
fn labels_lose_control_characters() {
    assert_eq!(plain_label(" a\nb\u{7}c\td "), "a bc d");
}

#[test]
fn fingerprints_ignore_order_and_cursor() {
    let query = find_tool("query_graph").expect("a tool");
    let print = |value: Value| fingerprint(query, value.as_object().expect("object"));
    assert_eq!(
        print(json!({"a": 1, "b": "x"})),
        print(json!({"b": "x", "a": 1, "cursor": "c"}))
    );
    assert_ne!(print(json!({"a": 1})), print(json!({"a": 2})));
    assert_eq!(
        print(json!({"query": "q"})),
        print(json!({"query": "q", "max_nodes": 20, "project": "", "tags": [], "strict_scope": false})),
        "a default that is spelled out changes nothing"
    );
    assert_ne!(
        print(json!({"query": "q"})),
        print(json!({"query": "q", "max_nodes": 21}))
    );
}
