//! A block: the messages of one speaker, joined with a blank line for the rules, and the way back from a place in it to
//! the message that it lies in.

/// What stands between two messages of a block.
pub const BLOCK_GAP: &str = "\n\n";

/// Joined messages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Joined {
    text: String,
    /// Start of each message in `text`.
    starts: Vec<usize>,
    /// End of each message in `text`.
    ends: Vec<usize>,
}

impl Joined {
    /// Joins messages in their order.
    pub fn new<'a>(messages: impl IntoIterator<Item = &'a str>) -> Self {
        let mut joined = Self::default();
        for message in messages {
            if !joined.starts.is_empty() {
                joined.text.push_str(BLOCK_GAP);
            }
            joined.starts.push(joined.text.len());
            joined.text.push_str(message);
            joined.ends.push(joined.text.len());
        }
        joined
    }

    /// The whole block.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The message that a byte range of the block lies in, by its position, and the range inside that message. A range
    /// that goes on into the next message is cut where the first one ends; one that begins between two messages begins
    /// with the next. None only for a block without messages.
    pub fn locate(&self, (start, end): (usize, usize)) -> Option<(usize, (usize, usize))> {
        let after = self.starts.partition_point(|at| *at <= start);
        let mut position = after.checked_sub(1)?;
        // In the gap: the next message, which is there, because a gap stands between two.
        if start >= *self.ends.get(position)? && position + 1 < self.starts.len() && start < end {
            position += 1;
        }
        let (first, last) = (*self.starts.get(position)?, *self.ends.get(position)?);
        let start = start.clamp(first, last);
        let end = end.clamp(start, last);
        Some((position, (start - first, end - first)))
    }
}
