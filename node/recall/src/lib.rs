//! waggle-recall

pub mod cache;
pub mod encoder;
pub mod index;
mod lexical;
pub mod text;
mod vectors;
