//! Reading a graph out, record by record, from tables that stand still: sessions, turns, memories, links, redirects,
//! tombstones, each by id. The same rows give the same records in the same order.

use std::collections::VecDeque;

use crate::id::{LinkId, MemoryId, TurnId};
use crate::memory::Memory;
use crate::record::{MemoryRecord, Record, Redirect};
use crate::scope::name_key;
use crate::tables::typed::TenantRows;

/// Rows read at once.
const ROWS_AT_ONCE: usize = 128;

/// Which part of a tenant: empty fields choose nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExportScope {
    /// Only this project.
    pub project: String,
    /// Only what this agent gave evidence for or spoke in.
    pub agent_id: String,
    /// Only what rests on this session.
    pub session_id: String,
}

impl ExportScope {
    fn is_everything(&self) -> bool {
        self.project_key().is_none() && self.agent_key().is_none() && self.session_id.is_empty()
    }

    fn project_key(&self) -> Option<String> {
        Some(name_key(&self.project)).filter(|key| !key.is_empty())
    }

    fn agent_key(&self) -> Option<String> {
        Some(name_key(&self.agent_id)).filter(|key| !key.is_empty())
    }
}

/// Which sorts of records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExportKinds {
    /// Sessions and turns.
    pub transcripts: bool,
    /// Memories and links.
    pub graph: bool,
    /// Tombstones; only without a scope, because an erased memory has none.
    pub tombstones: bool,
}

impl ExportKinds {
    /// Everything.
    pub const ALL: Self = Self {
        transcripts: true,
        graph: true,
        tombstones: true,
    };
}

/// A walk over the records of a tenant.
pub struct Export<'a> {
    rows: TenantRows<'a>,
    scope: ExportScope,
    project_key: Option<String>,
    agent_key: Option<String>,
    kinds: ExportKinds,
    stage: Stage,
    ready: VecDeque<Record>,
}

enum Stage {
    Sessions(Option<(String, String)>),
    Turns(Option<TurnId>),
    Memories(Option<MemoryId>),
    Links(Option<LinkId>),
    Redirects(Option<MemoryId>),
    Tombstones(Option<MemoryId>),
    Done,
}

impl<'a> Export<'a> {
    /// Before the first record.
    pub fn new(rows: TenantRows<'a>, scope: ExportScope, kinds: ExportKinds) -> Self {
        Self {
            rows,
            project_key: scope.project_key(),
            agent_key: scope.agent_key(),
            scope,
            kinds,
            stage: Stage::Sessions(None),
            ready: VecDeque::new(),
        }
    }

    /// Reads on until something is ready or nothing is left.
    fn fill(&mut self) {
        while self.ready.is_empty() {
            let stage = std::mem::replace(&mut self.stage, Stage::Done);
            self.stage = match stage {
                Stage::Sessions(after) if self.kinds.transcripts => self.read_sessions(after),
                Stage::Sessions(_) => Stage::Turns(None),
                Stage::Turns(after) if self.kinds.transcripts => self.read_turns(after),
                Stage::Turns(_) => Stage::Memories(None),
                Stage::Memories(after) if self.kinds.graph => self.read_memories(after),
                Stage::Memories(_) => Stage::Links(None),
                Stage::Links(after) if self.kinds.graph => self.read_links(after),
                Stage::Links(_) => Stage::Redirects(None),
                Stage::Redirects(after) if self.kinds.graph => self.read_redirects(after),
                Stage::Redirects(_) => Stage::Tombstones(None),
                Stage::Tombstones(after) if self.kinds.tombstones && self.scope.is_everything() => {
                    self.read_tombstones(after)
                }
                Stage::Tombstones(_) | Stage::Done => return,
            };
        }
    }

    fn read_sessions(&mut self, after: Option<(String, String)>) -> Stage {
        let page = self.rows.sessions_after(after.as_ref(), ROWS_AT_ONCE);
        let Some((project, last)) = page.last() else {
            return Stage::Turns(None);
        };
        let next = Stage::Sessions(Some((project.clone(), last.session_id.clone())));
        for (project, session) in page {
            let has_agent = |agent: &String| session.agents.iter().any(|name| name_key(name) == *agent);
            let inside = self.project_key.as_ref().is_none_or(|key| *key == project)
                && (self.scope.session_id.is_empty() || self.scope.session_id == session.session_id)
                && self.agent_key.as_ref().is_none_or(has_agent);
            if inside {
                self.ready.push_back(Record::Session(session));
            }
        }
        next
    }

    fn read_turns(&mut self, after: Option<TurnId>) -> Stage {
        let page = self.rows.turns_after(after, ROWS_AT_ONCE);
        let Some(last) = page.last() else {
            return Stage::Memories(None);
        };
        let next = Stage::Turns(Some(last.id));
        for turn in page {
            if self.has(&turn.scope) {
                let message = self.rows.message_of(turn.id);
                self.ready.push_back(Record::Turn(Box::new(turn), message));
            }
        }
        next
    }

    fn read_memories(&mut self, after: Option<MemoryId>) -> Stage {
        let page = self.rows.memories_after(after, ROWS_AT_ONCE);
        let Some(last) = page.last() else {
            return Stage::Links(None);
        };
        let next = Stage::Memories(Some(last.id));
        for memory in page {
            if self.contains(&memory) {
                let record = memory_record(self.rows, memory);
                self.ready.push_back(Record::Memory(Box::new(record)));
            }
        }
        next
    }

    fn read_links(&mut self, after: Option<LinkId>) -> Stage {
        let page = self.rows.links_after(after, ROWS_AT_ONCE);
        let Some(last) = page.last() else {
            return Stage::Redirects(None);
        };
        let next = Stage::Links(Some(last.id));
        for link in page {
            let inside = |end| self.rows.memory(end).is_some_and(|memory| self.contains(&memory));
            if inside(link.source) && inside(link.target) {
                self.ready.push_back(Record::Link(Box::new(link)));
            }
        }
        next
    }

    /// A merged id belongs where the memory is that it leads to.
    fn read_redirects(&mut self, after: Option<MemoryId>) -> Stage {
        let page = self.rows.redirects_after(after, ROWS_AT_ONCE);
        let Some((last, _)) = page.last() else {
            return Stage::Tombstones(None);
        };
        let next = Stage::Redirects(Some(*last));
        for (from, to) in page {
            let memory = || self.rows.resolved(to).is_some_and(|memory| self.contains(&memory));
            if self.scope.is_everything() || memory() {
                self.ready.push_back(Record::Redirect(Redirect { from, to }));
            }
        }
        next
    }

    fn read_tombstones(&mut self, after: Option<MemoryId>) -> Stage {
        let page = self.rows.tombstones_after(after, ROWS_AT_ONCE);
        let Some((last, _)) = page.last() else {
            return Stage::Done;
        };
        let next = Stage::Tombstones(Some(*last));
        self.ready
            .extend(page.into_iter().map(|(id, tombstone)| Record::Tombstone(id, tombstone)));
        next
    }

    fn has(&self, scope: &crate::scope::Scope) -> bool {
        self.project_key.as_ref().is_none_or(|key| *key == scope.project_key())
            && (self.scope.session_id.is_empty() || self.scope.session_id == scope.session_id)
            && self.agent_key.as_ref().is_none_or(|key| *key == scope.agent_key())
    }

    /// A memory belongs to its project, and to every agent and session that gave evidence for it.
    fn contains(&self, memory: &Memory) -> bool {
        if self.has(&memory.scope) {
            return true;
        }
        let in_project = self
            .project_key
            .as_ref()
            .is_none_or(|key| *key == memory.scope.project_key());
        if !in_project || (self.scope.session_id.is_empty() && self.agent_key.is_none()) {
            return false;
        }
        let evidence = self.rows.evidence(memory.id, evidence_max());
        evidence.iter().any(|(_, evidence)| self.has(&evidence.scope))
    }
}

impl Iterator for Export<'_> {
    type Item = Record;

    fn next(&mut self) -> Option<Record> {
        self.fill();
        self.ready.pop_front()
    }
}

/// A memory with all that belongs to it alone.
pub fn memory_record(rows: TenantRows<'_>, memory: Memory) -> MemoryRecord {
    let mut evidence = rows.evidence(memory.id, evidence_max());
    evidence.reverse();
    let most = usize::try_from(Memory::VERSIONS_KEPT_MAX).unwrap_or(usize::MAX);
    let mut versions = rows.versions(memory.id, most);
    versions.reverse();
    MemoryRecord {
        memory,
        evidence,
        versions,
    }
}

fn evidence_max() -> usize {
    usize::try_from(Memory::EVIDENCE_KEPT_MAX).unwrap_or(usize::MAX)
}
