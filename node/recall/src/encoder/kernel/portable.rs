//! Plain Rust, for machines without a path of their own. The compiler turns the inner loop into whatever it has.

use super::{Kernels, MatrixView};
use crate::encoder::model::{Forward, Quantised};
use crate::encoder::weights::{BLOCK_INPUTS, BLOCK_OUTPUTS};

#[derive(Clone, Copy)]
pub(in crate::encoder) struct Portable;

/// Rows that share one reading of the weights.
const ROWS: usize = 4;

impl Kernels for Portable {
    type Activation = i16;
    const FUSED: bool = false;

    #[inline(always)]
    fn activation(value: i32) -> i16 {
        value as i16
    }

    #[inline(always)]
    fn buffer(quantised: &mut Quantised) -> &mut Vec<i16> {
        &mut quantised.wide
    }

    fn sums(self, input: &[i16], matrix: MatrixView<'_>, sums: &mut Vec<i32>) {
        matrix.check(input.len(), sums);
        let panels = matrix.weights.chunks_exact(matrix.inputs * BLOCK_OUTPUTS);
        for (index, panel) in panels.enumerate() {
            let at = index * BLOCK_OUTPUTS;
            let full = input.chunks_exact(ROWS * matrix.inputs);
            let rest = full.remainder().chunks_exact(matrix.inputs);
            let mut out = sums.chunks_exact_mut(matrix.outputs);
            for rows in full {
                let sums = tile::<ROWS>(panel, rows, matrix.inputs);
                for (sum, row) in sums.iter().zip(out.by_ref()) {
                    row[at..at + BLOCK_OUTPUTS].copy_from_slice(sum);
                }
            }
            for (row, out) in rest.zip(out) {
                let [sum] = tile::<1>(panel, row, matrix.inputs);
                out[at..at + BLOCK_OUTPUTS].copy_from_slice(&sum);
            }
        }
    }

    fn forward(self, task: Forward<'_>) {
        task.run(self);
    }
}

#[inline(always)]
fn tile<const R: usize>(panel: &[u8], rows: &[i16], inputs: usize) -> [[i32; BLOCK_OUTPUTS]; R] {
    let mut sums = [[0i32; BLOCK_OUTPUTS]; R];
    let (quads, _) = panel.as_chunks::<BLOCK_INPUTS>();
    let (blocks, _) = quads.as_chunks::<BLOCK_OUTPUTS>();
    let mut lines = rows.chunks_exact(inputs);
    let rows: [&[[i16; BLOCK_INPUTS]]; R] =
        std::array::from_fn(|_| lines.next().unwrap_or_default().as_chunks().0);
    for (k, block) in blocks.iter().enumerate() {
        for (sums, row) in sums.iter_mut().zip(rows) {
            let quad = row[k];
            for (sum, weights) in sums.iter_mut().zip(block) {
                let mut dot = 0;
                for (w, a) in weights.iter().zip(quad) {
                    dot += i32::from(w.cast_signed()) * i32::from(a);
                }
                *sum += dot;
            }
        }
    }
    sums
}
