//! A whole graph as a file that can be imported again.

use super::ToolCall;
use super::exports::{deliver, described};
use crate::fault::Fault;
use crate::mcp::result::Answer;
use crate::transfer::description::{Format, SecretsPolicy};

pub(super) async fn run(call: &ToolCall<'_>) -> Result<Answer, Fault> {
    let arguments = &call.arguments;
    let format = Format::from_word(arguments.text("format")).ok_or_else(Fault::internal)?;
    let secrets = SecretsPolicy::from_word(arguments.text("secrets")).ok_or_else(Fault::internal)?;
    let export = described(call, format, secrets)?;
    let tokens = usize::try_from(arguments.integer("token_budget")).unwrap_or_default();
    deliver(call, export, tokens).await
}
