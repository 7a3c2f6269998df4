//! Logs go to stderr: text on a terminal, JSON otherwise. WAGGLE_LOG, then the configuration, say what is logged.

use std::io::IsTerminal as _;

use anyhow::{Context as _, Result};
use tracing_subscriber::EnvFilter;
use waggle_config::checked::LogFormat;
use waggle_config::runtime::clock::{OFFSET_VARIABLE, System};

pub(crate) fn start(filter: &str, format: LogFormat) -> Result<()> {
    let said = std::env::var("WAGGLE_LOG").ok().filter(|text| !text.trim().is_empty());
    let filter = said.as_deref().unwrap_or(filter);
    let filter = EnvFilter::try_new(filter).with_context(|| format!("understand the log filter '{filter}'"))?;
    // The MCP library writes whole requests at debug level: content and queries never get into a log, whoever asks.
    let filter = filter.add_directive("rmcp=warn".parse().context("hold back the MCP library's log")?);
    let as_json = match format {
        LogFormat::Auto => !std::io::stderr().is_terminal(),
        LogFormat::Text => false,
        LogFormat::Json => true,
    };
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr);
    let installed = if as_json {
        builder
            .json()
            .flatten_event(true)
            .with_current_span(true)
            .with_span_list(false)
            .try_init()
    } else {
        let colour = std::env::var_os("NO_COLOR").is_none() && std::io::stderr().is_terminal();
        builder.with_ansi(colour).compact().try_init()
    };
    installed.map_err(|error| anyhow::anyhow!("start logging: {error}"))?;
    let offset_ms = System::new().offset_ms();
    if offset_ms != 0 {
        tracing::warn!(
            offset_ms,
            "the clock of this process is wrong on purpose: {OFFSET_VARIABLE} is for tests"
        );
    }
    Ok(())
}
