//! REST for tenants and keys, on the admin listener.

mod support;

use http::{Method, StatusCode};
use serde_json::{Value, json};
use support::Running;
use waggle_gateway::keys::{ApiKeyText, BadKey, hash_matches};
use waggle_gateway::{Gateway, GatewayError, Listen, OPERATOR_TENANT, Secret};
use waggle_memory::meta::KeyScopes;

#[test]
fn key_texts_are_read_strictly() {
    let key = ApiKeyText::make("dev").expect("a key");
    let text = key.reveal();
    let parts: Vec<&str> = text.split('_').collect();
    assert_eq!(
        (parts.len(), parts[0], parts[1], parts[2], parts[3].len()),
        (5, "wg", "dev", key.kid(), 43)
    );
    assert_eq!(ApiKeyText::parse(&text), Ok(key.clone()));
    let with = |at: usize, part: &str| {
        let mut parts = parts.clone();
        parts[at] = part;
        ApiKeyText::parse(&parts.join("_"))
    };
    assert_eq!(with(0, "xx"), Err(BadKey::Shape));
    assert_eq!(with(1, "DEV"), Err(BadKey::Environment));
    assert_eq!(with(1, "prod"), Err(BadKey::Check));
    assert_eq!(with(2, ""), Err(BadKey::Id));
    assert_eq!(with(2, "other"), Err(BadKey::Check));
    assert_eq!(with(3, "short"), Err(BadKey::Secret));
    assert_eq!(with(4, "000000"), Err(BadKey::Check));
    assert_eq!(ApiKeyText::parse(&format!("{text}_x")), Err(BadKey::Shape));
    assert_eq!(ApiKeyText::parse(&text[..text.len() - 1]), Err(BadKey::Check));
    assert_eq!(ApiKeyText::parse(""), Err(BadKey::Shape));
    assert_eq!(ApiKeyText::make("De v"), Err(BadKey::Environment));
    assert!(!format!("{key:?}").contains(parts[3]), "the secret is not shown");
    let hash = key.keyed_hash(&[1; 32]);
    assert!(hash_matches(&hash, &key.keyed_hash(&[1; 32])));
    assert!(!hash_matches(&hash, &key.keyed_hash(&[2; 32])));
    assert!(!hash_matches(&hash[..31], &hash) && !hash_matches(&[], &hash));
}

#[tokio::test]
async fn operators_make_tenants_and_keys_that_work() {
    let gateway = Running::start().await;
    let operator = gateway.key_of(OPERATOR_TENANT, KeyScopes::ALL);
    let made = gateway
        .admin(
            Method::POST,
            "/api/admin/tenants",
            Some(&operator),
            json!({"tenant_id": "blue", "name": "Blue"}),
        )
        .await;
    assert_eq!(
        (made.status, &made.body["tenant_id"]),
        (StatusCode::CREATED, &json!("blue"))
    );
    let body = json!({"tenant_id": "blue", "name": "agents", "scopes": ["graph:read", "graph:write"]});
    let made = gateway
        .admin(Method::POST, "/api/admin/keys", Some(&operator), body)
        .await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.body);
    assert_eq!(made.body["scopes"], json!(["graph:read", "graph:write"]));
    assert!(made.body["expires_at"].is_string(), "ninety days unless said otherwise");
    let key = made.body["key"].as_str().expect("shown once").to_owned();
    assert_eq!(gateway.call(&key, "get_stats", json!({})).await["isError"], false);
    let listed = gateway
        .admin(
            Method::GET,
            "/api/admin/keys?tenant_id=blue",
            Some(&operator),
            Value::Null,
        )
        .await;
    assert_eq!(listed.body["keys"].as_array().map(Vec::len), Some(1));
    assert!(
        !listed.body.to_string().contains(key.split('_').nth(3).expect("secret")),
        "the secret is not listed"
    );
    let path = format!("/api/admin/keys/{}", made.body["key_id"].as_str().expect("id"));
    let revoked = gateway.admin(Method::DELETE, &path, Some(&operator), Value::Null).await;
    assert_eq!(revoked.status, StatusCode::OK, "{}", revoked.body);
    let reply = gateway.rpc("/mcp", &key, "ping", json!({})).await;
    assert_eq!(
        reply.status,
        StatusCode::UNAUTHORIZED,
        "revocation is felt at once on the gateway that did it"
    );
}

#[tokio::test]
async fn tenants_administer_only_themselves() {
    let gateway = Running::start().await;
    let own = gateway.key(KeyScopes::ALL);
    let listed = gateway
        .admin(Method::GET, "/api/admin/tenants", Some(&own), Value::Null)
        .await;
    assert_eq!(listed.body["tenants"].as_array().map(Vec::len), Some(1));
    let table = [
        (
            Method::POST,
            "/api/admin/tenants",
            json!({"tenant_id": "x"}),
            StatusCode::FORBIDDEN,
        ),
        (
            Method::GET,
            "/api/admin/keys?tenant_id=other",
            Value::Null,
            StatusCode::FORBIDDEN,
        ),
        (
            Method::POST,
            "/api/admin/keys",
            json!({"tenant_id": "other", "name": "n", "scopes": ["graph:read"]}),
            StatusCode::FORBIDDEN,
        ),
        (
            Method::POST,
            "/api/admin/keys",
            json!({"name": "n", "scopes": ["graph:read"], "unlimited": true}),
            StatusCode::FORBIDDEN,
        ),
        (
            Method::POST,
            "/api/admin/keys",
            json!({"name": "n", "scopes": ["graph:raed"]}),
            StatusCode::BAD_REQUEST,
        ),
        (
            Method::POST,
            "/api/admin/keys",
            json!({"name": "n", "scopes": []}),
            StatusCode::BAD_REQUEST,
        ),
        (
            Method::POST,
            "/api/admin/keys",
            json!({"name": "n", "scope": ["graph:read"]}),
            StatusCode::BAD_REQUEST,
        ),
        (
            Method::POST,
            "/api/admin/keys",
            json!({"name": "n", "scopes": ["graph:read"]}),
            StatusCode::CREATED,
        ),
        (
            Method::DELETE,
            "/api/admin/keys/nobody",
            Value::Null,
            StatusCode::NOT_FOUND,
        ),
        (
            Method::PATCH,
            "/api/admin/keys",
            Value::Null,
            StatusCode::METHOD_NOT_ALLOWED,
        ),
        (Method::GET, "/api/admin/nothing", Value::Null, StatusCode::NOT_FOUND),
    ];
    for (method, path, body, status) in table {
        let reply = gateway.admin(method.clone(), path, Some(&own), body).await;
        assert_eq!(reply.status, status, "{method} {path}: {}", reply.body);
        assert!(
            status.is_success() || reply.body["error_code"].is_string(),
            "{}",
            reply.body
        );
    }
    for (scopes, path, method) in [
        (
            KeyScopes::GRAPH_READ.with(KeyScopes::GRAPH_WRITE),
            "/api/admin/keys",
            Method::GET,
        ),
        (KeyScopes::ADMIN_READ, "/api/admin/keys", Method::POST),
        (KeyScopes::ADMIN_WRITE, "/api/admin/tenants", Method::GET),
    ] {
        let key = gateway.key(scopes);
        let reply = gateway
            .admin(method, path, Some(&key), json!({"name": "n", "scopes": ["graph:read"]}))
            .await;
        assert_eq!(reply.status, StatusCode::FORBIDDEN, "{path}");
    }
    let limited = gateway.key(KeyScopes::ADMIN_WRITE);
    let more = json!({"name": "n", "scopes": ["graph:read"]});
    let reply = gateway
        .admin(Method::POST, "/api/admin/keys", Some(&limited), more)
        .await;
    assert_eq!(
        reply.status,
        StatusCode::FORBIDDEN,
        "no key gives what it does not have"
    );
    for path in ["/api/admin/keys", "/api/admin/tenants"] {
        let reply = gateway.admin(Method::GET, path, None, Value::Null).await;
        assert_eq!(reply.status, StatusCode::UNAUTHORIZED);
    }
}

#[tokio::test]
async fn health_and_status_answer_on_the_admin_listener() {
    let gateway = Running::start().await;
    for path in [
        "/livez",
        "/readyz",
        "/startupz",
        "/healthz",
        "/healthz?verbose",
        "/status",
    ] {
        let reply = gateway.admin(Method::GET, path, None, Value::Null).await;
        assert_eq!(reply.status, StatusCode::OK, "{path}: {}", reply.body);
    }
    let status = gateway.admin(Method::GET, "/status", None, Value::Null).await;
    assert_eq!(
        (&status.body["role"], &status.body["nodes"][0]["node"]),
        (&json!("gateway"), &json!("nod_1"))
    );
}

#[tokio::test]
async fn options_that_do_not_fit_are_reported_at_once() {
    let stub = std::sync::Arc::new(support::stub::Stub::default());
    let mut options = support::options(support::stub::serve(stub).await);
    let everywhere: std::net::SocketAddr = ([0, 0, 0, 0], 0).into();
    options.public = Listen::plain(everywhere);
    options.admin = Some(Listen::plain(everywhere));
    options.conformance = true;
    options.pepper = Secret::new([1; 3]);
    options.nodes.clear();
    options.browser_origins = vec!["https://no-port.example".to_owned()];
    let Err(GatewayError::Options(problems)) = Gateway::bind(options).await else {
        panic!("it must refuse")
    };
    for word in [
        "pepper",
        "nodes",
        "public_hosts",
        "conformance",
        "admin listener",
        "has no port",
    ] {
        assert!(
            problems.iter().any(|problem| problem.contains(word)),
            "{word}: {problems:?}"
        );
    }
}
