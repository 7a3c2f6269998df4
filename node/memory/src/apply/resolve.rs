//! Settling a conflict: the loser ends, stays in history, and may win again later.

use super::conflicts::end_of_validity;
use super::transaction::Transaction;
use crate::command::ResolveConflict;
use crate::id::MemoryId;
use crate::link::{Link, Resolution};
use crate::memory::ChangeReason;
use crate::outcome::{Outcome, Rejection};

pub(super) fn apply_resolve(tx: &mut Transaction<'_>, command: &ResolveConflict) -> Result<Outcome, Rejection> {
    let Some(link) = tx.rows().link(command.link) else {
        return Err(Rejection::NotFound {
            what: "edge",
            id: command.link.to_string(),
        });
    };
    let Some(before) = link.resolution.clone() else {
        let why = format!(
            "edge {} is '{}'; only contradicts and updates can be resolved",
            link.id, link.relationship
        );
        return Err(Rejection::NotResolvable { why });
    };
    let winner = command.winner.map(|given| tx.rows().follow(given));
    if let Some(winner) = winner.filter(|winner| *winner != link.source && *winner != link.target) {
        let why = format!(
            "winner {winner} is not an end of edge {}: take {} or {}",
            link.id, link.source, link.target
        );
        return Err(Rejection::NotResolvable { why });
    }
    if before.resolved && before.winner == winner && command.valid_to.is_none() {
        return Ok(Outcome::ConflictResolved { id: link.id });
    }
    let command = &ResolveConflict {
        winner,
        ..command.clone()
    };
    check_end(tx, command, &link)?;
    reverse(tx, &link, &before);
    let loser_valid_to_before = command
        .winner
        .and_then(|winner| close_loser(tx, command, link.other_end(winner), winner));
    let resolved = Link {
        resolution: Some(Resolution {
            resolved: true,
            winner: command.winner,
            note: command.note.clone(),
            stated: false,
            by: Some(tx.principal.clone()),
            at: Some(tx.now),
            loser_valid_to_before,
        }),
        ..link.clone()
    };
    tx.change_link(&link, resolved);
    Ok(Outcome::ConflictResolved { id: link.id })
}

fn check_end(tx: &Transaction<'_>, command: &ResolveConflict, link: &Link) -> Result<(), Rejection> {
    let (Some(winner), Some(end)) = (command.winner, command.valid_to) else {
        return Ok(());
    };
    let starts_at = tx.rows().memory(link.other_end(winner)).map(|loser| loser.valid_from);
    match starts_at {
        Some(start) if end <= start => Err(Rejection::Invalid {
            field: "valid_to",
            why: format!("must lie after the losing memory's valid_from ({start})"),
        }),
        _ => Ok(()),
    }
}

/// Undoes an earlier resolution of this link.
fn reverse(tx: &mut Transaction<'_>, link: &Link, before: &Resolution) {
    let (Some(winner), Some(valid_to)) = (before.winner, before.loser_valid_to_before) else {
        return;
    };
    let Some(loser) = tx.rows().memory(link.other_end(winner)) else {
        return;
    };
    if loser.superseded_by == Some(winner) {
        let mut reopened = loser.clone();
        reopened.valid_to = valid_to;
        reopened.superseded_by = None;
        tx.change_memory(&loser, reopened, ChangeReason::Reopen);
    }
}

/// Ends the loser; an earlier end is kept. Gives the end that it had before.
fn close_loser(
    tx: &mut Transaction<'_>,
    command: &ResolveConflict,
    loser: MemoryId,
    winner: MemoryId,
) -> Option<Option<crate::time::Millis>> {
    let loser = tx.rows().memory(loser)?;
    let end = end_of_validity(&loser, command.valid_to, tx.now);
    let mut closed = loser.clone();
    closed.valid_to = Some(loser.valid_to.map_or(end, |earlier| earlier.min(end)));
    closed.superseded_by = Some(winner);
    tx.change_memory(&loser, closed, ChangeReason::Resolve);
    Some(loser.valid_to)
}
