//! Messages: `wire` between processes, `log` on disk. Two packages, two compatibility rules: wire messages interoperate
//! between a version and the one before it, log messages are read for ever (docs/architecture.md).

pub mod log;
pub mod wire;
