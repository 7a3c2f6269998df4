//! Values of every persisted type, made from a seed. Shared with the tests of the store.
#![allow(
    dead_code,
    unreachable_pub,
    clippy::unwrap_used,
    reason = "tests: each binary uses a part"
)]

pub mod commands;
mod keys;
mod records;
mod rows;

use waggle_memory::id::{Principal, TenantId};
use waggle_memory::memory::{Vector, VectorDraft};
use waggle_memory::scope::Scope;
use waggle_memory::statement::{Claim, Fingerprint, StatedEnd, Statement};
use waggle_memory::time::{Millis, Stamp};

/// Draws values. Not a random number generator of any quality: it spreads, and the same seed gives the same values.
pub struct Draw {
    state: u64,
    /// Every optional part is there and no list is empty.
    full: bool,
    /// Identities come from a small pool and values are plausible, so that commands meet what others left.
    near: bool,
    /// Identities made so far, with `near`.
    made: [u64; 3],
}

/// Sorts of identities that commands refer to.
#[derive(Clone, Copy)]
pub enum Sort {
    Memory,
    Link,
    Turn,
}

impl Draw {
    /// Optional parts come and go.
    pub fn new(seed: u64) -> Self {
        Self {
            state: seed,
            full: false,
            near: false,
            made: [0; 3],
        }
    }

    /// Every field is set.
    pub fn full(seed: u64) -> Self {
        Self {
            state: seed,
            full: true,
            near: false,
            made: [0; 3],
        }
    }

    /// Optional parts come and go; identities meet.
    pub fn near(seed: u64) -> Self {
        Self {
            state: seed,
            full: false,
            near: true,
            made: [0; 3],
        }
    }

    pub fn number(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.number() % u64::try_from(end.max(1)).unwrap()).unwrap()
    }

    pub fn pick<T: Clone>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())].clone()
    }

    pub fn flag(&mut self) -> bool {
        self.full || self.number().is_multiple_of(2)
    }

    pub fn maybe<T>(&mut self, make: impl FnOnce(&mut Self) -> T) -> Option<T> {
        if self.flag() { Some(make(self)) } else { None }
    }

    /// For what would make most commands invalid.
    pub fn unless_near<T>(&mut self, make: impl FnOnce(&mut Self) -> T) -> Option<T> {
        if self.near { None } else { self.maybe(make) }
    }

    pub fn list<T>(&mut self, make: impl Fn(&mut Self) -> T) -> Vec<T> {
        let count = if self.full { 2 } else { self.below(4) };
        (0..count).map(|_| make(self)).collect()
    }

    /// Small, large, or an end of the range.
    pub fn u32(&mut self) -> u32 {
        let number = u32::try_from(self.number() >> 32).unwrap();
        if self.full {
            number % 1000 + 1
        } else if self.near {
            number % 3
        } else {
            self.pick(&[0, 1, number % 1000, number, u32::MAX])
        }
    }

    pub fn u64(&mut self) -> u64 {
        let number = self.number();
        if self.full {
            number % 1_000_000 + 1
        } else {
            self.pick(&[0, 1, number % 1000, number, u64::MAX])
        }
    }

    pub fn bytes<const N: usize>(&mut self) -> [u8; N] {
        std::array::from_fn(|_| u8::try_from(self.number() >> 56).unwrap())
    }

    pub fn id(&mut self, sort: Sort) -> [u8; 16] {
        if !self.near {
            return self.bytes();
        }
        // A recent one: older ones tend to be erased.
        let back = self.number() % 12;
        u128::from(self.made[sort as usize].saturating_sub(back)).to_be_bytes()
    }

    /// An identity that was not there before.
    pub fn new_id(&mut self, sort: Sort) -> [u8; 16] {
        if !self.near {
            return self.bytes();
        }
        self.made[sort as usize] += 1;
        u128::from(self.made[sort as usize]).to_be_bytes()
    }

    pub fn text(&mut self) -> String {
        const WORDS: [&str; 10] = [
            "billing",
            "postgres",
            "Zoë",
            "\u{0}",
            "",
            "a\u{0}b",
            "\u{0}\u{1}",
            "日本語",
            "moved to",
            "\u{10ffff}",
        ];
        if self.full || self.near {
            return format!("text {}", self.number() % 100);
        }
        (0..self.below(3)).map(|_| self.pick(&WORDS)).collect()
    }

    pub fn time(&mut self) -> Millis {
        let number = i64::try_from(self.number() % 4_000_000_000_000).unwrap();
        if self.full || self.near {
            Millis(number)
        } else {
            Millis(self.pick(&[0, -1, number, -number, i64::MIN, i64::MAX]))
        }
    }

    pub fn stamp(&mut self) -> Stamp {
        Stamp {
            wall: self.time(),
            logical: self.u32(),
        }
    }

    pub fn tenant(&mut self) -> TenantId {
        let all = ["acme", "acme-2", "acme.eu", "0", "zeta_9"];
        let known = if self.near { &all[..1] } else { &all[..] };
        self.pick(known).parse().unwrap()
    }

    pub fn principal(&mut self) -> Principal {
        Principal(format!("key:{}", self.text()))
    }

    pub fn scope(&mut self) -> Scope {
        Scope {
            project: self.text(),
            agent_id: self.text(),
            session_id: self.text(),
        }
    }

    pub fn fingerprint(&mut self) -> Fingerprint {
        if self.near {
            Fingerprint(self.number() % 5)
        } else {
            Fingerprint(self.u64())
        }
    }

    pub fn statement(&mut self) -> Statement {
        Statement {
            exact: self.fingerprint(),
            canonical: self.maybe(Self::fingerprint),
            label: self.fingerprint(),
            acronym: self.maybe(Self::fingerprint),
            general: self.list(Self::fingerprint),
            modality: self.pick(waggle_memory::kind::Modality::ALL),
            claims: self.list(|draw| Claim {
                slot: draw.fingerprint(),
                value: draw.fingerprint(),
                negated: draw.flag(),
                change: draw.flag(),
                slot_text: draw.text(),
                value_text: draw.text(),
            }),
            ends: self.list(|draw| StatedEnd {
                slot: draw.fingerprint(),
                value: draw.fingerprint(),
                at: draw.maybe(Self::time),
                value_text: draw.text(),
            }),
        }
    }

    pub fn vector(&mut self) -> Vector {
        let components = if self.full { 8 } else { self.below(400) };
        Vector {
            model: self.text(),
            scale_bits: self.u32(),
            components: (0..components).map(|_| i8::from_be_bytes(self.bytes())).collect(),
        }
    }

    pub fn vector_draft(&mut self) -> VectorDraft {
        match self.below(3) {
            0 => VectorDraft::Pending,
            1 => VectorDraft::None,
            _ => VectorDraft::Ready(self.vector()),
        }
    }
}
