//! `waggle version`.

use anyhow::Result;
use serde_json::json;

use crate::output::OutputArgs;

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    output: OutputArgs,
}

pub(crate) fn run(args: Args) -> Result<()> {
    let version = env!("CARGO_PKG_VERSION");
    let target = format!("{}-{}", std::env::consts::ARCH, std::env::consts::OS);
    args.output.show(&json!({"version": version, "target": target}), || {
        format!("waggle {version} ({target})\n")
    })
}
