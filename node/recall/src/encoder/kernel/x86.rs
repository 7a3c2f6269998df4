//! AVX2 and AVX-512 VNNI. The only module of this crate with `unsafe`.
//!
//! Two things are unsafe here, and each has one answer. Calling code compiled for an instruction set: the values
//! [`Avx2`] and [`Avx512Vnni`] exist only after the machine was asked (`detect`). Reading and writing through pointers:
//! `MatrixView::check` has compared all lengths before the first tile.
#![expect(
    unsafe_code,
    reason = "vector instructions; safe Rust has no int8 dot product"
)]

use std::arch::x86_64::*;

use super::{Kernels, MatrixView};
use crate::encoder::model::{Forward, Quantised};
use crate::encoder::weights::{BLOCK_INPUTS, BLOCK_OUTPUTS};

const BLOCK_BYTES: usize = BLOCK_OUTPUTS * BLOCK_INPUTS;

/// Proof that this machine has AVX2 and FMA.
#[derive(Clone, Copy)]
pub(in crate::encoder) struct Avx2(());

/// Proof that this machine has AVX-512 with byte and vector-neural instructions.
#[derive(Clone, Copy)]
pub(in crate::encoder) struct Avx512Vnni(());

impl Avx2 {
    pub(super) fn detect() -> Option<Avx2> {
        (is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma")).then_some(Avx2(()))
    }
}

impl Avx512Vnni {
    pub(super) fn detect() -> Option<Avx512Vnni> {
        (is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("avx512vnni")
            && is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("fma"))
        .then_some(Avx512Vnni(()))
    }
}

impl Kernels for Avx2 {
    /// Widened once, so that `madd` can be used: the instruction for bytes saturates silently.
    type Activation = i16;
    const FUSED: bool = true;

    #[inline(always)]
    fn activation(value: i32) -> i16 {
        value as i16
    }

    #[inline(always)]
    fn buffer(quantised: &mut Quantised) -> &mut Vec<i16> {
        &mut quantised.wide
    }

    fn sums(self, input: &[i16], matrix: MatrixView<'_>, sums: &mut Vec<i32>) {
        let rows = matrix.check(input.len(), sums);
        // SAFETY: `self` proves AVX2; `check` has sized weights and sums for `rows` rows.
        unsafe { sums_avx2(input, rows, matrix, sums) }
    }

    fn forward(self, task: Forward<'_>) {
        // SAFETY: `self` proves AVX2 and FMA.
        unsafe { forward_avx2(self, task) }
    }
}

impl Kernels for Avx512Vnni {
    /// Value + 128: one operand of the instruction is unsigned.
    type Activation = u8;
    const FUSED: bool = true;

    #[inline(always)]
    fn activation(value: i32) -> u8 {
        (value + 128) as u8
    }

    #[inline(always)]
    fn buffer(quantised: &mut Quantised) -> &mut Vec<u8> {
        &mut quantised.offset
    }

    fn sums(self, input: &[u8], matrix: MatrixView<'_>, sums: &mut Vec<i32>) {
        let rows = matrix.check(input.len(), sums);
        // SAFETY: `self` proves the features; `check` has sized weights, offset sums and sums for `rows` rows.
        unsafe { sums_vnni(input, rows, matrix, sums) }
    }

    fn forward(self, task: Forward<'_>) {
        // SAFETY: `self` proves the features.
        unsafe { forward_avx512(self, task) }
    }
}

#[target_feature(enable = "avx2,fma")]
fn forward_avx2(kernel: Avx2, task: Forward<'_>) {
    task.run(kernel);
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]
fn forward_avx512(kernel: Avx512Vnni, task: Forward<'_>) {
    task.run(kernel);
}

/// # Safety
/// The lengths must have passed `MatrixView::check` with `rows` as its answer.
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
unsafe fn sums_vnni(input: &[u8], rows: usize, matrix: MatrixView<'_>, sums: &mut [i32]) {
    // Panels outside, rows inside: a group of panels stays in the cache while all rows pass.
    for at in (0..matrix.outputs).step_by(4 * BLOCK_OUTPUTS) {
        let mut row = 0;
        while row < rows {
            // SAFETY: rows `row..row + R` exist in `input` and `sums`, outputs `at..at + 64` in the matrix.
            unsafe {
                let from = input.as_ptr().add(row * matrix.inputs);
                let to = sums.as_mut_ptr().add(row * matrix.outputs + at);
                match rows - row {
                    1 => tile_vnni::<1>(from, matrix, at, to),
                    2 => tile_vnni::<2>(from, matrix, at, to),
                    3 => tile_vnni::<3>(from, matrix, at, to),
                    4 | 7 | 8 => tile_vnni::<4>(from, matrix, at, to),
                    5 | 9 | 10 => tile_vnni::<5>(from, matrix, at, to),
                    _ => tile_vnni::<6>(from, matrix, at, to),
                }
            }
            row += match rows - row {
                few @ 1..=5 => few,
                7 | 8 => 4,
                9 | 10 => 5,
                _ => 6,
            };
        }
    }
}

/// `R` rows by 64 outputs, all sums in registers.
///
/// # Safety
/// `from` has `R` rows of `matrix.inputs`, `to` is 64 sums in each of `R` rows of `matrix.outputs`, outputs
/// `at..at + 64` exist.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
unsafe fn tile_vnni<const R: usize>(
    from: *const u8,
    matrix: MatrixView<'_>,
    at: usize,
    to: *mut i32,
) {
    let steps = matrix.inputs / BLOCK_INPUTS;
    let panel_bytes = steps * BLOCK_BYTES;
    // SAFETY: the caller's promise; a panel holds `steps` blocks of 64 bytes.
    unsafe {
        let panels = matrix.weights.as_ptr().add(at * matrix.inputs);
        let mut sums = [[_mm512_setzero_si512(); 4]; R];
        for p in 0..4 {
            let start =
                _mm512_loadu_si512(matrix.offset_sums.as_ptr().add(at + p * BLOCK_OUTPUTS).cast());
            for row in &mut sums {
                row[p] = start;
            }
        }
        for step in 0..steps {
            let block = panels.add(step * BLOCK_BYTES);
            let weights = [
                _mm512_loadu_si512(block.cast()),
                _mm512_loadu_si512(block.add(panel_bytes).cast()),
                _mm512_loadu_si512(block.add(2 * panel_bytes).cast()),
                _mm512_loadu_si512(block.add(3 * panel_bytes).cast()),
            ];
            for r in 0..R {
                let quad = from.add(r * matrix.inputs + step * BLOCK_INPUTS);
                let quad = _mm512_set1_epi32(quad.cast::<i32>().read_unaligned());
                for p in 0..4 {
                    sums[r][p] = _mm512_dpbusd_epi32(sums[r][p], quad, weights[p]);
                }
            }
        }
        for r in 0..R {
            for p in 0..4 {
                let to = to.add(r * matrix.outputs + p * BLOCK_OUTPUTS);
                _mm512_storeu_si512(to.cast(), sums[r][p]);
            }
        }
    }
}

/// # Safety
/// The lengths must have passed `MatrixView::check` with `rows` as its answer.
#[target_feature(enable = "avx2")]
unsafe fn sums_avx2(input: &[i16], rows: usize, matrix: MatrixView<'_>, sums: &mut [i32]) {
    for at in (0..matrix.outputs).step_by(BLOCK_OUTPUTS) {
        let mut row = 0;
        while row < rows {
            // SAFETY: rows `row..row + R` exist in `input` and `sums`, outputs `at..at + 16` in the matrix.
            unsafe {
                let from = input.as_ptr().add(row * matrix.inputs);
                let to = sums.as_mut_ptr().add(row * matrix.outputs + at);
                match rows - row {
                    1 => tile_avx2::<1>(from, matrix, at, to),
                    2 | 4 => tile_avx2::<2>(from, matrix, at, to),
                    _ => tile_avx2::<3>(from, matrix, at, to),
                }
            }
            row += match rows - row {
                1 => 1,
                2 | 4 => 2,
                _ => 3,
            };
        }
    }
}

/// `R` rows by 16 outputs: twelve registers of sums for three rows, and every weight is widened once for all of them.
///
/// # Safety
/// `from` has `R` rows of `matrix.inputs`, `to` is 16 sums in each of `R` rows of `matrix.outputs`, outputs
/// `at..at + 16` exist.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn tile_avx2<const R: usize>(
    from: *const i16,
    matrix: MatrixView<'_>,
    at: usize,
    to: *mut i32,
) {
    // SAFETY: the caller's promise; a panel holds `inputs / 4` blocks of 64 bytes.
    unsafe {
        let panel = matrix.weights.as_ptr().add(at * matrix.inputs);
        let mut sums = [[_mm256_setzero_si256(); 4]; R];
        for step in 0..matrix.inputs / BLOCK_INPUTS {
            let block = panel.add(step * BLOCK_BYTES);
            let mut quads = [_mm256_setzero_si256(); R];
            for (r, quad) in quads.iter_mut().enumerate() {
                let four = from.add(r * matrix.inputs + step * BLOCK_INPUTS);
                *quad = _mm256_set1_epi64x(four.cast::<i64>().read_unaligned());
            }
            for p in 0..4 {
                let weights = _mm256_cvtepi8_epi16(_mm_loadu_si128(block.add(p * 16).cast()));
                for r in 0..R {
                    let pairs = _mm256_madd_epi16(weights, quads[r]);
                    sums[r][p] = _mm256_add_epi32(sums[r][p], pairs);
                }
            }
        }
        // Each register holds two halves of four sums; hadd joins them, in the order 0 2 1 3 of pairs.
        for (r, row) in sums.iter().enumerate() {
            for half in 0..2 {
                let joined = _mm256_hadd_epi32(row[2 * half], row[2 * half + 1]);
                let ordered = _mm256_permute4x64_epi64::<0b11_01_10_00>(joined);
                let to = to.add(r * matrix.outputs + half * 8);
                _mm256_storeu_si256(to.cast(), ordered);
            }
        }
    }
}
