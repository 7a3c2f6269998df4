//! HTTP: listeners, the layers before MCP, health, and the admin REST API.

pub(crate) mod host_origin;

pub(crate) mod answer;
pub(crate) mod body;
pub(crate) mod entrance;
pub(crate) mod gate;
mod message;

pub(crate) mod admin;
pub(crate) mod api;
mod cluster;
pub(crate) mod graph;
pub(crate) mod handoff;
pub(crate) mod health;
pub(crate) mod keys;

pub(crate) mod transfer;

pub(crate) mod listener;
