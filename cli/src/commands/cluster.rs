//! `waggle cluster`: making a cluster and letting nodes into it.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Result;
use serde_json::json;
use waggle_config::certificates::Role;
use waggle_config::checked;
use waggle_config::peer_tls::PeerTls;
use waggle_config::runtime::clock::{Clock, System};

use crate::client::ClientArgs;
use crate::output::OutputArgs;
use crate::roles;

#[derive(clap::Subcommand)]
pub(crate) enum Verb {
    /// Make a new cluster in the data directory of its first node, once. Starts nothing that stays.
    Init(Init),
    /// Make a token with which one new node can join. It is shown once.
    JoinToken(JoinToken),
    /// Show what a change of the cluster's shape would move, and what is moving anyhow. Changes nothing.
    Plan(Shape),
    /// Change the cluster's shape; shows what moves. The cluster goes on meanwhile.
    Apply(Shape),
}

#[derive(clap::Args)]
pub(crate) struct Shape {
    /// Replicas of each shard: 1, 3 or 5.
    #[arg(long, value_name = "NUMBER", value_parser = replication)]
    replication: Option<u32>,
    #[command(flatten)]
    client: ClientArgs,
    #[command(flatten)]
    output: OutputArgs,
}

#[derive(clap::Args)]
pub(crate) struct Init {
    /// The configuration file of the first node.
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// Data shards. More shards use more cores and nodes; a tenant lives in one.
    #[arg(long, value_name = "NUMBER", default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=1024))]
    shards: u32,
    /// Replicas of each shard, as soon as there are that many nodes: 1, 3 or 5.
    #[arg(long, value_name = "NUMBER", default_value_t = 3, value_parser = replication)]
    replication: u32,
    #[command(flatten)]
    output: OutputArgs,
}

#[derive(clap::Args)]
pub(crate) struct JoinToken {
    /// Seconds that it works, at most a week.
    #[arg(long, value_name = "SECONDS", default_value_t = 3_600, value_parser = clap::value_parser!(u64).range(1..=604_800))]
    ttl: u64,
    #[command(flatten)]
    client: ClientArgs,
    #[command(flatten)]
    output: OutputArgs,
}

fn replication(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(number @ (1 | 3 | 5)) => Ok(number),
        _ => Err("it is 1, 3 or 5".to_owned()),
    }
}

pub(crate) fn run(verb: Verb) -> Result<()> {
    match verb {
        Verb::Init(args) => init(&args),
        Verb::Plan(args) => shape(&args, false),
        Verb::Apply(args) => shape(&args, true),
        Verb::JoinToken(args) => {
            let made = args
                .client
                .admin()?
                .post("/api/admin/join-tokens", &json!({"ttl_seconds": args.ttl}))?;
            args.output
                .show(&made, || format!("{}\n", made["token"].as_str().unwrap_or_default()))
        }
    }
}

fn shape(args: &Shape, apply: bool) -> Result<()> {
    let body = json!({"replication": args.replication, "apply": apply});
    let plan = args.client.admin()?.post("/api/admin/cluster/plan", &body)?;
    args.output.show(&plan, || {
        let (before, after) = (&plan["replication"]["before"], &plan["replication"]["after"]);
        let head = if before == after {
            format!("replicas of each shard: {before}\n")
        } else {
            format!("replicas of each shard: {before} -> {after}\n")
        };
        let steps: Vec<&str> = plan["steps"]
            .as_array()
            .map(|steps| steps.iter().filter_map(serde_json::Value::as_str).collect())
            .unwrap_or_default();
        let tail = match (steps.is_empty(), apply) {
            (true, _) => "nothing moves\n",
            (false, true) => "it happens now; `waggle shard list` shows how far it is\n",
            (false, false) => "`waggle cluster apply` with the same options does it\n",
        };
        let steps: String = steps.iter().map(|step| format!("  {step}\n")).collect();
        format!("{head}{steps}{tail}")
    })
}

fn init(args: &Init) -> Result<()> {
    let config = checked::node(&super::config::load(&args.config))?;
    let clock: Arc<dyn Clock> = Arc::new(System::new());
    let tls = PeerTls::load(config.tls().clone(), Role::Node, Arc::clone(&clock))?;
    let made = roles::init::run(&config, tls.subject(), args.shards, args.replication, clock)?;
    let fields = json!({
        "cluster_id": made.cluster.to_string(),
        "node": made.node.0,
        "shards": args.shards,
        "replication": args.replication,
        "operator_key_file": made.operator_key,
        "pepper_file": made.pepper,
        "cluster_secret_file": made.cluster_secret,
    });
    args.output.show(&fields, || {
        format!(
            "made cluster {} with node {} and {} data shards\n\n\
             operator's key  {}\n\
             for gateways    {}\n                {}\n\n\
             Next: start it with `waggle node --config {}`, copy the two files to each gateway, start a gateway, and let \
             more nodes in with `waggle cluster join-token`.\n",
            made.cluster,
            made.node.0,
            args.shards,
            made.operator_key.display(),
            made.pepper.display(),
            made.cluster_secret.display(),
            args.config.display(),
        )
    })
}
