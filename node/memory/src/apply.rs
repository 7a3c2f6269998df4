//! What commands do. Pure and total: a rejected command is a successful apply, and no decodable command panics (I-07).

use crate::command::Entry;
use crate::outcome::{Applied, Effects, Outcome};
use crate::tables::Tables;

/// Applies one entry to the tables of its shard.
pub fn apply(_tables: &mut dyn Tables, _entry: &Entry) -> Applied {
    Applied { outcome: Outcome::Done, effects: Effects::default() }
}
