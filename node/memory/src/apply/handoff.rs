//! Messages of a transcript: each is stored once, and extracted from once. Both are decided here and not by whoever
//! plans, so that two hand-offs of one transcript at the same moment end as one.

use std::collections::{BTreeMap, BTreeSet};

use super::remember;
use super::transaction::{Transaction, project_key};
use crate::command::{NewTurn, Remember};
use crate::handoff::{Message, NewMessage, RememberMessages, StoreMessages};
use crate::id::{MessageId, PairId, TurnId};
use crate::kind::Origin;
use crate::outcome::{Outcome, Rejection};
use crate::statement::Fingerprint;
use crate::tables::{Row, TenantKey};
use crate::transcript::Turn;

pub(super) fn apply_store(tx: &mut Transaction<'_>, command: &StoreMessages) -> Result<Outcome, Rejection> {
    let project_key = project_key(&command.scope.project);
    let session = command.scope.session_id.as_str();
    let mut known: BTreeMap<MessageId, (TurnId, Fingerprint)> = BTreeMap::new();
    let mut turns = Vec::with_capacity(command.messages.len());
    let mut fresh: Vec<&NewMessage> = Vec::new();
    for (position, message) in command.messages.iter().enumerate() {
        let identity = message.identity;
        let there = known
            .get(&identity)
            .copied()
            .or_else(|| stored(tx, &project_key, session, identity));
        let (turn, content) = there.unwrap_or((message.turn.id, message.content));
        if content != message.content {
            return Ok(Outcome::MessageReused {
                position: u32::try_from(position).unwrap_or(u32::MAX),
            });
        }
        if there.is_none() {
            fresh.push(message);
        }
        known.insert(identity, (turn, content));
        turns.push(turn);
    }
    let remember = remembered_turns(command, fresh.iter().map(|message| message.turn.clone()).collect());
    remember::check_counts(&remember)?;
    check_new(tx, &remember.turns)?;
    if !fresh.is_empty() {
        remember::enter_scope(tx, &remember, &project_key);
        remember::store_turns(tx, &remember, fresh.iter().map(|message| message.pair), &project_key);
    }
    for message in &fresh {
        note(tx, &project_key, session, message);
    }
    Ok(Outcome::MessagesStored {
        turns,
        written: u32::try_from(fresh.len()).unwrap_or(u32::MAX),
    })
}

fn stored(
    tx: &Transaction<'_>,
    project_key: &str,
    session: &str,
    identity: MessageId,
) -> Option<(TurnId, Fingerprint)> {
    let turn = tx.rows().message(project_key, session, identity)?;
    tx.rows().message_of(turn).map(|message| (turn, message.content))
}

/// New turns are new, and each is one.
fn check_new(tx: &Transaction<'_>, turns: &[NewTurn]) -> Result<(), Rejection> {
    let mut ids = BTreeSet::new();
    match turns.iter().find(|turn| !ids.insert(turn.id)) {
        Some(twice) => Err(Rejection::AlreadyExists {
            what: "turn",
            id: twice.id.to_string(),
        }),
        None => remember::check_turns(tx, turns),
    }
}

/// The turns in the form in which every other call brings them.
fn remembered_turns(command: &StoreMessages, turns: Vec<NewTurn>) -> Remember {
    Remember {
        tenant: command.tenant.clone(),
        scope: command.scope.clone(),
        namespace: command.namespace.clone(),
        origin: Origin::Handoff,
        pair: PairId::from_bytes([0; 16]),
        turns,
        memories: Vec::new(),
        links: Vec::new(),
    }
}

fn note(tx: &mut Transaction<'_>, project_key: &str, session: &str, new: &NewMessage) {
    tx.put(
        TenantKey::Message(project_key.to_owned(), session.to_owned(), new.identity),
        Row::TurnId(new.turn.id),
    );
    let message = Message {
        identity: new.identity,
        content: new.content,
        extracted: false,
    };
    tx.put(TenantKey::MessageOf(new.turn.id), Row::Message(message));
}

pub(super) fn apply_remember(tx: &mut Transaction<'_>, command: &RememberMessages) -> Result<Outcome, Rejection> {
    let remember = &command.remember;
    let project_key = project_key(&remember.scope.project);
    if !remember.turns.is_empty() {
        return Err(Rejection::Invalid {
            field: "turns",
            why: "the turns must be stored before".to_owned(),
        });
    }
    remember::check_counts(remember)?;
    let turns = stored_turns(tx, command, &project_key)?;
    let mut messages = Vec::with_capacity(turns.len());
    for turn in &turns {
        // A turn without a message came by another call, which extracted from it then and there.
        match tx.rows().message_of(turn.id).filter(|message| !message.extracted) {
            Some(message) => messages.push((turn.id, message)),
            None => return Ok(Outcome::AlreadyExtracted),
        }
    }
    let texts: Vec<&str> = turns.iter().map(|turn| turn.text.as_str()).collect();
    remember::check_memories(tx, remember, &texts)?;
    let first_use = remember::enter_scope(tx, remember, &project_key);
    remember::store_turns(tx, remember, std::iter::empty(), &project_key);
    let outcome = remember::remember_at(tx, remember, &turns, &project_key, first_use);
    for (turn, message) in messages {
        let message = Message {
            extracted: true,
            ..message
        };
        tx.put(TenantKey::MessageOf(turn), Row::Message(message));
    }
    Ok(outcome)
}

/// The turns of a command: all there, each once, all in its session.
fn stored_turns(tx: &Transaction<'_>, command: &RememberMessages, project_key: &str) -> Result<Vec<Turn>, Rejection> {
    let mut seen = BTreeSet::new();
    let mut turns = Vec::with_capacity(command.turns.len());
    for id in &command.turns {
        let found = tx.rows().turn(*id).filter(|_| seen.insert(*id));
        let turn = found.ok_or_else(|| Rejection::NotFound {
            what: "turn",
            id: id.to_string(),
        })?;
        let scope = &command.remember.scope;
        if turn.scope.project_key() != project_key || turn.scope.session_id != scope.session_id {
            return Err(Rejection::Invalid {
                field: "turn",
                why: format!("{id} is of another session"),
            });
        }
        turns.push(turn);
    }
    Ok(turns)
}

/// Forgets what is kept of the message that a turn was made from. Whoever removes a turn calls it in the same command.
pub(super) fn forget(tx: &mut Transaction<'_>, turn: &Turn) {
    let Some(message) = tx.rows().message_of(turn.id) else {
        return;
    };
    tx.delete(TenantKey::MessageOf(turn.id));
    tx.delete(TenantKey::Message(
        turn.scope.project_key(),
        turn.scope.session_id.clone(),
        message.identity,
    ));
}
