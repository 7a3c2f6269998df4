//! Sessions and turns of an import. A turn takes the next position of its session: into an empty tenant that is the one
//! it had, behind what is there it is the first that is free.

use super::Import;
use crate::apply::remember::prefix;
use crate::apply::transaction::Transaction;
use crate::handoff::Message;
use crate::id::MemoryId;
use crate::import::{ConflictReason, ImportStrategy, RecordKind};
use crate::memory::{Memory, VectorDraft};
use crate::scope::{Scope, name_key};
use crate::tables::{Item, Row, TenantKey};
use crate::time::Millis;
use crate::transcript::{Agent, Session, Turn};

/// Makes or widens the session that turns and memories of this import belong to. Counts follow with them.
pub(super) fn open_session(tx: &mut Transaction<'_>, import: &mut Import, session: &Session) {
    let key = name_key(&session.project);
    let found = tx.rows().session(&key, &session.session_id);
    let Some(there) = found else {
        import.report.sessions.created += 1;
        note_project(tx, &session.project, "", session.first_used_at, session.last_used_at);
        let new = Session {
            project: session.project.trim().to_owned(),
            turn_count: 0,
            memory_count: 0,
            ..session.clone()
        };
        insert_session(tx, &key, new);
        return;
    };
    let mut wider = there.clone();
    if import.strategy != ImportStrategy::SkipExisting {
        wider.first_used_at = there.first_used_at.min(session.first_used_at);
        wider.last_used_at = there.last_used_at.max(session.last_used_at);
        if wider.title.is_empty() || import.strategy == ImportStrategy::Overwrite {
            wider.title.clone_from(&session.title);
        }
        session.agents.iter().for_each(|agent| add_agent(&mut wider, agent));
    }
    if wider == there {
        import.report.sessions.unchanged += 1;
    } else {
        import.report.sessions.updated += 1;
        put_session(tx, &key, wider);
    }
}

/// Memories of the session that were merged or erased before the export count as well.
pub(super) fn close_session(tx: &mut Transaction<'_>, session: &Session) {
    let key = name_key(&session.project);
    if let Some(mut there) = tx.rows().session(&key, &session.session_id)
        && there.memory_count < session.memory_count
    {
        there.memory_count = session.memory_count;
        put_session(tx, &key, there);
    }
}

pub(super) fn take_in(tx: &mut Transaction<'_>, import: &mut Import, turn: &Turn, message: Option<Message>) {
    if let Some(there) = tx.rows().turn(turn.id) {
        if import.strategy != ImportStrategy::SkipExisting && note_message(tx, &there, message) {
            import.report.turns.updated += 1;
        } else {
            import.report.turns.unchanged += 1;
        }
        let differs = differing(&there, turn);
        if !differs.is_empty() {
            import.conflict(RecordKind::Turn, turn.id.bytes(), ConflictReason::Differs, &differs);
        }
        return;
    }
    let key = turn.scope.project_key();
    note_scope(tx, &turn.scope, "", turn.recorded_at, turn.recorded_at);
    let mut session = session_of(tx, &key, &turn.scope, turn.recorded_at, &turn.text);
    let index = session.turn_count;
    session.turn_count = session.turn_count.saturating_add(1);
    session.last_used_at = session.last_used_at.max(turn.recorded_at);
    put_session(tx, &key, session);
    count_agent(tx, &turn.scope, turn.recorded_at, |agent| {
        agent.turn_count = agent.turn_count.saturating_add(1);
    });
    let bytes = u64::try_from(turn.text.len()).unwrap_or(u64::MAX);
    tx.count(&key, |c| {
        c.turns += 1;
        c.text_bytes += bytes;
    });
    let new = Turn {
        turn_index: index,
        memories: Vec::new(),
        ..turn.clone()
    };
    tx.put(
        TenantKey::TurnAt(key, new.scope.session_id.clone(), index),
        Row::TurnId(new.id),
    );
    note_message(tx, &new, message);
    tx.put(TenantKey::Turn(new.id), Row::Turn(Box::new(new)));
    tx.set_vector(Item::Turn(turn.id), &awaited(import));
    tx.changed(Item::Turn(turn.id));
    import.report.turns.created += 1;
}

/// Keeps which message of its session a turn is, so that the same hand-off finds it stored. True when that was news.
/// Another turn may be that message here already, where the transcript was handed over again before this import; it
/// stays the message.
fn note_message(tx: &mut Transaction<'_>, turn: &Turn, message: Option<Message>) -> bool {
    let Some(message) = message else { return false };
    if let Some(there) = tx.rows().message_of(turn.id) {
        let more = !there.extracted && message.extracted && message.identity == there.identity;
        if more {
            let extracted = true;
            tx.put(
                TenantKey::MessageOf(turn.id),
                Row::Message(Message { extracted, ..there }),
            );
        }
        return more;
    }
    let (project, session) = (turn.scope.project_key(), turn.scope.session_id.clone());
    if tx.rows().message(&project, &session, message.identity).is_some() {
        return false;
    }
    tx.put(
        TenantKey::Message(project, session, message.identity),
        Row::TurnId(turn.id),
    );
    tx.put(TenantKey::MessageOf(turn.id), Row::Message(message));
    true
}

/// Lets turns name the memories that rest on them: those of the file that are here, then those that evidence names.
pub(super) fn note_memories(tx: &mut Transaction<'_>, import: &mut Import, turns: &[(&Turn, Option<Message>)]) {
    let mut rests_on = std::mem::take(&mut import.rests_on);
    for (turn, _) in turns {
        let resting = rests_on.entry(turn.id).or_default();
        let evident = std::mem::replace(resting, turn.memories.clone());
        resting.extend(evident);
    }
    for (id, resting) in rests_on {
        let Some(there) = tx.rows().turn(id) else { continue };
        let mut memories = there.memories.clone();
        for memory in resting {
            let here = memories.len() < Turn::MEMORIES_MAX && !memories.contains(&memory);
            if here && tx.rows().memory(memory).is_some() {
                memories.push(memory);
            }
        }
        if memories != there.memories {
            tx.changed(Item::Turn(id));
            tx.put(TenantKey::Turn(id), Row::Turn(Box::new(Turn { memories, ..there })));
        }
    }
}

fn differing(there: &Turn, turn: &Turn) -> String {
    let pairs = [
        ("text", there.text != turn.text),
        ("role", there.role != turn.role),
        ("observed_at", there.observed_at != turn.observed_at),
        ("session_id", there.scope.session_id != turn.scope.session_id),
        ("project", there.scope.project_key() != turn.scope.project_key()),
    ];
    super::memories::names_of(&pairs)
}

/// What stands for a vector until the background has made it.
pub(super) fn awaited(import: &Import) -> VectorDraft {
    if import.await_vectors {
        VectorDraft::Pending
    } else {
        VectorDraft::None
    }
}

/// Notes a memory at its project, session and agent.
pub(super) fn enter(tx: &mut Transaction<'_>, memory: &Memory) {
    let scope = &memory.scope;
    let key = scope.project_key();
    note_scope(tx, scope, &memory.namespace, memory.recorded_at, memory.updated_at);
    count_agent(tx, scope, memory.updated_at, |agent| {
        agent.memory_count = agent.memory_count.saturating_add(1);
    });
    // Turns without a session are numbered under the empty name; memories without one belong to none.
    if !scope.session_id.is_empty() {
        let mut session = session_of(tx, &key, scope, memory.recorded_at, "");
        session.memory_count = session.memory_count.saturating_add(1);
        session.last_used_at = session.last_used_at.max(memory.recorded_at);
        put_session(tx, &key, session);
    }
}

fn session_of(tx: &mut Transaction<'_>, key: &str, scope: &Scope, at: Millis, words: &str) -> Session {
    let found = tx.rows().session(key, &scope.session_id);
    let mut session = match found {
        Some(session) => session,
        None => {
            let session = Session {
                project: scope.project.trim().to_owned(),
                session_id: scope.session_id.clone(),
                first_used_at: at,
                last_used_at: at,
                ..Session::default()
            };
            insert_session(tx, key, session.clone());
            session
        }
    };
    if session.title.is_empty() {
        prefix(words, Session::TITLE_BYTES_MAX).clone_into(&mut session.title);
    }
    add_agent(&mut session, &scope.agent_id);
    session
}

fn add_agent(session: &mut Session, agent: &str) {
    let agent = agent.trim();
    if !agent.is_empty() && session.agents.len() < Session::AGENTS_MAX && !session.agents.iter().any(|a| a == agent) {
        session.agents.push(agent.to_owned());
    }
}

fn insert_session(tx: &mut Transaction<'_>, key: &str, session: Session) {
    if !session.session_id.is_empty() {
        tx.count(key, |c| c.sessions += 1);
    }
    put_session(tx, key, session);
}

fn put_session(tx: &mut Transaction<'_>, key: &str, session: Session) {
    tx.put(
        TenantKey::Session(key.to_owned(), session.session_id.clone()),
        Row::Session(session),
    );
}

fn note_scope(tx: &mut Transaction<'_>, scope: &Scope, namespace: &str, first: Millis, last: Millis) {
    note_project(tx, &scope.project, namespace, first, last);
}

/// A project is as old as the oldest that is known of it.
fn note_project(tx: &mut Transaction<'_>, name: &str, namespace: &str, first: Millis, last: Millis) {
    // The beginning of time stands for a project that was never used.
    let first = if first == Millis::default() {
        first.plus(1)
    } else {
        first
    };
    let project = tx.project_mut(&name_key(name));
    if project.first_used_at == Millis::default() {
        name.trim().clone_into(&mut project.name);
        project.first_used_at = first;
        project.last_used_at = last;
    }
    if project.namespace.is_empty() {
        namespace.clone_into(&mut project.namespace);
    }
    project.first_used_at = project.first_used_at.min(first);
    project.last_used_at = project.last_used_at.max(last);
}

fn count_agent(tx: &mut Transaction<'_>, scope: &Scope, at: Millis, count: impl FnOnce(&mut Agent)) {
    let key = scope.agent_key();
    if key.is_empty() {
        return;
    }
    let mut agent = tx.rows().agent(&scope.agent_id).unwrap_or_else(|| Agent {
        name: scope.agent_id.trim().to_owned(),
        last_used_at: at,
        ..Agent::default()
    });
    agent.last_used_at = agent.last_used_at.max(at);
    count(&mut agent);
    tx.put(TenantKey::Agent(key), Row::Agent(agent));
}

/// Notes that a memory rests on the turns that its evidence names.
pub(super) fn rests_on(import: &mut Import, memory: MemoryId, turn: crate::id::TurnId) {
    let resting = import.rests_on.entry(turn).or_default();
    if !resting.contains(&memory) && resting.len() < Turn::MEMORIES_MAX {
        resting.push(memory);
    }
}
