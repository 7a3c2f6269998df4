//! timeline: what happened, newest first: to a memory and its neighbourhood, to what a query finds, or to a whole scope.
//! A scope is answered from the feed of changes, single memories from their own rows, which reach back further.

use std::collections::BTreeSet;
use std::sync::Arc;

use waggle_memory::change::{Change, ChangeKind};
use waggle_memory::id::{LinkId, MemoryId};
use waggle_memory::link::Link;
use waggle_memory::memory::{ChangeReason, Memory};
use waggle_memory::tables::typed::TenantRows;
use waggle_memory::time::Millis;
use waggle_proto::wire::query_request::Mode;
use waggle_proto::wire::{self, QueryRequest, TimelineItem, TimelineReply, TimelineRequest};

use super::feed::{self, Wanted};
use super::query;
use super::related::Walk;
use crate::call::Call;
use crate::engine::Engine;
use crate::error::CallError;

/// Most items of one answer.
const ITEMS_MAX: u32 = 200;
/// Deepest walk.
const DEPTH_MAX: u32 = 5;
/// Memories whose rows are read for one answer.
const MEMORIES_MAX: usize = 200;
/// Rows of each sort that are read of one memory.
const ROWS_MAX: usize = 200;
/// Changes of the feed that are looked at for one answer, and how many are read at once.
const CHANGES_MAX: usize = 50_000;
const PAGE: usize = 500;
/// Longest summary in bytes.
const SUMMARY_BYTES_MAX: usize = 200;

pub(super) async fn handle(engine: &Arc<Engine>, request: TimelineRequest) -> Result<TimelineReply, CallError> {
    let call = Call::new(engine, request.context.clone())?;
    let scope = wire::scope_of(request.scope.clone())?;
    let by_query = !request.query.trim().is_empty();
    let id = wire::optional_memory_id("node_id", &request.id)?;
    if by_query && id.is_some() {
        return Err(CallError::invalid("query", "give node_id or query, not both"));
    }
    if !(1..=ITEMS_MAX).contains(&request.limit) {
        return Err(CallError::invalid(
            "limit",
            format!("{}; 1 to {ITEMS_MAX}", request.limit),
        ));
    }
    let found = if by_query {
        recalled(engine, &request).await?
    } else {
        call.linearize().await?;
        Vec::new()
    };
    call.read(move |engine, rows| {
        let until = request.until.map_or(engine.clock.wall(), Millis);
        let asked = Asked {
            wanted: Wanted::new(&scope),
            limit: usize::try_from(request.limit).unwrap_or(0),
            since: request.since.map_or(Millis(i64::MIN), Millis),
            until,
            evidence: request.include_evidence,
        };
        let (items, more) = match id {
            Some(given) => asked.of_memories(rows, &around(rows, given, &request, until)?),
            None if by_query => asked.of_memories(rows, &found),
            None => asked.of_scope(rows),
        };
        Ok(TimelineReply {
            items,
            until: until.0,
            more,
        })
    })
    .await
}

/// What a query finds, by the same recall as query_graph, closed ones too.
async fn recalled(engine: &Arc<Engine>, request: &TimelineRequest) -> Result<Vec<MemoryId>, CallError> {
    let question = QueryRequest {
        context: request.context.clone(),
        scope: request.scope.clone(),
        query: request.query.clone(),
        max_nodes: request.limit,
        max_depth: 0,
        mode: Mode::Graph.into(),
        include_invalidated: true,
        strict_scope: true,
        ..QueryRequest::default()
    };
    let reply = query::handle(engine, question).await?;
    let ids = reply.nodes.iter().filter_map(|hit| hit.memory.as_ref());
    ids.map(|memory| wire::memory_id("node_id", &memory.id).map_err(CallError::from))
        .collect()
}

/// A memory and its neighbourhood; an erased one is alone.
fn around(
    rows: TenantRows<'_>,
    given: MemoryId,
    request: &TimelineRequest,
    now: Millis,
) -> Result<Vec<MemoryId>, CallError> {
    let id = rows.follow(given);
    let Some(start) = rows.memory(id) else {
        return match rows.tombstone(id) {
            Some(_) => Ok(vec![id]),
            None => Err(CallError::not_found("memory", &given.to_string())),
        };
    };
    let walk = Walk {
        depth_max: request.max_depth.min(DEPTH_MAX),
        closed_too: true,
        scheduled_too: true,
        now,
        project: Some(start.scope.project_key()),
        may_cross: true,
    };
    let reached = walk.from(rows, &[id]).into_iter().map(|reached| reached.memory.id);
    Ok(std::iter::once(id).chain(reached).take(MEMORIES_MAX).collect())
}

struct Asked {
    wanted: Wanted,
    limit: usize,
    since: Millis,
    until: Millis,
    evidence: bool,
}

impl Asked {
    fn of_scope(&self, rows: TenantRows<'_>) -> (Vec<TimelineItem>, bool) {
        let mut items = Vec::new();
        let mut newest = rows.last_change_by(self.until);
        let mut looked_at = 0;
        while newest > 0 {
            let page = rows.changes_back(newest, PAGE);
            if page.is_empty() {
                break;
            }
            for (number, change) in page {
                if change.at < self.since {
                    return (items, false);
                }
                if looked_at >= CHANGES_MAX || items.len() >= self.limit {
                    return (items, true);
                }
                looked_at += 1;
                newest = number.saturating_sub(1);
                let counts = self.evidence || change.kind != ChangeKind::Evidence;
                if counts && self.wanted.has(&change.scope) {
                    items.push(of_change(rows, number, &change));
                }
            }
        }
        (items, false)
    }

    fn of_memories(&self, rows: TenantRows<'_>, ids: &[MemoryId]) -> (Vec<TimelineItem>, bool) {
        let mut items = Vec::new();
        let mut links: BTreeSet<LinkId> = BTreeSet::new();
        for id in ids {
            if let Some(memory) = rows.memory(*id) {
                if self.wanted.has_memory(rows, &memory) {
                    self.of_memory(rows, &memory, &mut links, &mut items);
                }
            } else if let Some(tombstone) = rows.tombstone(*id) {
                items.push(TimelineItem {
                    kind: "node_deleted".to_owned(),
                    at: tombstone.deleted_at.0,
                    memory_id: id.bytes().to_vec(),
                    author: tombstone.author.0,
                    ..TimelineItem::default()
                });
            }
        }
        items.retain(|item| item.at >= self.since.0 && item.at <= self.until.0);
        // Of one moment, what was written later stands first.
        items.sort_by(|a, b| b.at.cmp(&a.at).then(b.number.cmp(&a.number)));
        let more = items.len() > self.limit;
        items.truncate(self.limit);
        (items, more)
    }

    fn of_memory(
        &self,
        rows: TenantRows<'_>,
        memory: &Memory,
        links: &mut BTreeSet<LinkId>,
        items: &mut Vec<TimelineItem>,
    ) {
        let item = |kind: &str, at: Millis, summary: String, author: &str, number: u32| TimelineItem {
            kind: kind.to_owned(),
            at: at.0,
            label: memory.label.clone(),
            summary,
            memory_id: memory.id.bytes().to_vec(),
            link_id: Vec::new(),
            author: author.to_owned(),
            number: u64::from(number),
        };
        let stored = feed::cut(&memory.content, SUMMARY_BYTES_MAX).to_owned();
        items.push(item("node_created", memory.recorded_at, stored, &memory.author.0, 0));
        for version in rows.versions(memory.id, ROWS_MAX) {
            let next = version.version.saturating_add(1);
            let ended = matches!(version.reason, ChangeReason::Resolve | ChangeReason::Ended);
            let summary = format!("version {next}: {}", version.reason.word());
            let kind = match version.reason {
                // Said again: the evidence itself tells it.
                ChangeReason::Merge => continue,
                _ if ended => "node_closed",
                _ => "node_updated",
            };
            items.push(item(kind, version.replaced_at, summary, &version.replaced_by.0, next));
        }
        if self.evidence {
            for (number, evidence) in rows.evidence(memory.id, ROWS_MAX) {
                let said = feed::cut(&evidence.text, SUMMARY_BYTES_MAX).to_owned();
                items.push(item("evidence", evidence.observed_at, said, &evidence.author.0, number));
            }
        }
        for link in rows.links_at(memory.id, ROWS_MAX) {
            if links.insert(link.id) {
                of_link(rows, &link, items);
            }
        }
    }
}

fn of_link(rows: TenantRows<'_>, link: &Link, items: &mut Vec<TimelineItem>) {
    items.push(linked(
        rows,
        link,
        format!("edge_{}", link.relationship),
        link.created_at,
        &link.author.0,
    ));
    let resolution = link.resolution.as_ref().filter(|resolution| resolution.resolved);
    if let Some(resolution) = resolution {
        let by = resolution.by.as_ref().map(|by| by.0.clone()).unwrap_or_default();
        let at = resolution.at.unwrap_or(link.created_at);
        items.push(linked(rows, link, "conflict_resolved".to_owned(), at, &by));
    }
}

fn linked(rows: TenantRows<'_>, link: &Link, kind: String, at: Millis, author: &str) -> TimelineItem {
    let label = |id| rows.memory(id).map(|memory| memory.label).unwrap_or_default();
    let settled = kind == "conflict_resolved";
    let winner = link.resolution.as_ref().and_then(|resolution| resolution.winner);
    let summary = match (settled, winner) {
        (true, Some(winner)) => format!("in favour of {}", label(winner)),
        (true, None) => "both stay".to_owned(),
        (false, _) => format!("{} -> {}", label(link.source), label(link.target)),
    };
    TimelineItem {
        kind,
        at: at.0,
        label: label(link.source),
        summary: feed::cut(&summary, SUMMARY_BYTES_MAX).to_owned(),
        memory_id: link.source.bytes().to_vec(),
        link_id: link.id.bytes().to_vec(),
        author: author.to_owned(),
        number: 0,
    }
}

fn of_change(rows: TenantRows<'_>, number: u64, change: &Change) -> TimelineItem {
    let link = change.link.and_then(|id| rows.link(id));
    let kind = match change.kind {
        ChangeKind::Created => "node_created".to_owned(),
        ChangeKind::Updated => "node_updated".to_owned(),
        ChangeKind::Closed => "node_closed".to_owned(),
        ChangeKind::Deleted => "node_deleted".to_owned(),
        ChangeKind::Merged => "node_merged".to_owned(),
        ChangeKind::Evidence => "evidence".to_owned(),
        ChangeKind::Linked => format!("edge_{}", change.relationship.map_or("", |r| r.word())),
        ChangeKind::Resolved => "conflict_resolved".to_owned(),
        ChangeKind::Reopened => "conflict_reopened".to_owned(),
    };
    if let Some(link) = link {
        let item = linked(rows, &link, kind, change.at, &change.author.0);
        return TimelineItem { number, ..item };
    }
    // What was erased since has no words any more.
    let memory = rows.memory(change.memory);
    let summary = match (change.kind, &memory, change.other) {
        (ChangeKind::Merged, _, Some(other)) => format!("merged into {other}"),
        (ChangeKind::Created, Some(memory), _) => feed::cut(&memory.content, SUMMARY_BYTES_MAX).to_owned(),
        (ChangeKind::Updated | ChangeKind::Closed | ChangeKind::Evidence, ..) => format!("version {}", change.version),
        _ => String::new(),
    };
    TimelineItem {
        kind,
        at: change.at.0,
        label: memory.map(|memory| memory.label).unwrap_or_default(),
        summary,
        memory_id: change.memory.bytes().to_vec(),
        link_id: change.link.map(|id| id.bytes().to_vec()).unwrap_or_default(),
        author: change.author.0.clone(),
        number,
    }
}
