//! What the encoder gives and the log carries: 384 whole numbers and one scale.

use super::DIMENSIONS;

/// A sentence vector of unit length, as int8: `x[i] = components[i] * scale`.
#[derive(Clone, PartialEq, Debug)]
pub struct Vector {
    /// Exactly [`DIMENSIONS`] values in -127..=127.
    pub components: Box<[i8]>,
    pub scale: f32,
}

/// Why a vector from a command or from another site is refused.
#[derive(Clone, Copy, PartialEq, Debug, thiserror::Error)]
pub enum BadVector {
    #[error("the vector has {found} dimensions, not {DIMENSIONS}; send one made by this model")]
    Dimensions { found: usize },
    #[error("the vector's scale is {found}; it must be a positive number")]
    Scale { found: f32 },
    #[error("the vector's component {index} is -128; components go from -127 to 127")]
    Component { index: usize },
    #[error("the vector's length is {found}; it must be 1 within {NORM_TOLERANCE}")]
    Norm { found: f32 },
}

/// Rounding 384 components to int8 moves the length by far less; a vector that was never normalised is far outside.
const NORM_TOLERANCE: f32 = 0.02;

impl Vector {
    pub fn check(&self) -> Result<(), BadVector> {
        if self.components.len() != DIMENSIONS {
            return Err(BadVector::Dimensions {
                found: self.components.len(),
            });
        }
        if !self.scale.is_finite() || self.scale <= 0.0 {
            return Err(BadVector::Scale { found: self.scale });
        }
        if let Some(index) = self.components.iter().position(|&c| c == i8::MIN) {
            return Err(BadVector::Component { index });
        }
        let found = (whole_dot(&self.components, &self.components) as f32).sqrt() * self.scale;
        if (found - 1.0).abs() > NORM_TOLERANCE {
            return Err(BadVector::Norm { found });
        }
        Ok(())
    }

    /// Cosine of the angle between two checked vectors; exact up to the 2 % that their lengths may be off.
    pub fn dot(&self, other: &Vector) -> f32 {
        whole_dot(&self.components, &other.components) as f32 * self.scale * other.scale
    }

    /// Scales to unit length, then to int8. `None` when there is no direction to keep.
    pub(super) fn from_floats(values: &[f32]) -> Option<Vector> {
        let norm = values.iter().map(|x| x * x).sum::<f32>().sqrt();
        let largest = values.iter().fold(0.0f32, |max, x| max.max(x.abs()));
        if !norm.is_finite() || largest <= 0.0 {
            return None;
        }
        let components = values
            .iter()
            .map(|x| (x / largest * 127.0).round_ties_even() as i8)
            .collect();
        Some(Vector {
            components,
            scale: largest / norm / 127.0,
        })
    }
}

fn whole_dot(left: &[i8], right: &[i8]) -> i32 {
    left.iter().zip(right).map(|(&l, &r)| i32::from(l) * i32::from(r)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ramp() -> Vector {
        let values: Vec<f32> = (0..DIMENSIONS).map(|i| i as f32 - 100.0).collect();
        Vector::from_floats(&values).expect("a ramp has a direction")
    }

    #[test]
    fn a_vector_made_here_passes_its_own_check() {
        let vector = ramp();
        assert_eq!(vector.check(), Ok(()));
        assert!((vector.dot(&vector) - 1.0).abs() < 0.01);
    }

    #[test]
    fn nothing_but_zeros_gives_no_vector() {
        assert_eq!(Vector::from_floats(&[0.0; DIMENSIONS]), None);
        assert_eq!(Vector::from_floats(&[f32::NAN; DIMENSIONS]), None);
    }

    #[test]
    fn a_vector_that_is_not_one_is_refused_with_its_reason() {
        let short = Vector {
            components: vec![1; 3].into(),
            scale: 1.0,
        };
        assert_eq!(short.check(), Err(BadVector::Dimensions { found: 3 }));
        for scale in [0.0, -1.0, f32::INFINITY] {
            let bad = Vector { scale, ..ramp() };
            assert_eq!(bad.check(), Err(BadVector::Scale { found: scale }));
        }
        let long = Vector {
            scale: ramp().scale * 1.03,
            ..ramp()
        };
        assert!(matches!(long.check(), Err(BadVector::Norm { .. })));
        let mut edge = ramp();
        edge.components[7] = i8::MIN;
        assert_eq!(edge.check(), Err(BadVector::Component { index: 7 }));
    }
}
