//! Calls to a running cluster: REST for administration, MCP for memories.

mod refusal;

use std::env;
use std::fs::File;
use std::future::Future;
use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use waggle_config::identity;
use waggle_gateway::ToolSet;

use crate::context::{self, Context};
use crate::failure::{self, Failure};
use refusal::refused;

/// A little more than the longest call of a gateway.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(55);

/// As long as a gateway lets a whole graph go in or out, and a little more.
const TRANSFER_TIME_MAX: Duration = Duration::from_secs(620);

#[derive(clap::Args, Clone, Debug)]
pub(crate) struct ClientArgs {
    /// Address of the cluster, such as http://127.0.0.1:7700; for tenant, key and status the one of the admin
    /// listener. Else WAGGLE_URL (or WAGGLE_ADMIN_URL), else what `waggle dev` left.
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// File with the API key. Else WAGGLE_KEY, else what `waggle dev` left.
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,
    /// Which context to use. Else WAGGLE_CONTEXT, else the one of the first `waggle dev`.
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
}

/// Which listener a command talks to, and with which key of a context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Public,
    Admin,
}

/// What is known here of a gateway, without asking it.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    /// The address as it was given.
    pub(crate) base: String,
    pub(crate) key: Option<String>,
    /// Where the key came from, if from a file.
    pub(crate) key_file: Option<PathBuf>,
}

#[derive(Clone)]
pub(crate) struct Client {
    http: reqwest::Client,
    base: String,
    key: String,
}

impl Client {
    /// For an administrator whose key is in a file.
    pub(crate) fn for_admin(base: &str, key_file: &std::path::Path) -> Result<Self> {
        Ok(Self {
            http: http(base)?,
            base: base.to_owned(),
            key: identity::read_secret(key_file)?,
        })
    }
}

impl ClientArgs {
    pub(crate) fn public(&self) -> Result<Client> {
        self.connect(Side::Public)
    }

    pub(crate) fn admin(&self) -> Result<Client> {
        self.connect(Side::Admin)
    }

    /// The context that counts; one that was asked for by name must exist.
    pub(crate) fn context(&self) -> Result<Option<Context>> {
        let Some(name) = self.context.clone().or_else(|| variable_text("WAGGLE_CONTEXT")) else {
            return Context::load(context::DEV);
        };
        match Context::load(&name)? {
            Some(context) => Ok(Some(context)),
            None => Err(Failure::new(
                failure::NOT_FOUND,
                format!("there is no context '{}'", name.escape_debug()),
            )
            .next(format!(
                "known are {}; `waggle dev` makes one",
                context::names().join(", ")
            ))
            .into()),
        }
    }

    /// The public address and the key, which may be missing.
    pub(crate) fn known(&self) -> Result<Known> {
        let context = self.context()?;
        let base = self.base(Side::Public, context.as_ref())?;
        let from_variable = self.key_file.is_none() && variable_text("WAGGLE_KEY").is_some();
        let key_file = match &self.key_file {
            _ if from_variable => None,
            Some(path) => Some(path.clone()),
            None => context.as_ref().map(|context| context.key_file.clone()),
        };
        let key = match (&key_file, from_variable) {
            (None, false) => None,
            _ => Some(self.key(Side::Public, context.as_ref())?),
        };
        Ok(Known { base, key, key_file })
    }

    fn base(&self, side: Side, context: Option<&Context>) -> Result<String> {
        let variable = match side {
            Side::Public => "WAGGLE_URL",
            Side::Admin => "WAGGLE_ADMIN_URL",
        };
        let base = self
            .url
            .clone()
            .or_else(|| variable_text(variable))
            .or_else(|| {
                context.map(|context| match side {
                    Side::Public => context.mcp_url.clone(),
                    Side::Admin => context.admin_url.clone(),
                })
            })
            .ok_or_else(|| {
                Failure::new(failure::USAGE, "no cluster is known here")
                    .next(format!("start one with `waggle dev`, or give --url, or set {variable}"))
            })?;
        Ok(base)
    }

    fn connect(&self, side: Side) -> Result<Client> {
        let context = self.context()?;
        let base = self.base(side, context.as_ref())?;
        let key = self.key(side, context.as_ref())?;
        let http = http(&base)?;
        Ok(Client {
            http,
            base: without_mcp(&base).to_owned(),
            key,
        })
    }

    fn key(&self, side: Side, context: Option<&Context>) -> Result<String> {
        if let Some(path) = &self.key_file {
            return Ok(identity::read_secret(path)?);
        }
        if let Some(key) = variable_text("WAGGLE_KEY") {
            return Ok(key.trim().to_owned());
        }
        let Some(context) = context else {
            return Err(Failure::new(failure::USAGE, "no API key is known here")
                .next("give --key-file, or set WAGGLE_KEY")
                .into());
        };
        let path = match side {
            Side::Public => &context.key_file,
            Side::Admin => &context.operator_key_file,
        };
        Ok(identity::read_secret(path)?)
    }
}

/// For calls to one address.
pub(crate) fn http(base: &str) -> Result<reqwest::Client> {
    let mut builder = reqwest::Client::builder()
        .timeout(ANSWER_TIME_MAX)
        .connect_timeout(Duration::from_secs(5));
    if is_loopback(base) {
        // A proxy of the environment cannot reach this machine's loopback.
        builder = builder.no_proxy();
    }
    builder.build().context("set up HTTP")
}

impl Client {
    pub(crate) fn get(&self, path: &str) -> Result<Value> {
        block_on(self.send(self.http.get(self.address(path))))
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> Result<Value> {
        block_on(self.send(self.http.post(self.address(path)).json(body)))
    }

    pub(crate) fn delete(&self, path: &str) -> Result<Value> {
        block_on(self.send(self.http.delete(self.address(path))))
    }

    /// Posts, and gives status and body of whatever the gateway answers.
    pub(crate) fn exchange(&self, path: &str, body: &Value) -> Result<(u16, Value)> {
        block_on(async {
            let request = self.http.post(self.address(path)).json(body).bearer_auth(&self.key);
            let response = request.send().await.map_err(|error| self.unreachable(&error))?;
            let status = response.status().as_u16();
            let text = response.text().await.map_err(|error| self.unreachable(&error))?;
            Ok((status, serde_json::from_str(&text).unwrap_or(Value::Null)))
        })
    }

    /// Calls an MCP tool and gives its structured content and its text.
    pub(crate) fn tool(&self, name: &str, arguments: &Value) -> Result<(Value, String)> {
        let message = json!({
            "jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": {"name": name, "arguments": arguments},
        });
        let request = self
            .http
            .post(self.address("/mcp"))
            .header("accept", "application/json")
            .json(&message);
        let answer = block_on(self.send(request))?;
        if let Some(error) = answer.get("error") {
            return Err(Failure::new(failure::GENERAL, text_of(error, "message")).into());
        }
        let result = answer.get("result").unwrap_or(&Value::Null);
        let text = result
            .pointer("/content/0/text")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned();
        let structured = result.get("structuredContent").cloned().unwrap_or(Value::Null);
        if result.get("isError").and_then(Value::as_bool).unwrap_or(false) {
            return Err(refused(&structured, 400, &text).into());
        }
        Ok((structured, text))
    }

    /// Streams an answer to `out`.
    pub(crate) fn download(&self, path: &str, query: &[(&str, String)], out: &mut dyn Write) -> Result<()> {
        block_on(async {
            let request = self.http.get(self.address_with(path, query)).timeout(TRANSFER_TIME_MAX);
            let sent = request.bearer_auth(&self.key).send().await;
            let mut response = sent.map_err(|error| self.unreachable(&error))?;
            let status = response.status().as_u16();
            if !(200..300).contains(&status) {
                let text = response.text().await.map_err(|error| self.unreachable(&error))?;
                let body: Value = serde_json::from_str(&text).unwrap_or(Value::Null);
                return Err(refused(&body, status, &format!("{} answered {status}", self.base)).into());
            }
            loop {
                match response.chunk().await {
                    Ok(Some(chunk)) => out.write_all(&chunk).context("write the export")?,
                    Ok(None) => return Ok(out.flush()?),
                    Err(_) => {
                        return Err(
                            Failure::new(failure::UNAVAILABLE, "the export broke off before its end")
                                .next("repeat it; the log of the gateway says why")
                                .into(),
                        );
                    }
                }
            }
        })
    }

    /// Streams a file to the cluster and gives its answer.
    pub(crate) fn upload(&self, path: &str, query: &[(&str, String)], file: File) -> Result<Value> {
        block_on(async {
            let body = reqwest::Body::from(tokio::fs::File::from_std(file));
            let request = self
                .http
                .post(self.address_with(path, query))
                .timeout(TRANSFER_TIME_MAX)
                .header("content-type", "application/octet-stream")
                .body(body);
            self.send(request).await
        })
    }

    fn address_with(&self, path: &str, query: &[(&str, String)]) -> String {
        let pairs: Vec<String> = query
            .iter()
            .map(|(name, value)| format!("{name}={}", percent(value)))
            .collect();
        format!("{}?{}", self.address(path), pairs.join("&"))
    }

    /// Calls an MCP method at a path such as /mcp/core and gives its result.
    pub(crate) fn rpc(&self, path: &str, method: &str, params: &Value) -> Result<Value> {
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let request = self
            .http
            .post(self.address(path))
            .header("accept", "application/json")
            .json(&message);
        let answer = block_on(self.send(request))?;
        match (answer.get("error"), answer.get("result")) {
            (Some(error), _) => Err(Failure::new(failure::GENERAL, text_of(error, "message")).into()),
            (None, Some(result)) => Ok(result.clone()),
            (None, None) => Err(Failure::new(failure::GENERAL, format!("{path}: the answer is no JSON-RPC")).into()),
        }
    }

    /// A call without a key: the status and the time that the server says it is.
    pub(crate) fn probe(&self, path: &str) -> Result<(u16, Option<String>)> {
        block_on(async {
            let response = self
                .http
                .get(self.address(path))
                .send()
                .await
                .map_err(|error| self.unreachable(&error))?;
            let date = response.headers().get("date").and_then(|date| date.to_str().ok());
            Ok((response.status().as_u16(), date.map(str::to_owned)))
        })
    }

    pub(crate) fn base(&self) -> &str {
        &self.base
    }

    fn address(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }

    async fn send(&self, request: reqwest::RequestBuilder) -> Result<Value> {
        let response = request
            .bearer_auth(&self.key)
            .send()
            .await
            .map_err(|error| self.unreachable(&error))?;
        let status = response.status().as_u16();
        let text = response.text().await.map_err(|error| self.unreachable(&error))?;
        let body: Value = serde_json::from_str(&text).unwrap_or(Value::Null);
        if (200..300).contains(&status) {
            return Ok(body);
        }
        Err(refused(&body, status, &format!("{} answered {status}", self.base)).into())
    }

    fn unreachable(&self, error: &reqwest::Error) -> Failure {
        if error.is_timeout() {
            return Failure::new(failure::TIME_OUT, format!("{} did not answer in time", self.base))
                .next("a change may have happened: look before you repeat it");
        }
        let mut why: &dyn std::error::Error = error;
        while let Some(source) = why.source() {
            why = source;
        }
        Failure::new(failure::UNAVAILABLE, format!("reach {}: {why}", self.base))
            .next("is the server running? `waggle dev` starts one; --url names another")
    }
}

fn text_of(value: &Value, field: &str) -> String {
    value
        .get(field)
        .and_then(Value::as_str)
        .unwrap_or("the gateway refused the call")
        .to_owned()
}

/// A value inside a query.
fn percent(value: &str) -> String {
    let mut text = String::new();
    for byte in value.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~') {
            text.push(char::from(byte));
        } else {
            text.push_str(&format!("%{byte:02X}"));
        }
    }
    text
}

fn variable_text(name: &str) -> Option<String> {
    env::var(name).ok().filter(|text| !text.trim().is_empty())
}

/// People paste the URL that they gave their client.
fn without_mcp(url: &str) -> &str {
    let url = url.trim_end_matches('/');
    let known = ToolSet::ALL.into_iter().map(ToolSet::path);
    let base = known
        .filter_map(|path| url.strip_suffix(path))
        .min_by_key(|base| base.len());
    base.map_or(url, |base| base.strip_suffix("/k").unwrap_or(base))
}

pub(crate) fn is_loopback(url: &str) -> bool {
    let host = url.split("://").nth(1).unwrap_or(url);
    host.starts_with("127.") || host.starts_with("localhost") || host.starts_with("[::1]")
}

/// Client commands do one thing after the other: one thread is enough.
pub(crate) fn block_on<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("start the runtime")?
        .block_on(work)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_of_the_address_are_understood() {
        for (given, base) in [
            ("http://127.0.0.1:7700/mcp", "http://127.0.0.1:7700"),
            ("http://127.0.0.1:7700/", "http://127.0.0.1:7700"),
            ("http://127.0.0.1:7700/k/mcp/core", "http://127.0.0.1:7700"),
            (
                "https://memory.example.org/agents/mcp/",
                "https://memory.example.org/agents",
            ),
        ] {
            assert_eq!(without_mcp(given), base);
        }
    }

    #[test]
    fn values_of_a_query_are_encoded() {
        assert_eq!(percent("team/pay ü&a=b"), "team%2Fpay%20%C3%BC%26a%3Db");
    }
}
