//! Client commands, one module for each noun.

pub(crate) mod abhi;
pub(crate) mod cert;
pub(crate) mod cluster;
pub(crate) mod config;
pub(crate) mod connect;
pub(crate) mod demo;
pub(crate) mod doctor;
pub(crate) mod features;
pub(crate) mod handoff;
pub(crate) mod key;
pub(crate) mod mcp;
pub(crate) mod memory;
pub(crate) mod nodes;
pub(crate) mod replay;
pub(crate) mod shard;
pub(crate) mod status;
pub(crate) mod tenant;
pub(crate) mod transfer;
pub(crate) mod version;
