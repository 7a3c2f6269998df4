//! The admin listener: health, status, metrics, and REST for tenants and keys. The CLI is its client.
//!
//! Every route but health needs a key with an admin scope. A key of the tenant `system` administers the whole cluster;
//! a key of another tenant sees and changes that tenant only.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::routing::{delete, get};
use http::{HeaderMap, Response, StatusCode, Uri};
use serde_json::{Map, Value, json};
use uuid::Uuid;
use waggle_memory::id::TenantId;
use waggle_memory::meta::KeyScopes;
use waggle_memory::time::Millis;
use waggle_proto::wire;

use super::answer::{json_response, rest_fault};
use super::entrance::named_tenants;
use super::{body, health, keys};
use crate::app::App;
use crate::auth::Caller;
use crate::fault::Fault;
use crate::limits::{Cost, Pass};
use crate::route::timed;

const NAME_BYTES_MAX: usize = waggle_config::limits::NAME_BYTES_MAX;
const BODY_BYTES_MAX: usize = 64 * 1024;

pub(crate) fn router(app: Arc<App>) -> Router {
    Router::new()
        .route("/api/admin/tenants", get(list_tenants).post(create_tenant))
        .route("/api/admin/keys", get(keys::list).post(keys::create))
        .route("/api/admin/keys/{id}", delete(keys::revoke))
        .merge(super::cluster::routes())
        .merge(health::admin_routes())
        .fallback(|| async { super::answer::not_found("") })
        .method_not_allowed_fallback(|| async {
            let fault = Fault::new("method_not_allowed", "this path does not know the method");
            let mut response = rest_fault(&fault, "");
            response.headers_mut().remove(http::header::ALLOW);
            response
        })
        .layer(axum::middleware::from_fn_with_state(Arc::clone(&app), guard))
        .with_state(app)
}

/// Host and Origin, on this listener too.
async fn guard(State(app): State<Arc<App>>, request: Request, next: Next) -> Response<Body> {
    match app.admin_guard.check(request.uri(), request.headers()) {
        Ok(_) => next.run(request).await,
        Err(fault) => rest_fault(&fault, ""),
    }
}

/// An authenticated call of a REST route.
pub(crate) struct AdminCall {
    pub(crate) caller: Caller,
    _pass: Pass,
}

impl AdminCall {
    pub(crate) async fn begin(app: &App, uri: &Uri, headers: &HeaderMap, scope: KeyScopes) -> Result<Self, Fault> {
        let caller = app.auth.authenticate(headers).await?;
        caller.require(scope)?;
        let cost = if scope == KeyScopes::ADMIN_WRITE {
            Cost::Write
        } else {
            Cost::Read
        };
        let pass = app.rates.enter(&caller, cost)?;
        let call = Self { caller, _pass: pass };
        // Named for nothing is named all the same.
        for tenant in named_tenants(uri) {
            call.tenant(Some(&tenant))?;
        }
        Ok(call)
    }

    /// The tenant that a call is about: a named one for an operator, else the caller's own.
    pub(crate) fn tenant(&self, named: Option<&str>) -> Result<TenantId, Fault> {
        let Some(named) = named.filter(|named| !named.is_empty()) else {
            return Ok(self.caller.tenant.clone());
        };
        let tenant: TenantId = named
            .parse()
            .map_err(|why: waggle_memory::id::BadTenantId| Fault::validation("tenant_id", why.to_string()))?;
        if tenant != self.caller.tenant && !self.caller.is_operator() {
            return Err(Fault::new(
                "authorization_failed",
                "this key administers its own tenant only; use an operator's key",
            ));
        }
        Ok(tenant)
    }
}

/// Answers, with an id that a fault can be reported by.
pub(crate) fn respond(status: StatusCode, outcome: Result<Value, Fault>) -> Response<Body> {
    let request_id = Uuid::now_v7().to_string();
    match outcome {
        Ok(value) => json_response(status, &value),
        Err(fault) => rest_fault(&fault, &request_id),
    }
}

/// The body as a JSON object whose fields are all known.
pub(crate) async fn read_object(request: Request, allowed: &[&str]) -> Result<Map<String, Value>, Fault> {
    let (parts, body) = request.into_parts();
    let bytes = body::read(&parts.headers, body, BODY_BYTES_MAX).await?;
    let text = body::text(&bytes)?;
    let Ok(Value::Object(fields)) = serde_json::from_str(text) else {
        return Err(Fault::new("malformed_request", "the body is not a JSON object"));
    };
    match fields.keys().find(|name| !allowed.contains(&name.as_str())) {
        Some(unknown) => Err(crate::mcp::arguments::unknown_field(unknown, allowed)),
        None => Ok(fields),
    }
}

pub(crate) fn text_field<'a>(fields: &'a Map<String, Value>, name: &str) -> Result<Option<&'a str>, Fault> {
    match fields.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) if text.len() > NAME_BYTES_MAX => Err(Fault::validation(
            name,
            format!("field '{name}' has {} bytes; the limit is {NAME_BYTES_MAX}", text.len()),
        )),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(Fault::validation(name, format!("field '{name}' must be a string"))),
    }
}

async fn list_tenants(State(app): State<Arc<App>>, uri: Uri, headers: HeaderMap) -> Response<Body> {
    respond(StatusCode::OK, tenants(&app, &uri, &headers).await)
}

async fn tenants(app: &App, uri: &Uri, headers: &HeaderMap) -> Result<Value, Fault> {
    let call = AdminCall::begin(app, uri, headers, KeyScopes::ADMIN_READ).await?;
    let reply = app
        .cluster
        .meta(|mut client, left| async move { client.list_tenants(timed(wire::ListTenantsRequest {}, left)).await })
        .await?;
    let visible =
        |tenant: &&wire::TenantInfo| call.caller.is_operator() || tenant.tenant_id == call.caller.tenant.as_str();
    let listed: Vec<Value> = reply.tenants.iter().filter(visible).map(tenant_json).collect();
    Ok(json!({"tenants": listed, "truncated": reply.truncated}))
}

async fn create_tenant(State(app): State<Arc<App>>, request: Request) -> Response<Body> {
    let created = new_tenant(&app, request).await;
    let status = match &created {
        Ok((_, true)) => StatusCode::OK,
        _ => StatusCode::CREATED,
    };
    respond(status, created.map(|(value, _)| value))
}

/// The tenant, and whether it existed.
async fn new_tenant(app: &App, request: Request) -> Result<(Value, bool), Fault> {
    let call = AdminCall::begin(app, request.uri(), request.headers(), KeyScopes::ADMIN_WRITE).await?;
    if !call.caller.is_operator() {
        return Err(Fault::new(
            "authorization_failed",
            "only an operator's key (tenant 'system') makes tenants",
        ));
    }
    let fields = read_object(request, &["tenant_id", "name"]).await?;
    let Some(tenant_id) = text_field(&fields, "tenant_id")? else {
        return Err(Fault::validation("tenant_id", "field 'tenant_id' is missing"));
    };
    let tenant: TenantId = tenant_id
        .parse()
        .map_err(|why: waggle_memory::id::BadTenantId| Fault::validation("tenant_id", why.to_string()))?;
    let name = text_field(&fields, "name")?.unwrap_or(tenant_id).to_owned();
    let request = wire::CreateTenantRequest {
        principal: call.caller.principal.clone(),
        tenant_id: tenant.as_str().to_owned(),
        name,
    };
    let reply = app
        .cluster
        .meta(|mut client, left| {
            let request = timed(request.clone(), left);
            async move { client.create_tenant(request).await }
        })
        .await?;
    Ok((tenant_json(&reply), reply.existed))
}

fn tenant_json(tenant: &wire::TenantInfo) -> Value {
    json!({
        "tenant_id": tenant.tenant_id,
        "name": tenant.name,
        "status": tenant.status,
        "created_at": Millis(tenant.created_at).to_string(),
        "existed": tenant.existed,
    })
}
