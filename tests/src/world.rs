//! A server with an operator's key: tests make tenants in it, and use its REST beside MCP.

use anyhow::{Context, Result, ensure};
use reqwest::StatusCode;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::mcp::Client;
use crate::server::Dev;

/// A running server with data of its own.
pub struct World {
    _folder: TempDir,
    pub dev: Dev,
    pub http: reqwest::Client,
    /// Before the paths of the public listener.
    pub base: String,
    operator_key: String,
}

impl World {
    pub fn start() -> Result<Self> {
        let folder = tempfile::tempdir().context("make a folder for the data")?;
        let data = folder.path().join("data");
        let dev = Dev::start(&data)?;
        let operator_key =
            std::fs::read_to_string(data.join("secrets/operator-key")).context("read the operator's key")?;
        Ok(Self {
            base: dev.mcp_url.trim_end_matches("/mcp").to_owned(),
            http: {
                crate::install_tls_provider();
                reqwest::Client::builder().no_proxy().build()?
            },
            operator_key: operator_key.trim().to_owned(),
            dev,
            _folder: folder,
        })
    }

    /// Ends the server, which must have logged no error.
    pub fn stop(self) -> Result<()> {
        let errors = self.dev.errors()?;
        self.dev.stop()?;
        ensure!(errors.is_empty(), "the server logged errors:\n{}", errors.join("\n"));
        Ok(())
    }

    pub async fn admin(&self, path: &str, body: Value) -> Result<Value> {
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

    /// A tenant and its key, which no rate limits.
    pub async fn new_tenant(&self, tenant: &str, scopes: &[&str]) -> Result<String> {
        self.admin("/api/admin/tenants", json!({"tenant_id": tenant})).await?;
        let key = json!({"tenant_id": tenant, "name": "test", "scopes": scopes, "unlimited": true});
        let made = self.admin("/api/admin/keys", key).await?;
        let key = made.get("raw_api_key").and_then(Value::as_str);
        Ok(key.context("find the new key")?.to_owned())
    }

    pub fn client(&self, key: &str) -> Result<Client> {
        Client::new(&self.dev.mcp_url, key)
    }

    pub async fn get(&self, key: &str, path: &str) -> Result<(StatusCode, String)> {
        let url = format!("{}{path}", self.base);
        let answer = self.http.get(url).bearer_auth(key).send().await?;
        Ok((answer.status(), answer.text().await?))
    }

    pub async fn export(&self, key: &str, query: &str) -> Result<(StatusCode, String)> {
        self.get(key, &format!("/api/graph/export?{query}")).await
    }

    /// An export that must succeed.
    pub async fn export_bytes(&self, key: &str, query: &str) -> Result<Vec<u8>> {
        let url = format!("{}/api/graph/export?{query}", self.base);
        let answer = self.http.get(url).bearer_auth(key).send().await?;
        let status = answer.status();
        let bytes = answer.bytes().await?.to_vec();
        ensure!(
            status == StatusCode::OK,
            "{query}: {status} {}",
            String::from_utf8_lossy(&bytes)
        );
        Ok(bytes)
    }

    pub async fn hand_over(&self, key: &str, transcript: &Value) -> Result<Value> {
        let url = format!("{}/api/transcripts/handoff", self.base);
        let sent = self.http.post(url).bearer_auth(key);
        let sent = sent
            .header("content-type", "application/json")
            .body(transcript.to_string());
        let text = sent.send().await?.text().await?;
        serde_json::from_str(&text).with_context(|| text.clone())
    }

    pub async fn import(&self, key: &str, query: &str, file: impl Into<reqwest::Body>) -> Result<(StatusCode, Value)> {
        let url = format!("{}/api/graph/import?{query}", self.base);
        let answer = self.http.post(url).bearer_auth(key).body(file).send().await?;
        let (status, text) = (answer.status(), answer.text().await?);
        Ok((status, serde_json::from_str(&text).with_context(|| text.clone())?))
    }
}

/// All of a backup but what names the file itself.
pub fn records(file: &str) -> Result<Value> {
    let mut file: Value = serde_json::from_str(file).context("read a backup")?;
    if let Some(members) = file.as_object_mut() {
        for own in ["tenant_id", "exported_at", "read_at", "content_hash", "signature"] {
            members.shift_remove(own);
        }
    }
    Ok(file)
}
