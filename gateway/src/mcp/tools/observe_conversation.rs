//! Stores a turn verbatim and what the node extracts from it.

use serde_json::Value;
use waggle_memory::time::Millis;
use waggle_proto::wire::{ObserveReply, ObserveRequest, StoredMemory};

use super::ToolCall;
use crate::fault::Fault;
use crate::mcp::result::{Answer, Attached, Item, Needs};
use crate::mcp::translate::{self, Fields};
use crate::route::timed;

/// Clocks differ a little; more than this is a mistake.
const AHEAD_MAX: i64 = 5 * 60 * Millis::SECOND;

pub(super) async fn run(call: &ToolCall<'_>) -> Result<Answer, Fault> {
    let arguments = &call.arguments;
    let (user, assistant) = (arguments.text("user_message"), arguments.text("assistant_response"));
    if user.trim().is_empty() && assistant.trim().is_empty() {
        return Err(Fault::validation(
            "user_message",
            "fields 'user_message' and 'assistant_response' are both blank; give at least one",
        ));
    }
    let observed_at = arguments.optional_time("observed_at");
    if let Some(at) = observed_at.filter(|at| *at > call.now.plus(AHEAD_MAX)) {
        return Err(Fault::validation(
            "observed_at",
            format!("field 'observed_at' is {at}, more than 5 minutes ahead; leave it out for now"),
        ));
    }
    let request = ObserveRequest {
        context: None,
        scope: Some(arguments.scope()),
        user_message: user.to_owned(),
        assistant_response: assistant.to_owned(),
        observed_at: observed_at.map(|at| at.0),
    };
    let reply = call
        .app
        .cluster
        .memory(call.caller, &call.call, |mut client, context, left| {
            let request = timed(
                ObserveRequest {
                    context: Some(context),
                    ..request.clone()
                },
                left,
            );
            async move { client.observe(request).await }
        })
        .await?;
    Ok(answer(&reply))
}

fn answer(reply: &ObserveReply) -> Answer {
    let created = reply.stored.iter().filter(|stored| stored.created).count();
    let mut answer = Answer {
        lists: vec!["stored_nodes", "edges"],
        ..Answer::default()
    };
    answer.put("turn_id", translate::id(&reply.pair_id));
    answer.put("transcript_ids", translate::ids(&reply.transcript_ids));
    answer.put("verbatim_stored", !reply.transcript_ids.is_empty());
    answer.put("nodes_extracted", reply.stored.len());
    answer.put("edges_inferred", reply.links.len());
    answer.put("created_count", created);
    answer.put("reused_count", reply.stored.len() - created);
    answer.put("redactions", reply.redactions);
    if reply.secrets_left_out > 0 {
        answer.put(
            "warnings",
            vec![format!(
                "secrets_left_out: {} places look like secrets; no memory holds them, the stored conversation does",
                reply.secrets_left_out
            )],
        );
    }
    answer.put_some("extraction_errors", reply.extraction_errors.clone());
    answer.put_some("scope_note", reply.scope_note.as_str());
    // Conflicts ask for a decision: they are shown before what was stored without one.
    for link in &reply.conflicts {
        answer.items.push(Item {
            id: None,
            ..Item::listed("conflicts", translate::conflict(link), &link.id)
        });
    }
    let mut stored: Vec<([u8; 16], Item)> = Vec::new();
    for one in &reply.stored {
        let Some(memory) = &one.memory else { continue };
        let key = translate::key(&memory.id);
        // Two statements of a turn may end as one memory.
        if stored.iter().all(|(known, _)| *known != key) {
            stored.push((key, Item::listed("stored_nodes", stored_node(one), &memory.id)));
        }
    }
    let known: Vec<[u8; 16]> = stored.iter().map(|(key, _)| *key).collect();
    answer.items.extend(stored.into_iter().map(|(_, item)| item));
    for link in &reply.links {
        let (source, target) = (translate::key(&link.source), translate::key(&link.target));
        let value = translate::brief_edge(link).value();
        if known.contains(&source) && known.contains(&target) {
            answer.attached.push(Attached {
                list: "edges",
                value,
                needs: Needs::Both(source, target),
            });
        } else {
            // To a memory that was there before.
            answer.items.push(Item {
                id: None,
                ..Item::listed("edges", value, &link.id)
            });
        }
    }
    answer
}

fn stored_node(stored: &StoredMemory) -> Value {
    let fields = stored.memory.as_ref().map(translate::brief_node).unwrap_or_default();
    marks(fields, stored).value()
}

/// What became of one memory.
pub(super) fn marks(fields: Fields, stored: &StoredMemory) -> Fields {
    fields
        .with("created", stored.created)
        .with("dedup_reason", stored.dedup_reason.as_str())
        .with_if(
            !stored.created,
            "similarity",
            translate::thousandths(stored.similarity_thousandths),
        )
        .with_if(stored.alias_added, "alias_added", true)
        .with_if(stored.aliases_full, "aliases_full", true)
}
