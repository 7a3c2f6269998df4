//! Walks over all rows of one sort, a page at a time.

use super::{ID_MAX, ID_MIN, TenantRows};
use crate::id::{LinkId, MemoryId};
use crate::kind::Relationship;
use crate::link::Link;
use crate::memory::Tombstone;
use crate::tables::{Key, Row, TenantKey};
use crate::transcript::Session;

impl TenantRows<'_> {
    /// Whether an `updates` link leads to a memory.
    pub fn is_updated(&self, id: MemoryId) -> bool {
        let from = self.key(TenantKey::LinkTo(
            id,
            Relationship::Updates,
            MemoryId::from_bytes(ID_MIN),
        ));
        let to = self.key(TenantKey::LinkTo(
            id,
            Relationship::Updates,
            MemoryId::from_bytes(ID_MAX),
        ));
        !self.tables.scan(&from, &to, 1).is_empty()
    }

    /// What a memory updates.
    pub fn updated_by(&self, id: MemoryId, limit: usize) -> Vec<MemoryId> {
        let from = self.key(TenantKey::LinkFrom(
            id,
            Relationship::Updates,
            MemoryId::from_bytes(ID_MIN),
        ));
        let to = self.key(TenantKey::LinkFrom(
            id,
            Relationship::Updates,
            MemoryId::from_bytes(ID_MAX),
        ));
        let rows = self.tables.scan(&from, &to, limit);
        rows.into_iter()
            .filter_map(|(key, _)| match key {
                Key::Tenant(_, TenantKey::LinkFrom(_, _, target)) => Some(target),
                _ => None,
            })
            .collect()
    }

    /// Links in id order after `after`.
    pub fn links_after(&self, after: Option<LinkId>, limit: usize) -> Vec<Link> {
        let from = self.key(TenantKey::Link(after.unwrap_or(LinkId::from_bytes(ID_MIN))));
        let to = self.key(TenantKey::Link(LinkId::from_bytes(ID_MAX)));
        let rows = self.tables.scan(&from, &to, limit.saturating_add(1));
        rows.into_iter()
            .filter_map(|(_, row)| if let Row::Link(link) = row { Some(*link) } else { None })
            .filter(|link| Some(link.id) != after)
            .take(limit)
            .collect()
    }

    /// Merged ids with what they lead to, in id order after `after`.
    pub fn redirects_after(&self, after: Option<MemoryId>, limit: usize) -> Vec<(MemoryId, MemoryId)> {
        let from = self.key(TenantKey::Redirect(after.unwrap_or(MemoryId::from_bytes(ID_MIN))));
        let to = self.key(TenantKey::Redirect(MemoryId::from_bytes(ID_MAX)));
        let rows = self.tables.scan(&from, &to, limit.saturating_add(1));
        rows.into_iter()
            .filter_map(|(key, row)| match (key, row) {
                (Key::Tenant(_, TenantKey::Redirect(from)), Row::Redirect(to)) => Some((from, to)),
                _ => None,
            })
            .filter(|(from, _)| Some(*from) != after)
            .take(limit)
            .collect()
    }

    /// What a merged id leads to; None when it was never merged away.
    pub fn redirect(&self, id: MemoryId) -> Option<MemoryId> {
        match self.tables.get(&self.key(TenantKey::Redirect(id))) {
            Some(Row::Redirect(to)) => Some(to),
            _ => None,
        }
    }

    /// Tombstones in id order after `after`.
    pub fn tombstones_after(&self, after: Option<MemoryId>, limit: usize) -> Vec<(MemoryId, Tombstone)> {
        let from = self.key(TenantKey::Tombstone(after.unwrap_or(MemoryId::from_bytes(ID_MIN))));
        let to = self.key(TenantKey::Tombstone(MemoryId::from_bytes(ID_MAX)));
        let rows = self.tables.scan(&from, &to, limit.saturating_add(1));
        rows.into_iter()
            .filter_map(|(key, row)| match (key, row) {
                (Key::Tenant(_, TenantKey::Tombstone(id)), Row::Tombstone(tombstone)) => Some((id, tombstone)),
                _ => None,
            })
            .filter(|(id, _)| Some(*id) != after)
            .take(limit)
            .collect()
    }

    /// Sessions in the order of their keys after `after`, a project key and a session, with their project keys.
    pub fn sessions_after(&self, after: Option<&(String, String)>, limit: usize) -> Vec<(String, Session)> {
        let (project, session) = after.cloned().unwrap_or_default();
        let from = self.key(TenantKey::Session(project, session));
        let to = self.key(TenantKey::Project(String::new()));
        let rows = self.tables.scan(&from, &to, limit.saturating_add(1));
        rows.into_iter()
            .filter_map(|(key, row)| match (key, row) {
                (Key::Tenant(_, TenantKey::Session(project, _)), Row::Session(session)) => Some((project, session)),
                _ => None,
            })
            .filter(|(project, session)| after.is_none_or(|(p, s)| (p, s) != (project, &session.session_id)))
            .take(limit)
            .collect()
    }
}
