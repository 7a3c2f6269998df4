//! Why bytes are not what they should be, and the few checks that every message shares.

use waggle_memory::id::TenantId;

use super::limits;

/// Bytes that are no entry or row of a format that this release reads.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// Not protocol buffers, or not of this schema.
    #[error("the bytes are not a message: {0}")]
    NotAMessage(String),
    /// More bytes than any release writes.
    #[error("the message has {bytes} bytes, at most {bytes_max} are read")]
    TooLarge {
        /// Found.
        bytes: usize,
        /// Allowed.
        bytes_max: usize,
    },
    /// Written in a later format.
    #[error("the message has format {0}, a later release wrote it; start that release")]
    UnknownFormat(u32),
    /// A part is absent, or is of a sort that a later release added.
    #[error("{0} is absent or of a sort that this release does not know")]
    Missing(&'static str),
    /// A number without a meaning.
    #[error("{field} has the unknown number {number}")]
    UnknownNumber {
        /// Of what.
        field: &'static str,
        /// Found.
        number: i64,
    },
    /// An identity of the wrong form.
    #[error("{0} is not an identity")]
    BadId(&'static str),
    /// A list longer than any release writes.
    #[error("{field} has {count} items, at most {count_max} are read")]
    TooMany {
        /// Of what.
        field: &'static str,
        /// Found.
        count: usize,
        /// Allowed.
        count_max: usize,
    },
    /// A row of another kind than its key says.
    #[error("the row is a {found}, its key says {expected}")]
    WrongRow {
        /// What the key says.
        expected: &'static str,
        /// What was found.
        found: &'static str,
    },
}

pub(super) fn need<T>(field: &'static str, part: Option<T>) -> Result<T, Malformed> {
    part.ok_or(Malformed::Missing(field))
}

pub(super) fn id<T>(field: &'static str, bytes: &[u8], make: fn([u8; 16]) -> T) -> Result<T, Malformed> {
    bytes.try_into().map(make).map_err(|_| Malformed::BadId(field))
}

pub(super) fn ids<T>(field: &'static str, all: &[Vec<u8>], make: fn([u8; 16]) -> T) -> Result<Vec<T>, Malformed> {
    bounded(field, all.len())?;
    all.iter().map(|bytes| id(field, bytes, make)).collect()
}

pub(super) fn tenant(field: &'static str, text: &str) -> Result<TenantId, Malformed> {
    text.parse().map_err(|_| Malformed::BadId(field))
}

/// A value of a closed vocabulary.
pub(super) fn word<T>(field: &'static str, number: i32, read: fn(u8) -> Option<T>) -> Result<T, Malformed> {
    let known = u8::try_from(number).ok().and_then(read);
    known.ok_or(Malformed::UnknownNumber {
        field,
        number: i64::from(number),
    })
}

pub(super) fn texts(field: &'static str, all: Vec<String>) -> Result<Vec<String>, Malformed> {
    bounded(field, all.len())?;
    Ok(all)
}

pub(super) fn bounded(field: &'static str, count: usize) -> Result<(), Malformed> {
    if count > limits::ITEMS_MAX {
        return Err(Malformed::TooMany {
            field,
            count,
            count_max: limits::ITEMS_MAX,
        });
    }
    Ok(())
}

pub(super) fn bounded_bytes(bytes: usize, bytes_max: usize) -> Result<(), Malformed> {
    if bytes > bytes_max {
        Err(Malformed::TooLarge { bytes, bytes_max })
    } else {
        Ok(())
    }
}
