//! get_node_history: every version of a memory, what it rests on, its conflicts, its neighbourhood; or its tombstone.

use std::sync::Arc;

use waggle_memory::memory::Memory;
use waggle_memory::tables::typed::TenantRows;
use waggle_proto::wire::{self, HistoryReply, HistoryRequest, Version};

use super::related::Walk;
use super::{feed, views};
use crate::call::Call;
use crate::engine::Engine;
use crate::error::CallError;

/// Deepest walk.
const DEPTH_MAX: u32 = 5;
/// Newest versions shown: with content, 13 MiB at most.
const VERSIONS_MAX: usize = 200;
/// Newest evidence shown: 2 MiB at most.
const EVIDENCE_MAX: usize = 1_000;
/// Most related memories of one answer.
const RELATED_MAX: usize = 200;

pub(super) async fn handle(engine: &Arc<Engine>, request: HistoryRequest) -> Result<HistoryReply, CallError> {
    let call = Call::new(engine, request.context)?;
    let given = wire::memory_id("node_id", &request.id)?;
    let depth_max = request.max_depth.min(DEPTH_MAX);
    call.linearize().await?;
    call.read(move |engine, rows| {
        let id = rows.follow(given);
        let redirected_from = if id == given {
            Vec::new()
        } else {
            given.bytes().to_vec()
        };
        if let Some(tombstone) = rows.tombstone(id) {
            return Ok(HistoryReply {
                tombstone: Some(feed::tombstone(id, &tombstone)),
                redirected_from,
                ..HistoryReply::default()
            });
        }
        let memory = rows
            .memory(id)
            .ok_or_else(|| CallError::not_found("memory", &given.to_string()))?;
        let reply = of_memory(engine, rows, &memory, depth_max);
        Ok(HistoryReply {
            redirected_from,
            ..reply
        })
    })
    .await
}

fn of_memory(engine: &Engine, rows: TenantRows<'_>, memory: &Memory, depth_max: u32) -> HistoryReply {
    let now = engine.clock.wall();
    let walk = Walk {
        depth_max,
        closed_too: true,
        scheduled_too: true,
        now,
        project: Some(memory.scope.project_key()),
        may_cross: true,
    };
    let mut related: Vec<Memory> = walk
        .from(rows, &[memory.id])
        .into_iter()
        .map(|reached| reached.memory)
        .collect();
    let more = related.len() > RELATED_MAX;
    related.truncate(RELATED_MAX);
    let mut shown = related.clone();
    shown.push(memory.clone());
    let evidence = rows.evidence(memory.id, EVIDENCE_MAX);
    let records: Vec<_> = evidence.into_iter().map(|(_, evidence)| evidence).collect();
    let mut view = views::full(rows, memory, now);
    let with_evidence = wire::memory(memory, &records, now);
    view.evidence.clear();
    HistoryReply {
        memory: Some(view),
        versions: versions(rows, memory),
        evidence: with_evidence.evidence,
        conflicts: views::conflicts_at(rows, memory, true).iter().map(wire::link).collect(),
        related: related.iter().map(|other| feed::listed(rows, other, now)).collect(),
        links: views::links_among(rows, &shown),
        more,
        ..HistoryReply::default()
    }
}

/// Newest first. Who made a version, and why, is written on the one that it replaced.
fn versions(rows: TenantRows<'_>, memory: &Memory) -> Vec<Version> {
    let earlier = rows.versions(memory.id, VERSIONS_MAX);
    let mut states = vec![current(memory)];
    states.extend(earlier.iter().map(former));
    let made_by = earlier
        .iter()
        .map(|replaced| (&replaced.replaced_by.0, replaced.reason.word(), &replaced.note));
    for (state, (author, reason, note)) in states.iter_mut().zip(made_by) {
        state.author.clone_from(author);
        reason.clone_into(&mut state.reason);
        state.note.clone_from(note);
    }
    if let Some(first) = states.last_mut().filter(|state| state.version == 1) {
        first.author.clone_from(&memory.author.0);
        "store".clone_into(&mut first.reason);
    }
    let changed: Vec<Vec<String>> = states
        .iter()
        .zip(states.iter().skip(1))
        .map(|(new, old)| changed_fields(new, old))
        .collect();
    for (state, changed) in states.iter_mut().zip(changed) {
        state.changed = changed;
    }
    states
}

fn current(memory: &Memory) -> Version {
    Version {
        version: memory.version,
        recorded_at: memory.updated_at.0,
        label: memory.label.clone(),
        content: memory.content.clone(),
        kind: u32::from(memory.kind.number()),
        tags: memory.tags.clone(),
        valid_from: memory.valid_from.0,
        valid_to: memory.valid_to.map(|at| at.0),
        superseded_by: memory.superseded_by.map(|id| id.bytes().to_vec()).unwrap_or_default(),
        ..Version::default()
    }
}

fn former(version: &waggle_memory::memory::Version) -> Version {
    Version {
        version: version.version,
        recorded_at: version.recorded_at.0,
        label: version.label.clone(),
        content: version.content.clone(),
        kind: u32::from(version.kind.number()),
        tags: version.tags.clone(),
        valid_from: version.valid_from.0,
        valid_to: version.valid_to.map(|at| at.0),
        superseded_by: version.superseded_by.map(|id| id.bytes().to_vec()).unwrap_or_default(),
        ..Version::default()
    }
}

fn changed_fields(new: &Version, old: &Version) -> Vec<String> {
    let fields = [
        ("label", new.label != old.label),
        ("content", new.content != old.content),
        ("node_type", new.kind != old.kind),
        ("tags", new.tags != old.tags),
        ("valid_from", new.valid_from != old.valid_from),
        ("valid_to", new.valid_to != old.valid_to),
        ("superseded_by", new.superseded_by != old.superseded_by),
    ];
    let changed = fields.into_iter().filter(|(_, differs)| *differs);
    changed.map(|(name, _)| name.to_owned()).collect()
}
