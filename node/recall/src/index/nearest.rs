//! Nearest by meaning alone: what duplicate detection asks before a write.

use waggle_memory::tables::Item;

use crate::lexical::bit;

use super::TenantIndex;
use super::filter::Compiled;
use super::query::Filter;
use super::top::Top;

impl TenantIndex {
    /// The items that pass `filter` and whose cosine with a vector of this index's model is highest, best first, at most
    /// `limit`. The vector is unit length: component i is `components[i] * scale`.
    pub fn nearest(&self, components: &[i8], scale: f32, filter: &Filter, limit: usize) -> Vec<(Item, f32)> {
        if components.len() != self.dimensions {
            return Vec::new();
        }
        let compiled = Compiled::new(filter, &self.names);
        let mut passes = Vec::new();
        compiled.mark(self, &mut passes);
        let prepared = self.vectors.query(components, scale);
        let mut top = Top::new(&self.columns, limit);
        self.vectors.scan(
            &prepared,
            |slot| bit(&passes, slot),
            |slot, cosine| top.offer(cosine, slot),
        );
        let found = top.sorted();
        found
            .into_iter()
            .take(limit)
            .filter_map(|(cosine, slot)| Some((*self.columns.item.get(slot as usize)?, cosine)))
            .collect()
    }
}
