//! WordPiece with the rules of BERT. Never pads; cuts at the longest input of the model.

use tokenizers::decoders::wordpiece::WordPiece as WordPieceDecoder;
use tokenizers::models::wordpiece::WordPiece;
use tokenizers::normalizers::bert::BertNormalizer;
use tokenizers::pre_tokenizers::bert::BertPreTokenizer;
use tokenizers::processors::bert::BertProcessing;
use tokenizers::{AddedToken, Model as _, TokenizerBuilder, TokenizerImpl};

use super::ModelError;
use super::weights::Packed;

/// A long text is read piece by piece, so that a megabyte costs no more than the part that the model sees.
const PIECE_BYTES: usize = 4096;

type Inner = TokenizerImpl<WordPiece, BertNormalizer, BertPreTokenizer, BertProcessing, WordPieceDecoder>;

pub(super) struct Tokenizer {
    inner: Inner,
    start: u32,
    end: u32,
    unknown: u32,
    tokens_max: usize,
}

/// The token ids of one text, first and last being the model's start and end marks.
pub(super) struct Tokens {
    pub(super) ids: Vec<u32>,
    pub(super) truncated: bool,
    unknown_count: usize,
}

impl Tokens {
    /// Whether a vector of these tokens would say something about the text. The vocabulary is English: of a text in
    /// another script often only unknown marks are left, and all such texts would look alike.
    pub(super) fn carry_meaning(&self) -> bool {
        let content = self.ids.len() - 2;
        content > 0 && self.unknown_count * 2 <= content
    }
}

impl Tokenizer {
    pub(super) fn load(packed: &Packed) -> Result<Tokenizer, ModelError> {
        let rules = &packed.manifest.tokenizer;
        let refuse = |error: tokenizers::Error| ModelError::Tokenizer(error.to_string());
        let words = packed.vocabulary()?;
        let model = WordPiece::builder()
            .vocab(WordPiece::read_bytes(words).map_err(refuse)?)
            .unk_token(rules.unknown.clone())
            .continuing_subword_prefix(rules.continuation.clone())
            .max_input_chars_per_word(rules.word_chars_max)
            .build()
            .map_err(refuse)?;
        let id_of = |word: &str| {
            model
                .token_to_id(word)
                .ok_or_else(|| ModelError::Tokenizer(format!("the vocabulary lacks {word}")))
        };
        let (start, end, unknown) = (id_of(&rules.start)?, id_of(&rules.end)?, id_of(&rules.unknown)?);
        if model.get_vocab_size() != packed.vocabulary_size() {
            let repeated = "the vocabulary holds a word twice".to_owned();
            return Err(ModelError::Tokenizer(repeated));
        }
        for special in &rules.special {
            id_of(special)?;
        }
        let mut inner: Inner = TokenizerBuilder::new()
            .with_model(model)
            .with_normalizer(Some(BertNormalizer::new(
                rules.clean_text,
                rules.split_cjk,
                rules.strip_accents,
                rules.lowercase,
            )))
            .with_pre_tokenizer(Some(BertPreTokenizer))
            .with_post_processor(None)
            .with_decoder(None)
            .build()
            .map_err(refuse)?;
        let special: Vec<AddedToken> = rules
            .special
            .iter()
            .map(|word| AddedToken::from(word.clone(), true).normalized(false))
            .collect();
        inner.add_special_tokens(&special);
        Ok(Tokenizer {
            inner,
            start,
            end,
            unknown,
            tokens_max: packed.manifest.tokens_max,
        })
    }

    pub(super) fn encode(&self, text: &str) -> Tokens {
        let content_max = self.tokens_max - 2;
        let mut ids = vec![self.start];
        for piece in Pieces(text) {
            self.append(piece, &mut ids);
            if ids.len() > 1 + content_max {
                break;
            }
        }
        let truncated = ids.len() > 1 + content_max;
        ids.truncate(1 + content_max);
        let unknown_count = ids.iter().filter(|&&id| id == self.unknown).count();
        ids.push(self.end);
        Tokens {
            ids,
            truncated,
            unknown_count,
        }
    }

    /// Tokens of the whole text, marks included, as if there were no longest input.
    pub(super) fn count(&self, text: &str) -> usize {
        let mut ids = Vec::new();
        let mut count = 2;
        for piece in Pieces(text) {
            ids.clear();
            self.append(piece, &mut ids);
            count += ids.len();
        }
        count
    }

    fn append(&self, piece: &str, ids: &mut Vec<u32>) {
        match self.inner.encode_fast(piece, false) {
            Ok(encoding) => ids.extend_from_slice(encoding.get_ids()),
            // Only a vocabulary without its unknown mark can fail, and that was refused at load. Should the library find
            // another reason, the piece counts as unknown: no vector is better than one made of nothing.
            Err(_) => ids.push(self.unknown),
        }
    }
}

/// Cuts where a word ends. Only a run of 4 KiB without any space is cut inside, and that is no word of any vocabulary.
struct Pieces<'a>(&'a str);

impl<'a> Iterator for Pieces<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        if self.0.is_empty() {
            return None;
        }
        let mut end = self.0.len();
        if end > PIECE_BYTES {
            let limit = self.0.floor_char_boundary(PIECE_BYTES);
            end = match self.0[..limit].rfind([' ', '\n']) {
                None | Some(0) => limit,
                Some(space) => space,
            };
        }
        let (piece, rest) = self.0.split_at(end);
        self.0 = rest;
        Some(piece)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_join_to_the_text_and_end_between_words() {
        let words = "alpha beta ".repeat(2000);
        let solid = "é".repeat(5000);
        for text in [&words, &solid, &String::new()] {
            let pieces: Vec<&str> = Pieces(text).collect();
            assert_eq!(&pieces.concat(), text);
            assert!(pieces.iter().all(|piece| piece.len() <= PIECE_BYTES));
        }
        assert!(Pieces(&words).skip(1).all(|piece| piece.starts_with(' ')));
    }
}
