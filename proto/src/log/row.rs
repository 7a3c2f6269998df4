//! Rows.

use waggle_memory::change::Change;
use waggle_memory::handoff::Message;
use waggle_memory::id::{LinkId, MemoryId, TurnId};
use waggle_memory::memory::{Evidence, Memory, Tombstone, Vector, Version};
use waggle_memory::meta::{ApiKey, JoinToken, Placement, Tenant};
use waggle_memory::tables::{RequestRow, Row};
use waggle_memory::time::{Millis, Stamp};
use waggle_memory::transcript::{Agent, Project, Session, TenantState, Turn};

use super::generated as pb;
use super::malformed::{Malformed, id, need};
use super::message::{Persisted, needed};

/// The format that this release writes, and the latest that it reads.
pub(super) const ROW_FORMAT: u32 = 1;

impl Persisted for Row {
    type Message = pb::Row;

    fn to_message(&self) -> pb::Row {
        use pb::row::Row as Case;
        let case = match self {
            Self::Stamp(row) => Case::Stamp(row.to_message()),
            Self::Placement(row) => Case::Placement(row.to_message()),
            Self::TenantInfo(row) => Case::TenantInfo(row.to_message()),
            Self::ApiKey(row) => Case::ApiKey(row.to_message()),
            Self::JoinToken(row) => Case::JoinToken(row.to_message()),
            Self::State(row) => Case::State(row.to_message()),
            Self::Memory(row) => Case::Memory(row.to_message()),
            Self::Version(row) => Case::Version(row.to_message()),
            Self::Evidence(row) => Case::Evidence(row.to_message()),
            Self::Link(row) => Case::Link(row.to_message()),
            Self::LinkId(id) => Case::LinkId(id.bytes().to_vec()),
            Self::Turn(row) => Case::Turn(row.to_message()),
            Self::TurnId(id) => Case::TurnId(id.bytes().to_vec()),
            Self::Session(row) => Case::Session(row.to_message()),
            Self::Project(row) => Case::Project(row.to_message()),
            Self::Agent(row) => Case::Agent(row.to_message()),
            Self::Vector(row) => Case::Vector(row.to_message()),
            Self::Tombstone(row) => Case::Tombstone(row.to_message()),
            Self::Request(row) => Case::Request(row.to_message()),
            Self::Message(row) => Case::Message(row.to_message()),
            Self::Change(row) => Case::Change(row.to_message()),
            Self::Redirect(id) => Case::Redirect(id.bytes().to_vec()),
            Self::Mark => Case::Mark(pb::Mark {}),
        };
        pb::Row {
            format: ROW_FORMAT,
            row: Some(case),
        }
    }

    fn from_message(m: pb::Row) -> Result<Self, Malformed> {
        use pb::row::Row as Case;
        if m.format != ROW_FORMAT {
            return Err(Malformed::UnknownFormat(m.format));
        }
        Ok(match need("row", m.row)? {
            Case::Stamp(m) => Self::Stamp(Stamp::from_message(m)?),
            Case::Placement(m) => Self::Placement(Placement::from_message(m)?),
            Case::TenantInfo(m) => Self::TenantInfo(Tenant::from_message(m)?),
            Case::ApiKey(m) => Self::ApiKey(ApiKey::from_message(m)?),
            Case::JoinToken(m) => Self::JoinToken(JoinToken::from_message(m)?),
            Case::State(m) => Self::State(TenantState::from_message(m)?),
            Case::Memory(m) => Self::Memory(Box::new(Memory::from_message(m)?)),
            Case::Version(m) => Self::Version(Box::new(Version::from_message(m)?)),
            Case::Evidence(m) => Self::Evidence(Box::new(Evidence::from_message(m)?)),
            Case::Link(m) => Self::Link(Box::new(Persisted::from_message(m)?)),
            Case::LinkId(bytes) => Self::LinkId(id("link id", &bytes, LinkId::from_bytes)?),
            Case::Turn(m) => Self::Turn(Box::new(Turn::from_message(m)?)),
            Case::TurnId(bytes) => Self::TurnId(id("turn id", &bytes, TurnId::from_bytes)?),
            Case::Session(m) => Self::Session(Session::from_message(m)?),
            Case::Project(m) => Self::Project(Project::from_message(m)?),
            Case::Agent(m) => Self::Agent(Agent::from_message(m)?),
            Case::Vector(m) => Self::Vector(Vector::from_message(m)?),
            Case::Tombstone(m) => Self::Tombstone(Tombstone::from_message(m)?),
            Case::Request(m) => Self::Request(RequestRow::from_message(m)?),
            Case::Message(m) => Self::Message(Message::from_message(m)?),
            Case::Change(m) => Self::Change(Box::new(Change::from_message(m)?)),
            Case::Redirect(bytes) => Self::Redirect(id("redirect", &bytes, MemoryId::from_bytes)?),
            Case::Mark(_) => Self::Mark,
        })
    }
}

impl Persisted for RequestRow {
    type Message = pb::RequestRow;

    fn to_message(&self) -> pb::RequestRow {
        pb::RequestRow {
            arguments: self.arguments,
            at: self.at.0,
            outcome: Some(self.outcome.to_message()),
        }
    }

    fn from_message(m: pb::RequestRow) -> Result<Self, Malformed> {
        Ok(Self {
            arguments: m.arguments,
            at: Millis(m.at),
            outcome: needed("request.outcome", m.outcome)?,
        })
    }
}
