//! Ranking: from the raw scores of recall's lanes to one order. Pure arithmetic over what it is given; where the raw
//! scores come from (postings, vectors) is the business of `waggle-recall`.
//!
//! The order of two hits depends on their scores, their times and their ids only, so one state has one answer.

pub mod fuse;
pub mod tuning;

pub use fuse::{Candidate, Fused, Lane, LaneBounds, Parts, fuse, matches, nothing_matches, order, strength_of_spread};
pub use tuning::Tuning;
