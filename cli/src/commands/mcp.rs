//! `waggle mcp`: a gateway for clients that only start programs.

use anyhow::Result;

use crate::bridge::{self, Gateway};
use crate::client::{self, ClientArgs};
use crate::commands::connect::mcp_url;
use crate::failure::{self, Failure};

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    client: ClientArgs,
}

pub(crate) fn run(args: Args) -> Result<()> {
    let known = args.client.known()?;
    let url = mcp_url(&known.base)?;
    let Some(key) = known.key else {
        return Err(Failure::new(failure::USAGE, "no API key is known here")
            .next("give --key-file, or set WAGGLE_KEY")
            .into());
    };
    let gateway = Gateway::new(client::http(&url)?, url, key);
    client::block_on(bridge::serve(&gateway))
}
