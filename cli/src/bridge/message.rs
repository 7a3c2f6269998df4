//! A JSON-RPC message as far as forwarding has to understand it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

const PARSE_ERROR: i32 = -32700;
const INVALID_REQUEST: i32 = -32600;
/// The gateway was not reached, or said no before it understood the message.
pub(super) const REFUSED: i32 = -32001;

const META_VERSION: &str = "/params/_meta/io.modelcontextprotocol~1protocolVersion";

/// A request, a notification or an answer of the client.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Message {
    pub(super) body: Value,
}

impl Message {
    /// A blank line is nothing; what is no message comes back as the answer to it.
    pub(super) fn parse(line: &str) -> Result<Option<Self>, Value> {
        if line.is_empty() {
            return Ok(None);
        }
        let body: Value = serde_json::from_str(line)
            .map_err(|why| answer(Value::Null, PARSE_ERROR, &format!("the line is not JSON: {why}")))?;
        if !body.is_object() {
            let what = "a line is one JSON-RPC message, an object; batches are not part of the protocol any more";
            return Err(answer(Value::Null, INVALID_REQUEST, what));
        }
        Ok(Some(Self { body }))
    }

    /// The id of a request; None for what has no answer.
    pub(super) fn id(&self) -> Option<&Value> {
        self.body.get("method")?;
        self.body.get("id").filter(|id| !id.is_null())
    }

    pub(super) fn id_text(&self) -> Option<String> {
        self.id().map(Value::to_string)
    }

    pub(super) fn method(&self) -> &str {
        self.body.get("method").and_then(Value::as_str).unwrap_or_default()
    }

    /// The id of the request that a notification cancels.
    pub(super) fn cancels(&self) -> Option<String> {
        (self.method() == "notifications/cancelled")
            .then(|| self.body.pointer("/params/requestId").map(Value::to_string))
            .flatten()
    }

    /// The error that answers a request; None for a message that has no answer.
    pub(super) fn error(&self, code: i32, what: &str) -> Option<Value> {
        self.id().map(|id| answer(id.clone(), code, what))
    }

    /// The headers that the newer revisions want to see beside the body.
    pub(super) fn headers(&self, agreed_version: Option<&str>) -> Vec<(&'static str, String)> {
        let mut headers = Vec::new();
        let modern = self.body.pointer(META_VERSION).and_then(Value::as_str);
        if self.method() != "initialize"
            && let Some(version) = modern.or(agreed_version)
        {
            headers.push(("mcp-protocol-version", header_text(version)));
        }
        if modern.is_some() {
            headers.push(("mcp-method", header_text(self.method())));
            let name = match self.method() {
                "tools/call" | "prompts/get" => self.body.pointer("/params/name"),
                "resources/read" => self.body.pointer("/params/uri"),
                _ => None,
            };
            if let Some(name) = name.and_then(Value::as_str) {
                headers.push(("mcp-name", header_text(name)));
            }
        }
        headers
    }
}

/// Plain text as it is, anything else encoded as the protocol says.
fn header_text(text: &str) -> String {
    let plain =
        text.bytes().all(|byte| (b' '..=b'~').contains(&byte)) && text.trim() == text && !text.starts_with("=?");
    if plain {
        text.to_owned()
    } else {
        format!("=?base64?{}?=", STANDARD.encode(text))
    }
}

pub(super) fn answer(id: Value, code: i32, what: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": what}})
}

pub(super) fn too_large(bytes_max: usize) -> Value {
    answer(
        Value::Null,
        INVALID_REQUEST,
        &format!("a line may have {bytes_max} bytes; split the text into several calls"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(body: Value) -> Message {
        Message { body }
    }

    #[test]
    fn what_is_no_message_is_answered() {
        assert_eq!(Message::parse(""), Ok(None));
        for (line, code) in [("{", PARSE_ERROR), ("[]", INVALID_REQUEST), ("3", INVALID_REQUEST)] {
            let answer = Message::parse(line).expect_err(line);
            assert_eq!(
                (&answer["id"], answer["error"]["code"].as_i64()),
                (&Value::Null, Some(i64::from(code)))
            );
        }
    }

    #[test]
    fn only_requests_have_errors() {
        assert!(message(json!({"method": "ping", "id": 0})).error(1, "x").is_some());
        assert!(
            message(json!({"method": "notifications/initialized"}))
                .error(1, "x")
                .is_none()
        );
        assert!(message(json!({"id": 1, "result": {}})).error(1, "x").is_none());
        let cancel = message(json!({"method": "notifications/cancelled", "params": {"requestId": "a"}}));
        assert_eq!(cancel.cancels(), message(json!({"method": "x", "id": "a"})).id_text());
    }

    #[test]
    fn headers_follow_the_era_of_the_message() {
        let old = message(json!({"method": "tools/list", "id": 1}));
        assert_eq!(
            old.headers(Some("2025-06-18")),
            [("mcp-protocol-version", "2025-06-18".to_owned())]
        );
        assert!(
            message(json!({"method": "initialize", "id": 1}))
                .headers(Some("2025-06-18"))
                .is_empty()
        );
        let new = message(json!({"method": "tools/call", "id": 1, "params": {
            "name": "ü", "_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}}}));
        let names: Vec<_> = new
            .headers(None)
            .into_iter()
            .map(|(name, value)| format!("{name}: {value}"))
            .collect();
        assert_eq!(
            names,
            [
                "mcp-protocol-version: 2026-07-28",
                "mcp-method: tools/call",
                "mcp-name: =?base64?w7w=?="
            ]
        );
    }
}
