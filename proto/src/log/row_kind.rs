//! Names of the kinds of rows, without their contents.

use waggle_memory::tables::Row;

macro_rules! row_kinds {
    ($($name:ident $word:literal;)*) => {
        /// What a row holds. The store knows it from the key, before it reads the row.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum RowKind { $(#[doc = $word] $name),* }

        impl RowKind {
            /// Every kind.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// The word of messages.
            pub const fn word(self) -> &'static str {
                match self { $(Self::$name => $word),* }
            }
        }
    };
}

row_kinds! {
    Stamp "stamp";
    Placement "placement";
    TenantInfo "tenant";
    ApiKey "api key";
    JoinToken "join token";
    State "tenant state";
    Memory "memory";
    Version "version";
    Evidence "evidence";
    Link "link";
    LinkId "link id";
    Turn "turn";
    TurnId "turn id";
    Session "session";
    Project "project";
    Agent "agent";
    Vector "vector";
    Tombstone "tombstone";
    Request "request";
    Message "message";
    Change "change";
    Redirect "redirect";
    Mark "mark";
}

impl RowKind {
    /// The kind of a row.
    pub const fn of(row: &Row) -> Self {
        match row {
            Row::Stamp(_) => Self::Stamp,
            Row::Placement(_) => Self::Placement,
            Row::TenantInfo(_) => Self::TenantInfo,
            Row::ApiKey(_) => Self::ApiKey,
            Row::JoinToken(_) => Self::JoinToken,
            Row::State(_) => Self::State,
            Row::Memory(_) => Self::Memory,
            Row::Version(_) => Self::Version,
            Row::Evidence(_) => Self::Evidence,
            Row::Link(_) => Self::Link,
            Row::LinkId(_) => Self::LinkId,
            Row::Turn(_) => Self::Turn,
            Row::TurnId(_) => Self::TurnId,
            Row::Session(_) => Self::Session,
            Row::Project(_) => Self::Project,
            Row::Agent(_) => Self::Agent,
            Row::Vector(_) => Self::Vector,
            Row::Tombstone(_) => Self::Tombstone,
            Row::Request(_) => Self::Request,
            Row::Message(_) => Self::Message,
            Row::Change(_) => Self::Change,
            Row::Redirect(_) => Self::Redirect,
            Row::Mark => Self::Mark,
        }
    }
}
