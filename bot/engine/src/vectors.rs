//! Arithmetic on vectors of length 1.

/// Returns the cosine of the angle between two vectors of length 1: 1 for the same direction, 0 for nothing in common.
pub(crate) fn cosine(one: &[f32], other: &[f32]) -> f32 {
    one.iter().zip(other).map(|(a, b)| a * b).sum()
}
