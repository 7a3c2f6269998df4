//! What all exports of the tools share: the answer carries the file if it fits, else a link to it.

use std::sync::Arc;

use serde_json::Value;
use waggle_config::limits::EXPORT_LINK_AGE_MAX;
use waggle_memory::meta::KeyScopes;

use super::ToolCall;
use crate::fault::Fault;
use crate::mcp::result::{Answer, Link};
use crate::transfer::description::{Description, Format, SecretsPolicy, offered_name};
use crate::transfer::export::{Beginning, Writing, Written, open};
use crate::transfer::import::blocking;

/// From this budget on an answer repeats the address of its link.
const URI_TOKENS: usize = 500;

/// What is exported, from the arguments of a call.
pub(super) fn described(call: &ToolCall<'_>, format: Format, secrets: SecretsPolicy) -> Result<Description, Fault> {
    if secrets == SecretsPolicy::Include {
        call.caller.require(KeyScopes::GRAPH_WRITE)?;
    }
    let arguments = &call.arguments;
    let path = ["output_path", "root_path"]
        .into_iter()
        .find_map(|name| arguments.optional_text(name))
        .unwrap_or_default();
    Ok(Description {
        format,
        project: arguments.text("project").to_owned(),
        agent_id: arguments.text("agent_id").to_owned(),
        session_id: arguments.text("session_id").to_owned(),
        secrets,
        weak_links: arguments.flag("include_low_confidence_edges"),
        physics: arguments.flag("include_physics"),
        exported_at: call.now.0,
        name: offered_name(path),
    })
}

/// Makes the export once: whether it may go out, how large it is, and the file itself if it fits the budget.
pub(super) async fn deliver(call: &ToolCall<'_>, export: Description, tokens: usize) -> Result<Answer, Fault> {
    let _permit = call.app.transfer.enter()?;
    let incoming = open(call.app, call.caller, &call.call, &export, call.call.deadline).await?;
    let (app, tenant, job) = (Arc::clone(call.app), call.tenant().to_owned(), export.clone());
    let bytes_max = if export.format.is_text() { tokens * 4 } else { 0 };
    let (written, beginning) = blocking(move || {
        let mut beginning = Beginning::new(bytes_max);
        let writing = Writing {
            app: &app,
            tenant: &tenant,
            export: &job,
            inline: true,
        };
        let written = writing.write(incoming, &mut beginning)?;
        Ok((written, beginning))
    })
    .await?;
    let total = beginning.total;
    let text = beginning.whole().and_then(|bytes| String::from_utf8(bytes).ok());
    if let Some(text) = text.filter(|_| export.format.is_text()) {
        let mut answer = counted(&export, &written, total);
        answer.put_some("content_hash", written.content_hash.clone());
        answer.put("content", text.clone());
        // Escapes may make it too long after all.
        let fitted = answer.clone().fit(tokens, None);
        if fitted.structured.get("content").and_then(Value::as_str) == Some(text.as_str()) {
            return Ok(answer);
        }
    }
    Ok(linked(call, &export, &written, total, tokens))
}

fn counted(export: &Description, written: &Written, bytes: u64) -> Answer {
    let mut answer = Answer::default();
    answer.put("format", export.format.word());
    answer.put("node_count", written.nodes);
    answer.put("edge_count", written.edges);
    answer.put("bytes", bytes);
    if written.redactions > 0 {
        answer.put("redactions", written.redactions);
    }
    for (name, left_out) in [
        ("edges_left_out", written.edges_left_out),
        ("nodes_left_out", written.nodes_left_out),
    ] {
        if left_out > 0 {
            answer.put(name, left_out);
        }
    }
    if !export.name.is_empty() {
        answer.put("file_name", export.file_name());
        answer.put(
            "hint",
            "nothing was written on the server; save the content under this name",
        );
    }
    if export.format == Format::Json {
        answer.put("schema_version", waggle_formats::backup::VERSION);
    }
    answer
}

fn linked(call: &ToolCall<'_>, export: &Description, written: &Written, bytes: u64, tokens: usize) -> Answer {
    let age = i64::try_from(EXPORT_LINK_AGE_MAX.as_millis()).unwrap_or(i64::MAX);
    let sealed = call.app.transfer.links.seal(export, call.caller, call.now);
    let link = Link {
        uri: format!("{}/api/exports/{sealed}", call.base_url),
        name: export.file_name(),
        mime_type: export.format.mime_type(),
    };
    let mut answer = counted(export, written, bytes);
    answer.put("expires_at", call.now.plus(age).to_string());
    // The link says it anyway; for clients that show the text alone.
    if tokens >= URI_TOKENS {
        answer.put("uri", link.uri.clone());
        answer.put(
            "hint",
            "get the uri with the same key; it gives the graph as it is when it is fetched; nothing was written on the \
             server",
        );
    }
    answer.link = Some(link);
    answer
}
