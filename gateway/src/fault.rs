//! Why a call failed, as its caller is told: one shape for tools, REST and transport.

use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::error_codes;

/// A failure that the caller hears about. The text says what failed and what to do next, and is enough on its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) code: &'static str,
    pub(crate) status: u16,
    pub(crate) what: String,
    pub(crate) field: Option<String>,
    pub(crate) retry_after: Option<Duration>,
    pub(crate) current_version: Option<u32>,
}

impl Fault {
    /// `code` must stand in the table; another one becomes `internal_error`, so that no unknown code leaks.
    pub(crate) fn new(code: &str, what: impl Into<String>) -> Self {
        let (code, status) = error_codes::find(code).unwrap_or(("internal_error", 500));
        Self {
            code,
            status,
            what: what.into(),
            field: None,
            retry_after: None,
            current_version: None,
        }
    }

    pub(crate) fn validation(field: &str, what: impl Into<String>) -> Self {
        Self::new("validation_failed", what).with_field(field)
    }

    pub(crate) fn unavailable(what: impl Into<String>, retry_after: Duration) -> Self {
        Self::new("service_unavailable", what).with_retry_after(retry_after)
    }

    /// Something that must not happen; the details are for the log of whoever makes it.
    pub(crate) fn internal() -> Self {
        Self::new(
            "internal_error",
            "the gateway could not answer; report it with the request id",
        )
    }

    pub(crate) fn with_field(mut self, field: &str) -> Self {
        self.field = (!field.is_empty()).then(|| field.to_owned());
        self
    }

    pub(crate) fn with_retry_after(mut self, retry_after: Duration) -> Self {
        self.retry_after = Some(retry_after);
        self
    }

    pub(crate) fn with_current_version(mut self, version: u32) -> Self {
        self.current_version = Some(version);
        self
    }

    /// `code: what failed; what to do next`.
    pub(crate) fn text(&self) -> String {
        match self.retry_seconds() {
            Some(seconds) => format!("{}: {} (retry after {seconds} s)", self.code, self.what),
            None => format!("{}: {}", self.code, self.what),
        }
    }

    /// Whole seconds, rounded up, at least one.
    pub(crate) fn retry_seconds(&self) -> Option<u64> {
        self.retry_after
            .map(|after| after.as_millis().div_ceil(1000).max(1).try_into().unwrap_or(u64::MAX))
    }

    /// The structured form.
    pub(crate) fn fields(&self, request_id: &str) -> Map<String, Value> {
        let mut fields = Map::new();
        fields.insert("error".into(), json!(self.text()));
        fields.insert("error_code".into(), json!(self.code));
        fields.insert("error_type".into(), json!(error_codes::kind_of(self.status)));
        fields.insert("status_code".into(), json!(self.status));
        if let Some(field) = &self.field {
            fields.insert("field".into(), json!(field));
        }
        if let Some(seconds) = self.retry_seconds() {
            fields.insert("retry_after_s".into(), json!(seconds));
        }
        if let Some(version) = self.current_version {
            fields.insert("current_version".into(), json!(version));
        }
        fields.insert("request_id".into(), json!(request_id));
        fields
    }
}
