//! Plain Rust, for machines without a path of their own. The compiler turns the inner loop into whatever it has.

use super::{Kernels, MatrixView};
use crate::encoder::model::{Forward, Quantised};
use crate::encoder::weights::{BLOCK_INPUTS, BLOCK_OUTPUTS};

#[derive(Clone, Copy)]
pub(in crate::encoder) struct Portable;

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
        let mut lines = vec![0i16; matrix.inputs * BLOCK_OUTPUTS];
        let panels = matrix.weights.chunks_exact(matrix.inputs * BLOCK_OUTPUTS);
        for (index, panel) in panels.enumerate() {
            unblock(panel, &mut lines, matrix.inputs);
            let rows = input.chunks_exact(matrix.inputs);
            for (row, sums) in rows.zip(sums.chunks_exact_mut(matrix.outputs)) {
                let sums = &mut sums[index * BLOCK_OUTPUTS..][..BLOCK_OUTPUTS];
                for (sum, line) in sums.iter_mut().zip(lines.chunks_exact(matrix.inputs)) {
                    *sum = dot(line, row);
                }
            }
        }
    }

    fn forward(self, task: Forward<'_>) {
        task.run(self);
    }
}

/// From blocks to one line per output, wide enough to multiply: compilers know how to sum products along a line.
fn unblock(panel: &[u8], lines: &mut [i16], inputs: usize) {
    let (quads, _) = panel.as_chunks::<BLOCK_INPUTS>();
    let (blocks, _) = quads.as_chunks::<BLOCK_OUTPUTS>();
    for (output, line) in lines.chunks_exact_mut(inputs).enumerate() {
        let (line, _) = line.as_chunks_mut::<BLOCK_INPUTS>();
        for (line, block) in line.iter_mut().zip(blocks) {
            *line = block[output].map(|weight| i16::from(weight.cast_signed()));
        }
    }
}

/// Cannot overflow (1,552 products below 2 to the 14); says so by wrapping, else builds with overflow checks cannot use
/// vectors.
#[inline]
fn dot(line: &[i16], row: &[i16]) -> i32 {
    let products = line.iter().zip(row);
    products.fold(0i32, |sum, (w, x)| {
        sum.wrapping_add(i32::from(*w).wrapping_mul(i32::from(*x)))
    })
}
