//! get_stats: from counters that apply keeps, at the same cost for any size.

use std::collections::BTreeSet;
use std::sync::Arc;

use waggle_memory::kind::{Confidence, Relationship};
use waggle_memory::memory::{Memory, State};
use waggle_memory::tables::typed::TenantRows;
use waggle_memory::time::Millis;
use waggle_proto::wire::{ConnectedMemory, LinkCount, StatsReply, StatsRequest};

use super::views;
use crate::call::Call;
use crate::engine::Engine;
use crate::error::CallError;

/// Memories in the lists of the most recent and the best connected.
const LISTED: usize = 10;
/// Newest changes that are looked through for current memories.
const LOOKED_THROUGH_MAX: usize = 500;

pub(super) async fn handle(engine: &Arc<Engine>, request: StatsRequest) -> Result<StatsReply, CallError> {
    let call = Call::new(engine, request.context)?;
    call.linearize().await?;
    call.read(move |engine, rows| Ok(counted(engine, rows, &request.project)))
        .await
}

fn counted(engine: &Engine, rows: TenantRows<'_>, project: &str) -> StatsReply {
    let now = engine.clock.wall();
    let state = rows.state();
    let project_row = rows.project(project);
    let all = project.trim().is_empty();
    let counters = if all {
        state.counters.clone()
    } else {
        project_row.clone().unwrap_or_default().counters
    };
    let project_key = waggle_memory::scope::name_key(project);
    let in_project = |key: &str| all || key == project_key;
    let recent = recently_changed(rows, now, in_project);
    let links_by_kind = Relationship::ALL.iter().flat_map(|relationship| {
        let counters = &counters;
        Confidence::ALL.iter().filter_map(move |confidence| {
            let row = counters.links.get(usize::from(relationship.number()))?;
            let count = *row.get(usize::from(confidence.number()))?;
            (count > 0).then_some(LinkCount {
                relationship: u32::from(relationship.number()),
                confidence: u32::from(confidence.number()),
                count,
            })
        })
    });
    let index = engine.index_status(rows.tenant());
    StatsReply {
        memories: counters.memories(),
        links: counters.links_total(),
        memories_by_kind: counters.memories_by_kind.to_vec(),
        links_by_kind: links_by_kind.collect(),
        open_conflicts: counters.open_conflicts,
        closed: counters.memories_closed,
        sessions: counters.sessions,
        turns: counters.turns,
        text_bytes: counters.text_bytes,
        awaiting_vectors: state.awaiting_vectors,
        embedding_model: engine.embedder.model().to_owned(),
        index_state: index.word.to_owned(),
        index_bytes: u64::try_from(index.bytes).unwrap_or(u64::MAX),
        index_documents: u64::try_from(index.documents).unwrap_or(u64::MAX),
        most_connected: state
            .most_connected
            .iter()
            .filter_map(|(id, links)| {
                let memory = rows
                    .memory(*id)
                    .filter(|memory| in_project(&memory.scope.project_key()))?;
                Some(ConnectedMemory {
                    id: id.bytes().to_vec(),
                    label: memory.label,
                    links: *links,
                })
            })
            .collect(),
        most_recent: recent.iter().map(|memory| views::brief(rows, memory, now).0).collect(),
        project_known: all || project_row.is_some(),
    }
}

/// Current memories that were stored or changed last, newest first, from the feed of changes.
fn recently_changed(rows: TenantRows<'_>, now: Millis, in_project: impl Fn(&str) -> bool) -> Vec<Memory> {
    let mut seen = BTreeSet::new();
    let changes = rows.changes_back(rows.state().changes, LOOKED_THROUGH_MAX);
    changes
        .into_iter()
        .filter(|(_, change)| change.link.is_none() && seen.insert(change.memory))
        .filter_map(|(_, change)| rows.memory(change.memory))
        .filter(|memory| memory.state_at(now) == State::Current && in_project(&memory.scope.project_key()))
        .take(LISTED)
        .collect()
}
