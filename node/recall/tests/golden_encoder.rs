//! 200 texts against the original f32 model: equal token ids, and vectors that point the same way on every kernel.
//!
//! The margin is thin by design. If a text fails, look for the bug before the bar.

use std::sync::OnceLock;

use waggle_recall::encoder::{DIMENSIONS, Encoder, Kernel, KernelChoice, Vector};

const COSINE_MIN: f32 = 0.99;
const COSINE_MEAN_MIN: f32 = 0.995;

struct Golden {
    text: String,
    ids: Vec<u32>,
    reference: Vec<f32>,
}

fn golden() -> &'static [Golden] {
    static GOLDEN: OnceLock<Vec<Golden>> = OnceLock::new();
    GOLDEN.get_or_init(|| {
        let texts = include_str!("golden/texts.jsonl").lines();
        let ids = include_str!("golden/token_ids.txt").lines();
        let (pairs, _) = include_bytes!("golden/vectors.i16").as_chunks::<2>();
        let references = pairs.chunks_exact(DIMENSIONS);
        texts
            .zip(ids)
            .zip(references)
            .map(|((text, ids), reference)| Golden {
                text: serde_json::from_str(text).expect("every line is a JSON string"),
                ids: ids.split(' ').map(|id| id.parse().expect("a token id")).collect(),
                reference: reference
                    .iter()
                    .map(|pair| f32::from(i16::from_le_bytes(*pair)) / 32767.0)
                    .collect(),
            })
            .collect()
    })
}

fn cosine(vector: &Vector, reference: &[f32]) -> f32 {
    let (mut dot, mut left, mut right) = (0.0f32, 0.0f32, 0.0f32);
    for (component, y) in vector.components.iter().zip(reference) {
        let x = f32::from(*component) * vector.scale;
        dot += x * y;
        left += x * x;
        right += y * y;
    }
    dot / (left * right).sqrt()
}

#[test]
fn token_ids_equal_those_of_the_original_tokenizer() {
    let encoder = Encoder::embedded().expect("the embedded model loads");
    assert_eq!(golden().len(), 200);
    for golden in golden() {
        assert_eq!(encoder.token_ids(&golden.text), golden.ids, "{:?}", golden.text);
        let seen = encoder.count_tokens(&golden.text).min(encoder.tokens_max());
        assert_eq!(seen, golden.ids.len(), "{:?}", golden.text);
    }
}

#[test]
fn vectors_follow_the_original_model_on_the_portable_kernel() {
    check_vectors(Kernel::Portable);
}

#[test]
fn vectors_follow_the_original_model_on_avx2() {
    check_vectors(Kernel::Avx2);
}

#[test]
fn vectors_follow_the_original_model_on_avx512_vnni() {
    check_vectors(Kernel::Avx512Vnni);
}

fn check_vectors(kernel: Kernel) {
    if !kernel.is_available() {
        eprintln!("this machine cannot run {kernel}");
        return;
    }
    let encoder = Encoder::embedded_with(KernelChoice::Only(kernel)).expect("the model loads");
    let mut cosines = Vec::new();
    for golden in golden() {
        let vector = encoder.embed_regardless(&golden.text).expect("any tokens have a mean");
        assert_eq!(vector.check(), Ok(()), "{:?}", golden.text);
        cosines.push((cosine(&vector, &golden.reference), &golden.text));
        if let Some(public) = encoder.embed(&golden.text).vector {
            assert_eq!(public, vector, "{:?}", golden.text);
        }
    }
    cosines.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mean = cosines.iter().map(|(cosine, _)| cosine).sum::<f32>() / cosines.len() as f32;
    let (lowest, text) = &cosines[0];
    eprintln!("{kernel}: cosine mean {mean:.5}, lowest {lowest:.5}");
    for (cosine, text) in &cosines[..5] {
        eprintln!("  {cosine:.5} {:?}", text.chars().take(60).collect::<String>());
    }
    assert!(*lowest >= COSINE_MIN, "{kernel}: {lowest} for {text:?}");
    assert!(mean >= COSINE_MEAN_MIN, "{kernel}: mean {mean}");
}
