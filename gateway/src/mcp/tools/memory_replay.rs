//! The turns that a memory rests on, and those under the memories that it reflects on.

use serde_json::{Value, json};
use waggle_proto::wire::{self, ReplayEntry, ReplayReply, ReplayRequest};

use super::ToolCall;
use crate::cursor::Position;
use crate::fault::Fault;
use crate::mcp::result::{Answer, Item};
use crate::mcp::translate;
use crate::route::timed;

/// Longest text of one entry unless `verbose` is set.
const ENTRY_BYTES_MAX: u32 = 102_400;
/// With `verbose`: as long as any page may be.
const ENTRY_BYTES_VERBOSE: u32 = 4 * 1024 * 1024;

pub(super) async fn run(call: &ToolCall<'_>) -> Result<Answer, Fault> {
    let arguments = &call.arguments;
    check_agent(call)?;
    let (shown, skip) = match call.walk.as_ref().map(|walk| &walk.position) {
        None | Some(Position::Behind(..)) => (Vec::new(), 0),
        Some(Position::Shown(shown)) => (shown.clone(), 0),
        Some(Position::Offset(offset)) => (Vec::new(), *offset),
    };
    let verbose = arguments.flag("verbose");
    let request = ReplayRequest {
        context: None,
        memory_id: arguments.id("memory_id"),
        depth: arguments
            .optional_integer("depth")
            .map(|depth| u32::try_from(depth).unwrap_or(u32::MAX)),
        full: arguments.flag("full"),
        entry_bytes_max: if verbose { ENTRY_BYTES_VERBOSE } else { ENTRY_BYTES_MAX },
        shown,
        skip,
    };
    let reply = call
        .app
        .cluster
        .insight(call.caller, &call.call, |mut client, context, left| {
            let request = timed(
                ReplayRequest {
                    context: Some(context),
                    ..request.clone()
                },
                left,
            );
            async move { client.replay(request).await }
        })
        .await?;
    answer(&reply, &translate::id(&request.memory_id))
}

/// A caller replays as itself; the name is the author that its memories carry, or the id of its key.
fn check_agent(call: &ToolCall<'_>) -> Result<(), Fault> {
    let (named, caller) = (call.arguments.text("agent_id"), call.caller);
    if named.is_empty() || named == caller.principal || named == caller.key_id {
        return Ok(());
    }
    let what = format!(
        "agent_id mismatch: caller '{}' may only replay as itself",
        caller.principal
    );
    Err(Fault::new("authorization_failed", what).with_field("agent_id"))
}

fn answer(reply: &ReplayReply, memory_id: &str) -> Result<Answer, Fault> {
    let failed = reply.entries.iter().filter(|entry| entry.gone).count();
    if failed > 0 && reply.entries.len() == failed && reply.rows_total as usize == failed {
        return Err(Fault::new(
            "not_found",
            "every transcript under this memory was erased; the memory itself is still there",
        ));
    }
    let empty_reason = match (reply.found, reply.rows_total) {
        (false, _) => Some("not_found"),
        (true, 0) => Some("no_transcripts"),
        (true, _) => None,
    };
    let mut answer = Answer {
        lists: vec!["entries"],
        more: reply.rows_left as usize > reply.entries.len(),
        ..Answer::default()
    };
    answer.put("memory_id", memory_id);
    answer.put("count", reply.rows_total);
    answer.put("partial", failed > 0);
    answer.put("depth_used", reply.depth_used);
    answer.put("depth_cap", reply.depth_cap);
    answer.put("walk_truncated", reply.walk_truncated);
    answer.put("empty_reason", empty_reason);
    answer.items = reply.entries.iter().map(item).collect();
    Ok(answer)
}

fn item(entry: &ReplayEntry) -> Item {
    Item {
        hash: wire::short_hash(true, &entry.turn_id),
        ..Item::listed("entries", value(entry), &entry.turn_id)
    }
}

/// Every field is there whether it has a value or not: programs read it. What the store does not know, such as the
/// size of a row under compression, is not claimed.
fn value(entry: &ReplayEntry) -> Value {
    let transcript_id = translate::id(&entry.turn_id);
    let memory_ids = translate::ids(&entry.memory_ids);
    let spans: Vec<Value> = entry.spans.iter().map(|span| json!([span.start, span.end])).collect();
    if entry.gone {
        return json!({
            "transcript_id": transcript_id,
            "source_memory_id": memory_ids.first(),
            "memory_ids": memory_ids,
            "distance": entry.distance,
            "content": null,
            "status": "erased",
            "error": {"error_code": "not_found", "error": "the transcript was erased"},
        });
    }
    let scope = entry.scope.clone().unwrap_or_default();
    let only = match entry.spans.as_slice() {
        [span] => Some(span),
        _ => None,
    };
    json!({
        "transcript_id": transcript_id,
        "namespace": entry.namespace,
        "session": scope.session_id,
        "role": translate::role(entry.role),
        "turn_index": entry.turn_index,
        "shape": "turn",
        "created_at": translate::time(entry.created_at),
        "observed_at": translate::time(entry.observed_at),
        "archived_at": null,
        "expires_at": null,
        "source_memory_id": memory_ids.first(),
        "memory_ids": memory_ids,
        "distance": entry.distance,
        "original_size": entry.original_bytes,
        "span_start": only.map(|span| span.start),
        "span_end": only.map(|span| span.end),
        "spans": spans,
        "content": entry.text,
        "content_bytes": entry.text.len(),
        "truncated": entry.cut,
        "status": if entry.cut { "truncated" } else { "ok" },
        "error": null,
    })
}
