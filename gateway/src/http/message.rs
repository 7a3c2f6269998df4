//! As much of a JSON-RPC message as decides how it is answered: its id, its method, and whether its parameters have the
//! shape that the method needs. The library parses it again, strictly.

use axum::body::Body;
use bytes::Bytes;
use http::{HeaderMap, Response, StatusCode};
use serde_json::{Value, json};

use super::answer::{INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, PARSE_ERROR, json_response, rpc_fault};
use super::body;
use super::gate::PROTOCOL_VERSION;
use crate::fault::Fault;

const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";
/// The first revision without `initialize`.
const FIRST_MODERN: &str = "2026-07-28";
/// Methods that 2026-07-28 removed: with modern metadata they do not exist.
const REMOVED: [&str; 5] = [
    "initialize",
    "ping",
    "logging/setLevel",
    "resources/subscribe",
    "resources/unsubscribe",
];

/// What the gate learned from the body.
pub(super) struct Message {
    pub(super) id: Value,
    pub(super) method: String,
}

/// Reads as much of the message as decides how it is answered. The library parses it again, strictly.
pub(super) fn understand(
    bytes: &Bytes,
    headers: &mut HeaderMap,
    request_id: &str,
) -> Result<Message, Box<Response<Body>>> {
    let refuse = |number, what: &str, id: Value| {
        Box::new(rpc_fault(
            &Fault::new("malformed_request", what),
            number,
            id,
            request_id,
        ))
    };
    let text = body::text(bytes).map_err(|fault| Box::new(rpc_fault(&fault, PARSE_ERROR, Value::Null, request_id)))?;
    let value: Value = serde_json::from_str(text).map_err(|why| {
        let what = format!("the body is not JSON, at line {} column {}", why.line(), why.column());
        refuse(PARSE_ERROR, &what, Value::Null)
    })?;
    let object = match &value {
        Value::Object(object) => object,
        Value::Array(_) => {
            return Err(refuse(
                INVALID_REQUEST,
                "batches are not supported; send one message in each request",
                Value::Null,
            ));
        }
        _ => {
            return Err(refuse(
                INVALID_REQUEST,
                "the body is not a JSON-RPC message",
                Value::Null,
            ));
        }
    };
    let id = object.get("id").cloned().unwrap_or(Value::Null);
    if object.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return Err(refuse(INVALID_REQUEST, "the message has no \"jsonrpc\": \"2.0\"", id));
    }
    let method = object
        .get("method")
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned();
    let version = value
        .pointer("/params/_meta")
        .and_then(|meta| meta.get(VERSION_KEY))
        .and_then(Value::as_str);
    if REMOVED.contains(&method.as_str()) && version.is_some_and(|version| version == FIRST_MODERN) {
        let error = json!({"code": METHOD_NOT_FOUND, "message": format!("{method} does not exist in {FIRST_MODERN}")});
        let body = json!({"jsonrpc": "2.0", "id": id, "error": error});
        return Err(Box::new(json_response(StatusCode::NOT_FOUND, &body)));
    }
    if let Some(what) = wrong_params(&method, value.get("params")) {
        // The library would take the message for one of another method.
        let error = json!({"code": INVALID_PARAMS, "message": what});
        let body = json!({"jsonrpc": "2.0", "id": id, "error": error});
        let status = if version.is_some() {
            StatusCode::BAD_REQUEST
        } else {
            StatusCode::OK
        };
        return Err(Box::new(json_response(status, &body)));
    }
    if method == "initialize" && version.is_none() {
        // The version in the body counts: a handshake is never refused for the header.
        headers.remove(PROTOCOL_VERSION);
    }
    Ok(Message { id, method })
}

/// What is wrong with the shape of the parameters, where that decides which method is meant.
fn wrong_params(method: &str, params: Option<&Value>) -> Option<&'static str> {
    let field = |name: &str| params.and_then(|params| params.get(name));
    match method {
        "tools/call" => match (field("name"), field("arguments")) {
            (None, _) => Some("params.name is missing: the name of the tool; tools/list names all"),
            (Some(name), _) if !name.is_string() => Some("params.name must be a string: the name of the tool"),
            (_, None | Some(Value::Object(_) | Value::Null)) => None,
            _ => Some("params.arguments must be an object: one field for each argument"),
        },
        "initialize" => match field("protocolVersion") {
            Some(Value::String(_)) => None,
            _ => Some("params.protocolVersion must be a string, such as \"2025-11-25\""),
        },
        _ => None,
    }
}
