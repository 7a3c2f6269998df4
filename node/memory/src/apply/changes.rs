//! The feed of changes, written beside what it tells of.

use super::transaction::Transaction;
use crate::change::{Change, ChangeKind};
use crate::id::MemoryId;
use crate::link::Link;
use crate::memory::{ChangeReason, Memory};
use crate::scope::Scope;
use crate::tables::{Row, TenantKey};

impl Transaction<'_> {
    /// Notes that something happened to a memory.
    pub(super) fn note_memory(&mut self, kind: ChangeKind, memory: &Memory, other: Option<MemoryId>) {
        let change = Change {
            at: self.now,
            author: self.principal.clone(),
            kind,
            memory: memory.id,
            other,
            link: None,
            relationship: None,
            version: memory.version,
            scope: self.scope_of_change(&memory.scope),
        };
        self.note(change);
    }

    /// Notes that something happened to a link.
    pub(super) fn note_link(&mut self, kind: ChangeKind, link: &Link) {
        let scope = self.rows().memory(link.source).map(|source| source.scope);
        let change = Change {
            at: self.now,
            author: self.principal.clone(),
            kind,
            memory: link.source,
            other: Some(link.target),
            link: Some(link.id),
            relationship: Some(link.relationship),
            version: 0,
            scope: self.scope_of_change(&scope.unwrap_or_default()),
        };
        self.note(change);
    }

    /// Appends to the feed and forgets the oldest beyond the limit: at most one row in and one row out.
    fn note(&mut self, change: Change) {
        let number = self.next_change();
        self.put(TenantKey::Change(number), Row::Change(Box::new(change)));
        if let Some(oldest) = number.checked_sub(Change::KEPT_MAX)
            && oldest > 0
        {
            self.delete(TenantKey::Change(oldest));
        }
    }

    /// A call that names its agent or session speaks for itself; the project is always that of the memory.
    fn scope_of_change(&self, memory: &Scope) -> Scope {
        let own = |called: &String, stored: &String| if called.is_empty() { stored } else { called }.clone();
        Scope {
            project: memory.project.clone(),
            agent_id: own(&self.scope.agent_id, &memory.agent_id),
            session_id: own(&self.scope.session_id, &memory.session_id),
        }
    }
}

/// What a new version means in the feed.
pub(super) fn kind_of(reason: ChangeReason, old: &Memory, new: &Memory) -> ChangeKind {
    match reason {
        ChangeReason::Resolve | ChangeReason::Ended => ChangeKind::Closed,
        ChangeReason::Merge => ChangeKind::Evidence,
        ChangeReason::Update | ChangeReason::Import if old.valid_to.is_none() && new.valid_to.is_some() => {
            ChangeKind::Closed
        }
        ChangeReason::Update | ChangeReason::Reopen | ChangeReason::Import => ChangeKind::Updated,
    }
}
