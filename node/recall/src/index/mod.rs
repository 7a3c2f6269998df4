//! The index of one tenant: words, vectors and the columns that filters look at. Derived from the replicated state and
//! equal to a rebuild of it at any moment (I-24). One owner changes it; searching takes a shared reference and finds the
//! same answer on every replica.
//!
//! It must not keep text, know other tenants, or read a clock. `waggle-node` feeds and asks it.

mod chains;
mod columns;
mod compact;
mod document;
mod explain;
mod filter;
mod interner;
mod names;
mod nearest;
mod query;
mod search;
mod top;

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

use waggle_memory::id::TurnId;
use waggle_memory::tables::Item;

use crate::lexical::Lexicon;
use crate::text::calendar::Day;
use crate::text::{self, Context, Form, Limits};
use crate::vectors::{NO_ROW, Vectors};

use chains::{Chains, NO_CHAIN};
use columns::{Also, Columns, NEVER, Row, flag};
use names::{Names, Speakers};

pub use document::Document;
pub use query::{Counts, Filter, Hit, IndexAnswer, IndexQuery, Items, Preferences, QueryVector, StateFilter};

/// Number of what the index does to a text. A change of the analysis or of what is indexed is a new version, and indexes
/// saved under another one are built again.
pub const INDEX_VERSION: u32 = 1;

/// Everything that recall knows of one tenant.
pub struct TenantIndex {
    model: String,
    dimensions: usize,
    slots: HashMap<Item, u32>,
    columns: Columns,
    /// One bit a slot.
    alive: Vec<u64>,
    dead: usize,
    total_length: u64,
    awaiting: usize,
    /// Living items with an end of validity.
    ended: usize,
    /// The latest beginning of validity that any memory ever had here.
    latest_start: i64,
    /// Bytes of the boxed columns.
    boxed: usize,
    lexicon: Lexicon,
    vectors: Vectors,
    names: Names,
    chains: Chains,
    /// Slots of the memories that came from a turn, which may itself be absent.
    memories_of: HashMap<TurnId, Vec<u32>>,
    speakers: Speakers,
    /// The terms of the day of the last document, which is that of the next one, too, as a rule.
    day_terms: (Option<Day>, Vec<String>),
    fingerprints: RandomState,
}

impl TenantIndex {
    /// An empty index for the vectors of one model. Vectors of another model, or of other dimensions, are treated as
    /// absent: two models are never compared.
    pub fn new(model: &str, dimensions: usize) -> Self {
        Self {
            model: model.to_owned(),
            dimensions,
            slots: HashMap::new(),
            columns: Columns::default(),
            alive: Vec::new(),
            dead: 0,
            total_length: 0,
            awaiting: 0,
            ended: 0,
            latest_start: i64::MIN,
            boxed: 0,
            lexicon: Lexicon::new(),
            vectors: Vectors::new(dimensions),
            names: Names::new(),
            chains: Chains::default(),
            memories_of: HashMap::new(),
            speakers: Speakers::default(),
            day_terms: (None, Vec::new()),
            fingerprints: RandomState::new(),
        }
    }

    /// The model whose vectors it holds.
    pub fn model(&self) -> &str {
        &self.model
    }

    /// Living items.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether nothing lives in it.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Whether it holds the item.
    pub fn contains(&self, item: Item) -> bool {
        self.slots.contains_key(&item)
    }

    /// Items with a vector.
    pub fn vector_count(&self) -> usize {
        self.vectors.len()
    }

    /// Items whose vector is to come.
    pub fn awaiting_count(&self) -> usize {
        self.awaiting
    }

    /// Items that a filter leaves and that still wait for their vector.
    pub fn awaiting_in_scope(&self, filter: &Filter) -> usize {
        if self.awaiting == 0 {
            return 0;
        }
        let mut bits = Vec::new();
        filter::Compiled::new(filter, &self.names).mark(self, &mut bits);
        self.awaiting_among(&bits)
    }

    fn awaiting_among(&self, bits: &[u64]) -> usize {
        if self.awaiting == 0 {
            return 0;
        }
        each_bit(bits)
            .filter(|slot| self.columns.flags[*slot as usize] & flag::AWAITS_VECTOR != 0)
            .count()
    }

    /// Adds a document or replaces what it was before. Costs what the document costs, whatever the size of the index.
    pub fn upsert(&mut self, document: &Document) {
        let speaker = match document.speaker.as_str() {
            "" if document.kind.is_none() => text::speaker_of(&document.text).unwrap_or(""),
            given => given,
        };
        let when = if document.valid_from_stated {
            document.valid_from
        } else {
            document.observed_at
        };
        let fingerprint = self.fingerprints.hash_one((
            (
                &document.namespace,
                &document.project_key,
                &document.session,
                &document.agent_key,
                speaker,
            ),
            (&document.label, &document.text, &document.aliases, &document.tags),
            (when, document.turn_index, &document.from_turns, document.kind.is_none()),
            (&document.also_sessions, &document.also_agent_keys),
        ));
        let slot = match self.slots.get(&document.item) {
            Some(slot) if self.columns.fingerprint[*slot as usize] == fingerprint => *slot,
            known => {
                if known.is_some() {
                    self.remove(document.item);
                }
                self.insert(document, speaker, when.0, fingerprint)
            }
        };
        self.set_changeable(slot, document);
    }

    /// What changes without touching the words: validity, kind, confidence, vector.
    fn set_changeable(&mut self, slot: u32, document: &Document) {
        let at = slot as usize;
        self.columns.kind[at] = document.kind.map_or(0, |kind| kind.number());
        self.columns.confidence[at] = document.confidence;
        self.columns.valid_from[at] = document.valid_from.0;
        self.ended -= usize::from(self.columns.valid_to[at] != NEVER);
        self.columns.valid_to[at] = document.valid_to.map_or(NEVER, |end| end.0);
        self.ended += usize::from(self.columns.valid_to[at] != NEVER);
        if document.kind.is_some() {
            self.latest_start = self.latest_start.max(document.valid_from.0);
        }
        self.columns.recorded_at[at] = document.recorded_at.0;

        let vector = document
            .vector
            .as_ref()
            .filter(|vector| vector.model == self.model && vector.components.len() == self.dimensions)
            .map(|vector| (&vector.components, f32::from_bits(vector.scale_bits)))
            .filter(|(_, scale)| scale.is_finite() && *scale > 0.0);
        let row = self.columns.vector_row[at];
        if row != NO_ROW {
            self.vectors.remove(row);
        }
        self.columns.vector_row[at] = match vector {
            Some((components, scale)) => self.vectors.insert(slot, components, scale),
            None => NO_ROW,
        };
        let awaits = document.awaits_vector && vector.is_none();
        let awaited = self.columns.flags[at] & flag::AWAITS_VECTOR != 0;
        self.columns.flags[at] &= !flag::AWAITS_VECTOR;
        if awaits {
            self.columns.flags[at] |= flag::AWAITS_VECTOR;
        }
        self.awaiting = self.awaiting + usize::from(awaits) - usize::from(awaited);
    }

    fn insert(&mut self, document: &Document, speaker: &str, when: i64, fingerprint: u64) -> u32 {
        let slot = self.columns.len() as u32;
        let (length, flags) = self.index_words(document, when);
        self.lexicon.commit(slot);
        let mut row = Row {
            item: document.item,
            flags,
            kind: document.kind.map_or(0, |kind| kind.number()),
            confidence: document.confidence,
            namespace: self.names.namespaces.number(&document.namespace),
            project: self.names.projects.number(&document.project_key),
            session: self.names.sessions.number(&document.session),
            agent: self.names.agents.number(&document.agent_key),
            speaker: self.names.speakers.number(speaker),
            valid_from: document.valid_from.0,
            valid_to: NEVER,
            when,
            recorded_at: document.recorded_at.0,
            length,
            fingerprint,
            turn_index: document.turn_index.unwrap_or(u32::MAX),
            chain: NO_CHAIN,
            vector_row: NO_ROW,
            tags: document.tags.iter().map(|tag| self.names.tags.number(tag)).collect(),
            from_turns: document.from_turns.clone().into_boxed_slice(),
            also: also(document, &mut self.names),
        };
        self.speakers.add(row.speaker, speaker);
        self.link(slot, &mut row);
        self.total_length += u64::from(length);
        self.columns.push(row);
        set_bit(&mut self.alive, slot);
        self.slots.insert(document.item, slot);
        slot
    }

    /// Hands every term of a document to the lexicon; returns its length and what sort of text it is.
    fn index_words(&mut self, document: &Document, when: i64) -> (u16, u8) {
        let day = Day::of_millis(when);
        let context = Context::said_on(Some(day));
        let mut length = 0_u32;
        let mut flags = 0_u8;
        let lexicon = &mut self.lexicon;
        let mut read = |text: &str| {
            let seen = text::analyze(text, &context, &Limits::DOCUMENT, &mut |term, _| lexicon.count(term));
            length += seen.length;
            for (holds, bit) in [
                (seen.negated, flag::NEGATED),
                (seen.says_when, flag::SAYS_WHEN),
                (seen.says_number, flag::SAYS_NUMBER),
            ] {
                flags |= if holds { bit } else { 0 };
            }
        };
        read(&document.label);
        read(&document.text);
        document.aliases.iter().for_each(|alias| read(alias));
        document.tags.iter().for_each(|tag| read(tag));
        read(&document.speaker);
        if document.tags.iter().any(|tag| tag == "negated") {
            flags |= flag::NEGATED;
        }
        // The date is the same for all of a session: it is no part of the length.
        if self.day_terms.0 != Some(day) {
            let mut terms = Vec::new();
            text::date_terms(day, &mut |term, form| {
                if form != Form::Written {
                    terms.push(term.to_owned());
                }
            });
            self.day_terms = (Some(day), terms);
        }
        self.day_terms.1.iter().for_each(|term| self.lexicon.count(term));
        (u16::try_from(length).unwrap_or(u16::MAX), flags)
    }

    /// Finds its neighbours and, for a memory, its turns.
    fn link(&mut self, slot: u32, row: &mut Row) {
        row.chain = NO_CHAIN;
        if row.turn_index != u32::MAX && row.session != 0 {
            row.chain = self.chains.insert((row.project, row.session), row.turn_index, slot);
        }
        self.boxed += row.boxed_bytes();
        for turn in &row.from_turns {
            self.memories_of.entry(*turn).or_default().push(slot);
        }
    }

    /// Takes an item out, at once; its slot is reclaimed by [`Self::compact_if_needed`]. Returns whether it was there.
    pub fn remove(&mut self, item: Item) -> bool {
        let Some(slot) = self.slots.remove(&item) else {
            return false;
        };
        let at = slot as usize;
        if let Some(word) = self.alive.get_mut(at / 64) {
            *word &= !(1 << (slot % 64));
        }
        self.dead += 1;
        self.total_length -= u64::from(self.columns.length[at]);
        let row = std::mem::replace(&mut self.columns.vector_row[at], NO_ROW);
        if row != NO_ROW {
            self.vectors.remove(row);
        }
        if self.columns.flags[at] & flag::AWAITS_VECTOR != 0 {
            self.awaiting -= 1;
        }
        self.boxed -= self.columns.row(at).map_or(0, |row| row.boxed_bytes());
        self.ended -= usize::from(self.columns.valid_to[at] != NEVER);
        self.speakers.remove(self.columns.speaker[at]);
        self.chains
            .remove(self.columns.chain[at], self.columns.turn_index[at], slot);
        for turn in std::mem::take(&mut self.columns.from_turns[at]) {
            if let Some(memories) = self.memories_of.get_mut(&turn) {
                memories.retain(|memory| *memory != slot);
                if memories.is_empty() {
                    self.memories_of.remove(&turn);
                }
            }
        }
        self.columns.tags[at] = Box::default();
        true
    }

    /// Bytes held, for the budget of the node: counted, not measured, and within some 10 % of the truth.
    pub fn resident_bytes(&self) -> usize {
        size_of::<Self>()
            + self.slots.capacity() * 8 / 7 * (size_of::<(Item, u32)>() + 1)
            + self.columns.resident_bytes()
            + self.boxed
            + self.alive.capacity() * 8
            + self.lexicon.resident_bytes()
            + self.vectors.resident_bytes()
            + self.names.resident_bytes()
            + self.chains.resident_bytes()
            + self.memories_of.capacity() * 8 / 7 * 41
            + self.memories_of.len() * 16
    }
}

/// What a memory with evidence of several sessions or agents belongs to beside the first.
fn also(document: &Document, names: &mut Names) -> Option<Box<Also>> {
    if document.also_sessions.is_empty() && document.also_agent_keys.is_empty() {
        return None;
    }
    Some(Box::new(Also {
        sessions: document
            .also_sessions
            .iter()
            .map(|name| names.sessions.number(name))
            .collect(),
        agents: document
            .also_agent_keys
            .iter()
            .map(|name| names.agents.number(name))
            .collect(),
    }))
}

fn set_bit(bits: &mut Vec<u64>, slot: u32) {
    let word = slot as usize / 64;
    if bits.len() <= word {
        bits.resize(word + 1, 0);
    }
    bits[word] |= 1 << (slot % 64);
}

/// The numbers of the bits that are set, ascending.
fn each_bit(bits: &[u64]) -> impl Iterator<Item = u32> + '_ {
    (0_u32..).zip(bits).flat_map(|(word, bits)| {
        let mut left = *bits;
        std::iter::from_fn(move || {
            if left == 0 {
                return None;
            }
            let at = left.trailing_zeros();
            left &= left - 1;
            Some(word * 64 + at)
        })
    })
}
