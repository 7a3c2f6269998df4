//! A graph as one page that works from disk.

use waggle_config::limits::TOKEN_BUDGET_DEFAULT;

use super::ToolCall;
use super::exports::{deliver, described};
use crate::fault::Fault;
use crate::mcp::result::Answer;
use crate::transfer::description::{Format, SecretsPolicy};

pub(super) async fn run(call: &ToolCall<'_>) -> Result<Answer, Fault> {
    let export = described(call, Format::Html, SecretsPolicy::Redact)?;
    deliver(call, export, TOKEN_BUDGET_DEFAULT).await
}
