//! Changes a memory; the node keeps the old version and wording.

use waggle_proto::wire::{TagList, UpdateMemoryRequest};

use super::ToolCall;
use super::store_node::{check_validity, not_blank, put_findings};
use crate::fault::Fault;
use crate::mcp::result::Answer;
use crate::mcp::translate;
use crate::route::timed;

pub(super) async fn run(call: &ToolCall<'_>) -> Result<Answer, Fault> {
    let arguments = &call.arguments;
    not_blank(arguments, "label")?;
    not_blank(arguments, "content")?;
    check_validity(arguments)?;
    let expected = arguments
        .optional_integer("expected_version")
        .and_then(|version| u32::try_from(version).ok());
    let request = UpdateMemoryRequest {
        context: None,
        id: arguments.id("node_id"),
        expected_version: expected,
        label: arguments.optional_text("label").map(str::to_owned),
        content: arguments.optional_text("content").map(str::to_owned),
        tags: arguments
            .optional_texts("tags")
            .map(|tags| TagList { tags: tags.to_vec() }),
        valid_from: arguments.optional_time("valid_from").map(|at| at.0),
        valid_to: arguments.optional_time("valid_to").map(|at| at.0),
        note: arguments.text("reason").to_owned(),
    };
    let unchanged = request.label.is_none()
        && request.content.is_none()
        && request.tags.is_none()
        && request.valid_from.is_none()
        && request.valid_to.is_none();
    if unchanged {
        return Err(Fault::validation(
            "content",
            "nothing to change; give at least one of content, label, tags, valid_from, valid_to",
        ));
    }
    let reply = call
        .app
        .cluster
        .memory(call.caller, &call.call, |mut client, context, left| {
            let request = timed(
                UpdateMemoryRequest {
                    context: Some(context),
                    ..request.clone()
                },
                left,
            );
            async move { client.update_memory(request).await }
        })
        .await?;
    let fields = reply
        .memory
        .as_ref()
        .map(|memory| translate::full_node(memory, call.tenant()))
        .unwrap_or_default();
    let mut answer = Answer {
        head: fields.map(),
        ..Answer::default()
    };
    answer.put("previous_version", reply.previous_version);
    put_findings(&mut answer, &reply.conflicts, &reply.possible_duplicates);
    Ok(answer)
}
