//! Sessions and turns.

use serde::{Deserialize, Serialize};
use waggle_memory::handoff::Message;
use waggle_memory::id::{MemoryId, MessageId, PairId, Principal, TurnId};
use waggle_memory::kind::Role;
use waggle_memory::scope::Scope;
use waggle_memory::statement::Fingerprint;
use waggle_memory::time::Millis;
use waggle_memory::transcript::{Session, Turn};

use crate::json::Text;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SessionShape {
    agent_ids: Vec<String>,
    first_used_at: Text<Millis>,
    last_used_at: Text<Millis>,
    memory_count: u32,
    project: String,
    session_id: String,
    title: String,
    turn_count: u32,
}

impl From<&Session> for SessionShape {
    fn from(session: &Session) -> Self {
        Self {
            agent_ids: session.agents.clone(),
            first_used_at: Text(session.first_used_at),
            last_used_at: Text(session.last_used_at),
            memory_count: session.memory_count,
            project: session.project.clone(),
            session_id: session.session_id.clone(),
            title: session.title.clone(),
            turn_count: session.turn_count,
        }
    }
}

impl From<SessionShape> for Session {
    fn from(shape: SessionShape) -> Self {
        Self {
            project: shape.project,
            session_id: shape.session_id,
            agents: shape.agent_ids,
            title: shape.title,
            first_used_at: shape.first_used_at.0,
            last_used_at: shape.last_used_at.0,
            turn_count: shape.turn_count,
            memory_count: shape.memory_count,
        }
    }
}

/// Which message of a hand-off a turn is; only such turns have it.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct MessageShape {
    content: Text<Fingerprint>,
    extracted: bool,
    identity: Text<MessageId>,
}

impl From<Message> for MessageShape {
    fn from(message: Message) -> Self {
        Self {
            content: Text(message.content),
            extracted: message.extracted,
            identity: Text(message.identity),
        }
    }
}

impl From<MessageShape> for Message {
    fn from(shape: MessageShape) -> Self {
        Self {
            identity: shape.identity.0,
            content: shape.content.0,
            extracted: shape.extracted,
        }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TurnShape {
    agent_id: String,
    author: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    message: Option<MessageShape>,
    node_ids: Vec<Text<MemoryId>>,
    observed_at: Text<Millis>,
    project: String,
    recorded_at: Text<Millis>,
    role: Text<Role>,
    session_id: String,
    text: String,
    transcript_id: Text<TurnId>,
    turn_index: u32,
    turn_pair_id: Text<PairId>,
}

impl TurnShape {
    pub(crate) fn new(turn: &Turn, message: Option<Message>) -> Self {
        Self {
            message: message.map(MessageShape::from),
            agent_id: turn.scope.agent_id.clone(),
            author: turn.author.0.clone(),
            node_ids: turn.memories.iter().copied().map(Text).collect(),
            observed_at: Text(turn.observed_at),
            project: turn.scope.project.clone(),
            recorded_at: Text(turn.recorded_at),
            role: Text(turn.role),
            session_id: turn.scope.session_id.clone(),
            text: turn.text.clone(),
            transcript_id: Text(turn.id),
            turn_index: turn.turn_index,
            turn_pair_id: Text(turn.pair),
        }
    }

    pub(crate) fn read(self) -> (Turn, Option<Message>) {
        let shape = self;
        let message = shape.message.map(Message::from);
        let turn = Turn {
            id: shape.transcript_id.0,
            pair: shape.turn_pair_id.0,
            scope: Scope {
                project: shape.project,
                agent_id: shape.agent_id,
                session_id: shape.session_id,
            },
            role: shape.role.0,
            turn_index: shape.turn_index,
            text: shape.text,
            observed_at: shape.observed_at.0,
            recorded_at: shape.recorded_at.0,
            author: Principal(shape.author),
            memories: shape.node_ids.into_iter().map(|id| id.0).collect(),
        };
        (turn, message)
    }
}
