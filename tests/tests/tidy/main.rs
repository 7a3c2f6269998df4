//! Rules about the repository itself that a machine can check: which crate may use which, what may be linked, what must
//! be documented, how long files may be, which words must not appear. They run as a test so that one command checks all.

mod cargo;
mod crates;
mod documents;
mod files;
mod licences;
mod lints;
mod repository;
