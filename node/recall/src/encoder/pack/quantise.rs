//! The tensors of a BERT model as int8 with one scale per output channel or per token.

use super::super::weights::{Manifest, SPREAD, SectionKind, blocked_index};
use super::safetensors::Tensors;
use super::{DIMENSIONS, PackError, Part};

pub(super) fn sections(
    tensors: &Tensors<'_>,
    manifest: &Manifest,
    words: usize,
    spread: &mut dyn Iterator<Item = [u16; SPREAD]>,
    parts: &mut Vec<Part>,
) -> Result<(), PackError> {
    let mut matrix = |weights: &[f32], bias: &[f32], name: String, parts: &mut Vec<Part>| {
        matrix(weights, bias, spread.next().unwrap_or([0; SPREAD]), name, parts);
    };
    let embeddings = tensors.floats("embeddings.word_embeddings.weight", &[words, DIMENSIONS])?;
    let (rows, scales) = quantised_rows(&embeddings, DIMENSIONS);
    parts.push(Part {
        name: "tokens".to_owned(),
        kind: SectionKind::I8Rows,
        rows: words,
        columns: DIMENSIONS,
        bytes: rows.iter().map(|w| w.cast_unsigned()).collect(),
    });
    parts.push(floats("tokens.scale".to_owned(), 1, &scales));
    parts.push(floats(
        "positions".to_owned(),
        manifest.tokens_max,
        &positions(tensors, manifest.tokens_max)?,
    ));
    norm(tensors, "embeddings.LayerNorm", "embedding_norm", parts)?;

    for index in 0..manifest.layers {
        let from = |part: &str| format!("encoder.layer.{index}.{part}");
        let to = |part: &str| format!("layer.{index}.{part}");
        let inner = manifest.inner;

        let (mut weights, mut bias) = (Vec::new(), Vec::new());
        for part in ["query", "key", "value"] {
            let name = from(&format!("attention.self.{part}"));
            weights.extend(tensors.floats(&format!("{name}.weight"), &[DIMENSIONS; 2])?);
            bias.extend(tensors.floats(&format!("{name}.bias"), &[DIMENSIONS])?);
        }
        matrix(&weights, &bias, to("attention_in"), parts);

        let mut dense = |part: &str, name: &str, outputs: usize, inputs: usize| {
            let part = from(part);
            let weights = tensors.floats(&format!("{part}.weight"), &[outputs, inputs])?;
            let bias = tensors.floats(&format!("{part}.bias"), &[outputs])?;
            matrix(&weights, &bias, to(name), parts);
            Ok::<(), PackError>(())
        };
        dense("attention.output.dense", "attention_out", DIMENSIONS, DIMENSIONS)?;
        dense("intermediate.dense", "inner_in", inner, DIMENSIONS)?;
        dense("output.dense", "inner_out", DIMENSIONS, inner)?;

        let attention_norm = from("attention.output.LayerNorm");
        norm(tensors, &attention_norm, &to("attention_norm"), parts)?;
        norm(tensors, &from("output.LayerNorm"), &to("output_norm"), parts)?;
    }
    Ok(())
}

/// Positions with the first token type added: single texts never use the second.
fn positions(tensors: &Tensors<'_>, tokens_max: usize) -> Result<Vec<f32>, PackError> {
    let name = "embeddings.position_embeddings.weight";
    let mut places = tensors.floats(name, &[tensors.rows(name), DIMENSIONS])?;
    if places.len() < tokens_max * DIMENSIONS {
        return Err(PackError::Tensor {
            tensor: name.to_owned(),
            problem: "has fewer positions than the longest input",
        });
    }
    places.truncate(tokens_max * DIMENSIONS);
    let name = "embeddings.token_type_embeddings.weight";
    let types = tensors.floats(name, &[tensors.rows(name), DIMENSIONS])?;
    for row in places.chunks_exact_mut(DIMENSIONS) {
        for (x, first) in row.iter_mut().zip(&types) {
            *x += first;
        }
    }
    Ok(places)
}

fn norm(tensors: &Tensors<'_>, from: &str, to: &str, parts: &mut Vec<Part>) -> Result<(), PackError> {
    for (tensor, name) in [("weight", "gain"), ("bias", "shift")] {
        let values = tensors.floats(&format!("{from}.{tensor}"), &[DIMENSIONS])?;
        parts.push(floats(format!("{to}.{name}"), 1, &values));
    }
    Ok(())
}

/// `sources` names the channels of which the matrix gets further copies.
fn matrix(weights: &[f32], bias: &[f32], sources: [u16; SPREAD], name: String, parts: &mut Vec<Part>) {
    let outputs = bias.len();
    let inputs = weights.len() / outputs;
    let columns = inputs + SPREAD;
    let (rows, scales) = quantised_rows(weights, inputs);
    let mut blocked = vec![0u8; outputs * columns];
    for (output, row) in rows.chunks_exact(inputs).enumerate() {
        let copies = sources.iter().map(|source| &row[usize::from(*source)]);
        for (input, weight) in row.iter().chain(copies).enumerate() {
            blocked[blocked_index(output, input, columns)] = weight.cast_unsigned();
        }
    }
    parts.push(floats(format!("{name}.scale"), 1, &scales));
    parts.push(floats(format!("{name}.bias"), 1, bias));
    parts.push(Part {
        name: format!("{name}.spread"),
        kind: SectionKind::U16,
        rows: 1,
        columns: SPREAD,
        bytes: sources.iter().flat_map(|source| source.to_le_bytes()).collect(),
    });
    parts.push(Part {
        name,
        kind: SectionKind::I8Blocked,
        rows: outputs,
        columns,
        bytes: blocked,
    });
}

fn quantised_rows(values: &[f32], width: usize) -> (Vec<i8>, Vec<f32>) {
    let mut whole = Vec::with_capacity(values.len());
    let mut scales = Vec::with_capacity(values.len() / width);
    for row in values.chunks_exact(width) {
        let largest = row.iter().fold(f32::MIN_POSITIVE, |max, x| max.max(x.abs()));
        scales.push(largest / 127.0);
        whole.extend(row.iter().map(|x| (x / largest * 127.0).round_ties_even() as i8));
    }
    (whole, scales)
}

fn floats(name: String, rows: usize, values: &[f32]) -> Part {
    Part {
        name,
        kind: SectionKind::F32,
        rows,
        columns: values.len() / rows,
        bytes: values.iter().flat_map(|x| x.to_le_bytes()).collect(),
    }
}
