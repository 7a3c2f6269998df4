//! What the JSON files of a model say, reduced to what the encoder implements. Everything else is refused by its key.

use serde_json::Value;

use super::super::model::HEADS;
use super::super::weights::{OUTPUTS_MULTIPLE, TOKENS_MAX, TokenizerRules};
use super::{DIMENSIONS, PackError};

pub(super) const WEIGHTS_FILE: &str = "model.safetensors";
pub(super) const TOKENIZER_FILE: &str = "tokenizer.json";
pub(super) const CONFIG_FILE: &str = "config.json";
pub(super) const POOLING_FILE: &str = "1_Pooling/config.json";
pub(super) const LENGTH_FILE: &str = "sentence_bert_config.json";

/// Longer inputs cost more than linear time and blur the mean; models that allow more are cut here.
const TOKENS_DEFAULT: usize = 256;

pub(super) struct Described {
    pub(super) layers: usize,
    pub(super) inner: usize,
    pub(super) tokens_max: usize,
    pub(super) norm_epsilon: f32,
    pub(super) tokenizer: TokenizerRules,
    pub(super) vocabulary: Vec<String>,
}

impl Described {
    pub(super) fn parse(
        config: &[u8],
        tokenizer: &[u8],
        pooling: Option<&[u8]>,
        lengths: Option<&[u8]>,
    ) -> Result<Described, PackError> {
        let config = Document::parse(CONFIG_FILE, config)?;
        config.require("model_type", &["bert".into()])?;
        config.require("hidden_act", &["gelu".into()])?;
        config.require("position_embedding_type", &["absolute".into(), Value::Null])?;
        config.require("hidden_size", &[DIMENSIONS.into()])?;
        config.require("num_attention_heads", &[HEADS.into()])?;
        let inner = config.number("intermediate_size")?;
        if inner == 0 || !inner.is_multiple_of(OUTPUTS_MULTIPLE) {
            return Err(config.unsupported("intermediate_size"));
        }
        if let Some(pooling) = pooling {
            check_pooling(&Document::parse(POOLING_FILE, pooling)?)?;
        }
        let longest = match lengths {
            Some(lengths) => Document::parse(LENGTH_FILE, lengths)?.number("max_seq_length")?,
            None => TOKENS_DEFAULT,
        };
        let positions = config.number("max_position_embeddings")?;
        let (tokenizer, vocabulary) = parse_tokenizer(&Document::parse(TOKENIZER_FILE, tokenizer)?)?;
        if vocabulary.len() != config.number("vocab_size")? {
            return Err(config.unsupported("vocab_size"));
        }
        let Some(norm_epsilon) = config.at("layer_norm_eps").as_f64() else {
            return Err(config.unsupported("layer_norm_eps"));
        };
        Ok(Described {
            layers: config.number("num_hidden_layers")?,
            inner,
            tokens_max: longest.min(positions).min(TOKENS_MAX),
            norm_epsilon: norm_epsilon as f32,
            tokenizer,
            vocabulary,
        })
    }
}

fn check_pooling(pooling: &Document) -> Result<(), PackError> {
    let modes = pooling.value.as_object().into_iter().flatten();
    for (key, value) in modes.filter(|(key, _)| key.starts_with("pooling_mode_")) {
        let wanted = key == "pooling_mode_mean_tokens";
        if value.as_bool() != Some(wanted) {
            return Err(pooling.unsupported(key));
        }
    }
    Ok(())
}

fn parse_tokenizer(document: &Document) -> Result<(TokenizerRules, Vec<String>), PackError> {
    document.require("normalizer.type", &["BertNormalizer".into()])?;
    document.require("pre_tokenizer.type", &["BertPreTokenizer".into()])?;
    document.require("model.type", &["WordPiece".into(), Value::Null])?;
    let (start, end) = marks(document)?;
    let vocabulary = parse_vocabulary(document)?;
    let mut special = Vec::new();
    for added in document.at("added_tokens").as_array().into_iter().flatten() {
        let plain = ["single_word", "lstrip", "rstrip", "normalized"]
            .iter()
            .all(|key| added[key] == false);
        match added["content"].as_str() {
            Some(word) if plain && added["special"] == true => special.push(word.to_owned()),
            _ => return Err(document.unsupported("added_tokens")),
        }
    }
    let strip_accents = match document.at("normalizer.strip_accents") {
        Value::Null => None,
        _ => Some(document.flag("normalizer.strip_accents")?),
    };
    let rules = TokenizerRules {
        clean_text: document.flag("normalizer.clean_text")?,
        split_cjk: document.flag("normalizer.handle_chinese_chars")?,
        strip_accents,
        lowercase: document.flag("normalizer.lowercase")?,
        continuation: document.text("model.continuing_subword_prefix")?,
        word_chars_max: document.number("model.max_input_chars_per_word")?,
        unknown: document.text("model.unk_token")?,
        start,
        end,
        special,
    };
    Ok((rules, vocabulary))
}

/// The words before and after a single text.
fn marks(document: &Document) -> Result<(String, String), PackError> {
    let word = |value: &Value| value.as_str().map(str::to_owned);
    let found = match document.at("post_processor.type").as_str() {
        Some("BertProcessing") => (
            word(&document.at("post_processor.cls")[0]),
            word(&document.at("post_processor.sep")[0]),
        ),
        Some("TemplateProcessing") => match document.at("post_processor.single").as_array() {
            Some(parts) if parts.len() == 3 && parts[1]["Sequence"]["id"] == "A" => (
                word(&parts[0]["SpecialToken"]["id"]),
                word(&parts[2]["SpecialToken"]["id"]),
            ),
            _ => return Err(document.unsupported("post_processor.single")),
        },
        _ => return Err(document.unsupported("post_processor.type")),
    };
    match found {
        (Some(start), Some(end)) => Ok((start, end)),
        _ => Err(document.unsupported("post_processor")),
    }
}

/// Words in the order of their ids, without gaps. A word that a line of text cannot hold is refused.
fn parse_vocabulary(document: &Document) -> Result<Vec<String>, PackError> {
    let Some(entries) = document.at("model.vocab").as_object() else {
        return Err(document.unsupported("model.vocab"));
    };
    let mut words = vec![String::new(); entries.len()];
    for (word, id) in entries {
        let slot = id.as_u64().and_then(|id| words.get_mut(id as usize));
        match slot {
            Some(slot) if slot.is_empty() && !word.is_empty() && word.trim_end() == word => {
                slot.clone_from(word);
            }
            _ => return Err(document.unsupported(&format!("model.vocab[{word:?}]"))),
        }
    }
    if words.iter().any(|word| word.contains('\n')) {
        return Err(document.unsupported("model.vocab"));
    }
    Ok(words)
}

struct Document {
    file: &'static str,
    value: Value,
}

impl Document {
    fn parse(file: &'static str, bytes: &[u8]) -> Result<Document, PackError> {
        let value = serde_json::from_slice(bytes).map_err(|error| PackError::Malformed {
            file,
            problem: error.to_string(),
        })?;
        Ok(Document { file, value })
    }

    /// The value at a path of keys with dots between; null where there is none.
    fn at(&self, path: &str) -> &Value {
        path.split('.').fold(&self.value, |value, key| &value[key])
    }

    fn require(&self, path: &str, allowed: &[Value]) -> Result<(), PackError> {
        if allowed.contains(self.at(path)) {
            Ok(())
        } else {
            Err(self.unsupported(path))
        }
    }

    fn number(&self, path: &str) -> Result<usize, PackError> {
        let number = self.at(path).as_u64().and_then(|n| usize::try_from(n).ok());
        number.ok_or_else(|| self.unsupported(path))
    }

    fn flag(&self, path: &str) -> Result<bool, PackError> {
        self.at(path).as_bool().ok_or_else(|| self.unsupported(path))
    }

    fn text(&self, path: &str) -> Result<String, PackError> {
        let text = self.at(path).as_str().map(str::to_owned);
        text.ok_or_else(|| self.unsupported(path))
    }

    fn unsupported(&self, path: &str) -> PackError {
        let mut found = self.at(path).to_string();
        if found.len() > 80 {
            found = "too long to show".to_owned();
        }
        PackError::Unsupported {
            file: self.file,
            key: path.to_owned(),
            found,
        }
    }
}
