//! What a process is told before it starts: configuration, limits, identity, certificates and the TLS that uses them; and the three things that
//! every crate above needs to run: the clock, the kinds of tasks, and the gate of shutdown.
//!
//! Configuration goes one way: [`raw`] collects what the file, the environment and the flags say, [`checked`] proves
//! it by one pure function that reports all problems at once. Nothing here is a global, and nothing here is a secret:
//! secrets are files that the configuration only names.

pub mod limits;

pub mod keys;
pub mod raw;

pub mod checked;
pub mod explain;
pub mod problem;

pub mod certificates;
pub mod identity;
pub mod peer_tls;

pub mod runtime;

pub use checked::{GatewayConfig, NodeConfig};
pub use problem::Problem;
