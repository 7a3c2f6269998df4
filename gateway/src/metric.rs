//! Names and help texts of what the gateway counts. Labels come from closed sets, never from a tenant or a text.

use metrics::{describe_counter, describe_gauge, describe_histogram};

pub(crate) fn describe() {
    describe_counter!(
        "waggle_gateway_requests_total",
        "Requests answered, by surface, operation and code."
    );
    describe_histogram!(
        "waggle_gateway_request_duration_seconds",
        "Time to answer, by surface and operation."
    );
    describe_gauge!("waggle_gateway_inflight_requests", "Requests being answered now.");
    describe_counter!(
        "waggle_gateway_rejected_requests_total",
        "Requests refused before they ran, by reason."
    );
    describe_counter!("waggle_gateway_response_bytes", "Bytes of tool answers.");
    describe_counter!(
        "waggle_mcp_protocol_requests_total",
        "MCP requests by protocol version."
    );
    describe_counter!("waggle_mcp_tool_calls_total", "Tool calls by tool and outcome.");
    describe_gauge!("waggle_mcp_tools_list_bytes", "Size of the whole tool list, by path.");
    describe_counter!("waggle_empty_results_total", "Answers without a memory, by reason.");
    describe_counter!(
        "waggle_auth_attempts_total",
        "Credentials checked, by method, outcome and reason."
    );
    describe_gauge!(
        "waggle_auth_key_cache_age_seconds",
        "Age of the key row that answered the last credential check."
    );
}

/// Counts a request while it lives.
pub(crate) struct InFlight(());

impl InFlight {
    pub(crate) fn enter() -> Self {
        metrics::gauge!("waggle_gateway_inflight_requests").increment(1.0);
        Self(())
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        metrics::gauge!("waggle_gateway_inflight_requests").decrement(1.0);
    }
}
