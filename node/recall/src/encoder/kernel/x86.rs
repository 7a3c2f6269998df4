//! AVX2 and AVX-512 VNNI. The only module of this crate with `unsafe`.
//!
//! Two things are unsafe here. Calling code compiled for an instruction set: the values [`Avx2`] and [`Avx512Vnni`]
//! exist only after the machine was asked (`detect`). Turning arrays into registers: same size, any bits are valid.
//! There are no pointers; lengths are checked by slicing before the loops.
#![expect(unsafe_code, reason = "vector instructions; safe Rust has no int8 dot product")]

use std::arch::x86_64::*;

use super::{Kernels, MatrixView};
use crate::encoder::model::{Forward, Quantised};
use crate::encoder::weights::{BLOCK_INPUTS, BLOCK_OUTPUTS};

const BLOCK_BYTES: usize = BLOCK_OUTPUTS * BLOCK_INPUTS;
const HALF_BLOCK: usize = BLOCK_OUTPUTS / 2;

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
        // SAFETY: `self` proves AVX2.
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
        value.wrapping_add(128) as u8
    }

    #[inline(always)]
    fn buffer(quantised: &mut Quantised) -> &mut Vec<u8> {
        &mut quantised.offset
    }

    fn sums(self, input: &[u8], matrix: MatrixView<'_>, sums: &mut Vec<i32>) {
        let rows = matrix.check(input.len(), sums);
        // SAFETY: `self` proves the features.
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

#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
fn sums_vnni(input: &[u8], rows: usize, matrix: MatrixView<'_>, sums: &mut [i32]) {
    // Panels outside, rows inside: a group of panels stays in the cache while all rows pass.
    for at in (0..matrix.outputs).step_by(4 * BLOCK_OUTPUTS) {
        let mut row = 0;
        while row < rows {
            let from = &input[row * matrix.inputs..];
            let to = &mut sums[row * matrix.outputs..];
            row += match rows - row {
                1 => tile_vnni::<1>(from, matrix, at, to),
                2 => tile_vnni::<2>(from, matrix, at, to),
                3 => tile_vnni::<3>(from, matrix, at, to),
                4 | 7 | 8 => tile_vnni::<4>(from, matrix, at, to),
                5 | 9 | 10 => tile_vnni::<5>(from, matrix, at, to),
                _ => tile_vnni::<6>(from, matrix, at, to),
            };
        }
    }
}

/// The first `R` rows by the 64 outputs from `at` on, all sums in registers. Returns `R`.
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
fn tile_vnni<const R: usize>(from: &[u8], matrix: MatrixView<'_>, at: usize, to: &mut [i32]) -> usize {
    let steps = matrix.inputs / BLOCK_INPUTS;
    let (blocks, _) = matrix.weights[at * matrix.inputs..].as_chunks::<BLOCK_BYTES>();
    let panels: [&[[u8; BLOCK_BYTES]]; 4] = [
        &blocks[..steps],
        &blocks[steps..][..steps],
        &blocks[2 * steps..][..steps],
        &blocks[3 * steps..][..steps],
    ];
    let (quads, _) = from.as_chunks::<BLOCK_INPUTS>();
    // No closure here: it would not be inlined, and the loop below would check its bounds for every number.
    let mut rows: [&[[u8; BLOCK_INPUTS]]; R] = [&[]; R];
    for r in 0..R {
        rows[r] = &quads[r * steps..][..steps];
    }

    let (starts, _) = matrix.offset_sums[at..].as_chunks::<BLOCK_OUTPUTS>();
    let mut sums = [[_mm512_setzero_si512(); 4]; R];
    for row in &mut sums {
        for (sum, start) in row.iter_mut().zip(starts) {
            *sum = wide_i32(start);
        }
    }
    for step in 0..steps {
        let weights = [
            wide_u8(&panels[0][step]),
            wide_u8(&panels[1][step]),
            wide_u8(&panels[2][step]),
            wide_u8(&panels[3][step]),
        ];
        for r in 0..R {
            let quad = _mm512_set1_epi32(i32::from_ne_bytes(rows[r][step]));
            for p in 0..4 {
                sums[r][p] = _mm512_dpbusd_epi32(sums[r][p], quad, weights[p]);
            }
        }
    }
    for (sums, to) in sums.iter().zip(to.chunks_mut(matrix.outputs)) {
        let (to, _) = to[at..].as_chunks_mut::<BLOCK_OUTPUTS>();
        for (to, sum) in to.iter_mut().zip(sums) {
            *to = narrow_512(*sum);
        }
    }
    R
}

#[target_feature(enable = "avx2")]
fn sums_avx2(input: &[i16], rows: usize, matrix: MatrixView<'_>, sums: &mut [i32]) {
    for at in (0..matrix.outputs).step_by(HALF_BLOCK) {
        let mut row = 0;
        while row < rows {
            let from = &input[row * matrix.inputs..];
            let to = &mut sums[row * matrix.outputs..];
            row += match rows - row {
                1 => tile_avx2::<1>(from, matrix, at, to),
                2 => tile_avx2::<2>(from, matrix, at, to),
                3 | 6 => tile_avx2::<3>(from, matrix, at, to),
                4 | 7 | 8 => tile_avx2::<4>(from, matrix, at, to),
                _ => tile_avx2::<5>(from, matrix, at, to),
            };
        }
    }
}

/// The first `R` rows by the 8 outputs from `at` on: ten registers of sums for five rows, more would spill. Returns `R`.
#[target_feature(enable = "avx2")]
fn tile_avx2<const R: usize>(from: &[i16], matrix: MatrixView<'_>, at: usize, to: &mut [i32]) -> usize {
    let steps = matrix.inputs / BLOCK_INPUTS;
    let panel = at / BLOCK_OUTPUTS * BLOCK_OUTPUTS * matrix.inputs;
    let (quarters, _) = matrix.weights[panel..].as_chunks::<16>();
    let (halves, _) = quarters.as_chunks::<2>();
    let (blocks, _) = halves.as_chunks::<2>();
    let blocks = &blocks[..steps];
    let half = at / HALF_BLOCK % 2;
    let (quads, _) = from.as_chunks::<BLOCK_INPUTS>();
    let mut rows: [&[[i16; BLOCK_INPUTS]]; R] = [&[]; R];
    for r in 0..R {
        rows[r] = &quads[r * steps..][..steps];
    }

    let mut sums = [[_mm256_setzero_si256(); 2]; R];
    for step in 0..steps {
        let weights = &blocks[step][half];
        let low = _mm256_cvtepi8_epi16(half_u8(&weights[0]));
        let high = _mm256_cvtepi8_epi16(half_u8(&weights[1]));
        for r in 0..R {
            let quad = _mm256_set1_epi64x(four_i16(rows[r][step]));
            sums[r][0] = _mm256_add_epi32(sums[r][0], _mm256_madd_epi16(low, quad));
            sums[r][1] = _mm256_add_epi32(sums[r][1], _mm256_madd_epi16(high, quad));
        }
    }
    // Each register holds two halves of four sums; hadd joins them, in the order 0 2 1 3 of pairs.
    for (sums, to) in sums.iter().zip(to.chunks_mut(matrix.outputs)) {
        let joined = _mm256_hadd_epi32(sums[0], sums[1]);
        let ordered = _mm256_permute4x64_epi64::<0b11_01_10_00>(joined);
        to[at..at + HALF_BLOCK].copy_from_slice(&narrow_256(ordered));
    }
    R
}

// Plain memory as registers and back, by value: no pointers, and any bits are valid on both sides.

#[inline]
#[target_feature(enable = "avx512f")]
fn wide_u8(bytes: &[u8; 64]) -> __m512i {
    // SAFETY: same size, all bits valid.
    unsafe { std::mem::transmute::<[u8; 64], __m512i>(*bytes) }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn wide_i32(numbers: &[i32; 16]) -> __m512i {
    // SAFETY: same size, all bits valid.
    unsafe { std::mem::transmute::<[i32; 16], __m512i>(*numbers) }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn narrow_512(register: __m512i) -> [i32; 16] {
    // SAFETY: same size, all bits valid.
    unsafe { std::mem::transmute::<__m512i, [i32; 16]>(register) }
}

#[inline]
#[target_feature(enable = "avx2")]
fn narrow_256(register: __m256i) -> [i32; 8] {
    // SAFETY: same size, all bits valid.
    unsafe { std::mem::transmute::<__m256i, [i32; 8]>(register) }
}

#[inline]
#[target_feature(enable = "sse2")]
fn half_u8(bytes: &[u8; 16]) -> __m128i {
    // SAFETY: same size, all bits valid.
    unsafe { std::mem::transmute::<[u8; 16], __m128i>(*bytes) }
}

#[inline]
fn four_i16(numbers: [i16; 4]) -> i64 {
    // SAFETY: same size, all bits valid.
    unsafe { std::mem::transmute::<[i16; 4], i64>(numbers) }
}
