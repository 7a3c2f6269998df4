//! `waggle-chaos`: one run on the command line. docs/chaos.md is its manual.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use waggle_chaos::nemesis::Kind;
use waggle_chaos::run::{Options, Report, run};

const HELP: &str = "\
usage: waggle-chaos --waggle BINARY [--seconds N] [--seed S] [--keep DIRECTORY] [--json]
                    [--nodes N] [--gateways N] [--shards N] [--tenants N] [--clients N] [--faults KIND,KIND]
                    [--planted-bug apply-twice|skip-applied-id|ignore-dedupe|ack-before-sync]

Starts a cluster of real processes on loopback, works on it as agents do, hurts it after a plan that follows from the
seed, and judges what the clients saw. Ends with 0: no violation found; 1: a violation; 2: nobody can say.
docs/chaos.md explains faults and checks.
";

struct Settings {
    options: Options,
    json: bool,
    /// Goes at the end when nothing was found.
    temporary: Option<tempfile::TempDir>,
}

#[tokio::main]
async fn main() -> ExitCode {
    match work().await {
        Ok(code) => code.into(),
        Err(problem) => {
            eprintln!("waggle-chaos: {problem:#}");
            2.into()
        }
    }
}

async fn work() -> Result<u8> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if words.iter().any(|word| word == "--help" || word == "-h") {
        say(HELP)?;
        return Ok(0);
    }
    let settings = settings(&words)?;
    let ran = tokio::select! {
        ran = run(&settings.options) => ran,
        // Whoever is dropped kills its processes.
        _ = tokio::signal::ctrl_c() => Err(anyhow::anyhow!("interrupted")),
    };
    if !matches!(&ran, Ok(report) if report.exit_code() == 0)
        && let Some(folder) = settings.temporary
    {
        eprintln!("kept: {}", folder.keep().display());
    }
    let report = ran?;
    show(&report, settings.json)?;
    Ok(report.exit_code())
}

fn show(report: &Report, json: bool) -> Result<()> {
    if json {
        return say(&(serde_json::to_string(report)? + "\n"));
    }
    say(&report.table())
}

fn say(text: &str) -> Result<()> {
    std::io::stdout()
        .write_all(text.as_bytes())
        .context("write to standard output")
}

fn settings(words: &[String]) -> Result<Settings> {
    let (mut binary, mut keep, mut json) = (None, None, false);
    let mut options = Options::new("waggle".as_ref(), "".as_ref());
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        if word == "--json" {
            json = true;
            continue;
        }
        let value = rest
            .next()
            .with_context(|| format!("{word} wants a value, or is unknown: --help"))?;
        let number = || {
            value
                .parse::<u64>()
                .with_context(|| format!("{word} {value}: not a number"))
        };
        let small = || {
            value
                .parse::<u32>()
                .with_context(|| format!("{word} {value}: not a number"))
        };
        match word.as_str() {
            "--waggle" => binary = Some(PathBuf::from(value)),
            "--keep" => keep = Some(PathBuf::from(value)),
            "--seconds" => options.time = Duration::from_secs(number()?),
            "--seed" => options.seed = number()?,
            "--nodes" => options.nodes = number()?,
            "--gateways" => options.gateways = number()?,
            "--shards" => options.shards = small()?,
            "--tenants" => options.tenants = small()?.max(1),
            "--clients" => options.clients = small()?,
            "--planted-bug" => options.bug = Some(bug(value)?),
            "--faults" => options.kinds = value.split(',').map(kind).collect::<Result<_>>()?,
            _ => bail!("{word} is unknown: --help"),
        }
    }
    options.binary = binary.context("--waggle BINARY is missing: --help")?;
    let temporary = match keep {
        Some(folder) => {
            options.root = folder;
            None
        }
        None => {
            let folder = tempfile::Builder::new().prefix("waggle-chaos-").tempdir()?;
            options.root = folder.path().to_owned();
            Some(folder)
        }
    };
    Ok(Settings {
        options,
        json,
        temporary,
    })
}

fn bug(text: &str) -> Result<&'static str> {
    const BUGS: [&str; 4] = ["apply-twice", "skip-applied-id", "ignore-dedupe", "ack-before-sync"];
    let known = BUGS.into_iter().find(|bug| *bug == text);
    known.with_context(|| format!("there is no bug '{text}'; there are {}", BUGS.join(", ")))
}

/// The word of reports, with any of ` `, `-` and `_` between its parts.
fn kind(text: &str) -> Result<Kind> {
    let plain = |text: &str| text.replace([' ', '-', '_'], "").to_lowercase();
    let known = Kind::ALL
        .into_iter()
        .find(|kind| plain(kind.word()) == plain(text) || plain(&format!("{kind:?}")) == plain(text));
    known.with_context(|| {
        let all: Vec<String> = Kind::ALL.iter().map(|kind| kind.word().replace(' ', "-")).collect();
        format!("there is no fault '{text}'; there are {}", all.join(", "))
    })
}
