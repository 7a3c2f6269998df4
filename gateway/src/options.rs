//! What the caller of this crate decides, and the check that it fits together.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use metrics_exporter_prometheus::PrometheusHandle;
use tonic::transport::Channel;
use waggle_config::limits::CallLimits;
use waggle_config::runtime::clock::Clock;
use waggle_memory::meta::NodeId;

/// Bytes that nobody but the cluster knows. Never printed.
#[derive(Clone)]
pub struct Secret(Vec<u8>);

impl Secret {
    pub const BYTES_MIN: usize = 32;

    pub fn new(bytes: impl Into<Vec<u8>>) -> Self {
        Self(bytes.into())
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secret({} bytes)", self.0.len())
    }
}

/// Where to listen. Port 0 picks a free one.
#[derive(Clone, Debug)]
pub struct Listen {
    pub address: SocketAddr,
    /// None: plain HTTP, for loopback or behind a balancer that ends TLS.
    pub tls: Option<Arc<rustls::ServerConfig>>,
}

impl Listen {
    pub fn plain(address: SocketAddr) -> Self {
        Self { address, tls: None }
    }
}

/// Opens a channel to a node that the gateway learns of while it runs.
#[derive(Clone)]
pub struct Connect(Arc<Open>);

type Open = dyn Fn(NodeId, &str) -> Result<Channel, String> + Send + Sync;

impl Connect {
    /// With a function of the node and its address (host:port).
    pub fn by(open: impl Fn(NodeId, &str) -> Result<Channel, String> + Send + Sync + 'static) -> Self {
        Self(Arc::new(open))
    }

    /// For a cluster of one process: there is nothing to learn.
    pub fn nowhere() -> Self {
        Self::by(|node, _| Err(format!("this process has no way to {node}")))
    }

    pub(crate) fn open(&self, node: NodeId, address: &str) -> Result<Channel, String> {
        (self.0)(node, address)
    }
}

impl fmt::Debug for Connect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Connect")
    }
}

/// Everything that a gateway is told.
#[derive(Clone, Debug)]
pub struct GatewayOptions {
    /// MCP and the first three health paths.
    pub public: Listen,
    /// REST administration, health, status and metrics. Outside of loopback it must have TLS.
    pub admin: Option<Listen>,
    /// Names that a Host header may carry, with or without port. Loopback names are always accepted on a loopback
    /// listener, and nowhere else.
    pub public_hosts: Vec<String>,
    /// Origins of browser clients, each with its port: `https://app.example.com:443`.
    pub browser_origins: Vec<String>,
    /// The second part of keys made here, such as `dev` or `prod`.
    pub environment: String,
    /// Keys the hashes of API keys.
    pub pepper: Secret,
    /// Keys cursors and read points; the same on every gateway.
    pub cluster_secret: Secret,
    /// How to reach the nodes that are asked first.
    pub nodes: Vec<(NodeId, Channel)>,
    /// How to reach those that they tell of.
    pub connect: Connect,
    pub limits: CallLimits,
    /// Rate limits also for keys that are marked unlimited.
    pub limits_for_all: bool,
    pub clock: Arc<dyn Clock>,
    /// Answers /metrics; None: there is no such page.
    pub metrics: Option<PrometheusHandle>,
    /// Where uploads wait for their import. Emptied of them at start: no two gateways share one.
    pub spool_dir: PathBuf,
    /// How long calls in progress may take after shutdown began.
    pub drain_time: Duration,
    /// Serves the fixtures of the MCP conformance suite at /conformance/mcp. Loopback only.
    pub conformance: bool,
}

impl GatewayOptions {
    /// All problems at once, in words.
    pub(crate) fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        for (name, secret) in [("pepper", &self.pepper), ("cluster_secret", &self.cluster_secret)] {
            if secret.bytes().len() < Secret::BYTES_MIN {
                problems.push(format!(
                    "{name} has {} bytes; it needs {} or more",
                    secret.bytes().len(),
                    Secret::BYTES_MIN
                ));
            }
        }
        if self.nodes.is_empty() {
            problems.push("nodes is empty; a gateway needs a way to at least one node".to_owned());
        }
        let environment = self.environment.as_str();
        if environment.is_empty()
            || environment.len() > 16
            || !environment
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
        {
            problems.push(format!(
                "environment '{}' is not 1 to 16 of a-z and 0-9",
                environment.escape_debug()
            ));
        }
        let public_is_local = self.public.address.ip().is_loopback();
        if !public_is_local && self.public_hosts.is_empty() {
            problems.push(format!(
                "public_hosts is empty, but the public listener {} is not loopback; name the hosts that clients use",
                self.public.address
            ));
        }
        if self.conformance && !public_is_local {
            problems.push(format!(
                "conformance is on, but the public listener {} is not loopback",
                self.public.address
            ));
        }
        if let Some(admin) = &self.admin
            && !admin.address.ip().is_loopback()
            && admin.tls.is_none()
        {
            problems.push(format!(
                "the admin listener {} is not loopback and has no TLS",
                admin.address
            ));
        }
        for origin in &self.browser_origins {
            if let Err(why) = crate::http::host_origin::parse_origin_rule(origin) {
                problems.push(format!("browser_origins: '{}' {why}", origin.escape_debug()));
            }
        }
        problems
    }
}
