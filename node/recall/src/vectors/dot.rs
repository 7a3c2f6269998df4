//! Dot products of a query with the rows of a block, by the widest instructions at hand. All paths give equal sums: they
//! add whole numbers.
//!
//! Rows are stored as unsigned bytes, 128 above their value, because the widest instruction multiplies unsigned by
//! signed; 128 x (sum of the query) is taken off once at the end.

#![expect(
    unsafe_code,
    reason = "calls of functions for instructions that were detected, and loads of whole lines"
)]

/// Bytes of a line: one cache line, one wide register.
pub(super) const LINE: usize = 64;

/// One line of a row.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct Line([u8; LINE]);

impl Line {
    pub(super) const ZERO: Self = Self([128; LINE]);

    /// The first components of a slice; what it lacks is 0.
    pub(super) fn of(components: &[i8]) -> Self {
        let mut line = Self::ZERO;
        for (byte, component) in line.0.iter_mut().zip(components) {
            *byte = (*component as u8) ^ 0x80;
        }
        line
    }
}

#[repr(C, align(64))]
#[derive(Clone, Copy)]
struct Signed([i8; LINE]);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Path {
    Portable,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Vnni,
}

fn best_path() -> Path {
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512vnni") {
            return Path::Vnni;
        }
        if is_x86_feature_detected!("avx2") {
            return Path::Avx2;
        }
    }
    Path::Portable
}

/// A query in the layout of the rows.
pub(crate) struct Query {
    lines: Vec<Signed>,
    scale: f32,
    /// What the shift of the rows adds to every sum.
    excess: i32,
    path: Path,
}

impl Query {
    pub(super) fn new(components: &[i8], scale: f32, lines: usize) -> Self {
        let mut laid_out = vec![Signed([0; LINE]); lines];
        for (line, part) in laid_out.iter_mut().zip(components.chunks(LINE)) {
            for (into, from) in line.0.iter_mut().zip(part) {
                *into = *from;
            }
        }
        let excess = laid_out
            .iter()
            .flat_map(|line| line.0)
            .map(|component| 128 * i32::from(component))
            .sum();
        Self {
            lines: laid_out,
            scale,
            excess,
            path: best_path(),
        }
    }

    pub(super) fn scale(&self) -> f32 {
        self.scale
    }

    /// Appends the sum of each of `rows` of a block to `dots`.
    pub(super) fn dots(&self, block: &[Line], rows: &[u32], dots: &mut Vec<i32>) {
        let per_row = self.lines.len();
        let lines_of = |row: &u32| &block[*row as usize * per_row..][..per_row];
        match self.path {
            Path::Portable => dots.extend(
                rows.iter()
                    .map(|row| portable(lines_of(row), &self.lines) - self.excess),
            ),
            #[cfg(target_arch = "x86_64")]
            Path::Avx2 => dots.extend(rows.iter().map(|row| {
                // SAFETY: the path is chosen only where the processor has AVX2.
                unsafe { x86::avx2(lines_of(row), &self.lines) - self.excess }
            })),
            #[cfg(target_arch = "x86_64")]
            Path::Vnni => dots.extend(rows.iter().map(|row| {
                // SAFETY: the path is chosen only where the processor has AVX-512 F and VNNI.
                unsafe { x86::vnni(lines_of(row), &self.lines) - self.excess }
            })),
        }
    }
}

fn portable(row: &[Line], query: &[Signed]) -> i32 {
    row.iter()
        .zip(query)
        .map(|(a, b)| {
            a.0.iter()
                .zip(&b.0)
                .map(|(a, b)| i32::from(*a) * i32::from(*b))
                .sum::<i32>()
        })
        .sum()
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use super::{Line, Signed};

    #[target_feature(enable = "avx512f,avx512vnni")]
    pub(super) fn vnni(row: &[Line], query: &[Signed]) -> i32 {
        let mut sums = [_mm512_setzero_si512(); 2];
        for (index, (a, b)) in row.iter().zip(query).enumerate() {
            // SAFETY: both are 64 bytes long and aligned to 64.
            let (a, b) = unsafe {
                (
                    _mm512_load_si512(a.0.as_ptr().cast()),
                    _mm512_load_si512(b.0.as_ptr().cast()),
                )
            };
            sums[index % 2] = _mm512_dpbusd_epi32(sums[index % 2], a, b);
        }
        _mm512_reduce_add_epi32(_mm512_add_epi32(sums[0], sums[1]))
    }

    #[target_feature(enable = "avx2")]
    pub(super) fn avx2(row: &[Line], query: &[Signed]) -> i32 {
        let mut sums = [_mm256_setzero_si256(); 4];
        for (a, b) in row.iter().zip(query) {
            for (quarter, sum) in sums.iter_mut().enumerate() {
                // SAFETY: a quarter of 64 bytes is 16 bytes, and lies on a multiple of 16.
                let (a, b) = unsafe {
                    (
                        _mm_load_si128(a.0.as_ptr().add(quarter * 16).cast()),
                        _mm_load_si128(b.0.as_ptr().add(quarter * 16).cast()),
                    )
                };
                // Widened to 16 bits first: the instruction for bytes saturates silently.
                let products = _mm256_madd_epi16(_mm256_cvtepu8_epi16(a), _mm256_cvtepi8_epi16(b));
                *sum = _mm256_add_epi32(*sum, products);
            }
        }
        let sum = _mm256_add_epi32(_mm256_add_epi32(sums[0], sums[1]), _mm256_add_epi32(sums[2], sums[3]));
        let sum = _mm_add_epi32(_mm256_castsi256_si128(sum), _mm256_extracti128_si256(sum, 1));
        let sum = _mm_add_epi32(sum, _mm_shuffle_epi32(sum, 0b00_00_11_10));
        let sum = _mm_add_epi32(sum, _mm_shuffle_epi32(sum, 0b00_00_00_01));
        _mm_cvtsi128_si32(sum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_paths_give_equal_sums() {
        let mut paths = vec![Path::Portable];
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx2") {
                paths.push(Path::Avx2);
            }
            if is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512vnni") {
                paths.push(Path::Vnni);
            }
        }
        for lines in [1, 2, 6, 24] {
            let mut state = 1_u32;
            let mut random = |extreme: bool| -> Vec<i8> {
                (0..lines * LINE)
                    .map(|_| {
                        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                        if extreme {
                            if state >> 31 == 0 { 127 } else { -127 }
                        } else {
                            ((state >> 24) as i8).max(-127)
                        }
                    })
                    .collect()
            };
            for extreme in [false, true] {
                let (row, query) = (random(extreme), random(extreme));
                let block: Vec<Line> = row.chunks(LINE).map(Line::of).collect();
                let exact: i32 = row.iter().zip(&query).map(|(a, b)| i32::from(*a) * i32::from(*b)).sum();
                for path in &paths {
                    let mut query = Query::new(&query, 1.0, lines);
                    query.path = *path;
                    let mut dots = Vec::new();
                    query.dots(&block, &[0], &mut dots);
                    assert_eq!(dots, [exact], "{path:?}, {lines} lines, extreme {extreme}");
                }
            }
        }
    }
}
