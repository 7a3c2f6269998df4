//! The messages of a hand-off, all checked before anything is written.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use waggle_memory::handoff::{
    Boundary, MESSAGE_BYTES_MAX, MESSAGE_ID_BYTES_MAX, MESSAGES_MAX, Named, content_of, identity_of,
};
use waggle_memory::id::MessageId;
use waggle_memory::kind::Role;
use waggle_memory::statement::Fingerprint;
use waggle_memory::time::Millis;
use waggle_proto::wire::HandoffMessage;

use crate::error::CallError;

/// How far a timestamp may lie ahead.
const AHEAD_MAX: i64 = 5 * 60 * Millis::SECOND;

/// A message that may be stored.
pub(super) struct Given {
    /// Where it stood in the request.
    pub(super) index: usize,
    pub(super) identity: MessageId,
    pub(super) content: Fingerprint,
    pub(super) role: Role,
    pub(super) text: String,
    pub(super) observed_at: Millis,
}

pub(super) fn boundary(tool_splits: bool) -> Boundary {
    if tool_splits {
        Boundary::Tool
    } else {
        Boundary::Neighbours
    }
}

/// Checks every message. Gives those that differ, in order, and how many repeated an earlier one.
pub(super) fn checked(
    messages: Vec<HandoffMessage>,
    first_position: u64,
    now: Millis,
) -> Result<(Vec<Given>, u32), CallError> {
    if messages.len() > MESSAGES_MAX {
        return Err(CallError::invalid(
            "messages",
            format!(
                "{} messages; at most {MESSAGES_MAX}, send the rest in another call",
                messages.len()
            ),
        ));
    }
    let mut seen: HashMap<MessageId, Fingerprint> = HashMap::with_capacity(messages.len());
    let mut given = Vec::with_capacity(messages.len());
    let mut repeated = 0;
    for (index, message) in messages.into_iter().enumerate() {
        let one = check_one(index, message, first_position, now)?;
        match seen.entry(one.identity) {
            Entry::Vacant(place) => {
                place.insert(one.content);
                given.push(one);
            }
            Entry::Occupied(place) if *place.get() == one.content => repeated += 1,
            Entry::Occupied(_) => return Err(CallError::message_id_reused(index)),
        }
    }
    Ok((given, repeated))
}

fn check_one(index: usize, message: HandoffMessage, first_position: u64, now: Millis) -> Result<Given, CallError> {
    let wrong = |field: &str, why: String| Err(CallError::invalid(&format!("messages[{index}].{field}"), why));
    let role = u8::try_from(message.role).ok().and_then(Role::from_number);
    let Some(role) = role else {
        return wrong("role", "one of user, assistant, system, tool".to_owned());
    };
    let text = message.text;
    if text.trim().is_empty() {
        return wrong("content", "is blank".to_owned());
    }
    if text.len() > MESSAGE_BYTES_MAX {
        return wrong("content", format!("{} bytes; at most {MESSAGE_BYTES_MAX}", text.len()));
    }
    if text.contains('\0') {
        return wrong("content", "must not hold a NUL character".to_owned());
    }
    let id = message.message_id;
    if id.len() > MESSAGE_ID_BYTES_MAX {
        return wrong(
            "message_id",
            format!("{} bytes; at most {MESSAGE_ID_BYTES_MAX}", id.len()),
        );
    }
    let timestamp = message.timestamp.map(Millis);
    if timestamp.is_some_and(|at| at > now.plus(AHEAD_MAX)) {
        return wrong("timestamp", "lies in the future; at most 5 minutes ahead".to_owned());
    }
    let named = if id.is_empty() {
        Named::ByPlace {
            position: first_position.saturating_add(u64::try_from(index).unwrap_or(u64::MAX)),
            timestamp,
        }
    } else {
        Named::ById(&id)
    };
    Ok(Given {
        index,
        identity: identity_of(named, role, &text),
        content: content_of(role, &text),
        role,
        text,
        observed_at: timestamp.unwrap_or(now),
    })
}
