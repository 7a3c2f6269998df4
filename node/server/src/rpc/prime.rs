//! prime_context: a brief for a new conversation or a task, from current memories, most binding first.

use std::collections::BTreeSet;
use std::sync::Arc;

use waggle_memory::id::MemoryId;
use waggle_memory::kind::{Confidence, Kind};
use waggle_memory::link::Link;
use waggle_memory::memory::{Memory, State};
use waggle_memory::scope::Scope;
use waggle_memory::tables::typed::TenantRows;
use waggle_memory::time::Millis;
use waggle_proto::wire::{
    self, NodeHit, PrimeItem, PrimeReply, PrimeRequest, PrimeSection, QueryRequest, ReadPoint, TurnHit,
};

use super::{query, views};
use crate::call::Call;
use crate::engine::Engine;
use crate::error::CallError;

/// Longest line of a brief in bytes.
const LINE_BYTES_MAX: usize = 200;
/// Most lines of one section.
const LINES_MAX: usize = 12;
/// Newest memories that are looked through.
const LOOKED_THROUGH_MAX: usize = 2_000;
/// Changes younger than this are told.
const RECENT: i64 = 7 * Millis::DAY;

pub(super) async fn handle(engine: &Arc<Engine>, request: PrimeRequest) -> Result<PrimeReply, CallError> {
    let call = Call::new(engine, request.context.clone())?;
    let scope = wire::scope_of(request.scope.clone())?;
    if !request.bounded {
        call.linearize().await?;
    }
    let recalled = if request.query.trim().is_empty() {
        None
    } else {
        Some(recall(engine, &request).await?)
    };
    call.read(move |engine, rows| {
        let now = engine.clock.wall();
        let brief = Brief::compose(rows, &scope, recalled.as_ref(), now);
        Ok(brief.reply(rows, &request, recalled, now))
    })
    .await
}

/// What a task's query brings: the same recall as query_graph.
async fn recall(engine: &Arc<Engine>, request: &PrimeRequest) -> Result<wire::QueryReply, CallError> {
    let question = QueryRequest {
        context: request.context.clone(),
        scope: request.scope.clone(),
        query: request.query.clone(),
        max_nodes: 20,
        max_depth: 1,
        bounded: true,
        read_after_index: request.read_after_index,
        ..QueryRequest::default()
    };
    query::handle(engine, question).await
}

/// A title, and what belongs under it.
type Chapter<'a> = (&'static str, &'a dyn Fn(&Memory) -> bool);

struct Brief {
    project: String,
    total: u64,
    sections: Vec<(&'static str, Vec<Memory>)>,
    conflicts: Vec<(Link, Memory, Memory)>,
    known: bool,
}

impl Brief {
    fn compose(rows: TenantRows<'_>, scope: &Scope, recalled: Option<&wire::QueryReply>, now: Millis) -> Self {
        let project = rows.project(&scope.project);
        let known = scope.project.trim().is_empty() || project.is_some();
        let memories = candidates(rows, scope, recalled, now);
        let conflicts = open_conflicts(rows, &memories);
        let mut told: BTreeSet<MemoryId> = conflicts.iter().flat_map(|(_, a, b)| [a.id, b.id]).collect();
        let mut sections = Vec::new();
        let has = |memory: &Memory, tag: &str| memory.tags.iter().any(|t| t == tag);
        let chapters: [Chapter<'_>; 7] = [
            ("Decisions in force", &|m: &Memory| {
                m.kind == Kind::Decision && m.confidence != Confidence::Weak
            }),
            ("Constraints and requirements", &|m: &Memory| {
                has(m, "constraint") || has(m, "requirement")
            }),
            ("Preferences", &|m: &Memory| m.kind == Kind::Preference),
            ("Facts", &|m: &Memory| matches!(m.kind, Kind::Fact | Kind::Concept)),
            ("Open questions and to-dos", &|m: &Memory| {
                m.kind == Kind::Question || has(m, "todo")
            }),
            ("Changes of the last 7 days", &|m: &Memory| {
                m.updated_at >= now.plus(-RECENT)
            }),
            ("Notes and names", &|m: &Memory| {
                recalled.is_some() || m.kind == Kind::Note
            }),
        ];
        for (title, belongs) in chapters {
            let lines: Vec<Memory> = memories
                .iter()
                .filter(|memory| !told.contains(&memory.id) && belongs(memory))
                .take(LINES_MAX)
                .cloned()
                .collect();
            told.extend(lines.iter().map(|memory| memory.id));
            if !lines.is_empty() {
                sections.push((title, lines));
            }
        }
        let asked_total = match project {
            Some(project) => project.counters.memories() + tenant_wide(rows, scope),
            None => rows.state().counters.memories(),
        };
        Self {
            project: scope.project.clone(),
            total: asked_total,
            sections,
            conflicts,
            known,
        }
    }

    fn reply(
        self,
        rows: TenantRows<'_>,
        request: &PrimeRequest,
        recalled: Option<wire::QueryReply>,
        now: Millis,
    ) -> PrimeReply {
        let mut sections = Vec::new();
        if !self.conflicts.is_empty() {
            let items = self
                .conflicts
                .iter()
                .map(|(link, a, b)| conflict_line(link, a, b))
                .collect();
            sections.push(PrimeSection {
                title: "Open conflicts".to_owned(),
                items,
            });
        }
        let mut shown: Vec<Memory> = self
            .conflicts
            .iter()
            .flat_map(|(_, a, b)| [a.clone(), b.clone()])
            .collect();
        for (title, memories) in &self.sections {
            let items = memories.iter().map(line).collect();
            sections.push(PrimeSection {
                title: (*title).to_owned(),
                items,
            });
            shown.extend(memories.iter().cloned());
        }
        let mut seen = BTreeSet::new();
        shown.retain(|memory| seen.insert(memory.id));
        let nodes = shown
            .iter()
            .map(|memory| NodeHit {
                memory: Some(views::brief(rows, memory, now).0),
                ..NodeHit::default()
            })
            .collect();
        let turns: Vec<TurnHit> = recalled
            .map(|reply| reply.turns)
            .filter(|_| request.include_evidence)
            .unwrap_or_default();
        let (empty_reason, hint) = match (shown.is_empty() && turns.is_empty(), self.known) {
            (false, _) => (String::new(), String::new()),
            (true, false) => {
                let similar = views::similar_names(&self.project, rows.projects(1_000).into_iter().map(|p| p.name));
                let hint = format!(
                    "no project '{}' is known; similar: {}",
                    self.project,
                    similar.join(", ")
                );
                ("scope_unknown".to_owned(), hint)
            }
            (true, true) => (
                "no_memories_in_scope".to_owned(),
                "nothing is stored here yet".to_owned(),
            ),
        };
        PrimeReply {
            project: self.project,
            sections,
            nodes,
            links: views::links_among(rows, &shown),
            conflicts: self.conflicts.iter().map(|(link, ..)| wire::link(link)).collect(),
            turns,
            total_in_scope: self.total,
            empty_reason,
            hint,
            warnings: Vec::new(),
            read_at: Some(ReadPoint {
                stamp: now.0,
                ..ReadPoint::default()
            }),
        }
    }
}

fn tenant_wide(rows: TenantRows<'_>, scope: &Scope) -> u64 {
    if scope.project_key().is_empty() {
        0
    } else {
        rows.project("").map_or(0, |project| project.counters.memories())
    }
}

/// Current memories in scope: those that a query found, in its order, else the newest.
fn candidates(rows: TenantRows<'_>, scope: &Scope, recalled: Option<&wire::QueryReply>, now: Millis) -> Vec<Memory> {
    let project_key = scope.project_key();
    let in_scope = |memory: &Memory| {
        let key = memory.scope.project_key();
        project_key.is_empty() || key.is_empty() || key == project_key
    };
    let found: Vec<Memory> = match recalled {
        Some(reply) => reply
            .nodes
            .iter()
            .filter_map(|node| wire::memory_id("id", &node.memory.as_ref()?.id).ok())
            .filter_map(|id| rows.memory(id))
            .collect(),
        None => rows.newest_memories(LOOKED_THROUGH_MAX),
    };
    found
        .into_iter()
        .filter(|memory| in_scope(memory) && memory.state_at(now) == State::Current)
        .collect()
}

fn open_conflicts(rows: TenantRows<'_>, memories: &[Memory]) -> Vec<(Link, Memory, Memory)> {
    let mut seen = BTreeSet::new();
    let mut conflicts = Vec::new();
    for memory in memories.iter().filter(|memory| memory.open_conflict_count > 0) {
        for link in views::conflicts_at(rows, memory, false) {
            if conflicts.len() >= LINES_MAX || !seen.insert(link.id) {
                continue;
            }
            if let Some((a, b)) = rows.memory(link.source).zip(rows.memory(link.target)) {
                conflicts.push((link, a, b));
            }
        }
    }
    conflicts
}

fn conflict_line(link: &Link, a: &Memory, b: &Memory) -> PrimeItem {
    let text = format!(
        "{} {} {} (edge {})",
        short(&a.content, 60),
        link.relationship,
        short(&b.content, 60),
        link.id
    );
    PrimeItem {
        memory_id: a.id.bytes().to_vec(),
        text: short(&text, LINE_BYTES_MAX),
    }
}

fn line(memory: &Memory) -> PrimeItem {
    PrimeItem {
        memory_id: memory.id.bytes().to_vec(),
        text: short(&memory.content, LINE_BYTES_MAX - 40),
    }
}

/// At most `bytes_max` bytes on one line; what was cut is shown by an ellipsis.
fn short(text: &str, bytes_max: usize) -> String {
    let one_line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if one_line.len() <= bytes_max {
        return one_line;
    }
    let mut end = bytes_max.saturating_sub('…'.len_utf8());
    while !one_line.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}…", one_line.get(..end).unwrap_or_default())
}
