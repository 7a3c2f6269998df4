//! What may be found, worked out once per query as one bit a slot, before any lane chooses its best.

use waggle_memory::kind::Kind;

use super::columns::{Columns, NEVER};
use super::query::{Filter, Items, StateFilter};
use super::{Names, TenantIndex};

/// A filter in the index's own numbers.
pub(super) struct Compiled {
    namespaces: Option<Vec<bool>>,
    projects: Option<Vec<bool>>,
    /// A name that the index does not know passes nothing.
    session: Option<Option<u32>>,
    agent: Option<Option<u32>>,
    items: Items,
    /// Bits by number of the kind.
    kinds: Option<u16>,
    /// None inside: a tag that nobody has.
    tags: Vec<Option<u32>>,
    state: StateFilter,
    known_at: i64,
    period: Option<(i64, i64)>,
}

/// Why a slot is left out; the first reason counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Passes,
    /// Not readable: nobody hears of it.
    Hidden,
    Scope,
    Record,
    Type,
    Closed,
    Scheduled,
    Period,
}

impl Compiled {
    pub(super) fn new(filter: &Filter, names: &Names) -> Self {
        let below = |name: &str, root: &str| {
            root.is_empty()
                || name
                    .strip_prefix(root)
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        Self {
            namespaces: filter.namespaces.as_ref().map(|roots| {
                names
                    .namespaces
                    .table(|name| roots.iter().any(|root| below(name, root)))
            }),
            projects: filter.projects.as_ref().map(|keys| {
                names.projects.table(|key| {
                    if key.is_empty() {
                        filter.tenant_wide
                    } else {
                        keys.iter().any(|wanted| wanted == key)
                    }
                })
            }),
            session: filter.session.as_ref().map(|session| names.sessions.find(session)),
            agent: filter.agent_key.as_ref().map(|agent| names.agents.find(agent)),
            items: filter.items,
            kinds: (!filter.kinds.is_empty()).then(|| {
                filter
                    .kinds
                    .iter()
                    .fold(0, |bits, kind: &Kind| bits | 1 << kind.number())
            }),
            tags: filter.tags.iter().map(|tag| names.tags.find(tag)).collect(),
            state: filter.state,
            known_at: filter.known_at.map_or(NEVER, |at| at.0),
            period: filter.period.map(|(from, to)| (from.0, to.0)),
        }
    }

    pub(super) fn verdict(&self, columns: &Columns, slot: usize) -> Verdict {
        if !self.readable(columns, slot) {
            Verdict::Hidden
        } else if !self.in_scope(columns, slot) {
            Verdict::Scope
        } else if !self.recorded(columns, slot) {
            Verdict::Record
        } else if !self.of_type(columns, slot) {
            Verdict::Type
        } else {
            match self.state(columns, slot) {
                Verdict::Passes if !self.in_period(columns, slot) => Verdict::Period,
                verdict => verdict,
            }
        }
    }

    pub(super) fn readable(&self, columns: &Columns, slot: usize) -> bool {
        self.namespaces
            .as_ref()
            .is_none_or(|passes| passes[columns.namespace[slot] as usize])
    }

    fn in_scope(&self, columns: &Columns, slot: usize) -> bool {
        self.projects
            .as_ref()
            .is_none_or(|passes| passes[columns.project[slot] as usize])
            && self.session.is_none_or(|session| {
                session.is_some_and(|session| {
                    session == columns.session[slot]
                        || columns.also[slot]
                            .as_ref()
                            .is_some_and(|also| also.sessions.contains(&session))
                })
            })
            && self.agent.is_none_or(|agent| {
                agent.is_some_and(|agent| {
                    agent == columns.agent[slot]
                        || columns.also[slot]
                            .as_ref()
                            .is_some_and(|also| also.agents.contains(&agent))
                })
            })
    }

    fn recorded(&self, columns: &Columns, slot: usize) -> bool {
        let said = match self.state {
            StateFilter::AsOf(at) if columns.is_turn(slot) => columns.when[slot] <= at.0,
            _ => true,
        };
        said && columns.recorded_at[slot] <= self.known_at
    }

    fn of_type(&self, columns: &Columns, slot: usize) -> bool {
        let item = match self.items {
            Items::Both => true,
            Items::Memories => !columns.is_turn(slot),
            Items::Turns => columns.is_turn(slot),
        };
        item && self.kinds.is_none_or(|bits| bits >> columns.kind[slot] & 1 == 1)
            && self
                .tags
                .iter()
                .all(|tag| tag.is_some_and(|tag| columns.tags[slot].contains(&tag)))
    }

    fn state(&self, columns: &Columns, slot: usize) -> Verdict {
        if columns.is_turn(slot) {
            return Verdict::Passes;
        }
        let (at, closed, scheduled) = match self.state {
            StateFilter::At { at, closed, scheduled } => (at.0, closed, scheduled),
            StateFilter::AsOf(at) => (at.0, false, false),
        };
        if columns.valid_to[slot] <= at && !closed {
            Verdict::Closed
        } else if columns.valid_from[slot] > at && columns.valid_to[slot] > at && !scheduled {
            Verdict::Scheduled
        } else {
            Verdict::Passes
        }
    }

    fn in_period(&self, columns: &Columns, slot: usize) -> bool {
        self.period
            .is_none_or(|(from, to)| (from..to).contains(&columns.when[slot]))
    }

    /// When an ended memory counts as ended.
    pub(super) fn moment(&self) -> i64 {
        match self.state {
            StateFilter::At { at, .. } | StateFilter::AsOf(at) => at.0,
        }
    }

    /// Marks what passes in `bits`; returns how many are in scope and how many pass.
    pub(super) fn mark(&self, index: &TenantIndex, bits: &mut Vec<u64>) -> (usize, usize) {
        let columns = &index.columns;
        bits.clear();
        bits.extend_from_slice(&index.alive);
        if self.namespaces.is_some() {
            keep(bits, |slot| self.readable(columns, slot));
        }
        if self.projects.is_some() || self.session.is_some() || self.agent.is_some() {
            keep(bits, |slot| self.in_scope(columns, slot));
        }
        let in_scope = count(bits);
        if self.known_at != NEVER || matches!(self.state, StateFilter::AsOf(_)) {
            keep(bits, |slot| self.recorded(columns, slot));
        }
        if self.items != Items::Both || self.kinds.is_some() || !self.tags.is_empty() {
            keep(bits, |slot| self.of_type(columns, slot));
        }
        // Where nothing ever ended and everything has begun, which is most of the time, nobody need be asked.
        if index.ended > 0 || index.latest_start > self.moment() {
            keep(bits, |slot| self.state(columns, slot) == Verdict::Passes);
        }
        if self.period.is_some() {
            keep(bits, |slot| self.in_period(columns, slot));
        }
        (in_scope, count(bits))
    }
}

fn keep(bits: &mut [u64], passes: impl Fn(usize) -> bool) {
    for (index, word) in bits.iter_mut().enumerate() {
        let mut left = *word;
        while left != 0 {
            let at = left.trailing_zeros() as usize;
            left &= left - 1;
            if !passes(index * 64 + at) {
                *word &= !(1 << at);
            }
        }
    }
}

pub(super) fn count(bits: &[u64]) -> usize {
    bits.iter().map(|word| word.count_ones() as usize).sum()
}
