//! Exports, imports and uploads over tools and REST.

mod support;

use bytes::Bytes;
use http::{Method, StatusCode};
use http_body_util::Full;
use serde_json::{Value, json};
use support::records::{link, memory, turn};
use support::{Reply, Running};
use waggle_memory::import::ImportStrategy;
use waggle_memory::meta::KeyScopes;
use waggle_memory::outcome::Outcome;

const READ: KeyScopes = KeyScopes::GRAPH_READ;
const WRITE: KeyScopes = KeyScopes::GRAPH_WRITE;

/// A gateway whose tenant `acme` has a small graph with these contents.
async fn with_graph(contents: &[&str]) -> Running {
    let running = Running::start().await;
    let mut records = vec![turn()];
    for (number, content) in (1..).zip(contents) {
        records.push(memory(number, content));
    }
    records.extend((2..=contents.len()).map(|n| {
        let n = u8::try_from(n).expect("few");
        link(200 + n, n, 1)
    }));
    let outcome = running.stub.graphs.import("acme", ImportStrategy::Merge, records);
    assert!(matches!(outcome, Outcome::Imported(_)), "{outcome:?}");
    running
}

async fn get(running: &Running, path: &str, key: Option<&str>) -> Reply {
    let request = running
        .request(Method::GET, path, key)
        .body(Full::new(Bytes::new()))
        .expect("a request");
    running.send(request).await
}

async fn send_bytes(running: &Running, path: &str, key: &str, body: impl Into<Bytes>) -> Reply {
    let request = running
        .request(Method::POST, path, Some(key))
        .body(Full::new(body.into()))
        .expect("a request");
    running.send(request).await
}

fn code(result: &Value) -> &str {
    result["structuredContent"]["error_code"].as_str().unwrap_or_default()
}

#[tokio::test]
async fn a_backup_fits_inline_and_comes_back_into_another_tenant_as_it_was() {
    let running = with_graph(&["PostgreSQL it is", "Redis for caches"]).await;
    let key = running.key(READ);
    let backup = running
        .call(&key, "export_graph_backup", json!({"token_budget": 20_000}))
        .await;
    let answer = &backup["structuredContent"];
    assert_eq!(
        (&answer["node_count"], &answer["edge_count"]),
        (&json!(2), &json!(1)),
        "{answer}"
    );
    assert_eq!(answer["schema_version"], 1);
    let content = answer["content"].as_str().expect("inline");
    assert!(answer["content_hash"].as_str().expect("a hash").starts_with("sha256:"));

    let before = running.stub.graphs.records("acme");
    let other = running.key_of("other", WRITE);
    let imported = running
        .call(&other, "import_graph_backup", json!({"content": content}))
        .await;
    let report = &imported["structuredContent"];
    assert_eq!(
        (&report["nodes_created"], &report["edges_created"]),
        (&json!(2), &json!(1)),
        "{report}"
    );
    assert_eq!(
        (&report["transcripts_created"], &report["hash_verified"]),
        (&json!(1), &json!(true))
    );
    // Signed by this cluster: the authors stay, although the key is no administrator's.
    assert_eq!(running.stub.graphs.records("other"), before);
    assert_eq!(
        running.stub.graphs.records("acme"),
        before,
        "the tenant of the file is untouched"
    );

    let again = running
        .call(&other, "import_graph_backup", json!({"content": content}))
        .await;
    let report = &again["structuredContent"];
    assert_eq!(
        (&report["nodes_created"], &report["nodes_unchanged"]),
        (&json!(0), &json!(2)),
        "{report}"
    );
    assert_eq!(running.stub.graphs.records("other"), before);
}

#[tokio::test]
async fn what_is_too_long_is_a_link_for_its_key_and_tenant_alone() {
    let long = "word ".repeat(400);
    let running = with_graph(&[&long, &long]).await;
    let key = running.key(READ);
    let arguments = json!({"token_budget": 200, "output_path": "/srv/../secret/backup one.json"});
    let result = running.call(&key, "export_graph_backup", arguments).await;
    let link = result["content"]
        .as_array()
        .and_then(|content| content.iter().find(|block| block["type"] == "resource_link"))
        .expect("a link");
    assert_eq!(
        (&link["name"], &link["mimeType"]),
        (&json!("backup one.json"), &json!("application/json"))
    );
    let answer = &result["structuredContent"];
    assert_eq!(answer["node_count"], 2);
    assert!(
        answer["expires_at"].is_string() && answer["content"].is_null(),
        "{answer}"
    );
    let uri = link["uri"].as_str().expect("a uri");
    let base = format!("http://{}", running.public);
    let path = uri.strip_prefix(&base).expect("of this gateway");

    let file = get(&running, path, Some(&key)).await;
    assert_eq!(file.status, StatusCode::OK);
    assert_eq!(file.body["format"], "waggle-cluster-backup");
    assert_eq!(file.body["nodes"].as_array().map(Vec::len), Some(2));
    let disposition = file.headers["content-disposition"].to_str().expect("text");
    assert_eq!(disposition, "attachment; filename=\"backup one.json\"");

    assert_eq!(get(&running, path, None).await.status, StatusCode::UNAUTHORIZED);
    let strangers = [
        (running.key(READ), StatusCode::NOT_FOUND),
        (running.key_of("other", READ), StatusCode::NOT_FOUND),
        (running.key(WRITE), StatusCode::FORBIDDEN),
    ];
    for (stranger, status) in strangers {
        assert_eq!(get(&running, path, Some(&stranger)).await.status, status);
    }
    assert_eq!(
        get(&running, "/api/exports/made-up", Some(&key)).await.status,
        StatusCode::NOT_FOUND
    );
}

#[tokio::test]
async fn every_call_needs_its_scope() {
    let running = with_graph(&["PostgreSQL it is"]).await;
    let (reader, writer) = (running.key(READ), running.key(WRITE));
    let cases = [
        (&writer, "export_graph_backup", json!({})),
        (&reader, "import_graph_backup", json!({"content": "{}"})),
        (&reader, "export_graph_backup", json!({"secrets": "include"})),
    ];
    for (key, tool, arguments) in cases {
        let result = running.call(key, tool, arguments).await;
        assert_eq!(code(&result), "authorization_failed", "{tool}");
    }
    let rest = [
        (Method::GET, "/api/graph/export", &writer),
        (Method::POST, "/api/graph/import", &reader),
        (Method::POST, "/api/uploads", &reader),
    ];
    for (method, path, key) in rest {
        for (key, status) in [
            (Some(key.as_str()), StatusCode::FORBIDDEN),
            (None, StatusCode::UNAUTHORIZED),
        ] {
            let request = running.request(method.clone(), path, key).body(Full::new(Bytes::new()));
            let reply = running.send(request.expect("a request")).await;
            assert_eq!(reply.status, status, "{path}");
        }
    }
}

#[tokio::test]
async fn a_secret_is_refused_redacted_or_included() {
    let secret = "ghp_abcdefghijklmnopqrstuvwxyz0123456789";
    let running = with_graph(&["PostgreSQL it is", &format!("the token is {secret}")]).await;
    let key = running.key(READ.with(WRITE));
    for format in ["json", "graphml"] {
        let export = |secrets: &str| json!({"format": format, "secrets": secrets, "token_budget": 20_000});
        let refused = running.call(&key, "export_graph_backup", export("refuse")).await;
        assert_eq!(code(&refused), "secrets_found");
        assert!(!refused.to_string().contains(secret));
        let redacted = running.call(&key, "export_graph_backup", export("redact")).await;
        let content = redacted["structuredContent"]["content"].as_str().expect("inline");
        assert!(!content.contains(secret) && content.contains("[secret:"), "{content}");
        let included = running.call(&key, "export_graph_backup", export("include")).await;
        assert!(included.to_string().contains(secret));
    }
}

/// The secret stands behind more bytes than wait for a reader.
#[tokio::test]
async fn a_download_with_a_late_secret_is_refused_before_its_first_byte() {
    let secret = "ghp_abcdefghijklmnopqrstuvwxyz0123456789";
    let long = "word ".repeat(10_000);
    let mut contents: Vec<&str> = vec![&long; 40];
    let last = format!("the token is {secret}");
    contents.push(&last);
    let running = with_graph(&contents).await;
    let key = running.key(READ.with(WRITE));
    for format in ["json", "graphml", "abhi"] {
        let path = format!("/api/graph/export?format={format}");
        let refused = get(&running, &path, Some(&key)).await;
        assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{format}: {:?}", refused.body);
        assert_eq!(refused.body["error_code"], "secrets_found", "{format}");
        assert!(!refused.body.to_string().contains(secret));
        let path = format!("{path}&secrets=include");
        assert_eq!(
            get(&running, &path, Some(&key)).await.status,
            StatusCode::OK,
            "{format}"
        );
    }
}

#[tokio::test]
async fn hostile_files_are_refused_with_a_reason_and_change_nothing() {
    let running = with_graph(&["PostgreSQL it is", "Redis for caches"]).await;
    let key = running.key(READ.with(WRITE));
    let backup = running
        .call(&key, "export_graph_backup", json!({"token_budget": 20_000}))
        .await;
    let good = backup["structuredContent"]["content"]
        .as_str()
        .expect("inline")
        .to_owned();
    let before = running.stub.graphs.records("acme");
    let long = good.replace("Redis for caches", &"x".repeat(70_000));
    let files = [
        ("", "validation_failed"),
        ("{}", "validation_failed"),
        ("[1, 2", "validation_failed"),
        ("\u{0}\u{1}", "validation_failed"),
        (&good.replace("Redis", "Memcached"), "hash_verification_failed"),
        (&good[..good.len() / 2], "validation_failed"),
        (
            &good.replace("\"format_version\":1", "\"format_version\":99"),
            "schema_version_incompatible",
        ),
        (&good.replace("decision", "no_such_type"), "validation_failed"),
        (&long, "validation_failed"),
        (&format!("{good}{good}"), "validation_failed"),
    ];
    for (file, expected) in files {
        let result = running
            .call(&key, "import_graph_backup", json!({"content": file}))
            .await;
        let start: String = file.chars().take(40).collect();
        assert_eq!(code(&result), expected, "{start:?}: {result}");
        if !file.contains('\u{0}') {
            let reply = send_bytes(&running, "/api/graph/import", &key, file.to_owned()).await;
            assert!(reply.status.is_client_error(), "{start:?}: {:?}", reply.body);
        }
    }
    for arguments in [
        json!({"input_path": "/etc/passwd"}),
        json!({"root_path": "/", "content": good}),
    ] {
        let result = running.call(&key, "import_graph_backup", arguments).await;
        assert_eq!(code(&result), "path_not_supported");
    }
    for arguments in [json!({}), json!({"content": good, "upload_id": "x"})] {
        let result = running.call(&key, "import_graph_backup", arguments).await;
        assert_eq!(code(&result), "validation_failed");
    }
    assert_eq!(running.stub.graphs.records("acme"), before);
}

#[tokio::test]
async fn an_upload_is_imported_by_its_owner_and_counted() {
    let running = with_graph(&["PostgreSQL it is"]).await;
    let key = running.key(READ.with(WRITE));
    let backup = get(&running, "/api/graph/export?project=shop", Some(&key)).await;
    assert_eq!(backup.status, StatusCode::OK, "{:?}", backup.body);
    let raw = running
        .call(&key, "export_graph_backup", json!({"token_budget": 20_000}))
        .await["structuredContent"]["content"]
        .as_str()
        .expect("inline")
        .to_owned();
    let reply = send_bytes(&running, "/api/uploads", &key, raw.clone()).await;
    assert_eq!(reply.status, StatusCode::CREATED, "{:?}", reply.body);
    assert_eq!(reply.body["size"], raw.len());
    assert_eq!(reply.body["sha256"].as_str().map(str::len), Some(64));
    let upload = json!({"upload_id": reply.body["upload_id"]});
    let stranger = running.key(WRITE);
    let refused = running.call(&stranger, "import_graph_backup", upload.clone()).await;
    assert_eq!(code(&refused), "not_found");
    let imported = running.call(&key, "import_graph_backup", upload.clone()).await;
    assert_eq!(imported["structuredContent"]["nodes_unchanged"], 1, "{imported}");
    // The same call again finds it, as long as nobody needs its place.
    for number in 0..4 {
        let again = running.call(&key, "import_graph_backup", upload.clone()).await;
        assert_eq!(code(&again) == "not_found", number == 4, "{number}: {again}");
        let reply = send_bytes(&running, "/api/uploads", &key, "more").await;
        assert_eq!(reply.status, StatusCode::CREATED, "{number}");
    }
    let gone = running.call(&key, "import_graph_backup", upload).await;
    assert_eq!(code(&gone), "not_found");
    let reply = send_bytes(&running, "/api/uploads", &key, "one too many").await;
    assert_eq!(reply.body["error_code"], "limit_exceeded");
    let other = running.key_of("other", WRITE);
    assert_eq!(
        send_bytes(&running, "/api/uploads", &other, "x").await.status,
        StatusCode::CREATED
    );
    assert_eq!(
        send_bytes(&running, "/api/uploads", &other, "").await.status,
        StatusCode::BAD_REQUEST
    );
}

#[tokio::test]
async fn strategies_and_trust_reach_the_node() {
    let running = with_graph(&["PostgreSQL it is"]).await;
    let admin = running.key(KeyScopes::ALL);
    let content = running
        .call(&admin, "export_graph_backup", json!({"token_budget": 20_000}))
        .await["structuredContent"]["content"]
        .as_str()
        .expect("inline")
        .to_owned();
    let arguments = json!({
        "content": content, "strategy": "branch", "project": "copy", "dry_run": true, "allow_dangling": true,
    });
    running.call(&admin, "import_graph_backup", arguments).await;
    let writer = running.key(WRITE);
    // Without the signature the authors of the file are not believed.
    let signature = content.find("\"signature\":").expect("a signature");
    let unsigned = format!("{}\"signature\":null}}\n", &content[..signature]);
    let result = running
        .call(
            &writer,
            "import_graph_backup",
            json!({"content": unsigned, "strategy": "overwrite"}),
        )
        .await;
    assert_eq!(result["isError"], json!(false), "{result}");
    let heads = running.stub.graphs.heads.lock().expect("heads").clone();
    let [first, second] = heads.as_slice() else {
        panic!("two imports: {heads:?}")
    };
    assert_eq!((first.strategy, first.project.as_deref()), (3, Some("copy")));
    assert!(first.dry_run && first.allow_dangling && first.keep_authors && first.overwrite_newer);
    assert_eq!((second.strategy, second.project.as_deref()), (2, None));
    assert!(!second.dry_run && !second.keep_authors && !second.overwrite_newer);
}
