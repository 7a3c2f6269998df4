//! Only with the cargo feature `planted-bugs`, which no release build takes: known bugs, put back to see that tests find
//! them. `WAGGLE_PLANTED_BUG` names the one that is on: `apply-twice`, `skip-applied-id`, `ignore-dedupe`, or, in
//! waggle-store, `ack-before-sync`.

use std::sync::OnceLock;

use waggle_memory::command::Entry;

use crate::codec::Position;

#[cfg(not(debug_assertions))]
compile_error!("planted bugs are for tests: build them without --release");

const VARIABLE: &str = "WAGGLE_PLANTED_BUG";
/// One entry of so many is hurt: a bug that hits everything at once would be found by anything.
const HURT: u64 = 20;

/// Whether this bug is on.
pub fn is_on(bug: &str) -> bool {
    static ON: OnceLock<String> = OnceLock::new();
    ON.get_or_init(|| std::env::var(VARIABLE).unwrap_or_default()) == bug
}

/// Whether entry `index` is applied a second time, as if it were another one.
pub(crate) fn applies_twice(index: u64) -> bool {
    is_on("apply-twice") && index.is_multiple_of(HURT)
}

/// The entry as it is applied.
pub(crate) fn bent(mut entry: Entry) -> Entry {
    if is_on("ignore-dedupe") {
        entry.request = None;
    }
    entry
}

/// What a replica believes to have applied when it starts.
pub(crate) fn position(mut position: Position) -> Position {
    if is_on("skip-applied-id")
        && let Some(applied) = &mut position.applied
    {
        applied.index = applied.index.saturating_sub(1);
    }
    position
}
