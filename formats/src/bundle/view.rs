//! What a bundle is made of: current memories, links between them, each supporting line once, everything redacted.

use std::collections::{BTreeMap, BTreeSet};

use waggle_memory::id::{LinkId, MemoryId};
use waggle_memory::kind::{Confidence, Kind, Role};
use waggle_memory::link::Link;
use waggle_memory::memory::{Memory, State};
use waggle_memory::scope::name_key;
use waggle_memory::time::Millis;

use super::{BundleRequest, WeakLinks};
use crate::graph::Graph;
use crate::redaction::Redactor;

/// Most changes of the timeline.
const CHANGES_MAX: usize = 50;
/// Most supporting lines of one memory.
const SUPPORT_MAX: usize = 3;

/// The material of a bundle, best first.
pub(super) struct View<'a> {
    pub(super) nodes: Vec<Node<'a>>,
    /// Not conflicts; strongest first.
    pub(super) links: Vec<Link>,
    /// Contradictions and updates, open ones first.
    pub(super) conflicts: Vec<Link>,
    pub(super) replay: Vec<Hit>,
    pub(super) changes: Vec<Change>,
    labels: BTreeMap<MemoryId, String>,
}

/// A memory with its texts as they may be shown.
pub(super) struct Node<'a> {
    pub(super) memory: &'a Memory,
    pub(super) label: String,
    pub(super) content: String,
    pub(super) aliases: Vec<String>,
    pub(super) tags: Vec<String>,
    /// Words it rests on that stand nowhere else in the bundle.
    pub(super) support: Vec<Support>,
}

/// Words that a memory rests on.
pub(super) struct Support {
    pub(super) text: String,
    pub(super) said_by: String,
    pub(super) at: Millis,
}

/// A turn that was found.
pub(super) struct Hit {
    pub(super) turn_id: String,
    pub(super) session_id: String,
    pub(super) turn_index: u32,
    pub(super) role: Role,
    pub(super) text: String,
    pub(super) observed_at: Millis,
    pub(super) memories: Vec<MemoryId>,
}

/// A change of a memory.
pub(super) struct Change {
    pub(super) at: Millis,
    pub(super) memory: MemoryId,
    /// Recorded for the first time, or changed.
    pub(super) what: &'static str,
}

impl<'a> View<'a> {
    pub(super) fn of(graph: &'a Graph, request: &BundleRequest<'_>, redactor: &Redactor) -> Self {
        let mut seen = BTreeSet::new();
        let current: Vec<&Memory> = request
            .memories
            .iter()
            .filter(|id| seen.insert(**id))
            .filter_map(|id| graph.memory(*id))
            .filter(|memory| memory.state_at(request.generated_at) == State::Current)
            .collect();
        let chosen: BTreeSet<MemoryId> = current.iter().map(|memory| memory.id).collect();
        // A turn that was found shows the words; evidence with the same words would repeat them.
        let mut said = BTreeSet::new();
        let replay = hits(graph, request, redactor, &chosen, &mut said);
        let nodes: Vec<Node<'a>> = current
            .iter()
            .copied()
            .map(|memory| Node::of(memory, graph, redactor, &mut said))
            .collect();
        let labels = nodes.iter().map(|node| (node.memory.id, node.label.clone())).collect();
        let (conflicts, links) = links(graph, request, redactor, &chosen);
        Self {
            changes: changes(&current),
            nodes,
            links,
            conflicts,
            replay,
            labels,
        }
    }

    /// The label of a memory of the bundle.
    pub(super) fn label(&self, id: MemoryId) -> &str {
        self.labels.get(&id).map(String::as_str).unwrap_or_default()
    }

    /// How many there are of each kind, in the order of the kinds.
    pub(super) fn by_kind(&self) -> Vec<(Kind, usize)> {
        let count = |kind: Kind| self.nodes.iter().filter(|node| node.memory.kind == kind).count();
        let all = Kind::ALL.iter().map(|kind| (*kind, count(*kind)));
        all.filter(|(_, count)| *count > 0).collect()
    }
}

impl<'a> Node<'a> {
    fn of(memory: &'a Memory, graph: &Graph, redactor: &Redactor, said: &mut BTreeSet<String>) -> Self {
        let label = redactor.text(&memory.label);
        let content = redactor.text(&memory.content);
        said.insert(name_key(&content));
        let evidence = graph
            .record(memory.id)
            .map(|r| r.evidence.as_slice())
            .unwrap_or_default();
        let mut support = Vec::new();
        for (_, evidence) in evidence.iter().rev() {
            let text = redactor.again(&evidence.text);
            if support.len() >= SUPPORT_MAX || text.trim().is_empty() || !said.insert(name_key(&text)) {
                continue;
            }
            support.push(Support {
                text: redactor.text(&evidence.text),
                said_by: match &evidence.turn {
                    Some(span) => span.role.word().to_owned(),
                    None => evidence.author.0.clone(),
                },
                at: evidence.observed_at,
            });
        }
        Self {
            memory,
            label,
            content,
            aliases: memory.aliases.iter().map(|alias| redactor.text(&alias.text)).collect(),
            tags: memory.tags.iter().map(|tag| redactor.text(tag)).collect(),
            support,
        }
    }
}

fn hits(
    graph: &Graph,
    request: &BundleRequest<'_>,
    redactor: &Redactor,
    chosen: &BTreeSet<MemoryId>,
    said: &mut BTreeSet<String>,
) -> Vec<Hit> {
    let turns = request.turns.iter().filter_map(|id| graph.turn(*id));
    turns
        .filter(|turn| said.insert(name_key(&redactor.again(&turn.text))))
        .map(|turn| Hit {
            turn_id: turn.id.to_string(),
            session_id: turn.scope.session_id.clone(),
            turn_index: turn.turn_index,
            role: turn.role,
            text: redactor.text(&turn.text),
            observed_at: turn.observed_at,
            memories: turn.memories.iter().filter(|id| chosen.contains(id)).copied().collect(),
        })
        .collect()
}

/// Conflicts and other links with both ends in the bundle.
fn links(
    graph: &Graph,
    request: &BundleRequest<'_>,
    redactor: &Redactor,
    chosen: &BTreeSet<MemoryId>,
) -> (Vec<Link>, Vec<Link>) {
    let mut seen: BTreeSet<LinkId> = BTreeSet::new();
    let mut all: Vec<Link> = chosen
        .iter()
        .flat_map(|id| graph.links_from(*id))
        .filter(|link| chosen.contains(&link.target) && seen.insert(link.id))
        .filter(|link| request.weak_links == WeakLinks::Shown || link.confidence != Confidence::Weak)
        .cloned()
        .collect();
    for link in &mut all {
        link.reason = redactor.text(&link.reason);
        if let Some(resolution) = &mut link.resolution {
            resolution.note = redactor.text(&resolution.note);
        }
    }
    let (mut conflicts, mut others): (Vec<Link>, Vec<Link>) =
        all.into_iter().partition(|link| link.relationship.is_conflict());
    conflicts.sort_by_key(|link| (!link.is_open_conflict(), link.id));
    others.sort_by_key(|link| (std::cmp::Reverse(link.strength_millionths()), link.id));
    (conflicts, others)
}

/// The newest changes, newest first.
fn changes(current: &[&Memory]) -> Vec<Change> {
    let mut changes: Vec<Change> = current
        .iter()
        .flat_map(|memory| {
            let created = Change {
                at: memory.recorded_at,
                memory: memory.id,
                what: "recorded",
            };
            let updated = (memory.version > 1).then_some(Change {
                at: memory.updated_at,
                memory: memory.id,
                what: "changed",
            });
            std::iter::once(created).chain(updated)
        })
        .collect();
    changes.sort_by_key(|change| (std::cmp::Reverse(change.at), change.memory));
    changes.truncate(CHANGES_MAX);
    changes
}
