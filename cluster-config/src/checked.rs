//! Configuration that was proven: fields are private, so a value of these types can only come from [`node`] or
//! [`gateway`], pure functions that return all problems at once. What they cannot see, files and other processes, is
//! looked at where it is used.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::keys::Role;
use crate::limits::CallLimits;
use crate::problem::Problems;
use crate::raw::{Raw, show_time};

mod reader;

use reader::Reader;
pub(crate) use reader::effective;

/// What `waggle node` runs with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeConfig {
    data_dir: PathBuf,
    listen: SocketAddr,
    admin_listen: SocketAddr,
    advertise: String,
    zone: String,
    join_token_file: Option<PathBuf>,
    dial: Vec<NodeAddress>,
    store_bytes_max: u64,
    disk_reserve_bytes: u64,
    raft: RaftConfig,
    recall: RecallConfig,
    tls: TlsFiles,
    log: LogConfig,
}

/// Timing and sizes of consensus; they fit together. Cluster values: the same on every node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RaftConfig {
    heartbeat_interval: Duration,
    election_timeout_min: Duration,
    election_timeout_max: Duration,
    snapshot_entries: u64,
    kept_entries: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecallConfig {
    index_bytes_max: u64,
    encoder_deferral_budget: Duration,
}

/// What `waggle gateway` runs with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GatewayConfig {
    listen: SocketAddr,
    admin_listen: SocketAddr,
    public_hosts: Vec<String>,
    allowed_origins: Vec<String>,
    nodes: Vec<NodeAddress>,
    pepper_file: PathBuf,
    cluster_secret_file: PathBuf,
    environment: String,
    limits: CallLimits,
    tls: TlsFiles,
    log: LogConfig,
}

/// A node, and where it is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeAddress {
    pub node: u64,
    /// host:port.
    pub address: String,
}

impl NodeAddress {
    /// Reads NODE_ID@host:port.
    pub fn parse(text: &str) -> Option<Self> {
        let (node, address) = text.split_once('@')?;
        let node = node.parse().ok().filter(|node| *node > 0)?;
        crate::raw::is_remote(address).then(|| Self {
            node,
            address: address.to_owned(),
        })
    }
}

/// Where certificates lie; [`crate::certificates`] reads and judges them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    pub ca: PathBuf,
    pub certificate: PathBuf,
    pub key: PathBuf,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogConfig {
    filter: String,
    format: LogFormat,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// Text on a terminal, JSON otherwise.
    Auto,
    Text,
    Json,
}

macro_rules! getters {
    ($type:ident { $($copied:ident: $value:ty),* ; $($lent:ident: $target:ty),* }) => {
        impl $type {
            $(pub fn $copied(&self) -> $value { self.$copied })*
            $(pub fn $lent(&self) -> &$target { &self.$lent })*
        }
    };
}

getters!(NodeConfig { listen: SocketAddr, admin_listen: SocketAddr, store_bytes_max: u64, disk_reserve_bytes: u64;
    data_dir: Path, advertise: str, zone: str, dial: [NodeAddress], raft: RaftConfig, recall: RecallConfig, tls: TlsFiles, log: LogConfig });
getters!(RaftConfig { heartbeat_interval: Duration, election_timeout_min: Duration,
    election_timeout_max: Duration, snapshot_entries: u64, kept_entries: u64; });
getters!(RecallConfig { index_bytes_max: u64, encoder_deferral_budget: Duration; });
impl NodeConfig {
    pub fn join_token_file(&self) -> Option<&Path> {
        self.join_token_file.as_deref()
    }
}

getters!(GatewayConfig { listen: SocketAddr, admin_listen: SocketAddr;
    environment: str, public_hosts: [String], allowed_origins: [String], nodes: [NodeAddress], pepper_file: Path, cluster_secret_file: Path,
    limits: CallLimits, tls: TlsFiles, log: LogConfig });
getters!(LogConfig { format: LogFormat; filter: str });

impl RaftConfig {
    /// The defaults of the registry, which a test proves to fit together.
    pub fn standard() -> Self {
        raft(&mut Reader::new(&Raw::default(), Role::Node))
    }
}

impl RecallConfig {
    /// The defaults of the registry.
    pub fn standard() -> Self {
        recall(&mut Reader::new(&Raw::default(), Role::Node))
    }
}

/// Judges what was said to a node.
pub fn node(raw: &Raw) -> Result<NodeConfig, Problems> {
    let mut reader = Reader::new(raw, Role::Node);
    let mut config = NodeConfig {
        data_dir: reader.path("node.data_dir"),
        listen: reader.listen("node.listen"),
        admin_listen: reader.listen("node.admin_listen"),
        advertise: reader.text("node.advertise"),
        zone: reader.text("node.zone"),
        join_token_file: reader.optional_path("node.join_token_file"),
        dial: reader.nodes("node.dial"),
        store_bytes_max: reader.number("node.store_bytes_max"),
        disk_reserve_bytes: reader.number("node.disk_reserve_bytes"),
        raft: raft(&mut reader),
        recall: recall(&mut reader),
        tls: tls(&mut reader),
        log: log(&mut reader),
    };
    if config.advertise.is_empty() {
        config.advertise = config.listen.to_string();
        if config.listen.ip().is_unspecified() {
            reader.conflict(
                "node.listen",
                format!("node.listen {} says not where others reach this node", config.listen),
                "set node.advertise to host:port, or listen on one address",
            );
        }
    }
    reader.loopback_only("node.admin_listen", config.admin_listen);
    reader.different(
        ("node.listen", config.listen),
        ("node.admin_listen", config.admin_listen),
    );
    Problems(reader.problems).or(Some(config))
}

/// Judges what was said to a gateway.
pub fn gateway(raw: &Raw) -> Result<GatewayConfig, Problems> {
    let mut reader = Reader::new(raw, Role::Gateway);
    let config = GatewayConfig {
        listen: reader.listen("gateway.listen"),
        admin_listen: reader.listen("gateway.admin_listen"),
        public_hosts: reader.list("gateway.public_hosts"),
        allowed_origins: reader.list("gateway.allowed_origins"),
        nodes: reader.nodes("gateway.nodes"),
        pepper_file: reader.path("gateway.pepper_file"),
        cluster_secret_file: reader.path("gateway.cluster_secret_file"),
        environment: reader.text("gateway.environment"),
        limits: CallLimits {
            body_bytes_max: usize::try_from(reader.number("limits.body_bytes_max")).unwrap_or(usize::MAX),
            reads_per_minute: reader.narrow("limits.reads_per_minute"),
            writes_per_minute: reader.narrow("limits.writes_per_minute"),
            concurrent_calls_max: reader.narrow("limits.concurrent_calls_max"),
            call_time_default: reader.time("limits.call_time_default"),
            call_time_max: reader.time("limits.call_time_max"),
        },
        tls: tls(&mut reader),
        log: log(&mut reader),
    };
    if config.nodes.is_empty() {
        reader.conflict(
            "gateway.nodes",
            "gateway.nodes is empty".to_owned(),
            "name one node or more",
        );
    }
    reader.loopback_only("gateway.admin_listen", config.admin_listen);
    reader.different(
        ("gateway.listen", config.listen),
        ("gateway.admin_listen", config.admin_listen),
    );
    reader.not_above("limits.call_time_default", "limits.call_time_max");
    let named = config.listen.ip().is_loopback() || !config.listen.ip().is_unspecified();
    if !named && config.public_hosts.is_empty() {
        reader.conflict(
            "gateway.listen",
            format!(
                "gateway.listen {} takes calls from everywhere, but gateway.public_hosts names no host",
                config.listen
            ),
            "name the hosts that clients use, or listen on one address",
        );
    }
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    if config.environment.is_empty() || config.environment.len() > 16 || !config.environment.bytes().all(plain) {
        reader.conflict(
            "gateway.environment",
            format!(
                "gateway.environment: '{}' is not 1 to 16 of a-z and 0-9",
                config.environment.escape_debug()
            ),
            "write a short word, such as prod",
        );
    }
    for host in &config.public_hosts {
        if host.is_empty() || host.contains(['/', ' ', '*', '@']) {
            reader.conflict(
                "gateway.public_hosts",
                format!("gateway.public_hosts: '{}' is not a host name", host.escape_debug()),
                "write the name as in a URL, without scheme and path, such as memory.example.org",
            );
        }
    }
    for origin in &config.allowed_origins {
        if !(origin.starts_with("https://") || origin.starts_with("http://"))
            || origin.ends_with('/')
            || origin.contains('*')
        {
            reader.conflict(
                "gateway.allowed_origins",
                format!("gateway.allowed_origins: '{}' is not an origin", origin.escape_debug()),
                "write scheme, host and port without a path, such as https://studio.example.org",
            );
        }
    }
    Problems(reader.problems).or(Some(config))
}

fn raft(reader: &mut Reader<'_>) -> RaftConfig {
    let config = RaftConfig {
        heartbeat_interval: reader.time("raft.heartbeat_interval"),
        election_timeout_min: reader.time("raft.election_timeout_min"),
        election_timeout_max: reader.time("raft.election_timeout_max"),
        snapshot_entries: reader.number("raft.snapshot_entries"),
        kept_entries: reader.number("raft.kept_entries"),
    };
    // Two heartbeats and a tick: a leader looks at its heartbeat once a tick, 13/64 of the interval, and the one that a
    // write made superfluous (heartbeat_min_interval, which is the interval) is missing besides.
    let silence = config.heartbeat_interval * 2 + config.heartbeat_interval * 13 / 64;
    if silence >= config.election_timeout_min {
        reader.conflict(
            "raft.election_timeout_min",
            format!(
                "raft.election_timeout_min {} is not above the longest silence of a healthy leader, {} \
                 (two raft.heartbeat_interval of {} and a tick of 13/64 of it)",
                show_time(config.election_timeout_min),
                show_time(silence),
                show_time(config.heartbeat_interval),
            ),
            "raise the timeout or lower the interval",
        );
    }
    if config.election_timeout_min >= config.election_timeout_max {
        reader.conflict(
            "raft.election_timeout_max",
            format!(
                "raft.election_timeout_max {} is not above raft.election_timeout_min {}",
                show_time(config.election_timeout_max),
                show_time(config.election_timeout_min)
            ),
            "twice the minimum is usual: without a spread, followers stand against each other",
        );
    }
    config
}

fn recall(reader: &mut Reader<'_>) -> RecallConfig {
    RecallConfig {
        index_bytes_max: reader.number("recall.index_bytes_max"),
        encoder_deferral_budget: reader.time("recall.encoder_deferral_budget"),
    }
}

fn tls(reader: &mut Reader<'_>) -> TlsFiles {
    TlsFiles {
        ca: reader.path("tls.ca_file"),
        certificate: reader.path("tls.certificate_file"),
        key: reader.path("tls.key_file"),
    }
}

fn log(reader: &mut Reader<'_>) -> LogConfig {
    let format = match reader.text("log.format").as_str() {
        "text" => LogFormat::Text,
        "json" => LogFormat::Json,
        _ => LogFormat::Auto,
    };
    LogConfig {
        filter: reader.text("log.filter"),
        format,
    }
}
