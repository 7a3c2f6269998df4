//! list_conflicts: contradictions and replacements, newest first, from the two lists that apply keeps.

use std::sync::Arc;

use waggle_memory::id::LinkId;
use waggle_memory::link::Link;
use waggle_memory::tables::typed::TenantRows;
use waggle_memory::time::Millis;
use waggle_proto::wire::{self, Conflict, ListConflictsReply, ListConflictsRequest};

use super::feed::{self, Wanted};
use crate::call::Call;
use crate::engine::Engine;
use crate::error::CallError;

/// Most conflicts of one answer.
const LISTED_MAX: u32 = 200;
/// Conflicts of one state that are looked at for one answer, and how many are read at once.
const LOOKED_AT_MAX: usize = 5_000;
const PAGE: usize = 200;

pub(super) async fn handle(
    engine: &Arc<Engine>,
    request: ListConflictsRequest,
) -> Result<ListConflictsReply, CallError> {
    let call = Call::new(engine, request.context)?;
    let wanted = Wanted::new(&wire::scope_of(request.scope)?);
    if !(1..=LISTED_MAX).contains(&request.limit) {
        return Err(CallError::invalid(
            "limit",
            format!("{}; 1 to {LISTED_MAX}", request.limit),
        ));
    }
    call.linearize().await?;
    call.read(move |engine, rows| {
        let now = engine.clock.wall();
        let until = request.until.map_or(now, Millis);
        let limit = usize::try_from(request.limit).unwrap_or(0);
        let (mut links, mut more) = of_state(rows, &wanted, false, until, limit);
        if request.include_resolved {
            let (settled, more_settled) = of_state(rows, &wanted, true, until, limit);
            links.extend(settled);
            more |= more_settled;
        }
        links.sort_by(|a, b| b.created_at.cmp(&a.created_at).then(b.id.cmp(&a.id)));
        more |= links.len() > limit;
        links.truncate(limit);
        let end = |id| rows.memory(id).map(|memory| feed::listed(rows, &memory, now));
        let conflicts = links
            .iter()
            .map(|link| Conflict {
                link: Some(wire::link(link)),
                source: end(link.source),
                target: end(link.target),
            })
            .collect();
        Ok(ListConflictsReply {
            conflicts,
            until: until.0,
            more,
        })
    })
    .await
}

/// The newest conflicts of a state that have an end in the wanted scope; whether there may be more.
fn of_state(rows: TenantRows<'_>, wanted: &Wanted, settled: bool, until: Millis, limit: usize) -> (Vec<Link>, bool) {
    let mut found = Vec::new();
    let mut before: Option<LinkId> = None;
    for _ in 0..LOOKED_AT_MAX / PAGE {
        let page = rows.conflicts_back(settled, before, PAGE);
        let is_last = page.len() < PAGE;
        before = page.last().copied();
        for link in page.into_iter().filter_map(|id| rows.link(id)) {
            if found.len() >= limit {
                return (found, true);
            }
            if link.created_at <= until && has_end(rows, wanted, &link) {
                found.push(link);
            }
        }
        if is_last {
            return (found, false);
        }
    }
    (found, true)
}

fn has_end(rows: TenantRows<'_>, wanted: &Wanted, link: &Link) -> bool {
    [link.source, link.target]
        .into_iter()
        .filter_map(|id| rows.memory(id))
        .any(|memory| wanted.has_memory(rows, &memory))
}
