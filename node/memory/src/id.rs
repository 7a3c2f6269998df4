//! Identities. Memories, links, turns and evidence are UUIDs that the leader makes before a proposal; tenants and
//! principals are text that comes from the credential.

use std::fmt;
use std::str::FromStr;

use uuid::Uuid;

macro_rules! uuid_id {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Uuid);

        impl $name {
            /// Wraps an identifier that somebody else made; this crate never makes one.
            pub const fn from_uuid(uuid: Uuid) -> Self {
                Self(uuid)
            }

            /// The identifier as a UUID.
            pub const fn uuid(self) -> Uuid {
                self.0
            }

            /// The sixteen bytes of the UUID, big endian: byte order is text order.
            pub const fn bytes(self) -> [u8; 16] {
                self.0.into_bytes()
            }

            /// Reads the sixteen bytes that [`Self::bytes`] gave.
            pub const fn from_bytes(bytes: [u8; 16]) -> Self {
                Self(Uuid::from_bytes(bytes))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.as_hyphenated().fmt(f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self.0.as_hyphenated())
            }
        }

        impl FromStr for $name {
            type Err = uuid::Error;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                Uuid::try_parse(text).map(Self)
            }
        }
    )*};
}

uuid_id! {
    /// A memory: a vertex of a tenant's graph. Never reused, also after erasure (I-21).
    MemoryId,
    /// A directed, typed link between two memories.
    LinkId,
    /// One stored utterance of a session; agents see it as `transcript_id` and, in evidence and hits, as `turn_id`.
    TurnId,
    /// One piece of evidence of a memory.
    EvidenceId,
    /// The call that brought a user message and its answer together.
    PairId,
    /// A message of a transcript inside its session: a hash of what names it (`handoff::identity_of`).
    MessageId,
}

/// Why a text is not a tenant identity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadTenantId(pub String);

impl fmt::Display for BadTenantId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "tenant id '{}' is not valid: use 1 to {} characters of a-z, 0-9, '-', '_' and '.', starting with a letter or digit",
            self.0.escape_debug(),
            TenantId::BYTES_MAX
        )
    }
}

impl std::error::Error for BadTenantId {}

/// An isolated graph and its owner. Always taken from the credential, never from an argument.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TenantId(String);

impl TenantId {
    /// Longest tenant id in bytes; it stands in every key of the store.
    pub const BYTES_MAX: usize = 64;

    /// The identity as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for TenantId {
    type Err = BadTenantId;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let starts_well = text
            .bytes()
            .next()
            .is_some_and(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
        let plain = text
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'-' | b'_' | b'.'));
        if starts_well && plain && text.len() <= Self::BYTES_MAX {
            Ok(Self(text.to_owned()))
        } else {
            Err(BadTenantId(text.chars().take(80).collect()))
        }
    }
}

impl fmt::Display for TenantId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for TenantId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TenantId({})", self.0)
    }
}

/// Who did something, from the credential: `key:<id>`, `user:<issuer>#<subject>`, `site:<id>` or `system`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Principal(pub String);

impl fmt::Display for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A client's name for one mutating call: the same id and the same arguments within 24 h give the first outcome (I-10).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub String);
