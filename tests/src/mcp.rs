//! A plain JSON-RPC caller for `/mcp`. The real MCP clients have tests of their own (tests/mcp); here a test wants to see
//! and choose every byte.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::server::Dev;

/// The newest revision of the initialize era, which needs no `_meta` in every request.
const PROTOCOL: &str = "2025-11-25";

/// Cheap to clone; clones share connections.
#[derive(Clone)]
pub struct Client {
    http: reqwest::Client,
    url: String,
    key: String,
    next_id: Arc<AtomicU64>,
}

/// What a tool answered. An error of the tool is an answer, too.
#[derive(Debug, Clone)]
pub struct Answer {
    pub is_error: bool,
    pub text: String,
    pub structured: Value,
}

impl Client {
    pub fn new(url: &str, key: &str) -> Result<Self> {
        crate::install_tls_provider();
        let http = reqwest::Client::builder()
            .no_proxy()
            .tcp_nodelay(true)
            .timeout(Duration::from_secs(60))
            .build()
            .context("make an HTTP client")?;
        Ok(Self {
            http,
            url: url.to_owned(),
            key: key.to_owned(),
            next_id: Arc::new(AtomicU64::new(1)),
        })
    }

    pub fn of(dev: &Dev) -> Result<Self> {
        Self::new(&dev.mcp_url, &dev.api_key)
    }

    /// The same server at another path below the same host, such as `/mcp/core`.
    pub fn at(&self, path: &str) -> Result<Self> {
        let mut url = reqwest::Url::parse(&self.url).context("parse the URL of the server")?;
        url.set_path(path);
        Ok(Self {
            url: url.into(),
            ..self.clone()
        })
    }

    /// One HTTP request as it stands; an empty key sends no credential.
    pub async fn send(
        &self,
        method: Method,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Result<(StatusCode, HeaderMap, String)> {
        let mut request = self
            .http
            .request(method, &self.url)
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream");
        if !self.key.is_empty() {
            request = request.bearer_auth(&self.key);
        }
        let mut own = HeaderMap::new();
        for (name, value) in headers {
            own.insert(HeaderName::from_bytes(name.as_bytes())?, HeaderValue::from_str(value)?);
        }
        let response = request
            .headers(own)
            .body(body.to_owned())
            .send()
            .await
            .context("send a request")?;
        let (status, headers) = (response.status(), response.headers().clone());
        let text = response.text().await.context("read the answer")?;
        Ok((status, headers, text))
    }

    /// One JSON-RPC request; gives the whole JSON-RPC answer, `result` or `error`.
    pub async fn rpc(&self, method: &str, params: Value) -> Result<Value> {
        self.rpc_with(method, params, &[]).await
    }

    /// Calls a tool. A protocol error is an `Err`.
    pub async fn call(&self, tool: &str, arguments: Value) -> Result<Answer> {
        self.call_with(tool, arguments, &[]).await
    }

    /// Calls a tool under a request id: a retry with the same id gives the first outcome.
    pub async fn call_once(&self, tool: &str, arguments: Value, request_id: &str) -> Result<Answer> {
        self.call_with(tool, arguments, &[("idempotency-key", request_id)])
            .await
    }

    async fn call_with(&self, tool: &str, arguments: Value, headers: &[(&str, &str)]) -> Result<Answer> {
        let answer = self
            .rpc_with("tools/call", json!({ "name": tool, "arguments": arguments }), headers)
            .await?;
        let Some(result) = answer.get("result") else {
            bail!("{tool}: protocol error {answer}")
        };
        let blocks = result
            .get("content")
            .and_then(Value::as_array)
            .map(Vec::as_slice)
            .unwrap_or_default();
        let texts: Vec<&str> = blocks.iter().filter_map(|block| block.get("text")?.as_str()).collect();
        Ok(Answer {
            is_error: result.get("isError").and_then(Value::as_bool).unwrap_or(false),
            text: texts.join("\n"),
            structured: result.get("structuredContent").cloned().unwrap_or(Value::Null),
        })
    }

    async fn rpc_with(&self, method: &str, params: Value, headers: &[(&str, &str)]) -> Result<Value> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let body = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string();
        let mut all = vec![("mcp-protocol-version", PROTOCOL)];
        all.extend_from_slice(headers);
        let (status, _, text) = self.send(Method::POST, &all, &body).await?;
        if !status.is_success() {
            bail!("{method}: HTTP {status}: {text}");
        }
        let answer: Value = serde_json::from_str(&text).with_context(|| format!("{method}: read {text:?}"))?;
        if answer.get("id").and_then(Value::as_u64) != Some(id) {
            bail!("{method}: the answer to request {id} carries another id: {answer}");
        }
        Ok(answer)
    }
}

impl Answer {
    /// The answer, if the tool succeeded.
    pub fn ok(self) -> Result<Self> {
        if self.is_error {
            bail!("the tool answered with an error: {}", self.text);
        }
        Ok(self)
    }

    pub fn str(&self, field: &str) -> Result<&str> {
        let value = self.structured.get(field).and_then(Value::as_str);
        value.with_context(|| format!("find the text {field} in {}", self.structured))
    }

    pub fn list(&self, field: &str) -> &[Value] {
        self.structured
            .get(field)
            .and_then(Value::as_array)
            .map(Vec::as_slice)
            .unwrap_or_default()
    }
}
