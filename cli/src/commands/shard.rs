//! `waggle shard`: where shards are, who leads them, and whether their replicas are equal.

use anyhow::Result;
use serde_json::{Value, json};

use crate::client::ClientArgs;
use crate::failure::{self, Failure};
use crate::output::{OutputArgs, cell, table};

#[derive(clap::Subcommand)]
pub(crate) enum Verb {
    /// List the shards; 0 is the meta shard.
    List(List),
    /// Show one shard and its replicas.
    Show(One),
    /// Hand the leadership of a shard to another node.
    LeaderTransfer(LeaderTransfer),
    /// Compare the rows of all replicas by their hashes. Reads everything: for checks, not for every minute.
    Verify(Verify),
}

#[derive(clap::Args)]
pub(crate) struct List {
    #[command(flatten)]
    client: ClientArgs,
    #[command(flatten)]
    output: OutputArgs,
}

#[derive(clap::Args)]
pub(crate) struct One {
    /// Number of the shard.
    shard: u32,
    #[command(flatten)]
    client: ClientArgs,
    #[command(flatten)]
    output: OutputArgs,
}

#[derive(clap::Args)]
pub(crate) struct LeaderTransfer {
    /// Number of the shard.
    shard: u32,
    /// Node that takes over. Default: the voter that has most of the log.
    #[arg(long, value_name = "NODE")]
    to: Option<u64>,
    #[command(flatten)]
    client: ClientArgs,
    #[command(flatten)]
    output: OutputArgs,
}

#[derive(clap::Args)]
pub(crate) struct Verify {
    /// Numbers of shards. Default: all.
    shards: Vec<u32>,
    #[command(flatten)]
    client: ClientArgs,
    #[command(flatten)]
    output: OutputArgs,
}

pub(crate) fn run(verb: Verb) -> Result<()> {
    match verb {
        Verb::List(args) => {
            let cluster = args.client.admin()?.get("/api/admin/cluster")?;
            args.output.show(&json!({"shards": cluster["shards"]}), || {
                shards_table(&cluster["shards"])
            })
        }
        Verb::Show(args) => {
            let cluster = args.client.admin()?.get("/api/admin/cluster")?;
            let found = items(&cluster["shards"])
                .iter()
                .find(|shard| shard["shard"] == args.shard)
                .cloned()
                .ok_or_else(|| no_such(args.shard))?;
            args.output.show(&found, || {
                let head = shards_table(&json!([found]));
                format!("{head}\n{}", replicas_table(&found["replicas"]))
            })
        }
        Verb::LeaderTransfer(args) => {
            let path = format!("/api/admin/shards/{}/leader", args.shard);
            let moved = args.client.admin()?.post(&path, &json!({"to_node": args.to}))?;
            args.output.show(&moved, || {
                format!(
                    "shard {} is led by node {} now; nobody led for at most {} ms\n",
                    args.shard,
                    cell(&moved["leader"]),
                    cell(&moved["took_ms"])
                )
            })
        }
        Verb::Verify(args) => verify(&args),
    }
}

fn verify(args: &Verify) -> Result<()> {
    let client = args.client.admin()?;
    let numbers: Vec<u64> = if args.shards.is_empty() {
        let cluster = client.get("/api/admin/cluster")?;
        items(&cluster["shards"])
            .iter()
            .filter_map(|shard| shard["shard"].as_u64())
            .collect()
    } else {
        args.shards.iter().map(|shard| u64::from(*shard)).collect()
    };
    let mut compared = Vec::new();
    for shard in &numbers {
        compared.push(client.get(&format!("/api/admin/shards/{shard}/digests"))?);
    }
    let different = compared.iter().filter(|shard| shard["equal"] != true).count();
    args.output
        .show(&json!({"equal": different == 0, "shards": compared}), || {
            let rows: Vec<_> = compared.iter().flat_map(rows_of).collect();
            table(&["SHARD", "NODE", "APPLIED", "DIGEST", "RESULT"], &rows)
        })?;
    if different == 0 {
        return Ok(());
    }
    let what = format!(
        "{different} of {} shards have replicas that differ or do not answer",
        numbers.len()
    );
    Err(Failure::new(failure::CHECK_FAILED, what)
        .next("run it again when nobody writes; if replicas still differ, see docs/cluster-failures.md")
        .into())
}

fn rows_of(shard: &Value) -> Vec<Vec<String>> {
    items(&shard["replicas"])
        .iter()
        .map(|replica| {
            let digest = cell(&replica["digest"]);
            let problem = replica["problem"].as_str();
            let result = problem.unwrap_or(if shard["equal"] == true { "equal" } else { "differs" });
            vec![
                cell(&shard["shard"]),
                cell(&replica["node"]),
                cell(&replica["applied_index"]),
                digest.chars().take(16).collect(),
                result.to_owned(),
            ]
        })
        .collect()
}

fn no_such(shard: u32) -> Failure {
    Failure::new(failure::NOT_FOUND, format!("there is no shard {shard}")).next("see `waggle shard list`")
}

fn items(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn shards_table(shards: &Value) -> String {
    let rows: Vec<_> = items(shards)
        .iter()
        .map(|shard| {
            let nodes: Vec<String> = items(&shard["replicas"])
                .iter()
                .map(|replica| match replica["state"].as_str() {
                    Some("voting") => cell(&replica["node"]),
                    state => format!("{} ({})", cell(&replica["node"]), state.unwrap_or("?")),
                })
                .collect();
            let leader = match &shard["leader"] {
                Value::Null => "none answers".to_owned(),
                leader => cell(leader),
            };
            vec![
                cell(&shard["shard"]),
                leader,
                cell(&shard["term"]),
                cell(&shard["voters"]),
                nodes.join(", "),
                cell(&shard["slots"]),
            ]
        })
        .collect();
    table(&["SHARD", "LEADER", "TERM", "VOTERS", "NODES", "SLOTS"], &rows)
}

fn replicas_table(replicas: &Value) -> String {
    let rows: Vec<_> = items(replicas)
        .iter()
        .map(|replica| {
            [
                "node",
                "replica",
                "state",
                "role",
                "applied_index",
                "last_log_index",
                "snapshot_index",
            ]
            .map(|field| cell(&replica[field]))
            .to_vec()
        })
        .collect();
    table(
        &["NODE", "REPLICA", "STATE", "ROLE", "APPLIED", "LAST", "SNAPSHOT"],
        &rows,
    )
}
