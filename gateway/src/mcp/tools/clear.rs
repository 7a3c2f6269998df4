//! Erases a session, a project or everything: three tools with one answer.

use serde_json::{Map, Value};
use waggle_memory::kind::Kind;
use waggle_proto::wire::clear_request::What;
use waggle_proto::wire::{ClearReply, ClearRequest};

use super::ToolCall;
use crate::fault::Fault;
use crate::mcp::result::Answer;
use crate::route::timed;

pub(super) async fn run(call: &ToolCall<'_>, what: What) -> Result<Answer, Fault> {
    let arguments = &call.arguments;
    let required = match what {
        What::Session => "session_id",
        What::Project => "project",
        What::All | What::Unspecified => "",
    };
    if !required.is_empty() && arguments.text(required).trim().is_empty() {
        return Err(Fault::validation(
            required,
            format!("field '{required}' is blank; name what to erase, see list_context_scopes"),
        ));
    }
    let request = ClearRequest {
        context: None,
        what: what.into(),
        project: arguments.text("project").to_owned(),
        session_id: arguments.text("session_id").to_owned(),
        confirm: arguments.flag("confirm"),
        dry_run: arguments.flag("dry_run"),
    };
    let reply = call
        .app
        .cluster
        .history(call.caller, &call.call, |mut client, context, left| {
            let request = timed(
                ClearRequest {
                    context: Some(context),
                    ..request.clone()
                },
                left,
            );
            async move { client.clear(request).await }
        })
        .await?;
    Ok(answer(call, what, &reply))
}

fn answer(call: &ToolCall<'_>, what: What, reply: &ClearReply) -> Answer {
    let mut by_type = Map::new();
    for kind in Kind::ALL {
        let count = reply.memories_by_kind.get(usize::from(kind.number())).copied();
        if let Some(count) = count.filter(|count| *count > 0) {
            by_type.insert(kind.word().to_owned(), count.into());
        }
    }
    let scope = match what {
        What::Session => "session",
        What::Project => "project",
        What::All | What::Unspecified => "all",
    };
    let mut answer = Answer::default();
    answer.put("scope", scope);
    answer.put_some("project", call.arguments.text("project"));
    answer.put_some("session_id", call.arguments.text("session_id"));
    answer.put("deleted_nodes", reply.memories_by_kind.iter().sum::<u64>());
    answer.put("deleted_edges", reply.links);
    answer.put("deleted_transcripts", reply.turns);
    answer.put("deleted_sessions", reply.sessions);
    answer.put("evidence_removed", reply.evidence);
    answer.put("counts_by_node_type", Value::Object(by_type));
    answer.put("dry_run", reply.dry_run);
    answer.put_some("receipt", reply.receipt.as_str());
    answer
}
