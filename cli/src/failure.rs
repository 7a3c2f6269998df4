//! How a command fails: what failed, why, what to do next, a stable code, and the exit code that scripts look at.

use std::fmt;
use std::process::ExitCode;

use waggle_config::certificates::CertificateError;
use waggle_config::identity::{IdentityError, SecretError};
use waggle_config::problem;
use waggle_node::StartError;

pub(crate) const GENERAL: u8 = 1;
pub(crate) const USAGE: u8 = 2;
pub(crate) const NOT_FOUND: u8 = 3;
pub(crate) const PERMISSION: u8 = 4;
pub(crate) const CONFLICT: u8 = 5;
pub(crate) const UNAVAILABLE: u8 = 6;
pub(crate) const TIME_OUT: u8 = 7;
pub(crate) const PARTIAL: u8 = 8;
pub(crate) const CHECK_FAILED: u8 = 9;
pub(crate) const CONFIGURATION: u8 = problem::EXIT_CODE;

/// A failure that is ready to be shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) what: String,
    pub(crate) next: Option<String>,
    pub(crate) code: Option<String>,
    pub(crate) request_id: Option<String>,
    pub(crate) exit: u8,
}

impl Failure {
    pub(crate) fn new(exit: u8, what: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            next: None,
            code: None,
            request_id: None,
            exit,
        }
    }

    #[must_use]
    pub(crate) fn next(mut self, next: impl Into<String>) -> Self {
        self.next = Some(next.into());
        self
    }

    #[must_use]
    pub(crate) fn with_exit(mut self, exit: u8) -> Self {
        self.exit = exit;
        self
    }

    /// Any error as a failure; one of ours keeps its exit code, also under a context.
    pub(crate) fn from_error(error: &anyhow::Error) -> Self {
        if let Some(failure) = error.downcast_ref::<Self>() {
            return failure.clone();
        }
        let what = chain_text(error);
        let misconfigured = error.chain().any(|cause| {
            cause.is::<problem::Problems>()
                || cause.is::<CertificateError>()
                || cause.is::<IdentityError>()
                || cause.is::<SecretError>()
        });
        let refused = error.chain().find_map(|cause| match cause.downcast_ref() {
            Some(StartError::Open(refused)) => Some(refused),
            _ => None,
        });
        let exit = if misconfigured || refused.is_some() {
            CONFIGURATION
        } else {
            GENERAL
        };
        Self {
            code: refused.map(|refused| refused.code().to_owned()),
            ..Self::new(exit, what)
        }
    }
}

/// Every cause once: some errors say their cause themselves.
fn chain_text(error: &anyhow::Error) -> String {
    error
        .chain()
        .map(ToString::to_string)
        .fold(String::new(), |text, cause| {
            if text.is_empty() {
                cause
            } else if text.ends_with(&cause) {
                text
            } else {
                format!("{text}: {cause}")
            }
        })
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

impl std::error::Error for Failure {}

/// Shows an error on stderr and gives the exit code.
pub(crate) fn report(error: &anyhow::Error) -> ExitCode {
    let failure = Failure::from_error(error);
    eprintln!("error: {}", failure.what);
    if let Some(next) = &failure.next {
        eprintln!("  next: {next}");
    }
    if let Some(code) = &failure.code {
        eprintln!("  code: {code} ({})", page_of(code));
    }
    if let Some(request_id) = &failure.request_id {
        eprintln!("  request: {request_id}");
    }
    ExitCode::from(failure.exit)
}

/// Where a code is explained.
fn page_of(code: &str) -> String {
    if code.starts_with("data_") {
        "docs/startup-refusals.md".to_owned()
    } else {
        format!("docs/errors/{code}.md")
    }
}

/// The exit code of an HTTP status.
pub(crate) fn exit_of_status(status: u16) -> u8 {
    match status {
        401 | 403 => PERMISSION,
        404 => NOT_FOUND,
        409 => CONFLICT,
        429 | 502 | 503 => UNAVAILABLE,
        408 | 504 => TIME_OUT,
        _ => GENERAL,
    }
}

#[cfg(test)]
mod tests {
    use anyhow::Context as _;
    use waggle_node::OpenError;

    use super::*;

    #[test]
    fn the_exit_code_survives_a_context_only_where_it_must() {
        let failure = Failure {
            code: Some("not_found".to_owned()),
            ..Failure::new(NOT_FOUND, "no such key")
        };
        let error = anyhow::Error::from(failure.clone());
        assert_eq!(Failure::from_error(&error), failure);
        let secret = SecretError::Empty("pepper".into());
        let error = Err::<(), _>(secret).context("start the gateway").expect_err("an error");
        let shown = Failure::from_error(&error);
        assert_eq!(
            (shown.exit, shown.what.as_str()),
            (CONFIGURATION, "start the gateway: pepper is empty")
        );
        assert_eq!(Failure::from_error(&anyhow::anyhow!("plain")).exit, GENERAL);
        let refused = StartError::Open(OpenError::NotADirectory { path: "data".into() });
        let error = Err::<(), _>(refused).context("start the node").expect_err("an error");
        let shown = Failure::from_error(&error);
        assert_eq!(
            (shown.exit, shown.code.as_deref()),
            (CONFIGURATION, Some("data_not_a_directory"))
        );
        let missing = SecretError::Io {
            path: "k".into(),
            source: std::io::ErrorKind::NotFound.into(),
        };
        let shown = Failure::from_error(&anyhow::Error::from(missing)).what;
        assert_eq!(shown.matches("not found").count(), 1, "{shown}");
    }

    #[test]
    fn statuses_have_exit_codes() {
        for (status, exit) in [
            (400, 1),
            (401, 4),
            (403, 4),
            (404, 3),
            (409, 5),
            (422, 1),
            (429, 6),
            (503, 6),
            (504, 7),
        ] {
            assert_eq!(exit_of_status(status), exit, "{status}");
        }
    }
}
