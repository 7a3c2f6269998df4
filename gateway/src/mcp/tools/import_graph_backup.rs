//! Takes a backup in: one that is given in the call, or one that was uploaded before.

use bytes::Bytes;
use serde_json::{Value, json};
use waggle_formats::abhi::Importer;
use waggle_memory::id::Principal;
use waggle_proto::wire::import_head::Strategy;

use super::ToolCall;
use crate::fault::Fault;
use crate::mcp::arguments::Arguments;
use crate::mcp::result::Answer;
use crate::mcp::translate;
use crate::transfer::import::{Done, Import, run as import};
use crate::transfer::source::Source;

/// Renamed nodes that an answer names.
const RENAMED_SHOWN: usize = 50;
/// Conflicts that an answer names.
const CONFLICTS_SHOWN: usize = 50;

pub(super) async fn run(call: &ToolCall<'_>) -> Result<Answer, Fault> {
    let arguments = &call.arguments;
    refuse_paths(arguments)?;
    let wanted = Import {
        source: source(call)?,
        strategy: strategy(arguments.text("strategy"))?,
        project: arguments.optional_text("project").map(str::to_owned),
        allow_dangling: arguments.flag("allow_dangling"),
        dry_run: arguments.flag("dry_run"),
        importer: Importer {
            author: Principal(call.caller.principal.clone()),
            at: call.now,
        },
    };
    let _permit = call.app.transfer.enter()?;
    let done = import(call.app, call.caller, &call.call, &wanted).await?;
    set_used(call);
    let mut answer = Answer::default();
    if let Value::Object(fields) = done_json(&done, &wanted) {
        answer.head = fields;
    }
    Ok(answer)
}

/// The server opens no file by name.
pub(super) fn refuse_paths(arguments: &Arguments) -> Result<(), Fault> {
    for name in ["input_path", "root_path"] {
        if arguments.optional_text(name).is_some() {
            return Err(Fault::new(
                "path_not_supported",
                format!("'{name}': pass content, or upload first (POST /api/uploads) and pass upload_id"),
            )
            .with_field(name));
        }
    }
    Ok(())
}

pub(super) fn source(call: &ToolCall<'_>) -> Result<Source, Fault> {
    let arguments = &call.arguments;
    match (arguments.optional_text("content"), arguments.optional_text("upload_id")) {
        (Some(content), None) => Ok(Source::Inline(Bytes::from(content.to_owned()))),
        (None, Some(id)) => call.app.transfer.uploads.find(id, call.caller, call.now),
        _ => Err(Fault::validation(
            "content",
            "give exactly one of content and upload_id",
        )),
    }
}

/// After an import that was more than a trial.
pub(super) fn set_used(call: &ToolCall<'_>) {
    if let Some(id) = call.arguments.optional_text("upload_id")
        && !call.arguments.flag("dry_run")
    {
        call.app.transfer.uploads.set_used(id);
    }
}

pub(crate) fn strategy(word: &str) -> Result<Strategy, Fault> {
    Ok(match word {
        "" | "merge" => Strategy::Merge,
        "skip-existing" => Strategy::SkipExisting,
        "overwrite" => Strategy::Overwrite,
        "branch" => Strategy::Branch,
        other => {
            return Err(Fault::validation(
                "strategy",
                format!(
                    "strategy '{}' is not one of merge, skip-existing, overwrite, branch",
                    other.escape_debug()
                ),
            ));
        }
    })
}

/// The report of an import, for tools and REST alike.
pub(crate) fn done_json(done: &Done, wanted: &Import) -> Value {
    let reply = &done.reply;
    let count = |counted: &Option<waggle_proto::wire::ImportCount>| counted.unwrap_or_default();
    let (nodes, edges, turns) = (count(&reply.memories), count(&reply.links), count(&reply.turns));
    let conflicts: Vec<Value> = reply
        .conflicts
        .iter()
        .take(CONFLICTS_SHOWN)
        .map(|conflict| {
            json!({
                "record": conflict.record,
                "id": translate::id(&conflict.id),
                "reason": conflict.reason,
                "fields": conflict.field,
            })
        })
        .collect();
    let mut report = json!({
        "format": done.format,
        "nodes_created": nodes.created,
        "nodes_updated": nodes.updated,
        "nodes_unchanged": nodes.unchanged,
        "edges_created": edges.created,
        "edges_updated": edges.updated,
        "edges_unchanged": edges.unchanged,
        "transcripts_created": turns.created,
        "sessions_created": count(&reply.sessions).created,
        "tombstones_created": count(&reply.tombstones).created,
        "dangling_edges_dropped": done.dangling_dropped,
        "conflicts": conflicts,
        "conflict_count": reply.conflict_count,
        "hash_verified": done.hash_verified,
        "dry_run": wanted.dry_run,
        "commands": reply.commands,
    });
    if !reply.renamed.is_empty()
        && let Some(fields) = report.as_object_mut()
    {
        let renamed: Vec<Value> = reply
            .renamed
            .iter()
            .take(RENAMED_SHOWN)
            .map(|renamed| json!({"from": translate::id(&renamed.from), "to": translate::id(&renamed.to)}))
            .collect();
        fields.insert("renamed".into(), renamed.into());
    }
    report
}
