//! The slots of one term: distances to the slot before, seven bits a byte, with a count byte only where a term repeats.
//! Two bytes a posting on ordinary text.

/// Slots with counts, ascending.
#[derive(Default)]
pub(super) struct Postings {
    bytes: Vec<u8>,
    count: u32,
    /// The next slot must be at least this.
    next: u32,
}

impl Postings {
    /// Adds a slot above all before. Counts saturate at 255.
    pub(super) fn push(&mut self, slot: u32, count: usize) {
        debug_assert!(slot >= self.next, "slots ascend");
        let repeats = count > 1;
        let mut value = u64::from(slot.saturating_sub(self.next)) << 1 | u64::from(repeats);
        while value >= 0x80 {
            self.bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
        if repeats {
            self.bytes.push(count.min(255) as u8);
        }
        self.count += 1;
        self.next = slot.saturating_add(1);
    }

    pub(super) fn count(&self) -> usize {
        self.count as usize
    }

    pub(super) fn bytes_used(&self) -> usize {
        self.bytes.len()
    }

    pub(super) fn shrink(&mut self) {
        self.bytes.shrink_to_fit();
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, f32)> + '_ {
        let mut bytes = self.bytes.iter();
        let mut next = 0_u32;
        std::iter::from_fn(move || {
            let first = *bytes.next()?;
            let mut value = u64::from(first & 0x7f);
            let mut last = first;
            let mut shift = 7;
            while last & 0x80 != 0 {
                last = *bytes.next()?;
                value |= u64::from(last & 0x7f) << shift;
                shift += 7;
            }
            let count = if value & 1 == 1 { f32::from(*bytes.next()?) } else { 1.0 };
            let slot = next + (value >> 1) as u32;
            next = slot + 1;
            Some((slot, count))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_pushed_comes_back() {
        let given = [
            (0, 1),
            (1, 2),
            (2, 300),
            (64, 1),
            (70_000, 1),
            (20_000_000, 4),
            (u32::MAX - 1, 255),
        ];
        let mut postings = Postings::default();
        given.iter().for_each(|(slot, count)| postings.push(*slot, *count));
        let back: Vec<(u32, f32)> = postings.iter().collect();
        let expected: Vec<(u32, f32)> = given
            .iter()
            .map(|(slot, count)| (*slot, (*count).min(255) as f32))
            .collect();
        assert_eq!(back, expected);
        assert_eq!(postings.count(), given.len());
    }
}
