//! What must hold after every entry, checked over all rows of a shard. Tests and `waggle shard verify` call it; apply
//! keeps it true.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::change::Change;
use crate::id::{LinkId, MemoryId, TenantId};
use crate::link::Link;
use crate::memory::Memory;
use crate::tables::{Form, Item, Key, Row, TenantKey};
use crate::transcript::{Counters, Project, TenantState, Turn};

/// A broken invariant, with its number in docs/invariants.md.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Such as "I-20".
    pub number: &'static str,
    /// What is wrong where.
    pub what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.number, self.what)
    }
}

/// All rows of one tenant, by kind.
#[derive(Default)]
struct Graph {
    memories: BTreeMap<MemoryId, Memory>,
    links: BTreeMap<LinkId, Link>,
    turns: BTreeMap<crate::id::TurnId, Turn>,
    /// Messages by identity, and what is kept of them by turn.
    message_turns: BTreeMap<(String, String, crate::id::MessageId), crate::id::TurnId>,
    messages: BTreeMap<crate::id::TurnId, crate::handoff::Message>,
    turn_positions: BTreeMap<(String, String, u32), crate::id::TurnId>,
    fingerprints: BTreeSet<(String, Form, u64, MemoryId)>,
    link_rows: usize,
    evidence: BTreeMap<MemoryId, u32>,
    tombstones: BTreeSet<MemoryId>,
    vectors: BTreeSet<Item>,
    waiting: BTreeSet<Item>,
    sessions: BTreeMap<(String, String), u32>,
    state: TenantState,
    changes: BTreeSet<u64>,
    conflicts: BTreeSet<(bool, LinkId)>,
    redirects: BTreeMap<MemoryId, MemoryId>,
    projects: BTreeMap<String, Project>,
}

/// Checks all rows of a shard.
pub fn check<'a>(rows: impl Iterator<Item = (&'a Key, &'a Row)>) -> Vec<Violation> {
    let mut graphs: BTreeMap<TenantId, Graph> = BTreeMap::new();
    for (key, row) in rows {
        if let Key::Tenant(tenant, key) = key {
            collect(graphs.entry(tenant.clone()).or_default(), key, row);
        }
    }
    graphs
        .iter()
        .flat_map(|(tenant, graph)| check_tenant(tenant, graph))
        .collect()
}

fn collect(graph: &mut Graph, key: &TenantKey, row: &Row) {
    match (key, row) {
        (TenantKey::State, Row::State(state)) => graph.state = state.clone(),
        (TenantKey::Memory(id), Row::Memory(memory)) => {
            graph.memories.insert(*id, Memory::clone(memory));
        }
        (TenantKey::Link(id), Row::Link(link)) => {
            graph.links.insert(*id, Link::clone(link));
        }
        (TenantKey::LinkFrom(..) | TenantKey::LinkTo(..), Row::LinkId(_)) => graph.link_rows += 1,
        (TenantKey::Turn(id), Row::Turn(turn)) => {
            graph.turns.insert(*id, Turn::clone(turn));
        }
        (TenantKey::TurnAt(project, session, index), Row::TurnId(id)) => {
            graph
                .turn_positions
                .insert((project.clone(), session.clone(), *index), *id);
        }
        (TenantKey::Message(project, session, identity), Row::TurnId(turn)) => {
            let place = (project.clone(), session.clone(), *identity);
            graph.message_turns.insert(place, *turn);
        }
        (TenantKey::MessageOf(turn), Row::Message(message)) => {
            graph.messages.insert(*turn, *message);
        }
        (TenantKey::Session(project, session), Row::Session(row)) => {
            graph
                .sessions
                .insert((project.clone(), session.clone()), row.turn_count);
        }
        (TenantKey::Project(key), Row::Project(project)) => {
            graph.projects.insert(key.clone(), project.clone());
        }
        (TenantKey::Evidence(memory, _), Row::Evidence(_)) => *graph.evidence.entry(*memory).or_default() += 1,
        (TenantKey::Fingerprint(project, form, fingerprint, memory), Row::Mark) => {
            graph
                .fingerprints
                .insert((project.clone(), *form, fingerprint.0, *memory));
        }
        (TenantKey::Vector(item), Row::Vector(_)) => {
            graph.vectors.insert(*item);
        }
        (TenantKey::AwaitsVector(item), Row::Mark) => {
            graph.waiting.insert(*item);
        }
        (TenantKey::Change(number), Row::Change(_)) => {
            graph.changes.insert(*number);
        }
        (TenantKey::Conflict(settled, id), Row::Mark) => {
            graph.conflicts.insert((*settled, *id));
        }
        (TenantKey::Redirect(from), Row::Redirect(to)) => {
            graph.redirects.insert(*from, *to);
        }
        (TenantKey::Tombstone(id), Row::Tombstone(_)) => {
            graph.tombstones.insert(*id);
        }
        _ => {}
    }
}

fn check_tenant(tenant: &TenantId, graph: &Graph) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut wrong = |number, what: String| {
        found.push(Violation {
            number,
            what: format!("{tenant}: {what}"),
        })
    };
    for link in graph.links.values() {
        check_link(graph, link, &mut wrong);
    }
    if graph.link_rows != graph.links.len() * 2 {
        wrong(
            "I-20",
            format!("{} index rows for {} links", graph.link_rows, graph.links.len()),
        );
    }
    for memory in graph.memories.values() {
        check_memory(graph, memory, &mut wrong);
    }
    for (place, turn) in &graph.turn_positions {
        if !graph.turns.contains_key(turn) {
            wrong("I-26", format!("position {place:?} names a turn that is not there"));
        }
    }
    for ((project, session), count) in &graph.sessions {
        let at = |index| (project.clone(), session.clone(), index);
        let mut kept = graph
            .turn_positions
            .range(at(0)..=at(u32::MAX))
            .map(|((.., index), _)| *index);
        // While a session is being erased, its first turns are gone already.
        let first = kept.next().unwrap_or(*count);
        if !(first..*count).skip(1).eq(kept) {
            wrong(
                "I-26",
                format!("session '{session}' of '{project}' has a gap in its {count} turns"),
            );
        }
    }
    for turn in graph.turns.values() {
        for memory in turn.memories.iter().filter(|id| !graph.memories.contains_key(id)) {
            wrong("I-20", format!("turn {} names {memory}, which is not there", turn.id));
        }
    }
    for item in graph.waiting.intersection(&graph.vectors) {
        wrong("I-24", format!("{item:?} has its vector and waits for it"));
    }
    for item in graph.waiting.union(&graph.vectors) {
        let there = match item {
            Item::Memory(id) => graph.memories.contains_key(id),
            Item::Turn(id) => graph.turns.contains_key(id),
        };
        if !there {
            wrong(
                "I-34",
                format!("{item:?} is gone and its vector or wish for one is not"),
            );
        }
    }
    check_messages(graph, &mut wrong);
    check_fingerprints(graph, &mut wrong);
    check_feed(graph, &mut wrong);
    check_redirects(graph, &mut wrong);
    check_counters(graph, &mut wrong);
    found
}

fn check_link(graph: &Graph, link: &Link, wrong: &mut impl FnMut(&'static str, String)) {
    for end in [link.source, link.target] {
        if !graph.memories.contains_key(&end) {
            wrong("I-20", format!("link {} has no end {end}", link.id));
        }
    }
    if link.source == link.target {
        wrong("I-20", format!("link {} leads to itself", link.id));
    }
    if link.relationship.is_conflict() != link.resolution.is_some() {
        wrong(
            "I-25",
            format!(
                "link {} is {} and its resolution is {:?}",
                link.id, link.relationship, link.resolution
            ),
        );
    }
}

fn check_memory(graph: &Graph, memory: &Memory, wrong: &mut impl FnMut(&'static str, String)) {
    let id = memory.id;
    if graph.tombstones.contains(&id) {
        wrong("I-21", format!("{id} was erased and is there"));
    }
    // Imported memories may rest on their author's word alone.
    let by_word = memory.evidence_count == 0 && !memory.author.0.is_empty();
    if graph.evidence.get(&id).copied().unwrap_or(0) == 0 && !by_word {
        wrong("I-22", format!("{id} rests on nothing"));
    }
    // The winner may be absent: in a part of a graph that was imported, or erased after its link was.
    if memory.superseded_by == Some(id) {
        wrong("I-23", format!("{id} is superseded by itself"));
    }
    if memory.valid_to.is_some_and(|to| to <= memory.valid_from) {
        wrong(
            "I-23",
            format!(
                "{id} ends at {:?} before it begins at {}",
                memory.valid_to, memory.valid_from
            ),
        );
    }
    let at_it = |link: &&Link| link.source == id || link.target == id;
    let links = graph.links.values().filter(at_it).count();
    let open = graph
        .links
        .values()
        .filter(at_it)
        .filter(|link| link.is_open_conflict())
        .count();
    if (links, open) != (usize_of(memory.link_count), usize_of(memory.open_conflict_count)) {
        wrong(
            "I-25",
            format!(
                "{id} counts {} links and {} conflicts of {links} and {open}",
                memory.link_count, memory.open_conflict_count
            ),
        );
    }
}

/// Every message belongs to a turn that is there, and both rows of it name each other.
fn check_messages(graph: &Graph, wrong: &mut impl FnMut(&'static str, String)) {
    for (turn, message) in &graph.messages {
        let place = graph.turns.get(turn).map(|turn| {
            let scope = &turn.scope;
            (scope.project_key(), scope.session_id.clone(), message.identity)
        });
        match place {
            None => wrong("I-34", format!("turn {turn} is gone and its message is not")),
            Some(place) if graph.message_turns.get(&place) != Some(turn) => {
                wrong(
                    "I-24",
                    format!("the message of turn {turn} is not found by its identity"),
                );
            }
            Some(_) => {}
        }
    }
    if graph.messages.len() != graph.message_turns.len() {
        let (kept, named) = (graph.messages.len(), graph.message_turns.len());
        wrong("I-24", format!("{named} identities for {kept} messages"));
    }
}

fn check_fingerprints(graph: &Graph, wrong: &mut impl FnMut(&'static str, String)) {
    let mut expected = BTreeSet::new();
    for memory in graph.memories.values() {
        let project = memory.scope.project_key();
        let statement = &memory.statement;
        let mut add = |form, fingerprint: crate::statement::Fingerprint| {
            expected.insert((project.clone(), form, fingerprint.0, memory.id));
        };
        add(Form::Exact, statement.exact);
        add(Form::Label, statement.label);
        statement.canonical.into_iter().for_each(|f| add(Form::Canonical, f));
        statement.acronym.into_iter().for_each(|f| add(Form::Acronym, f));
        memory
            .aliases
            .iter()
            .filter_map(|alias| alias.exact)
            .for_each(|f| add(Form::Exact, f));
        statement.claims.iter().for_each(|claim| add(Form::Slot, claim.slot));
        statement.general.iter().for_each(|f| add(Form::General, *f));
    }
    if expected != graph.fingerprints {
        let (missing, stale) = (
            expected.difference(&graph.fingerprints).count(),
            graph.fingerprints.difference(&expected).count(),
        );
        wrong("I-24", format!("fingerprints: {missing} missing, {stale} stale"));
    }
}

/// Changes are numbered without a gap up to the newest, and every conflict is in the list of its state.
fn check_feed(graph: &Graph, wrong: &mut impl FnMut(&'static str, String)) {
    let newest = graph.state.changes;
    let oldest = newest.saturating_sub(Change::KEPT_MAX).saturating_add(1);
    if !graph.changes.iter().copied().eq(oldest..=newest) {
        wrong(
            "I-24",
            format!("{} changes are kept of {oldest} to {newest}", graph.changes.len()),
        );
    }
    let conflicts: BTreeSet<(bool, LinkId)> = graph
        .links
        .values()
        .filter_map(|link| Some((link.resolution.as_ref()?.resolved, link.id)))
        .collect();
    if conflicts != graph.conflicts {
        wrong(
            "I-24",
            format!("{} conflicts, {} listed", conflicts.len(), graph.conflicts.len()),
        );
    }
}

/// The id of a merged memory leads, maybe by further merges, to a memory or to the tombstone of one.
fn check_redirects(graph: &Graph, wrong: &mut impl FnMut(&'static str, String)) {
    for (from, to) in &graph.redirects {
        if graph.memories.contains_key(from) || graph.tombstones.contains(from) {
            wrong("I-21", format!("{from} was merged into {to} and is there"));
        }
        let there =
            |id| graph.memories.contains_key(id) || graph.tombstones.contains(id) || graph.redirects.contains_key(id);
        if !there(to) {
            wrong("I-20", format!("{from} was merged into {to}, which is not there"));
        }
    }
}

fn check_counters(graph: &Graph, wrong: &mut impl FnMut(&'static str, String)) {
    let mut sum = Counters::default();
    for memory in graph.memories.values() {
        if let Some(count) = sum.memories_by_kind.get_mut(usize::from(memory.kind.number())) {
            *count += 1;
        }
        sum.memories_closed += u64::from(memory.valid_to.is_some());
    }
    for link in graph.links.values() {
        let row = sum.links.get_mut(usize::from(link.relationship.number()));
        if let Some(count) = row.and_then(|row| row.get_mut(usize::from(link.confidence.number()))) {
            *count += 1;
        }
        sum.open_conflicts += u64::from(link.is_open_conflict());
    }
    sum.turns = u64::try_from(graph.turns.len()).unwrap_or(u64::MAX);
    let kept = &graph.state.counters;
    let pairs = [
        ("memories", sum.memories(), kept.memories()),
        ("closed", sum.memories_closed, kept.memories_closed),
        ("links", sum.links_total(), kept.links_total()),
        ("open conflicts", sum.open_conflicts, kept.open_conflicts),
        ("turns", sum.turns, kept.turns),
        (
            "waiting",
            u64::try_from(graph.waiting.len()).unwrap_or(u64::MAX),
            graph.state.awaiting_vectors,
        ),
    ];
    for (what, is, counted) in pairs {
        if is != counted {
            wrong("I-24", format!("{is} {what}, {counted} counted"));
        }
    }
    let of_projects: u64 = graph.projects.values().map(|project| project.counters.memories()).sum();
    if of_projects != kept.memories() {
        wrong(
            "I-24",
            format!("projects count {of_projects} memories, the tenant {}", kept.memories()),
        );
    }
}

fn usize_of(count: u32) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}
