//! Is this process alive, may traffic come, and what is it? Bodies list named checks; public ones say no more.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{RawQuery, State};
use axum::routing::get;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Response, StatusCode};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::answer::json_response;
use crate::app::App;

const CHECK_TIME_MAX: Duration = Duration::from_secs(2);

/// The paths that balancers ask, without tenant data or cluster detail.
pub(crate) fn public_routes() -> Router<Arc<App>> {
    Router::new()
        .route("/livez", get(livez))
        .route("/health/live", get(livez))
        .route("/readyz", get(readyz))
        .route("/health/ready", get(readyz))
        .route("/startupz", get(startupz))
}

/// The rest, for the admin listener.
pub(crate) fn admin_routes() -> Router<Arc<App>> {
    public_routes()
        .route("/healthz", get(healthz))
        .route("/status", get(status))
        .route("/metrics", get(metrics_page))
}

async fn livez() -> Response<Body> {
    checks(&[("event_loop", true, "answers")], None)
}

async fn startupz() -> Response<Body> {
    checks(&[("started", true, "nothing to replay")], None)
}

async fn readyz(State(app): State<Arc<App>>, RawQuery(query): RawQuery) -> Response<Body> {
    checks(&ready(&app).await, query.as_deref())
}

async fn healthz(State(app): State<Arc<App>>, RawQuery(query): RawQuery) -> Response<Body> {
    let mut all = vec![("event_loop", true, "answers")];
    all.extend(ready(&app).await);
    checks(&all, query.as_deref())
}

type Check = (&'static str, bool, &'static str);

async fn ready(app: &App) -> Vec<Check> {
    let draining = app.draining.is_cancelled();
    let placement = app.cluster.placement(Instant::now() + CHECK_TIME_MAX).await;
    let placed = placement.as_ref().is_ok_and(|placement| !placement.shards.is_empty());
    vec![
        (
            "not_draining",
            !draining,
            if draining { "shutting down" } else { "accepts calls" },
        ),
        (
            "placement",
            placed,
            if placed { "read from a node" } else { "no node answers" },
        ),
    ]
}

/// `?exclude=name` leaves a check out.
fn checks(all: &[Check], query: Option<&str>) -> Response<Body> {
    let excluded: Vec<&str> = query
        .unwrap_or_default()
        .split('&')
        .filter_map(|pair| pair.strip_prefix("exclude="))
        .collect();
    let counted: Vec<&Check> = all.iter().filter(|(name, _, _)| !excluded.contains(name)).collect();
    let ok = counted.iter().all(|(_, ok, _)| *ok);
    let listed: Vec<Value> = counted
        .iter()
        .map(|(name, ok, why)| json!({"name": name, "ok": ok, "reason": why}))
        .collect();
    let status = if ok {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    };
    json_response(status, &json!({"ok": ok, "checks": listed}))
}

async fn status(State(app): State<Arc<App>>) -> Response<Body> {
    let nodes: Vec<Value> = app
        .cluster
        .statuses()
        .await
        .into_iter()
        .map(|(node, reply)| match reply {
            None => json!({"node": node.to_string(), "answers": false}),
            Some(reply) => json!({
                "node": node.to_string(),
                "answers": true,
                "version": reply.version,
                "read_only": reply.read_only,
                "degraded": reply.degraded,
                "disk_free_bytes": reply.disk_free_bytes,
                "disk_total_bytes": reply.disk_total_bytes,
                "encoder": {
                    "queue": reply.encoder_queue,
                    "kernel": reply.encoder_kernel,
                    "model": reply.encoder_model,
                },
                "index_bytes": reply.index_bytes,
                "index_tenants": reply.index_tenants,
                "shards": reply.shards.iter().map(|shard| json!({
                    "shard": format!("shd_{}", shard.shard),
                    "is_leader": shard.is_leader,
                    "term": shard.term,
                    "last_log_index": shard.last_log_index,
                    "committed_index": shard.committed_index,
                    "applied_index": shard.applied_index,
                    "replica": shard.replica,
                    "role": shard.role,
                    "leader_node": shard.leader_node,
                    "voters": shard.voters,
                    "halted": shard.halted,
                })).collect::<Vec<_>>(),
            }),
        })
        .collect();
    let placement = app.cluster.known_placement();
    let body = json!({
        "role": "gateway",
        "version": env!("CARGO_PKG_VERSION"),
        "draining": app.draining.is_cancelled(),
        "cluster_id": placement.as_ref().map(|placement| hex(&placement.cluster_id)),
        "placement_version": placement.as_ref().map(|placement| placement.version),
        "nodes": nodes,
    });
    json_response(StatusCode::OK, &body)
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

async fn metrics_page(State(app): State<Arc<App>>) -> Response<Body> {
    let Some(handle) = &app.metrics else {
        return super::answer::not_found("");
    };
    app.process.collect();
    let mut response = Response::new(Body::from(handle.render()));
    response.headers_mut().insert(
        CONTENT_TYPE,
        HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8"),
    );
    response
}
