//! `waggle features`: what this build can do, from the tables that it works by.

use std::fmt::Write as _;

use anyhow::Result;
use serde_json::{Value, json};

use crate::connect::clients::ALL;
use crate::connect::target::Reference;
use crate::output::{OutputArgs, cell, table};

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    output: OutputArgs,
}

pub(crate) fn run(args: Args, program: &clap::Command) -> Result<()> {
    let features = features(program);
    args.output.show(&features, || screen(&features))
}

fn features(program: &clap::Command) -> Value {
    let mut features = waggle_gateway::overview();
    let clients: Vec<Value> = ALL
        .iter()
        .map(|client| {
            json!({
                "id": client.id,
                "name": client.name,
                "project_files": client.project_files,
                "key_by_reference": client.reference != Reference::Nothing,
                "rules_file": client.rules_file,
            })
        })
        .collect();
    let commands: Vec<String> = program
        .get_subcommands()
        .filter(|command| !command.is_hide_set())
        .flat_map(|command| {
            let verbs: Vec<String> = command
                .get_subcommands()
                .map(|verb| format!("{} {}", command.get_name(), verb.get_name()))
                .collect();
            if verbs.is_empty() {
                vec![command.get_name().to_owned()]
            } else {
                verbs
            }
        })
        .collect();
    features["version"] = json!(env!("CARGO_PKG_VERSION"));
    features["clients"] = json!(clients);
    features["commands"] = json!(commands);
    features
}

fn screen(features: &Value) -> String {
    let rows_of = |list: &str, fields: &[&str]| -> Vec<Vec<String>> {
        features[list]
            .as_array()
            .map(Vec::as_slice)
            .unwrap_or_default()
            .iter()
            .map(|row| fields.iter().map(|field| cell(&row[*field])).collect())
            .collect()
    };
    let mut text = format!("waggle {}\n\n", cell(&features["version"]));
    // Writing to a String cannot fail.
    let _ = writeln!(
        text,
        "{}",
        table(
            &["TOOLSET", "TOOLS", "TOKENS"],
            &rows_of("toolsets", &["path", "tools", "tokens"])
        )
    );
    let fields = ["name", "scopes", "paths", "formats"];
    let _ = writeln!(
        text,
        "{}",
        table(&["TOOL", "SCOPES", "PATHS", "FORMATS"], &rows_of("tools", &fields))
    );
    let fields = ["id", "name", "key_by_reference", "rules_file"];
    let _ = writeln!(
        text,
        "{}",
        table(
            &["CLIENT", "NAME", "KEY BY REFERENCE", "RULES"],
            &rows_of("clients", &fields)
        )
    );
    let _ = writeln!(text, "commands: {}", cell(&features["commands"]).replace(',', ", "));
    text
}
