//! What stands before MCP: host and origin, CORS, credential, method, body, and the shims that turn the library's plain
//! answers into JSON-RPC. One order for every MCP path: 403, then CORS, then 401, then 405, then the body.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use http::header::{ACCEPT, ALLOW, CONTENT_LENGTH, CONTENT_TYPE, TRANSFER_ENCODING};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tower::ServiceExt;
use uuid::Uuid;

use super::answer::{INVALID_REQUEST, REFUSED, json_response, rest_fault, rpc_fault};
use super::body;
use super::message::understand;
use crate::app::App;
use crate::conformance::FixtureService;
use crate::fault::Fault;
use crate::mcp::server::{McpService, tool_result};
use crate::metric::InFlight;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
pub(super) const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");

/// Names this HTTP request; also the request id of a write whose caller gave none.
#[derive(Clone, Debug)]
pub(crate) struct HttpRequestId(pub(crate) String);

/// What answers behind the gate.
#[derive(Clone)]
pub(crate) enum Inner {
    Mcp(McpService),
    /// The conformance suite needs GET and DELETE for its session scenarios.
    Fixtures(FixtureService),
}

/// One MCP path.
#[derive(Clone)]
pub(crate) struct Endpoint {
    pub(crate) app: Arc<App>,
    pub(crate) surface: &'static str,
    pub(crate) inner: Inner,
}

impl Endpoint {
    pub(crate) async fn answer(&self, request: Request<Body>) -> Response<Body> {
        let request_id = Uuid::now_v7().to_string();
        let started = self.app.clock.monotonic();
        let in_flight = InFlight::enter();
        let mut op = "other".to_owned();
        let mut response = match self.app.public_guard.check(request.uri(), request.headers()) {
            Err(fault) => rpc_fault(&fault, REFUSED, Value::Null, &request_id),
            Ok(origin) => {
                let mut response = if request.method() == Method::OPTIONS {
                    let mut response = Response::new(Body::empty());
                    *response.status_mut() = StatusCode::NO_CONTENT;
                    response.headers_mut().insert(ALLOW, HeaderValue::from_static("POST"));
                    origin.mark_preflight(response.headers_mut(), "POST");
                    response
                } else {
                    let mut response = self.admitted(request, &request_id, &mut op).await;
                    origin.mark(response.headers_mut());
                    response
                };
                response.headers_mut().remove("server");
                response
            }
        };
        if let Ok(value) = HeaderValue::from_str(&request_id) {
            response.headers_mut().insert(REQUEST_ID, value);
        }
        drop(in_flight);
        let took = self.app.clock.monotonic().saturating_sub(started);
        count(self.surface, op_label(&op), response.status(), took);
        response
    }

    async fn admitted(&self, request: Request<Body>, request_id: &str, op: &mut String) -> Response<Body> {
        let refuse = |fault: &Fault, number| rpc_fault(fault, number, Value::Null, request_id);
        let caller = match self.app.auth.authenticate(request.headers()).await {
            Ok(caller) => caller,
            Err(fault) if fault.status == 503 => return self.unavailable(&fault, request, request_id, op).await,
            Err(fault) => return refuse(&fault, REFUSED),
        };
        let (mut parts, body) = request.into_parts();
        parts.extensions.insert(caller);
        parts.extensions.insert(HttpRequestId(request_id.to_owned()));
        let sessions = matches!(self.inner, Inner::Fixtures(_));
        if parts.method != Method::POST {
            if sessions && matches!(parts.method, Method::GET | Method::DELETE) {
                return self.pass(Request::from_parts(parts, Body::empty())).await;
            }
            let fault = Fault::new(
                "method_not_allowed",
                "MCP is spoken with POST only; there are no sessions and no stream to open",
            );
            return refuse(&fault, REFUSED);
        }
        if let Err(fault) = check_content_type(&parts.headers) {
            return refuse(&fault, INVALID_REQUEST);
        }
        let bytes = match body::read(&parts.headers, body, self.app.limits.body_bytes_max()).await {
            Ok(bytes) => bytes,
            Err(fault) => {
                // What is left of the body is not read: the connection cannot be used again.
                let mut response = refuse(&fault, INVALID_REQUEST);
                response
                    .headers_mut()
                    .insert(http::header::CONNECTION, HeaderValue::from_static("close"));
                return response;
            }
        };
        let message = match understand(&bytes, &mut parts.headers, request_id) {
            Ok(message) => message,
            Err(response) => return *response,
        };
        op.clone_from(&message.method);
        count_version(&parts.headers);
        let headers = &mut parts.headers;
        headers.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.remove(TRANSFER_ENCODING);
        headers.insert(CONTENT_LENGTH, HeaderValue::from(bytes.len()));
        if !sessions {
            headers.remove("mcp-session-id");
            headers.remove("last-event-id");
        }
        let response = self.pass(Request::from_parts(parts, Body::from(bytes))).await;
        as_json_rpc(response, message.id, request_id).await
    }

    /// Nobody can say whose credential it is. A tool call hears so in its own form, which clients show and repeat; the
    /// rest as an error that carries the id of the message.
    async fn unavailable(
        &self,
        fault: &Fault,
        request: Request<Body>,
        request_id: &str,
        op: &mut String,
    ) -> Response<Body> {
        let (mut parts, body) = request.into_parts();
        if parts.method != Method::POST {
            return rpc_fault(fault, REFUSED, Value::Null, request_id);
        }
        let bytes = match body::read(&parts.headers, body, self.app.limits.body_bytes_max()).await {
            Ok(bytes) => bytes,
            Err(too_large) => return rpc_fault(&too_large, INVALID_REQUEST, Value::Null, request_id),
        };
        let message = match understand(&bytes, &mut parts.headers, request_id) {
            Ok(message) => message,
            Err(response) => return *response,
        };
        op.clone_from(&message.method);
        if message.method != "tools/call" || message.id.is_null() {
            return rpc_fault(fault, REFUSED, message.id, request_id);
        }
        match serde_json::to_value(tool_result(Err(fault.clone()), request_id)) {
            Ok(result) => json_response(
                StatusCode::OK,
                &json!({"jsonrpc": "2.0", "id": message.id, "result": result}),
            ),
            Err(_) => rpc_fault(fault, REFUSED, message.id, request_id),
        }
    }

    async fn pass(&self, request: Request<Body>) -> Response<Body> {
        let response = match &self.inner {
            Inner::Mcp(service) => service.clone().oneshot(request).await,
            Inner::Fixtures(service) => service.clone().oneshot(request).await,
        };
        match response {
            Ok(response) => response.map(Body::new),
            Err(never) => match never {},
        }
    }
}

/// Counts an answered request.
pub(crate) fn count(surface: &'static str, op: &'static str, status: StatusCode, took: Duration) {
    let code = status_label(status);
    metrics::counter!("waggle_gateway_requests_total", "surface" => surface, "op" => op, "code" => code).increment(1);
    metrics::histogram!("waggle_gateway_request_duration_seconds", "surface" => surface, "op" => op)
        .record(took.as_secs_f64());
}

/// A body is JSON, or does not say what it is.
pub(crate) fn check_content_type(headers: &HeaderMap) -> Result<(), Fault> {
    let Some(value) = headers.get(CONTENT_TYPE) else {
        return Ok(());
    };
    let essence = value
        .to_str()
        .ok()
        .and_then(|text| text.split(';').next())
        .unwrap_or_default()
        .trim();
    if essence.eq_ignore_ascii_case("application/json") {
        return Ok(());
    }
    Err(Fault::new(
        "unsupported_media_type",
        "the body must be application/json; set Content-Type accordingly",
    ))
}

fn count_version(headers: &HeaderMap) {
    let version = match headers.get(PROTOCOL_VERSION).and_then(|value| value.to_str().ok()) {
        None => "absent",
        Some("2025-03-26") => "2025-03-26",
        Some("2025-06-18") => "2025-06-18",
        Some("2025-11-25") => "2025-11-25",
        Some("2026-07-28") => "2026-07-28",
        Some(_) => "other",
    };
    metrics::counter!("waggle_mcp_protocol_requests_total", "version" => version).increment(1);
}

/// Errors that the library answers as plain text become JSON-RPC errors.
async fn as_json_rpc(response: Response<Body>, id: Value, request_id: &str) -> Response<Body> {
    let status = response.status();
    let is_json = response
        .headers()
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .is_some_and(|value| value.starts_with("application/json"));
    if is_json || !(status.is_client_error() || status.is_server_error()) {
        return response;
    }
    if status.is_server_error() {
        tracing::error!(request_id, status = status.as_u16(), "the MCP library could not answer");
        return rpc_fault(&Fault::internal(), -32603, id, request_id);
    }
    let told = response
        .into_body()
        .collect()
        .await
        .map(|body| body.to_bytes())
        .unwrap_or_default();
    // The library quotes what it could not read; the caller knows that text already, and it may be long.
    let told: String = String::from_utf8_lossy(&told)
        .chars()
        .filter(|c| !c.is_control())
        .take(200)
        .collect();
    let what = match status {
        StatusCode::UNSUPPORTED_MEDIA_TYPE => {
            "the message is not a valid JSON-RPC request of MCP; check method and params".to_owned()
        }
        _ if told.is_empty() => "the request is not acceptable".to_owned(),
        _ => told,
    };
    rpc_fault(&Fault::new("malformed_request", what), INVALID_REQUEST, id, request_id)
}

/// Methods come from callers; the label comes from a closed set.
fn op_label(op: &str) -> &'static str {
    const OPS: [&str; 12] = [
        "tools/call",
        "tools/list",
        "initialize",
        "server/discover",
        "ping",
        "prompts/list",
        "prompts/get",
        "resources/list",
        "resources/read",
        "resources/templates/list",
        "completion/complete",
        "notifications/initialized",
    ];
    OPS.iter().find(|known| **known == op).copied().unwrap_or("other")
}

fn status_label(status: StatusCode) -> &'static str {
    match status.as_u16() {
        200 => "200",
        202 => "202",
        204 => "204",
        400 => "400",
        401 => "401",
        403 => "403",
        404 => "404",
        405 => "405",
        413 => "413",
        415 => "415",
        429 => "429",
        503 => "503",
        500..=599 => "5xx",
        _ => "other",
    }
}

/// A path that does not exist on the public listener.
pub(crate) fn no_such_path(app: &App, request: &Request<Body>) -> Response<Body> {
    let request_id = Uuid::now_v7().to_string();
    match app.public_guard.check(request.uri(), request.headers()) {
        Err(fault) => rest_fault(&fault, &request_id),
        Ok(_) => super::answer::not_found(&request_id),
    }
}

/// A method that a path of the public listener does not know. Its `Allow` header stays.
pub(crate) fn no_such_method(app: &App, request: &Request<Body>) -> Response<Body> {
    let request_id = Uuid::now_v7().to_string();
    match app.public_guard.check(request.uri(), request.headers()) {
        Err(fault) => rest_fault(&fault, &request_id),
        Ok(_) => {
            let what = "this path does not know the method; the Allow header names those that it knows";
            let mut response = rest_fault(&Fault::new("method_not_allowed", what), &request_id);
            // Each path adds its own.
            response.headers_mut().remove(ALLOW);
            response
        }
    }
}
