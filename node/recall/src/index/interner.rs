//! Names that repeat, as small numbers.

use std::collections::HashMap;
use std::sync::Arc;

/// Numbers for names. 0 is the empty name.
pub(super) struct Interner {
    numbers: HashMap<Arc<str>, u32>,
    names: Vec<Arc<str>>,
    bytes: usize,
}

impl Interner {
    pub(super) fn new() -> Self {
        let mut interner = Self {
            numbers: HashMap::new(),
            names: Vec::new(),
            bytes: 0,
        };
        interner.number("");
        interner
    }

    /// The number of a name, given now if need be.
    pub(super) fn number(&mut self, name: &str) -> u32 {
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        let number = self.names.len() as u32;
        let name: Arc<str> = name.into();
        self.bytes += name.len() + 16;
        self.names.push(name.clone());
        self.numbers.insert(name, number);
        number
    }

    /// The number of a name that has one.
    pub(super) fn find(&self, name: &str) -> Option<u32> {
        self.numbers.get(name).copied()
    }

    pub(super) fn name(&self, number: u32) -> &str {
        self.names.get(number as usize).map_or("", |name| name)
    }

    /// For each number, whether its name passes.
    pub(super) fn table(&self, passes: impl Fn(&str) -> bool) -> Vec<bool> {
        self.names.iter().map(|name| passes(name)).collect()
    }

    pub(super) fn resident_bytes(&self) -> usize {
        self.bytes + self.names.capacity() * 16 + self.numbers.capacity() * 8 / 7 * 25
    }
}
