//! Keys as bytes.
//!
//! ```text
//! shard (4) | place (2) | tenant, terminated | kind (1) | rest      rows of a tenant; place = slot + 1
//! shard (4) | 0 (2)                          | kind (1) | rest      rows of the shard as a whole
//! shard (4) | kind (1)                                             raft_meta
//! shard (4) | index (8)                                            raft_log
//! ```
//!
//! Numbers are big endian, so a slot is one contiguous range to export and delete. The order of the bytes is the order
//! of [`Key`] among the rows of the shard as a whole and among the rows of one tenant. Across tenants it is another:
//! slots first. No scan crosses tenants (I-30), so nobody sees the difference.
//!
//! Text is escaped (00 becomes 00 FF) and ends with 00 01, which sorts a text before its extensions. A new kind of key
//! is added to `key_kind.rs`; what is here never changes for an existing kind.

use std::fmt;

use waggle_memory::id::{LinkId, MemoryId, MessageId, RequestId, TenantId, TurnId};
use waggle_memory::kind::Relationship;
use waggle_memory::meta::{KeyId, ShardId, Slot};
use waggle_memory::statement::Fingerprint;
use waggle_memory::tables::{Form, Item, Key, ShardKey, TenantKey};
use waggle_memory::time::Millis;

use crate::key_kind::{KeyKind, MetaKind};

/// Bytes of the shard at the front of every key.
pub(crate) const SHARD_BYTES: usize = 4;

/// The place of rows that belong to the shard as a whole; slot n has place n + 1.
const SHARD_PLACE: u16 = 0;

const ITEM_MEMORY: u8 = 1;
const ITEM_TURN: u8 = 2;

/// A key in `raft_meta`.
pub(crate) fn meta_key(shard: ShardId, kind: MetaKind) -> [u8; 5] {
    let [a, b, c, d] = shard.0.to_be_bytes();
    [a, b, c, d, kind.number()]
}

/// A key in `raft_log`.
pub(crate) fn log_key(shard: ShardId, index: u64) -> [u8; 12] {
    let mut key = [0; 12];
    let (front, back) = key.split_at_mut(SHARD_BYTES);
    front.copy_from_slice(&shard.0.to_be_bytes());
    back.copy_from_slice(&index.to_be_bytes());
    key
}

/// The index in a key of `raft_log`; None if it is not one of this shard.
pub(crate) fn log_index(shard: ShardId, key: &[u8]) -> Option<u64> {
    let rest = key.strip_prefix(&shard.0.to_be_bytes())?;
    Some(u64::from_be_bytes(rest.try_into().ok()?))
}

/// All keys of a shard, in any family: from the first, inclusive, to the second, exclusive.
pub(crate) fn shard_range(shard: ShardId) -> (Vec<u8>, Vec<u8>) {
    let from = shard.0.to_be_bytes().to_vec();
    let to = match shard.0.checked_add(1) {
        Some(next) => next.to_be_bytes().to_vec(),
        None => vec![0xff; 16],
    };
    (from, to)
}

/// The bytes of a row's key.
pub(crate) fn encode_key(shard: ShardId, key: &Key) -> Vec<u8> {
    let kind = KeyKind::of(key);
    match key {
        Key::Shard(rest) => {
            let mut out = Writer::new(shard, SHARD_PLACE);
            out.byte(kind.number());
            out.shard_key(rest);
            out.bytes
        }
        Key::Tenant(tenant, rest) => {
            let mut out = Writer::of_tenant(shard, tenant);
            out.byte(kind.number());
            out.tenant_key(rest);
            out.bytes
        }
    }
}

/// All keys of one kind among the rows that `key` belongs to: from the first, inclusive, to the second, exclusive.
pub(crate) fn kind_range(shard: ShardId, key: &Key, kind: KeyKind) -> (Vec<u8>, Vec<u8>) {
    let front = match key {
        Key::Shard(_) => Writer::new(shard, SHARD_PLACE),
        Key::Tenant(tenant, _) => Writer::of_tenant(shard, tenant),
    };
    let (mut from, mut to) = (front.bytes.clone(), front.bytes);
    from.push(kind.number());
    to.push(kind.number().saturating_add(1));
    (from, to)
}

struct Writer {
    bytes: Vec<u8>,
}

impl Writer {
    fn new(shard: ShardId, place: u16) -> Self {
        let mut bytes = Vec::with_capacity(80);
        bytes.extend_from_slice(&shard.0.to_be_bytes());
        bytes.extend_from_slice(&place.to_be_bytes());
        Self { bytes }
    }

    fn of_tenant(shard: ShardId, tenant: &TenantId) -> Self {
        let mut out = Self::new(shard, place(tenant));
        out.text(tenant.as_str());
        out
    }

    fn shard_key(&mut self, key: &ShardKey) {
        match key {
            ShardKey::LastStamp | ShardKey::Placement => {}
            ShardKey::RequestAge(at, tenant, request) => {
                self.time(*at);
                self.text(tenant.as_str());
                self.text(&request.0);
            }
            ShardKey::TenantInfo(tenant) => self.text(tenant.as_str()),
            ShardKey::ApiKey(id) | ShardKey::JoinToken(id) => self.text(&id.0),
            ShardKey::KeyOfTenant(tenant, id) => {
                self.text(tenant.as_str());
                self.text(&id.0);
            }
        }
    }

    fn tenant_key(&mut self, key: &TenantKey) {
        match key {
            TenantKey::State => {}
            TenantKey::Memory(id) | TenantKey::Tombstone(id) | TenantKey::Redirect(id) => self.id(id.bytes()),
            TenantKey::Version(id, number) | TenantKey::Evidence(id, number) => {
                self.id(id.bytes());
                self.number(*number);
            }
            TenantKey::Link(id) => self.id(id.bytes()),
            TenantKey::LinkFrom(a, relationship, b) | TenantKey::LinkTo(a, relationship, b) => {
                self.id(a.bytes());
                self.byte(relationship.number());
                self.id(b.bytes());
            }
            TenantKey::Turn(id) => self.id(id.bytes()),
            TenantKey::TurnAt(project, session, index) => {
                self.text(project);
                self.text(session);
                self.number(*index);
            }
            TenantKey::Session(project, session) => {
                self.text(project);
                self.text(session);
            }
            TenantKey::Project(name) | TenantKey::Agent(name) => self.text(name),
            TenantKey::Fingerprint(project, form, fingerprint, id) => {
                self.text(project);
                self.byte(form.number());
                self.bytes.extend_from_slice(&fingerprint.0.to_be_bytes());
                self.id(id.bytes());
            }
            TenantKey::Vector(item) | TenantKey::AwaitsVector(item) => self.item(*item),
            TenantKey::Request(id) => self.text(&id.0),
            TenantKey::Change(number) => self.bytes.extend_from_slice(&number.to_be_bytes()),
            TenantKey::Conflict(settled, id) => {
                self.byte(u8::from(*settled));
                self.id(id.bytes());
            }
            TenantKey::Message(project, session, identity) => {
                self.text(project);
                self.text(session);
                self.id(identity.bytes());
            }
            TenantKey::MessageOf(turn) => self.id(turn.bytes()),
        }
    }

    fn byte(&mut self, byte: u8) {
        self.bytes.push(byte);
    }

    fn number(&mut self, number: u32) {
        self.bytes.extend_from_slice(&number.to_be_bytes());
    }

    /// The sign bit turned over, so that negative times sort first.
    fn time(&mut self, at: Millis) {
        self.bytes.extend_from_slice(&(at.0 ^ i64::MIN).to_be_bytes());
    }

    fn id(&mut self, id: [u8; 16]) {
        self.bytes.extend_from_slice(&id);
    }

    fn item(&mut self, item: Item) {
        match item {
            Item::Memory(id) => {
                self.byte(ITEM_MEMORY);
                self.id(id.bytes());
            }
            Item::Turn(id) => {
                self.byte(ITEM_TURN);
                self.id(id.bytes());
            }
        }
    }

    fn text(&mut self, text: &str) {
        for byte in text.bytes() {
            self.bytes.push(byte);
            if byte == 0 {
                self.bytes.push(0xff);
            }
        }
        self.bytes.extend_from_slice(&[0, 1]);
    }
}

fn place(tenant: &TenantId) -> u16 {
    Slot::of(tenant).0.saturating_add(1)
}

/// Why bytes are not a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MalformedKey(&'static str);

impl fmt::Display for MalformedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

/// Reads what [`encode_key`] wrote, and refuses everything else.
pub(crate) fn decode_key(bytes: &[u8]) -> Result<(ShardId, Key), MalformedKey> {
    let mut from = Reader { rest: bytes };
    let shard = ShardId(u32::from_be_bytes(from.array()?));
    let key = match u16::from_be_bytes(from.array()?) {
        SHARD_PLACE => Key::Shard(from.shard_key()?),
        found => {
            let tenant = from.tenant()?;
            if place(&tenant) != found {
                return Err(MalformedKey("the slot is not the tenant's"));
            }
            Key::Tenant(tenant, from.tenant_key()?)
        }
    };
    if from.rest.is_empty() {
        Ok((shard, key))
    } else {
        Err(MalformedKey("bytes are left over"))
    }
}

struct Reader<'a> {
    rest: &'a [u8],
}

impl Reader<'_> {
    fn shard_key(&mut self) -> Result<ShardKey, MalformedKey> {
        Ok(match self.kind()? {
            KeyKind::LastStamp => ShardKey::LastStamp,
            KeyKind::RequestAge => ShardKey::RequestAge(self.time()?, self.tenant()?, RequestId(self.text()?)),
            KeyKind::Placement => ShardKey::Placement,
            KeyKind::TenantInfo => ShardKey::TenantInfo(self.tenant()?),
            KeyKind::ApiKey => ShardKey::ApiKey(KeyId(self.text()?)),
            KeyKind::KeyOfTenant => ShardKey::KeyOfTenant(self.tenant()?, KeyId(self.text()?)),
            KeyKind::JoinToken => ShardKey::JoinToken(KeyId(self.text()?)),
            _ => return Err(MalformedKey("a tenant's kind among rows of the shard")),
        })
    }

    fn tenant_key(&mut self) -> Result<TenantKey, MalformedKey> {
        Ok(match self.kind()? {
            KeyKind::State => TenantKey::State,
            KeyKind::Memory => TenantKey::Memory(self.memory()?),
            KeyKind::Version => TenantKey::Version(self.memory()?, self.number()?),
            KeyKind::Evidence => TenantKey::Evidence(self.memory()?, self.number()?),
            KeyKind::Link => TenantKey::Link(LinkId::from_bytes(self.array()?)),
            KeyKind::LinkFrom => TenantKey::LinkFrom(self.memory()?, self.relationship()?, self.memory()?),
            KeyKind::LinkTo => TenantKey::LinkTo(self.memory()?, self.relationship()?, self.memory()?),
            KeyKind::Turn => TenantKey::Turn(TurnId::from_bytes(self.array()?)),
            KeyKind::TurnAt => TenantKey::TurnAt(self.text()?, self.text()?, self.number()?),
            KeyKind::Session => TenantKey::Session(self.text()?, self.text()?),
            KeyKind::Project => TenantKey::Project(self.text()?),
            KeyKind::Agent => TenantKey::Agent(self.text()?),
            KeyKind::Fingerprint => {
                let (project, form) = (self.text()?, self.form()?);
                TenantKey::Fingerprint(
                    project,
                    form,
                    Fingerprint(u64::from_be_bytes(self.array()?)),
                    self.memory()?,
                )
            }
            KeyKind::Vector => TenantKey::Vector(self.item()?),
            KeyKind::AwaitsVector => TenantKey::AwaitsVector(self.item()?),
            KeyKind::Tombstone => TenantKey::Tombstone(self.memory()?),
            KeyKind::Request => TenantKey::Request(RequestId(self.text()?)),
            KeyKind::Change => TenantKey::Change(u64::from_be_bytes(self.array()?)),
            KeyKind::Conflict => TenantKey::Conflict(self.flag()?, LinkId::from_bytes(self.array()?)),
            KeyKind::Redirect => TenantKey::Redirect(self.memory()?),
            KeyKind::Message => {
                let (project, session) = (self.text()?, self.text()?);
                TenantKey::Message(project, session, MessageId::from_bytes(self.array()?))
            }
            KeyKind::MessageOf => TenantKey::MessageOf(TurnId::from_bytes(self.array()?)),
            _ => return Err(MalformedKey("a shard's kind among rows of a tenant")),
        })
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], MalformedKey> {
        let (front, rest) = self
            .rest
            .split_first_chunk::<N>()
            .ok_or(MalformedKey("it is too short"))?;
        self.rest = rest;
        Ok(*front)
    }

    fn byte(&mut self) -> Result<u8, MalformedKey> {
        let [byte] = self.array()?;
        Ok(byte)
    }

    fn flag(&mut self) -> Result<bool, MalformedKey> {
        match self.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(MalformedKey("a mark is neither 0 nor 1")),
        }
    }

    fn number(&mut self) -> Result<u32, MalformedKey> {
        Ok(u32::from_be_bytes(self.array()?))
    }

    fn time(&mut self) -> Result<Millis, MalformedKey> {
        Ok(Millis(i64::from_be_bytes(self.array()?) ^ i64::MIN))
    }

    fn memory(&mut self) -> Result<MemoryId, MalformedKey> {
        Ok(MemoryId::from_bytes(self.array()?))
    }

    fn kind(&mut self) -> Result<KeyKind, MalformedKey> {
        KeyKind::from_number(self.byte()?).ok_or(MalformedKey("unknown kind of key"))
    }

    fn relationship(&mut self) -> Result<Relationship, MalformedKey> {
        Relationship::from_number(self.byte()?).ok_or(MalformedKey("unknown relationship"))
    }

    fn form(&mut self) -> Result<Form, MalformedKey> {
        Form::from_number(self.byte()?).ok_or(MalformedKey("unknown form"))
    }

    fn item(&mut self) -> Result<Item, MalformedKey> {
        match self.byte()? {
            ITEM_MEMORY => Ok(Item::Memory(self.memory()?)),
            ITEM_TURN => Ok(Item::Turn(TurnId::from_bytes(self.array()?))),
            _ => Err(MalformedKey("unknown sort of item")),
        }
    }

    fn tenant(&mut self) -> Result<TenantId, MalformedKey> {
        self.text()?.parse().map_err(|_| MalformedKey("not a tenant id"))
    }

    fn text(&mut self) -> Result<String, MalformedKey> {
        let mut text = Vec::new();
        loop {
            match self.byte()? {
                0 => match self.byte()? {
                    1 => break,
                    0xff => text.push(0),
                    _ => return Err(MalformedKey("a text is escaped wrongly")),
                },
                byte => text.push(byte),
            }
        }
        String::from_utf8(text).map_err(|_| MalformedKey("a text is not UTF-8"))
    }
}

#[cfg(test)]
mod tests;
