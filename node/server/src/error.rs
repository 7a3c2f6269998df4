//! What went wrong, in the four families that tell the caller what to do, as a gRPC status whose details carry the
//! stable code.

use std::time::Duration;

use prost::Message as _;
use tonic::{Code, Status};
use waggle_memory::outcome::Rejection;
use waggle_proto::wire::{BadField, ErrorDetail, error_detail::Family};
use waggle_shard::{ProposeError, Unavailable};

/// An answer that is an error.
#[derive(Clone, Debug)]
pub(crate) struct CallError {
    code: Code,
    detail: Box<ErrorDetail>,
}

impl CallError {
    fn new(code: Code, family: Family, word: &str, message: impl Into<String>) -> Self {
        let detail = ErrorDetail {
            code: word.to_owned(),
            message: message.into(),
            family: family.into(),
            ..ErrorDetail::default()
        };
        Self {
            code,
            detail: Box::new(detail),
        }
    }

    pub(crate) fn invalid(field: &str, why: impl Into<String>) -> Self {
        let mut error = Self::new(
            Code::InvalidArgument,
            Family::Rejected,
            "validation_failed",
            format!("{field}: {}", why.into()),
        );
        error.detail.field = field.to_owned();
        error
    }

    /// Refused for a reason that has a code of its own.
    pub(crate) fn rejected(word: &str, message: impl Into<String>) -> Self {
        Self::new(Code::InvalidArgument, Family::Rejected, word, message)
    }

    pub(crate) fn confirm_required(why: impl Into<String>) -> Self {
        Self::new(Code::FailedPrecondition, Family::Rejected, "confirm_required", why)
    }

    /// Whether somebody else changed the memory between reading it and proposing.
    pub(crate) fn is_version_conflict(&self) -> bool {
        self.detail.code == "version_conflict"
    }

    pub(crate) fn not_found(what: &str, id: &str) -> Self {
        Self::from(Rejection::NotFound {
            what: leaked(what),
            id: id.to_owned(),
        })
    }

    pub(crate) fn message_id_reused(index: usize) -> Self {
        let mut error = Self::new(
            Code::AlreadyExists,
            Family::Rejected,
            "message_id_reused",
            format!(
                "messages[{index}]: its message_id was used in this session with another role or text; nothing was \
                 stored; give every message an id of its own"
            ),
        );
        error.detail.field = format!("messages[{index}].message_id");
        error
    }

    pub(crate) fn wrong_shard(shard: u32, placement_version: u64) -> Self {
        let mut error = Self::new(
            Code::FailedPrecondition,
            Family::NotExecuted,
            "wrong_shard",
            "the tenant belongs to another shard; use the route in this answer",
        );
        error.detail.shard = shard;
        error.detail.placement_version = placement_version;
        error
    }

    /// Another node leads the shard.
    pub(crate) fn not_leader(node: u64) -> Self {
        let mut error = Self::new(
            Code::Unavailable,
            Family::NotExecuted,
            "not_leader",
            "another node leads this shard; nothing was done, ask that one",
        );
        error.detail.leader_node = node;
        error
    }

    pub(crate) fn unavailable(why: impl Into<String>, retry_after: Duration) -> Self {
        let mut error = Self::new(Code::Unavailable, Family::NotExecuted, "service_unavailable", why);
        error.detail.retry_after_ms = millis(retry_after);
        error
    }

    pub(crate) fn storage_full(why: impl Into<String>) -> Self {
        let mut error = Self::new(Code::ResourceExhausted, Family::NotExecuted, "storage_full", why);
        error.detail.retry_after_ms = 30_000;
        error
    }

    /// A fault of this node: the caller learns that it is one, the log has the rest.
    pub(crate) fn halted(context: &str, fault: &dyn std::fmt::Display) -> Self {
        tracing::error!(%fault, "{context}");
        Self::new(
            Code::Internal,
            Family::Halted,
            "internal_error",
            "this node cannot read its data; an operator is needed",
        )
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

fn leaked(what: &str) -> &'static str {
    match what {
        "edge" => "edge",
        "key" => "key",
        "tenant" => "tenant",
        _ => "memory",
    }
}

impl From<CallError> for Status {
    fn from(error: CallError) -> Self {
        let details = error.detail.encode_to_vec();
        Self::with_details(error.code, error.detail.message, details.into())
    }
}

impl From<BadField> for CallError {
    fn from(bad: BadField) -> Self {
        Self::invalid(bad.field, bad.why)
    }
}

impl From<Rejection> for CallError {
    fn from(rejection: Rejection) -> Self {
        let code = match &rejection {
            Rejection::NotFound { .. } => Code::NotFound,
            Rejection::VersionConflict { .. } | Rejection::NotResolvable { .. } => Code::Aborted,
            Rejection::AlreadyExists { .. } => Code::AlreadyExists,
            Rejection::Invalid { .. } | Rejection::LimitExceeded { .. } | Rejection::RequestIdReused => {
                Code::InvalidArgument
            }
        };
        let mut error = Self::new(code, Family::Rejected, rejection.code(), rejection.to_string());
        match rejection {
            Rejection::VersionConflict { current } => error.detail.current_version = current,
            Rejection::Invalid { field, .. } => error.detail.field = field.to_owned(),
            _ => {}
        }
        error
    }
}

impl From<Unavailable> for CallError {
    fn from(unavailable: Unavailable) -> Self {
        let retry_after = match &unavailable {
            Unavailable::NotLeader { hint } => return Self::not_leader(hint.node),
            // Whoever leads next is in office within moments, here or elsewhere.
            Unavailable::ShuttingDown => return Self::not_leader(0),
            Unavailable::Overloaded { retry_after } => (*retry_after).min(Duration::from_secs(5)),
            Unavailable::NoQuorum => Duration::from_millis(50),
            _ => Duration::from_millis(500),
        };
        Self::unavailable(format!("{unavailable}; nothing was done, try again"), retry_after)
    }
}

impl From<ProposeError> for CallError {
    fn from(error: ProposeError) -> Self {
        match error {
            ProposeError::Unavailable(unavailable) => unavailable.into(),
            other => {
                let why = format!("{other}; the write may have happened: repeat it with the same request id");
                let mut error = Self::new(Code::Unavailable, Family::Unknown, "service_unavailable", why);
                error.detail.retry_after_ms = 1_000;
                error
            }
        }
    }
}
