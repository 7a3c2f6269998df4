//! `waggle nodes`: who is in the cluster, and what each node is for.

use anyhow::{Result, bail};
use serde_json::{Value, json};

use crate::client::ClientArgs;
use crate::output::{OutputArgs, cell, table};

#[derive(clap::Subcommand)]
pub(crate) enum Verb {
    /// List the nodes.
    List(List),
    /// Show one node and the replicas that it holds.
    Show(One),
    /// Take leadership away from a node and keep it away: for maintenance. Its replicas stay.
    Drain(One),
    /// End a drain, or a decommission that is not done.
    Resume(One),
    /// Move all replicas of a node elsewhere; then it is gone for good. Needs enough other nodes.
    Decommission(One),
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
    /// Number of the node.
    node: u64,
    #[command(flatten)]
    client: ClientArgs,
    #[command(flatten)]
    output: OutputArgs,
}

pub(crate) fn run(verb: Verb) -> Result<()> {
    match verb {
        Verb::List(args) => {
            let cluster = args.client.admin()?.get("/api/admin/cluster")?;
            args.output
                .show(&json!({"nodes": cluster["nodes"]}), || nodes_table(&cluster))
        }
        Verb::Show(args) => {
            let cluster = args.client.admin()?.get("/api/admin/cluster")?;
            let shown = one(&cluster, args.node)?;
            args.output.show(&shown, || {
                let head = nodes_table(&json!({"nodes": [shown["node"]]}));
                format!("{head}\n{}", replicas_table(&shown["shards"]))
            })
        }
        Verb::Drain(args) => change(&args, "draining"),
        Verb::Resume(args) => change(&args, "active"),
        Verb::Decommission(args) => change(&args, "decommissioning"),
    }
}

fn change(args: &One, state: &str) -> Result<()> {
    let path = format!("/api/admin/nodes/{}/state", args.node);
    let changed = args.client.admin()?.post(&path, &json!({"state": state}))?;
    args.output.show(&changed, || {
        format!("node {} is {}\n", args.node, cell(&changed["state"]))
    })
}

fn list<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value[name].as_array().map(Vec::as_slice).unwrap_or_default()
}

fn one(cluster: &Value, node: u64) -> Result<Value> {
    let Some(found) = list(cluster, "nodes").iter().find(|known| known["node"] == node) else {
        bail!("there is no node {node}; see `waggle nodes list`");
    };
    let shards: Vec<Value> = list(cluster, "shards")
        .iter()
        .filter_map(|shard| {
            let replica = list(shard, "replicas").iter().find(|replica| replica["node"] == node)?;
            let mut replica = replica.clone();
            replica["shard"] = shard["shard"].clone();
            Some(replica)
        })
        .collect();
    Ok(json!({"node": found, "shards": shards}))
}

fn nodes_table(cluster: &Value) -> String {
    let rows: Vec<_> = list(cluster, "nodes")
        .iter()
        .map(|node| {
            let health = match (node["answers"] == true, list(node, "degraded").is_empty()) {
                (false, _) => "does not answer",
                (true, true) => "ok",
                (true, false) => "degraded",
            };
            let mut row = ["node", "state"].map(|field| cell(&node[field])).to_vec();
            row.push(health.to_owned());
            row.extend(["address", "zone", "replicas", "leads", "version"].map(|field| cell(&node[field])));
            row
        })
        .collect();
    table(
        &[
            "NODE", "STATE", "HEALTH", "ADDRESS", "ZONE", "REPLICAS", "LEADS", "VERSION",
        ],
        &rows,
    )
}

fn replicas_table(shards: &Value) -> String {
    let rows: Vec<_> = shards
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default()
        .iter()
        .map(|replica| {
            ["shard", "replica", "state", "role", "applied_index", "snapshot_index"]
                .map(|field| cell(&replica[field]))
                .to_vec()
        })
        .collect();
    table(&["SHARD", "REPLICA", "STATE", "ROLE", "APPLIED", "SNAPSHOT"], &rows)
}
