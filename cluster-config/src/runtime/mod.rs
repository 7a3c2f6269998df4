//! What crates above need to run: a closed list of three, not a place for odds and ends.

pub mod clock;
pub mod gate;
pub mod tasks;
