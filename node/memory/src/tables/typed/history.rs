//! Rows about the past: where merged ids lead, the feed of changes, the lists of conflicts, what a project or session
//! holds.

use super::{Form, ID_MAX, ID_MIN, Key, Row, TenantKey, TenantRows};
use crate::change::Change;
use crate::id::{LinkId, MemoryId, TurnId};
use crate::memory::Memory;
use crate::statement::Fingerprint;
use crate::time::Millis;

/// Longest chain of merges by hand that is followed.
const REDIRECTS_MAX: usize = 1_000;

impl TenantRows<'_> {
    /// A memory by its own id, or by that of one that was merged into it.
    pub fn resolved(&self, id: MemoryId) -> Option<Memory> {
        self.memory(id).or_else(|| self.memory(self.follow(id)))
    }

    /// Where an id leads: to itself, or along merges by hand to what took it in.
    pub fn follow(&self, id: MemoryId) -> MemoryId {
        let mut at = id;
        for _ in 0..REDIRECTS_MAX {
            match self.tables.get(&self.key(TenantKey::Redirect(at))) {
                Some(Row::Redirect(next)) => at = next,
                _ => break,
            }
        }
        at
    }

    /// A change by its number.
    pub fn change(&self, number: u64) -> Option<Change> {
        match self.tables.get(&self.key(TenantKey::Change(number))) {
            Some(Row::Change(change)) => Some(*change),
            _ => None,
        }
    }

    /// Changes from `newest` downwards with their numbers, newest first.
    pub fn changes_back(&self, newest: u64, limit: usize) -> Vec<(u64, Change)> {
        let (from, to) = (self.key(TenantKey::Change(1)), self.key(TenantKey::Change(newest)));
        self.tables
            .scan_back(&from, &to, limit)
            .into_iter()
            .filter_map(|(key, row)| match (key, row) {
                (Key::Tenant(_, TenantKey::Change(number)), Row::Change(change)) => Some((number, *change)),
                _ => None,
            })
            .collect()
    }

    /// Number of the last kept change at or before a moment; 0 when there is none. Numbers and times grow together, so
    /// this takes a few reads.
    pub fn last_change_by(&self, at: Millis) -> u64 {
        let newest = self.state().changes;
        let (mut low, mut high) = (newest.saturating_sub(Change::KEPT_MAX), newest);
        while low < high {
            let middle = high - (high - low) / 2;
            match self.change(middle) {
                Some(change) if change.at > at => high = middle - 1,
                _ => low = middle,
            }
        }
        low
    }

    /// Conflict links of a state before `before`, newest first.
    pub fn conflicts_back(&self, settled: bool, before: Option<LinkId>, limit: usize) -> Vec<LinkId> {
        let from = self.key(TenantKey::Conflict(settled, LinkId::from_bytes(ID_MIN)));
        let to = self.key(TenantKey::Conflict(
            settled,
            before.unwrap_or(LinkId::from_bytes(ID_MAX)),
        ));
        self.tables
            .scan_back(&from, &to, limit.saturating_add(1))
            .into_iter()
            .filter_map(|(key, _)| match key {
                Key::Tenant(_, TenantKey::Conflict(_, id)) if Some(id) != before => Some(id),
                _ => None,
            })
            .take(limit)
            .collect()
    }

    /// Memories of a project after a place, in the order of their labels' fingerprints.
    pub fn memories_of_project(
        &self,
        project_key: &str,
        after: Option<(Fingerprint, MemoryId)>,
        limit: usize,
    ) -> Vec<(Fingerprint, MemoryId)> {
        let at = |(fingerprint, id)| {
            self.key(TenantKey::Fingerprint(
                project_key.to_owned(),
                Form::Label,
                fingerprint,
                id,
            ))
        };
        let first = (Fingerprint(0), MemoryId::from_bytes(ID_MIN));
        let last = (Fingerprint(u64::MAX), MemoryId::from_bytes(ID_MAX));
        self.tables
            .scan(&at(after.unwrap_or(first)), &at(last), limit.saturating_add(1))
            .into_iter()
            .filter_map(|(key, _)| match key {
                Key::Tenant(_, TenantKey::Fingerprint(_, _, fingerprint, id)) => Some((fingerprint, id)),
                _ => None,
            })
            .filter(|place| Some(*place) != after)
            .take(limit)
            .collect()
    }

    /// Keys of projects from `from` on, in order.
    pub fn project_keys(&self, from: &str, limit: usize) -> Vec<String> {
        let (from, to) = (
            self.key(TenantKey::Project(from.to_owned())),
            self.key(TenantKey::Agent(String::new())),
        );
        let rows = self.tables.scan(&from, &to, limit);
        rows.into_iter()
            .filter_map(|(key, _)| match key {
                Key::Tenant(_, TenantKey::Project(project)) => Some(project),
                _ => None,
            })
            .collect()
    }

    /// Keys of agents, in order.
    pub fn agent_keys(&self, limit: usize) -> Vec<String> {
        let from = self.key(TenantKey::Agent(String::new()));
        let to = self.key(TenantKey::Fingerprint(
            String::new(),
            Form::Exact,
            Fingerprint(0),
            MemoryId::from_bytes(ID_MIN),
        ));
        let rows = self.tables.scan(&from, &to, limit);
        rows.into_iter()
            .filter_map(|(key, _)| match key {
                Key::Tenant(_, TenantKey::Agent(agent)) => Some(agent),
                _ => None,
            })
            .collect()
    }

    /// Positions of a session's turns, in order.
    pub fn turns_of_session(&self, project_key: &str, session: &str, limit: usize) -> Vec<(u32, TurnId)> {
        let at = |index| self.key(TenantKey::TurnAt(project_key.to_owned(), session.to_owned(), index));
        self.tables
            .scan(&at(0), &at(u32::MAX), limit)
            .into_iter()
            .filter_map(|(key, row)| match (key, row) {
                (Key::Tenant(_, TenantKey::TurnAt(_, _, index)), Row::TurnId(id)) => Some((index, id)),
                _ => None,
            })
            .collect()
    }
}
