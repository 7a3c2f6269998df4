//! The arithmetic of the encoder, once per set of instructions. All of them give equal whole-number sums; the f32 steps
//! between may differ in the last bits, which nothing may depend on.

pub(super) mod float;
mod portable;
#[cfg(target_arch = "x86_64")]
mod x86;

use std::fmt;
use std::str::FromStr;

use super::ModelError;
use super::model::{Forward, Quantised};
use super::weights::{BLOCK_INPUTS, BLOCK_OUTPUTS, OUTPUTS_MULTIPLE};
use portable::Portable;
#[cfg(target_arch = "x86_64")]
use x86::{Avx2, Avx512Vnni};

/// A set of instructions that the encoder has code for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kernel {
    Portable,
    Avx2,
    Avx512Vnni,
}

/// What a setting or a test may ask for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum KernelChoice {
    /// The fastest that this machine can run.
    #[default]
    Detect,
    /// This one, or a refusal at load.
    Only(Kernel),
}

impl Kernel {
    pub const ALL: [Kernel; 3] = [Kernel::Portable, Kernel::Avx2, Kernel::Avx512Vnni];

    pub fn as_str(self) -> &'static str {
        match self {
            Kernel::Portable => "portable",
            Kernel::Avx2 => "avx2",
            Kernel::Avx512Vnni => "avx512vnni",
        }
    }

    /// Whether this machine can run it.
    pub fn is_available(self) -> bool {
        Engine::for_kernel(self).is_some()
    }
}

impl fmt::Display for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The text names no kernel.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("\"{0}\" is no kernel; use detect, portable, avx2 or avx512vnni")]
pub struct UnknownKernel(String);

impl FromStr for KernelChoice {
    type Err = UnknownKernel;

    fn from_str(text: &str) -> Result<KernelChoice, UnknownKernel> {
        if text == "detect" {
            return Ok(KernelChoice::Detect);
        }
        let kernel = Kernel::ALL.into_iter().find(|k| k.as_str() == text);
        kernel
            .map(KernelChoice::Only)
            .ok_or_else(|| UnknownKernel(text.to_owned()))
    }
}

/// A kernel that this machine was found to have: its variants cannot be built otherwise.
#[derive(Clone, Copy)]
pub(super) enum Engine {
    Portable(Portable),
    #[cfg(target_arch = "x86_64")]
    Avx2(Avx2),
    #[cfg(target_arch = "x86_64")]
    Avx512Vnni(Avx512Vnni),
}

impl Engine {
    pub(super) fn choose(choice: KernelChoice) -> Result<Engine, ModelError> {
        match choice {
            KernelChoice::Only(kernel) => Engine::for_kernel(kernel).ok_or(ModelError::KernelUnavailable { kernel }),
            KernelChoice::Detect => Ok(Kernel::ALL
                .into_iter()
                .rev()
                .find_map(Engine::for_kernel)
                .unwrap_or(Engine::Portable(Portable))),
        }
    }

    #[cfg(target_arch = "x86_64")]
    fn for_kernel(kernel: Kernel) -> Option<Engine> {
        match kernel {
            Kernel::Portable => Some(Engine::Portable(Portable)),
            Kernel::Avx2 => Avx2::detect().map(Engine::Avx2),
            Kernel::Avx512Vnni => Avx512Vnni::detect().map(Engine::Avx512Vnni),
        }
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn for_kernel(kernel: Kernel) -> Option<Engine> {
        (kernel == Kernel::Portable).then_some(Engine::Portable(Portable))
    }

    pub(super) fn kernel(self) -> Kernel {
        match self {
            Engine::Portable(_) => Kernel::Portable,
            #[cfg(target_arch = "x86_64")]
            Engine::Avx2(_) => Kernel::Avx2,
            #[cfg(target_arch = "x86_64")]
            Engine::Avx512Vnni(_) => Kernel::Avx512Vnni,
        }
    }

    pub(super) fn forward(self, task: Forward<'_>) {
        match self {
            Engine::Portable(kernel) => kernel.forward(task),
            #[cfg(target_arch = "x86_64")]
            Engine::Avx2(kernel) => kernel.forward(task),
            #[cfg(target_arch = "x86_64")]
            Engine::Avx512Vnni(kernel) => kernel.forward(task),
        }
    }
}

/// What one set of instructions does in its own way.
pub(super) trait Kernels: Copy {
    /// The form in which activations are multiplied.
    type Activation: Copy + Default;

    /// Whether a fused multiply-add is one instruction; without, it would be a slow library call.
    const FUSED: bool;

    /// From an i32 in -127..=127.
    fn activation(value: i32) -> Self::Activation;

    fn buffer(quantised: &mut Quantised) -> &mut Vec<Self::Activation>;

    /// The exact product of every row of `input` with every output of `matrix`, row after row into `sums`.
    fn sums(self, input: &[Self::Activation], matrix: MatrixView<'_>, sums: &mut Vec<i32>);

    /// Runs the whole pass compiled for these instructions.
    fn forward(self, task: Forward<'_>);
}

/// A matrix in the blocked order of the packed file, each byte an i8.
#[derive(Clone, Copy)]
pub(super) struct MatrixView<'a> {
    pub(super) weights: &'a [u8],
    pub(super) inputs: usize,
    pub(super) outputs: usize,
    /// Per output -128 times the sum of its weights: what activations + 128 have added too much.
    pub(super) offset_sums: &'a [i32],
}

impl MatrixView<'_> {
    pub(super) fn offset_sums_of(weights: &[u8], inputs: usize) -> Box<[i32]> {
        let mut sums = Vec::with_capacity(weights.len() / inputs);
        for panel in weights.chunks_exact(inputs * BLOCK_OUTPUTS) {
            let mut lanes = [0i32; BLOCK_OUTPUTS];
            let (quads, _) = panel.as_chunks::<BLOCK_INPUTS>();
            let (blocks, _) = quads.as_chunks::<BLOCK_OUTPUTS>();
            for block in blocks {
                for (lane, quad) in lanes.iter_mut().zip(block) {
                    for weight in quad {
                        *lane = lane.wrapping_add(i32::from(weight.cast_signed()));
                    }
                }
            }
            sums.extend(lanes.map(|sum| sum * -128));
        }
        sums.into()
    }

    /// Sizes `sums` for the rows of `input` and returns their number.
    ///
    /// # Panics
    /// If the parts do not fit together.
    fn check(&self, input_len: usize, sums: &mut Vec<i32>) -> usize {
        assert!(self.inputs > 0 && self.inputs.is_multiple_of(BLOCK_INPUTS));
        assert!(self.outputs.is_multiple_of(OUTPUTS_MULTIPLE));
        assert_eq!(self.weights.len(), self.inputs * self.outputs);
        assert_eq!(self.offset_sums.len(), self.outputs);
        assert!(input_len.is_multiple_of(self.inputs));
        let rows = input_len / self.inputs;
        sums.resize(rows * self.outputs, 0);
        rows
    }
}

#[cfg(test)]
mod tests;
