//! REST for API keys. A key is shown once, in the answer that makes it; the cluster keeps a keyed hash.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Path, Request, State};
use http::{HeaderMap, Response, StatusCode, Uri};
use serde_json::{Value, json};
use waggle_memory::meta::KeyScopes;
use waggle_memory::time::Millis;
use waggle_proto::wire;

use super::admin::{AdminCall, read_object, respond, text_field};
use super::entrance::named_tenants;
use crate::app::App;
use crate::fault::Fault;
use crate::keys::ApiKeyText;
use crate::mcp::times;
use crate::route::timed;

const LIFE_DAYS_DEFAULT: i64 = 90;
const LIFE_DAYS_MAX: i64 = 3650;

pub(crate) async fn list(State(app): State<Arc<App>>, uri: Uri, headers: HeaderMap) -> Response<Body> {
    respond(StatusCode::OK, listed(&app, &uri, &headers).await)
}

async fn listed(app: &App, uri: &Uri, headers: &HeaderMap) -> Result<Value, Fault> {
    let call = AdminCall::begin(app, uri, headers, KeyScopes::ADMIN_READ).await?;
    let named = named_tenants(uri);
    let named = named.first().map(String::as_str);
    let tenant = call.tenant(named)?;
    // An operator who names no tenant sees all of them.
    let tenant_id = if named.is_none() && call.caller.is_operator() {
        String::new()
    } else {
        tenant.to_string()
    };
    let reply = app
        .cluster
        .meta(|mut client, left| {
            let request = timed(
                wire::ListKeysRequest {
                    tenant_id: tenant_id.clone(),
                },
                left,
            );
            async move { client.list_keys(request).await }
        })
        .await?;
    let keys: Vec<Value> = reply.keys.iter().map(key_json).collect();
    Ok(json!({"keys": keys, "truncated": reply.truncated}))
}

pub(crate) async fn create(State(app): State<Arc<App>>, request: Request) -> Response<Body> {
    respond(StatusCode::CREATED, created(&app, request).await)
}

async fn created(app: &App, request: Request) -> Result<Value, Fault> {
    let call = AdminCall::begin(app, request.uri(), request.headers(), KeyScopes::ADMIN_WRITE).await?;
    let allowed = [
        "tenant_id",
        "name",
        "scopes",
        "expires_at",
        "expires_in_days",
        "created_by",
        "unlimited",
    ];
    let fields = read_object(request, &allowed).await?;
    let tenant = call.tenant(text_field(&fields, "tenant_id")?)?;
    let Some(name) = text_field(&fields, "name")?.filter(|name| !name.trim().is_empty()) else {
        return Err(Fault::validation(
            "name",
            "field 'name' is missing; say what the key is for",
        ));
    };
    let scopes = parse_scopes(fields.get("scopes"))?;
    if !call.caller.is_operator() && !call.caller.scopes.contains(scopes) {
        return Err(Fault::new(
            "authorization_failed",
            "a key cannot give scopes that it does not have",
        ));
    }
    let unlimited = match fields.get("unlimited") {
        None | Some(Value::Bool(false)) => false,
        Some(Value::Bool(true)) if call.caller.is_operator() => true,
        Some(Value::Bool(true)) => {
            return Err(Fault::new(
                "authorization_failed",
                "only an operator's key (tenant 'system') makes unlimited keys",
            ));
        }
        Some(_) => {
            return Err(Fault::validation(
                "unlimited",
                "field 'unlimited' must be true or false",
            ));
        }
    };
    let now = app.clock.wall();
    let expires_at = expiry(&fields, now)?;
    let key = ApiKeyText::make(&app.environment).map_err(|error| {
        tracing::error!(%error, "cannot make a key");
        Fault::internal()
    })?;
    let request = wire::CreateKeyRequest {
        principal: call.caller.principal.clone(),
        key: Some(wire::KeyInfo {
            key_id: key.kid().to_owned(),
            tenant_id: tenant.to_string(),
            name: name.to_owned(),
            scopes: u32::from(scopes.bits()),
            // A label only: who really asked is in the command, as its principal.
            created_by: text_field(&fields, "created_by")?
                .filter(|label| !label.trim().is_empty())
                .unwrap_or(&call.caller.principal)
                .to_owned(),
            created_at: now.0,
            expires_at: expires_at.map(|at| at.0),
            revoked_at: None,
            unlimited,
        }),
        secret_hash: key.keyed_hash(app.pepper.bytes()).to_vec(),
    };
    let info = app
        .cluster
        .meta(|mut client, left| {
            let request = timed(request.clone(), left);
            async move { client.create_key(request).await }
        })
        .await?;
    let mut answer = key_json(&info);
    if let Some(fields) = answer.as_object_mut() {
        fields.insert("key".into(), json!(key.reveal()));
        fields.insert("raw_api_key".into(), json!(key.reveal()));
        fields.insert("prefix".into(), json!(key.prefix()));
        fields.insert(
            "note".into(),
            json!("the key is shown only now; keep it in a safe place"),
        );
    }
    Ok(answer)
}

fn parse_scopes(value: Option<&Value>) -> Result<KeyScopes, Fault> {
    let wrong = || {
        Fault::validation(
            "scopes",
            "field 'scopes' must be a list such as [\"graph:read\", \"graph:write\"]",
        )
    };
    let words = match value {
        // What an agent needs.
        None | Some(Value::Null) => return Ok(KeyScopes::GRAPH_READ.with(KeyScopes::GRAPH_WRITE)),
        Some(given) => given.as_array(),
    };
    let words = words.filter(|words| !words.is_empty()).ok_or_else(wrong)?;
    words.iter().try_fold(KeyScopes::default(), |all, word| {
        let word = word.as_str().ok_or_else(wrong)?;
        word.parse()
            .map(|scope| all.with(scope))
            .map_err(|why: String| Fault::validation("scopes", why))
    })
}

/// Ninety days unless said otherwise; `expires_in_days: 0` means without end.
fn expiry(fields: &serde_json::Map<String, Value>, now: Millis) -> Result<Option<Millis>, Fault> {
    let days = match fields.get("expires_in_days") {
        None | Some(Value::Null) => None,
        Some(value) => match value.as_i64() {
            Some(days) if (0..=LIFE_DAYS_MAX).contains(&days) => Some(days),
            _ => {
                return Err(Fault::validation(
                    "expires_in_days",
                    format!("field 'expires_in_days' must be a whole number from 0 (no end) to {LIFE_DAYS_MAX}"),
                ));
            }
        },
    };
    match (text_field(fields, "expires_at")?, days) {
        (Some(_), Some(_)) => Err(Fault::validation(
            "expires_at",
            "give expires_at or expires_in_days, not both",
        )),
        (Some(text), None) => {
            let at = times::parse(text, now)
                .map_err(|why| Fault::validation("expires_at", format!("field 'expires_at' {why}")))?;
            if at <= now {
                return Err(Fault::validation("expires_at", "field 'expires_at' is in the past"));
            }
            Ok(Some(at))
        }
        (None, Some(0)) => Ok(None),
        (None, days) => Ok(Some(now.plus(days.unwrap_or(LIFE_DAYS_DEFAULT) * Millis::DAY))),
    }
}

pub(crate) async fn revoke(
    State(app): State<Arc<App>>,
    uri: Uri,
    headers: HeaderMap,
    Path(id): Path<String>,
) -> Response<Body> {
    respond(StatusCode::OK, revoked(&app, &uri, &headers, &id).await)
}

async fn revoked(app: &App, uri: &Uri, headers: &HeaderMap, id: &str) -> Result<Value, Fault> {
    let call = AdminCall::begin(app, uri, headers, KeyScopes::ADMIN_WRITE).await?;
    let of_tenant = if call.caller.is_operator() {
        String::new()
    } else {
        call.caller.tenant.to_string()
    };
    let request = wire::RevokeKeyRequest {
        principal: call.caller.principal.clone(),
        key_id: id.to_owned(),
        of_tenant,
    };
    let info = app
        .cluster
        .meta(|mut client, left| {
            let request = timed(request.clone(), left);
            async move { client.revoke_key(request).await }
        })
        .await?;
    app.auth.forget(id);
    let mut answer = key_json(&info);
    if let Some(fields) = answer.as_object_mut() {
        fields.insert("revoked".into(), json!(info.revoked_at.is_some()));
    }
    Ok(answer)
}

fn key_json(key: &wire::KeyInfo) -> Value {
    json!({
        "api_key_id": key.key_id,
        "key_id": key.key_id,
        "tenant_id": key.tenant_id,
        "name": key.name,
        "scopes": KeyScopes::from_bits(u8::try_from(key.scopes & 0xff).unwrap_or(0)).words(),
        "created_by": key.created_by,
        "created_at": Millis(key.created_at).to_string(),
        "expires_at": key.expires_at.map(|at| Millis(at).to_string()),
        "revoked_at": key.revoked_at.map(|at| Millis(at).to_string()),
        "unlimited": key.unlimited,
    })
}
