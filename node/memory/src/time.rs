//! Points in time as data. This crate never reads a clock: the leader's stamp and the caller's times come in as values.

use std::fmt;

/// Milliseconds since 1970-01-01T00:00:00Z, without leap seconds. May be negative.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Millis(pub i64);

impl Millis {
    /// One second.
    pub const SECOND: i64 = 1_000;
    /// One day.
    pub const DAY: i64 = 86_400_000;

    /// This instant moved by `millis`; saturates at the ends.
    pub const fn plus(self, millis: i64) -> Self {
        Self(self.0.saturating_add(millis))
    }
}

impl fmt::Display for Millis {
    /// RFC 3339 in UTC with milliseconds, as every answer shows it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_millisecond(self.0) {
            Ok(at) => write!(f, "{at:.3}"),
            Err(_) => write!(f, "{}ms", self.0),
        }
    }
}

/// The leader's hybrid-clock time inside an entry. Applied stamps increase strictly per shard (I-08), so a stamp also
/// orders changes: `wall` is milliseconds since the epoch, `logical` counts entries inside one millisecond.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Stamp {
    /// Milliseconds since the epoch.
    pub wall: Millis,
    /// Counts stamps with the same `wall`.
    pub logical: u32,
}

impl Stamp {
    /// The smallest stamp after this one.
    pub const fn next(self) -> Self {
        match self.logical.checked_add(1) {
            Some(logical) => Self {
                wall: self.wall,
                logical,
            },
            None => Self {
                wall: self.wall.plus(1),
                logical: 0,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_shown_as_rfc_3339_with_milliseconds() {
        assert_eq!(Millis(0).to_string(), "1970-01-01T00:00:00.000Z");
        assert_eq!(Millis(1_700_000_000_123).to_string(), "2023-11-14T22:13:20.123Z");
    }
}
