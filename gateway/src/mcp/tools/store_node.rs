//! Stores one memory as it was given.

use serde_json::Value;
use waggle_memory::kind::Kind;
use waggle_proto::wire::{Link, PossibleDuplicate, StoreMemoryRequest};

use super::ToolCall;
use super::observe_conversation::marks;
use crate::fault::Fault;
use crate::mcp::arguments::Arguments;
use crate::mcp::result::Answer;
use crate::mcp::translate;
use crate::route::timed;

pub(super) async fn run(call: &ToolCall<'_>) -> Result<Answer, Fault> {
    let arguments = &call.arguments;
    not_blank(arguments, "label")?;
    not_blank(arguments, "content")?;
    check_validity(arguments)?;
    let kind: Kind = arguments.text("node_type").parse().map_err(|_| Fault::internal())?;
    let request = StoreMemoryRequest {
        context: None,
        scope: Some(arguments.scope()),
        label: arguments.text("label").to_owned(),
        content: arguments.text("content").to_owned(),
        kind: u32::from(kind.number()),
        tags: arguments.texts("tags").to_vec(),
        source_prompt: arguments.text("source_prompt").to_owned(),
        valid_from: arguments.optional_time("valid_from").map(|at| at.0),
        valid_to: arguments.optional_time("valid_to").map(|at| at.0),
    };
    let reply = call
        .app
        .cluster
        .memory(call.caller, &call.call, |mut client, context, left| {
            let request = timed(
                StoreMemoryRequest {
                    context: Some(context),
                    ..request.clone()
                },
                left,
            );
            async move { client.store_memory(request).await }
        })
        .await?;
    let stored = reply.stored.unwrap_or_default();
    let fields = stored
        .memory
        .as_ref()
        .map(|memory| translate::full_node(memory, call.tenant()))
        .unwrap_or_default();
    let mut answer = Answer {
        head: marks(fields, &stored).map(),
        ..Answer::default()
    };
    answer.put_some("scope_note", reply.scope_note);
    put_findings(&mut answer, &reply.conflicts, &reply.possible_duplicates);
    Ok(answer)
}

/// What a write found out: conflicts that it opened, before those that the memory had, and similar memories that were
/// not merged.
pub(super) fn put_findings(answer: &mut Answer, opened: &[Link], duplicates: &[PossibleDuplicate]) {
    let own_id = answer
        .head
        .get("id")
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned();
    let mut conflicts: Vec<Value> = opened
        .iter()
        .map(|link| translate::conflict_seen_from(link, &own_id))
        .collect();
    if let Some(Value::Array(marks)) = answer.head.shift_remove("conflicts") {
        let known: Vec<Value> = conflicts.iter().map(|conflict| conflict["edge_id"].clone()).collect();
        conflicts.extend(marks.into_iter().filter(|mark| !known.contains(&mark["edge_id"])));
    }
    answer.put_some("conflicts", conflicts);
    answer.put_some(
        "possible_duplicates",
        duplicates.iter().map(translate::possible_duplicate).collect::<Vec<_>>(),
    );
}

/// Where the field was given, it says something.
pub(super) fn not_blank(arguments: &Arguments, name: &'static str) -> Result<(), Fault> {
    match arguments.optional_text(name) {
        Some(text) if text.trim().is_empty() => Err(Fault::validation(
            name,
            format!("field '{name}' is blank; say something"),
        )),
        _ => Ok(()),
    }
}

pub(super) fn check_validity(arguments: &Arguments) -> Result<(), Fault> {
    match (
        arguments.optional_time("valid_from"),
        arguments.optional_time("valid_to"),
    ) {
        (Some(from), Some(to)) if to <= from => Err(Fault::validation(
            "valid_to",
            format!("field 'valid_to' is {to}, not after valid_from {from}; swap them or leave one out"),
        )),
        _ => Ok(()),
    }
}
