//! How a hand-off fails: `{code, message, details}` on stderr, and an exit code that says whose turn it is.

use std::process::ExitCode;

use serde_json::{Map, Value, json};
use waggle_gateway::handoff::Problem;

use crate::failure::{self, Failure};

/// The caller changes the input or the arguments.
const INPUT: u8 = 1;
/// The cluster, the key or the export: the same input may be sent again.
const CLUSTER: u8 = 2;
/// A fault of ours.
const INTERNAL: u8 = 3;

/// A failure in the form that scripts read.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Failed {
    exit: u8,
    code: &'static str,
    message: String,
    details: Map<String, Value>,
}

impl Failed {
    fn new(exit: u8, code: &'static str, message: impl Into<String>) -> Self {
        Self {
            exit,
            code,
            message: message.into(),
            details: Map::new(),
        }
    }

    pub(super) fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.details.insert(name.to_owned(), value.into());
        self
    }

    pub(super) fn arguments(error: &clap::Error) -> Self {
        let text = error.render().to_string();
        let line = text.lines().next().unwrap_or_default();
        let message = line.strip_prefix("error: ").unwrap_or(line);
        Self::new(INPUT, "invalid_arguments", format!("{message}; --help lists all flags"))
    }

    pub(super) fn malformed(line: usize, column: usize, why: &str) -> Self {
        let message = format!("the input is not JSON: {why} (line {line}, column {column})");
        Self::new(INPUT, "malformed_json", message)
            .with("line", line)
            .with("column", column)
    }

    pub(super) fn problem(problem: &Problem) -> Self {
        let failed = Self::new(INPUT, "validation_error", problem.to_string()).with("field", problem.field.clone());
        match problem.index {
            Some(index) => failed.with("index", index),
            None => failed,
        }
    }

    pub(super) fn reused(index: usize) -> Self {
        let message = format!(
            "messages[{index}] has the message_id of an earlier message with another role or text; nothing was stored; \
             give every message an id of its own"
        );
        Self::new(INPUT, "message_id_reused", message).with("index", index)
    }

    pub(super) fn too_large(bytes_max: u64) -> Self {
        let message = format!(
            "the input is longer than {bytes_max} bytes; nothing was stored; raise --max-input-bytes or hand it off in parts"
        );
        Self::new(INPUT, "payload_too_large", message).with("max_input_bytes", bytes_max)
    }

    pub(super) fn not_found(path: &str, why: &str) -> Self {
        Self::new(INPUT, "input_not_found", format!("cannot read {path}: {why}")).with("path", path)
    }

    pub(super) fn read_timeout(seconds: u64) -> Self {
        let message = format!("nothing came from the standard input within {seconds} s; nothing was stored");
        Self::new(INPUT, "read_timeout", message).with("read_timeout_seconds", seconds)
    }

    pub(super) fn internal(message: impl Into<String>) -> Self {
        Self::new(INTERNAL, "internal_error", message)
    }

    pub(super) fn export(why: String, report: &Value) -> Self {
        let message =
            format!("the transcript is stored, its export failed: {why}; run the same command again to export");
        Self::new(CLUSTER, "export_failed", message)
            .with("transcript_committed", true)
            .with("report", report.clone())
    }

    /// No cluster or no key is known on this machine.
    pub(super) fn no_client(error: &anyhow::Error) -> Self {
        let failure = Failure::from_error(error);
        let keyless = failure.exit == failure::CONFIGURATION || failure.what.contains("API key");
        let code = if keyless {
            "authentication_failed"
        } else {
            "backend_unavailable"
        };
        Self::of(code, &failure)
    }

    /// The cluster could not be reached.
    pub(super) fn unreachable(failure: &Failure) -> Self {
        Self::of("backend_unavailable", failure)
    }

    fn of(code: &'static str, failure: &Failure) -> Self {
        let next = failure
            .next
            .as_deref()
            .map(|next| format!("; {next}"))
            .unwrap_or_default();
        Self::new(CLUSTER, code, format!("{}{next}", failure.what))
    }

    /// The cluster said no.
    pub(super) fn refused(status: u16, body: &Value) -> Self {
        let text = |name: &str| body.get(name).and_then(Value::as_str);
        let said = text("error")
            .unwrap_or("the cluster refused the hand-off without a reason")
            .to_owned();
        let word = text("error_code").unwrap_or_default();
        let (exit, code) = match (status, word) {
            (401, _) => (CLUSTER, "authentication_failed"),
            (403, _) => (CLUSTER, "authorization_failed"),
            (409, "message_id_reused") => (INPUT, "message_id_reused"),
            (413, _) => (INPUT, "payload_too_large"),
            (400, "validation_failed") => (INPUT, "validation_error"),
            (429 | 502 | 503 | 504, _) => (CLUSTER, "backend_unavailable"),
            (500, "internal_error") => (INTERNAL, "internal_error"),
            _ => (CLUSTER, "graph_error"),
        };
        let mut failed = Self::new(exit, code, said).with("status", status);
        for name in ["field", "error_code", "retry_after_s", "request_id"] {
            if let Some(value) = body.get(name) {
                failed = failed.with(name, value.clone());
            }
        }
        failed
    }

    /// Shows it and gives the exit code.
    pub(super) fn report(&self) -> ExitCode {
        eprintln!("{}", self.json());
        ExitCode::from(self.exit)
    }

    fn json(&self) -> Value {
        json!({"code": self.code, "message": self.message, "details": self.details})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_refusal_of_the_cluster_has_its_exit() {
        for (status, word, exit, code) in [
            (401, "authentication_failed", 2, "authentication_failed"),
            (403, "authorization_failed", 2, "authorization_failed"),
            (409, "message_id_reused", 1, "message_id_reused"),
            (413, "payload_too_large", 1, "payload_too_large"),
            (400, "validation_failed", 1, "validation_error"),
            (400, "malformed_request", 2, "graph_error"),
            (422, "limit_exceeded", 2, "graph_error"),
            (429, "rate_limited", 2, "backend_unavailable"),
            (503, "service_unavailable", 2, "backend_unavailable"),
            (500, "internal_error", 3, "internal_error"),
            (404, "", 2, "graph_error"),
        ] {
            let failed = Failed::refused(status, &json!({"error": "no", "error_code": word}));
            assert_eq!((failed.exit, failed.code), (exit, code), "{status} {word}");
        }
    }

    #[test]
    fn an_error_is_an_object_with_code_message_and_details() {
        let failed = Failed::reused(3);
        assert_eq!(
            failed.json(),
            json!({"code": "message_id_reused", "message": failed.message, "details": {"index": 3}})
        );
    }
}
