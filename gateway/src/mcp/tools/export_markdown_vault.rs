//! A graph as a folder of Markdown files that people can read and edit.

use waggle_config::limits::TOKEN_BUDGET_DEFAULT;

use super::ToolCall;
use super::exports::{deliver, described};
use crate::fault::Fault;
use crate::mcp::result::Answer;
use crate::transfer::description::{Format, SecretsPolicy};

pub(super) async fn run(call: &ToolCall<'_>) -> Result<Answer, Fault> {
    let export = described(call, Format::Vault, SecretsPolicy::Redact)?;
    deliver(call, export, TOKEN_BUDGET_DEFAULT).await
}
