//! Which crate may use which, and what may be linked at all.

use std::collections::BTreeMap;

use anyhow::Result;

use crate::cargo::{dependencies, metadata, only_for_tests, our_packages, resolved_names};
use crate::repository::report;

/// Our crates and what each may use of ours. The arrows point down; whoever needs a new one changes the design first.
const ARROWS: &[(&str, &[&str])] = &[
    ("waggle-memory", &[]),
    ("waggle-proto", &["waggle-memory"]),
    ("waggle-config", &["waggle-memory"]),
    ("waggle-formats", &["waggle-memory"]),
    ("waggle-shard", &["waggle-memory", "waggle-proto", "waggle-config"]),
    ("waggle-recall", &["waggle-memory", "waggle-config"]),
    (
        "waggle-store",
        &["waggle-memory", "waggle-proto", "waggle-config", "waggle-shard"],
    ),
    (
        "waggle-federation",
        &["waggle-memory", "waggle-proto", "waggle-config", "waggle-shard"],
    ),
    (
        "waggle-node",
        &[
            "waggle-memory",
            "waggle-proto",
            "waggle-config",
            "waggle-shard",
            "waggle-recall",
            "waggle-store",
            "waggle-federation",
        ],
    ),
    // Never shard, store, recall or federation: a gateway reaches them over the network only.
    (
        "waggle-gateway",
        &["waggle-memory", "waggle-proto", "waggle-config", "waggle-formats"],
    ),
    // Recall for `waggle model`, memory and proto for the admin commands.
    (
        "waggle",
        &[
            "waggle-gateway",
            "waggle-formats",
            "waggle-node",
            "waggle-config",
            "waggle-memory",
            "waggle-proto",
            "waggle-recall",
        ],
    ),
    (
        "waggle-chaos",
        &["waggle-memory", "waggle-proto", "waggle-config", "waggle-gateway"],
    ),
    (
        "waggle-tests",
        &[
            "waggle-memory",
            "waggle-proto",
            "waggle-config",
            "waggle-gateway",
            "waggle-shard",
            "waggle-store",
        ],
    ),
];

/// Libraries that only some of our crates may name, so that each can be replaced in one place.
const KEPT: &[(&str, &[&str])] = &[
    ("rocksdb", &["waggle-store"]),
    ("openraft", &["waggle-shard", "waggle-store"]),
    ("quinn", &["waggle-federation"]),
    ("rmcp", &["waggle-gateway"]),
    ("tokenizers", &["waggle-recall"]),
    ("clap", &["waggle"]),
];

/// What would let time, chance, IO or the wire into the pure domain.
const NOT_IN_MEMORY: &[&str] = &[
    "tokio",
    "futures",
    "serde",
    "serde_json",
    "prost",
    "rocksdb",
    "tracing",
    "log",
    "rand",
    "getrandom",
    "chrono",
];

/// A second TLS provider can make a process panic at its start; the others are unmaintained.
pub(crate) const BANNED_CRATES: &[&str] = &[
    "aws-lc-rs",
    "aws-lc-sys",
    "aws-lc-fips-sys",
    "openssl",
    "openssl-sys",
    "native-tls",
    "backoff",
    "instant",
];
pub(crate) const TARGETS: &[&str] = &[
    "x86_64-unknown-linux-gnu",
    "aarch64-unknown-linux-gnu",
    "aarch64-apple-darwin",
];

#[test]
fn our_crates_use_each_other_only_along_the_arrows() -> Result<()> {
    let arrows: BTreeMap<&str, &[&str]> = ARROWS.iter().copied().collect();
    let mut problems = Vec::new();
    for (name, package) in our_packages(&metadata(&["--no-deps"])?)? {
        let Some(allowed) = arrows.get(name.as_str()) else {
            problems.push(format!("{name} is not in the table of arrows"));
            continue;
        };
        for dependency in dependencies(&package) {
            if arrows.contains_key(dependency.as_str()) && !allowed.contains(&dependency.as_str()) {
                problems.push(format!("{name} uses {dependency}"));
            }
            if KEPT
                .iter()
                .any(|(library, users)| *library == dependency && !users.contains(&name.as_str()))
            {
                problems.push(format!(
                    "{name} uses {dependency}, which other crates keep to themselves"
                ));
            }
            if name == "waggle-memory"
                && NOT_IN_MEMORY.contains(&dependency.as_str())
                && !only_for_tests(&package, &dependency)
            {
                problems.push(format!("{name} is pure and uses {dependency}"));
            }
        }
    }
    report(problems)
}

#[test]
fn one_tls_provider_and_no_banned_crate_on_any_platform() -> Result<()> {
    let mut problems = Vec::new();
    for target in TARGETS {
        let metadata = metadata(&["--filter-platform", target])?;
        let names = resolved_names(&metadata)?;
        for banned in BANNED_CRATES {
            if names.contains(*banned) {
                problems.push(format!(
                    "{target}: {banned} (find out why with: cargo tree -i {banned} --target {target})"
                ));
            }
        }
        if !names.contains("ring") {
            problems.push(format!("{target}: ring, our TLS provider, is missing"));
        }
    }
    report(problems)
}
