//! Which faults this machine and this binary can suffer. What cannot run is reported as not covered.

use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use serde::Serialize;
use serde_json::Value;

use super::Kind;
use crate::cluster::{Mount, power_cutter, run, run_with};

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
    ];
    found.push(if power_cutter(binary).is_file() {
        covered(
            "power cut",
            "kill -9 of all, and their logs cut back to the last sync",
            &[Kind::PowerCut],
        )
    } else {
        missing(
            "power cut",
            "kill -9 keeps the page cache, and this build does not note its syncs: scripts/planted-bugs.sh",
        )
    });
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
        Ok(true) => covered(
            "clock offset",
            "WAGGLE_CLOCK_OFFSET_MS, 1 s to 10 min both ways",
            &[Kind::Clock],
        ),
        _ => missing("clock offset", "the binary does not read WAGGLE_CLOCK_OFFSET_MS"),
    });
    found
}

/// Whether a certificate made twenty years ahead ends at another time than one made now.
async fn clock_moves(binary: &Path, folder: &Path) -> Result<bool> {
    let ahead = (20 * 365 * 24 * 3_600_000_i64).to_string();
    let mut ends = Vec::new();
    for (name, offset) in [("probe-now", "0"), ("probe-ahead", &ahead)] {
        let (path, variables) = (folder.join(name), [("WAGGLE_CLOCK_OFFSET_MS", offset)]);
        let directory = path.display().to_string();
        let longest = Duration::from_secs(20);
        run_with(
            binary,
            folder,
            &variables,
            &["cert", "create-ca", "--dir", &directory],
            longest,
        )
        .await?;
        let listed = run(
            binary,
            folder,
            &["cert", "list", "--dir", &directory, "--json"],
            longest,
        )
        .await?;
        std::fs::remove_dir_all(&path)?;
        let listed: Value = serde_json::from_str(&listed)?;
        ends.push(listed["certificates"][0]["expires_at"].clone());
    }
    Ok(ends[0].is_string() && ends[0] != ends[1])
}
