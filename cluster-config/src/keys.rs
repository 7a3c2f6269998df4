//! The registry of configuration keys: one row for each, from which reading, checking, `waggle config show` and the
//! reference page are made. A key that is not here does not exist.

use std::time::Duration;

use crate::limits;

/// Which process reads a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Node,
    Gateway,
}

impl Role {
    pub const fn word(self) -> &'static str {
        match self {
            Self::Node => "node",
            Self::Gateway => "gateway",
        }
    }
}

/// What a value of a key looks like, and its range.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// Any text.
    Text,
    /// One of these words.
    Word(&'static [&'static str]),
    /// A file or directory; a relative one starts at the directory of the configuration file.
    Path,
    /// IP address and port to listen on, such as `127.0.0.1:7700`.
    Listen,
    /// Host name or IP address, and port, of another process.
    Remote,
    /// A list of texts.
    List,
    Count {
        min: u64,
        max: u64,
    },
    /// Bytes: a number, or a text such as `512MiB`.
    Bytes {
        min: u64,
        max: u64,
    },
    /// A text such as `150ms`, `30s`, `2h`.
    Time {
        min: Duration,
        max: Duration,
    },
}

/// What holds when nobody says anything.
#[derive(Clone, Copy, Debug)]
pub enum Default {
    /// There is no honest default: somebody must say it.
    Required,
    /// Nothing: an empty list, an absent text.
    Nothing,
    Text(&'static str),
    Number(u64),
    Time(Duration),
}

/// One key.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    pub path: &'static str,
    pub kind: Kind,
    pub default: Default,
    pub roles: &'static [Role],
    pub doc: &'static str,
}

impl Key {
    /// The environment variable that overrides it.
    pub fn variable(&self) -> String {
        format!("WAGGLE__{}", self.path.replace('.', "__").to_uppercase())
    }
}

const NODE: &[Role] = &[Role::Node];
const GATEWAY: &[Role] = &[Role::Gateway];
const BOTH: &[Role] = &[Role::Node, Role::Gateway];

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// What is logged when nobody says anything: ours, without what the libraries below tell of every call. openraft warns of
/// each message to each replica of a node that is away; the stream to that node says it once.
pub const LOG_FILTER: &str = "info,openraft=error,rmcp=warn";

const MIB: u64 = 1024 * 1024;

const fn key(path: &'static str, roles: &'static [Role], kind: Kind, default: Default, doc: &'static str) -> Key {
    Key {
        path,
        kind,
        default,
        roles,
        doc,
    }
}

/// Every key, in the order of the reference page.
#[rustfmt::skip]
pub const ALL: &[Key] = &[
    key("node.data_dir", NODE, Kind::Path, Default::Required,
        "Directory of everything that this node keeps: identity, secrets, database."),
    key("node.listen", NODE, Kind::Listen, Default::Text("127.0.0.1:7710"),
        "Where gateways and other nodes reach it, by gRPC over mutual TLS."),
    key("node.admin_listen", NODE, Kind::Listen, Default::Text("127.0.0.1:7711"),
        "Health, status and metrics. Loopback only: it asks for no credential."),
    key("node.advertise", NODE, Kind::Remote, Default::Nothing,
        "Where others reach it, if that is not node.listen: host:port."),
    key("node.zone", NODE, Kind::Text, Default::Text(""),
        "What fails together with it, such as a rack. Replicas of a shard go to different zones while there are any."),
    key("node.join_token_file", NODE, Kind::Path, Default::Nothing,
        "File with a token of `waggle cluster join-token`: a node without an identity joins with it, once."),
    key("node.dial", NODE, Kind::List, Default::Nothing,
        "Other addresses for other nodes, as NODE_ID@host:port, where what they advertise is not reachable from here."),

    key("node.store_bytes_max", NODE, Kind::Bytes { min: 32 * MIB, max: 1024 * 1024 * MIB }, Default::Number(256 * MIB),
        "Resident bytes of the database: two thirds cache, one third write buffers."),
    key("node.disk_reserve_bytes", NODE, Kind::Bytes { min: 64 * MIB, max: 1024 * 1024 * MIB },
        Default::Number(2048 * MIB), "Free bytes of the disk below which only deletions are accepted."),

    key("raft.heartbeat_interval", NODE, Kind::Time { min: ms(10), max: ms(10_000) }, Default::Time(ms(200)),
        "How often a leader says that it is there. An acknowledged write within this time makes one superfluous."),
    key("raft.election_timeout_min", NODE, Kind::Time { min: ms(50), max: ms(60_000) }, Default::Time(ms(600)),
        "Shortest silence after which a follower wants to lead."),
    key("raft.election_timeout_max", NODE, Kind::Time { min: ms(100), max: ms(120_000) }, Default::Time(ms(1_200)),
        "Longest one; also the length of the leader's lease. A new leader is there after once to twice this time."),
    key("raft.snapshot_entries", NODE, Kind::Count { min: 100, max: 10_000_000 }, Default::Number(20_000),
        "A snapshot after this many entries of the log. Costs a read of the shard each time."),
    key("raft.kept_entries", NODE, Kind::Count { min: 0, max: 10_000_000 }, Default::Number(5_000),
        "Entries kept behind a snapshot, so that a follower that is a little behind needs none."),

    key("recall.index_bytes_max", NODE, Kind::Bytes { min: 16 * MIB, max: 1024 * 1024 * MIB },
        Default::Number(limits::INDEX_BYTES_MAX as u64),
        "Resident bytes of all recall indexes; the one used least is dropped and built again on demand."),
    key("recall.encoder_deferral_budget", NODE, Kind::Time { min: ms(0), max: ms(5_000) },
        Default::Time(limits::ENCODER_DEFERRAL_BUDGET),
        "How long a write waits for its vector before it goes on without; the vector follows later."),

    key("gateway.listen", GATEWAY, Kind::Listen, Default::Text("127.0.0.1:7700"),
        "Where clients reach MCP and REST. Plain HTTP: put TLS in front of anything that is not loopback."),
    key("gateway.admin_listen", GATEWAY, Kind::Listen, Default::Text("127.0.0.1:7701"),
        "Health, status, metrics and the administration of tenants and keys. Loopback only."),
    key("gateway.environment", GATEWAY, Kind::Text, Default::Text("prod"),
        "Second part of keys made here, `wg_prod_...`: lower-case letters and digits."),
    key("gateway.public_hosts", GATEWAY, Kind::List, Default::Nothing,
        "Names that clients may use in the Host header, besides loopback and the listen address."),
    key("gateway.allowed_origins", GATEWAY, Kind::List, Default::Nothing,
        "Web pages that may call it, as scheme://host:port. Empty: none but its own."),
    key("gateway.nodes", GATEWAY, Kind::List, Default::Text("1@127.0.0.1:7710"),
        "Nodes to ask first, as NODE_ID@host:port: each node's certificate must be for its number. It learns of the \
         others from them."),
    key("gateway.pepper_file", GATEWAY, Kind::Path, Default::Required,
        "Secret under which key secrets are hashed. The same file on every gateway."),
    key("gateway.cluster_secret_file", GATEWAY, Kind::Path, Default::Required,
        "Secret that authenticates cursors. The same file on every gateway."),

    key("tls.ca_file", BOTH, Kind::Path, Default::Required,
        "Certificate of the cluster's authority: who else to believe."),
    key("tls.certificate_file", BOTH, Kind::Path, Default::Required,
        "This process's certificate; its role must be the process's."),
    key("tls.key_file", BOTH, Kind::Path, Default::Required,
        "Its private key; nobody but the owner may read the file."),

    key("limits.body_bytes_max", GATEWAY, Kind::Bytes { min: 64 * 1024, max: 15 * MIB },
        Default::Number(limits::BODY_BYTES_MAX as u64), "Body of a request, counted while it is read."),
    key("limits.reads_per_minute", GATEWAY, Kind::Count { min: 1, max: 10_000_000 },
        Default::Number(limits::READS_PER_MINUTE as u64), "Reads of one key."),
    key("limits.writes_per_minute", GATEWAY, Kind::Count { min: 1, max: 10_000_000 },
        Default::Number(limits::WRITES_PER_MINUTE as u64), "Writes of one key."),
    key("limits.concurrent_calls_max", GATEWAY, Kind::Count { min: 1, max: 10_000 },
        Default::Number(limits::CONCURRENT_CALLS_MAX as u64), "Calls of one key at the same time."),
    key("limits.call_time_default", GATEWAY, Kind::Time { min: ms(100), max: ms(300_000) },
        Default::Time(limits::CALL_TIME_DEFAULT), "Time of a call that does not name one."),
    key("limits.call_time_max", GATEWAY, Kind::Time { min: ms(100), max: ms(300_000) },
        Default::Time(limits::CALL_TIME_MAX), "Longest time of a call. Clients give up at 60 s."),

    key("log.filter", BOTH, Kind::Text, Default::Text(LOG_FILTER),
        "What is logged, such as `info,waggle_shard=debug`. WAGGLE_LOG is the same."),
    key("log.format", BOTH, Kind::Word(&["auto", "text", "json"]), Default::Text("auto"),
        "`auto`: text on a terminal, JSON otherwise."),
];

/// The row of a path.
pub fn find(path: &str) -> Option<&'static Key> {
    ALL.iter().find(|key| key.path == path)
}

/// The known path nearest to a wrong one, if any is near enough to have been meant.
pub fn nearest(wrong: &str) -> Option<&'static str> {
    let last = |path: &str| path.rsplit('.').next().unwrap_or_default().to_owned();
    ALL.iter()
        .map(|key| {
            // The right word in the wrong section is a small mistake, however long the section is.
            let same_word = if last(key.path) == last(wrong) { 1 } else { usize::MAX };
            (distance(key.path, wrong).min(same_word), key.path)
        })
        .min()
        .filter(|(steps, _)| *steps <= 1 + wrong.len() / 4)
        .map(|(_, path)| path)
}

/// Edits between two short texts (Levenshtein), a row at a time.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (down, a) in one.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], down + 1);
        for (across, b) in other.iter().enumerate() {
            let change = diagonal + usize::from(a != *b);
            diagonal = row[across + 1];
            row[across + 1] = change.min(diagonal + 1).min(row[across] + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_key_is_told_the_near_one() {
        for (wrong, near) in [
            ("node.data_dri", Some("node.data_dir")),
            ("raft.heartbeat_intervall", Some("raft.heartbeat_interval")),
            ("gateway.data_dir", Some("node.data_dir")),
            ("completely.different", None),
        ] {
            assert_eq!(nearest(wrong), near, "{wrong}");
        }
    }

    #[test]
    fn paths_are_unique_and_have_one_section() {
        for (index, key) in ALL.iter().enumerate() {
            assert_eq!(key.path.matches('.').count(), 1, "{}", key.path);
            assert!(
                !ALL[..index].iter().any(|other| other.path == key.path),
                "{} twice",
                key.path
            );
        }
    }
}
