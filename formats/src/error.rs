//! Why a file cannot be read or written. No message holds content of the file: it may be a secret.

use waggle_memory::id::{LinkId, MemoryId};

/// Where in a file, for a person who looks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Member of the file, such as `nodes` or `edges.jsonl`.
    pub member: String,
    /// Record in the member, counted from 0.
    pub index: Option<u64>,
    /// Bytes before it, in the file or (in a container) in the member.
    pub position: u64,
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.member)?;
        if let Some(index) = self.index {
            write!(f, "[{index}]")?;
        }
        write!(f, " at byte {}", self.position)
    }
}

/// A link of which an end is not in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dangling {
    /// The link.
    pub link: LinkId,
    /// The end that is not there.
    pub end: MemoryId,
}

/// Why a file is refused.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The source failed.
    #[error("the file cannot be read: {0}")]
    Io(#[from] std::io::Error),
    /// Another sort of file.
    #[error("this is no {expected}: {why}")]
    WrongFormat {
        /// What would have been read.
        expected: &'static str,
        /// What is different.
        why: String,
    },
    /// A version that is not known here.
    #[error(
        "the file has version {found}, and this release reads {readable}; export it again, or import it with a newer release"
    )]
    WrongVersion {
        /// Of the file.
        found: String,
        /// What can be read.
        readable: &'static str,
    },
    /// Not what the format says.
    #[error("{place}: {why}")]
    Malformed {
        /// Where.
        place: Place,
        /// What is wrong; names the field.
        why: String,
    },
    /// Above a bound.
    #[error("{place}: more than {limit} {what}; split the export by project")]
    TooLarge {
        /// Where.
        place: Place,
        /// Unit, such as "bytes in one record".
        what: &'static str,
        /// The bound.
        limit: u64,
    },
    /// The bytes are not those that were exported.
    #[error(
        "{what} does not fit its hash: the file was changed or cut after it was exported; get it again from its source"
    )]
    Hash {
        /// The member, or the whole file.
        what: String,
    },
    /// Links without an end.
    #[error("{} links have an end that is not in the file, the first {}; import with allow_dangling to leave them out", .0.len(), first(.0))]
    Dangling(Vec<Dangling>),
    /// The signature is missing or wrong, and one was asked for.
    #[error("{0}")]
    Signature(&'static str),
    /// Encrypted, and the passphrase is missing or wrong.
    #[error("{0}")]
    Passphrase(&'static str),
}

fn first(dangling: &[Dangling]) -> String {
    dangling.first().map_or_else(String::new, |d| d.link.to_string())
}

impl ReadError {
    /// The stable code of answers.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Io(_) => "service_unavailable",
            Self::WrongVersion { .. } => "schema_version_incompatible",
            Self::WrongFormat { .. } | Self::Malformed { .. } | Self::Passphrase(_) => "validation_failed",
            Self::TooLarge { .. } => "payload_too_large",
            Self::Hash { .. } | Self::Signature(_) => "hash_verification_failed",
            Self::Dangling(_) => "dangling_edge",
        }
    }
}

/// Why a file cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The target failed.
    #[error("the file cannot be written: {0}")]
    Io(#[from] std::io::Error),
    /// A record that the format would not read back.
    #[error("{record}: {why}")]
    Invalid {
        /// Sort and id.
        record: String,
        /// What is wrong; names the field.
        why: String,
    },
    /// Records must come by sort and id.
    #[error("{record} comes after a record that belongs behind it")]
    OutOfOrder {
        /// Sort and id.
        record: String,
    },
    /// A link whose end was not written.
    #[error("link {} has no end {}", .0.link, .0.end)]
    Dangling(Dangling),
    /// Above a bound.
    #[error("more than {limit} {what}; export by project")]
    TooLarge {
        /// Unit.
        what: &'static str,
        /// The bound.
        limit: u64,
    },
    /// The header does not describe an export.
    #[error("the header of the export: {0}")]
    Header(String),
}

impl From<serde_json::Error> for WriteError {
    /// Shapes always serialize: what fails is the target.
    fn from(error: serde_json::Error) -> Self {
        Self::Io(error.into())
    }
}
