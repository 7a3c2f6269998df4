//! Takes values by key and gathers what is wrong with them.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use super::NodeAddress;
use crate::keys::{self, Default, Key, Role};
use crate::problem::{Origin, Problem};
use crate::raw::{Raw, Value, show_time};

/// The value that holds for a key: what was said, else the default. None: required and not said, or nothing.
pub(crate) fn effective(raw: &Raw, key: &Key) -> Option<(Value, Origin)> {
    if let Some(given) = raw.values.get(key.path) {
        return Some((given.value.clone(), given.origin.clone()));
    }
    let value = match (key.default, key.kind) {
        (Default::Required, _) => return None,
        (Default::Nothing, keys::Kind::List) => Value::List(Vec::new()),
        (Default::Nothing, _) => return None,
        (Default::Text(text), keys::Kind::List) => Value::List(vec![text.to_owned()]),
        (Default::Text(text), keys::Kind::Listen) => Value::Listen(text.parse().ok()?),
        (Default::Text(text), keys::Kind::Path) => Value::Path(text.into()),
        (Default::Text(text), _) => Value::Text(text.to_owned()),
        (Default::Number(number), _) => Value::Number(number),
        (Default::Time(time), _) => Value::Time(time),
    };
    Some((value, Origin::Default))
}

/// Takes values by key and gathers problems. After a problem it gives a stand-in, which is never seen: with a problem
/// there is no configuration.
pub(super) struct Reader<'a> {
    raw: &'a Raw,
    pub(super) problems: Vec<Problem>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(raw: &'a Raw, role: Role) -> Self {
        let mut problems = raw.problems.clone();
        for (path, given) in &raw.values {
            let belongs = keys::find(path).is_some_and(|key| key.roles.contains(&role));
            // A file may hold both roles; the environment of a container is shared, too. But a file for one role
            // with a key of the other is a mistake.
            let file_of_this_role = raw.role() == Some(role) && matches!(given.origin, Origin::File { .. });
            if !belongs && file_of_this_role {
                problems.push(
                    Problem::new(
                        "config_unknown_key",
                        format!("{path} means nothing to a {}", role.word()),
                    )
                    .at(given.origin.clone())
                    .advice("remove it"),
                );
            }
        }
        Self { raw, problems }
    }

    pub(super) fn value(&mut self, path: &str) -> Option<Value> {
        let key = keys::find(path)?;
        if let Some((value, _)) = effective(self.raw, key) {
            return Some(value);
        }
        // A key that was said badly has its problem already.
        let said_badly = self
            .problems
            .iter()
            .any(|problem| problem.what.starts_with(&format!("{path}:")));
        if matches!(key.default, Default::Required) && !said_badly {
            self.problems.push(
                Problem::new("config_missing", format!("{path} is missing")).advice(format!(
                    "set it in the file, or as {}: {}",
                    key.variable(),
                    key.doc
                )),
            );
        }
        None
    }

    pub(super) fn text(&mut self, path: &str) -> String {
        match self.value(path) {
            Some(Value::Text(text)) => text,
            _ => String::new(),
        }
    }

    pub(super) fn path(&mut self, path: &str) -> PathBuf {
        match self.value(path) {
            Some(Value::Path(path)) => path,
            _ => PathBuf::new(),
        }
    }

    /// A path that nobody has to give.
    pub(super) fn optional_path(&mut self, path: &str) -> Option<PathBuf> {
        match self.value(path) {
            Some(Value::Path(path)) => Some(path),
            _ => None,
        }
    }

    /// Nodes as NODE_ID@host:port.
    pub(super) fn nodes(&mut self, path: &str) -> Vec<NodeAddress> {
        let mut nodes: Vec<NodeAddress> = Vec::new();
        for text in self.list(path) {
            match NodeAddress::parse(&text) {
                Some(node) if nodes.iter().any(|known| known.node == node.node) => self.conflict(
                    path,
                    format!("{path}: node {} is named twice", node.node),
                    "name each node once",
                ),
                Some(node) => nodes.push(node),
                None => self.conflict(
                    path,
                    format!("{path}: '{}' is not a node's number and address", text.escape_debug()),
                    "write NODE_ID@host:port, such as 1@node-1.example.org:7710",
                ),
            }
        }
        nodes
    }

    pub(super) fn listen(&mut self, path: &str) -> SocketAddr {
        match self.value(path) {
            Some(Value::Listen(address)) => address,
            _ => SocketAddr::from(([127, 0, 0, 1], 0)),
        }
    }

    pub(super) fn list(&mut self, path: &str) -> Vec<String> {
        match self.value(path) {
            Some(Value::List(items)) => items,
            _ => Vec::new(),
        }
    }

    pub(super) fn number(&mut self, path: &str) -> u64 {
        match self.value(path) {
            Some(Value::Number(number)) => number,
            _ => 0,
        }
    }

    pub(super) fn narrow(&mut self, path: &str) -> u32 {
        u32::try_from(self.number(path)).unwrap_or(u32::MAX)
    }

    pub(super) fn time(&mut self, path: &str) -> Duration {
        match self.value(path) {
            Some(Value::Time(time)) => time,
            _ => Duration::ZERO,
        }
    }

    pub(super) fn conflict(&mut self, path: &str, what: String, advice: &str) {
        let mut problem = Problem::new("config_conflict", what).advice(advice);
        if let Some(given) = self.raw.values.get(path) {
            problem = problem.at(given.origin.clone());
        }
        self.problems.push(problem);
    }

    pub(super) fn loopback_only(&mut self, path: &str, address: SocketAddr) {
        if !address.ip().is_loopback() {
            self.conflict(
                path,
                format!("{path} {address} is not a loopback address, and this listener has no TLS"),
                "listen on 127.0.0.1 or ::1; reach it from elsewhere through a tunnel or a proxy that authenticates",
            );
        }
    }

    pub(super) fn different(&mut self, one: (&str, SocketAddr), other: (&str, SocketAddr)) {
        if one.1 == other.1 && one.1.port() != 0 {
            self.conflict(
                other.0,
                format!("{} and {} are both {}", one.0, other.0, one.1),
                "give them different ports",
            );
        }
    }

    pub(super) fn not_above(&mut self, low: &str, high: &str) {
        let (a, b) = (self.time(low), self.time(high));
        if a > b {
            self.conflict(
                low,
                format!("{low} {} is above {high} {}", show_time(a), show_time(b)),
                "lower the first",
            );
        }
    }
}
