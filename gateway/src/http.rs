//! HTTP: listeners, the layers before MCP, health, and the admin REST API.

pub(crate) mod host_origin;

pub(crate) mod answer;
pub(crate) mod body;
pub(crate) mod gate;

pub(crate) mod admin;
pub(crate) mod handoff;
pub(crate) mod health;
pub(crate) mod keys;

pub(crate) mod listener;
