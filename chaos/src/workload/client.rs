//! One MCP client: a tool call over HTTP, what it means for the history, and how often it is tried.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::texts;
use crate::cluster::Tenant;
use crate::history::{Action, Answer, Outcome};

/// The newest revision of the initialize era, which needs no `_meta` in every request.
const PROTOCOL: &str = "2025-11-25";
/// A little more than a gateway takes for a call.
pub(crate) const ANSWER_MAX: Duration = Duration::from_secs(8);
/// Sendings of one operation, all under its request id, as a client of the protocol may.
const ATTEMPTS_MAX: u32 = 3;
/// A client that gives up soon, and asks once only.
const IMPATIENT: Duration = Duration::from_millis(700);
const RETRY_PAUSE: Duration = Duration::from_millis(150);
pub(crate) const PROJECT: &str = "chaos";

/// Refused before anything happened: the call certainly had no effect.
const CERTAIN: [&str; 3] = ["rate_limited", "quota_exceeded", "storage_full"];
/// Whatever happened, another attempt may be answered.
const PASSING: [&str; 2] = ["service_unavailable", "internal_error"];

/// One sending, as its client saw it.
enum Told {
    Answer(Answer),
    /// Certainly without effect.
    Refused(String),
    /// Nobody knows.
    Nothing(String),
}

#[derive(Clone)]
pub(crate) struct Client {
    http: reqwest::Client,
    urls: Arc<[String]>,
    tenant: Tenant,
    /// The gateway that it talks to until one does not answer.
    at: usize,
    attempts_max: u32,
}

/// All that an operation says, apart from who does it.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) id: String,
    pub(crate) action: Action,
    /// Number of the memory: its texts and its name follow.
    pub(crate) number: u64,
    /// The memory's id, for all but its creation.
    pub(crate) node: Option<String>,
    /// The other end of a link.
    pub(crate) target: Option<String>,
}

impl Client {
    pub(crate) fn new(urls: Arc<[String]>, tenant: &Tenant, at: usize) -> Result<Self> {
        Ok(Self {
            http: crate::cluster::http(ANSWER_MAX)?,
            urls,
            tenant: tenant.clone(),
            at,
            attempts_max: ATTEMPTS_MAX,
        })
    }

    /// One that leaves many operations unknown: they happen after it gave up, or never.
    pub(crate) fn impatient(self) -> Result<Self> {
        Ok(Self {
            http: crate::cluster::http(IMPATIENT)?,
            attempts_max: 1,
            ..self
        })
    }

    pub(crate) fn tenant(&self) -> &Tenant {
        &self.tenant
    }

    /// Sends it until it is answered, a few times at most. Gives the outcome and the number of sendings.
    pub(crate) async fn run(&mut self, request: &Request) -> (Outcome, u32) {
        let mut possible = false;
        let mut last = String::new();
        for attempt in 1..=self.attempts_max {
            match self.send(request).await {
                Told::Answer(answer) => return (Outcome::Ok { answer }, attempt),
                // Of this sending; an earlier one may have had its effect.
                Told::Refused(code) if !possible => return (Outcome::Fail { code }, attempt),
                Told::Refused(code) => last = code,
                Told::Nothing(why) => {
                    possible = true;
                    last = why;
                }
            }
            // As behind a balancer: the next connection goes to another gateway.
            self.at += 1;
            if attempt < self.attempts_max {
                tokio::time::sleep(RETRY_PAUSE).await;
            }
        }
        (Outcome::Unknown { why: last }, self.attempts_max)
    }

    async fn send(&self, request: &Request) -> Told {
        let (tool, arguments) = arguments(request);
        match self.call(tool, &arguments, Some(&request.id)).await {
            Err(problem) => Told::Nothing(format!("{problem:#}")),
            Ok(result) => understood(request, &result),
        }
    }

    /// Calls a tool; gives `result` of the JSON-RPC answer.
    pub(crate) async fn call(&self, tool: &str, arguments: &Value, request_id: Option<&str>) -> Result<Value> {
        let url = &self.urls[self.at % self.urls.len()];
        let params = json!({ "name": tool, "arguments": arguments });
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
        let mut sending = self
            .http
            .post(format!("{url}/mcp"))
            .header("accept", "application/json, text/event-stream")
            .header("mcp-protocol-version", PROTOCOL)
            .bearer_auth(&self.tenant.key)
            .json(&body);
        if let Some(id) = request_id {
            sending = sending.header("idempotency-key", id);
        }
        let response = sending.send().await.context("send")?;
        let status = response.status();
        let text = response.text().await.context("read the answer")?;
        anyhow::ensure!(
            status.is_success(),
            "HTTP {status}: {}",
            text.chars().take(200).collect::<String>()
        );
        let answer: Value = serde_json::from_str(&text).context("read the answer")?;
        let result = answer
            .get("result")
            .with_context(|| format!("protocol error {answer}"))?;
        Ok(result.clone())
    }

    /// Everything that the tenant remembers, as an export says it.
    pub(crate) async fn export(&self) -> Result<Value> {
        let url = &self.urls[self.at % self.urls.len()];
        let response = self
            .http
            .get(format!("{url}/api/graph/export?format=json"))
            .bearer_auth(&self.tenant.key)
            .timeout(ANSWER_MAX * 6)
            .send()
            .await
            .context("ask for an export")?;
        let status = response.status();
        let text = response.text().await.context("read the export")?;
        anyhow::ensure!(status.is_success(), "export: HTTP {status}: {text}");
        serde_json::from_str(&text).context("read the export")
    }
}

/// The value that an operation writes travels as a tag.
fn tag(value: u64) -> String {
    format!("v{value}")
}

pub(crate) fn value_of(tags: &Value) -> Option<u64> {
    let tags = tags.as_array()?.iter().filter_map(Value::as_str);
    tags.filter_map(|tag| tag.strip_prefix('v')?.parse().ok()).next()
}

fn arguments(request: &Request) -> (&'static str, Value) {
    let (label, content) = texts::fact(request.number, 0);
    let node = request.node.as_deref().unwrap_or_default();
    match &request.action {
        Action::Create { value } => (
            "store_node",
            json!({ "label": label, "content": content, "node_type": "fact", "project": PROJECT, "tags": [tag(*value)] }),
        ),
        Action::Write { value } => ("update_node", json!({ "node_id": node, "tags": [tag(*value)] })),
        Action::Cas { expected, value } => {
            let (_, content) = texts::fact(request.number, *value);
            let change = json!({ "node_id": node, "tags": [tag(*value)], "content": content,
                "expected_version": expected });
            ("update_node", change)
        }
        Action::Delete => ("delete_node", json!({ "node_id": node })),
        Action::Read => (
            "get_node_history",
            json!({ "node_id": node, "max_depth": 0, "token_budget": 20_000 }),
        ),
        Action::Query => (
            "query_graph",
            json!({ "query": format!("What about project {}?", texts::name(request.number)), "project": PROJECT,
                "max_nodes": 10 }),
        ),
        Action::Link { .. } => (
            "store_edge",
            json!({ "source_id": node, "target_id": request.target, "relationship": "depends_on" }),
        ),
    }
}

fn understood(request: &Request, result: &Value) -> Told {
    let told = &result["structuredContent"];
    if result["isError"] == true {
        let code = told["error_code"].as_str().unwrap_or("no code");
        return match code {
            "not_found" => Told::Answer(Answer::Absent),
            "version_conflict" => match version(&told["current_version"]) {
                Some(current) => Told::Answer(Answer::Conflict { current }),
                // The change met others too often: it did not happen.
                None => Told::Refused(code.to_owned()),
            },
            code if PASSING.contains(&code) => Told::Nothing(told["error"].as_str().unwrap_or(code).to_owned()),
            code if CERTAIN.contains(&code) => Told::Refused(code.to_owned()),
            code => Told::Refused(format!(
                "unexpected {code}: {}",
                told["error"].as_str().unwrap_or_default()
            )),
        };
    }
    match answer(request, told) {
        Some(answer) => Told::Answer(answer),
        None => Told::Refused(format!("unexpected answer: {told}")),
    }
}

fn version(value: &Value) -> Option<u32> {
    u32::try_from(value.as_u64()?).ok()
}

fn answer(request: &Request, told: &Value) -> Option<Answer> {
    let id = || told["id"].as_str().map(str::to_owned);
    Some(match &request.action {
        Action::Create { .. } => {
            let fresh = told["created"] == true;
            // The rest of an answer shows the memory as it is by now; that it was made makes its version 1.
            let version = if fresh { 1 } else { version(&told["version"])? };
            Answer::Created {
                id: id()?,
                version,
                fresh,
            }
        }
        Action::Write { .. } | Action::Cas { .. } => Answer::Updated {
            version: version(&told["previous_version"])?.saturating_add(1),
        },
        Action::Delete => Answer::Deleted {
            now: told["deleted"].as_bool()?,
        },
        Action::Read if told["node"]["deleted"] == true => Answer::Absent,
        Action::Read => {
            let mut versions: Vec<(u32, u64)> = told["versions"]
                .as_array()?
                .iter()
                .map(|one| Some((version(&one["version"])?, value_of(&one["tags"])?)))
                .collect::<Option<_>>()?;
            versions.sort_unstable();
            Answer::Value {
                version: version(&told["node"]["version"])?,
                value: value_of(&told["node"]["tags"])?,
                first: versions.first()?.0,
                versions: versions.into_iter().map(|(_, value)| value).collect(),
            }
        }
        Action::Query => {
            let name = texts::name(request.number);
            let nodes = told["nodes"].as_array()?.iter();
            let same = nodes.filter(|node| texts::name_in(node["label"].as_str().unwrap_or_default()) == name);
            Answer::Found {
                ids: same.filter_map(|node| node["id"].as_str().map(str::to_owned)).collect(),
            }
        }
        Action::Link { .. } => Answer::Linked {
            id: id()?,
            fresh: told["created"] == true,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(action: Action, result: &Value) -> String {
        let request = Request {
            id: "r".to_owned(),
            action,
            number: 1,
            node: Some("n".to_owned()),
            target: None,
        };
        match understood(&request, result) {
            Told::Answer(answer) => format!("{answer:?}"),
            Told::Refused(code) => format!("refused: {code}"),
            Told::Nothing(why) => format!("nothing: {why}"),
        }
    }

    #[test]
    fn answers_become_what_a_history_says() {
        let error = |code: &str| json!({ "isError": true, "structuredContent": { "error_code": code, "error": code, "current_version": 4 } });
        let ok = |fields: Value| json!({ "structuredContent": fields });
        let write = Action::Write { value: 7 };
        for (action, result, said) in [
            (write.clone(), error("not_found"), "Absent"),
            (write.clone(), error("version_conflict"), "Conflict { current: 4 }"),
            (
                write.clone(),
                error("service_unavailable"),
                "nothing: service_unavailable",
            ),
            (write.clone(), error("storage_full"), "refused: storage_full"),
            (
                write.clone(),
                error("validation_failed"),
                "refused: unexpected validation_failed: validation_failed",
            ),
            (
                write.clone(),
                ok(json!({ "previous_version": 2, "version": 9 })),
                "Updated { version: 3 }",
            ),
            (
                Action::Delete,
                ok(json!({ "deleted": false })),
                "Deleted { now: false }",
            ),
            (Action::Read, ok(json!({ "node": { "deleted": true } })), "Absent"),
            (
                Action::Read,
                ok(json!({ "node": { "version": 2, "tags": ["v9"] },
                    "versions": [{ "version": 2, "tags": ["v9"] }, { "version": 1, "tags": ["v5"] }] })),
                "Value { version: 2, value: 9, first: 1, versions: [5, 9] }",
            ),
            (
                Action::Create { value: 1 },
                ok(json!({ "id": "n", "created": true, "state": "deleted" })),
                "Created { id: \"n\", version: 1, fresh: true }",
            ),
        ] {
            assert_eq!(judged(action, &result), said, "{result}");
        }
    }
}
