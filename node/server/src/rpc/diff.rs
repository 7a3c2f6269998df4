//! graph_diff: what changed in a period, from the feed of changes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use waggle_memory::change::{Change, ChangeKind};
use waggle_memory::id::{LinkId, MemoryId};
use waggle_memory::tables::typed::TenantRows;
use waggle_memory::time::Millis;
use waggle_proto::wire::{self, DiffCounts, DiffReply, DiffRequest};

use super::feed::{self, Wanted};
use crate::call::Call;
use crate::engine::Engine;
use crate::error::CallError;

/// Changes of the feed that are looked at for one answer, and how many are read at once.
const CHANGES_MAX: usize = 50_000;
const PAGE: usize = 500;
/// Most entries of each list; the counts go on.
const LISTED_MAX: usize = 500;

pub(super) async fn handle(engine: &Arc<Engine>, request: DiffRequest) -> Result<DiffReply, CallError> {
    let call = Call::new(engine, request.context)?;
    let wanted = Wanted::new(&wire::scope_of(request.scope)?);
    let since = Millis(request.since);
    call.linearize().await?;
    call.read(move |engine, rows| {
        let now = engine.clock.wall();
        let until = request.until.map_or(now, Millis);
        if until < since {
            return Err(CallError::invalid(
                "until",
                format!("must not lie before since ({since})"),
            ));
        }
        Ok(Gathered::read(rows, &wanted, since, until).reply(rows, since, until, now))
    })
    .await
}

/// What happened to one memory; of several things, the greatest counts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Fate {
    Said,
    Added,
    Updated,
    Closed,
    Deleted,
}

#[derive(Default)]
struct Gathered {
    memories: BTreeMap<MemoryId, Fate>,
    /// In the order of the feed, newest first, each once.
    order: Vec<MemoryId>,
    links: Vec<LinkId>,
    resolved: Vec<LinkId>,
    seen: BTreeSet<(bool, LinkId)>,
    incomplete: bool,
}

impl Gathered {
    fn read(rows: TenantRows<'_>, wanted: &Wanted, since: Millis, until: Millis) -> Self {
        let mut gathered = Self::default();
        let mut newest = rows.last_change_by(until);
        let mut looked_at = 0;
        while newest > 0 {
            let page = rows.changes_back(newest, PAGE);
            if page.is_empty() {
                // The feed begins later than the period does.
                gathered.incomplete = true;
                break;
            }
            for (number, change) in page {
                if change.at < since {
                    return gathered;
                }
                if looked_at >= CHANGES_MAX {
                    gathered.incomplete = true;
                    return gathered;
                }
                looked_at += 1;
                newest = number.saturating_sub(1);
                if wanted.has(&change.scope) {
                    gathered.add(&change);
                }
            }
        }
        gathered
    }

    fn add(&mut self, change: &Change) {
        let fate = match change.kind {
            ChangeKind::Created => Fate::Added,
            ChangeKind::Evidence => Fate::Said,
            ChangeKind::Updated => Fate::Updated,
            ChangeKind::Closed => Fate::Closed,
            ChangeKind::Deleted => Fate::Deleted,
            // What it was merged into tells of it.
            ChangeKind::Merged => return,
            ChangeKind::Linked | ChangeKind::Resolved | ChangeKind::Reopened => return self.add_link(change),
        };
        let known = self.memories.entry(change.memory).or_insert_with(|| {
            self.order.push(change.memory);
            fate
        });
        *known = fate.max(*known);
    }

    fn add_link(&mut self, change: &Change) {
        let Some(link) = change.link else { return };
        let settles = change.kind != ChangeKind::Linked;
        if self.seen.insert((settles, link)) {
            let list = if settles { &mut self.resolved } else { &mut self.links };
            list.push(link);
        }
    }

    /// From what happened to what is there now: an erased memory is a tombstone whatever else befell it, and what was
    /// ended and taken up again is not closed.
    fn reply(self, rows: TenantRows<'_>, since: Millis, until: Millis, now: Millis) -> DiffReply {
        let mut counts = DiffCounts::default();
        let mut reply = DiffReply {
            since: since.0,
            until: until.0,
            incomplete: self.incomplete,
            ..DiffReply::default()
        };
        for id in &self.order {
            let Some(memory) = rows.memory(*id) else {
                if let Some(tombstone) = rows.tombstone(*id) {
                    counts.deleted += 1;
                    push(&mut reply.deleted, feed::tombstone(*id, &tombstone), &mut reply.more);
                }
                continue;
            };
            let fate = self.memories.get(id).copied().unwrap_or(Fate::Updated);
            let (list, count) = match fate {
                Fate::Added => (&mut reply.added, &mut counts.added),
                Fate::Closed if memory.valid_to.is_some() => (&mut reply.closed, &mut counts.closed),
                _ => (&mut reply.updated, &mut counts.updated),
            };
            *count += 1;
            push(list, feed::listed(rows, &memory, now), &mut reply.more);
        }
        for link in self.links.iter().filter_map(|id| rows.link(*id)) {
            let (list, count) = if link.relationship.is_conflict() {
                (&mut reply.contradictions, &mut counts.contradictions)
            } else {
                (&mut reply.links, &mut counts.links)
            };
            *count += 1;
            push(list, wire::link(&link), &mut reply.more);
        }
        for link in self.resolved.iter().filter_map(|id| rows.link(*id)) {
            if !link.is_open_conflict() {
                counts.resolved += 1;
                push(&mut reply.resolved, wire::link(&link), &mut reply.more);
            }
        }
        reply.counts = Some(counts);
        reply
    }
}

fn push<T>(list: &mut Vec<T>, entry: T, more: &mut bool) {
    if list.len() < LISTED_MAX {
        list.push(entry);
    } else {
        *more = true;
    }
}
