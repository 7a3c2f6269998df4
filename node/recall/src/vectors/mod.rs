//! Meaning: int8 rows and an exact scan over those that a filter left. No approximation, so one query has one answer on
//! every replica. A prefilter of one bit a dimension, for tenants above some 200,000 vectors, is not built yet.

mod dot;

pub(crate) use dot::Query;
use dot::{LINE, Line};

/// Rows of a block. A block is what the kernel is called for: small enough for the first-level cache's neighbours.
const BLOCK_ROWS: usize = 256;
/// A row that nobody has.
pub(crate) const NO_ROW: u32 = u32::MAX;

/// The vectors of one model, each in a row that its slot remembers.
pub(crate) struct Vectors {
    lines_per_row: usize,
    /// All blocks but the last are full; the last one grows, so a small tenant stays small.
    blocks: Vec<Vec<Line>>,
    /// Who owns a row; [`NO_ROW`] for nobody.
    owners: Vec<u32>,
    scales: Vec<f32>,
    free: Vec<u32>,
}

impl Vectors {
    pub(crate) fn new(dimensions: usize) -> Self {
        Self {
            lines_per_row: dimensions.div_ceil(LINE),
            blocks: Vec::new(),
            owners: Vec::new(),
            scales: Vec::new(),
            free: Vec::new(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.owners.len() - self.free.len()
    }

    /// Puts a vector into a row of its own.
    pub(crate) fn insert(&mut self, slot: u32, components: &[i8], scale: f32) -> u32 {
        let row = match self.free.pop() {
            Some(row) => row,
            None => self.grow(),
        };
        self.write(row, components);
        self.owners[row as usize] = slot;
        self.scales[row as usize] = scale;
        row
    }

    /// Overwrites a row at once: what is erased must not lie about.
    pub(crate) fn remove(&mut self, row: u32) {
        self.write(row, &[]);
        self.owners[row as usize] = NO_ROW;
        self.scales[row as usize] = 0.0;
        self.free.push(row);
    }

    fn grow(&mut self) -> u32 {
        let row = self.owners.len() as u32;
        self.owners.push(NO_ROW);
        self.scales.push(0.0);
        if self
            .blocks
            .last()
            .is_none_or(|block| block.len() == BLOCK_ROWS * self.lines_per_row)
        {
            self.blocks.push(Vec::new());
        }
        if let Some(block) = self.blocks.last_mut() {
            block.extend(std::iter::repeat_n(Line::ZERO, self.lines_per_row));
        }
        row
    }

    fn write(&mut self, row: u32, components: &[i8]) {
        let (block, row) = (row as usize / BLOCK_ROWS, row as usize % BLOCK_ROWS);
        if let Some(lines) = self
            .blocks
            .get_mut(block)
            .and_then(|lines| lines.get_mut(row * self.lines_per_row..))
        {
            for (index, line) in lines.iter_mut().take(self.lines_per_row).enumerate() {
                *line = Line::of(components.get(index * LINE..).unwrap_or(&[]));
            }
        }
    }

    /// Prepares a query; its components beyond the dimensions of the rows are ignored.
    pub(crate) fn query(&self, components: &[i8], scale: f32) -> Query {
        Query::new(components, scale, self.lines_per_row)
    }

    /// Calls `found` with slot and cosine of each row whose owner `wanted` names.
    pub(crate) fn scan(&self, query: &Query, wanted: impl Fn(u32) -> bool, mut found: impl FnMut(u32, f32)) {
        let mut rows: Vec<u32> = Vec::with_capacity(BLOCK_ROWS);
        let mut dots: Vec<i32> = Vec::with_capacity(BLOCK_ROWS);
        for (block, lines) in self.blocks.iter().enumerate() {
            let first = block * BLOCK_ROWS;
            let owners = &self.owners[first..(first + BLOCK_ROWS).min(self.owners.len())];
            rows.clear();
            rows.extend(
                (0_u32..)
                    .zip(owners)
                    .filter(|(_, owner)| **owner != NO_ROW && wanted(**owner))
                    .map(|(row, _)| row),
            );
            dots.clear();
            query.dots(lines, &rows, &mut dots);
            for (row, dot) in rows.iter().zip(&dots) {
                let row = *row as usize;
                found(owners[row], *dot as f32 * (self.scales[first + row] * query.scale()));
            }
        }
    }

    /// Calls `found` with slot and cosine of each of these rows, which must ascend; rows that nobody has are left out.
    /// Costs what these rows cost, whatever the number of all.
    pub(crate) fn compare(&self, query: &Query, rows: &[u32], mut found: impl FnMut(u32, f32)) {
        let mut inside: Vec<u32> = Vec::with_capacity(BLOCK_ROWS);
        let mut dots: Vec<i32> = Vec::with_capacity(BLOCK_ROWS);
        for of_block in rows.chunk_by(|a, b| *a as usize / BLOCK_ROWS == *b as usize / BLOCK_ROWS) {
            let block = of_block.first().map_or(0, |row| *row as usize / BLOCK_ROWS);
            let Some(lines) = self.blocks.get(block) else { continue };
            let first = block * BLOCK_ROWS;
            let owned = |row: &u32| self.owners.get(*row as usize).is_some_and(|owner| *owner != NO_ROW);
            inside.clear();
            inside.extend(of_block.iter().filter(|row| owned(row)).map(|row| row - first as u32));
            dots.clear();
            query.dots(lines, &inside, &mut dots);
            for (row, dot) in inside.iter().zip(&dots) {
                let row = first + *row as usize;
                found(self.owners[row], *dot as f32 * (self.scales[row] * query.scale()));
            }
        }
    }

    /// The same rows for the slots that `renumber` keeps; `moved` hears of each new row.
    pub(crate) fn compacted(&self, renumber: impl Fn(u32) -> Option<u32>, mut moved: impl FnMut(u32, u32)) -> Self {
        let mut kept = Self::new(self.lines_per_row * LINE);
        for (row, owner) in self.owners.iter().enumerate() {
            let Some(slot) = (*owner != NO_ROW).then_some(*owner).and_then(&renumber) else {
                continue;
            };
            let fresh = kept.grow();
            let (block, at) = (row / BLOCK_ROWS, row % BLOCK_ROWS * self.lines_per_row);
            if let (Some(from), Some(into)) = (
                self.blocks
                    .get(block)
                    .and_then(|lines| lines.get(at..at + self.lines_per_row)),
                kept.blocks.last_mut(),
            ) {
                let start = into.len() - self.lines_per_row;
                into[start..].copy_from_slice(from);
            }
            kept.owners[fresh as usize] = slot;
            kept.scales[fresh as usize] = self.scales[row];
            moved(slot, fresh);
        }
        kept
    }

    pub(crate) fn resident_bytes(&self) -> usize {
        self.blocks.iter().map(|block| block.capacity() * LINE).sum::<usize>()
            + self.owners.capacity() * 4
            + self.scales.capacity() * 4
            + self.free.capacity() * 4
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_found_by_their_owner_and_forgotten_when_removed() {
        let mut vectors = Vectors::new(384);
        let of = |seed: i32| -> Vec<i8> { (0..384).map(|i| ((i * seed + 7) % 255 - 127) as i8).collect() };
        let rows: Vec<u32> = (0..600)
            .map(|slot| vectors.insert(slot, &of(slot as i32), 0.01))
            .collect();
        vectors.remove(rows[5]);
        let query = vectors.query(&of(9), 0.5);
        let mut seen = Vec::new();
        vectors.scan(&query, |slot| slot % 2 == 1, |slot, cosine| seen.push((slot, cosine)));
        assert_eq!(seen.len(), 299);
        let mut of_rows = Vec::new();
        let odd: Vec<u32> = rows.iter().copied().filter(|row| row % 2 == 1).collect();
        vectors.compare(&query, &odd, |slot, cosine| of_rows.push((slot, cosine)));
        assert_eq!(of_rows, seen, "both ways of comparing agree");
        for (slot, cosine) in seen {
            let exact: i32 = of(slot as i32)
                .iter()
                .zip(of(9))
                .map(|(a, b)| i32::from(*a) * i32::from(b))
                .sum();
            assert_eq!(cosine, exact as f32 * (0.01 * 0.5), "slot {slot}");
        }
        let mut compared = Vec::new();
        vectors.compare(&query, &[rows[3], rows[5], rows[299], rows[301]], |slot, _| {
            compared.push(slot)
        });
        assert_eq!(compared, [3, 299, 301]);
        assert_eq!(vectors.insert(1_000, &of(1), 0.01), rows[5]);
        let kept = vectors.compacted(|slot| slot.checked_sub(300), |_, _| {});
        assert_eq!(kept.len(), 301);
    }
}
