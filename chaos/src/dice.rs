//! Chance with a seed: the same seed gives the same plan of faults and the same wishes of the clients.

/// SplitMix64: small, and good enough to choose faults and moments.
#[derive(Clone, Debug)]
pub struct Dice(u64);

impl Dice {
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Dice for somebody else, who must not be disturbed by how often we roll ours.
    pub fn fork(&self, number: u64) -> Self {
        let mut fork = Self(self.0 ^ number.wrapping_mul(0x2545_f491_4f6c_dd1d));
        Self(fork.roll())
    }

    pub fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut value = self.0;
        value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        value ^ (value >> 31)
    }

    /// 0 to `bound - 1`.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.roll() % bound.max(1)
    }

    /// `from` to `to`, both included.
    pub fn between(&mut self, from: u64, to: u64) -> u64 {
        from + self.below(to.saturating_sub(from).saturating_add(1))
    }

    /// A position in a list of this length.
    pub fn index(&mut self, length: usize) -> usize {
        usize::try_from(self.below(length as u64)).unwrap_or(0)
    }

    pub fn shuffle<T>(&mut self, list: &mut [T]) {
        for last in (1..list.len()).rev() {
            list.swap(last, self.index(last + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_rolls_and_forks_differ() {
        let rolls = |mut dice: Dice| (0..5).map(|_| dice.roll()).collect::<Vec<_>>();
        assert_eq!(rolls(Dice::new(7)), rolls(Dice::new(7)));
        assert_ne!(rolls(Dice::new(7)), rolls(Dice::new(8)));
        assert_ne!(rolls(Dice::new(7).fork(1)), rolls(Dice::new(7).fork(2)));
    }

    #[test]
    fn a_shuffle_keeps_what_it_shuffles() {
        let mut list: Vec<u32> = (0..50).collect();
        Dice::new(1).shuffle(&mut list);
        assert_ne!(list, (0..50).collect::<Vec<_>>());
        list.sort_unstable();
        assert_eq!(list, (0..50).collect::<Vec<_>>());
    }
}
