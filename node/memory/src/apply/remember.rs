//! Turns, memories and links of one call, in one step: all of it or nothing.

use super::transaction::{Transaction, project_key};
use super::{conflicts, duplicates};
use crate::command::{NewLink, NewMemory, NewTurn, Remember};
use crate::id::{LinkId, MemoryId};
use crate::link::Link;
use crate::memory::{Evidence, Memory, TurnSpan};
use crate::outcome::{Outcome, Rejection, Remembered, StoredMemory};
use crate::scope::name_key;
use crate::tables::{Item, Row, TenantKey};
use crate::time::Millis;
use crate::transcript::{Agent, Session, Turn};

/// Most turns of one call.
const TURNS_MAX: usize = 1_000;
/// Most memories of one call.
const MEMORIES_MAX: usize = 1_000;
/// Most links of one call.
const LINKS_MAX: usize = 2_000;

pub(super) fn apply_remember(tx: &mut Transaction<'_>, command: &Remember) -> Result<Outcome, Rejection> {
    check(tx, command)?;
    tx.scope = command.scope.clone();
    let project_key = project_key(&command.scope.project);
    let first_use_of_project = enter_scope(tx, command, &project_key);
    let turns = store_turns(tx, command, &project_key);
    let mut memories = Vec::new();
    let mut found_conflicts = Vec::new();
    for new in &command.memories {
        let stored = store_memory(tx, command, new, &project_key, &turns);
        found_conflicts.extend(conflicts::detect(tx, stored.id));
        memories.push(stored);
    }
    note_memories_at_turns(tx, command, &turns, &memories);
    let links = command
        .links
        .iter()
        .filter_map(|link| store_link(tx, command, link, &memories))
        .collect();
    found_conflicts.sort_unstable();
    found_conflicts.dedup();
    Ok(Outcome::Remembered(Box::new(Remembered {
        turns: turns.iter().map(|turn| turn.id).collect(),
        memories,
        links,
        conflicts: found_conflicts,
        first_use_of_project,
    })))
}

fn check(tx: &Transaction<'_>, command: &Remember) -> Result<(), Rejection> {
    let limits = [
        ("turns", command.turns.len(), TURNS_MAX),
        ("memories", command.memories.len(), MEMORIES_MAX),
        ("links", command.links.len(), LINKS_MAX),
    ];
    for (what, count, max) in limits {
        if count > max {
            return Err(Rejection::LimitExceeded {
                why: format!("{count} {what} in one call; at most {max}"),
            });
        }
    }
    for turn in &command.turns {
        if tx.rows().turn(turn.id).is_some() {
            return Err(Rejection::AlreadyExists {
                what: "turn",
                id: turn.id.to_string(),
            });
        }
    }
    command
        .memories
        .iter()
        .try_for_each(|new| check_memory(tx, command, new))
}

fn check_memory(tx: &Transaction<'_>, command: &Remember, new: &NewMemory) -> Result<(), Rejection> {
    let rows = tx.rows();
    if rows.resolved(new.id).is_some() || rows.tombstone(rows.follow(new.id)).is_some() {
        return Err(Rejection::AlreadyExists {
            what: "memory",
            id: new.id.to_string(),
        });
    }
    let from = new.valid_from.or(new.default_valid_from).unwrap_or(tx.now);
    if new.valid_to.is_some_and(|to| to <= from) {
        return Err(Rejection::Invalid {
            field: "valid_to",
            why: format!("must lie after valid_from ({from})"),
        });
    }
    let Some(span) = &new.evidence.span else { return Ok(()) };
    let turn = usize::try_from(span.turn).ok().and_then(|turn| command.turns.get(turn));
    let covered = turn.and_then(|turn| {
        let (start, end) = (usize::try_from(span.start).ok()?, usize::try_from(span.end).ok()?);
        turn.text.get(start..end)
    });
    match covered {
        Some(_) => Ok(()),
        None => Err(Rejection::Invalid {
            field: "evidence",
            why: "span lies outside its turn".to_owned(),
        }),
    }
}

/// Notes that project, session and agent are used. True when the project was never used before.
fn enter_scope(tx: &mut Transaction<'_>, command: &Remember, project_key: &str) -> bool {
    let now = tx.now;
    let scope = &command.scope;
    let project = tx.project_mut(project_key);
    let first_use = project.first_used_at == Millis::default();
    if first_use {
        project.name = scope.project.trim().to_owned();
        project.namespace = command.namespace.clone();
        project.first_used_at = now;
    }
    project.last_used_at = now;
    let agent_key = name_key(&scope.agent_id);
    if !agent_key.is_empty() {
        let mut agent = tx.rows().agent(&scope.agent_id).unwrap_or_else(|| Agent {
            name: scope.agent_id.trim().to_owned(),
            ..Agent::default()
        });
        agent.last_used_at = now;
        agent.memory_count = agent.memory_count.saturating_add(count_u32(command.memories.len()));
        agent.turn_count = agent.turn_count.saturating_add(count_u32(command.turns.len()));
        tx.put(TenantKey::Agent(agent_key), Row::Agent(agent));
    }
    first_use && !project_key.is_empty()
}

/// Stores the turns at the next positions of their session (I-26).
fn store_turns(tx: &mut Transaction<'_>, command: &Remember, project_key: &str) -> Vec<Turn> {
    let scope = &command.scope;
    let found = tx.rows().session(project_key, &scope.session_id);
    let is_new = found.is_none();
    // A call without a session still numbers its turns, in the session with the empty name, which is not counted.
    if command.turns.is_empty() && scope.session_id.is_empty() {
        return Vec::new();
    }
    let mut session = found.unwrap_or_else(|| Session {
        project: scope.project.trim().to_owned(),
        session_id: scope.session_id.clone(),
        first_used_at: tx.now,
        ..Session::default()
    });
    session.last_used_at = tx.now;
    session.memory_count = session.memory_count.saturating_add(count_u32(command.memories.len()));
    let agent = scope.agent_id.trim();
    if !agent.is_empty() && session.agents.len() < Session::AGENTS_MAX && !session.agents.iter().any(|a| a == agent) {
        session.agents.push(agent.to_owned());
    }
    let mut turns = Vec::new();
    for new in &command.turns {
        if session.title.is_empty() {
            session.title = prefix(&new.text, Session::TITLE_BYTES_MAX).to_owned();
        }
        let turn = store_turn(tx, command, new, session.turn_count, project_key);
        session.turn_count = session.turn_count.saturating_add(1);
        turns.push(turn);
    }
    if is_new && !scope.session_id.is_empty() {
        tx.count(project_key, |c| c.sessions += 1);
    }
    tx.put(
        TenantKey::Session(project_key.to_owned(), scope.session_id.clone()),
        Row::Session(session),
    );
    turns
}

fn store_turn(tx: &mut Transaction<'_>, command: &Remember, new: &NewTurn, index: u32, project_key: &str) -> Turn {
    let turn = Turn {
        id: new.id,
        pair: command.pair,
        scope: command.scope.clone(),
        role: new.role,
        turn_index: index,
        text: new.text.clone(),
        observed_at: new.observed_at,
        recorded_at: tx.now,
        author: tx.principal.clone(),
        memories: Vec::new(),
    };
    let bytes = u64::try_from(turn.text.len()).unwrap_or(u64::MAX);
    tx.count(project_key, |c| {
        c.turns += 1;
        c.text_bytes += bytes;
    });
    tx.put(
        TenantKey::TurnAt(project_key.to_owned(), turn.scope.session_id.clone(), index),
        Row::TurnId(turn.id),
    );
    tx.put(TenantKey::Turn(turn.id), Row::Turn(Box::new(turn.clone())));
    tx.set_vector(Item::Turn(turn.id), &new.vector);
    tx.changed(Item::Turn(turn.id));
    turn
}

fn store_memory(
    tx: &mut Transaction<'_>,
    command: &Remember,
    new: &NewMemory,
    project_key: &str,
    turns: &[Turn],
) -> StoredMemory {
    let evidence = evidence_of(tx, command, new, turns);
    if let Some(found) = duplicates::find(tx, project_key, new) {
        return duplicates::merge(tx, found, new, evidence);
    }
    let namespace = tx.project_mut(project_key).namespace.clone();
    let mut memory = Memory {
        id: new.id,
        namespace,
        scope: command.scope.clone(),
        label: new.label.clone(),
        content: new.content.clone(),
        kind: new.kind,
        tags: duplicates::united(&[], &new.tags),
        aliases: Vec::new(),
        source_prompt: new.source_prompt.clone(),
        metadata: String::new(),
        evidence_count: 0,
        confidence: new.confidence,
        valid_from: new.valid_from.or(new.default_valid_from).unwrap_or(tx.now),
        valid_from_stated: new.valid_from.is_some(),
        valid_to: new.valid_to,
        recorded_at: tx.now,
        updated_at: tx.now,
        version: 1,
        text_version: 1,
        author: tx.principal.clone(),
        due: new.due,
        superseded_by: None,
        statement: new.statement.clone(),
        rules_version: new.rules_version,
        link_count: 0,
        open_conflict_count: 0,
    };
    tx.add_evidence(&mut memory, evidence);
    tx.insert_memory(memory, &new.vector);
    StoredMemory {
        id: new.id,
        merged: None,
        similarity_thousandths: 0,
        alias_added: false,
        aliases_full: false,
    }
}

fn evidence_of(tx: &Transaction<'_>, command: &Remember, new: &NewMemory, turns: &[Turn]) -> Evidence {
    let turn = new.evidence.span.as_ref().and_then(|span| {
        let turn = turns.get(usize::try_from(span.turn).ok()?)?;
        Some(TurnSpan {
            turn: turn.id,
            turn_index: turn.turn_index,
            role: turn.role,
            start: span.start,
            end: span.end,
        })
    });
    Evidence {
        id: new.evidence.id,
        turn,
        scope: command.scope.clone(),
        text: prefix(&new.evidence.text, Evidence::TEXT_BYTES_MAX).to_owned(),
        observed_at: new.evidence.observed_at.unwrap_or(tx.now),
        author: tx.principal.clone(),
    }
}

/// Lets a turn name the memories that rest on it.
fn note_memories_at_turns(tx: &mut Transaction<'_>, command: &Remember, turns: &[Turn], memories: &[StoredMemory]) {
    for (position, turn) in turns.iter().enumerate() {
        let mut ids: Vec<MemoryId> = Vec::new();
        for (new, stored) in command.memories.iter().zip(memories) {
            let here = new
                .evidence
                .span
                .as_ref()
                .is_some_and(|span| usize::try_from(span.turn) == Ok(position));
            if here && !ids.contains(&stored.id) && ids.len() < Turn::MEMORIES_MAX {
                ids.push(stored.id);
            }
        }
        if !ids.is_empty() {
            let row = Turn {
                memories: ids,
                ..turn.clone()
            };
            tx.put(TenantKey::Turn(turn.id), Row::Turn(Box::new(row)));
        }
    }
}

fn store_link(
    tx: &mut Transaction<'_>,
    command: &Remember,
    new: &NewLink,
    memories: &[StoredMemory],
) -> Option<LinkId> {
    let end = |position: u32| memories.get(usize::try_from(position).ok()?).map(|stored| stored.id);
    let (source, target) = (end(new.source)?, end(new.target)?);
    let exists = tx.rows().link_of(source, new.relationship, target).is_some();
    // Two drafts may have merged into one memory: a link to itself says nothing.
    if source == target || exists || super::links::is_full(tx, source) || super::links::is_full(tx, target) {
        return None;
    }
    let link = Link {
        id: new.id,
        source,
        target,
        relationship: new.relationship,
        weight_thousandths: new.weight_thousandths.min(1_000),
        confidence: new.confidence,
        origin: command.origin,
        reason: new.reason.clone(),
        shared_terms: new.shared_terms.clone(),
        author: tx.principal.clone(),
        created_at: tx.now,
        version: 1,
        resolution: new.relationship.is_conflict().then(crate::link::Resolution::open),
    };
    tx.insert_link(link);
    Some(new.id)
}

fn count_u32(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// The longest prefix of at most `bytes_max` bytes that ends on a character boundary.
pub(super) fn prefix(text: &str, bytes_max: usize) -> &str {
    let mut end = text.len().min(bytes_max);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default()
}
