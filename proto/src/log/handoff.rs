//! Messages of a transcript: the commands that bring them, and what is kept of each.

use waggle_memory::handoff::{Message, NewMessage, RememberMessages, StoreMessages};
use waggle_memory::id::{MessageId, PairId, TurnId};
use waggle_memory::statement::Fingerprint;

use super::generated as pb;
use super::malformed::{Malformed, id, ids, tenant};
use super::message::{Persisted, from_messages, needed, to_messages};

impl Persisted for StoreMessages {
    type Message = pb::StoreMessages;

    fn to_message(&self) -> pb::StoreMessages {
        pb::StoreMessages {
            tenant: self.tenant.as_str().to_owned(),
            scope: Some(self.scope.to_message()),
            namespace: self.namespace.clone(),
            messages: to_messages(&self.messages),
        }
    }

    fn from_message(m: pb::StoreMessages) -> Result<Self, Malformed> {
        Ok(Self {
            tenant: tenant("store_messages.tenant", &m.tenant)?,
            scope: needed("store_messages.scope", m.scope)?,
            namespace: m.namespace,
            messages: from_messages("store_messages.messages", m.messages)?,
        })
    }
}

impl Persisted for NewMessage {
    type Message = pb::NewMessage;

    fn to_message(&self) -> pb::NewMessage {
        pb::NewMessage {
            identity: self.identity.bytes().to_vec(),
            content: self.content.0,
            pair: self.pair.bytes().to_vec(),
            turn: Some(self.turn.to_message()),
        }
    }

    fn from_message(m: pb::NewMessage) -> Result<Self, Malformed> {
        Ok(Self {
            identity: id("message.identity", &m.identity, MessageId::from_bytes)?,
            content: Fingerprint(m.content),
            pair: id("message.pair", &m.pair, PairId::from_bytes)?,
            turn: needed("message.turn", m.turn)?,
        })
    }
}

impl Persisted for RememberMessages {
    type Message = pb::RememberMessages;

    fn to_message(&self) -> pb::RememberMessages {
        pb::RememberMessages {
            turns: self.turns.iter().map(|id| id.bytes().to_vec()).collect(),
            remember: Some(self.remember.to_message()),
        }
    }

    fn from_message(m: pb::RememberMessages) -> Result<Self, Malformed> {
        Ok(Self {
            turns: ids("remember_messages.turns", &m.turns, TurnId::from_bytes)?,
            remember: needed("remember_messages.remember", m.remember)?,
        })
    }
}

impl Persisted for Message {
    type Message = pb::Message;

    fn to_message(&self) -> pb::Message {
        pb::Message {
            identity: self.identity.bytes().to_vec(),
            content: self.content.0,
            extracted: self.extracted,
        }
    }

    fn from_message(m: pb::Message) -> Result<Self, Malformed> {
        Ok(Self {
            identity: id("message.identity", &m.identity, MessageId::from_bytes)?,
            content: Fingerprint(m.content),
            extracted: m.extracted,
        })
    }
}
