//! Merged ids of an import: they lead on to where they led.

use super::Import;
use crate::apply::transaction::Transaction;
use crate::import::{ConflictReason, RecordKind};
use crate::record::Redirect;
use crate::tables::{Row, TenantKey};

/// Merges of merges: so many passes find what each leads to.
const PASSES_MAX: usize = 8;

pub(super) fn take_in(tx: &mut Transaction<'_>, import: &mut Import, redirects: &[Redirect]) {
    let mut waiting: Vec<Redirect> = Vec::new();
    for redirect in redirects {
        let rows = tx.rows();
        if rows.memory(redirect.from).is_some() {
            import.conflict(RecordKind::Redirect, redirect.from.bytes(), ConflictReason::Alive, "");
        } else if rows.redirect(redirect.from).is_none() && rows.tombstone(redirect.from).is_none() {
            waiting.push(*redirect);
        }
    }
    for _ in 0..PASSES_MAX {
        let before = waiting.len();
        waiting.retain(|redirect| !store(tx, redirect));
        if waiting.is_empty() || waiting.len() == before {
            break;
        }
    }
    for redirect in waiting {
        import.conflict(
            RecordKind::Redirect,
            redirect.from.bytes(),
            ConflictReason::Dangling,
            "",
        );
    }
}

/// Stores a redirect whose target is known.
fn store(tx: &mut Transaction<'_>, redirect: &Redirect) -> bool {
    let rows = tx.rows();
    let end = rows.follow(redirect.to);
    let leads_somewhere = rows.memory(end).is_some() || rows.tombstone(end).is_some();
    if end == redirect.from || !leads_somewhere {
        return false;
    }
    tx.put(TenantKey::Redirect(redirect.from), Row::Redirect(redirect.to));
    true
}
