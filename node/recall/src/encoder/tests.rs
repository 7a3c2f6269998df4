//! Loading and embedding with the model inside the program.

use std::borrow::Cow;
use std::sync::Arc;

use super::*;

fn encoder() -> Encoder {
    Encoder::embedded().expect("the embedded model loads")
}

fn refused(change: impl FnOnce(&mut Vec<u8>)) -> ModelError {
    let mut bytes = EMBEDDED.0.to_vec();
    change(&mut bytes);
    match Encoder::from_packed(Cow::Owned(bytes), KernelChoice::Detect) {
        Ok(_) => panic!("a damaged file was loaded"),
        Err(error) => error,
    }
}

#[test]
fn the_embedded_model_is_aligned_and_keeps_its_id() {
    assert_eq!(EMBEDDED.0.as_ptr().addr() % 64, 0);
    // Changing it orphans every stored vector: a new file in model/ needs a decision, not a test edit.
    assert_eq!(encoder().model_id(), "all-minilm-l6-v2/i8-1/6dbc5eed9900078e");
    assert_eq!(encoder().tokens_max(), 256);
}

#[test]
fn a_damaged_file_is_refused_with_the_reason() {
    assert!(matches!(refused(|b| b.truncate(10)), ModelError::NotAModel));
    assert!(matches!(refused(|b| b[0] = b'X'), ModelError::NotAModel));
    assert!(matches!(refused(|b| b[8] = 9), ModelError::FormatVersion { found: 9 }));
    assert!(matches!(refused(|b| b.truncate(1 << 20)), ModelError::Length { .. }));
    assert!(matches!(refused(|b| b[20_000_000] ^= 1), ModelError::Checksum));
}

#[test]
fn what_has_no_words_has_no_vector() {
    let encoder = encoder();
    for text in ["", " \n\t", "สวัสดีชาวโลก", "ᚠᚢᚦᚨᚱᚲ"] {
        let embedding = encoder.embed(text);
        assert_eq!(embedding.vector, None, "{text:?}");
        assert!(!embedding.truncated);
    }
    assert_eq!(encoder.embed("").tokens, 2);
    // One unknown sign among words takes nothing away.
    assert!(encoder.embed("what a day 🎉").vector.is_some());
}

#[test]
fn a_long_text_is_cut_and_says_so() {
    let encoder = encoder();
    let long = "one more word ".repeat(100_000);
    let embedding = encoder.embed(&long);
    assert_eq!(embedding.tokens, 256);
    assert!(embedding.truncated);
    let vector = embedding.vector.expect("words have a vector");
    assert_eq!(vector.check(), Ok(()));
    assert_eq!(encoder.count_tokens(&long), 300_002);
    let exact = encoder.embed(&"word ".repeat(254));
    assert!(!exact.truncated);
    assert_eq!(exact.tokens, 256);
}

#[test]
fn like_is_near_and_unlike_is_far() {
    let encoder = encoder();
    let vector = |text| encoder.embed(text).vector.expect("words have a vector");
    let question = vector("Which food can she not eat?");
    let answer = vector("My daughter is allergic to walnuts.");
    let other = vector("The build is green on the main branch.");
    assert!(question.dot(&answer) > question.dot(&other) + 0.2);
}

#[test]
fn threads_share_one_encoder_and_get_the_same_bytes() {
    let encoder = Arc::new(encoder());
    let texts = ["a short one", "the quick survey of tools gave us three candidates"];
    let alone: Vec<Embedding> = texts.iter().map(|text| encoder.embed(text)).collect();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..5 {
                    for (text, alone) in texts.iter().zip(&alone) {
                        assert_eq!(&encoder.embed(text), alone);
                    }
                }
            });
        }
    });
}
