//! What becomes of a link besides being made, changed and removed.

use super::Transaction;
use crate::id::MemoryId;
use crate::link::Link;
use crate::tables::{Row, TenantKey};

impl Transaction<'_> {
    /// Lets a link lead to or from `to` where it led to or from `from`, under the same id. The caller knows that no such
    /// link is there and that the two ends differ. `from` is about to go and is not counted down.
    pub(in crate::apply) fn move_link(&mut self, link: &Link, from: MemoryId, to: MemoryId) {
        self.delete(TenantKey::LinkFrom(link.source, link.relationship, link.target));
        self.delete(TenantKey::LinkTo(link.target, link.relationship, link.source));
        let moved = |end: MemoryId| if end == from { to } else { end };
        let mut new = Link {
            source: moved(link.source),
            target: moved(link.target),
            version: link.version.saturating_add(1),
            ..link.clone()
        };
        if let Some(resolution) = &mut new.resolution {
            resolution.winner = resolution.winner.map(moved);
        }
        let (id, open) = (link.id, link.is_open_conflict());
        self.put(
            TenantKey::LinkFrom(new.source, new.relationship, new.target),
            Row::LinkId(id),
        );
        self.put(
            TenantKey::LinkTo(new.target, new.relationship, new.source),
            Row::LinkId(id),
        );
        self.count_link_at(to, 1, i64::from(open));
        self.put(TenantKey::Link(id), Row::Link(Box::new(new)));
    }

    /// Enters a conflict into the list of its state.
    pub(super) fn index_conflict(&mut self, link: &Link) {
        if let Some(resolution) = &link.resolution {
            self.put(TenantKey::Conflict(resolution.resolved, link.id), Row::Mark);
        }
    }

    pub(super) fn unindex_conflict(&mut self, link: &Link) {
        if let Some(resolution) = &link.resolution {
            self.delete(TenantKey::Conflict(resolution.resolved, link.id));
        }
    }
}
