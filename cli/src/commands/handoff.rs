//! `waggle ingest-transcript-handoff`: a whole transcript into the memory of a cluster, and out of it what the next
//! conversation needs.
//!
//! Its contract with scripts is its own: one JSON report on stdout, or one JSON error on stderr with exit 1 (the input
//! or a flag), 2 (the cluster, a key or the export) or 3 (a fault of ours).

mod export;
mod failure;
mod input;
mod report;
mod send;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::ValueEnum;
use serde_json::Value;

use crate::client::ClientArgs;
use crate::output::print;
use export::Export;
use failure::Failed;
use report::Report;

/// The name of the command, where arguments are looked at before they are understood.
const NAME: &str = "ingest-transcript-handoff";

#[derive(clap::Args)]
pub(crate) struct Args {
    /// File with the transcript; - is the standard input.
    #[arg(long, value_name = "PATH", default_value = "-")]
    input: String,
    /// Instead of the transcript's own.
    #[arg(long)]
    project: Option<String>,
    /// Instead of the transcript's own.
    #[arg(long)]
    agent_id: Option<String>,
    /// Instead of the transcript's own.
    #[arg(long)]
    session_id: Option<String>,
    /// Beginning of the names of the files that are written. Default: named after the scope, in the working directory.
    #[arg(long, value_name = "PREFIX")]
    output_path: Option<PathBuf>,
    /// Which forms of the bundle are written.
    #[arg(long, value_enum, default_value_t)]
    export_format: ExportFormat,
    /// Memories in the bundle.
    #[arg(long, default_value_t = 25, value_parser = clap::value_parser!(u16).range(1..=500))]
    max_nodes: u16,
    /// Longest input. What is longer is refused, and nothing is stored.
    #[arg(long, value_name = "BYTES", default_value_t = 16_777_216, value_parser = clap::value_parser!(u64).range(1..))]
    max_input_bytes: u64,
    /// Token budget of the bundle, beside --max-nodes.
    #[arg(long, value_name = "TOKENS", value_parser = clap::value_parser!(u32).range(200..=20_000))]
    max_context_tokens: Option<u32>,
    /// How the transcript is written: one JSON object, or one message a line.
    #[arg(long, value_enum, default_value_t)]
    input_format: InputFormat,
    /// What the assistant says after a tool's message is a block of its own.
    #[arg(long)]
    tool_boundary_splits_blocks: bool,
    /// Longest wait for the next bytes of the standard input. Default: no limit.
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    read_timeout_seconds: Option<u64>,
    /// Check the transcript and report what would be stored, without storing it.
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    client: ClientArgs,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum ExportFormat {
    Markdown,
    Json,
    #[default]
    Both,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum InputFormat {
    #[default]
    Auto,
    Json,
    Ndjson,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> ExitCode {
    let shown = ingest(args).and_then(|report| show(&report));
    match shown {
        Ok(()) => ExitCode::SUCCESS,
        Err(failed) => failed.report(),
    }
}

/// Arguments that could not be understood: for this command in its own form, else as everywhere.
pub(crate) fn wrong_arguments(error: &clap::Error) -> ExitCode {
    let ours = std::env::args_os().nth(1).is_some_and(|name| name == NAME);
    if ours && error.use_stderr() {
        return Failed::arguments(error).report();
    }
    let code = u8::try_from(error.exit_code()).unwrap_or(crate::failure::USAGE);
    match error.print() {
        Ok(()) => ExitCode::from(code),
        Err(_) => ExitCode::from(crate::failure::GENERAL),
    }
}

fn show(report: &Value) -> Result<(), Failed> {
    print(&format!("{report:#}\n")).map_err(|error| Failed::internal(format!("write the report: {error}")))
}

/// First everything is checked, then stored, then exported.
fn ingest(args: &Args) -> Result<Value, Failed> {
    let mut input = input::read(args)?;
    let mut report = Report::new(&input);
    if input.count() == 0 {
        report.skip_export("no_messages");
        return Ok(report.finish());
    }
    let client = args.client.public().map_err(|error| Failed::no_client(&error))?;
    send::send(&client, args, &mut input, &mut report)?;
    if args.dry_run {
        report.skip_export("dry_run");
        return Ok(report.finish());
    }
    match export::export(&client, args, input.scope()) {
        Ok(Export::Written(files)) => report.exported(&files),
        Ok(Export::Skipped(reason)) => report.skip_export(reason),
        Err(why) => return Err(Failed::export(why, &report.finish())),
    }
    Ok(report.finish())
}
