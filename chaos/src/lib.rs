//! Real processes under real faults, and judges of what their clients saw.
//!
//! The crate starts a cluster as an operator would, puts faulty proxies between its processes, works on it as agents do,
//! hurts it after a plan that follows from a seed, and judges the history of all operations. It sees the cluster through
//! its command line, its URLs and its processes only, and uses none of its code. docs/chaos.md is its manual.
//!
//! [`checker`] and [`history`] stand on their own: other tests use them.

pub mod checker;
pub mod cluster;
pub mod dice;
pub mod history;
pub mod nemesis;
pub mod proxy;
pub mod run;
pub mod workload;
