//! Keys, and rows that fit under them.

use waggle_memory::id::{LinkId, MemoryId, MessageId, RequestId, TenantId, TurnId};
use waggle_memory::kind::Relationship;
use waggle_memory::meta::KeyId;
use waggle_memory::statement::Fingerprint;
use waggle_memory::tables::{Form, Item, Key, Row, ShardKey, TenantKey};

use super::Draw;

const FORMS: [Form; 6] = [
    Form::Exact,
    Form::Canonical,
    Form::Label,
    Form::Slot,
    Form::General,
    Form::Acronym,
];

impl Draw {
    /// One of few, so that keys meet.
    fn near_id(&mut self) -> [u8; 16] {
        let byte = self.pick(&[0, 1, 2, 0x7f, 0xff]);
        let mut id = [byte; 16];
        id[15] = self.pick(&[0, 1, 0xff]);
        id
    }

    fn near_memory(&mut self) -> MemoryId {
        MemoryId::from_bytes(self.near_id())
    }

    fn near_number(&mut self) -> u32 {
        self.pick(&[0, 1, 255, 256, u32::MAX])
    }

    fn near_text(&mut self) -> String {
        self.pick(&["", "a", "ab", "a\u{0}", "a\u{0}b", "a\u{1}", "\u{0}", "é", "\u{10ffff}"])
            .to_owned()
    }

    pub fn item(&mut self) -> Item {
        match self.below(2) {
            0 if self.near => Item::Memory(self.memory_id()),
            0 => Item::Memory(self.near_memory()),
            _ if self.near => Item::Turn(self.turn_id()),
            _ => Item::Turn(TurnId::from_bytes(self.near_id())),
        }
    }

    pub fn key(&mut self) -> Key {
        let tenant = self.tenant();
        if self.below(4) == 0 {
            Key::Shard(self.shard_key())
        } else {
            self.key_of(tenant)
        }
    }

    /// A key of one tenant.
    pub fn key_of(&mut self, tenant: TenantId) -> Key {
        Key::Tenant(tenant, self.tenant_key())
    }

    pub fn shard_key(&mut self) -> ShardKey {
        match self.below(7) {
            0 => ShardKey::LastStamp,
            1 => ShardKey::RequestAge(self.time(), self.tenant(), RequestId(self.near_text())),
            2 => ShardKey::Placement,
            3 => ShardKey::TenantInfo(self.tenant()),
            4 => ShardKey::ApiKey(KeyId(self.near_text())),
            5 => ShardKey::JoinToken(KeyId(self.near_text())),
            _ => ShardKey::KeyOfTenant(self.tenant(), KeyId(self.near_text())),
        }
    }

    pub fn tenant_key(&mut self) -> TenantKey {
        match self.below(22) {
            0 => TenantKey::State,
            1 => TenantKey::Memory(self.near_memory()),
            2 => TenantKey::Version(self.near_memory(), self.near_number()),
            3 => TenantKey::Evidence(self.near_memory(), self.near_number()),
            4 => TenantKey::Link(LinkId::from_bytes(self.near_id())),
            5 => TenantKey::LinkFrom(self.near_memory(), self.pick(Relationship::ALL), self.near_memory()),
            6 => TenantKey::LinkTo(self.near_memory(), self.pick(Relationship::ALL), self.near_memory()),
            7 => TenantKey::Turn(TurnId::from_bytes(self.near_id())),
            8 => TenantKey::TurnAt(self.near_text(), self.near_text(), self.near_number()),
            9 => TenantKey::Session(self.near_text(), self.near_text()),
            10 => TenantKey::Project(self.near_text()),
            11 => TenantKey::Agent(self.near_text()),
            12 => {
                let print = Fingerprint(self.pick(&[0, 1, 256, u64::MAX]));
                TenantKey::Fingerprint(self.near_text(), self.pick(&FORMS), print, self.near_memory())
            }
            13 => TenantKey::Vector(self.item()),
            14 => TenantKey::AwaitsVector(self.item()),
            15 => TenantKey::Tombstone(self.near_memory()),
            16 => TenantKey::Request(RequestId(self.near_text())),
            17 => TenantKey::Message(
                self.near_text(),
                self.near_text(),
                MessageId::from_bytes(self.near_id()),
            ),
            18 => TenantKey::Change(u64::from(self.near_number()) << self.pick(&[0, 32])),
            19 => TenantKey::Conflict(self.below(2) == 1, LinkId::from_bytes(self.near_id())),
            20 => TenantKey::Redirect(self.near_memory()),
            _ => TenantKey::MessageOf(TurnId::from_bytes(self.near_id())),
        }
    }

    /// A row of the kind that belongs under a key.
    pub fn row_under(&mut self, key: &Key) -> Row {
        match key {
            Key::Shard(ShardKey::LastStamp) => Row::Stamp(self.stamp()),
            Key::Shard(ShardKey::RequestAge(..) | ShardKey::KeyOfTenant(..)) => Row::Mark,
            Key::Shard(ShardKey::Placement) => Row::Placement(self.placement()),
            Key::Shard(ShardKey::TenantInfo(_)) => Row::TenantInfo(self.tenant_info()),
            Key::Shard(ShardKey::ApiKey(_)) => Row::ApiKey(self.api_key()),
            Key::Shard(ShardKey::JoinToken(_)) => Row::JoinToken(self.join_token()),
            Key::Tenant(_, key) => match key {
                TenantKey::State => Row::State(self.tenant_state()),
                TenantKey::Memory(_) => Row::Memory(Box::new(self.memory())),
                TenantKey::Version(..) => Row::Version(Box::new(self.version())),
                TenantKey::Evidence(..) => Row::Evidence(Box::new(self.evidence())),
                TenantKey::Link(_) => Row::Link(Box::new(self.link())),
                TenantKey::LinkFrom(..) | TenantKey::LinkTo(..) => Row::LinkId(LinkId::from_bytes(self.bytes())),
                TenantKey::Turn(_) => Row::Turn(Box::new(self.turn())),
                TenantKey::TurnAt(..) => Row::TurnId(TurnId::from_bytes(self.bytes())),
                TenantKey::Session(..) => Row::Session(self.session()),
                TenantKey::Project(_) => Row::Project(self.project()),
                TenantKey::Agent(_) => Row::Agent(self.agent()),
                TenantKey::Fingerprint(..) | TenantKey::AwaitsVector(_) | TenantKey::Conflict(..) => Row::Mark,
                TenantKey::Change(_) => Row::Change(Box::new(self.change())),
                TenantKey::Redirect(_) => Row::Redirect(MemoryId::from_bytes(self.bytes())),
                TenantKey::Vector(_) => Row::Vector(self.vector()),
                TenantKey::Tombstone(_) => Row::Tombstone(self.tombstone()),
                TenantKey::Request(_) => Row::Request(self.request_row()),
                TenantKey::Message(..) => Row::TurnId(TurnId::from_bytes(self.bytes())),
                TenantKey::MessageOf(_) => Row::Message(self.message()),
            },
        }
    }
}
