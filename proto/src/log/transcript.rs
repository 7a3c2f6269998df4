//! Turns, sessions, projects, agents and counters.

use waggle_memory::id::{MemoryId, PairId, Principal, TurnId};
use waggle_memory::kind::Role;
use waggle_memory::time::Millis;
use waggle_memory::transcript::{Agent, Counters, Project, Session, TenantState, Turn};

use super::generated as pb;
use super::malformed::{Malformed, bounded, id, ids, texts, word};
use super::message::{Persisted, needed};

impl Persisted for Turn {
    type Message = pb::Turn;

    fn to_message(&self) -> pb::Turn {
        pb::Turn {
            id: self.id.bytes().to_vec(),
            pair: self.pair.bytes().to_vec(),
            scope: Some(self.scope.to_message()),
            role: self.role.number().into(),
            turn_index: self.turn_index,
            text: self.text.clone(),
            observed_at: self.observed_at.0,
            recorded_at: self.recorded_at.0,
            author: self.author.0.clone(),
            memories: self.memories.iter().map(|id| id.bytes().to_vec()).collect(),
        }
    }

    fn from_message(m: pb::Turn) -> Result<Self, Malformed> {
        Ok(Self {
            id: id("turn.id", &m.id, TurnId::from_bytes)?,
            pair: id("turn.pair", &m.pair, PairId::from_bytes)?,
            scope: needed("turn.scope", m.scope)?,
            role: word("turn.role", m.role, Role::from_number)?,
            turn_index: m.turn_index,
            text: m.text,
            observed_at: Millis(m.observed_at),
            recorded_at: Millis(m.recorded_at),
            author: Principal(m.author),
            memories: ids("turn.memories", &m.memories, MemoryId::from_bytes)?,
        })
    }
}

impl Persisted for Session {
    type Message = pb::Session;

    fn to_message(&self) -> pb::Session {
        pb::Session {
            project: self.project.clone(),
            session_id: self.session_id.clone(),
            agents: self.agents.clone(),
            title: self.title.clone(),
            first_used_at: self.first_used_at.0,
            last_used_at: self.last_used_at.0,
            turn_count: self.turn_count,
            memory_count: self.memory_count,
        }
    }

    fn from_message(m: pb::Session) -> Result<Self, Malformed> {
        Ok(Self {
            project: m.project,
            session_id: m.session_id,
            agents: texts("session.agents", m.agents)?,
            title: m.title,
            first_used_at: Millis(m.first_used_at),
            last_used_at: Millis(m.last_used_at),
            turn_count: m.turn_count,
            memory_count: m.memory_count,
        })
    }
}

impl Persisted for Project {
    type Message = pb::Project;

    fn to_message(&self) -> pb::Project {
        pb::Project {
            name: self.name.clone(),
            namespace: self.namespace.clone(),
            first_used_at: self.first_used_at.0,
            last_used_at: self.last_used_at.0,
            counters: Some(self.counters.to_message()),
        }
    }

    fn from_message(m: pb::Project) -> Result<Self, Malformed> {
        Ok(Self {
            name: m.name,
            namespace: m.namespace,
            first_used_at: Millis(m.first_used_at),
            last_used_at: Millis(m.last_used_at),
            counters: needed("project.counters", m.counters)?,
        })
    }
}

impl Persisted for Agent {
    type Message = pb::Agent;

    fn to_message(&self) -> pb::Agent {
        pb::Agent {
            name: self.name.clone(),
            last_used_at: self.last_used_at.0,
            memory_count: self.memory_count,
            turn_count: self.turn_count,
        }
    }

    fn from_message(m: pb::Agent) -> Result<Self, Malformed> {
        Ok(Self {
            name: m.name,
            last_used_at: Millis(m.last_used_at),
            memory_count: m.memory_count,
            turn_count: m.turn_count,
        })
    }
}

impl Persisted for Counters {
    type Message = pb::Counters;

    fn to_message(&self) -> pb::Counters {
        let kinds = (0..).zip(&self.memories_by_kind).filter(|(_, count)| **count > 0);
        let links = (0..).zip(&self.links).flat_map(|(relationship, of_confidence)| {
            let found = (0..).zip(of_confidence).filter(|(_, count)| **count > 0);
            found.map(move |(confidence, count)| pb::counters::OfLinks {
                relationship,
                confidence,
                count: *count,
            })
        });
        pb::Counters {
            memories_by_kind: kinds
                .map(|(kind, count)| pb::counters::OfKind { kind, count: *count })
                .collect(),
            memories_closed: self.memories_closed,
            links: links.collect(),
            open_conflicts: self.open_conflicts,
            sessions: self.sessions,
            turns: self.turns,
            text_bytes: self.text_bytes,
        }
    }

    fn from_message(m: pb::Counters) -> Result<Self, Malformed> {
        let mut counters = Self {
            memories_closed: m.memories_closed,
            open_conflicts: m.open_conflicts,
            sessions: m.sessions,
            turns: m.turns,
            text_bytes: m.text_bytes,
            ..Self::default()
        };
        for of_kind in m.memories_by_kind {
            *cell("counters.kind", &mut counters.memories_by_kind, of_kind.kind)? = of_kind.count;
        }
        for of_links in m.links {
            let of_confidence = cell("counters.relationship", &mut counters.links, of_links.relationship)?;
            *cell("counters.confidence", of_confidence, of_links.confidence)? = of_links.count;
        }
        Ok(counters)
    }
}

fn cell<'a, T>(field: &'static str, cells: &'a mut [T], number: u32) -> Result<&'a mut T, Malformed> {
    let found = usize::try_from(number).ok().and_then(|number| cells.get_mut(number));
    found.ok_or(Malformed::UnknownNumber {
        field,
        number: i64::from(number),
    })
}

impl Persisted for TenantState {
    type Message = pb::TenantState;

    fn to_message(&self) -> pb::TenantState {
        let connected = self.most_connected.iter();
        pb::TenantState {
            counters: Some(self.counters.to_message()),
            awaiting_vectors: self.awaiting_vectors,
            most_connected: connected
                .map(|(memory, links)| pb::tenant_state::Connected {
                    memory: memory.bytes().to_vec(),
                    links: *links,
                })
                .collect(),
            changes: self.changes,
        }
    }

    fn from_message(m: pb::TenantState) -> Result<Self, Malformed> {
        bounded("state.most_connected", m.most_connected.len())?;
        let connected = m.most_connected.into_iter();
        Ok(Self {
            counters: needed("state.counters", m.counters)?,
            awaiting_vectors: m.awaiting_vectors,
            most_connected: connected
                .map(|c| Ok((id("state.most_connected", &c.memory, MemoryId::from_bytes)?, c.links)))
                .collect::<Result<_, Malformed>>()?,
            changes: m.changes,
        })
    }
}
