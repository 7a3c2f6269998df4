//! `waggle status`: one screen.

use std::fmt::Write as _;

use anyhow::Result;
use serde_json::Value;

use crate::client::ClientArgs;
use crate::output::{OutputArgs, cell, table};

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    client: ClientArgs,
    #[command(flatten)]
    output: OutputArgs,
}

pub(crate) fn run(args: Args) -> Result<()> {
    let status = args.client.admin()?.get("/status")?;
    args.output.show(&status, || screen(&status))
}

fn screen(status: &Value) -> String {
    let nodes = status["nodes"].as_array().map(Vec::as_slice).unwrap_or_default();
    let (answering, silent): (Vec<_>, Vec<_>) = nodes.iter().partition(|node| node["answers"] == true);
    let mut text = String::new();
    // Writing to a String cannot fail.
    let _ = writeln!(text, "cluster  {}", cell(&status["cluster_id"]));
    let draining = if status["draining"] == true { ", draining" } else { "" };
    let _ = writeln!(text, "gateway  {}{draining}", cell(&status["version"]));
    let _ = writeln!(text);
    let rows: Vec<_> = answering
        .iter()
        .map(|node| {
            let shards = node["shards"].as_array().map(Vec::as_slice).unwrap_or_default();
            let led = shards.iter().filter(|shard| shard["is_leader"] == true).count();
            vec![
                cell(&node["node"]),
                cell(&node["version"]),
                if node["read_only"] == true {
                    "read-only".to_owned()
                } else {
                    "ok".to_owned()
                },
                format!("{led}/{}", shards.len()),
                free(node),
                bytes(node["index_bytes"].as_u64()),
                cell(&node["encoder"]["queue"]),
            ]
        })
        .collect();
    text.push_str(&table(
        &[
            "NODE",
            "VERSION",
            "STATE",
            "LEADS",
            "DISK FREE",
            "INDEX",
            "ENCODER QUEUE",
        ],
        &rows,
    ));
    for node in silent {
        let _ = writeln!(text, "{}  DOES NOT ANSWER", cell(&node["node"]));
    }
    for node in answering {
        for reason in node["degraded"].as_array().map(Vec::as_slice).unwrap_or_default() {
            let _ = writeln!(text, "\n{} degraded: {}", cell(&node["node"]), cell(reason));
        }
    }
    text
}

#[expect(clippy::cast_precision_loss, reason = "one decimal of a size for people")]
fn bytes(count: Option<u64>) -> String {
    let Some(count) = count else { return "-".to_owned() };
    let mut amount = count as f64;
    for unit in ["B", "KiB", "MiB", "GiB"] {
        if amount < 1024.0 {
            return if unit == "B" {
                format!("{count} B")
            } else {
                format!("{amount:.1} {unit}")
            };
        }
        amount /= 1024.0;
    }
    format!("{amount:.1} TiB")
}

fn free(node: &Value) -> String {
    match (node["disk_free_bytes"].as_u64(), node["disk_total_bytes"].as_u64()) {
        (Some(free), Some(total)) if total > 0 => {
            format!("{} ({}%)", bytes(Some(free)), free.saturating_mul(100) / total)
        }
        _ => "-".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn one_screen_shows_who_is_well_and_who_is_not() {
        let status = json!({
            "cluster_id": "07", "version": "0.1.0", "draining": false,
            "nodes": [
                {"node": "nod_1", "answers": true, "version": "0.1.0", "read_only": false, "degraded": ["disk: 1 %"],
                 "disk_free_bytes": 1_073_741_824_u64, "disk_total_bytes": 4_294_967_296_u64, "index_bytes": 1_572_864,
                 "encoder": {"queue": 0}, "shards": [{"is_leader": true}, {"is_leader": true}]},
                {"node": "nod_2", "answers": false},
            ],
        });
        assert_eq!(
            screen(&status),
            "cluster  07\ngateway  0.1.0\n\n\
             NODE   VERSION  STATE  LEADS  DISK FREE      INDEX    ENCODER QUEUE\n\
             nod_1  0.1.0    ok     2/2    1.0 GiB (25%)  1.5 MiB  0\n\
             nod_2  DOES NOT ANSWER\n\n\
             nod_1 degraded: disk: 1 %\n"
        );
    }
}
