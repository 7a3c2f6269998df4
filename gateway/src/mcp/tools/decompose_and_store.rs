//! Stores a text of the caller, piece by piece.

use serde_json::Value;
use waggle_proto::wire::{DecomposeReply, DecomposeRequest, StoredMemory};

use super::ToolCall;
use super::observe_conversation::marks;
use crate::fault::Fault;
use crate::mcp::result::{Answer, Attached, Item, Needs};
use crate::mcp::translate;
use crate::route::timed;

pub(super) async fn run(call: &ToolCall<'_>) -> Result<Answer, Fault> {
    let arguments = &call.arguments;
    let request = DecomposeRequest {
        context: None,
        scope: Some(arguments.scope()),
        content: arguments.text("content").to_owned(),
        about: arguments.text("context").to_owned(),
    };
    let reply = call
        .app
        .cluster
        .insight(call.caller, &call.call, |mut client, context, left| {
            let request = timed(
                DecomposeRequest {
                    context: Some(context),
                    ..request.clone()
                },
                left,
            );
            async move { client.decompose(request).await }
        })
        .await?;
    Ok(answer(&reply))
}

fn answer(reply: &DecomposeReply) -> Answer {
    let created = reply.stored.iter().filter(|stored| stored.created).count();
    let mut answer = Answer {
        lists: vec!["nodes", "edges"],
        ..Answer::default()
    };
    answer.put("created_count", created);
    answer.put("reused_count", reply.stored.len() - created);
    answer.put_some("context_node_id", translate::id(&reply.about_id));
    if reply.redactions > 0 {
        answer.put("redactions", reply.redactions);
    }
    answer.put_some("scope_note", reply.scope_note.as_str());
    if reply.stored.is_empty() {
        answer.put("warnings", vec!["nothing_to_store"]);
    }
    for link in &reply.conflicts {
        answer.items.push(Item {
            id: None,
            ..Item::listed("conflicts", translate::conflict(link), &link.id)
        });
    }
    let mut known: Vec<[u8; 16]> = Vec::new();
    for one in &reply.stored {
        let Some(memory) = &one.memory else { continue };
        let key = translate::key(&memory.id);
        // Two pieces may end as one memory.
        if !known.contains(&key) {
            known.push(key);
            answer.items.push(Item::listed("nodes", node(one), &memory.id));
        }
    }
    for link in &reply.links {
        let value = translate::brief_edge(link).value();
        let (source, target) = (translate::key(&link.source), translate::key(&link.target));
        if known.contains(&source) && known.contains(&target) {
            answer.attached.push(Attached {
                list: "edges",
                value,
                needs: Needs::Both(source, target),
            });
        } else {
            answer.items.push(Item {
                id: None,
                ..Item::listed("edges", value, &link.id)
            });
        }
    }
    answer
}

fn node(stored: &StoredMemory) -> Value {
    let fields = stored.memory.as_ref().map(translate::brief_node).unwrap_or_default();
    marks(fields, stored).value()
}
