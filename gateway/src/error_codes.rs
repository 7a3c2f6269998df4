//! Every error code that a gateway can answer, with its HTTP status. A code is stable for ever; docs/errors has a page
//! for each.

/// Code and status, in the order of the documentation.
pub const ERROR_CODES: &[(&str, u16)] = &[
    ("validation_failed", 400),
    ("invalid_cursor", 400),
    ("request_id_reused", 400),
    ("path_not_supported", 400),
    ("schema_version_incompatible", 400),
    ("hash_verification_failed", 400),
    ("dangling_edge", 400),
    ("secrets_found", 400),
    ("confirm_required", 400),
    ("malformed_request", 400),
    ("authentication_failed", 401),
    ("authorization_failed", 403),
    ("host_not_allowed", 403),
    ("origin_not_allowed", 403),
    ("not_found", 404),
    ("method_not_allowed", 405),
    ("version_conflict", 409),
    ("conflict_resolution_failed", 409),
    ("already_exists", 409),
    ("payload_too_large", 413),
    ("unsupported_media_type", 415),
    ("limit_exceeded", 422),
    ("rate_limited", 429),
    ("quota_exceeded", 429),
    ("internal_error", 500),
    ("service_unavailable", 503),
    ("storage_full", 503),
];

/// The table's own text of a code, and its status.
pub(crate) fn find(code: &str) -> Option<(&'static str, u16)> {
    ERROR_CODES.iter().find(|(known, _)| *known == code).copied()
}

/// What kind of trouble a code is: the `error_type` of answers.
pub(crate) fn kind_of(status: u16) -> &'static str {
    match status {
        400 | 405 | 413 | 415 | 422 => "invalid_request",
        401 => "authentication",
        403 => "permission",
        404 => "not_found",
        409 => "conflict",
        429 => "limit",
        503 => "unavailable",
        _ => "internal",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_a_page_with_its_name() {
        for (code, status) in ERROR_CODES {
            let path = format!("{}/../docs/errors/{code}.md", env!("CARGO_MANIFEST_DIR"));
            let page = std::fs::read_to_string(&path).unwrap_or_default();
            assert!(page.contains(code) && page.contains(&status.to_string()), "{path}");
        }
    }
}
