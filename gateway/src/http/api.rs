//! Tools that programs reach as plain REST, on the public listener: the same checks, limits and answer as over MCP.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::routing::any;
use http::header::ALLOW;
use http::{HeaderValue, Method, Response, StatusCode};
use serde_json::{Map, Value};
use uuid::Uuid;

use super::answer::{json_response, rest_fault};
use super::body;
use super::entrance::{caller_of, refuse_tenant};
use crate::app::App;
use crate::fault::Fault;
use crate::mcp::schema;
use crate::mcp::tools::ToolCall;
use crate::mcp::tools::fields::REPLAY_TOKENS_MAX;
use crate::metric::InFlight;

pub(crate) fn routes() -> Router<Arc<App>> {
    Router::new().route("/api/memory_replay", any(memory_replay))
}

async fn memory_replay(State(app): State<Arc<App>>, request: Request) -> Response<Body> {
    // A program reads pages of any size; a model does not.
    answer(&app, "memory_replay", Some(REPLAY_TOKENS_MAX), request).await
}

/// Host and origin, then the credential, the method, the scope, the body: the order of the MCP paths.
async fn answer(app: &Arc<App>, tool: &str, token_budget: Option<i64>, request: Request) -> Response<Body> {
    let request_id = Uuid::now_v7().to_string();
    let in_flight = InFlight::enter();
    let origin = match app.public_guard.check(request.uri(), request.headers()) {
        Ok(origin) => origin,
        Err(fault) => return rest_fault(&fault, &request_id),
    };
    let mut response = if request.method() == Method::OPTIONS {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::NO_CONTENT;
        response.headers_mut().insert(ALLOW, HeaderValue::from_static("POST"));
        origin.mark_preflight(response.headers_mut(), "POST");
        response
    } else {
        let mut response = match Box::pin(run(app, tool, token_budget, request, &request_id)).await {
            Ok(value) => json_response(StatusCode::OK, &value),
            Err(fault) => rest_fault(&fault, &request_id),
        };
        origin.mark(response.headers_mut());
        response
    };
    if let Ok(value) = HeaderValue::from_str(&request_id) {
        response.headers_mut().insert("x-request-id", value);
    }
    drop(in_flight);
    response
}

async fn run(
    app: &Arc<App>,
    tool: &str,
    token_budget: Option<i64>,
    request: Request,
    request_id: &str,
) -> Result<Value, Fault> {
    let caller = caller_of(app, request.uri(), request.headers()).await?;
    if request.method() != Method::POST {
        return Err(Fault::new("method_not_allowed", "this path takes POST only"));
    }
    let tool = schema::find_tool(tool).ok_or_else(Fault::internal)?;
    caller.require(tool.scopes)?;
    let _pass = app.rates.enter(&caller, tool.cost())?;
    let (parts, body) = request.into_parts();
    let bytes = body::read(&parts.headers, body, app.limits.body_bytes_max()).await?;
    let mut given = object(body::text(&bytes)?)?;
    refuse_tenant(given.keys())?;
    if let Some(budget) = token_budget
        && !given.contains_key("token_budget")
    {
        given.insert("token_budget".to_owned(), budget.into());
    }
    let call = ToolCall::begin(app, &caller, tool, &given, request_id.to_owned())?;
    Ok(call.run().await?.structured)
}

fn object(text: &str) -> Result<Map<String, Value>, Fault> {
    match serde_json::from_str(text) {
        Ok(Value::Object(fields)) => Ok(fields),
        _ => Err(Fault::new("malformed_request", "the body is not a JSON object")),
    }
}
