//! The f32 steps between the matrices. Everything is inlined into the pass of a kernel and turned into its vector
//! instructions there; loops over arrays of [`LANES`] values tell the compiler that sums may be split that way.

use super::Kernels;
use crate::encoder::DIMENSIONS;
use crate::encoder::model::{ATTENTION_WIDTH, HEAD_WIDTH, HEADS};

const LANES: usize = 16;
/// Rows of queries that share one reading of keys and values.
const QUERY_ROWS: usize = 4;
/// Adding it leaves the nearest whole number in the low bits: rounding that every vector unit can do.
const ROUNDING: f32 = 12_582_912.0;

#[derive(Clone, Copy)]
pub(in crate::encoder) struct NormView<'a> {
    pub(in crate::encoder) gain: &'a [f32],
    pub(in crate::encoder) shift: &'a [f32],
    pub(in crate::encoder) epsilon: f32,
}

/// Per output the scale of its weights and its bias.
pub(in crate::encoder) type Columns<'a> = (&'a [f32], &'a [f32]);

#[inline(always)]
fn multiply_add<K: Kernels>(a: f32, b: f32, c: f32) -> f32 {
    if K::FUSED { a.mul_add(b, c) } else { a * b + c }
}

/// e to the x, relative error below 3e-7; for x below -87 the smallest normal numbers instead of less.
#[inline(always)]
pub(super) fn exp<K: Kernels>(x: f32) -> f32 {
    const LN2_HIGH: f32 = 0.693_359_4;
    const LN2_LOW: f32 = -2.121_944_4e-4;
    let x = if x < -87.0 { -87.0 } else { x };
    let x = if x > 88.0 { 88.0 } else { x };
    let shifted = multiply_add::<K>(x, std::f32::consts::LOG2_E, ROUNDING);
    let power = shifted - ROUNDING;
    let rest = multiply_add::<K>(power, -LN2_HIGH, x);
    let rest = multiply_add::<K>(power, -LN2_LOW, rest);
    let mut sum = 1.0 / 720.0;
    for term in [1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0, 1.0] {
        sum = multiply_add::<K>(sum, rest, term);
    }
    sum * f32::from_bits((shifted.to_bits() << 23).wrapping_add(127 << 23))
}

/// x times the share of a normal distribution below x, with the error function of Abramowitz and Stegun 7.1.26 (absolute
/// error 1.5e-7): exact enough that int8 rounding hides it, and without branches.
#[inline(always)]
pub(super) fn gelu<K: Kernels>(x: f32) -> f32 {
    let size = x.abs();
    let t = 1.0 / multiply_add::<K>(0.327_591_1 * std::f32::consts::FRAC_1_SQRT_2, size, 1.0);
    let mut sum = 1.061_405_4;
    for term in [-1.453_152, 1.421_413_7, -0.284_496_74, 0.254_829_6] {
        sum = multiply_add::<K>(sum, t, term);
    }
    let tail = 0.5 * sum * t * exp::<K>(-0.5 * x * x);
    let positive = if x > 0.0 { x } else { 0.0 };
    multiply_add::<K>(-size, tail, positive)
}

/// Shares of every channel, and the channels whose copies follow the row.
type Spread<'a> = (&'a [f32], &'a [u16]);

/// Rounds each row to -127..=127 by its own largest value, outliers shared out among copies.
#[inline(always)]
pub(in crate::encoder) fn quantise<K: Kernels>(
    input: &[f32],
    (shares, sources): Spread<'_>,
    output: &mut Vec<K::Activation>,
    scales: &mut Vec<f32>,
) {
    let width = shares.len();
    let spread_width = width + sources.len();
    let rows = input.len() / width;
    output.resize(rows * spread_width, K::Activation::default());
    scales.resize(rows, 0.0);
    let (shares, _) = shares.as_chunks::<LANES>();
    let outputs = output.chunks_exact_mut(spread_width);
    for ((row, output), scale) in input.chunks_exact(width).zip(outputs).zip(scales) {
        let (row, _) = row.as_chunks::<LANES>();
        let mut largest = [0.0f32; LANES];
        for (chunk, shares) in row.iter().zip(shares) {
            for ((max, x), share) in largest.iter_mut().zip(chunk).zip(shares) {
                let size = (x * share).abs();
                *max = if size > *max { size } else { *max };
            }
        }
        let largest = largest.into_iter().fold(f32::MIN_POSITIVE, f32::max);
        let factor = 127.0 / largest;
        *scale = largest / 127.0;
        let (output, copies) = output.split_at_mut(width);
        let (chunks, _) = output.as_chunks_mut::<LANES>();
        for ((chunk, shares), output) in row.iter().zip(shares).zip(chunks) {
            for ((x, share), out) in chunk.iter().zip(shares).zip(output) {
                let bits = multiply_add::<K>(*x * share, factor, ROUNDING).to_bits();
                *out = K::activation(bits.wrapping_sub(ROUNDING.to_bits()).cast_signed());
            }
        }
        for (copy, source) in copies.iter_mut().zip(sources) {
            *copy = output[usize::from(*source)];
        }
    }
}

/// Applies `finish(output, sum as f32, bias)` to every sum, scaled by its row and its column.
#[inline(always)]
fn each_sum<K: Kernels>(
    sums: &[i32],
    row_scales: &[f32],
    (scales, bias): Columns<'_>,
    output: &mut [f32],
    finish: impl Fn(&mut f32, f32) + Copy,
) {
    let width = bias.len();
    let rows = sums.chunks_exact(width).zip(output.chunks_exact_mut(width));
    for ((sums, output), row_scale) in rows.zip(row_scales) {
        let columns = scales.iter().zip(bias);
        for ((sum, out), (scale, bias)) in sums.iter().zip(output).zip(columns) {
            finish(out, multiply_add::<K>(*sum as f32, row_scale * scale, *bias));
        }
    }
}

#[inline(always)]
pub(in crate::encoder) fn scale_sums<K: Kernels>(
    sums: &[i32],
    row_scales: &[f32],
    columns: Columns<'_>,
    output: &mut [f32],
) {
    each_sum::<K>(sums, row_scales, columns, output, |out, x| *out = x);
}

/// Adds to what `output` holds: the way around a layer.
#[inline(always)]
pub(in crate::encoder) fn add_sums<K: Kernels>(
    sums: &[i32],
    row_scales: &[f32],
    columns: Columns<'_>,
    output: &mut [f32],
) {
    each_sum::<K>(sums, row_scales, columns, output, |out, x| *out += x);
}

#[inline(always)]
pub(in crate::encoder) fn scale_sums_gelu<K: Kernels>(
    sums: &[i32],
    row_scales: &[f32],
    columns: Columns<'_>,
    output: &mut [f32],
) {
    each_sum::<K>(sums, row_scales, columns, output, |out, x| *out = gelu::<K>(x));
}

#[inline(always)]
pub(in crate::encoder) fn norm_rows<K: Kernels>(rows: &mut [f32], norm: NormView<'_>) {
    let (rows, _) = rows.as_chunks_mut::<DIMENSIONS>();
    for row in rows {
        self::norm::<K>(row, norm);
    }
}

#[inline(always)]
pub(in crate::encoder) fn norm<K: Kernels>(row: &mut [f32; DIMENSIONS], norm: NormView<'_>) {
    let (chunks, _) = row.as_chunks_mut::<LANES>();
    let mut sums = [0.0f32; LANES];
    for chunk in chunks.iter() {
        for (sum, x) in sums.iter_mut().zip(chunk) {
            *sum += x;
        }
    }
    let mean = sums.iter().sum::<f32>() / DIMENSIONS as f32;
    let mut squares = [0.0f32; LANES];
    for chunk in chunks.iter_mut() {
        for (square, x) in squares.iter_mut().zip(chunk) {
            *x -= mean;
            *square = multiply_add::<K>(*x, *x, *square);
        }
    }
    let variance = squares.iter().sum::<f32>() / DIMENSIONS as f32;
    let factor = 1.0 / (variance + norm.epsilon).sqrt();
    for ((x, gain), shift) in row.iter_mut().zip(norm.gain).zip(norm.shift) {
        *x = multiply_add::<K>(*x * factor, *gain, *shift);
    }
}

#[inline(always)]
pub(in crate::encoder) fn mean_rows(rows: &[f32], mean: &mut [f32]) {
    mean.fill(0.0);
    let (rows, _) = rows.as_chunks::<DIMENSIONS>();
    for row in rows {
        for (sum, x) in mean.iter_mut().zip(row) {
            *sum += x;
        }
    }
    let share = 1.0 / rows.len() as f32;
    for sum in mean {
        *sum *= share;
    }
}

/// Buffers of one attention head.
#[derive(Default)]
pub(in crate::encoder) struct HeadScratch {
    /// One row per component, one column per token, filled up to whole lanes.
    keys: Vec<f32>,
    /// One row per token, gathered so that they lie together.
    values: Vec<[f32; HEAD_WIDTH]>,
    scores: Vec<f32>,
}

impl HeadScratch {
    #[inline(always)]
    pub(in crate::encoder) fn prepare(&mut self, tokens: usize) {
        let padded = tokens.next_multiple_of(LANES);
        // Cleared, so that the columns after the last token are zero.
        self.keys.clear();
        self.keys.resize(HEAD_WIDTH * padded, 0.0);
        self.values.resize(tokens, [0.0; HEAD_WIDTH]);
        self.scores.resize(QUERY_ROWS * padded, 0.0);
    }
}

/// Every token looks at every token, head by head. `input` holds queries, keys and values side by side.
#[inline(always)]
pub(in crate::encoder) fn attention<K: Kernels>(input: &[f32], scratch: &mut HeadScratch, output: &mut [f32]) {
    let tokens = input.len() / ATTENTION_WIDTH;
    let padded = tokens.next_multiple_of(LANES);
    for head in 0..HEADS {
        let at = head * HEAD_WIDTH;
        for (token, row) in input.chunks_exact(ATTENTION_WIDTH).enumerate() {
            let key = &row[DIMENSIONS + at..][..HEAD_WIDTH];
            for (line, x) in scratch.keys.chunks_exact_mut(padded).zip(key) {
                line[token] = *x;
            }
            scratch.values[token].copy_from_slice(&row[2 * DIMENSIONS + at..][..HEAD_WIDTH]);
        }
        let mut token = 0;
        while token < tokens {
            let input = &input[token * ATTENTION_WIDTH..];
            let output = &mut output[token * DIMENSIONS..];
            if tokens - token >= QUERY_ROWS {
                attend_rows::<K, QUERY_ROWS>(input, at, tokens, scratch, output);
                token += QUERY_ROWS;
            } else {
                attend_rows::<K, 1>(input, at, tokens, scratch, output);
                token += 1;
            }
        }
    }
}

/// `R` tokens of one head, beginning with the first row of `input` and `output`.
#[inline(always)]
fn attend_rows<K: Kernels, const R: usize>(
    input: &[f32],
    at: usize,
    tokens: usize,
    scratch: &mut HeadScratch,
    output: &mut [f32],
) {
    let padded = tokens.next_multiple_of(LANES);
    let scale = 1.0 / (HEAD_WIDTH as f32).sqrt();
    let mut queries = [[0.0f32; HEAD_WIDTH]; R];
    for (query, row) in queries.iter_mut().zip(input.chunks_exact(ATTENTION_WIDTH)) {
        for (q, x) in query.iter_mut().zip(&row[at..]) {
            *q = x * scale;
        }
    }
    let (keys, _) = scratch.keys.as_chunks::<LANES>();
    let columns = padded / LANES;
    let (scores, _) = scratch.scores.as_chunks_mut::<LANES>();
    for column in 0..columns {
        let mut sums = [[0.0f32; LANES]; R];
        for d in 0..HEAD_WIDTH {
            let line = &keys[d * columns + column];
            for (sums, query) in sums.iter_mut().zip(&queries) {
                for (sum, key) in sums.iter_mut().zip(line) {
                    *sum = multiply_add::<K>(query[d], *key, *sum);
                }
            }
        }
        for (r, sums) in sums.iter().enumerate() {
            scores[r * columns + column] = *sums;
        }
    }

    let mut shares = [0.0f32; R];
    for (line, share) in scratch.scores.chunks_exact_mut(padded).zip(&mut shares) {
        line[tokens..].fill(f32::MIN);
        *share = 1.0 / exp_row::<K>(line);
    }

    let mut sums = [[0.0f32; HEAD_WIDTH]; R];
    for (token, value) in scratch.values.iter().enumerate() {
        for (r, sums) in sums.iter_mut().enumerate() {
            let weight = scratch.scores[r * padded + token];
            for (sum, x) in sums.iter_mut().zip(value) {
                *sum = multiply_add::<K>(weight, *x, *sum);
            }
        }
    }
    let rows = output.chunks_exact_mut(DIMENSIONS);
    for ((sums, share), row) in sums.iter().zip(shares).zip(rows) {
        for (out, sum) in row[at..].iter_mut().zip(sums) {
            *out = sum * share;
        }
    }
}

/// Replaces scores by their exponentials relative to the largest and returns the sum.
#[inline(always)]
fn exp_row<K: Kernels>(line: &mut [f32]) -> f32 {
    let (chunks, _) = line.as_chunks_mut::<LANES>();
    let mut largest = [f32::MIN; LANES];
    for chunk in chunks.iter() {
        for (max, x) in largest.iter_mut().zip(chunk) {
            *max = if *x > *max { *x } else { *max };
        }
    }
    let largest = largest.into_iter().fold(f32::MIN, f32::max);
    let mut sums = [0.0f32; LANES];
    for chunk in chunks {
        for (sum, x) in sums.iter_mut().zip(chunk) {
            *x = exp::<K>(*x - largest);
            *sum += *x;
        }
    }
    sums.iter().sum()
}
