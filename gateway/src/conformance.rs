//! Fixtures of the official MCP conformance suite, at /conformance/mcp behind the same layers as production. Only with
//! the switch in the options, and only on a loopback listener.

use std::sync::Arc;

use rmcp::ServerHandler;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio_util::sync::CancellationToken;

pub(crate) type FixtureService = StreamableHttpService<Fixtures, LocalSessionManager>;

#[derive(Clone, Debug, Default)]
pub(crate) struct Fixtures;

impl ServerHandler for Fixtures {}

/// Questions from server to client exist in the older revisions only inside a session, so this route, and it alone,
/// has sessions.
pub(crate) fn service(abandon: &CancellationToken) -> FixtureService {
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(true)
        .with_json_response(true)
        .with_cancellation_token(abandon.clone())
        .disable_allowed_hosts()
        .disable_allowed_origins();
    StreamableHttpService::new(|| Ok(Fixtures), Arc::new(LocalSessionManager::default()), config)
}
