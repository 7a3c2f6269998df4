//! Stamps, scopes, items and vectors.

use waggle_memory::id::{MemoryId, TurnId};
use waggle_memory::memory::{Vector, VectorDraft};
use waggle_memory::scope::Scope;
use waggle_memory::tables::Item;
use waggle_memory::time::{Millis, Stamp};

use super::generated as pb;
use super::malformed::{Malformed, id, need};
use super::message::Persisted;

impl Persisted for Stamp {
    type Message = pb::Stamp;

    fn to_message(&self) -> pb::Stamp {
        pb::Stamp {
            wall: self.wall.0,
            logical: self.logical,
        }
    }

    fn from_message(m: pb::Stamp) -> Result<Self, Malformed> {
        Ok(Self {
            wall: Millis(m.wall),
            logical: m.logical,
        })
    }
}

impl Persisted for Scope {
    type Message = pb::Scope;

    fn to_message(&self) -> pb::Scope {
        pb::Scope {
            project: self.project.clone(),
            agent_id: self.agent_id.clone(),
            session_id: self.session_id.clone(),
        }
    }

    fn from_message(m: pb::Scope) -> Result<Self, Malformed> {
        Ok(Self {
            project: m.project,
            agent_id: m.agent_id,
            session_id: m.session_id,
        })
    }
}

impl Persisted for Item {
    type Message = pb::Item;

    fn to_message(&self) -> pb::Item {
        let item = match self {
            Self::Memory(id) => pb::item::Item::Memory(id.bytes().to_vec()),
            Self::Turn(id) => pb::item::Item::Turn(id.bytes().to_vec()),
        };
        pb::Item { item: Some(item) }
    }

    fn from_message(m: pb::Item) -> Result<Self, Malformed> {
        Ok(match need("item", m.item)? {
            pb::item::Item::Memory(bytes) => Self::Memory(id("item.memory", &bytes, MemoryId::from_bytes)?),
            pb::item::Item::Turn(bytes) => Self::Turn(id("item.turn", &bytes, TurnId::from_bytes)?),
        })
    }
}

impl Persisted for Vector {
    type Message = pb::Vector;

    fn to_message(&self) -> pb::Vector {
        pb::Vector {
            model: self.model.clone(),
            scale_bits: self.scale_bits,
            components: self.components.iter().map(|c| c.cast_unsigned()).collect(),
        }
    }

    fn from_message(m: pb::Vector) -> Result<Self, Malformed> {
        let components = m.components.into_iter().map(u8::cast_signed).collect();
        Ok(Self {
            model: m.model,
            scale_bits: m.scale_bits,
            components,
        })
    }
}

impl Persisted for VectorDraft {
    type Message = pb::VectorDraft;

    fn to_message(&self) -> pb::VectorDraft {
        use pb::vector_draft::{Draft, Nothing, Pending};
        let draft = match self {
            Self::Ready(vector) => Draft::Ready(vector.to_message()),
            Self::Pending => Draft::Pending(Pending {}),
            Self::None => Draft::Nothing(Nothing {}),
        };
        pb::VectorDraft { draft: Some(draft) }
    }

    fn from_message(m: pb::VectorDraft) -> Result<Self, Malformed> {
        use pb::vector_draft::Draft;
        Ok(match need("vector draft", m.draft)? {
            Draft::Ready(vector) => Self::Ready(Vector::from_message(vector)?),
            Draft::Pending(_) => Self::Pending,
            Draft::Nothing(_) => Self::None,
        })
    }
}
