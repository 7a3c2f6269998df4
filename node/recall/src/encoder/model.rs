//! The shape of a BERT sentence model and its forward pass, written once and compiled for every kernel.

use std::borrow::Cow;
use std::ops::Range;

use super::kernel::float::{self, NormView};
use super::kernel::{Kernels, MatrixView};
use super::weights::{Packed, SectionKind};
use super::{DIMENSIONS, ModelError};

pub(super) const HEADS: usize = 12;
pub(super) const HEAD_WIDTH: usize = DIMENSIONS / HEADS;
/// Query, key and value of a token side by side: one matrix makes all three.
pub(super) const ATTENTION_WIDTH: usize = 3 * DIMENSIONS;
/// Tokens that pass through a linear layer together. Enough to reuse a panel of weights while it is in the cache, few
/// enough that the intermediate rows stay in the cache too, and that a long text needs no large buffers.
const ROWS_MAX: usize = 48;

pub(super) struct Model {
    bytes: Cow<'static, [u8]>,
    inner: usize,
    token_rows: Range<usize>,
    token_scales: Box<[f32]>,
    /// Position plus the first token type, which is the only one that single texts use.
    positions: Box<[f32]>,
    embedding_norm: Norm,
    layers: Vec<Layer>,
}

struct Layer {
    attention_in: Matrix,
    attention_out: Matrix,
    attention_norm: Norm,
    inner_in: Matrix,
    inner_out: Matrix,
    output_norm: Norm,
}

struct Matrix {
    weights: Range<usize>,
    inputs: usize,
    scales: Box<[f32]>,
    bias: Box<[f32]>,
    offset_sums: Box<[i32]>,
}

struct Norm {
    gain: Box<[f32]>,
    shift: Box<[f32]>,
    epsilon: f32,
}

/// Buffers of one encoding, kept and used again.
#[derive(Default)]
pub(super) struct Scratch {
    hidden: Vec<f32>,
    attention: Vec<f32>,
    context: Vec<f32>,
    inner: Vec<f32>,
    sums: Vec<i32>,
    row_scales: Vec<f32>,
    quantised: Quantised,
    heads: float::HeadScratch,
    pub(super) pooled: Vec<f32>,
}

/// Activations as whole numbers, in the form that a kernel multiplies. Only one of the two is ever filled.
#[derive(Default)]
pub(super) struct Quantised {
    /// Value + 128, for instructions that take one unsigned operand.
    pub(super) offset: Vec<u8>,
    pub(super) wide: Vec<i16>,
}

impl Model {
    pub(super) fn load(packed: Packed) -> Result<Model, ModelError> {
        let manifest = &packed.manifest;
        let (inner, epsilon) = (manifest.inner, manifest.norm_epsilon);
        let words = packed.vocabulary_size();
        let norm = |name: &str| -> Result<Norm, ModelError> {
            Ok(Norm {
                gain: packed.floats(&format!("{name}.gain"), 1, DIMENSIONS)?,
                shift: packed.floats(&format!("{name}.shift"), 1, DIMENSIONS)?,
                epsilon,
            })
        };
        let matrix = |name: String, outputs, inputs| Matrix::load(&packed, &name, outputs, inputs);
        let mut layers = Vec::with_capacity(manifest.layers);
        for index in 0..manifest.layers {
            let name = |part: &str| format!("layer.{index}.{part}");
            layers.push(Layer {
                attention_in: matrix(name("attention_in"), ATTENTION_WIDTH, DIMENSIONS)?,
                attention_out: matrix(name("attention_out"), DIMENSIONS, DIMENSIONS)?,
                attention_norm: norm(&name("attention_norm"))?,
                inner_in: matrix(name("inner_in"), inner, DIMENSIONS)?,
                inner_out: matrix(name("inner_out"), DIMENSIONS, inner)?,
                output_norm: norm(&name("output_norm"))?,
            });
        }
        Ok(Model {
            inner,
            token_rows: packed.section("tokens", SectionKind::I8Rows, words, DIMENSIONS)?,
            token_scales: packed.floats("tokens.scale", 1, words)?,
            positions: packed.floats("positions", manifest.tokens_max, DIMENSIONS)?,
            embedding_norm: norm("embedding_norm")?,
            layers,
            bytes: packed.bytes,
        })
    }

    fn view<'a>(&'a self, matrix: &'a Matrix) -> MatrixView<'a> {
        MatrixView {
            weights: &self.bytes[matrix.weights.clone()],
            inputs: matrix.inputs,
            outputs: matrix.bias.len(),
            offset_sums: &matrix.offset_sums,
        }
    }
}

impl Matrix {
    fn load(
        packed: &Packed,
        name: &str,
        outputs: usize,
        inputs: usize,
    ) -> Result<Matrix, ModelError> {
        let weights = packed.section(name, SectionKind::I8Blocked, outputs, inputs)?;
        if packed.bytes[weights.clone()].contains(&i8::MIN.cast_unsigned()) {
            return Err(ModelError::Section {
                name: name.to_owned(),
                problem: "holds a weight of -128",
            });
        }
        Ok(Matrix {
            offset_sums: MatrixView::offset_sums_of(&packed.bytes[weights.clone()], inputs),
            weights,
            inputs,
            scales: packed.floats(&format!("{name}.scale"), 1, outputs)?,
            bias: packed.floats(&format!("{name}.bias"), 1, outputs)?,
        })
    }
}

impl Norm {
    fn view(&self) -> NormView<'_> {
        NormView {
            gain: &self.gain,
            shift: &self.shift,
            epsilon: self.epsilon,
        }
    }
}

/// One text on its way through the model. `scratch.pooled` holds the mean of the last layer afterwards, not normalised.
pub(super) struct Forward<'a> {
    pub(super) model: &'a Model,
    /// Between 1 and the longest input, each below the size of the vocabulary: the tokenizer's promise.
    pub(super) ids: &'a [u32],
    pub(super) scratch: &'a mut Scratch,
}

impl Forward<'_> {
    /// Inlined into one function per kernel, compiled with that kernel's instructions.
    #[inline(always)]
    pub(super) fn run<K: Kernels>(self, kernel: K) {
        let Forward {
            model,
            ids,
            scratch,
        } = self;
        scratch.prepare::<K>(ids.len(), model.inner);
        model.embed_tokens::<K>(ids, scratch);
        for layer in &model.layers {
            model.attend(kernel, layer, scratch);
            model.feed_forward(kernel, layer, scratch);
        }
        float::mean_rows(&scratch.hidden, &mut scratch.pooled);
    }
}

impl Model {
    #[inline(always)]
    fn embed_tokens<K: Kernels>(&self, ids: &[u32], scratch: &mut Scratch) {
        let (tokens, _) = self.bytes[self.token_rows.clone()].as_chunks::<DIMENSIONS>();
        let (positions, _) = self.positions.as_chunks::<DIMENSIONS>();
        let (rows, _) = scratch.hidden.as_chunks_mut::<DIMENSIONS>();
        for ((row, &id), position) in rows.iter_mut().zip(ids).zip(positions) {
            let scale = self.token_scales[id as usize];
            let token = &tokens[id as usize];
            for ((out, &weight), place) in row.iter_mut().zip(token).zip(position) {
                *out = f32::from(weight.cast_signed()) * scale + place;
            }
            float::norm::<K>(row, self.embedding_norm.view());
        }
    }

    #[inline(always)]
    fn attend<K: Kernels>(&self, kernel: K, layer: &Layer, scratch: &mut Scratch) {
        let matrix = &layer.attention_in;
        let input_blocks = scratch.hidden.chunks(ROWS_MAX * DIMENSIONS);
        let output_blocks = scratch.attention.chunks_mut(ROWS_MAX * ATTENTION_WIDTH);
        for (input, output) in input_blocks.zip(output_blocks) {
            let activations = K::buffer(&mut scratch.quantised);
            float::quantise::<K>(input, DIMENSIONS, activations, &mut scratch.row_scales);
            kernel.sums(activations, self.view(matrix), &mut scratch.sums);
            let columns = (&*matrix.scales, &*matrix.bias);
            float::scale_sums::<K>(&scratch.sums, &scratch.row_scales, columns, output);
        }
        float::attention::<K>(
            &scratch.attention,
            &mut scratch.heads,
            &mut scratch.context,
        );
        let matrix = &layer.attention_out;
        let input_blocks = scratch.context.chunks(ROWS_MAX * DIMENSIONS);
        let output_blocks = scratch.hidden.chunks_mut(ROWS_MAX * DIMENSIONS);
        for (input, output) in input_blocks.zip(output_blocks) {
            let activations = K::buffer(&mut scratch.quantised);
            float::quantise::<K>(input, DIMENSIONS, activations, &mut scratch.row_scales);
            kernel.sums(activations, self.view(matrix), &mut scratch.sums);
            let columns = (&*matrix.scales, &*matrix.bias);
            float::add_sums::<K>(&scratch.sums, &scratch.row_scales, columns, output);
            float::norm_rows::<K>(output, layer.attention_norm.view());
        }
    }

    #[inline(always)]
    fn feed_forward<K: Kernels>(&self, kernel: K, layer: &Layer, scratch: &mut Scratch) {
        for block in scratch.hidden.chunks_mut(ROWS_MAX * DIMENSIONS) {
            let rows = block.len() / DIMENSIONS;
            let inner = &mut scratch.inner[..rows * self.inner];
            let activations = K::buffer(&mut scratch.quantised);
            let scales = &mut scratch.row_scales;

            let matrix = &layer.inner_in;
            float::quantise::<K>(block, DIMENSIONS, activations, scales);
            kernel.sums(activations, self.view(matrix), &mut scratch.sums);
            let columns = (&*matrix.scales, &*matrix.bias);
            float::scale_sums_gelu::<K>(&scratch.sums, scales, columns, inner);

            let matrix = &layer.inner_out;
            float::quantise::<K>(inner, self.inner, activations, scales);
            kernel.sums(activations, self.view(matrix), &mut scratch.sums);
            let columns = (&*matrix.scales, &*matrix.bias);
            float::add_sums::<K>(&scratch.sums, scales, columns, block);
            float::norm_rows::<K>(block, layer.output_norm.view());
        }
    }
}

impl Scratch {
    #[inline(always)]
    fn prepare<K: Kernels>(&mut self, tokens: usize, inner: usize) {
        let rows = tokens.min(ROWS_MAX);
        self.hidden.resize(tokens * DIMENSIONS, 0.0);
        self.attention.resize(tokens * ATTENTION_WIDTH, 0.0);
        self.context.resize(tokens * DIMENSIONS, 0.0);
        self.inner.resize(rows * inner, 0.0);
        self.pooled.resize(DIMENSIONS, 0.0);
        let widest = inner.max(ATTENTION_WIDTH);
        self.sums.reserve(rows * widest);
        self.row_scales.reserve(rows);
        K::buffer(&mut self.quantised).reserve(rows * widest);
        self.heads.prepare(tokens);
    }
}
