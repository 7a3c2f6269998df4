//! What travels between gateway, node and administrator, and its conversion from and to the domain.

mod convert;

#[allow(unused_qualifications, clippy::all, reason = "generated code")]
mod generated {
    tonic::include_proto!("waggle.wire.v1");
}

pub use convert::{
    BadField, key_info, key_of, link, link_id, memory, memory_id, node_info, node_info_of, node_state_of,
    optional_memory_id, placement, placement_of, scope, scope_of, short_hash,
};
pub use generated::*;
