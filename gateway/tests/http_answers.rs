//! Request -> answer, over real sockets: the table of the transport.

mod support;

use bytes::Bytes;
use http::{Method, StatusCode};
use http_body_util::Full;
use serde_json::{Value, json};
use support::{Reply, Running};
use waggle_memory::meta::KeyScopes;

const PATHS: [&str; 6] = [
    "/mcp",
    "/mcp/core",
    "/mcp/readonly",
    "/k/mcp",
    "/k/mcp/core",
    "/k/mcp/readonly",
];

fn ping() -> String {
    json!({"jsonrpc": "2.0", "id": 7, "method": "ping"}).to_string()
}

async fn plain(
    gateway: &Running,
    method: Method,
    path: &str,
    key: Option<&str>,
    headers: &[(&str, &str)],
    body: &str,
) -> Reply {
    let mut builder = gateway.request(method, path, key);
    for (name, value) in headers {
        builder = builder.header(*name, *value);
    }
    gateway
        .send(builder.body(Full::new(Bytes::from(body.to_owned()))).expect("request"))
        .await
}

fn error_code(reply: &Reply) -> &str {
    reply.body["error"]["data"]["error_code"]
        .as_str()
        .or(reply.body["error_code"].as_str())
        .unwrap_or_default()
}

#[tokio::test]
async fn credential_comes_before_method() {
    let gateway = Running::start().await;
    let key = gateway.key(KeyScopes::ALL);
    for path in PATHS {
        for method in [Method::GET, Method::POST, Method::DELETE, Method::PUT] {
            let reply = plain(&gateway, method, path, None, &[], "").await;
            assert_eq!(reply.status, StatusCode::UNAUTHORIZED, "{path}");
            assert_eq!(reply.headers["www-authenticate"], "Bearer");
            assert_eq!(error_code(&reply), "authentication_failed");
        }
        for method in [Method::GET, Method::DELETE, Method::PUT] {
            let reply = plain(&gateway, method, path, Some(&key), &[], "").await;
            assert_eq!(reply.status, StatusCode::METHOD_NOT_ALLOWED, "{path}");
            assert_eq!(reply.headers["allow"], "POST");
            assert_eq!(error_code(&reply), "method_not_allowed");
        }
        let reply = plain(&gateway, Method::POST, path, Some(&key), &[], &ping()).await;
        assert_eq!(
            (reply.status, &reply.body["result"]),
            (StatusCode::OK, &json!({})),
            "{path}"
        );
    }
}

#[tokio::test]
async fn wrong_credentials_are_refused_alike() {
    let gateway = Running::start().await;
    let good = gateway.key(KeyScopes::ALL);
    let unknown = waggle_gateway::keys::ApiKeyText::make("test").expect("key").reveal();
    let mut mistyped = good.clone();
    mistyped.replace_range(20..21, if &good[20..21] == "a" { "b" } else { "a" });
    // A known id with the secret of another key.
    let mut parts: Vec<&str> = good.split('_').collect();
    let other: Vec<&str> = unknown.split('_').collect();
    parts[3] = other[3];
    let mixed = parts.join("_");
    for key in [unknown.as_str(), &mistyped, &mixed, "wg_", "", "eyJhbGciOi.x.y"] {
        let reply = plain(&gateway, Method::POST, "/mcp", Some(key), &[], &ping()).await;
        assert_eq!(reply.status, StatusCode::UNAUTHORIZED, "{key}");
    }
    let reply = plain(
        &gateway,
        Method::POST,
        "/mcp",
        Some(&good),
        &[("x-api-key", &unknown)],
        &ping(),
    )
    .await;
    assert_eq!(reply.status, StatusCode::UNAUTHORIZED);
    let reply = plain(&gateway, Method::POST, "/mcp", None, &[("x-api-key", &good)], &ping()).await;
    assert_eq!(reply.status, StatusCode::OK);
    gateway.stub.change_keys(|info| info.expires_at = Some(1));
    let key = gateway.key(KeyScopes::ALL);
    gateway.stub.change_keys(|info| info.revoked_at = Some(1));
    let reply = plain(&gateway, Method::POST, "/mcp", Some(&key), &[], &ping()).await;
    assert_eq!(reply.status, StatusCode::UNAUTHORIZED, "revoked");
}

#[tokio::test]
async fn host_and_origin_are_checked_before_anything() {
    let gateway = Running::start().await;
    let key = gateway.key(KeyScopes::ALL);
    let reply = plain(
        &gateway,
        Method::POST,
        "/mcp",
        Some(&key),
        &[("host", "evil.example")],
        &ping(),
    )
    .await;
    assert_eq!(
        (reply.status, error_code(&reply)),
        (StatusCode::FORBIDDEN, "host_not_allowed")
    );
    let reply = plain(
        &gateway,
        Method::POST,
        "/mcp",
        Some(&key),
        &[("origin", "https://evil.example")],
        &ping(),
    )
    .await;
    assert_eq!(
        (reply.status, error_code(&reply)),
        (StatusCode::FORBIDDEN, "origin_not_allowed")
    );
    let origin = [("origin", "https://app.example.com")];
    let reply = plain(&gateway, Method::POST, "/mcp", Some(&key), &origin, &ping()).await;
    assert_eq!(reply.status, StatusCode::OK);
    assert_eq!(reply.headers["access-control-allow-origin"], "https://app.example.com");
    let reply = plain(&gateway, Method::OPTIONS, "/mcp", None, &origin, "").await;
    assert_eq!(reply.status, StatusCode::NO_CONTENT);
    assert!(
        reply.headers["access-control-allow-headers"]
            .to_str()
            .expect("text")
            .contains("idempotency-key")
    );
    assert_eq!(reply.headers["access-control-allow-methods"], "POST");
    let reply = plain(
        &gateway,
        Method::OPTIONS,
        "/mcp",
        None,
        &[("origin", "https://evil.example")],
        "",
    )
    .await;
    assert_eq!(reply.status, StatusCode::FORBIDDEN);
    let reply = plain(
        &gateway,
        Method::GET,
        "/api/admin/keys",
        None,
        &[("host", "evil.example")],
        "",
    )
    .await;
    assert_eq!(reply.status, StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn every_accept_header_gets_json() {
    let gateway = Running::start().await;
    let key = gateway.key(KeyScopes::ALL);
    for accept in [
        None,
        Some("application/json"),
        Some("*/*"),
        Some("application/json, text/event-stream"),
        Some("text/html"),
    ] {
        let headers: Vec<(&str, &str)> = accept.map(|accept| ("accept", accept)).into_iter().collect();
        let reply = plain(&gateway, Method::POST, "/mcp", Some(&key), &headers, &ping()).await;
        assert_eq!(reply.status, StatusCode::OK, "{accept:?}");
        assert_eq!(reply.headers["content-type"], "application/json");
        assert!(!reply.headers.contains_key("mcp-session-id"));
    }
    let bogus = [("mcp-session-id", "bogus"), ("last-event-id", "9")];
    let reply = plain(&gateway, Method::POST, "/mcp", Some(&key), &bogus, &ping()).await;
    assert_eq!(reply.status, StatusCode::OK);
}

#[tokio::test]
async fn broken_bodies_get_json_rpc_errors() {
    let gateway = Running::start().await;
    let key = gateway.key(KeyScopes::ALL);
    let deep = format!("{}{}", "[".repeat(100), "]".repeat(100));
    let table: [(&[u8], i64); 9] = [
        (b"{nope", -32700),
        (b"", -32700),
        (
            b"{\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": \"ping\", \"params\": {\"a\": \"\xff\"}}",
            -32700,
        ),
        (deep.as_bytes(), -32700),
        (
            b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":{\"a\":\"\\ud800\"}}",
            -32700,
        ),
        (b"[]", -32600),
        (b"[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}]", -32600),
        (b"{\"id\": 1, \"method\": \"ping\"}", -32600),
        (b"5", -32600),
    ];
    for (body, number) in table {
        let reply = gateway.post("/mcp", &key, body.to_vec()).await;
        let shown = String::from_utf8_lossy(&body[..body.len().min(60)]).into_owned();
        assert_eq!(reply.status, StatusCode::BAD_REQUEST, "{shown}");
        assert_eq!(reply.body["error"]["code"], number, "{shown}: {}", reply.body);
        assert_eq!(reply.headers["content-type"], "application/json");
    }
    let reply = gateway
        .post(
            "/mcp",
            &key,
            json!({"jsonrpc": "2.0", "id": 9, "method": 5}).to_string(),
        )
        .await;
    assert_eq!(
        (reply.status, &reply.body["id"]),
        (StatusCode::BAD_REQUEST, &json!(9)),
        "{}",
        reply.body
    );
    let reply = plain(
        &gateway,
        Method::POST,
        "/mcp",
        Some(&key),
        &[("content-type", "text/plain")],
        &ping(),
    )
    .await;
    assert_eq!(
        (reply.status, error_code(&reply)),
        (StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type")
    );
    let large = vec![b' '; 4 * 1024 * 1024 + 1];
    let reply = gateway.post("/mcp", &key, large).await;
    assert_eq!(
        (reply.status, error_code(&reply)),
        (StatusCode::PAYLOAD_TOO_LARGE, "payload_too_large")
    );
}

#[tokio::test]
async fn unknown_paths_are_real_404s() {
    let gateway = Running::start().await;
    for path in [
        "/.well-known/oauth-protected-resource",
        "/.well-known/oauth-authorization-server/mcp",
        "/.well-known/x",
        "/",
        "/nope",
    ] {
        let reply = plain(&gateway, Method::GET, path, None, &[], "").await;
        assert_eq!(
            (reply.status, error_code(&reply)),
            (StatusCode::NOT_FOUND, "not_found"),
            "{path}"
        );
    }
    for path in ["/livez", "/readyz", "/startupz", "/health/live", "/health/ready"] {
        let reply = plain(&gateway, Method::GET, path, None, &[], "").await;
        assert_eq!(
            (reply.status, &reply.body["ok"]),
            (StatusCode::OK, &json!(true)),
            "{path}"
        );
    }
    for path in ["/healthz", "/status", "/metrics"] {
        let reply = plain(&gateway, Method::GET, path, None, &[], "").await;
        assert_eq!(reply.status, StatusCode::NOT_FOUND, "{path} is for the admin listener");
    }
}

fn initialize(version: &str) -> Value {
    json!({"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}})
}

fn modern_meta(version: &str) -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": version,
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
    })
}

#[tokio::test]
async fn the_initialize_era_works_without_sessions() {
    let gateway = Running::start().await;
    let key = gateway.key(KeyScopes::ALL);
    let table = [
        ("2025-03-26", "2025-03-26"),
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        ("2026-07-28", "2025-11-25"),
        ("2099-01-01", "2025-11-25"),
        ("garbage", "2025-11-25"),
    ];
    for (asked, answered) in table {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": initialize(asked)}).to_string();
        let reply = plain(
            &gateway,
            Method::POST,
            "/mcp",
            Some(&key),
            &[("mcp-protocol-version", "2025-06-18")],
            &body,
        )
        .await;
        assert_eq!(reply.status, StatusCode::OK, "{asked}: {}", reply.body);
        assert_eq!(reply.body["result"]["protocolVersion"], answered, "{asked}");
        assert_eq!(reply.body["result"]["serverInfo"]["name"], "waggle");
        assert!(!reply.headers.contains_key("mcp-session-id"));
    }
    let body = json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string();
    let reply = plain(&gateway, Method::POST, "/mcp", Some(&key), &[], &body).await;
    assert_eq!((reply.status, reply.body), (StatusCode::ACCEPTED, Value::Null));
    let reply = plain(
        &gateway,
        Method::POST,
        "/mcp",
        Some(&key),
        &[("mcp-protocol-version", "1999-01-01")],
        &ping(),
    )
    .await;
    assert_eq!(
        (reply.status, &reply.body["id"]),
        (StatusCode::BAD_REQUEST, &json!(7)),
        "{}",
        reply.body
    );
    let reply = gateway.rpc("/mcp", &key, "no/such", json!({})).await;
    assert_eq!(
        (reply.status, &reply.body["error"]["code"]),
        (StatusCode::OK, &json!(-32601))
    );
}

#[tokio::test]
async fn the_stateless_era_works_on_the_same_url() {
    let gateway = Running::start().await;
    let key = gateway.key(KeyScopes::ALL);
    let send = |method: &'static str, version: &'static str, header: &'static str, extra: Value| {
        let (gateway, key) = (&gateway, &key);
        async move {
            let mut params = extra;
            params["_meta"] = modern_meta(version);
            let name = params["name"]
                .as_str()
                .or(params["uri"].as_str())
                .unwrap_or_default()
                .to_owned();
            let body = json!({"jsonrpc": "2.0", "id": "a", "method": method, "params": params}).to_string();
            let mut headers = vec![("mcp-protocol-version", header), ("mcp-method", method)];
            if !name.is_empty() {
                headers.push(("mcp-name", name.as_str()));
            }
            plain(gateway, Method::POST, "/mcp", Some(key), &headers, &body).await
        }
    };
    let modern = "2026-07-28";
    let reply = send("server/discover", modern, modern, json!({})).await;
    assert_eq!(reply.status, StatusCode::OK, "{}", reply.body);
    assert_eq!(reply.body["result"]["cacheScope"], "private");
    assert!(
        reply.body["result"]["supportedVersions"]
            .as_array()
            .expect("versions")
            .contains(&json!(modern))
    );
    for (method, list) in [
        ("tools/list", "tools"),
        ("prompts/list", "prompts"),
        ("resources/list", "resources"),
        ("resources/templates/list", "resourceTemplates"),
    ] {
        let reply = send(method, modern, modern, json!({})).await;
        let result = &reply.body["result"];
        assert!(result[list].is_array(), "{method}: {}", reply.body);
        assert_eq!(result["cacheScope"], "private", "{method}");
        assert_eq!(result["ttlMs"], 300_000, "{method}");
        assert_eq!(result["resultType"], "complete", "{method}");
    }
    for method in ["initialize", "ping", "logging/setLevel", "resources/subscribe"] {
        let reply = send(method, modern, modern, json!({})).await;
        assert_eq!(
            (reply.status, &reply.body["error"]["code"]),
            (StatusCode::NOT_FOUND, &json!(-32601)),
            "{method}"
        );
        assert_eq!(reply.body["id"], "a");
    }
    let reply = send("tools/list", modern, "2025-11-25", json!({})).await;
    assert_eq!(
        (reply.status, &reply.body["error"]["code"]),
        (StatusCode::BAD_REQUEST, &json!(-32020)),
        "{}",
        reply.body
    );
    let reply = send("tools/list", "2099-01-01", "2099-01-01", json!({})).await;
    assert_eq!(
        (reply.status, &reply.body["error"]["code"]),
        (StatusCode::BAD_REQUEST, &json!(-32022)),
        "{}",
        reply.body
    );
    assert!(reply.body["error"]["data"]["supported"].is_array());
    let reply = send("resources/read", modern, modern, json!({"uri": "graph://nope"})).await;
    assert_eq!(reply.body["error"]["code"], -32602, "{}", reply.body);
    assert_eq!(reply.body["error"]["data"]["uri"], "graph://nope");
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}).to_string();
    let headers = [("mcp-protocol-version", modern), ("mcp-method", "tools/list")];
    let reply = plain(&gateway, Method::POST, "/mcp", Some(&key), &headers, &body).await;
    assert_eq!(
        (reply.status, &reply.body["error"]["code"]),
        (StatusCode::BAD_REQUEST, &json!(-32602)),
        "{}",
        reply.body
    );
}

#[tokio::test]
async fn prompts_and_resources_say_the_policy() {
    let gateway = Running::start().await;
    let key = gateway.key(KeyScopes::GRAPH_READ);
    let arguments = json!({"project": "shop", "session_id": "s1"});
    let reply = gateway
        .rpc(
            "/mcp",
            &key,
            "prompts/get",
            json!({"name": "waggle_memory_policy", "arguments": arguments}),
        )
        .await;
    let text = reply.body["result"]["messages"][0]["content"]["text"]
        .as_str()
        .expect("text")
        .to_owned();
    assert!(
        text.contains("prime_context first") && text.contains("project: \"shop\""),
        "{text}"
    );
    for (uri, word) in [
        ("graph://memory-policy", "observe_conversation"),
        ("graph://stats", "total_nodes: 3"),
        ("graph://recent", "Memory 1"),
    ] {
        let reply = gateway.rpc("/mcp", &key, "resources/read", json!({"uri": uri})).await;
        let text = reply.body["result"]["contents"][0]["text"].as_str().unwrap_or_default();
        assert!(text.contains(word), "{uri}: {}", reply.body);
        assert_eq!(reply.body["result"]["contents"][0]["mimeType"], "text/plain");
    }
    let reply = gateway
        .rpc("/mcp", &key, "resources/read", json!({"uri": "graph://nope"}))
        .await;
    assert_eq!(reply.body["error"]["code"], -32002);
    let complete = json!({"ref": {"type": "ref/prompt", "name": "waggle_memory_policy"}, "argument": {"name": "project", "value": "Project-1"}});
    let reply = gateway.rpc("/mcp", &key, "completion/complete", complete).await;
    let values = reply.body["result"]["completion"]["values"].as_array().expect("values");
    assert_eq!(values.len(), 11, "{}", reply.body);
}

#[tokio::test]
async fn shutdown_finishes_and_then_refuses() {
    let gateway = Running::start().await;
    let key = gateway.key(KeyScopes::ALL);
    assert_eq!(
        gateway.rpc("/mcp", &key, "ping", json!({})).await.status,
        StatusCode::OK
    );
    gateway.shutdown.cancel();
    let refused = async {
        loop {
            match tokio::net::TcpStream::connect(gateway.public).await {
                Err(_) => return,
                Ok(_) => tokio::time::sleep(std::time::Duration::from_millis(20)).await,
            }
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(5), refused)
        .await
        .expect("the listener closes");
}
