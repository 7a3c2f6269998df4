//! get_related: the neighbourhood of a memory, strongest first.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use waggle_memory::id::{LinkId, MemoryId};
use waggle_memory::kind::Confidence;
use waggle_memory::link::Link;
use waggle_memory::memory::{Memory, State};
use waggle_memory::tables::typed::TenantRows;
use waggle_memory::time::Millis;
use waggle_proto::wire::{self, RelatedNode, RelatedReply, RelatedRequest};

use super::views;
use crate::call::Call;
use crate::engine::Engine;
use crate::error::CallError;

/// Deepest walk.
const DEPTH_MAX: u32 = 5;
/// Most memories of one answer.
const NODES_MAX: usize = 200;
/// Most memories visited, also for expansion in recall.
const VISITED_MAX: usize = 2_000;
/// A path weaker than this is not followed: 0.20, in millionths.
const WEAKEST_MILLIONTHS: u64 = 200_000;

pub(super) async fn handle(engine: &Arc<Engine>, request: RelatedRequest) -> Result<RelatedReply, CallError> {
    let call = Call::new(engine, request.context)?;
    let id = wire::memory_id("node_id", &request.id)?;
    call.linearize().await?;
    let limit = usize::try_from(request.limit).unwrap_or(NODES_MAX).clamp(1, NODES_MAX);
    call.read(move |engine, rows| {
        let now = engine.clock.wall();
        let start = rows
            .resolved(id)
            .ok_or_else(|| CallError::not_found("memory", &id.to_string()))?;
        let start_id = start.id;
        let walk = Walk {
            depth_max: request.max_depth.min(DEPTH_MAX),
            closed_too: request.include_invalidated,
            scheduled_too: request.include_invalidated,
            now,
            project: Some(start.scope.project_key()),
            may_cross: true,
        };
        let mut reached = vec![Reached {
            depth: 0,
            via: None,
            path: Vec::new(),
            strength_millionths: 1_000_000,
            memory: start,
        }];
        reached.extend(walk.from(rows, &[start_id]));
        let more = reached.len() > limit;
        reached.truncate(limit);
        let memories: Vec<Memory> = reached.iter().map(|reached| reached.memory.clone()).collect();
        let nodes = reached
            .iter()
            .map(|reached| RelatedNode {
                memory: Some(views::brief(rows, &reached.memory, now).0),
                depth: reached.depth,
                via_link_id: reached.via.map(|link| link.bytes().to_vec()).unwrap_or_default(),
                strength_thousandths: u32::try_from(reached.strength_millionths / 1_000).unwrap_or(u32::MAX),
            })
            .collect();
        Ok(RelatedReply {
            nodes,
            links: views::links_among(rows, &memories),
            more,
        })
    })
    .await
}

/// A memory that a walk reached.
pub(super) struct Reached {
    pub(super) depth: u32,
    pub(super) via: Option<LinkId>,
    /// Links from the start, in order.
    pub(super) path: Vec<LinkId>,
    pub(super) strength_millionths: u64,
    pub(super) memory: Memory,
}

/// How far a walk along links goes.
pub(super) struct Walk {
    pub(super) depth_max: u32,
    pub(super) closed_too: bool,
    /// Whether it leads to what does not hold yet.
    pub(super) scheduled_too: bool,
    pub(super) now: Millis,
    /// Key of the project to stay in, besides tenant-wide memory; None for the whole tenant.
    pub(super) project: Option<String>,
    /// Whether an explicit link may lead one step into another project.
    pub(super) may_cross: bool,
}

impl Walk {
    /// Memories reached from `starts`, both directions, strongest first, starts excluded. Weak links are followed one
    /// step only.
    pub(super) fn from(&self, rows: TenantRows<'_>, starts: &[MemoryId]) -> Vec<Reached> {
        let mut best: BTreeMap<MemoryId, Reached> = BTreeMap::new();
        let mut seen: BTreeSet<MemoryId> = starts.iter().copied().collect();
        let mut frontier: Vec<Step> = starts
            .iter()
            .filter_map(|id| rows.memory(*id))
            .map(|at| Step {
                at,
                strength: 1_000_000,
                path: Vec::new(),
                ends_here: false,
            })
            .collect();
        for depth in 1..=self.depth_max {
            let mut next: Vec<Step> = Vec::new();
            for step in frontier.iter().filter(|step| !step.ends_here && step.at.link_count > 0) {
                for link in rows.links_at(step.at.id, views::LINKS_READ_MAX) {
                    next.extend(self.along(rows, step, &link, depth, &seen));
                }
            }
            next.sort_by(|a, b| b.strength.cmp(&a.strength).then(a.at.id.cmp(&b.at.id)));
            frontier = Vec::new();
            for step in next {
                if seen.len() >= VISITED_MAX || !seen.insert(step.at.id) {
                    continue;
                }
                best.insert(
                    step.at.id,
                    Reached {
                        depth,
                        via: step.path.last().copied(),
                        path: step.path.clone(),
                        strength_millionths: step.strength,
                        memory: step.at.clone(),
                    },
                );
                frontier.push(step);
            }
        }
        let mut reached: Vec<Reached> = best.into_values().collect();
        reached.sort_by(|a, b| {
            b.strength_millionths
                .cmp(&a.strength_millionths)
                .then(a.memory.id.cmp(&b.memory.id))
        });
        reached
    }

    fn along(
        &self,
        rows: TenantRows<'_>,
        step: &Step,
        link: &Link,
        depth: u32,
        seen: &BTreeSet<MemoryId>,
    ) -> Option<Step> {
        let other = link.other_end(step.at.id);
        if seen.contains(&other) || (link.confidence == Confidence::Weak && depth > 1) {
            return None;
        }
        // Each step after the first also costs 0.7.
        let decay = if depth > 1 { 700 } else { 1_000 };
        let strength = step.strength * link.strength_millionths() / 1_000_000 * decay / 1_000;
        // A weak link is followed one step whatever its strength is.
        if strength < WEAKEST_MILLIONTHS && link.confidence != Confidence::Weak {
            return None;
        }
        let memory = rows.memory(other)?;
        let state = memory.state_at(self.now);
        if state == State::Closed && !self.closed_too || state == State::Scheduled && !self.scheduled_too {
            return None;
        }
        let project_key = memory.scope.project_key();
        let stays = project_key.is_empty() || self.project.as_ref().is_none_or(|project| *project == project_key);
        let crosses = !stays && self.may_cross && link.confidence == Confidence::Explicit;
        if !stays && !crosses {
            return None;
        }
        let mut path = step.path.clone();
        path.push(link.id);
        let ends_here = crosses || link.confidence == Confidence::Weak;
        Some(Step {
            at: memory,
            strength,
            path,
            ends_here,
        })
    }
}

struct Step {
    at: Memory,
    strength: u64,
    path: Vec<LinkId>,
    /// A weak or project-crossing link leads here: one step and no further.
    ends_here: bool,
}
