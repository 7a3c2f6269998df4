//! waggle-recall

pub mod encoder;
