//! What the packer refuses. The path that works is covered by the packed file itself, which every other test loads.

use serde_json::{Value, json};

use super::config::Described;
use super::*;

fn config() -> Value {
    json!({
        "model_type": "bert", "hidden_act": "gelu", "position_embedding_type": "absolute", "hidden_size": 384,
        "num_attention_heads": 12, "intermediate_size": 1536, "num_hidden_layers": 6, "layer_norm_eps": 1e-12,
        "max_position_embeddings": 512, "vocab_size": 4,
    })
}

fn tokenizer() -> Value {
    json!({
        "added_tokens": [],
        "normalizer": {
            "type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true, "strip_accents": null,
            "lowercase": true,
        },
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {"type": "BertProcessing", "cls": ["[CLS]", 1], "sep": ["[SEP]", 2]},
        "model": {
            "type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100, "vocab": {"[UNK]": 0, "[CLS]": 1, "[SEP]": 2, "hello": 3},
        },
    })
}

fn describe(config: Value, tokenizer: Value, pooling: Option<Value>) -> Result<Described, PackError> {
    let pooling = pooling.map(|pooling| pooling.to_string().into_bytes());
    Described::parse(
        config.to_string().as_bytes(),
        tokenizer.to_string().as_bytes(),
        pooling.as_deref(),
        None,
    )
}

fn message(result: Result<Described, PackError>) -> String {
    match result {
        Ok(_) => "accepted".to_owned(),
        Err(error) => error.to_string(),
    }
}

#[test]
fn a_model_of_the_implemented_kind_is_accepted() {
    let described = describe(config(), tokenizer(), Some(json!({"pooling_mode_mean_tokens": true})));
    let described = described.expect("nothing here is unusual");
    assert_eq!((described.layers, described.tokens_max), (6, 256));
    assert_eq!(described.vocabulary, ["[UNK]", "[CLS]", "[SEP]", "hello"]);
}

#[test]
fn what_the_encoder_does_not_implement_is_named_by_its_key() {
    let refusals = [
        ("hidden_act", json!("relu")),
        ("position_embedding_type", json!("relative_key")),
        ("hidden_size", json!(768)),
        ("num_attention_heads", json!(6)),
        ("intermediate_size", json!(1000)),
        ("model_type", json!("roberta")),
        ("vocab_size", json!(5)),
    ];
    for (key, value) in refusals {
        let mut config = config();
        config[key] = value.clone();
        let expected = format!("config.json: {key} is {value}, which this encoder does not implement");
        assert_eq!(message(describe(config, tokenizer(), None)), expected);
    }
    let mut other = tokenizer();
    other["model"]["type"] = json!("BPE");
    assert_eq!(
        message(describe(config(), other, None)),
        "tokenizer.json: model.type is \"BPE\", which this encoder does not implement"
    );
    let first_token = json!({"pooling_mode_cls_token": true, "pooling_mode_mean_tokens": false});
    assert_eq!(
        message(describe(config(), tokenizer(), Some(first_token))),
        "1_Pooling/config.json: pooling_mode_cls_token is true, which this encoder does not implement"
    );
}

#[test]
fn a_vocabulary_with_a_gap_is_refused() {
    let mut gap = tokenizer();
    gap["model"]["vocab"]["hello"] = json!(7);
    assert!(message(describe(config(), gap, None)).contains("model.vocab[\"hello\"]"));
}

#[test]
fn a_tensor_must_lie_inside_of_the_file_and_fit_its_shape() {
    let file = |table: Value, data: &[u8]| {
        let table = table.to_string();
        let mut file = (table.len() as u64).to_le_bytes().to_vec();
        file.extend_from_slice(table.as_bytes());
        file.extend_from_slice(data);
        file
    };
    let entry = |offsets: [usize; 2]| json!({"x": {"dtype": "F32", "shape": [2], "data_offsets": offsets}});
    let good = file(entry([0, 8]), &[0; 8]);
    let tensors = Tensors::parse(&good).expect("a table and eight bytes");
    assert_eq!(tensors.floats("x", &[2]).ok(), Some(vec![0.0; 2]));
    assert!(tensors.floats("x", &[3]).is_err());
    assert!(tensors.floats("y", &[2]).is_err());
    for offsets in [[0, 12], [8, 0], [0, 4], [usize::MAX, usize::MAX]] {
        let bad = file(entry(offsets), &[0; 8]);
        let tensors = Tensors::parse(&bad).expect("the table itself is fine");
        assert!(tensors.floats("x", &[2]).is_err(), "{offsets:?}");
    }
    assert!(Tensors::parse(&[255; 8]).is_err());
    assert!(Tensors::parse(&[0; 3]).is_err());
}

#[test]
fn another_file_under_a_known_name_is_refused() {
    let directory = std::env::temp_dir().join(format!("waggle-pack-{}", std::process::id()));
    std::fs::create_dir_all(&directory).expect("a place for files");
    for file in ["model.safetensors", "tokenizer.json", "config.json"] {
        std::fs::write(directory.join(file), "other").expect("room for a few bytes");
    }
    let options = PackOptions {
        name: "all-minilm-l6-v2".to_owned(),
        ..PackOptions::default()
    };
    let result = pack_directory(&directory, &options);
    std::fs::remove_dir_all(&directory).expect("the place is ours");
    assert!(matches!(
        result,
        Err(PackError::OtherFile {
            file: "model.safetensors",
            ..
        })
    ));
}
