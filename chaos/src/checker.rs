//! Judges of histories. None of them talks to anything; simulation and tests of other crates use them, too.
//!
//! A judge gives one of three verdicts. Unknown is not a pass: it says that the judge could not see enough.

pub mod domain;
pub mod linear;
pub mod lists;
pub mod register;

use std::fmt;

use serde::Serialize;

/// Violations listed in a verdict; the count goes on.
const LISTED_MAX: usize = 50;

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "verdict", rename_all = "snake_case")]
pub enum Verdict {
    Pass,
    /// What was broken, in words. Never empty.
    Fail {
        violations: Vec<String>,
    },
    /// Why nobody can say.
    Unknown {
        why: String,
    },
}

impl Verdict {
    /// Pass, unless there are violations.
    pub fn of(mut violations: Vec<String>) -> Self {
        if violations.is_empty() {
            return Self::Pass;
        }
        let more = violations.len().saturating_sub(LISTED_MAX);
        violations.truncate(LISTED_MAX);
        if more > 0 {
            violations.push(format!("and {more} more"));
        }
        Self::Fail { violations }
    }

    pub fn fail(violation: impl Into<String>) -> Self {
        Self::of(vec![violation.into()])
    }

    pub fn unknown(why: impl Into<String>) -> Self {
        Self::Unknown { why: why.into() }
    }

    /// Of the whole: one violation is a failure whatever else is unknown, and what is unknown is no pass.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Fail { violations: mut one }, Self::Fail { violations: other }) => {
                one.extend(other);
                Self::of(one)
            }
            (fail @ Self::Fail { .. }, _) | (_, fail @ Self::Fail { .. }) => fail,
            (Self::Unknown { why: one }, Self::Unknown { why: other }) if one != other => {
                Self::unknown(format!("{one}; {other}"))
            }
            (unknown @ Self::Unknown { .. }, _) | (_, unknown @ Self::Unknown { .. }) => unknown,
            (Self::Pass, Self::Pass) => Self::Pass,
        }
    }

    pub fn word(&self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail { .. } => "fail",
            Self::Unknown { .. } => "unknown",
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pass => f.write_str("pass"),
            Self::Fail { violations } => write!(f, "fail: {}", violations.join("; ")),
            Self::Unknown { why } => write!(f, "unknown: {why}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_violation_outweighs_what_is_unknown_and_unknown_outweighs_pass() {
        let (pass, fail, unknown) = (Verdict::Pass, Verdict::fail("lost"), Verdict::unknown("too long"));
        assert_eq!(pass.clone().and(pass.clone()).word(), "pass");
        assert_eq!(pass.clone().and(unknown.clone()).word(), "unknown");
        assert_eq!(unknown.clone().and(fail.clone()).word(), "fail");
        assert_eq!(fail.clone().and(pass).word(), "fail");
        let both = fail.clone().and(Verdict::fail("twice"));
        assert_eq!(both.to_string(), "fail: lost; twice");
    }

    #[test]
    fn a_long_list_is_cut_and_counted() {
        let verdict = Verdict::of((0..LISTED_MAX + 3).map(|number| number.to_string()).collect());
        let Verdict::Fail { violations } = verdict else {
            panic!("{verdict}")
        };
        assert_eq!(violations.last().map(String::as_str), Some("and 3 more"));
    }
}
