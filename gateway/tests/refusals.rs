//! What a caller hears when a message has the wrong shape, a scope is missing, or the node is away.

mod support;

use std::sync::atomic::Ordering;

use http::StatusCode;
use serde_json::{Value, json};
use support::Running;
use waggle_memory::meta::KeyScopes;

const ALIASES: [(&str, &str, &str); 6] = [
    ("aggregate_graph", "query_graph", "graph:read"),
    ("assemble_context", "prime_context", "graph:read"),
    ("build_context", "prime_context", "graph:read"),
    ("debug_retrieval", "query_graph", "graph:read"),
    ("recursive_context", "prime_context", "graph:read"),
    ("rlm_context", "prime_context", "graph:read"),
];

#[tokio::test]
async fn parameters_of_the_wrong_shape_are_invalid_params() {
    let gateway = Running::start().await;
    let key = gateway.key(KeyScopes::ALL);
    let table = [
        (
            "tools/call",
            json!({"name": "query_graph", "arguments": [1]}),
            "params.arguments must be an object",
        ),
        (
            "tools/call",
            json!({"name": "query_graph", "arguments": "x"}),
            "params.arguments must be an object",
        ),
        ("tools/call", json!({"arguments": {}}), "params.name is missing"),
        ("tools/call", json!({"name": 7}), "params.name must be a string"),
        ("tools/call", json!([]), "params.name is missing"),
        (
            "initialize",
            json!({"capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}),
            "params.protocolVersion",
        ),
        (
            "initialize",
            json!({"protocolVersion": 20250618, "capabilities": {}}),
            "params.protocolVersion",
        ),
        ("initialize", Value::Null, "params.protocolVersion"),
    ];
    for (method, params, words) in table {
        let reply = gateway.rpc("/mcp", &key, method, params.clone()).await;
        assert_eq!(reply.status, StatusCode::OK, "{method} {params}");
        assert_eq!(reply.body["id"], 1, "{method} {params}");
        assert_eq!(reply.body["error"]["code"], -32602, "{method} {params}: {}", reply.body);
        let message = reply.body["error"]["message"].as_str().expect("a message");
        assert!(message.contains(words), "{message}");
    }
    let fine = gateway
        .rpc("/mcp", &key, "tools/call", json!({"name": "get_stats"}))
        .await;
    assert_eq!(
        fine.body["result"]["isError"], false,
        "no arguments are no mistake: {}",
        fine.body
    );
}

#[tokio::test]
async fn an_alias_needs_the_scope_and_the_path_of_its_tool() {
    let gateway = Running::start().await;
    let (all, write) = (gateway.key(KeyScopes::ALL), gateway.key(KeyScopes::GRAPH_WRITE));
    let listed = gateway
        .rpc("/mcp", &all, "tools/list", json!({}))
        .await
        .body
        .to_string();
    for (alias, real, scope) in ALIASES {
        assert!(!listed.contains(alias), "{alias} is listed");
        let arguments = if real == "query_graph" {
            json!({"query": "x"})
        } else {
            json!({})
        };
        let call = json!({"name": alias, "arguments": arguments});
        for path in ["/mcp", "/mcp/core", "/mcp/readonly"] {
            let reply = gateway.rpc(path, &all, "tools/call", call.clone()).await;
            assert_eq!(
                reply.body["result"]["isError"], false,
                "{alias} on {path}: {}",
                reply.body
            );
        }
        let refused = gateway.rpc("/mcp", &write, "tools/call", call).await;
        let told = &refused.body["result"]["structuredContent"];
        assert_eq!(told["error_code"], "authorization_failed", "{alias}: {}", refused.body);
        assert!(
            told["error"].as_str().expect("a text").contains(scope),
            "{alias}: {told}"
        );
    }
}

#[tokio::test]
async fn only_readable_resources_are_listed_and_the_others_are_refused_clearly() {
    let gateway = Running::start().await;
    let uris = |body: &Value| -> Vec<String> {
        let list = body["result"]["resources"].as_array().expect("resources");
        list.iter()
            .map(|resource| resource["uri"].as_str().expect("a uri").to_owned())
            .collect()
    };
    let (read, write) = (gateway.key(KeyScopes::GRAPH_READ), gateway.key(KeyScopes::GRAPH_WRITE));
    let all = uris(&gateway.rpc("/mcp", &read, "resources/list", json!({})).await.body);
    assert_eq!(all, ["graph://memory-policy", "graph://recent", "graph://stats"]);
    let few = uris(&gateway.rpc("/mcp", &write, "resources/list", json!({})).await.body);
    assert_eq!(few, ["graph://memory-policy"]);
    for uri in all {
        let reply = gateway.rpc("/mcp", &write, "resources/read", json!({"uri": uri})).await;
        if few.contains(&uri) {
            assert!(reply.body["result"].is_object(), "{}", reply.body);
            continue;
        }
        let error = &reply.body["error"];
        assert_eq!(error["code"], -32602, "{error}");
        let message = error["message"].as_str().expect("a message");
        assert!(
            message.starts_with("authorization_failed") && message.contains("graph:read"),
            "{message}"
        );
    }
}

#[tokio::test]
async fn a_tool_call_while_the_node_is_away_is_a_result_that_says_when_to_repeat_it() {
    let gateway = Running::start().await;
    let key = gateway.key(KeyScopes::ALL);
    gateway.stub.away.store(true, Ordering::Relaxed);
    let reply = gateway
        .rpc(
            "/mcp",
            &key,
            "tools/call",
            json!({"name": "get_stats", "arguments": {}}),
        )
        .await;
    assert_eq!(reply.status, StatusCode::OK, "{:?}", reply.body);
    assert_eq!(reply.body["id"], 1);
    let result = &reply.body["result"];
    assert_eq!(result["isError"], true, "{result}");
    assert_eq!(result["structuredContent"]["error_code"], "service_unavailable");
    assert!(
        result["structuredContent"]["retry_after_s"].as_u64() >= Some(1),
        "{result}"
    );
    assert!(
        result["content"][0]["text"]
            .as_str()
            .expect("a text")
            .starts_with("service_unavailable")
    );

    let list = gateway.rpc("/mcp", &key, "tools/list", json!({})).await;
    assert_eq!(list.status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(list.body["id"], 1, "the id of the message: {:?}", list.body);
}
