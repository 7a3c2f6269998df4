//! `waggle tenant`: for operators.

use anyhow::Result;
use serde_json::{Value, json};

use crate::client::ClientArgs;
use crate::output::{JsonArgs, OutputArgs, cell, table};

#[derive(clap::Subcommand)]
pub(crate) enum Verb {
    /// Make a tenant; one that exists already is shown as it is. JSON on stdout.
    Create(Create),
    /// List the tenants that the key may see.
    List(List),
}

#[derive(clap::Args)]
pub(crate) struct Create {
    /// 1 to 64 of a-z, 0-9, '-', '_' and '.'.
    #[arg(long)]
    tenant_id: String,
    /// Display name. Default: the id.
    #[arg(long)]
    name: Option<String>,
    #[command(flatten)]
    client: ClientArgs,
    #[command(flatten)]
    output: JsonArgs,
}

#[derive(clap::Args)]
pub(crate) struct List {
    #[command(flatten)]
    client: ClientArgs,
    #[command(flatten)]
    output: OutputArgs,
}

pub(crate) fn run(verb: Verb) -> Result<()> {
    match verb {
        Verb::Create(args) => {
            let name = args.name.as_deref().unwrap_or(&args.tenant_id);
            let body = json!({"tenant_id": args.tenant_id, "name": name});
            let made = args.client.admin()?.post("/api/admin/tenants", &body)?;
            args.output.show(&made)
        }
        Verb::List(args) => {
            let answer = args.client.admin()?.get("/api/admin/tenants")?;
            let tenants = answer
                .get("tenants")
                .and_then(Value::as_array)
                .cloned()
                .unwrap_or_default();
            args.output.show(&answer, || {
                let rows: Vec<_> = tenants
                    .iter()
                    .map(|tenant| {
                        ["tenant_id", "name", "status", "created_at"]
                            .map(|field| cell(&tenant[field]))
                            .to_vec()
                    })
                    .collect();
                table(&["TENANT", "NAME", "STATUS", "CREATED"], &rows)
            })
        }
    }
}
