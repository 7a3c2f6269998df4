//! Every REST route: the tenant is the one of the credential, and whoever names one is refused. And the listing of a
//! graph.

mod support;

use std::collections::BTreeSet;
use std::path::Path;

use bytes::Bytes;
use http::{Method, StatusCode};
use http_body_util::Full;
use serde_json::{Value, json};
use support::{Reply, Running};
use waggle_memory::meta::KeyScopes;

/// Routes of the public listener as they stand in the code, with an address that leads there.
const PUBLIC: [(Method, &str, &str); 9] = [
    (Method::GET, "/api/exports/{sealed}", "/api/exports/abc"),
    (Method::GET, "/api/graph", "/api/graph"),
    (Method::GET, "/api/graph/nodes", "/api/graph/nodes"),
    (Method::GET, "/api/graph/edges", "/api/graph/edges"),
    (Method::GET, "/api/graph/export", "/api/graph/export"),
    (Method::POST, "/api/graph/import", "/api/graph/import"),
    (Method::POST, "/api/uploads", "/api/uploads"),
    (Method::POST, "/api/memory_replay", "/api/memory_replay"),
    (Method::POST, "/api/transcripts/handoff", "/api/transcripts/handoff"),
];

/// The same of the admin listener.
const ADMIN: [(Method, &str, &str); 11] = [
    (Method::GET, "/api/admin/tenants", "/api/admin/tenants"),
    (Method::POST, "/api/admin/tenants", "/api/admin/tenants"),
    (Method::GET, "/api/admin/keys", "/api/admin/keys"),
    (Method::POST, "/api/admin/keys", "/api/admin/keys"),
    (Method::DELETE, "/api/admin/keys/{id}", "/api/admin/keys/abc"),
    (Method::GET, "/api/admin/cluster", "/api/admin/cluster"),
    (Method::POST, "/api/admin/cluster/plan", "/api/admin/cluster/plan"),
    (Method::POST, "/api/admin/join-tokens", "/api/admin/join-tokens"),
    (Method::POST, "/api/admin/nodes/{id}/state", "/api/admin/nodes/1/state"),
    (
        Method::POST,
        "/api/admin/shards/{id}/leader",
        "/api/admin/shards/1/leader",
    ),
    (
        Method::GET,
        "/api/admin/shards/{id}/digests",
        "/api/admin/shards/1/digests",
    ),
];

async fn send(running: &Running, method: &Method, path: &str, key: Option<&str>, body: &str) -> Reply {
    let request = running
        .request(method.clone(), path, key)
        .header("content-type", "application/json")
        .body(Full::new(Bytes::copy_from_slice(body.as_bytes())))
        .expect("a request");
    running.send(request).await
}

/// Text literals of the code that are paths of the API.
fn routes_in_the_code() -> BTreeSet<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/http");
    let mut routes = BTreeSet::new();
    for entry in std::fs::read_dir(folder).expect("the folder of the code") {
        let path = entry.expect("a file").path();
        let code = std::fs::read_to_string(path).expect("a source file");
        for part in code
            .split('"')
            .skip(1)
            .step_by(2)
            .filter(|part| part.starts_with("/api/"))
        {
            routes.insert(part.to_owned());
        }
    }
    routes
}

#[test]
fn the_tables_of_this_test_name_every_route() {
    let tested = PUBLIC.iter().chain(&ADMIN).map(|(_, route, _)| (*route).to_owned());
    let tested: BTreeSet<String> = tested.collect();
    assert_eq!(routes_in_the_code(), tested, "add new routes to the tables");
}

#[tokio::test]
async fn a_tenant_in_the_address_is_refused_whatever_it_is() {
    let running = Running::start().await;
    let key = running.key(KeyScopes::ALL);
    for (method, _, path) in &PUBLIC {
        for query in [
            "tenant_id=other",
            "tenant_id=acme",
            "tenant=other",
            "tenant_id=",
            "project=x&tenant%5Fid=other",
            "TENANT_ID=other",
        ] {
            let path = format!("{path}?{query}");
            let reply = send(&running, method, &path, Some(&key), "{}").await;
            assert_eq!(reply.status, StatusCode::FORBIDDEN, "{method} {path}: {:?}", reply.body);
            assert_eq!(reply.body["error_code"], "authorization_failed", "{method} {path}");
            let stranger = send(&running, method, &path, None, "{}").await;
            assert_eq!(stranger.status, StatusCode::UNAUTHORIZED, "{method} {path}");
        }
    }
    assert!(
        running.stub.graphs.heads.lock().expect("heads").is_empty(),
        "nothing was imported"
    );
}

#[tokio::test]
async fn a_tenant_in_a_body_is_refused() {
    let running = Running::start().await;
    let key = running.key(KeyScopes::ALL);
    let message = json!({"role": "user", "content": "hello"});
    let bodies = [
        ("/api/memory_replay", json!({"tenant_id": "acme"})),
        ("/api/memory_replay", json!({"tenant": "other", "memory_id": "x"})),
        (
            "/api/transcripts/handoff",
            json!({"tenant_id": "other", "messages": [message]}),
        ),
        (
            "/api/transcripts/handoff",
            json!({"messages": [message], "tenant": "acme"}),
        ),
    ];
    for (path, body) in bodies {
        let reply = send(&running, &Method::POST, path, Some(&key), &body.to_string()).await;
        assert_eq!(reply.status, StatusCode::FORBIDDEN, "{path} {body}: {:?}", reply.body);
    }
    // What a message says of itself chooses nothing.
    let body = json!({"session_id": "s", "messages": [{"role": "user", "content": "hi", "tenant_id": "other"}]});
    let reply = send(
        &running,
        &Method::POST,
        "/api/transcripts/handoff",
        Some(&key),
        &body.to_string(),
    )
    .await;
    assert_ne!(reply.status, StatusCode::FORBIDDEN, "{:?}", reply.body);
}

#[tokio::test]
async fn an_administrator_of_one_tenant_names_no_other() {
    let running = Running::start().await;
    let key = running.key(KeyScopes::ALL);
    for (method, _, path) in &ADMIN {
        for query in ["tenant_id=other", "tenant=other", "tenant_id=system"] {
            let path = format!("{path}?{query}");
            let reply = running.admin(method.clone(), &path, Some(&key), json!({})).await;
            assert_eq!(reply.status, StatusCode::FORBIDDEN, "{method} {path}: {:?}", reply.body);
        }
    }
    let reply = running
        .admin(Method::GET, "/api/admin/keys?tenant_id=acme", Some(&key), json!({}))
        .await;
    assert_eq!(reply.status, StatusCode::OK, "{:?}", reply.body);
}

#[tokio::test]
async fn a_wrong_method_is_refused_as_json() {
    let running = Running::start().await;
    let key = running.key(KeyScopes::ALL);
    for (method, _, path) in &PUBLIC {
        let wrong = if method == Method::GET {
            Method::POST
        } else {
            Method::PUT
        };
        let reply = send(&running, &wrong, path, Some(&key), "{}").await;
        assert_eq!(reply.status, StatusCode::METHOD_NOT_ALLOWED, "{wrong} {path}");
        assert_eq!(
            reply.body["error_code"], "method_not_allowed",
            "{wrong} {path}: {:?}",
            reply.body
        );
    }
}

#[tokio::test]
async fn what_concerns_the_whole_cluster_is_for_operators_only() {
    let running = Running::start().await;
    let key = running.key(KeyScopes::ALL);
    let cluster = |path: &str| !path.starts_with("/api/admin/tenants") && !path.starts_with("/api/admin/keys");
    for (method, _, path) in ADMIN.iter().filter(|(_, _, path)| cluster(path)) {
        let reply = running.admin(method.clone(), path, Some(&key), json!({})).await;
        assert_eq!(reply.status, StatusCode::FORBIDDEN, "{method} {path}: {:?}", reply.body);
        let stranger = running.admin(method.clone(), path, None, json!({})).await;
        assert_eq!(stranger.status, StatusCode::UNAUTHORIZED, "{method} {path}");
    }
}

async fn list(running: &Running, path: &str, key: &str) -> Reply {
    send(running, &Method::GET, path, Some(key), "").await
}

#[tokio::test]
async fn a_graph_is_listed_page_by_page() {
    let running = Running::start().await;
    running.stub.graphs.fill("acme", 5);
    let key = running.key(KeyScopes::GRAPH_READ);
    let all = list(&running, "/api/graph", &key).await;
    assert_eq!(all.status, StatusCode::OK, "{:?}", all.body);
    let ids = |page: &Value, list: &str| -> Vec<String> {
        let items = page[list].as_array().cloned().unwrap_or_default();
        items
            .iter()
            .map(|item| item["id"].as_str().expect("an id").to_owned())
            .collect()
    };
    assert_eq!((ids(&all.body, "nodes").len(), ids(&all.body, "edges").len()), (5, 4));
    assert!(
        all.body["next_cursor"].is_null() && all.body["read_at"].is_string(),
        "{:?}",
        all.body
    );
    assert_eq!(all.body["nodes"][0]["tenant_id"], "acme");

    // Pages of any size bring the same, each once, nodes before edges.
    for (path, lists) in [("/api/graph", 2), ("/api/graph/nodes", 1), ("/api/graph/edges", 1)] {
        for limit in 1..=10 {
            let (mut nodes, mut edges) = (Vec::new(), Vec::new());
            let mut cursor = String::new();
            loop {
                let page = list(&running, &format!("{path}?limit={limit}{cursor}"), &key).await;
                assert_eq!(page.status, StatusCode::OK, "{path} {limit}: {:?}", page.body);
                let (more_nodes, more_edges) = (ids(&page.body, "nodes"), ids(&page.body, "edges"));
                assert!(more_nodes.len() + more_edges.len() <= limit, "{path} {limit}");
                nodes.extend(more_nodes);
                edges.extend(more_edges);
                match page.body["next_cursor"].as_str() {
                    Some(next) => cursor = format!("&cursor={next}"),
                    None => break,
                }
            }
            if lists == 2 || path.ends_with("nodes") {
                assert_eq!(nodes, ids(&all.body, "nodes"), "{path} {limit}");
            }
            if lists == 2 || path.ends_with("edges") {
                assert_eq!(edges, ids(&all.body, "edges"), "{path} {limit}");
            }
        }
    }
}

#[tokio::test]
async fn a_listing_is_refused_as_a_tool_would_be() {
    let running = Running::start().await;
    running.stub.graphs.fill("acme", 3);
    let key = running.key(KeyScopes::GRAPH_READ);
    let writer = running.key(KeyScopes::GRAPH_WRITE);
    assert_eq!(
        list(&running, "/api/graph", &writer).await.status,
        StatusCode::FORBIDDEN
    );
    for query in [
        "limit=0",
        "limit=201",
        "limit=x",
        "node_type=no_such_type",
        "relationship=custom_rel",
        "colour=red",
        "include_invalidated=perhaps",
        "cursor=made-up",
    ] {
        let reply = list(&running, &format!("/api/graph?{query}"), &key).await;
        assert_eq!(reply.status, StatusCode::BAD_REQUEST, "{query}: {:?}", reply.body);
    }
    let refused = list(&running, "/api/graph?relationship=custom_rel", &key).await;
    let said = refused.body["error"].as_str().expect("a message");
    assert!(said.contains("contradicts"), "the allowed words are named: {said}");
    assert_eq!(
        list(&running, "/api/graph/edges?node_type=fact", &key).await.status,
        StatusCode::BAD_REQUEST
    );
    let posted = send(&running, &Method::POST, "/api/graph", Some(&key), "{}").await;
    assert_eq!(posted.status, StatusCode::METHOD_NOT_ALLOWED);

    // A cursor is good for its key, path and filters alone.
    let page = list(&running, "/api/graph?limit=1", &key).await;
    let cursor = page.body["next_cursor"].as_str().expect("a cursor").to_owned();
    let other = running.key(KeyScopes::GRAPH_READ);
    for (path, key) in [
        ("/api/graph", &other),
        ("/api/graph/nodes", &key),
        ("/api/graph?project=x", &key),
    ] {
        let mark = if path.contains('?') { '&' } else { '?' };
        let reply = list(&running, &format!("{path}{mark}cursor={cursor}"), key).await;
        assert_eq!(reply.body["error_code"], "invalid_cursor", "{path}: {:?}", reply.body);
    }
    let stranger = running.key_of("other", KeyScopes::GRAPH_READ);
    let nothing = list(&running, "/api/graph", &stranger).await;
    assert_eq!(
        (&nothing.body["nodes"], &nothing.body["edges"]),
        (&json!([]), &json!([]))
    );
}
