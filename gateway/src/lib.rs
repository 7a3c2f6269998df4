//! The stateless gateway: MCP over Streamable HTTP, the admin REST API, credentials, limits, and the client that finds
//! the shard of a tenant.
//!
//! Any gateway answers any request: nothing is remembered between two requests but caches that may be lost at any
//! time. Tenant and author come from the credential of the request at hand, never from an argument. The crate never
//! touches storage or consensus; nodes do the work and it checks arguments before and shapes answers after. Content,
//! query text and credentials are never logged.
//!
//! Called by the `waggle` binary: [`Gateway::bind`], then [`Gateway::serve`].

mod app;
mod options;

mod auth;
mod cursor;
mod fault;
mod limits;
mod metric;
mod route;
mod seal;
mod transfer;

pub mod error_codes;
pub mod handoff;
pub mod join_token;
pub mod keys;

mod http;
mod mcp;

mod conformance;

pub use app::{Gateway, GatewayError, run};
pub use auth::OPERATOR_TENANT;
pub use mcp::overview::overview;
pub use mcp::policy::POLICY as MEMORY_POLICY;
pub use mcp::schema::{ToolSet, tool_list_bytes};
pub use options::{Connect, GatewayOptions, Listen, Secret};
