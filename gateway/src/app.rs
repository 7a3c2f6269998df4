//! Builds a gateway from its options, serves it, and lets it end: bind, serve, drain.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::routing::any;
use http::Response;
use metrics_exporter_prometheus::PrometheusHandle;
use tokio_util::sync::CancellationToken;
use waggle_config::limits::CallLimits;
use waggle_config::runtime::clock::Clock;

use crate::auth::Auth;
use crate::conformance;
use crate::cursor::Cursors;
use crate::http::gate::{Endpoint, Inner};
use crate::http::host_origin::HostOrigin;
use crate::http::listener::Listener;
use crate::http::{admin, api, gate, graph, handoff, health, transfer};
use crate::limits::RateLimits;
use crate::mcp::read_point::ReadPoints;
use crate::mcp::schema::{ToolSet, tool_list_bytes};
use crate::mcp::server;
use crate::metric;
use crate::options::{GatewayOptions, Secret};
use crate::route::Cluster;
use crate::transfer::Transfer;

/// How often uploads are looked at.
const SWEEP_EVERY: Duration = Duration::from_secs(60);

/// Why a gateway does not start, or stopped.
#[derive(Debug, thiserror::Error)]
pub enum GatewayError {
    /// All problems of the options.
    #[error("the gateway's options do not fit together: {}", .0.join("; "))]
    Options(Vec<String>),
    #[error("prepare the directory of uploads {}: {source}", dir.display())]
    Spool { dir: PathBuf, source: std::io::Error },
    #[error("listen at {address}: {source}")]
    Bind {
        address: SocketAddr,
        source: std::io::Error,
    },
}

/// What every request can reach. Holds caches, and nothing that a request leaves behind for the next.
pub(crate) struct App {
    pub(crate) cluster: Arc<Cluster>,
    pub(crate) auth: Auth,
    pub(crate) rates: RateLimits,
    pub(crate) limits: CallLimits,
    pub(crate) cursors: Cursors,
    pub(crate) read_points: ReadPoints,
    pub(crate) public_guard: HostOrigin,
    pub(crate) admin_guard: HostOrigin,
    pub(crate) transfer: Transfer,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) pepper: Secret,
    pub(crate) environment: String,
    pub(crate) metrics: Option<PrometheusHandle>,
    pub(crate) process: metrics_process::Collector,
    /// Cancelled when shutdown begins.
    pub(crate) draining: CancellationToken,
}

/// A gateway whose listeners are bound.
pub struct Gateway {
    public: Listener,
    admin: Option<Listener>,
    app: Arc<App>,
    conformance: bool,
    drain_time: Duration,
    /// Ends calls that outlive the drain time.
    abandon: CancellationToken,
}

/// Binds and serves until `shutdown`, then finishes what is in progress.
pub async fn run(options: GatewayOptions, shutdown: CancellationToken) -> Result<(), GatewayError> {
    Gateway::bind(options).await?.serve(shutdown).await
}

impl Gateway {
    /// Checks the options and binds the listeners; nothing is served yet.
    pub async fn bind(options: GatewayOptions) -> Result<Self, GatewayError> {
        let problems = options.problems();
        if !problems.is_empty() {
            return Err(GatewayError::Options(problems));
        }
        let bound = |address| move |source| GatewayError::Bind { address, source };
        let public = Listener::bind("public", &options.public)
            .await
            .map_err(bound(options.public.address))?;
        let admin = match &options.admin {
            None => None,
            Some(listen) => Some(Listener::bind("admin", listen).await.map_err(bound(listen.address))?),
        };
        metric::describe();
        for set in ToolSet::ALL {
            metrics::gauge!("waggle_mcp_tools_list_bytes", "path" => set.path()).set(tool_list_bytes(set) as f64);
        }
        let transfer = Transfer::new(&options).map_err(|source| GatewayError::Spool {
            dir: options.spool_dir.clone(),
            source,
        })?;
        let cluster = Arc::new(Cluster::new(options.nodes, options.connect));
        let is_local = |address: Option<SocketAddr>| address.is_some_and(|address| address.ip().is_loopback());
        let app = App {
            auth: Auth::new(Arc::clone(&cluster), options.pepper.clone(), Arc::clone(&options.clock)),
            rates: RateLimits::new(&options.limits, options.limits_for_all),
            limits: options.limits,
            cursors: Cursors::new(options.cluster_secret.bytes()),
            read_points: ReadPoints::new(options.cluster_secret.bytes()),
            public_guard: HostOrigin::new(
                &options.public_hosts,
                &options.browser_origins,
                is_local(Some(public.address())),
            ),
            admin_guard: HostOrigin::new(
                &options.public_hosts,
                &[],
                is_local(admin.as_ref().map(Listener::address)),
            ),
            transfer,
            clock: options.clock,
            pepper: options.pepper,
            environment: options.environment,
            metrics: options.metrics,
            process: metrics_process::Collector::default(),
            draining: CancellationToken::new(),
            cluster,
        };
        Ok(Self {
            public,
            admin,
            app: Arc::new(app),
            conformance: options.conformance,
            drain_time: options.drain_time,
            abandon: CancellationToken::new(),
        })
    }

    /// Where MCP listens, with the port that was picked.
    pub fn public_address(&self) -> SocketAddr {
        self.public.address()
    }

    pub fn admin_address(&self) -> Option<SocketAddr> {
        self.admin.as_ref().map(Listener::address)
    }

    /// Serves until `shutdown` is cancelled; then accepts no more and waits for calls in progress, at most the drain
    /// time.
    pub async fn serve(self, shutdown: CancellationToken) -> Result<(), GatewayError> {
        let draining = self.app.draining.clone();
        let announce = {
            let shutdown = shutdown.clone();
            async move {
                shutdown.cancelled().await;
                draining.cancel();
            }
        };
        let public_router = public_router(&self.app, self.conformance, &self.abandon);
        let public = self.public.serve(public_router, shutdown.clone(), self.drain_time);
        let admin = async {
            if let Some(listener) = self.admin {
                listener
                    .serve(admin::router(Arc::clone(&self.app)), shutdown.clone(), self.drain_time)
                    .await;
            }
        };
        let sweep = sweep_uploads(&self.app, &shutdown);
        let watch = self.app.cluster.watch(&shutdown);
        tokio::join!(announce, public, admin, sweep, watch);
        self.abandon.cancel();
        Ok(())
    }
}

/// Removes uploads whose time is over, until shutdown.
async fn sweep_uploads(app: &App, shutdown: &CancellationToken) {
    loop {
        tokio::select! {
            () = shutdown.cancelled() => return,
            () = tokio::time::sleep(SWEEP_EVERY) => app.transfer.uploads.sweep(app.clock.wall()),
        }
    }
}

fn public_router(app: &Arc<App>, with_fixtures: bool, abandon: &CancellationToken) -> Router {
    let mut router = Router::new()
        .merge(health::public_routes())
        .merge(api::routes())
        .route(handoff::PATH, any(handoff::handle))
        .merge(graph::routes())
        .merge(transfer::routes());
    for set in ToolSet::ALL {
        let service = server::service(Arc::clone(app), set, abandon);
        let endpoint = Endpoint {
            app: Arc::clone(app),
            surface: "mcp",
            inner: Inner::Mcp(service),
        };
        // The twin under /k is for clients that drop a static key once they see OAuth discovery; there is none here,
        // and the two will differ only when there is.
        for path in [set.path().to_owned(), format!("/k{}", set.path())] {
            router = router.route(&path, endpoint_route(endpoint.clone()));
        }
    }
    if with_fixtures {
        let service = conformance::service(abandon);
        let endpoint = Endpoint {
            app: Arc::clone(app),
            surface: "conformance",
            inner: Inner::Fixtures(service),
        };
        router = router.route("/conformance/mcp", endpoint_route(endpoint));
    }
    router
        .fallback(|State(app): State<Arc<App>>, request: Request| async move { gate::no_such_path(&app, &request) })
        .method_not_allowed_fallback(|State(app): State<Arc<App>>, request: Request| async move {
            gate::no_such_method(&app, &request)
        })
        .with_state(Arc::clone(app))
}

fn endpoint_route(endpoint: Endpoint) -> axum::routing::MethodRouter<Arc<App>> {
    any(move |request: Request<Body>| {
        let endpoint = endpoint.clone();
        async move {
            let response: Response<Body> = endpoint.answer(request).await;
            response
        }
    })
}
