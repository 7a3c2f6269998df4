//! What a command says when the gateway said no.

use serde_json::Value;

use crate::failure::{Failure, exit_of_status};

/// An answer of the gateway that says no, in problem form or in the form of a tool error.
pub(super) fn refused(body: &Value, status: u16, fallback: &str) -> Failure {
    let status = body
        .get("status_code")
        .or(body.get("status"))
        .and_then(Value::as_u64)
        .map_or(status, |status| u16::try_from(status).unwrap_or(500));
    let what = ["detail", "error", "message", "title"]
        .iter()
        .find_map(|name| body.get(name).and_then(Value::as_str))
        .unwrap_or(fallback)
        .to_owned();
    let text = |names: &[&str]| {
        names
            .iter()
            .find_map(|name| body.get(name).and_then(Value::as_str))
            .map(str::to_owned)
    };
    let code = text(&["error_code", "code"]).or_else(|| code_of_status(status).map(str::to_owned));
    let wait = body.get("retry_after_s").and_then(Value::as_u64);
    Failure {
        what,
        next: next_of_status(status, wait),
        code,
        request_id: text(&["request_id"]),
        exit: exit_of_status(status),
    }
}

/// For an answer without a body of ours, such as one of a balancer in front of the gateway.
fn code_of_status(status: u16) -> Option<&'static str> {
    match status {
        401 => Some("authentication_failed"),
        403 => Some("authorization_failed"),
        404 => Some("not_found"),
        413 => Some("payload_too_large"),
        429 => Some("rate_limited"),
        502..=504 => Some("service_unavailable"),
        _ => None,
    }
}

fn next_of_status(status: u16, wait: Option<u64>) -> Option<String> {
    let next = match status {
        401 => "is it the right key? --key-file or WAGGLE_KEY gives another one",
        429 | 502..=504 => {
            let wait = wait.map_or_else(|| "in a few seconds".to_owned(), |seconds| format!("in {seconds} s"));
            return Some(format!("try again {wait}; `waggle status` shows what is degraded"));
        }
        _ => return None,
    };
    Some(next.to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::failure;

    #[test]
    fn a_refusal_keeps_code_and_exit() {
        let tool =
            json!({"error": "no such memory", "error_code": "not_found", "status_code": 404, "request_id": "r1"});
        let failure = refused(&tool, 200, "");
        assert_eq!(
            (failure.what.as_str(), failure.exit),
            ("no such memory", failure::NOT_FOUND)
        );
        assert_eq!(
            (failure.code.as_deref(), failure.request_id.as_deref()),
            (Some("not_found"), Some("r1"))
        );
        let bare = refused(&Value::Null, 503, "busy");
        assert_eq!(bare.exit, failure::UNAVAILABLE);
        assert_eq!(bare.code.as_deref(), Some("service_unavailable"));
        assert!(bare.next.is_some_and(|next| next.contains("waggle status")));
    }
}
