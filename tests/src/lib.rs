//! What the tests of the real binary share: starting `waggle dev`, talking MCP to it, ending it.
//!
//! Tests here see Waggle as its users do, through the process and its URL; of our crates they use none, but for the load
//! on a cluster, which calls nodes as gateways do. They wait for a state, with a deadline, and never for a span of time.

pub mod cluster;
pub mod machine;
pub mod mcp;
pub mod server;
pub mod texts;
pub mod workspace;
pub mod world;

/// reqwest is built without a TLS provider of its own and wants one even for plain http.
pub fn install_tls_provider() {
    // An error means that another test of this process was first.
    let _ = rustls::crypto::ring::default_provider().install_default();
}
