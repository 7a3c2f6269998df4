//! Getting rid of dead slots.

use super::columns::{NEVER, flag};
use super::{TenantIndex, each_bit, set_bit};
use crate::vectors::NO_ROW;

/// Fewer dead slots than this are not worth a compaction.
const DEAD_MIN: usize = 1_024;

impl TenantIndex {
    /// Builds the index anew without its dead slots when they are a quarter of it. Returns whether it did. Costs time in
    /// proportion to the index, so its owner calls it between changes, not within one.
    pub fn compact_if_needed(&mut self) -> bool {
        if self.dead < DEAD_MIN || self.dead * 4 < self.columns.len() {
            return false;
        }
        let mut renumbered: Vec<u32> = vec![u32::MAX; self.columns.len()];
        let mut fresh = Self::new(&self.model, self.dimensions);
        fresh.latest_start = self.latest_start;
        fresh.fingerprints = self.fingerprints.clone();
        for slot in each_bit(&self.alive) {
            let Some(mut row) = self.columns.row(slot as usize) else {
                continue;
            };
            let number = fresh.columns.len() as u32;
            renumbered[slot as usize] = number;
            row.namespace = fresh.names.namespaces.number(self.names.namespaces.name(row.namespace));
            row.project = fresh.names.projects.number(self.names.projects.name(row.project));
            row.session = fresh.names.sessions.number(self.names.sessions.name(row.session));
            row.agent = fresh.names.agents.number(self.names.agents.name(row.agent));
            let speaker = self.names.speakers.name(row.speaker);
            row.speaker = fresh.names.speakers.number(speaker);
            row.tags = row
                .tags
                .iter()
                .map(|tag| fresh.names.tags.number(self.names.tags.name(*tag)))
                .collect();
            if let Some(also) = &mut row.also {
                for session in &mut also.sessions {
                    *session = fresh.names.sessions.number(self.names.sessions.name(*session));
                }
                for agent in &mut also.agents {
                    *agent = fresh.names.agents.number(self.names.agents.name(*agent));
                }
            }
            row.vector_row = NO_ROW;
            fresh.speakers.add(row.speaker, speaker);
            fresh.link(number, &mut row);
            fresh.total_length += u64::from(row.length);
            fresh.ended += usize::from(row.valid_to != NEVER);
            fresh.awaiting += usize::from(row.flags & flag::AWAITS_VECTOR != 0);
            set_bit(&mut fresh.alive, number);
            fresh.slots.insert(row.item, number);
            fresh.columns.push(row);
        }
        let renumber = |slot: u32| {
            renumbered
                .get(slot as usize)
                .copied()
                .filter(|number| *number != u32::MAX)
        };
        fresh.lexicon = self.lexicon.compacted(renumber);
        fresh.vectors = self.vectors.compacted(renumber, |slot, row| {
            if let Some(place) = fresh.columns.vector_row.get_mut(slot as usize) {
                *place = row;
            }
        });
        *self = fresh;
        true
    }
}
