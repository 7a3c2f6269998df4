//! Finds the channels with outliers by running the model over a few texts.
//!
//! Outliers sit in the same channels whatever the text says, so a dozen texts of different kinds are enough.

use super::super::weights::SPREAD;
use super::super::{Encoder, KernelChoice};
use super::PackError;

const TEXTS: [&str; 12] = [
    "When is the next meeting of the board?",
    "We paid 3,200 euros for the new roof and it still leaks.",
    "ok",
    "Why?",
    "fn add(a: i32, b: i32) -> i32 { a + b }",
    "Anna moved to Oslo in 2019 and works there as a nurse.",
    "thanks :)",
    "error: cannot open file '/var/lib/app/x.db' (code 13)",
    "red",
    "Lunch at 12:30 with José & Co.!",
    "7f3e9a10-44b2-4c1d-9e0f-5a6b7c8d9e0f",
    "The old bridge was closed for repairs, so everybody took the ferry, which was slower but had coffee.",
];

/// Per matrix of the draft, in the order of the file, the channels to copy.
pub(super) fn from_outliers(draft: Vec<u8>) -> Result<Vec<[u16; SPREAD]>, PackError> {
    let encoder = Encoder::from_packed(draft.into(), KernelChoice::Detect);
    let encoder = encoder.map_err(PackError::Unusable)?;
    let observed = encoder.observe(&TEXTS);
    Ok(observed.iter().map(|largest| copies_of(largest)).collect())
}

/// One copy after the other to the channel whose share is the largest.
fn copies_of(largest: &[f32]) -> [u16; SPREAD] {
    let mut copies = vec![1.0f32; largest.len()];
    std::array::from_fn(|_| {
        let share = |channel: &u16| largest[usize::from(*channel)] / copies[usize::from(*channel)];
        let channels = 0..largest.len() as u16;
        let channel = channels.max_by(|a, b| share(a).total_cmp(&share(b)));
        let channel = channel.unwrap_or_default();
        copies[usize::from(channel)] += 1.0;
        channel
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_go_to_the_largest_channels_by_their_share() {
        let mut largest = vec![1.0; 100];
        largest[7] = 12.0;
        largest[42] = 6.0;
        let copies = copies_of(&largest);
        let of = |channel| copies.iter().filter(|&&c| c == channel).count();
        // 18 shares in all, two thirds of them for the channel that is twice as large; they end equal.
        assert_eq!((of(7), of(42)), (11, 5));
    }
}
