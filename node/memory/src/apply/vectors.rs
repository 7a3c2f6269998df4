//! Vectors that follow their text. Repeating it is harmless; an item that changed, was erased or has its vector is
//! passed over.

use super::transaction::Transaction;
use crate::command::{AttachVectors, LateVector};
use crate::outcome::Outcome;
use crate::tables::Item;

pub(super) fn apply_attach(tx: &mut Transaction<'_>, command: &AttachVectors) -> Outcome {
    for late in command.items.iter().take(AttachVectors::ITEMS_MAX) {
        if is_still_meant(tx, late) && tx.stop_waiting(late.item) {
            match &late.vector {
                Some(vector) => tx.put_vector(late.item, vector.clone()),
                None => tx.changed(late.item),
            }
        }
    }
    Outcome::Done
}

fn is_still_meant(tx: &Transaction<'_>, late: &LateVector) -> bool {
    match late.item {
        Item::Memory(id) => tx
            .rows()
            .memory(id)
            .is_some_and(|memory| memory.text_version == late.text_version),
        Item::Turn(id) => tx.rows().turn(id).is_some(),
    }
}
