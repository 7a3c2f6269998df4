//! What travels between gateway, node and administrator, and its conversion from and to the domain.

#[expect(
    unreachable_pub,
    unused_qualifications,
    missing_docs,
    clippy::all,
    reason = "generated code"
)]
#[allow(clippy::all)]
mod generated {
    tonic::include_proto!("waggle.wire.v1");
}

pub use generated::*;
