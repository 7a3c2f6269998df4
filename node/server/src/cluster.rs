//! What makes several nodes one cluster: what a node knows of the others, how it reaches them, how replicas talk, and
//! the work that turns a placement into replicas, votes and leaders.

mod hosted;
mod join;
mod keeper;
mod known;
mod leading;
mod peers;
mod snapshots;
mod wire;

pub use join::{JoinError, JoinRequest, join};
pub use peers::{Dial, DialError, NoPeers};

pub(crate) use hosted::{Entry as HostedReplica, Hosted};
pub(crate) use keeper::{Keeper, change_placement, change_placement_here, keep};
pub(crate) use known::Known;
pub(crate) use leading::hand_over_all;
pub(crate) use peers::{PEER_BYTES_MAX, Peers};
pub(crate) use snapshots::Incoming;
pub(crate) use wire::GrpcWire;
