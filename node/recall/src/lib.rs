//! waggle-recall

pub mod encoder;
pub mod cache;
pub mod index;
mod lexical;
pub mod text;
mod vectors;
