//! Starting roles: the small functions between the command line and the crates that do the work.

pub(crate) mod dev;
pub(crate) mod gateway;
pub(crate) mod node;

mod banner;
mod bootstrap;
mod channel;
mod logging;
mod node_admin;
mod observe;
mod prepare;
mod shutdown;
mod tls;
