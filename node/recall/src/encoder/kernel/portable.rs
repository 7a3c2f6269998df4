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
    // Two halves of every sum side by side, as multiply-and-add-pairs instructions leave them.
    let mut halves = [[0i32; 2 * BLOCK_OUTPUTS]; R];
    let (quads, _) = panel.as_chunks::<BLOCK_INPUTS>();
    let (blocks, _) = quads.as_chunks::<BLOCK_OUTPUTS>();
    let mut lines = rows.chunks_exact(inputs);
    let rows: [&[[i16; BLOCK_INPUTS]]; R] =
        std::array::from_fn(|_| lines.next().unwrap_or_default().as_chunks().0);
    for (k, block) in blocks.iter().enumerate() {
        let mut wide = [0i16; BLOCK_OUTPUTS * BLOCK_INPUTS];
        for (wide, byte) in wide.iter_mut().zip(block.as_flattened()) {
            *wide = i16::from(byte.cast_signed());
        }
        for (halves, row) in halves.iter_mut().zip(rows) {
            let quad = row[k];
            for pair in 0..2 * BLOCK_OUTPUTS {
                let at = 2 * (pair % 2);
                halves[pair] += i32::from(wide[2 * pair]) * i32::from(quad[at])
                    + i32::from(wide[2 * pair + 1]) * i32::from(quad[at + 1]);
            }
        }
    }
    halves.map(|halves| std::array::from_fn(|i| halves[2 * i] + halves[2 * i + 1]))
}
