//! Closed lists of words with a look-up that is cheap enough to ask for every word of a text.

/// Blank-separated words. Most words are in no list, so a small filter made at compile time answers first.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WordList {
    words: &'static str,
    filter: [u64; 4],
}

/// A place in the filter, from length, first two and last letter.
#[expect(
    clippy::indexing_slicing,
    reason = "a const fn has no get; both callers give from < to <= len"
)]
const fn place(word: &[u8], from: usize, to: usize) -> usize {
    let first = word[from] as usize;
    let second = if to - from > 1 { word[from + 1] as usize } else { 0 };
    let last = word[to - 1] as usize;
    (first * 31 + second * 7 + last * 13 + (to - from) * 3) % 256
}

impl WordList {
    /// The list of the words in `words`.
    #[expect(clippy::indexing_slicing, reason = "a const fn has no get; bounds are in the loop")]
    pub(crate) const fn new(words: &'static str) -> Self {
        let bytes = words.as_bytes();
        let mut filter = [0_u64; 4];
        let (mut from, mut at) = (0, 0);
        while at <= bytes.len() {
            if at == bytes.len() || bytes[at] == b' ' {
                if at > from {
                    let place = place(bytes, from, at);
                    filter[place / 64] |= 1 << (place % 64);
                }
                from = at + 1;
            }
            at += 1;
        }
        Self { words, filter }
    }

    /// Whether `word` is in the list.
    pub(crate) fn has(&self, word: &str) -> bool {
        if word.is_empty() || word.len() > 40 {
            return false;
        }
        let place = place(word.as_bytes(), 0, word.len());
        let maybe = self
            .filter
            .get(place / 64)
            .is_some_and(|part| part & (1 << (place % 64)) != 0);
        maybe && self.words.split(' ').any(|w| w == word)
    }

    /// The words, in order.
    pub(crate) fn words(&self) -> impl DoubleEndedIterator<Item = &'static str> {
        self.words.split(' ')
    }
}

/// A [`WordList`] made at compile time.
macro_rules! list {
    ($words:expr) => {
        const { $crate::read::list::WordList::new($words) }
    };
}
pub(crate) use list;
