//! A whole graph out of the real server, over its URL, and into another tenant.

use anyhow::{Context, Result, ensure};
use reqwest::StatusCode;
use serde_json::{Value, json};
use tempfile::TempDir;
use waggle_tests::mcp::Client;
use waggle_tests::server::Dev;

struct World {
    _folder: TempDir,
    dev: Dev,
    http: reqwest::Client,
    base: String,
    operator_key: String,
}

impl World {
    fn start() -> Result<Self> {
        let folder = tempfile::tempdir().context("make a folder for the data")?;
        let data = folder.path().join("data");
        let dev = Dev::start(&data)?;
        let operator_key =
            std::fs::read_to_string(data.join("secrets/operator-key")).context("read the operator's key")?;
        Ok(Self {
            base: dev.mcp_url.trim_end_matches("/mcp").to_owned(),
            http: {
                waggle_tests::install_tls_provider();
                reqwest::Client::builder().no_proxy().build()?
            },
            operator_key: operator_key.trim().to_owned(),
            dev,
            _folder: folder,
        })
    }

    async fn admin(&self, path: &str, body: Value) -> Result<Value> {
        let url = format!("{}{path}", self.dev.admin_url);
        let sent = self
            .http
            .post(url)
            .bearer_auth(&self.operator_key)
            .body(body.to_string());
        let answer = sent.send().await?;
        ensure!(answer.status().is_success(), "{path}: {}", answer.text().await?);
        Ok(serde_json::from_str(&answer.text().await?)?)
    }

    async fn new_tenant(&self, tenant: &str, scopes: &[&str]) -> Result<String> {
        self.admin("/api/admin/tenants", json!({"tenant_id": tenant})).await?;
        let key = json!({"tenant_id": tenant, "name": "test", "scopes": scopes});
        let made = self.admin("/api/admin/keys", key).await?;
        let key = made.get("raw_api_key").and_then(Value::as_str);
        Ok(key.context("find the new key")?.to_owned())
    }

    async fn export(&self, key: &str, query: &str) -> Result<(StatusCode, String)> {
        let url = format!("{}/api/graph/export?{query}", self.base);
        let answer = self.http.get(url).bearer_auth(key).send().await?;
        Ok((answer.status(), answer.text().await?))
    }

    async fn import(&self, key: &str, query: &str, file: String) -> Result<(StatusCode, Value)> {
        let url = format!("{}/api/graph/import?{query}", self.base);
        let answer = self.http.post(url).bearer_auth(key).body(file).send().await?;
        let (status, text) = (answer.status(), answer.text().await?);
        Ok((status, serde_json::from_str(&text).with_context(|| text.clone())?))
    }
}

/// All but what names the file itself.
fn records(file: &str) -> Result<Value> {
    let mut file: Value = serde_json::from_str(file).context("read a backup")?;
    if let Some(members) = file.as_object_mut() {
        for own in ["tenant_id", "exported_at", "read_at", "content_hash", "signature"] {
            members.shift_remove(own);
        }
    }
    Ok(file)
}

async fn fill(client: &Client) -> Result<()> {
    let turns = [
        (
            "We decided to use PostgreSQL for the ledger because it has strong transactions.",
            "Noted: PostgreSQL.",
        ),
        (
            "The ledger depends on the payments service. Zoë prefers short branches.",
            "I will remember that.",
        ),
        (
            "We moved the ledger from PostgreSQL to CockroachDB.",
            "CockroachDB it is.",
        ),
    ];
    for (user, assistant) in turns {
        let turn = json!({
            "user_message": user, "assistant_response": assistant,
            "project": "ledger", "agent_id": "claude", "session_id": "s1",
        });
        client.call("observe_conversation", turn).await?.ok()?;
    }
    let memory = json!({
        "label": "Retention", "content": "Backups are kept for 30 days", "node_type": "concept",
        "project": "ops", "tags": ["requirement"],
    });
    let stored = client.call("store_node", memory).await?.ok()?;
    let id = stored.str("id")?.to_owned();
    let change = json!({"node_id": id, "content": "Backups are kept for 90 days"});
    client.call("update_node", change).await?.ok()?;
    let gone = json!({"label": "Gone", "content": "The old badge colour is green", "node_type": "fact"});
    let gone = client.call("store_node", gone).await?.ok()?;
    client
        .call("delete_node", json!({"node_id": gone.str("id")?}))
        .await?
        .ok()?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_goes_into_another_tenant_and_comes_out_the_same() -> Result<()> {
    let world = World::start()?;
    let client = Client::of(&world.dev)?;
    fill(&client).await?;
    let (status, file) = world.export(&world.dev.api_key, "format=json").await?;
    ensure!(status == StatusCode::OK, "{status}: {file}");
    let wanted = records(&file)?;
    ensure!(
        wanted["nodes"].as_array().is_some_and(|nodes| nodes.len() > 3),
        "{wanted}"
    );
    ensure!(
        wanted["tombstones"].as_array().map(Vec::len) == Some(1),
        "{}",
        wanted["tombstones"]
    );

    // Signed by this cluster, so a key that only writes keeps the authors.
    let key = world.new_tenant("copy", &["graph:read", "graph:write"]).await?;
    let (status, tried) = world.import(&key, "dry_run=true", file.clone()).await?;
    ensure!(status == StatusCode::OK, "{tried}");
    let (_, empty) = world.export(&key, "").await?;
    ensure!(
        records(&empty)?["nodes"] == json!([]),
        "a trial writes nothing: {empty}"
    );
    let (status, imported) = world.import(&key, "", file.clone()).await?;
    ensure!(status == StatusCode::OK, "{imported}");
    for field in [
        "nodes_created",
        "edges_created",
        "transcripts_created",
        "tombstones_created",
    ] {
        ensure!(
            tried[field] == imported[field],
            "{field}: {} {}",
            tried[field],
            imported[field]
        );
    }
    ensure!(
        imported["hash_verified"] == true && imported["conflict_count"] == 0,
        "{imported}"
    );
    let (_, copy) = world.export(&key, "").await?;
    ensure!(records(&copy)? == wanted, "the copy differs:\n{copy}\nfrom\n{file}");

    let (_, again) = world.import(&key, "", file.clone()).await?;
    ensure!(again["nodes_created"] == 0 && again["nodes_updated"] == 0, "{again}");
    let (_, copy) = world.export(&key, "").await?;
    ensure!(records(&copy)? == wanted, "a second import changes nothing");
    let (_, source) = world.export(&world.dev.api_key, "").await?;
    ensure!(records(&source)? == wanted, "the tenant of the file is untouched");

    // What was imported is found, by words at once and by meaning as soon as its vector is there.
    let copy = Client::new(&world.dev.mcp_url, &key)?;
    let found = copy
        .call(
            "query_graph",
            json!({"query": "how long are backups kept", "project": "ops"}),
        )
        .await?
        .ok()?;
    ensure!(found.text.contains("90 days"), "{}", found.text);

    let errors = world.dev.errors()?;
    ensure!(errors.is_empty(), "the server logged errors:\n{}", errors.join("\n"));
    world.dev.stop()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_file_is_refused_and_a_foreign_one_has_the_importer_as_author() -> Result<()> {
    let world = World::start()?;
    fill(&Client::of(&world.dev)?).await?;
    let (_, file) = world.export(&world.dev.api_key, "project=ops").await?;
    let key = world.new_tenant("other", &["graph:read", "graph:write"]).await?;
    let (status, refused) = world.import(&key, "", file.replace("90 days", "91 days")).await?;
    ensure!(status == StatusCode::BAD_REQUEST, "{refused}");
    ensure!(refused["error_code"] == "hash_verification_failed", "{refused}");

    let at = file.find("\"signature\":").context("find the signature")?;
    let unsigned = format!("{}\"signature\":null}}\n", &file[..at]);
    let (status, imported) = world.import(&key, "project=mine", unsigned).await?;
    ensure!(status == StatusCode::OK && imported["nodes_created"] == 1, "{imported}");
    let (_, copy) = world.export(&key, "").await?;
    let copy = records(&copy)?;
    let node = &copy["nodes"][0];
    ensure!(node["project"] == "mine" && node["namespace"] == "mine", "{node}");
    ensure!(node["metadata"]["claimed_author"].is_string(), "{node}");
    ensure!(node["metadata"]["claimed_author"] != node["author"], "{node}");
    world.dev.stop()
}
