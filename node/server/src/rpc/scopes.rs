//! list_context_scopes: what was used, most recently used first.

use std::collections::BTreeSet;
use std::sync::Arc;

use waggle_memory::extract::secrets::find_secrets;
use waggle_memory::scope::name_key;
use waggle_memory::tables::typed::TenantRows;
use waggle_memory::transcript::{Project, Session};
use waggle_proto::wire::{AgentInfo, ListScopesReply, ListScopesRequest, ProjectInfo, SessionInfo};

use crate::call::Call;
use crate::engine::Engine;
use crate::error::CallError;

/// Most projects, agents and sessions of one answer, each: the most recently used.
const LISTED_MAX: usize = 1_000;
/// Most of each that are looked at. They are kept by name, so finding the latest used means looking at all.
const LOOKED_AT_MAX: usize = 20_000;

pub(super) async fn handle(engine: &Arc<Engine>, request: ListScopesRequest) -> Result<ListScopesReply, CallError> {
    let call = Call::new(engine, request.context)?;
    call.linearize().await?;
    call.read(move |_, rows| Ok(listed(rows, &request.project))).await
}

fn listed(rows: TenantRows<'_>, project: &str) -> ListScopesReply {
    let project_key = name_key(project);
    let chosen = (!project_key.is_empty()).then_some(project_key.as_str());
    let mut projects: Vec<Project> = match chosen {
        Some(_) => rows.project(project).into_iter().collect(),
        None => rows.projects(LOOKED_AT_MAX),
    };
    projects.sort_by_key(|project| std::cmp::Reverse(project.last_used_at));
    let mut sessions: Vec<Session> = rows.sessions(chosen, LOOKED_AT_MAX);
    let mut agents = rows.agents(LOOKED_AT_MAX);
    if chosen.is_some() {
        // Also those that never named a session: they are noted at the one without a name.
        let here: BTreeSet<String> = sessions
            .iter()
            .flat_map(|session| session.agents.iter().map(|agent| name_key(agent)))
            .collect();
        agents.retain(|agent| here.contains(&name_key(&agent.name)));
    }
    agents.sort_by_key(|agent| std::cmp::Reverse(agent.last_used_at));
    sessions.retain(|session| !session.session_id.is_empty());
    sessions.sort_by_key(|session| std::cmp::Reverse(session.last_used_at));
    let truncated = [projects.len(), sessions.len(), agents.len()]
        .iter()
        .any(|found| *found > LISTED_MAX);
    projects.truncate(LISTED_MAX);
    sessions.truncate(LISTED_MAX);
    agents.truncate(LISTED_MAX);
    let mut namespaces: Vec<String> = projects.iter().map(|project| project.namespace.clone()).collect();
    namespaces.sort();
    namespaces.dedup();
    ListScopesReply {
        projects: projects
            .into_iter()
            .filter(|project| !project.name.is_empty())
            .map(project_info)
            .collect(),
        agents: agents
            .into_iter()
            .map(|agent| AgentInfo {
                name: agent.name,
                memories: u64::from(agent.memory_count),
                turns: u64::from(agent.turn_count),
                last_used_at: agent.last_used_at.0,
            })
            .collect(),
        sessions: sessions.into_iter().map(session_info).collect(),
        namespaces,
        truncated,
    }
}

fn project_info(project: Project) -> ProjectInfo {
    ProjectInfo {
        memories: project.counters.memories(),
        turns: project.counters.turns,
        sessions: project.counters.sessions,
        last_used_at: project.last_used_at.0,
        name: project.name,
        namespace: project.namespace,
    }
}

/// First words of a conversation may hold a secret, and lists are read by more people than turns are.
fn shown_title(title: String) -> String {
    match find_secrets(&title).first() {
        None => title,
        Some(secret) => {
            let before = title.get(..secret.start).unwrap_or_default();
            format!("{before}{}", secret.kind.mark())
        }
    }
}

fn session_info(session: Session) -> SessionInfo {
    SessionInfo {
        project: session.project,
        session_id: session.session_id,
        title: shown_title(session.title),
        turns: u64::from(session.turn_count),
        memories: u64::from(session.memory_count),
        first_used_at: session.first_used_at.0,
        last_used_at: session.last_used_at.0,
        agents: session.agents,
    }
}
