//! `waggle connect` and `waggle disconnect`: the configuration of the programs that agents run in.

mod report;
mod rules;
mod run;

use std::path::PathBuf;

use anyhow::{Context as _, Result};

use crate::client::ClientArgs;
use crate::connect::clients::{ALL, Client};
use crate::connect::places::Places;
use crate::connect::target::{Bridge, Target, Way};
use crate::failure::{self, Failure};
use crate::output::OutputArgs;

pub(crate) use run::{check_all, connect, disconnect};

#[derive(clap::Args)]
pub(crate) struct Connect {
    #[command(flatten)]
    which: Which,
    /// Change nothing; say how each client stands and try its address. Ends with 9 if one is not connected.
    #[arg(long)]
    check: bool,
    /// The environment variable that clients take the key from.
    #[arg(long, value_name = "NAME", default_value = "WAGGLE_KEY")]
    key_env: String,
    /// Write the key itself into the client's file.
    #[arg(long, conflicts_with = "bridge")]
    key_in_file: bool,
    /// Have the client run `waggle mcp`, which reads the key from its file: for clients that only start programs.
    #[arg(long)]
    bridge: bool,
    #[command(flatten)]
    client: ClientArgs,
    #[command(flatten)]
    output: OutputArgs,
}

#[derive(clap::Args)]
pub(crate) struct Disconnect {
    #[command(flatten)]
    which: Which,
    #[command(flatten)]
    output: OutputArgs,
}

#[derive(clap::Args)]
struct Which {
    /// The clients: antigravity, claude-code, claude-desktop, codex, cursor, gemini, opencode, openwaggle, pi, vscode,
    /// windsurf, zed.
    #[arg(value_name = "CLIENT", required_unless_present = "all", value_parser = parse_client)]
    clients: Vec<&'static Client>,
    /// Every client that is installed here.
    #[arg(long, conflicts_with = "clients")]
    all: bool,
    /// The file of the project in this directory, instead of the user's own.
    #[arg(long, value_name = "DIR", num_args = 0..=1, default_missing_value = ".")]
    project_dir: Option<PathBuf>,
    /// Also the block with the rules for using memory, in AGENTS.md, CLAUDE.md or GEMINI.md of this directory.
    #[arg(long, value_name = "DIR", num_args = 0..=1, default_missing_value = ".")]
    rules: Option<PathBuf>,
    /// Show what would change, and change nothing.
    #[arg(long)]
    dry_run: bool,
}

fn parse_client(id: &str) -> Result<&'static Client, String> {
    let id = id.to_ascii_lowercase();
    Client::find(&id).ok_or_else(|| {
        let ids: Vec<_> = ALL.iter().map(|client| client.id).collect();
        format!("no such client; known are {}", ids.join(", "))
    })
}

fn places() -> Result<Places> {
    Places::here().ok_or_else(|| {
        Failure::new(
            failure::CONFIGURATION,
            "there is no home directory to look for clients in",
        )
        .next("set HOME")
        .into()
    })
}

impl Connect {
    fn way(&self) -> Way {
        match (self.key_in_file, self.bridge) {
            (true, _) => Way::KeyInFile,
            (_, true) => Way::Bridge,
            _ => Way::Reference,
        }
    }

    fn target(&self) -> Result<Target> {
        check_variable(&self.key_env)?;
        target(&self.client, &self.key_env, self.way())
    }
}

/// What clients are connected to, from the same flags and variables as for every client command.
fn target(client: &ClientArgs, variable: &str, way: Way) -> Result<Target> {
    let known = client.known()?;
    let url = mcp_url(&known.base)?;
    let program = std::env::current_exe().context("find this program")?;
    let mut arguments = vec!["mcp".to_owned(), "--url".to_owned(), url.clone()];
    if let Some(file) = &known.key_file {
        let file = std::path::absolute(file).unwrap_or_else(|_| file.clone());
        arguments.extend(["--key-file".to_owned(), file.display().to_string()]);
    }
    Ok(Target {
        url,
        variable: variable.to_owned(),
        key: known.key,
        way,
        bridge: Bridge {
            program: program.display().to_string(),
            arguments,
        },
    })
}

fn check_variable(name: &str) -> Result<()> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let starts_well = name.bytes().next().is_some_and(|byte| !byte.is_ascii_digit());
    if starts_well && name.len() <= 64 && name.bytes().all(plain) {
        return Ok(());
    }
    Err(Failure::new(
        failure::USAGE,
        format!("--key-env: '{}' is no name of a variable", name.escape_debug()),
    )
    .next("use 1 to 64 of A-Z, a-z, 0-9 and '_', such as WAGGLE_KEY")
    .into())
}

/// The MCP endpoint of an address; one that names an endpoint already, such as /mcp/core, stays.
pub(crate) fn mcp_url(base: &str) -> Result<String> {
    let wrong = |why: &str| {
        Failure::new(failure::USAGE, format!("--url: '{}' {why}", base.escape_debug()))
            .next("give an address such as https://memory.example.org/mcp")
    };
    let url = reqwest::Url::parse(base).map_err(|error| wrong(&format!("is no address: {error}")))?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return Err(wrong("is not http:// or https://").into());
    }
    if url.username() != "" || url.password().is_some() || url.query().is_some() || url.fragment().is_some() {
        return Err(wrong("must not hold a user, a query or a fragment; the key goes into a header").into());
    }
    let base = base.trim_end_matches('/');
    let named = url.path().split('/').any(|part| part == "mcp");
    Ok(if named { base.to_owned() } else { format!("{base}/mcp") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_endpoint_of_an_address_is_found() {
        for (given, url) in [
            ("http://127.0.0.1:7700", "http://127.0.0.1:7700/mcp"),
            ("http://127.0.0.1:7700/mcp/", "http://127.0.0.1:7700/mcp"),
            ("https://h/k/mcp/core", "https://h/k/mcp/core"),
            ("https://h/agents", "https://h/agents/mcp"),
        ] {
            assert_eq!(mcp_url(given).expect("an address"), url);
        }
        for wrong in ["h:1", "ftp://h", "http://user:pw@h", "http://h/mcp?key=1", "nonsense"] {
            assert!(mcp_url(wrong).is_err(), "{wrong}");
        }
    }
}
