//! Answers with a JSON body: faults as REST and as JSON-RPC, and what every answer carries.

use axum::body::Body;
use http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderValue, Response, StatusCode};
use serde_json::{Value, json};

use crate::fault::Fault;

/// JSON-RPC numbers that we answer ourselves; the rest are the library's.
pub(crate) const PARSE_ERROR: i32 = -32700;
pub(crate) const INVALID_REQUEST: i32 = -32600;
pub(crate) const METHOD_NOT_FOUND: i32 = -32601;
pub(crate) const INVALID_PARAMS: i32 = -32602;
/// A refusal before a message was understood; from the range that belongs to implementations.
pub(crate) const REFUSED: i32 = -32001;

pub(crate) fn json_response(status: StatusCode, value: &Value) -> Response<Body> {
    let mut response = Response::new(Body::from(value.to_string()));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// A fault on a REST route.
pub(crate) fn rest_fault(fault: &Fault, request_id: &str) -> Response<Body> {
    finish(
        json_response(status_of(fault), &Value::Object(fault.fields(request_id))),
        fault,
    )
}

/// A fault on an MCP route, before a message was understood.
pub(crate) fn rpc_fault(fault: &Fault, number: i32, id: Value, request_id: &str) -> Response<Body> {
    let error = json!({"code": number, "message": fault.text(), "data": fault.fields(request_id)});
    finish(
        json_response(status_of(fault), &json!({"jsonrpc": "2.0", "id": id, "error": error})),
        fault,
    )
}

fn finish(mut response: Response<Body>, fault: &Fault) -> Response<Body> {
    let headers = response.headers_mut();
    match fault.status {
        401 => {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        405 => {
            headers.insert(ALLOW, HeaderValue::from_static("POST"));
        }
        _ => {}
    }
    if let Some(seconds) = fault.retry_seconds() {
        headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

fn status_of(fault: &Fault) -> StatusCode {
    StatusCode::from_u16(fault.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}

pub(crate) fn not_found(request_id: &str) -> Response<Body> {
    rest_fault(
        &Fault::new("not_found", "there is nothing at this path; MCP is at /mcp"),
        request_id,
    )
}
