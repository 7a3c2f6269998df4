//! What to measure, from the environment.

use std::env;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

pub(crate) struct Settings {
    pub(crate) clients: Vec<usize>,
    pub(crate) seconds: Duration,
    pub(crate) rounds: u32,
    /// Rows that puts and gets go round.
    pub(crate) keys: usize,
    /// Over how many tenants the load on sixteen shards is spread.
    pub(crate) tenants: usize,
    pub(crate) operations: Vec<String>,
    /// The ready line of a cluster that runs already, in a file. It is not started again between rounds.
    pub(crate) ready: Option<PathBuf>,
    parent: Option<PathBuf>,
}

pub(crate) const OPERATIONS: &[&str] = &["put", "get", "store", "recall"];
/// Bytes of a value.
pub(crate) const VALUE_BYTES: usize = 512;
/// HTTP/2 connections to one system.
pub(crate) const CONNECTIONS_MAX: usize = 8;

impl Settings {
    pub(crate) fn read() -> Result<Self> {
        let clients = numbers("BENCH_CLIENTS", "1 16 64 256")?;
        let operations: Vec<String> = words("BENCH_OPERATIONS", &OPERATIONS.join(" "));
        let settings = Self {
            clients: clients.into_iter().map(usize::try_from).collect::<Result<_, _>>()?,
            seconds: Duration::from_secs(one("BENCH_SECONDS", 5)?.clamp(1, 600)),
            rounds: u32::try_from(one("BENCH_ROUNDS", 3)?)?,
            keys: usize::try_from(one("BENCH_KEYS", 1024)?)?,
            tenants: usize::try_from(one("BENCH_TENANTS", 64)?)?,
            operations,
            ready: env::var_os("BENCH_READY").map(PathBuf::from),
            parent: env::var_os("BENCH_DATA").map(PathBuf::from),
        };
        ensure!(
            settings.clients.iter().all(|clients| (1..=1024).contains(clients)),
            "BENCH_CLIENTS: 1 to 1024"
        );
        ensure!(
            settings.tenants >= 1 && settings.keys >= settings.tenants,
            "BENCH_KEYS: at least one for each of BENCH_TENANTS"
        );
        for operation in &settings.operations {
            ensure!(
                OPERATIONS.contains(&operation.as_str()),
                "BENCH_OPERATIONS: {operation} is none of {OPERATIONS:?}"
            );
        }
        Ok(settings)
    }

    pub(crate) fn wants(&self, operation: &str) -> bool {
        self.operations.iter().any(|wanted| wanted == operation)
    }

    /// Where all data go; its file system decides the result.
    pub(crate) fn folder(&self) -> Result<tempfile::TempDir> {
        let mut builder = tempfile::Builder::new();
        let builder = builder.prefix("waggle-bench-");
        match &self.parent {
            Some(parent) => builder.tempdir_in(parent),
            None => builder.tempdir(),
        }
        .with_context(|| {
            format!(
                "make a directory in {:?}",
                self.parent.as_deref().unwrap_or(Path::new("TMPDIR"))
            )
        })
    }
}

fn words(name: &str, default: &str) -> Vec<String> {
    let text = env::var(name).unwrap_or_else(|_| default.to_owned());
    text.split([' ', ','])
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect()
}

fn numbers(name: &str, default: &str) -> Result<Vec<u64>> {
    words(name, default)
        .iter()
        .map(|word| word.parse().with_context(|| format!("{name}: {word:?} is no number")))
        .collect()
}

fn one(name: &str, default: u64) -> Result<u64> {
    let found = numbers(name, &default.to_string())?;
    found.first().copied().with_context(|| format!("{name} is empty"))
}
