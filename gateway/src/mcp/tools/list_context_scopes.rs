//! Projects, agents and sessions that exist, most recently used first.

use serde_json::Value;
use waggle_proto::wire::{ListScopesReply, ListScopesRequest};

use super::ToolCall;
use super::get_related::{last_used, named, unseen};
use crate::fault::Fault;
use crate::mcp::result::{Answer, Item};
use crate::mcp::translate::Fields;
use crate::route::timed;

pub(super) async fn run(call: &ToolCall<'_>) -> Result<Answer, Fault> {
    let project = call.arguments.text("project").to_owned();
    let reply = call
        .app
        .cluster
        .memory(call.caller, &call.call, |mut client, context, left| {
            let request = timed(
                ListScopesRequest {
                    context: Some(context),
                    project: project.clone(),
                },
                left,
            );
            async move { client.list_scopes(request).await }
        })
        .await?;
    let mut answer = Answer {
        lists: vec!["projects", "agent_ids", "session_ids", "namespaces", "details"],
        ..Answer::default()
    };
    if reply.truncated {
        answer.put("warnings", vec!["list_cut"]);
    }
    answer.items = unseen(items(&reply), call.walk.as_ref());
    Ok(answer)
}

/// One of each kind in turn, so that a short page shows the newest of all.
fn items(reply: &ListScopesReply) -> Vec<Item> {
    let mut kinds = [
        projects(reply).into_iter(),
        agents(reply).into_iter(),
        sessions(reply).into_iter(),
        namespaces(reply).into_iter(),
    ];
    let mut items = Vec::new();
    loop {
        let before = items.len();
        kinds.iter_mut().for_each(|kind| items.extend(kind.next()));
        if items.len() == before {
            return items;
        }
    }
}

/// A bare name, with its row among the details.
fn item(list: &'static str, name: &str, identity: &str, detail: Fields) -> Item {
    let mut item = named(list, Fields::default(), identity);
    item.value = Value::from(name);
    item.also.push(("details", detail.value()));
    item
}

fn projects(reply: &ListScopesReply) -> Vec<Item> {
    let row = |project: &waggle_proto::wire::ProjectInfo| {
        let detail = Fields::default()
            .with("kind", "project")
            .with("project", project.name.as_str())
            .with("namespace", project.namespace.as_str())
            .with("nodes", project.memories)
            .with("turns", project.turns)
            .with("sessions", project.sessions)
            .with("last_used_at", last_used(project.last_used_at));
        item("projects", &project.name, &project.name, detail)
    };
    reply.projects.iter().map(row).collect()
}

fn agents(reply: &ListScopesReply) -> Vec<Item> {
    let row = |agent: &waggle_proto::wire::AgentInfo| {
        let detail = Fields::default()
            .with("kind", "agent")
            .with("agent_id", agent.name.as_str())
            .with("nodes", agent.memories)
            .with("turns", agent.turns)
            .with("last_used_at", last_used(agent.last_used_at));
        item("agent_ids", &agent.name, &agent.name, detail)
    };
    reply.agents.iter().map(row).collect()
}

fn namespaces(reply: &ListScopesReply) -> Vec<Item> {
    let row = |namespace: &String| {
        let detail = Fields::default()
            .with("kind", "namespace")
            .with("namespace", namespace.as_str());
        item("namespaces", namespace, namespace, detail)
    };
    reply.namespaces.iter().map(row).collect()
}

fn sessions(reply: &ListScopesReply) -> Vec<Item> {
    let row = |session: &waggle_proto::wire::SessionInfo| {
        let detail = Fields::default()
            .with("kind", "session")
            .with("session_id", session.session_id.as_str())
            .with("project", session.project.as_str())
            .with("title", session.title.as_str())
            .with("nodes", session.memories)
            .with("turns", session.turns)
            .with("agent_ids", session.agents.clone())
            .with("first_used_at", last_used(session.first_used_at))
            .with("last_used_at", last_used(session.last_used_at));
        // The same session id may be in two projects.
        item(
            "session_ids",
            &session.session_id,
            &format!("{}\0{}", session.project, session.session_id),
            detail,
        )
    };
    reply.sessions.iter().map(row).collect()
}
