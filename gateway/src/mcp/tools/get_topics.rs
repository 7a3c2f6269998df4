//! What the memories of a scope are about.

use serde_json::{Value, json};
use waggle_proto::wire::{Topic, TopicsReply, TopicsRequest};

use super::ToolCall;
use super::get_related::{named, unseen};
use crate::fault::Fault;
use crate::mcp::result::{Answer, Item};
use crate::mcp::translate::{self, Fields};
use crate::route::timed;

/// Tags shown of one topic.
const TAGS_MAX: usize = 5;
/// Id and label of the memories that belong to no topic.
const UNLINKED: &str = "unlinked";

pub(super) async fn run(call: &ToolCall<'_>) -> Result<Answer, Fault> {
    let request = TopicsRequest {
        context: None,
        scope: Some(call.arguments.scope()),
        topics_max: call.arguments.count("max_topics"),
    };
    let reply = call
        .app
        .cluster
        .insight(call.caller, &call.call, |mut client, context, left| {
            let request = timed(
                TopicsRequest {
                    context: Some(context),
                    ..request.clone()
                },
                left,
            );
            async move { client.topics(request).await }
        })
        .await?;
    let mut answer = head(&reply);
    answer.items = unseen(reply.topics.iter().map(item).collect(), call.walk.as_ref());
    Ok(answer)
}

fn head(reply: &TopicsReply) -> Answer {
    let mut answer = Answer {
        lists: vec!["clusters"],
        ..Answer::default()
    };
    answer.put("total_clusters", reply.topics_total);
    answer.put("total_nodes", reply.looked_at);
    answer.put("computed_at", translate::time(reply.computed_at));
    if reply.cut {
        // Older memories, or links beyond a bound, were left out.
        answer.put("warnings", vec!["scope_cut"]);
    }
    answer
}

fn item(topic: &Topic) -> Item {
    let id = if topic.id.is_empty() {
        UNLINKED.to_owned()
    } else {
        translate::id(&topic.id)
    };
    let label = match topic.memories.first() {
        _ if topic.id.is_empty() => UNLINKED.to_owned(),
        Some(central) if topic.words.is_empty() => central.label.clone(),
        _ => topic.words.join(", "),
    };
    let tags: Vec<&String> = topic
        .tags
        .iter()
        .filter(|tag| !translate::is_bookkeeping(tag))
        .take(TAGS_MAX)
        .collect();
    let nodes: Vec<Value> = topic
        .memories
        .iter()
        .map(|memory| {
            json!({
                "id": translate::id(&memory.id),
                "label": memory.label,
                "node_type": translate::kind(memory.kind),
            })
        })
        .collect();
    let cut = nodes.len() < usize::try_from(topic.memory_count).unwrap_or(usize::MAX);
    let fields = Fields::default()
        .with("cluster_id", id.as_str())
        .with("label", label)
        .with("node_count", topic.memory_count)
        .with("top_tags", json!(tags))
        .with("nodes", nodes)
        .with_if(cut, "nodes_cut", true);
    named("clusters", fields, &id)
}
