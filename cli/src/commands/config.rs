//! `waggle config`: what a configuration says, before it is used.

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::ValueEnum;
use serde_json::{Value, json};
use waggle_config::checked;
use waggle_config::explain;
use waggle_config::keys::{self, Role};
use waggle_config::problem::{Problem, Problems};
use waggle_config::raw::Raw;

use crate::failure::{self, Failure};
use crate::output::{OutputArgs, cell, table};

#[derive(clap::Subcommand)]
pub(crate) enum Verb {
    /// Check a file, with the environment over it. Offline; lists all problems and ends with 78 if there are any.
    Check(Check),
    /// Show the values of a file, or with --effective every value that holds.
    Show(Show),
    /// List the environment variables that override keys.
    Env(Env),
}

#[derive(clap::Args)]
pub(crate) struct Check {
    file: PathBuf,
    /// Check it for this role. Default: by its sections.
    #[arg(long, value_enum)]
    role: Option<RoleWord>,
    #[command(flatten)]
    output: OutputArgs,
}

#[derive(clap::Args)]
pub(crate) struct Show {
    /// Without a file: defaults and environment.
    file: Option<PathBuf>,
    #[arg(long, value_enum)]
    role: Option<RoleWord>,
    /// Also the values that are defaults.
    #[arg(long)]
    effective: bool,
    /// Also where each value came from.
    #[arg(long)]
    origin: bool,
    #[command(flatten)]
    output: OutputArgs,
}

#[derive(clap::Args)]
pub(crate) struct Env {
    #[command(flatten)]
    output: OutputArgs,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum RoleWord {
    Node,
    Gateway,
}

impl RoleWord {
    fn role(self) -> Role {
        match self {
            Self::Node => Role::Node,
            Self::Gateway => Role::Gateway,
        }
    }
}

pub(crate) fn run(verb: Verb) -> Result<()> {
    match verb {
        Verb::Check(args) => check(&args),
        Verb::Show(args) => show(&args),
        Verb::Env(args) => env(&args),
    }
}

/// A file with the environment over it: what a start would see.
pub(crate) fn load(file: &Path) -> Raw {
    let mut raw = Raw::load(file);
    raw.overlay_environment(variables());
    raw
}

/// What of the environment is text; a variable of ours that is not would be unreadable anyway.
fn variables() -> impl Iterator<Item = (String, String)> {
    std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
}

fn check(args: &Check) -> Result<()> {
    // Without the file every key of it would be missing, which hides the one problem that there is.
    if let Err(error) = std::fs::File::open(&args.file) {
        return Err(
            Failure::new(failure::CONFIGURATION, format!("read {}: {error}", args.file.display()))
                .next("give the path of a configuration file; `waggle config env` needs none")
                .into(),
        );
    }
    let raw = load(&args.file);
    let roles = match args.role.map(RoleWord::role).or(raw.role()) {
        Some(role) => vec![role],
        None => vec![Role::Node, Role::Gateway],
    };
    let mut problems: Vec<Problem> = Vec::new();
    for role in &roles {
        let found = match role {
            Role::Node => checked::node(&raw).err(),
            Role::Gateway => checked::gateway(&raw).err(),
        };
        for problem in found.into_iter().flat_map(|found| found.0) {
            if !problems.contains(&problem) {
                problems.push(problem);
            }
        }
    }
    if !problems.is_empty() {
        return Err(Problems(problems).into());
    }
    let words: Vec<_> = roles.iter().map(|role| role.word()).collect();
    eprintln!("{} is right for a {}", args.file.display(), words.join(" and a "));
    args.output
        .show(&json!({"file": args.file, "roles": words, "problems": []}), String::new)
}

fn show(args: &Show) -> Result<()> {
    let mut raw = args.file.as_deref().map_or_else(Raw::default, Raw::load);
    raw.overlay_environment(variables());
    let roles = match args.role.map(RoleWord::role).or(raw.role()) {
        Some(role) => vec![role],
        None => vec![Role::Node, Role::Gateway],
    };
    let mut rows: Vec<explain::Row> = Vec::new();
    for row in roles.into_iter().flat_map(|role| explain::rows(&raw, role)) {
        let said = row.origin != "default" && row.value.is_some();
        if (args.effective || said) && !rows.contains(&row) {
            rows.push(row);
        }
    }
    let data: Vec<Value> = rows
        .iter()
        .map(|row| json!({"key": row.key, "value": row.value, "origin": row.origin}))
        .collect();
    args.output.show(&json!({ "values": data }), || {
        let (head, fields): (&[&str], &[&str]) = if args.origin {
            (&["KEY", "VALUE", "FROM"], &["key", "value", "origin"])
        } else {
            (&["KEY", "VALUE"], &["key", "value"])
        };
        let rows: Vec<Vec<String>> = data
            .iter()
            .map(|row| fields.iter().map(|field| cell(&row[*field])).collect())
            .collect();
        table(head, &rows)
    })
}

fn env(args: &Env) -> Result<()> {
    let data: Vec<Value> = keys::ALL
        .iter()
        .map(|key| json!({"variable": key.variable(), "key": key.path, "doc": key.doc}))
        .collect();
    args.output.show(&json!({ "variables": data }), || {
        let rows: Vec<Vec<String>> = data
            .iter()
            .map(|row| ["variable", "doc"].map(|field| cell(&row[field])).to_vec())
            .collect();
        table(&["VARIABLE", ""], &rows)
    })
}
