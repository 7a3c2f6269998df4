//! Which turns stand next to each other: the turns of each session in order.

use std::collections::HashMap;

/// The turns of all sessions.
#[derive(Default)]
pub(super) struct Chains {
    /// Number of the chain of a project and session.
    numbers: HashMap<(u32, u32), u32>,
    /// Turn index and slot, ascending.
    turns: Vec<Vec<(u32, u32)>>,
    count: usize,
}

/// The chain of what stands next to nothing.
pub(super) const NO_CHAIN: u32 = u32::MAX;

impl Chains {
    /// Adds a turn and returns the number of its chain; the newest comes last in nearly all cases.
    pub(super) fn insert(&mut self, session: (u32, u32), turn_index: u32, slot: u32) -> u32 {
        let chain = *self.numbers.entry(session).or_insert_with(|| {
            self.turns.push(Vec::new());
            self.turns.len() as u32 - 1
        });
        let turns = &mut self.turns[chain as usize];
        let at = match turns.last() {
            Some((last, _)) if *last >= turn_index => turns.partition_point(|(index, _)| *index < turn_index),
            _ => turns.len(),
        };
        turns.insert(at, (turn_index, slot));
        self.count += 1;
        chain
    }

    pub(super) fn remove(&mut self, chain: u32, turn_index: u32, slot: u32) {
        let Some(turns) = self.turns.get_mut(chain as usize) else {
            return;
        };
        let start = turns.partition_point(|(index, _)| *index < turn_index);
        if let Some(at) = turns.iter().skip(start).position(|(_, found)| *found == slot) {
            turns.remove(start + at);
            self.count -= 1;
        }
    }

    /// Slots of the turns two before, before, after and two after.
    pub(super) fn around(&self, chain: u32, turn_index: u32) -> [Option<u32>; 4] {
        let Some(turns) = self.turns.get(chain as usize) else {
            return [None; 4];
        };
        // Positions are dense unless turns were erased, so the first guess nearly always hits.
        let first = turns.first().map_or(0, |(index, _)| *index);
        let guess = turn_index.wrapping_sub(first) as usize;
        let at = match turns.get(guess) {
            Some((index, _)) if *index == turn_index => guess,
            _ => turns.partition_point(|(index, _)| *index < turn_index),
        };
        let mut around = [None; 4];
        for (index, slot) in turns.iter().skip(at.saturating_sub(2)).take(5) {
            match i64::from(*index) - i64::from(turn_index) {
                -2 => around[0] = Some(*slot),
                -1 => around[1] = Some(*slot),
                1 => around[2] = Some(*slot),
                2 => around[3] = Some(*slot),
                _ => {}
            }
        }
        around
    }

    pub(super) fn resident_bytes(&self) -> usize {
        self.numbers.capacity() * 8 / 7 * 13 + self.turns.capacity() * 24 + self.count * 8 * 4 / 3
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_found_by_position() {
        let mut chains = Chains::default();
        let mut chain = NO_CHAIN;
        for index in [3, 0, 1, 2, 5] {
            chain = chains.insert((1, 1), index, index * 10);
        }
        assert_eq!(chains.around(chain, 1), [None, Some(0), Some(20), Some(30)]);
        chains.remove(chain, 2, 20);
        assert_eq!(chains.around(chain, 3), [Some(10), None, None, Some(50)]);
        assert_eq!(chains.around(chain, 5), [Some(30), None, None, None]);
        let other = chains.insert((1, 2), 1, 7);
        assert_eq!(chains.around(other, 1), [None; 4]);
        assert_eq!(chains.around(NO_CHAIN, 1), [None; 4]);
    }
}
