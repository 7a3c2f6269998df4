//! The node: wires storage, consensus, recall and the encoder together and serves them over gRPC. It plans writes
//! (extraction, embedding, similarity) before they are proposed and answers reads from applied state and its derived
//! indexes. It never parses MCP, never checks API keys, and never trusts a tenant that did not come with the call
//! context of an authenticated gateway.

mod background;
mod call;
mod cluster;
mod embed;
mod engine;
mod error;
mod indexing;
mod node;
mod plan;
mod rpc;
mod start;
mod status;

pub use cluster::{Dial, DialError, JoinError, JoinRequest, NoPeers, join};
pub use engine::EngineOptions;
pub use node::{ClusterOrigin, Node, NodeOptions, NodeServices, StartError};
pub use status::{Check, NodeStatus, ShardSummary};
pub use waggle_shard::Settings;
pub use waggle_store::{Identity, OpenError, Start, StoreOptions};
