//! The best of many, without sorting all of them.

use super::columns::Columns;

/// Keeps the `most` best; equal scores are ordered as in the answer, so the cut does not depend on the order of slots.
pub(super) struct Top<'a> {
    columns: &'a Columns,
    most: usize,
    /// Up to twice as many as wanted: then the worse half goes.
    kept: Vec<(f32, u32)>,
    /// What is below has lost already.
    bar: f32,
}

impl<'a> Top<'a> {
    pub(super) fn new(columns: &'a Columns, most: usize) -> Self {
        let most = most.max(1);
        Self {
            columns,
            most,
            kept: Vec::with_capacity(most * 2),
            bar: f32::NEG_INFINITY,
        }
    }

    pub(super) fn offer(&mut self, score: f32, slot: u32) {
        if score < self.bar {
            return;
        }
        self.kept.push((score, slot));
        if self.kept.len() >= self.most * 2 {
            self.cut();
        }
    }

    fn cut(&mut self) {
        let columns = self.columns;
        if self.kept.len() > self.most {
            self.kept
                .select_nth_unstable_by(self.most - 1, |a, b| order(columns, a, b));
            self.kept.truncate(self.most);
            self.bar = self.kept.last().map_or(self.bar, |(score, _)| *score);
        }
    }

    /// The best `first` before the others, but in no order among themselves: sorting all would cost more than finding
    /// them.
    pub(super) fn finish(mut self, first: usize) -> Vec<(f32, u32)> {
        self.cut();
        let columns = self.columns;
        if first > 0 && self.kept.len() > first {
            self.kept.select_nth_unstable_by(first - 1, |a, b| order(columns, a, b));
        }
        self.kept
    }

    /// Best first.
    pub(super) fn sorted(self) -> Vec<(f32, u32)> {
        let columns = self.columns;
        let mut kept = self.finish(0);
        sort(columns, &mut kept);
        kept
    }
}

/// Best first.
pub(super) fn sort(columns: &Columns, found: &mut [(f32, u32)]) {
    found.sort_unstable_by(|a, b| order(columns, a, b));
}

fn order(columns: &Columns, a: &(f32, u32), b: &(f32, u32)) -> std::cmp::Ordering {
    b.0.total_cmp(&a.0).then_with(|| columns.tie(a.1, b.1))
}
