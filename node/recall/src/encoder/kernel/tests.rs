//! Equal sums on every kernel, whatever the numbers; and the f32 steps against plain arithmetic in f64.

use super::float::{exp, gelu};
use super::*;
use crate::encoder::weights::blocked_index;

/// Whole numbers in -127..=127 from a seed, without a library.
fn numbers(seed: u64, count: usize) -> Vec<i8> {
    let mut state = seed;
    std::iter::repeat_with(|| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        ((state >> 33) % 255) as i8 as i32
    })
    .map(|x| x.clamp(-127, 127) as i8)
    .take(count)
    .collect()
}

struct Case {
    name: &'static str,
    input: Vec<i8>,
    weights: Vec<i8>,
}

fn cases(rows: usize, inputs: usize, outputs: usize) -> Vec<Case> {
    let case = |name, input, weights| Case { name, input, weights };
    let (cells, weights) = (rows * inputs, outputs * inputs);
    let signs = |count: usize| (0..count).map(|i| if i % 2 == 0 { 127 } else { -127 }).collect();
    vec![
        case("random", numbers(7, cells), numbers(11, weights)),
        case("largest", vec![127; cells], vec![127; weights]),
        case("smallest", vec![-127; cells], vec![127; weights]),
        case("both smallest", vec![-127; cells], vec![-127; weights]),
        case("changing signs", signs(cells), signs(weights)),
        case("signs against largest", signs(cells), vec![127; weights]),
        case("zeros", vec![0; cells], numbers(3, weights)),
    ]
}

/// From whole numbers as this kernel multiplies them.
fn sums_by<K: Kernels>(kernel: K, case: &Case, inputs: usize, outputs: usize) -> Vec<i32> {
    let mut weights = vec![0u8; case.weights.len()];
    for (index, weight) in case.weights.iter().enumerate() {
        let place = blocked_index(index / inputs, index % inputs, inputs);
        weights[place] = weight.cast_unsigned();
    }
    let offset_sums = MatrixView::offset_sums_of(&weights, inputs);
    let input: Vec<K::Activation> = case.input.iter().map(|x| K::activation(i32::from(*x))).collect();
    let matrix = MatrixView {
        weights: &weights,
        inputs,
        outputs,
        offset_sums: &offset_sums,
    };
    let mut sums = Vec::new();
    kernel.sums(&input, matrix, &mut sums);
    sums
}

fn expected(case: &Case, inputs: usize) -> Vec<i32> {
    let rows = case.input.chunks(inputs);
    rows.flat_map(|row| {
        case.weights.chunks(inputs).map(move |weights| {
            let products = row.iter().zip(weights);
            products.map(|(x, w)| i32::from(*x) * i32::from(*w)).sum()
        })
    })
    .collect()
}

fn each_engine() -> impl Iterator<Item = Engine> {
    Kernel::ALL.into_iter().filter_map(Engine::for_kernel)
}

#[test]
fn all_kernels_give_equal_whole_sums() {
    for (inputs, outputs) in [
        (384, 1152),
        (384, 384),
        (1536, 384),
        (384, 1536),
        (400, 384),
        (1552, 384),
    ] {
        // All row counts that end in a tile of their own, and more than one full tile.
        for rows in (1..=13).chain([40]).take(if outputs == 384 { 14 } else { 4 }) {
            for case in cases(rows, inputs, outputs) {
                let expected = expected(&case, inputs);
                for engine in each_engine() {
                    let sums = match engine {
                        Engine::Portable(kernel) => sums_by(kernel, &case, inputs, outputs),
                        #[cfg(target_arch = "x86_64")]
                        Engine::Avx2(kernel) => sums_by(kernel, &case, inputs, outputs),
                        #[cfg(target_arch = "x86_64")]
                        Engine::Avx512Vnni(kernel) => sums_by(kernel, &case, inputs, outputs),
                    };
                    let kernel = engine.kernel();
                    assert!(
                        sums == expected,
                        "{kernel}, {}, {rows} rows of {inputs} to {outputs}",
                        case.name
                    );
                }
            }
        }
    }
}

#[test]
fn exp_is_exact_to_a_few_last_bits() {
    for step in -8700..=8800 {
        let x = step as f32 * 0.01;
        let exact = f64::from(x).exp();
        let error = (f64::from(exp::<Portable>(x)) - exact).abs() / exact;
        assert!(error < 1e-6, "exp({x}) is off by {error:e}");
    }
    assert!(exp::<Portable>(f32::MIN) < 1e-37);
}

#[test]
fn gelu_follows_the_normal_distribution() {
    for step in -1200..=1200 {
        let x = f64::from(step) * 0.01;
        let exact = x * share_below(x);
        let error = (f64::from(gelu::<Portable>(x as f32)) - exact).abs();
        assert!(error < 2e-6, "gelu({x}) is off by {error:e}");
    }
}

/// The normal distribution by Simpson's rule, from far below.
fn share_below(x: f64) -> f64 {
    let density = |t: f64| (-0.5 * t * t).exp() / (2.0 * std::f64::consts::PI).sqrt();
    let (from, steps) = (-14.0, 2000);
    let width = (x - from) / f64::from(steps);
    let inside = (1..steps).map(|i| {
        let weight = if i % 2 == 1 { 4.0 } else { 2.0 };
        weight * density(from + width * f64::from(i))
    });
    (density(from) + density(x) + inside.sum::<f64>()) * width / 3.0
}

#[test]
fn a_choice_is_read_from_its_name() {
    assert_eq!("detect".parse(), Ok(KernelChoice::Detect));
    for kernel in Kernel::ALL {
        assert_eq!(kernel.as_str().parse(), Ok(KernelChoice::Only(kernel)));
    }
    assert!("sse9".parse::<KernelChoice>().is_err());
    assert!(Kernel::Portable.is_available());
}

#[test]
#[should_panic = "left == right"]
fn a_matrix_of_another_size_is_never_multiplied() {
    let matrix = MatrixView {
        weights: &[0; 100],
        inputs: 384,
        outputs: 64,
        offset_sums: &[0; 64],
    };
    Portable.sums(&[0; 384], matrix, &mut Vec::new());
}
