//! The rows of one tenant while one command changes them, with the bookkeeping that every command shares: counters,
//! versions, index rows, effects.

mod identities;
mod links;

use std::collections::BTreeSet;

use super::changes;
use crate::change::ChangeKind;
use crate::id::{MemoryId, Principal, TenantId};
use crate::link::Link;
use crate::memory::{ChangeReason, Evidence, Memory, State, Vector, VectorDraft, Version};
use crate::outcome::Effects;
use crate::scope::{Scope, name_key};
use crate::tables::typed::TenantRows;
use crate::tables::{Form, Item, Key, Row, Tables, TenantKey};
use crate::time::Millis;
use crate::transcript::{Counters, Project, TenantState};

/// One command on one tenant.
pub(super) struct Transaction<'a> {
    tables: &'a mut dyn Tables,
    pub(super) tenant: &'a TenantId,
    pub(super) now: Millis,
    pub(super) principal: &'a Principal,
    /// The scope that the call names, if it names one.
    pub(super) scope: Scope,
    effects: &'a mut Effects,
    state: TenantState,
    /// The project whose counters were touched last, with its key; written back on a change of project and at the end.
    project: Option<(String, Project)>,
}

impl<'a> Transaction<'a> {
    pub(super) fn begin(
        tables: &'a mut dyn Tables,
        tenant: &'a TenantId,
        now: Millis,
        principal: &'a Principal,
        effects: &'a mut Effects,
    ) -> Self {
        let state = TenantRows::new(&*tables, tenant).state();
        Self {
            tables,
            tenant,
            now,
            principal,
            scope: Scope::default(),
            effects,
            state,
            project: None,
        }
    }

    /// Writes the counters. A command that was rejected is never finished, and wrote nothing before.
    pub(super) fn finish(mut self) {
        self.save_project();
        let state = std::mem::take(&mut self.state);
        self.put(TenantKey::State, Row::State(state));
    }

    pub(super) fn rows(&self) -> TenantRows<'_> {
        TenantRows::new(&*self.tables, self.tenant)
    }

    pub(super) fn put(&mut self, key: TenantKey, row: Row) {
        self.tables.put(Key::Tenant(self.tenant.clone(), key), row);
    }

    pub(super) fn delete(&mut self, key: TenantKey) {
        self.tables.delete(Key::Tenant(self.tenant.clone(), key));
    }

    pub(super) fn changed(&mut self, item: Item) {
        self.effects.changed.push(item);
    }

    /// The number of the next change in the feed.
    pub(super) fn next_change(&mut self) -> u64 {
        self.state.changes = self.state.changes.saturating_add(1);
        self.state.changes
    }

    /// Counts something at the tenant and at one project.
    pub(super) fn count(&mut self, project_key: &str, change: impl Fn(&mut Counters)) {
        change(&mut self.state.counters);
        change(&mut self.project_mut(project_key).counters);
    }

    /// The row of a project, created on first use.
    pub(super) fn project_mut(&mut self, project_key: &str) -> &mut Project {
        if self.project.as_ref().is_none_or(|(key, _)| key != project_key) {
            self.save_project();
        }
        let found = match self.project.take() {
            Some(loaded) => loaded,
            None => (
                project_key.to_owned(),
                self.rows().project(project_key).unwrap_or_default(),
            ),
        };
        &mut self.project.insert(found).1
    }

    fn save_project(&mut self) {
        if let Some((key, project)) = self.project.take() {
            self.put(TenantKey::Project(key), Row::Project(project));
        }
    }

    // ---- memories ------------------------------------------------------------------------------------------------

    /// Writes a memory that did not exist, with its index rows and its vector.
    pub(super) fn insert_memory(&mut self, memory: Memory, vector: &VectorDraft) {
        let project_key = memory.scope.project_key();
        let (kind, bytes, closed) = (memory.kind, text_bytes(&memory), memory.valid_to.is_some());
        self.count(&project_key, |c| {
            add(c.memories_by_kind.get_mut(usize::from(kind.number())), 1);
            c.text_bytes += bytes;
            c.memories_closed += u64::from(closed);
        });
        self.index(&memory, &project_key);
        self.set_vector(Item::Memory(memory.id), vector);
        self.changed(Item::Memory(memory.id));
        self.note_memory(ChangeKind::Created, &memory, None);
        self.put(TenantKey::Memory(memory.id), Row::Memory(Box::new(memory)));
    }

    /// Replaces `old` by `new` and keeps `old` as a version. `new` keeps id and scope.
    pub(super) fn change_memory(&mut self, old: &Memory, mut new: Memory, reason: ChangeReason) {
        let version = self.version_of(old, reason);
        self.put(TenantKey::Version(old.id, old.version), Row::Version(Box::new(version)));
        if let Some(oldest) = old.version.checked_sub(Memory::VERSIONS_KEPT_MAX) {
            self.delete(TenantKey::Version(old.id, oldest));
        }
        new.version = old.version.saturating_add(1);
        new.updated_at = self.now;
        let kind = changes::kind_of(reason, old, &new);
        self.replace_memory(old, new, kind);
    }

    /// What `old` leaves behind when it is replaced now.
    pub(super) fn version_of(&self, old: &Memory, reason: ChangeReason) -> Version {
        Version {
            version: old.version,
            recorded_at: old.updated_at,
            replaced_at: self.now,
            replaced_by: self.principal.clone(),
            reason,
            note: String::new(),
            label: old.label.clone(),
            content: old.content.clone(),
            kind: old.kind,
            tags: old.tags.clone(),
            valid_from: old.valid_from,
            valid_to: old.valid_to,
            superseded_by: old.superseded_by,
        }
    }

    /// Puts `new` in the place of `old`, with counters, index rows and a change of this kind; versions are the caller's.
    /// `new` keeps id and scope.
    pub(super) fn replace_memory(&mut self, old: &Memory, new: Memory, kind: ChangeKind) {
        let project_key = old.scope.project_key();
        let (bytes_before, bytes_after) = (text_bytes(old), text_bytes(&new));
        let (kind_before, kind_after) = (old.kind, new.kind);
        let (closed_before, closed_after) = (old.valid_to.is_some(), new.valid_to.is_some());
        self.count(&project_key, |c| {
            take(c.memories_by_kind.get_mut(usize::from(kind_before.number())), 1);
            add(c.memories_by_kind.get_mut(usize::from(kind_after.number())), 1);
            c.text_bytes = (c.text_bytes + bytes_after).saturating_sub(bytes_before);
            c.memories_closed = (c.memories_closed + u64::from(closed_after)).saturating_sub(u64::from(closed_before));
        });
        self.reindex(old, &new, &project_key);
        self.note_memory(kind, &new, None);
        self.rewrite_memory(new);
    }

    /// Writes a memory back without a new version: counts of links, no more.
    pub(super) fn rewrite_memory(&mut self, memory: Memory) {
        self.changed(Item::Memory(memory.id));
        self.put(TenantKey::Memory(memory.id), Row::Memory(Box::new(memory)));
    }

    /// Removes a memory's own rows; links and evidence are the caller's.
    pub(super) fn remove_memory(&mut self, memory: &Memory) {
        let project_key = memory.scope.project_key();
        let (kind, bytes, closed) = (memory.kind, text_bytes(memory), memory.valid_to.is_some());
        self.count(&project_key, |c| {
            take(c.memories_by_kind.get_mut(usize::from(kind.number())), 1);
            c.text_bytes = c.text_bytes.saturating_sub(bytes);
            c.memories_closed = c.memories_closed.saturating_sub(u64::from(closed));
        });
        self.unindex(memory, &project_key);
        self.remove_vector(Item::Memory(memory.id));
        self.state.most_connected.retain(|(id, _)| *id != memory.id);
        self.delete(TenantKey::Memory(memory.id));
        self.changed(Item::Memory(memory.id));
    }

    /// Most changes leave the words alone, and then no row is written.
    fn reindex(&mut self, old: &Memory, new: &Memory, project_key: &str) {
        let before: BTreeSet<TenantKey> = fingerprint_keys(old, project_key).into_iter().collect();
        let after: BTreeSet<TenantKey> = fingerprint_keys(new, project_key).into_iter().collect();
        for key in before.difference(&after) {
            self.delete(key.clone());
        }
        for key in after.difference(&before) {
            self.put(key.clone(), Row::Mark);
        }
    }

    fn index(&mut self, memory: &Memory, project_key: &str) {
        for key in fingerprint_keys(memory, project_key) {
            self.put(key, Row::Mark);
        }
    }

    fn unindex(&mut self, memory: &Memory, project_key: &str) {
        for key in fingerprint_keys(memory, project_key) {
            self.delete(key);
        }
    }

    /// Adds a piece of evidence and forgets the oldest beyond the limit. The caller writes the memory.
    pub(super) fn add_evidence(&mut self, memory: &mut Memory, evidence: Evidence) {
        memory.evidence_count = memory.evidence_count.saturating_add(1);
        let number = memory.evidence_count;
        self.put(
            TenantKey::Evidence(memory.id, number),
            Row::Evidence(Box::new(evidence)),
        );
        if let Some(oldest) = number.checked_sub(Memory::EVIDENCE_KEPT_MAX)
            && oldest > 0
        {
            self.delete(TenantKey::Evidence(memory.id, oldest));
        }
    }

    // ---- vectors -------------------------------------------------------------------------------------------------

    pub(super) fn set_vector(&mut self, item: Item, vector: &VectorDraft) {
        self.remove_vector(item);
        match vector {
            VectorDraft::Ready(vector) => self.put_vector(item, vector.clone()),
            VectorDraft::Pending => {
                self.state.awaiting_vectors += 1;
                self.effects.awaiting_vectors = true;
                self.put(TenantKey::AwaitsVector(item), Row::Mark);
            }
            VectorDraft::None => {}
        }
    }

    pub(super) fn put_vector(&mut self, item: Item, vector: Vector) {
        self.put(TenantKey::Vector(item), Row::Vector(vector));
        self.changed(item);
    }

    /// Removes the vector of an item, or its place in the queue.
    pub(super) fn remove_vector(&mut self, item: Item) {
        if self.rows().vector(item).is_some() {
            self.delete(TenantKey::Vector(item));
        }
        self.stop_waiting(item);
    }

    /// Takes an item out of the queue for vectors; false when it was not in it.
    pub(super) fn stop_waiting(&mut self, item: Item) -> bool {
        let key = TenantKey::AwaitsVector(item);
        let waits = self
            .tables
            .get(&Key::Tenant(self.tenant.clone(), key.clone()))
            .is_some();
        if waits {
            self.delete(key);
            self.state.awaiting_vectors = self.state.awaiting_vectors.saturating_sub(1);
        }
        waits
    }

    // ---- links ---------------------------------------------------------------------------------------------------

    /// Writes a new link and counts it at both ends.
    pub(super) fn insert_link(&mut self, link: Link) {
        let (id, source, target, relationship) = (link.id, link.source, link.target, link.relationship);
        let open = link.is_open_conflict();
        self.put(TenantKey::LinkFrom(source, relationship, target), Row::LinkId(id));
        self.put(TenantKey::LinkTo(target, relationship, source), Row::LinkId(id));
        let project_key = self
            .rows()
            .memory(source)
            .map(|m| m.scope.project_key())
            .unwrap_or_default();
        let confidence = link.confidence;
        self.count(&project_key, |c| {
            add(
                c.links
                    .get_mut(usize::from(relationship.number()))
                    .and_then(|row| row.get_mut(usize::from(confidence.number()))),
                1,
            );
            c.open_conflicts += u64::from(open);
        });
        for end in [source, target] {
            self.count_link_at(end, 1, i64::from(open));
        }
        self.index_conflict(&link);
        self.note_link(ChangeKind::Linked, &link);
        self.put(TenantKey::Link(id), Row::Link(Box::new(link)));
    }

    /// Replaces a link by a changed one with the same ends and relationship, as its next version.
    pub(super) fn change_link(&mut self, old: &Link, mut new: Link) {
        new.version = old.version.saturating_add(1);
        self.replace_link(old, new);
    }

    /// Puts `new` in the place of `old`: the same id, ends and relationship.
    pub(super) fn replace_link(&mut self, old: &Link, new: Link) {
        let project_key = self
            .rows()
            .memory(old.source)
            .map(|m| m.scope.project_key())
            .unwrap_or_default();
        let (row, before, after) = (usize::from(old.relationship.number()), old.confidence, new.confidence);
        let (open_before, open_after) = (old.is_open_conflict(), new.is_open_conflict());
        self.count(&project_key, |c| {
            take(
                c.links
                    .get_mut(row)
                    .and_then(|r| r.get_mut(usize::from(before.number()))),
                1,
            );
            add(
                c.links
                    .get_mut(row)
                    .and_then(|r| r.get_mut(usize::from(after.number()))),
                1,
            );
            c.open_conflicts = (c.open_conflicts + u64::from(open_after)).saturating_sub(u64::from(open_before));
        });
        if open_before != open_after {
            let change = i64::from(open_after) - i64::from(open_before);
            for end in [old.source, old.target] {
                self.count_link_at(end, 0, change);
            }
        }
        if open_before != open_after {
            self.unindex_conflict(old);
            self.index_conflict(&new);
            let kind = if open_after {
                ChangeKind::Reopened
            } else {
                ChangeKind::Resolved
            };
            self.note_link(kind, &new);
        } else if old.resolution.as_ref().map(|r| r.winner) != new.resolution.as_ref().map(|r| r.winner) {
            self.note_link(ChangeKind::Resolved, &new);
        }
        self.put(TenantKey::Link(new.id), Row::Link(Box::new(new)));
    }

    /// Removes a link; the end `gone` is being erased and is not counted down.
    pub(super) fn remove_link(&mut self, link: &Link, gone: MemoryId) {
        self.delete(TenantKey::LinkFrom(link.source, link.relationship, link.target));
        self.delete(TenantKey::LinkTo(link.target, link.relationship, link.source));
        self.delete(TenantKey::Link(link.id));
        self.unindex_conflict(link);
        let project_key = self
            .rows()
            .memory(link.source)
            .map(|m| m.scope.project_key())
            .unwrap_or_default();
        let (row, confidence, open) = (
            usize::from(link.relationship.number()),
            link.confidence,
            link.is_open_conflict(),
        );
        self.count(&project_key, |c| {
            take(
                c.links
                    .get_mut(row)
                    .and_then(|r| r.get_mut(usize::from(confidence.number()))),
                1,
            );
            c.open_conflicts = c.open_conflicts.saturating_sub(u64::from(open));
        });
        let other = link.other_end(gone);
        if other != gone {
            self.count_link_at(other, -1, -i64::from(open));
        }
    }

    /// Removes a link between two memories that stay.
    pub(super) fn cut_link(&mut self, link: &Link) {
        self.remove_link(link, link.source);
        if link.source != link.target {
            self.count_link_at(link.source, -1, -i64::from(link.is_open_conflict()));
        }
    }

    fn count_link_at(&mut self, memory: MemoryId, links: i64, open_conflicts: i64) {
        let Some(mut memory) = self.rows().memory(memory) else {
            return;
        };
        memory.link_count = shifted(memory.link_count, links);
        memory.open_conflict_count = shifted(memory.open_conflict_count, open_conflicts);
        let connected = &mut self.state.most_connected;
        connected.retain(|(id, _)| *id != memory.id);
        if memory.link_count > 0 {
            connected.push((memory.id, memory.link_count));
            connected.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(&b.0)));
            connected.truncate(TenantState::CONNECTED_MAX);
        }
        self.rewrite_memory(memory);
    }
}

/// The index rows of a memory. A closed memory keeps them: queries check the state themselves.
fn fingerprint_keys(memory: &Memory, project_key: &str) -> Vec<TenantKey> {
    let at = |form, fingerprint| TenantKey::Fingerprint(project_key.to_owned(), form, fingerprint, memory.id);
    let statement = &memory.statement;
    let mut keys = vec![at(Form::Exact, statement.exact), at(Form::Label, statement.label)];
    keys.extend(statement.canonical.map(|f| at(Form::Canonical, f)));
    keys.extend(statement.acronym.map(|f| at(Form::Acronym, f)));
    keys.extend(
        memory
            .aliases
            .iter()
            .filter_map(|alias| alias.exact)
            .map(|f| at(Form::Exact, f)),
    );
    keys.extend(statement.claims.iter().map(|claim| at(Form::Slot, claim.slot)));
    keys.extend(statement.general.iter().map(|f| at(Form::General, *f)));
    keys
}

fn text_bytes(memory: &Memory) -> u64 {
    let aliases: usize = memory.aliases.iter().map(|alias| alias.text.len()).sum();
    u64::try_from(memory.label.len() + memory.content.len() + aliases).unwrap_or(u64::MAX)
}

fn shifted(count: u32, change: i64) -> u32 {
    u32::try_from((i64::from(count) + change).max(0)).unwrap_or(u32::MAX)
}

fn add(count: Option<&mut u64>, change: u64) {
    if let Some(count) = count {
        *count += change;
    }
}

fn take(count: Option<&mut u64>, change: u64) {
    if let Some(count) = count {
        *count = count.saturating_sub(change);
    }
}

/// Whether a memory can be part of a conflict or take a merge: not closed (gate G10).
pub(super) fn is_open(memory: &Memory, now: Millis) -> bool {
    memory.state_at(now) != State::Closed
}

/// The key of a project name that a command carries.
pub(super) fn project_key(name: &str) -> String {
    name_key(name)
}
