//! The one shape of all conversions.

use super::malformed::{Malformed, bounded};

/// A domain type with a persisted form.
pub(super) trait Persisted: Sized {
    /// Its generated type.
    type Message;

    fn to_message(&self) -> Self::Message;

    fn from_message(message: Self::Message) -> Result<Self, Malformed>;
}

pub(super) fn to_messages<T: Persisted>(all: &[T]) -> Vec<T::Message> {
    all.iter().map(T::to_message).collect()
}

pub(super) fn from_messages<T: Persisted>(field: &'static str, all: Vec<T::Message>) -> Result<Vec<T>, Malformed> {
    bounded(field, all.len())?;
    all.into_iter().map(T::from_message).collect()
}

/// A part that must be there.
pub(super) fn needed<T: Persisted>(field: &'static str, part: Option<T::Message>) -> Result<T, Malformed> {
    T::from_message(part.ok_or(Malformed::Missing(field))?)
}

/// A part that may be absent.
pub(super) fn optional<T: Persisted>(part: Option<T::Message>) -> Result<Option<T>, Malformed> {
    part.map(T::from_message).transpose()
}
