//! Rows in a sorted map: the reference against which stores are tested, and the ground of the domain's own tests.

use std::collections::BTreeMap;

use super::{Key, ReadTables, Row, Tables};

/// All rows of one shard.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Model {
    rows: BTreeMap<Key, Row>,
}

impl Model {
    /// Every row in key order.
    pub fn rows(&self) -> impl Iterator<Item = (&Key, &Row)> {
        self.rows.iter()
    }
}

impl ReadTables for Model {
    fn get(&self, key: &Key) -> Option<Row> {
        self.rows.get(key).cloned()
    }

    fn scan(&self, from: &Key, to: &Key, limit: usize) -> Vec<(Key, Row)> {
        if from > to {
            return Vec::new();
        }
        self.rows
            .range(from.clone()..=to.clone())
            .take(limit)
            .map(|(k, r)| (k.clone(), r.clone()))
            .collect()
    }

    fn scan_back(&self, from: &Key, to: &Key, limit: usize) -> Vec<(Key, Row)> {
        if from > to {
            return Vec::new();
        }
        self.rows
            .range(from.clone()..=to.clone())
            .rev()
            .take(limit)
            .map(|(k, r)| (k.clone(), r.clone()))
            .collect()
    }
}

impl Tables for Model {
    fn put(&mut self, key: Key, row: Row) {
        self.rows.insert(key, row);
    }

    fn delete(&mut self, key: Key) {
        self.rows.remove(&key);
    }
}
