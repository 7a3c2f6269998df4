//! What the index knows of each slot beside words and vector: one column for each thing that filters or ranking look at.

use waggle_memory::id::TurnId;
use waggle_memory::kind::Confidence;
use waggle_memory::tables::Item;
use waggle_memory::time::Millis;

/// Bits of a slot.
pub(super) mod flag {
    pub(in crate::index) const NEGATED: u8 = 1;
    pub(in crate::index) const AWAITS_VECTOR: u8 = 2;
    pub(in crate::index) const SAYS_WHEN: u8 = 4;
    pub(in crate::index) const SAYS_NUMBER: u8 = 8;
}

/// An open end.
pub(super) const NEVER: i64 = i64::MAX;

macro_rules! columns {
    ($($(#[$doc:meta])* $name:ident: $type:ty),* $(,)?) => {
        /// One slot.
        #[derive(Clone, Debug)]
        pub(super) struct Row { $($(#[$doc])* pub(super) $name: $type),* }

        /// All slots, column by column: a filter reads only the columns that it looks at.
        #[derive(Default)]
        pub(super) struct Columns { $($(#[$doc])* pub(super) $name: Vec<$type>),* }

        impl Columns {
            pub(super) fn push(&mut self, row: Row) {
                $(self.$name.push(row.$name);)*
            }

            pub(super) fn row(&self, slot: usize) -> Option<Row> {
                Some(Row { $($name: self.$name.get(slot)?.clone()),* })
            }

            pub(super) fn resident_bytes(&self) -> usize {
                0 $(+ self.$name.capacity() * size_of::<$type>())*
            }
        }
    };
}

columns! {
    item: Item,
    flags: u8,
    /// Number of the kind; 0 for a turn.
    kind: u8,
    confidence: Confidence,
    namespace: u32,
    project: u32,
    session: u32,
    agent: u32,
    speaker: u32,
    valid_from: i64,
    /// [`NEVER`] for an open end.
    valid_to: i64,
    /// What a period looks at.
    when: i64,
    recorded_at: i64,
    /// Terms, saturated.
    length: u16,
    /// Of everything that cannot be changed in place.
    fingerprint: u64,
    /// Position in the session; `u32::MAX` for a memory.
    turn_index: u32,
    /// Its session as a chain of turns.
    chain: u32,
    /// Row of the vector.
    vector_row: u32,
    tags: Box<[u32]>,
    from_turns: Box<[TurnId]>,
    /// Of the few memories that belong to more than one session or agent.
    also: Option<Box<Also>>,
}

/// Sessions and agents of the further evidence of a memory: it belongs to each of them.
#[derive(Clone, Debug, Default)]
pub(super) struct Also {
    pub(super) sessions: Vec<u32>,
    pub(super) agents: Vec<u32>,
}

impl Row {
    pub(super) fn boxed_bytes(&self) -> usize {
        let also = self.also.as_ref().map_or(0, |also| {
            size_of::<Also>() + (also.sessions.capacity() + also.agents.capacity()) * size_of::<u32>()
        });
        size_of_val::<[u32]>(&self.tags) + size_of_val::<[TurnId]>(&self.from_turns) + also
    }
}

impl Columns {
    pub(super) fn len(&self) -> usize {
        self.item.len()
    }

    pub(super) fn is_turn(&self, slot: usize) -> bool {
        self.kind[slot] == 0
    }

    /// Newer first, then by id: how equal scores are ordered.
    pub(super) fn tie(&self, a: u32, b: u32) -> std::cmp::Ordering {
        let (a, b) = (a as usize, b as usize);
        self.valid_from[b]
            .cmp(&self.valid_from[a])
            .then(self.item[a].cmp(&self.item[b]))
    }

    pub(super) fn valid_from(&self, slot: usize) -> Millis {
        Millis(self.valid_from[slot])
    }
}
