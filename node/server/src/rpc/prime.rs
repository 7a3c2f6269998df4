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
/// Newest memories in scope that are looked through, of each group of kinds.
const LOOKED_THROUGH_MAX: u32 = 200;
/// Kinds that bind whoever reads the brief.
const BINDING: [Kind; 4] = [Kind::Decision, Kind::Concept, Kind::Preference, Kind::Question];
/// The other kinds.
const OTHERS: [Kind; 3] = [Kind::Fact, Kind::Note, Kind::Entity];
/// Changes younger than this are told.
const RECENT: i64 = 7 * Millis::DAY;

pub(super) async fn handle(engine: &Arc<Engine>, request: PrimeRequest) -> Result<PrimeReply, CallError> {
    let call = Call::new(engine, request.context.clone())?;
    let scope = wire::scope_of(request.scope.clone())?;
    let applied_index = if request.bounded {
        call.at_least(request.read_after_index).await?
    } else {
        call.linearize().await?
    };
    let shard = call.shard;
    let by_query = !request.query.trim().is_empty();
    let mut recalled = recall(engine, &request, if by_query { &[] } else { &BINDING }).await?;
    if !by_query {
        // What binds first, so that a flood of newer facts cannot hide a decision.
        let others = recall(engine, &request, &OTHERS).await?;
        recalled.nodes.extend(others.nodes);
    }
    call.read(move |engine, rows| {
        let now = engine.clock.wall();
        let brief = Brief::compose(rows, &scope, &recalled, by_query, now);
        let mut reply = brief.reply(rows, &request, recalled, now);
        reply.read_at = Some(ReadPoint {
            shard: shard.0,
            applied_index,
            stamp: now.0,
        });
        Ok(reply)
    })
    .await
}

/// What this task's query, or scope and kinds, bring: the same recall as query_graph, with its walls between projects.
async fn recall(engine: &Arc<Engine>, request: &PrimeRequest, kinds: &[Kind]) -> Result<wire::QueryReply, CallError> {
    let question = QueryRequest {
        context: request.context.clone(),
        scope: request.scope.clone(),
        query: request.query.clone(),
        max_nodes: if kinds.is_empty() { 20 } else { LOOKED_THROUGH_MAX },
        max_depth: if kinds.is_empty() { 1 } else { 0 },
        kinds: kinds.iter().map(|kind| u32::from(kind.number())).collect(),
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
    fn compose(rows: TenantRows<'_>, scope: &Scope, recalled: &wire::QueryReply, by_query: bool, now: Millis) -> Self {
        let known = scope.project.trim().is_empty() || rows.project(&scope.project).is_some();
        let memories = candidates(rows, recalled, now);
        let conflicts = open_conflicts(rows, scope, &memories, now);
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
            ("Facts", &|m: &Memory| m.kind == Kind::Fact),
            ("Open questions and to-dos", &|m: &Memory| {
                m.kind == Kind::Question || has(m, "todo")
            }),
            ("Changes of the last 7 days", &|m: &Memory| {
                m.updated_at >= now.plus(-RECENT)
            }),
            ("Notes and names", &|m: &Memory| {
                by_query || matches!(m.kind, Kind::Note | Kind::Concept)
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
        Self {
            project: scope.project.clone(),
            total: recalled.total_in_scope,
            sections,
            conflicts,
            known,
        }
    }

    fn unknown_project(&self, rows: TenantRows<'_>) -> String {
        let similar = views::similar_names(&self.project, rows.projects(1_000).into_iter().map(|p| p.name));
        if similar.is_empty() {
            format!("no project '{}' is known", self.project)
        } else {
            format!(
                "no project '{}' is known; similar: {}",
                self.project,
                similar.join(", ")
            )
        }
    }

    fn reply(
        self,
        rows: TenantRows<'_>,
        request: &PrimeRequest,
        recalled: wire::QueryReply,
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
        let (why, why_hint) = if recalled.empty_reason.is_empty() || request.query.trim().is_empty() {
            let all_closed = self.total > 0;
            let reason = if all_closed {
                "all_closed"
            } else {
                "no_memories_in_scope"
            };
            let hint = if all_closed {
                "nothing current is stored here; query_graph with include_invalidated shows the rest"
            } else {
                "nothing is stored here yet"
            };
            (reason.to_owned(), hint.to_owned())
        } else {
            (recalled.empty_reason, recalled.hint)
        };
        let turns: Vec<TurnHit> = if request.include_evidence {
            recalled.turns
        } else {
            Vec::new()
        };
        let mut warnings = Vec::new();
        let (empty_reason, hint) = match (shown.is_empty() && turns.is_empty(), self.known) {
            (false, true) => (String::new(), String::new()),
            // Tenant-wide memories are shown, but a misspelt name must not go unnoticed.
            (false, false) => {
                warnings.push("scope_unknown".to_owned());
                (String::new(), self.unknown_project(rows))
            }
            (true, false) => ("scope_unknown".to_owned(), self.unknown_project(rows)),
            (true, true) => (why, why_hint),
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
            warnings,
            read_at: None,
        }
    }
}

/// Current memories in scope: those that recall found, in its order.
fn candidates(rows: TenantRows<'_>, recalled: &wire::QueryReply, now: Millis) -> Vec<Memory> {
    recalled
        .nodes
        .iter()
        .filter_map(|node| wire::memory_id("id", &node.memory.as_ref()?.id).ok())
        .filter_map(|id| rows.memory(id))
        .filter(|memory| memory.state_at(now) == State::Current)
        .collect()
}

/// Open conflicts whose both sides are current and in scope.
fn open_conflicts(
    rows: TenantRows<'_>,
    scope: &Scope,
    memories: &[Memory],
    now: Millis,
) -> Vec<(Link, Memory, Memory)> {
    let project_key = scope.project_key();
    let is_shown = |memory: &Memory| {
        let key = memory.scope.project_key();
        let in_scope = project_key.is_empty() || key.is_empty() || key == project_key;
        in_scope && memory.state_at(now) == State::Current
    };
    let mut seen = BTreeSet::new();
    let mut conflicts = Vec::new();
    for memory in memories.iter().filter(|memory| memory.open_conflict_count > 0) {
        for link in views::conflicts_at(rows, memory, false) {
            if conflicts.len() >= LINES_MAX || !seen.insert(link.id) {
                continue;
            }
            if let Some((a, b)) = rows.memory(link.source).zip(rows.memory(link.target))
                && is_shown(&a)
                && is_shown(&b)
            {
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
