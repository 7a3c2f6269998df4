//! Rows by their type: what apply and queries use instead of matching on [`Row`].

use std::collections::BTreeMap;
mod walk;

use super::{Form, Item, Key, ReadTables, Row, ShardKey, TenantKey};
use crate::handoff::Message;
use crate::id::{LinkId, MemoryId, MessageId, TenantId, TurnId};
use crate::kind::Relationship;
use crate::link::Link;
use crate::memory::{Evidence, Memory, Tombstone, Vector, Version};
use crate::meta::{ApiKey, JoinToken, KeyId, Placement, Tenant};
use crate::scope::name_key;
use crate::statement::Fingerprint;
use crate::time::Stamp;
use crate::transcript::{Agent, Project, Session, TenantState, Turn};

mod history;

/// Pieces of evidence a memory that are read together; most memories have one.
const NEIGHBOURS_EVIDENCE: usize = 4;
const ID_MIN: [u8; 16] = [0; 16];
const ID_MAX: [u8; 16] = [0xff; 16];

macro_rules! row {
    ($tables:expr, $key:expr, $variant:ident) => {
        match $tables.get(&$key) {
            Some(Row::$variant(value)) => Some(value),
            _ => None,
        }
    };
}

/// The last stamp that this shard applied.
pub fn last_stamp(tables: &dyn ReadTables) -> Stamp {
    row!(tables, Key::Shard(ShardKey::LastStamp), Stamp).unwrap_or_default()
}

/// The placement of the cluster (meta shard).
pub fn placement(tables: &dyn ReadTables) -> Option<Placement> {
    row!(tables, Key::Shard(ShardKey::Placement), Placement)
}

/// A tenant (meta shard).
pub fn tenant_info(tables: &dyn ReadTables, tenant: &TenantId) -> Option<Tenant> {
    row!(tables, Key::Shard(ShardKey::TenantInfo(tenant.clone())), TenantInfo)
}

/// An API key (meta shard).
pub fn api_key(tables: &dyn ReadTables, id: &KeyId) -> Option<ApiKey> {
    row!(tables, Key::Shard(ShardKey::ApiKey(id.clone())), ApiKey)
}

/// A join token (meta shard).
pub fn join_token(tables: &dyn ReadTables, id: &KeyId) -> Option<JoinToken> {
    row!(tables, Key::Shard(ShardKey::JoinToken(id.clone())), JoinToken)
}

/// The rows of one tenant. There is no way to read a tenant's rows without naming the tenant (I-30).
#[derive(Clone, Copy)]
pub struct TenantRows<'a> {
    tables: &'a dyn ReadTables,
    tenant: &'a TenantId,
}

impl<'a> TenantRows<'a> {
    /// The rows of `tenant` in `tables`.
    pub fn new(tables: &'a dyn ReadTables, tenant: &'a TenantId) -> Self {
        Self { tables, tenant }
    }

    /// Whose rows these are.
    pub fn tenant(&self) -> &'a TenantId {
        self.tenant
    }

    fn key(&self, key: TenantKey) -> Key {
        Key::Tenant(self.tenant.clone(), key)
    }

    /// Counters; empty for a tenant that never wrote.
    pub fn state(&self) -> TenantState {
        row!(self.tables, self.key(TenantKey::State), State).unwrap_or_default()
    }

    /// A memory.
    pub fn memory(&self, id: MemoryId) -> Option<Memory> {
        row!(self.tables, self.key(TenantKey::Memory(id)), Memory).map(|m| *m)
    }

    /// A tombstone.
    pub fn tombstone(&self, id: MemoryId) -> Option<Tombstone> {
        row!(self.tables, self.key(TenantKey::Tombstone(id)), Tombstone)
    }

    /// Earlier versions, newest first.
    pub fn versions(&self, id: MemoryId, limit: usize) -> Vec<Version> {
        let from = self.key(TenantKey::Version(id, 0));
        let to = self.key(TenantKey::Version(id, u32::MAX));
        let rows = self.tables.scan_back(&from, &to, limit);
        rows.into_iter()
            .filter_map(|(_, row)| if let Row::Version(v) = row { Some(*v) } else { None })
            .collect()
    }

    /// Evidence with its number, newest first.
    pub fn evidence(&self, id: MemoryId, limit: usize) -> Vec<(u32, Evidence)> {
        let from = self.key(TenantKey::Evidence(id, 0));
        let to = self.key(TenantKey::Evidence(id, u32::MAX));
        self.tables
            .scan_back(&from, &to, limit)
            .into_iter()
            .filter_map(|(key, row)| match (key, row) {
                (Key::Tenant(_, TenantKey::Evidence(_, number)), Row::Evidence(e)) => Some((number, *e)),
                _ => None,
            })
            .collect()
    }

    /// Evidence of each of `memories`, newest first and at most `limit` each. They are neighbours in id order, so their
    /// rows are read together: a walk over a tenant would otherwise seek once for each.
    pub fn evidence_of_neighbours(&self, memories: &[Memory], limit: usize) -> Vec<Vec<Evidence>> {
        let (Some(first), Some(last)) = (memories.first(), memories.last()) else {
            return Vec::new();
        };
        let from = self.key(TenantKey::Evidence(first.id, 0));
        let to = self.key(TenantKey::Evidence(last.id, u32::MAX));
        let most = memories.len().saturating_mul(NEIGHBOURS_EVIDENCE);
        let rows = self.tables.scan(&from, &to, most);
        let all = rows.len() < most;
        let mut found: BTreeMap<MemoryId, Vec<Evidence>> = BTreeMap::new();
        for (key, row) in rows {
            if let (Key::Tenant(_, TenantKey::Evidence(id, _)), Row::Evidence(evidence)) = (key, row) {
                found.entry(id).or_default().push(*evidence);
            }
        }
        // Where the scan was cut, the last one may lack some.
        let complete_before = found.last_key_value().map(|(id, _)| *id).filter(|_| !all);
        memories
            .iter()
            .map(|memory| match complete_before {
                Some(cut) if memory.id >= cut => {
                    let rows = self.evidence(memory.id, limit);
                    rows.into_iter().map(|(_, evidence)| evidence).collect()
                }
                _ => {
                    let mut evidence = found.remove(&memory.id).unwrap_or_default();
                    evidence.reverse();
                    evidence.truncate(limit);
                    evidence
                }
            })
            .collect()
    }

    /// Vectors of the items from `first` to `last`, at most `limit`.
    pub fn vectors_between(&self, first: Item, last: Item, limit: usize) -> BTreeMap<Item, Vector> {
        let rows = self.tables.scan(
            &self.key(TenantKey::Vector(first)),
            &self.key(TenantKey::Vector(last)),
            limit,
        );
        rows.into_iter()
            .filter_map(|(key, row)| match (key, row) {
                (Key::Tenant(_, TenantKey::Vector(item)), Row::Vector(vector)) => Some((item, vector)),
                _ => None,
            })
            .collect()
    }

    /// A link.
    pub fn link(&self, id: LinkId) -> Option<Link> {
        row!(self.tables, self.key(TenantKey::Link(id)), Link).map(|l| *l)
    }

    /// The link of a triple; a symmetric relationship is found from either end.
    pub fn link_of(&self, source: MemoryId, relationship: Relationship, target: MemoryId) -> Option<Link> {
        let there = row!(
            self.tables,
            self.key(TenantKey::LinkFrom(source, relationship, target)),
            LinkId
        );
        let found = match there {
            None if relationship.is_symmetric() => {
                row!(
                    self.tables,
                    self.key(TenantKey::LinkFrom(target, relationship, source)),
                    LinkId
                )
            }
            other => other,
        };
        found.and_then(|id| self.link(id))
    }

    /// Links that start at a memory, by relationship.
    pub fn links_from(&self, id: MemoryId, limit: usize) -> Vec<Link> {
        let from = self.key(TenantKey::LinkFrom(
            id,
            Relationship::RelatesTo,
            MemoryId::from_bytes(ID_MIN),
        ));
        let to = self.key(TenantKey::LinkFrom(
            id,
            Relationship::ReflectsOn,
            MemoryId::from_bytes(ID_MAX),
        ));
        self.linked(&from, &to, limit)
    }

    /// Ends of the links of one relationship that start at a memory, in id order.
    pub fn targets(&self, id: MemoryId, relationship: Relationship, limit: usize) -> Vec<MemoryId> {
        let at = |end| self.key(TenantKey::LinkFrom(id, relationship, MemoryId::from_bytes(end)));
        let rows = self.tables.scan(&at(ID_MIN), &at(ID_MAX), limit);
        rows.into_iter()
            .filter_map(|(key, _)| match key {
                Key::Tenant(_, TenantKey::LinkFrom(_, _, target)) => Some(target),
                _ => None,
            })
            .collect()
    }

    /// Links that end at a memory, by relationship.
    pub fn links_to(&self, id: MemoryId, limit: usize) -> Vec<Link> {
        let from = self.key(TenantKey::LinkTo(
            id,
            Relationship::RelatesTo,
            MemoryId::from_bytes(ID_MIN),
        ));
        let to = self.key(TenantKey::LinkTo(
            id,
            Relationship::ReflectsOn,
            MemoryId::from_bytes(ID_MAX),
        ));
        self.linked(&from, &to, limit)
    }

    /// Links at a memory, both directions, at most `limit` of each.
    pub fn links_at(&self, id: MemoryId, limit: usize) -> Vec<Link> {
        let mut links = self.links_from(id, limit);
        links.extend(self.links_to(id, limit));
        links
    }

    fn linked(&self, from: &Key, to: &Key, limit: usize) -> Vec<Link> {
        self.tables
            .scan(from, to, limit)
            .into_iter()
            .filter_map(|(_, row)| if let Row::LinkId(id) = row { self.link(id) } else { None })
            .collect()
    }

    /// A turn.
    pub fn turn(&self, id: TurnId) -> Option<Turn> {
        row!(self.tables, self.key(TenantKey::Turn(id)), Turn).map(|t| *t)
    }

    /// The turn at a position of a session.
    pub fn turn_at(&self, project_key: &str, session: &str, index: u32) -> Option<TurnId> {
        row!(
            self.tables,
            self.key(TenantKey::TurnAt(project_key.to_owned(), session.to_owned(), index)),
            TurnId
        )
    }

    /// The turn of a message.
    pub fn message(&self, project_key: &str, session: &str, identity: MessageId) -> Option<TurnId> {
        let key = TenantKey::Message(project_key.to_owned(), session.to_owned(), identity);
        row!(self.tables, self.key(key), TurnId)
    }

    /// What is kept of the message that a turn was made from; None for turns that came another way.
    pub fn message_of(&self, turn: TurnId) -> Option<Message> {
        row!(self.tables, self.key(TenantKey::MessageOf(turn)), Message)
    }

    /// A session.
    pub fn session(&self, project_key: &str, session: &str) -> Option<Session> {
        row!(
            self.tables,
            self.key(TenantKey::Session(project_key.to_owned(), session.to_owned())),
            Session
        )
    }

    /// A project by the name that the caller gave.
    pub fn project(&self, name: &str) -> Option<Project> {
        row!(self.tables, self.key(TenantKey::Project(name_key(name))), Project)
    }

    /// An agent by the name that the caller gave.
    pub fn agent(&self, name: &str) -> Option<Agent> {
        row!(self.tables, self.key(TenantKey::Agent(name_key(name))), Agent)
    }

    /// Projects in key order.
    pub fn projects(&self, limit: usize) -> Vec<Project> {
        let (from, to) = (
            self.key(TenantKey::Project(String::new())),
            self.key(TenantKey::Agent(String::new())),
        );
        let rows = self.tables.scan(&from, &to, limit);
        rows.into_iter()
            .filter_map(|(_, row)| if let Row::Project(p) = row { Some(p) } else { None })
            .collect()
    }

    /// Agents in key order.
    pub fn agents(&self, limit: usize) -> Vec<Agent> {
        let from = self.key(TenantKey::Agent(String::new()));
        let to = self.key(TenantKey::Fingerprint(
            String::new(),
            Form::Exact,
            Fingerprint(0),
            MemoryId::from_bytes(ID_MIN),
        ));
        let rows = self.tables.scan(&from, &to, limit);
        rows.into_iter()
            .filter_map(|(_, row)| if let Row::Agent(a) = row { Some(a) } else { None })
            .collect()
    }

    /// Sessions of a project (by key), or of all projects, in key order.
    pub fn sessions(&self, project_key: Option<&str>, limit: usize) -> Vec<Session> {
        let from = self.key(TenantKey::Session(
            project_key.unwrap_or_default().to_owned(),
            String::new(),
        ));
        let to = match project_key {
            // The next possible project key ends the range: no name holds a NUL.
            Some(project) => self.key(TenantKey::Session(format!("{project}\u{0}"), String::new())),
            None => self.key(TenantKey::Project(String::new())),
        };
        let rows = self.tables.scan(&from, &to, limit);
        rows.into_iter()
            .filter_map(|(_, row)| if let Row::Session(s) = row { Some(s) } else { None })
            .collect()
    }

    /// Memories of a project that have a fingerprint, oldest id first.
    pub fn with_fingerprint(
        &self,
        project_key: &str,
        form: Form,
        fingerprint: Fingerprint,
        limit: usize,
    ) -> Vec<MemoryId> {
        let at = |id| {
            self.key(TenantKey::Fingerprint(
                project_key.to_owned(),
                form,
                fingerprint,
                MemoryId::from_bytes(id),
            ))
        };
        self.tables
            .scan(&at(ID_MIN), &at(ID_MAX), limit)
            .into_iter()
            .filter_map(|(key, _)| match key {
                Key::Tenant(_, TenantKey::Fingerprint(_, _, _, id)) => Some(id),
                _ => None,
            })
            .collect()
    }

    /// The vector of an item.
    pub fn vector(&self, item: Item) -> Option<Vector> {
        row!(self.tables, self.key(TenantKey::Vector(item)), Vector)
    }

    /// Whether an item waits for a vector.
    pub fn awaits_vector(&self, item: Item) -> bool {
        self.tables.get(&self.key(TenantKey::AwaitsVector(item))).is_some()
    }

    /// Items that wait for a vector, in key order, after `after`.
    pub fn awaiting_vectors(&self, after: Option<Item>, limit: usize) -> Vec<Item> {
        let first = Item::Memory(MemoryId::from_bytes(ID_MIN));
        let last = Item::Turn(TurnId::from_bytes(ID_MAX));
        let from = self.key(TenantKey::AwaitsVector(after.unwrap_or(first)));
        let rows = self
            .tables
            .scan(&from, &self.key(TenantKey::AwaitsVector(last)), limit.saturating_add(1));
        rows.into_iter()
            .filter_map(|(key, _)| match key {
                Key::Tenant(_, TenantKey::AwaitsVector(item)) if Some(item) != after => Some(item),
                _ => None,
            })
            .take(limit)
            .collect()
    }

    /// The newest memories by id (ids are made in time order), newest first.
    pub fn newest_memories(&self, limit: usize) -> Vec<Memory> {
        let from = self.key(TenantKey::Memory(MemoryId::from_bytes(ID_MIN)));
        let to = self.key(TenantKey::Memory(MemoryId::from_bytes(ID_MAX)));
        let rows = self.tables.scan_back(&from, &to, limit);
        rows.into_iter()
            .filter_map(|(_, row)| if let Row::Memory(m) = row { Some(*m) } else { None })
            .collect()
    }

    /// Memories newest first, those older than `before`: one page of a walk over all of them.
    pub fn memories_before(&self, before: Option<MemoryId>, limit: usize) -> Vec<Memory> {
        let from = self.key(TenantKey::Memory(MemoryId::from_bytes(ID_MIN)));
        let to = self.key(TenantKey::Memory(before.unwrap_or(MemoryId::from_bytes(ID_MAX))));
        let rows = self.tables.scan_back(&from, &to, limit.saturating_add(1));
        rows.into_iter()
            .filter_map(|(_, row)| if let Row::Memory(m) = row { Some(*m) } else { None })
            .filter(|m| Some(m.id) != before)
            .take(limit)
            .collect()
    }

    /// Memories in id order after `after`: one page of a walk over all of them.
    pub fn memories_after(&self, after: Option<MemoryId>, limit: usize) -> Vec<Memory> {
        let from = self.key(TenantKey::Memory(after.unwrap_or(MemoryId::from_bytes(ID_MIN))));
        let to = self.key(TenantKey::Memory(MemoryId::from_bytes(ID_MAX)));
        let rows = self.tables.scan(&from, &to, limit.saturating_add(1));
        rows.into_iter()
            .filter_map(|(_, row)| if let Row::Memory(m) = row { Some(*m) } else { None })
            .filter(|m| Some(m.id) != after)
            .take(limit)
            .collect()
    }

    /// Turns in id order after `after`: one page of a walk over all of them.
    pub fn turns_after(&self, after: Option<TurnId>, limit: usize) -> Vec<Turn> {
        let from = self.key(TenantKey::Turn(after.unwrap_or(TurnId::from_bytes(ID_MIN))));
        let to = self.key(TenantKey::Turn(TurnId::from_bytes(ID_MAX)));
        let rows = self.tables.scan(&from, &to, limit.saturating_add(1));
        rows.into_iter()
            .filter_map(|(_, row)| if let Row::Turn(t) = row { Some(*t) } else { None })
            .filter(|t| Some(t.id) != after)
            .take(limit)
            .collect()
    }
}
