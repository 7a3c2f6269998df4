//! Pairs of memories that say nearly the same.

use serde_json::{Value, json};
use waggle_proto::wire::{DuplicatePair, DuplicatesReply, DuplicatesRequest};

use super::ToolCall;
use super::get_related::unseen;
use crate::fault::Fault;
use crate::mcp::result::{Answer, Item};
use crate::mcp::translate;
use crate::route::timed;

pub(super) async fn run(call: &ToolCall<'_>) -> Result<Answer, Fault> {
    let threshold = call.arguments.number("threshold");
    let request = DuplicatesRequest {
        context: None,
        scope: Some(call.arguments.scope()),
        // Checked to lie between 0.85 and 0.99.
        threshold_thousandths: (threshold * 1_000.0).round() as u32,
    };
    let reply = call
        .app
        .cluster
        .insight(call.caller, &call.call, |mut client, context, left| {
            let request = timed(
                DuplicatesRequest {
                    context: Some(context),
                    ..request.clone()
                },
                left,
            );
            async move { client.duplicates(request).await }
        })
        .await?;
    let mut answer = head(&reply, threshold);
    answer.items = unseen(reply.pairs.iter().filter_map(item).collect(), call.walk.as_ref());
    Ok(answer)
}

fn head(reply: &DuplicatesReply, threshold: f64) -> Answer {
    let mut answer = Answer {
        lists: vec!["pairs"],
        ..Answer::default()
    };
    answer.put("threshold", threshold);
    answer.put("total_nodes_scanned", reply.scanned);
    let mut warnings = Vec::new();
    if reply.cut {
        // The newest memories and the nearest pairs; a narrower scope shows the rest.
        warnings.push("scan_cut");
    }
    if reply.awaiting_vectors > 0 {
        warnings.push("vectors_pending");
    }
    answer.put_some("warnings", warnings);
    answer
}

fn item(pair: &DuplicatePair) -> Option<Item> {
    let (a, b) = (pair.a.as_ref()?, pair.b.as_ref()?);
    let value: Value = json!({
        "a": translate::brief_node(a).value(),
        "b": translate::brief_node(b).value(),
        "similarity": translate::thousandths(pair.similarity_thousandths),
        "blocked_by": pair.blocked_by,
    });
    let identity = [a.id.as_slice(), b.id.as_slice()].concat();
    Some(Item::listed("pairs", value, &identity))
}
