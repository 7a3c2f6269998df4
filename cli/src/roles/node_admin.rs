//! The admin listener of a node: health, status, metrics. Loopback only, because it asks for no credential, and for
//! loopback names only, because a web page in a browser of this machine must not read it.

use std::sync::Arc;

use anyhow::{Context as _, Result};
use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use metrics_exporter_prometheus::PrometheusHandle;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use waggle_config::runtime::tasks::{Kind, Tasks};
use waggle_node::NodeStatus;

/// Looks at the node; blocks for a moment.
type Probe = Arc<dyn Fn() -> NodeStatus + Send + Sync>;

#[derive(Clone)]
struct Admin {
    probe: Probe,
    metrics: PrometheusHandle,
    draining: CancellationToken,
}

/// Serves until `stop`.
pub(super) async fn serve(
    address: std::net::SocketAddr,
    probe: impl Fn() -> NodeStatus + Send + Sync + 'static,
    metrics: PrometheusHandle,
    stop: CancellationToken,
    tasks: &Tasks,
) -> Result<()> {
    let listener = TcpListener::bind(address)
        .await
        .with_context(|| format!("listen at {address}"))?;
    let admin = Admin {
        probe: Arc::new(probe),
        metrics,
        draining: tasks.stopping(),
    };
    let router = Router::new()
        .route("/livez", get(|| async { Json(json!({"ok": true})) }))
        .route("/startupz", get(|| async { Json(json!({"ok": true})) }))
        .route("/readyz", get(readyz))
        .route("/healthz", get(healthz))
        .route("/status", get(status))
        .route(
            "/metrics",
            get(|State(admin): State<Admin>| async move { admin.metrics.render() }),
        )
        .layer(middleware::from_fn(loopback_names_only))
        .with_state(admin);
    tasks.spawn(Kind::Listener, "node admin", async move {
        if let Err(error) = axum::serve(listener, router)
            .with_graceful_shutdown(stop.cancelled_owned())
            .await
        {
            tracing::error!(%error, "the admin listener ended");
        }
    });
    Ok(())
}

impl Admin {
    async fn look(&self) -> Option<NodeStatus> {
        let probe = Arc::clone(&self.probe);
        tokio::task::spawn_blocking(move || probe()).await.ok()
    }
}

async fn readyz(State(admin): State<Admin>) -> Response {
    let draining = admin.draining.is_cancelled();
    let ready = admin.look().await.is_some_and(|status| status.is_ready());
    answer(
        ready && !draining,
        json!({"ok": ready && !draining, "draining": draining}),
    )
}

async fn healthz(State(admin): State<Admin>) -> Response {
    match admin.look().await {
        None => answer(false, json!({"ok": false})),
        Some(status) => {
            let checks = status.checks();
            let ok = checks.iter().all(|check| check.ok);
            answer(ok, json!({"ok": ok, "checks": checks}))
        }
    }
}

async fn status(State(admin): State<Admin>) -> Response {
    let Some(status) = admin.look().await else {
        return answer(false, json!({"ok": false}));
    };
    let shards: Vec<Value> = status
        .shards
        .iter()
        .map(|shard| {
            json!({
                "shard": shard.shard.to_string(),
                "is_leader": shard.is_leader,
                "has_leader": shard.has_leader,
                "term": shard.term,
                "last_log_index": shard.last_log_index,
                "committed_index": shard.committed_index,
                "applied_index": shard.applied_index,
                "halted": shard.halted,
            })
        })
        .collect();
    let body = json!({
        "role": "node",
        "version": env!("CARGO_PKG_VERSION"),
        "node": status.node.to_string(),
        "draining": admin.draining.is_cancelled(),
        "read_only": status.read_only,
        "degraded": status.degraded(),
        "disk_free_bytes": status.disk_free_bytes,
        "disk_total_bytes": status.disk_total_bytes,
        "index_bytes": status.index_bytes,
        "index_tenants": status.index_tenants,
        "encoder": {"queue": status.encoder_queue, "kernel": status.encoder_kernel, "model": status.encoder_model},
        "shards": shards,
    });
    answer(true, body)
}

fn answer(ok: bool, body: Value) -> Response {
    let status = if ok {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    };
    (status, Json(body)).into_response()
}

async fn loopback_names_only(request: Request, next: Next) -> Response {
    let host = request
        .headers()
        .get(header::HOST)
        .and_then(|host| host.to_str().ok())
        .unwrap_or_default();
    if is_loopback_name(host) && !request.headers().contains_key(header::ORIGIN) {
        return next.run(request).await;
    }
    (StatusCode::FORBIDDEN, Json(json!({"code": "host_not_allowed"}))).into_response()
}

fn is_loopback_name(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if !port.contains(']') => name,
        _ => host,
    };
    name.eq_ignore_ascii_case("localhost")
        || name == "[::1]"
        || name.parse::<std::net::Ipv4Addr>().is_ok_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_this_machine_are_answered() {
        for (host, fine) in [
            ("127.0.0.1:7711", true),
            ("localhost", true),
            ("[::1]:7711", true),
            ("[::1]", true),
            ("127.evil.example:7711", false),
            ("example.org", false),
            ("", false),
        ] {
            assert_eq!(is_loopback_name(host), fine, "{host}");
        }
    }
}
