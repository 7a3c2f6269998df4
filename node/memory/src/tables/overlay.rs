//! Tables over other tables: writes stay in memory and are thrown away, so that a command can be tried out.

use std::collections::BTreeMap;

use super::{Key, ReadTables, Row, Tables};

/// Writes over rows that stay as they are.
pub struct Overlay<'a> {
    below: &'a dyn ReadTables,
    written: BTreeMap<Key, Option<Row>>,
}

impl<'a> Overlay<'a> {
    /// Nothing written yet.
    pub const fn new(below: &'a dyn ReadTables) -> Self {
        Self {
            below,
            written: BTreeMap::new(),
        }
    }

    /// Keeps what was written over other rows: the same tables at a later look.
    pub fn onto(self, below: &dyn ReadTables) -> Overlay<'_> {
        Overlay {
            below,
            written: self.written,
        }
    }

    /// Rows from `from` to `to`, as many from below as can be hidden by what was written.
    fn merged(&self, from: &Key, to: &Key, rows: Vec<(Key, Row)>) -> BTreeMap<Key, Row> {
        let mut merged: BTreeMap<Key, Row> = rows.into_iter().collect();
        for (key, row) in self.written.range(from.clone()..=to.clone()) {
            match row {
                Some(row) => merged.insert(key.clone(), row.clone()),
                None => merged.remove(key),
            };
        }
        merged
    }

    fn removed(&self, from: &Key, to: &Key) -> usize {
        let range = self.written.range(from.clone()..=to.clone());
        range.filter(|(_, row)| row.is_none()).count()
    }
}

impl ReadTables for Overlay<'_> {
    fn get(&self, key: &Key) -> Option<Row> {
        match self.written.get(key) {
            Some(row) => row.clone(),
            None => self.below.get(key),
        }
    }

    fn scan(&self, from: &Key, to: &Key, limit: usize) -> Vec<(Key, Row)> {
        if from > to {
            return Vec::new();
        }
        let wanted = limit.saturating_add(self.removed(from, to));
        let rows = self.below.scan(from, to, wanted);
        self.merged(from, to, rows).into_iter().take(limit).collect()
    }

    fn scan_back(&self, from: &Key, to: &Key, limit: usize) -> Vec<(Key, Row)> {
        if from > to {
            return Vec::new();
        }
        let wanted = limit.saturating_add(self.removed(from, to));
        let rows = self.below.scan_back(from, to, wanted);
        self.merged(from, to, rows).into_iter().rev().take(limit).collect()
    }
}

impl Tables for Overlay<'_> {
    fn put(&mut self, key: Key, row: Row) {
        self.written.insert(key, Some(row));
    }

    fn delete(&mut self, key: Key) {
        self.written.insert(key, None);
    }
}
