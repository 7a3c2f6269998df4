//! What decoders accept. Far above what the domain writes, and of their own: when a limit of the domain changes, what
//! was written before must still be read. They may grow, never shrink.

/// Longest encoded entry. Whoever proposes checks it first: an entry that is committed must decode everywhere.
pub const ENTRY_BYTES_MAX: usize = 16 << 20;

/// Longest encoded row.
pub const ROW_BYTES_MAX: usize = 16 << 20;

/// Most items of any list.
pub const ITEMS_MAX: usize = 16_384;
