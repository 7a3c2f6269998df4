//! The graph as the script of the page reads it.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use waggle_memory::id::MemoryId;
use waggle_memory::link::Link;
use waggle_memory::memory::{Memory, State};
use waggle_memory::record::MemoryRecord;

use super::{LINKS_MAX, Layout, MEMORIES_MAX, PageOptions};
use crate::graph::Graph;
use crate::redaction::Redactor;

/// Bytes of text that all memories of a page share; a single one gets at most [`NODE_TEXT_BYTES_MAX`].
const TEXT_BYTES_MAX: usize = 48 << 20;
const NODE_TEXT_BYTES_MAX: usize = 96 << 10;

/// Everything in the page.
#[derive(Serialize)]
pub(super) struct Data {
    meta: Meta,
    pub(super) nodes: Vec<Node>,
    /// Source, target (positions in `nodes`), relationship, weight, confidence, state of a conflict, reason.
    pub(super) links: Vec<(usize, usize, &'static str, f64, &'static str, &'static str, String)>,
}

#[derive(Serialize)]
struct Meta {
    tenant: String,
    project: String,
    changed_at: String,
    physics: bool,
    redactions: usize,
    notices: Vec<String>,
}

/// A memory.
#[derive(Serialize)]
pub(super) struct Node {
    id: String,
    label: String,
    content: String,
    /// Whether the content goes on.
    cut: bool,
    kind: &'static str,
    state: &'static str,
    confidence: &'static str,
    tags: Vec<String>,
    aliases: Vec<String>,
    project: String,
    agent: String,
    session: String,
    author: String,
    valid_from: String,
    valid_to: Option<String>,
    recorded_at: String,
    updated_at: String,
    version: u32,
    superseded_by: Option<String>,
    evidence_count: u32,
    /// Who, when, what; newest first.
    evidence: Vec<(String, String, String)>,
}

pub(super) fn collect(graph: &Graph, options: PageOptions<'_>, redactor: &Redactor) -> Data {
    let shown = best_connected(graph);
    let each = TEXT_BYTES_MAX
        .checked_div(shown.len())
        .unwrap_or(NODE_TEXT_BYTES_MAX)
        .min(NODE_TEXT_BYTES_MAX);
    let nodes = shown.iter().filter_map(|id| graph.record(*id));
    let nodes = nodes.map(|record| node(record, options, redactor, each)).collect();
    let position: BTreeMap<MemoryId, usize> = shown.iter().enumerate().map(|(at, id)| (*id, at)).collect();
    let mut links: Vec<&Link> = graph
        .links()
        .filter(|link| position.contains_key(&link.source) && position.contains_key(&link.target))
        .collect();
    let links_left_out = links.len().saturating_sub(LINKS_MAX);
    if links_left_out > 0 {
        links.sort_by_key(|link| {
            (
                !link.is_open_conflict(),
                std::cmp::Reverse(link.strength_millionths()),
                link.id,
            )
        });
        links.truncate(LINKS_MAX);
    }
    let links = links.into_iter().filter_map(|link| {
        let ends = (*position.get(&link.source)?, *position.get(&link.target)?);
        Some(row(link, ends, redactor))
    });
    let links = links.collect();
    let notices = notices(graph.memory_count(), shown.len(), links_left_out);
    Data {
        nodes,
        links,
        meta: Meta {
            tenant: options.tenant.to_string(),
            project: options.project.to_owned(),
            changed_at: options.generated_at.to_string(),
            physics: options.layout == Layout::Physics,
            redactions: redactor.count(),
            notices,
        },
    }
}

/// The memories of the page by id; if there are too many, those with the most links.
fn best_connected(graph: &Graph) -> BTreeSet<MemoryId> {
    let all = graph.memories().map(|record| record.memory.id);
    if graph.memory_count() <= MEMORIES_MAX {
        return all.collect();
    }
    let mut by_links: Vec<(usize, MemoryId)> = all.map(|id| (graph.links_of(id).count(), id)).collect();
    by_links.sort_by_key(|(count, id)| (std::cmp::Reverse(*count), *id));
    by_links.into_iter().take(MEMORIES_MAX).map(|(_, id)| id).collect()
}

fn notices(all: usize, shown: usize, links_left_out: usize) -> Vec<String> {
    let mut notices = Vec::new();
    if all > shown {
        notices.push(format!(
            "This page shows the {shown} best connected of {all} memories. Export a project or a session to see the others."
        ));
    }
    if links_left_out > 0 {
        notices.push(format!("The weakest {links_left_out} links are left out."));
    }
    notices
}

fn node(record: &MemoryRecord, options: PageOptions<'_>, redactor: &Redactor, bytes_max: usize) -> Node {
    let memory = &record.memory;
    let content = redactor.text(&memory.content);
    let mut room = bytes_max;
    let shown = prefix(&content, room);
    room = room.saturating_sub(shown.len());
    Node {
        id: memory.id.to_string(),
        label: redactor.text(&memory.label),
        cut: shown.len() < content.len(),
        content: shown.to_owned(),
        kind: memory.kind.word(),
        state: state(memory, options).word(),
        confidence: memory.confidence.word(),
        tags: memory.tags.iter().map(|tag| redactor.text(tag)).collect(),
        evidence: evidence(record, redactor, &mut room),
        aliases: aliases(memory, redactor, &mut room),
        project: memory.scope.project.clone(),
        agent: memory.scope.agent_id.clone(),
        session: memory.scope.session_id.clone(),
        author: memory.author.0.clone(),
        valid_from: memory.valid_from.to_string(),
        valid_to: memory.valid_to.map(|to| to.to_string()),
        recorded_at: memory.recorded_at.to_string(),
        updated_at: memory.updated_at.to_string(),
        version: memory.version,
        superseded_by: memory.superseded_by.map(|id| id.to_string()),
        evidence_count: memory.evidence_count,
    }
}

fn state(memory: &Memory, options: PageOptions<'_>) -> State {
    memory.state_at(options.generated_at)
}

/// The newest evidence that fits.
fn evidence(record: &MemoryRecord, redactor: &Redactor, room: &mut usize) -> Vec<(String, String, String)> {
    let mut shown = Vec::new();
    for (_, evidence) in record.evidence.iter().rev() {
        if evidence.text.len() > *room {
            break;
        }
        let text = redactor.text(&evidence.text);
        *room = room.saturating_sub(text.len());
        let who = match &evidence.turn {
            Some(span) => format!(
                "{}, turn {} of session {}",
                span.role, span.turn_index, evidence.scope.session_id
            ),
            None => evidence.author.0.clone(),
        };
        shown.push((who, evidence.observed_at.to_string(), text));
    }
    shown
}

fn aliases(memory: &Memory, redactor: &Redactor, room: &mut usize) -> Vec<String> {
    let mut shown = Vec::new();
    for alias in &memory.aliases {
        if alias.text.len() > *room {
            break;
        }
        let text = redactor.text(&alias.text);
        *room = room.saturating_sub(text.len());
        shown.push(text);
    }
    shown
}

fn row(
    link: &Link,
    (source, target): (usize, usize),
    redactor: &Redactor,
) -> (usize, usize, &'static str, f64, &'static str, &'static str, String) {
    let state = match &link.resolution {
        None => "",
        Some(resolution) if resolution.resolved => "resolved",
        Some(_) => "open",
    };
    let weight = f64::from(link.weight_thousandths) / 1_000.0;
    let reason = redactor.text(&link.reason);
    (
        source,
        target,
        link.relationship.word(),
        weight,
        link.confidence.word(),
        state,
        reason,
    )
}

/// At most so many bytes, on a character boundary.
fn prefix(text: &str, bytes_max: usize) -> &str {
    let mut end = bytes_max.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default()
}
