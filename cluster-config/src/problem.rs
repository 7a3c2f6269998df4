//! What is wrong with a configuration, in words that say where it stands and what to do. All problems of a start are
//! listed together; the process then ends with [`EXIT_CODE`].

use std::fmt;
use std::path::PathBuf;

/// EX_CONFIG of sysexits.h: a supervisor need not try again.
pub const EXIT_CODE: u8 = 78;

/// Where a value came from. Later entries win over earlier ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    Default,
    File { path: PathBuf, line: usize },
    Environment { variable: String },
    Flag { name: String },
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File { path, line } => write!(f, "{}:{line}", path.display()),
            Self::Environment { variable } => write!(f, "environment {variable}"),
            Self::Flag { name } => write!(f, "flag {name}"),
        }
    }
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{what}{}", self.place(), self.next())]
pub struct Problem {
    /// Stable name of the kind of problem; docs/configuration.md explains each.
    pub code: &'static str,
    /// Where the bad value stands; None for what is missing everywhere.
    pub origin: Option<Origin>,
    pub what: String,
    /// What to do; empty when `what` says it.
    pub advice: String,
}

impl Problem {
    /// Codes of this family.
    pub const CODES: &'static [&'static str] = &[
        "config_unreadable",
        "config_syntax",
        "config_unknown_key",
        "config_bad_value",
        "config_missing",
        "config_conflict",
    ];

    pub fn new(code: &'static str, what: impl Into<String>) -> Self {
        Self {
            code,
            origin: None,
            what: what.into(),
            advice: String::new(),
        }
    }

    #[must_use]
    pub fn at(mut self, origin: Origin) -> Self {
        self.origin = Some(origin);
        self
    }

    #[must_use]
    pub fn advice(mut self, advice: impl Into<String>) -> Self {
        self.advice = advice.into();
        self
    }

    fn place(&self) -> String {
        self.origin
            .as_ref()
            .map(|origin| format!("{origin}: "))
            .unwrap_or_default()
    }

    fn next(&self) -> String {
        if self.advice.is_empty() {
            String::new()
        } else {
            format!("; {}", self.advice)
        }
    }
}

/// All problems of one start.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.text())]
pub struct Problems(pub Vec<Problem>);

impl Problems {
    fn text(&self) -> String {
        self.0
            .iter()
            .map(|problem| format!("{problem} [{}]", problem.code))
            .collect::<Vec<_>>()
            .join("\n")
    }

    /// The value, or the problems if there are any.
    pub fn or<T>(self, value: Option<T>) -> Result<T, Self> {
        match value {
            Some(value) if self.0.is_empty() => Ok(value),
            _ => Err(self),
        }
    }
}
