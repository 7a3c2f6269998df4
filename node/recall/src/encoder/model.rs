//! The shape of a BERT sentence model and its forward pass, written once and compiled for every kernel.

use std::borrow::Cow;
use std::cell::Cell;
use std::ops::Range;

use super::kernel::float::{self, NormView};
use super::kernel::{Kernels, MatrixView};
use super::weights::{Packed, SPREAD, SectionKind};
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
    /// Place among all matrices of the model.
    index: usize,
    weights: Range<usize>,
    /// Without the [`SPREAD`] copies.
    inputs: usize,
    /// The channels that the copies belong to.
    sources: Box<[u16]>,
    /// Per channel one over the number of its copies.
    shares: Box<[f32]>,
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
    linear: LinearScratch,
    heads: float::HeadScratch,
    pub(super) pooled: Vec<f32>,
}

/// The last product of rows and a matrix, still in whole numbers.
#[derive(Default)]
struct LinearScratch {
    quantised: Quantised,
    row_scales: Vec<f32>,
    sums: Vec<i32>,
    observed: Option<Observed>,
}

/// The largest size of every input channel of every matrix: what the packer spreads by.
pub(super) type Observed = Vec<Vec<f32>>;

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
        let count = Cell::new(0);
        let matrix = |name: String, outputs, inputs| {
            Matrix::load(&packed, count.replace(count.get() + 1), &name, outputs, inputs)
        };
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

    /// Whole-number products into `linear.sums`, row scales into `linear.row_scales`.
    #[inline(always)]
    fn multiply<K: Kernels>(&self, kernel: K, matrix: &Matrix, input: &[f32], linear: &mut LinearScratch) {
        if let Some(observed) = &mut linear.observed {
            observe(&mut observed[matrix.index], input);
        }
        let activations = K::buffer(&mut linear.quantised);
        let spread = (&*matrix.shares, &*matrix.sources);
        float::quantise::<K>(input, spread, activations, &mut linear.row_scales);
        let view = MatrixView {
            weights: &self.bytes[matrix.weights.clone()],
            inputs: matrix.inputs + SPREAD,
            outputs: matrix.bias.len(),
            offset_sums: &matrix.offset_sums,
        };
        kernel.sums(activations, view, &mut linear.sums);
    }
}

#[cold]
fn observe(largest: &mut [f32], input: &[f32]) {
    for row in input.chunks_exact(largest.len()) {
        for (largest, x) in largest.iter_mut().zip(row) {
            *largest = largest.max(x.abs());
        }
    }
}

impl Matrix {
    fn load(packed: &Packed, index: usize, name: &str, outputs: usize, inputs: usize) -> Result<Matrix, ModelError> {
        let columns = inputs + SPREAD;
        let weights = packed.section(name, SectionKind::I8Blocked, outputs, columns)?;
        if packed.bytes[weights.clone()].contains(&i8::MIN.cast_unsigned()) {
            return Err(ModelError::Section {
                name: name.to_owned(),
                problem: "holds a weight of -128",
            });
        }
        let sources = packed.channels(&format!("{name}.spread"), SPREAD, inputs)?;
        let mut copies = vec![1.0f32; inputs];
        for source in &sources {
            copies[usize::from(*source)] += 1.0;
        }
        Ok(Matrix {
            index,
            offset_sums: MatrixView::offset_sums_of(&packed.bytes[weights.clone()], columns),
            weights,
            inputs,
            sources,
            shares: copies.iter().map(|copies| 1.0 / copies).collect(),
            scales: packed.floats(&format!("{name}.scale"), 1, outputs)?,
            bias: packed.floats(&format!("{name}.bias"), 1, outputs)?,
        })
    }
}

impl Matrix {
    fn columns(&self) -> float::Columns<'_> {
        (&self.scales, &self.bias)
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
        let Forward { model, ids, scratch } = self;
        scratch.prepare(ids.len(), model.inner);
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
        let linear = &mut scratch.linear;
        let input_blocks = scratch.hidden.chunks(ROWS_MAX * DIMENSIONS);
        let output_blocks = scratch.attention.chunks_mut(ROWS_MAX * ATTENTION_WIDTH);
        for (input, output) in input_blocks.zip(output_blocks) {
            let matrix = &layer.attention_in;
            self.multiply(kernel, matrix, input, linear);
            float::scale_sums::<K>(&linear.sums, &linear.row_scales, matrix.columns(), output);
        }
        float::attention::<K>(&scratch.attention, &mut scratch.heads, &mut scratch.context);
        let input_blocks = scratch.context.chunks(ROWS_MAX * DIMENSIONS);
        let output_blocks = scratch.hidden.chunks_mut(ROWS_MAX * DIMENSIONS);
        for (input, output) in input_blocks.zip(output_blocks) {
            let matrix = &layer.attention_out;
            self.multiply(kernel, matrix, input, linear);
            float::add_sums::<K>(&linear.sums, &linear.row_scales, matrix.columns(), output);
            float::norm_rows::<K>(output, layer.attention_norm.view());
        }
    }

    #[inline(always)]
    fn feed_forward<K: Kernels>(&self, kernel: K, layer: &Layer, scratch: &mut Scratch) {
        let linear = &mut scratch.linear;
        for block in scratch.hidden.chunks_mut(ROWS_MAX * DIMENSIONS) {
            let inner = &mut scratch.inner[..block.len() / DIMENSIONS * self.inner];
            let matrix = &layer.inner_in;
            self.multiply(kernel, matrix, block, linear);
            float::scale_sums_gelu::<K>(&linear.sums, &linear.row_scales, matrix.columns(), inner);
            let matrix = &layer.inner_out;
            self.multiply(kernel, matrix, inner, linear);
            float::add_sums::<K>(&linear.sums, &linear.row_scales, matrix.columns(), block);
            float::norm_rows::<K>(block, layer.output_norm.view());
        }
    }
}

impl Scratch {
    #[inline(always)]
    fn prepare(&mut self, tokens: usize, inner: usize) {
        let rows = tokens.min(ROWS_MAX);
        self.hidden.resize(tokens * DIMENSIONS, 0.0);
        self.attention.resize(tokens * ATTENTION_WIDTH, 0.0);
        self.context.resize(tokens * DIMENSIONS, 0.0);
        self.inner.resize(rows * inner, 0.0);
        self.pooled.resize(DIMENSIONS, 0.0);
        self.heads.prepare(tokens);
    }

    /// From now on notes what goes into every matrix of `model`.
    pub(super) fn observe(&mut self, model: &Model) {
        let mut observed = Observed::new();
        for layer in &model.layers {
            let matrices = [
                &layer.attention_in,
                &layer.attention_out,
                &layer.inner_in,
                &layer.inner_out,
            ];
            observed.extend(matrices.map(|matrix| vec![0.0; matrix.inputs]));
        }
        self.linear.observed = Some(observed);
    }

    pub(super) fn take_observed(&mut self) -> Observed {
        self.linear.observed.take().unwrap_or_default()
    }
}
