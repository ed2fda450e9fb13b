//! Vectors in one byte a dimension, and how far their products can be from the true ones.

use crate::sketch::sketch;

/// Largest number of a code.
const CODE_MAX: f32 = 127.0;

/// Largest number of a coded question, unless the dimension asks for less.
const QUERY_MAX: i32 = 8_191;

/// Room for the rounding of the float arithmetic itself. All vectors have length 1.
const ROUNDING: f32 = 2e-5;

/// Products added up before the lanes are joined. The compiler turns a fixed count into straight vector code.
const STRIDE: usize = 128;

/// Sums kept side by side, so that the compiler can use vector instructions on floats.
const LANES: usize = 16;

/// A stored vector in one byte a dimension.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Code {
    pub(crate) numbers: Vec<i8>,
    pub(crate) sketch: Vec<u64>,
    /// What a step of a number is worth.
    pub(crate) scale: f32,
    /// Length of the difference to the vector.
    pub(crate) error: f32,
}

impl Code {
    pub(crate) fn of(vector: &[f32]) -> Self {
        let (largest, sketch) = (largest(vector), sketch(vector));
        if largest == 0.0 {
            return Self { numbers: vec![0; vector.len()], sketch, scale: 0.0, error: 0.0 };
        }
        let scale = largest / CODE_MAX;
        let per_step = scale.recip();
        let numbers: Vec<i8> = vector.iter().map(|number| (number * per_step).round_ties_even() as i8).collect();
        let error = length_of_difference(vector, numbers.iter().map(|code| f32::from(*code) * scale));
        Self { numbers, sketch, scale, error }
    }
}

/// A question's vector in two bytes a dimension: its own error hardly counts beside that of the codes.
pub(crate) struct QueryCode {
    numbers: Vec<i16>,
    scale: f32,
    error: f32,
}

impl QueryCode {
    pub(crate) fn of(vector: &[f32]) -> Self {
        let largest = largest(vector);
        if largest == 0.0 {
            return Self { numbers: vec![0; vector.len()], scale: 0.0, error: 0.0 };
        }
        // The sum of all products must fit into 32 bits.
        let dimension = i32::try_from(vector.len()).unwrap_or(i32::MAX).max(1);
        let limit = (i32::MAX / 128 / dimension).clamp(1, QUERY_MAX);
        let scale = largest / limit as f32;
        let numbers: Vec<i16> = vector.iter().map(|number| (number / scale).round_ties_even() as i16).collect();
        let error = length_of_difference(vector, numbers.iter().map(|code| f32::from(*code) * scale));
        Self { numbers, scale, error }
    }

    /// Returns the product with a code as an estimate of the product of the vectors.
    #[inline]
    pub(crate) fn estimate(&self, code: &[i8], scale: f32) -> f32 {
        product(code, &self.numbers) as f32 * (scale * self.scale)
    }

    /// Returns how far an estimate can be from the product of the vectors (Cauchy-Schwarz), given the code's error.
    pub(crate) fn margin(&self, error: f32) -> f32 {
        error + self.error * (1.0 + error) + ROUNDING
    }
}

fn length_of_difference(vector: &[f32], coded: impl Iterator<Item = f32>) -> f32 {
    let difference: Vec<f32> = vector.iter().zip(coded).map(|(number, coded)| number - coded).collect();
    dot(&difference, &difference).sqrt()
}

/// The largest number of a vector, whatever its sign.
fn largest(vector: &[f32]) -> f32 {
    let (chunks, rest) = vector.as_chunks::<LANES>();
    let mut lanes = [0.0_f32; LANES];
    for chunk in chunks {
        for (lane, number) in lanes.iter_mut().zip(chunk) {
            *lane = if number.abs() > *lane { number.abs() } else { *lane };
        }
    }
    lanes.iter().chain(rest).fold(0.0, |largest, number| largest.max(number.abs()))
}

/// Sum of the products. It wraps nowhere: see [`QueryCode::of`].
#[inline]
fn product(code: &[i8], query: &[i16]) -> i32 {
    let (codes, code_rest) = code.as_chunks::<STRIDE>();
    let (queries, query_rest) = query.as_chunks::<STRIDE>();
    let mut sum = 0_i32;
    for (code, query) in codes.iter().zip(queries) {
        let mut part = 0_i32;
        for (code, query) in code.iter().zip(query) {
            part = part.wrapping_add(i32::from(*code).wrapping_mul(i32::from(*query)));
        }
        sum = sum.wrapping_add(part);
    }
    for (code, query) in code_rest.iter().zip(query_rest) {
        sum = sum.wrapping_add(i32::from(*code).wrapping_mul(i32::from(*query)));
    }
    sum
}

/// Product of two vectors of the same dimension.
pub(crate) fn dot(one: &[f32], two: &[f32]) -> f32 {
    let (ones, one_rest) = one.as_chunks::<LANES>();
    let (twos, two_rest) = two.as_chunks::<LANES>();
    let mut lanes = [0.0_f32; LANES];
    for (one, two) in ones.iter().zip(twos) {
        for (lane, (one, two)) in lanes.iter_mut().zip(one.iter().zip(two)) {
            *lane += one * two;
        }
    }
    let rest: f32 = one_rest.iter().zip(two_rest).map(|(one, two)| one * two).sum();
    lanes.iter().sum::<f32>() + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vector(seed: u64, dimension: usize, spread: i32) -> Vec<f32> {
        let mut random = fastrand::Rng::with_seed(seed);
        let numbers: Vec<f32> = (0..dimension).map(|_| (random.f32() - 0.5).powi(spread)).collect();
        let length = dot(&numbers, &numbers).sqrt();
        numbers.into_iter().map(|number| number / length).collect()
    }

    #[test]
    fn an_estimate_is_within_its_margin() {
        for dimension in [1, 8, 127, 128, 384, 1_000, 4_096, 16_384] {
            for seed in 0..50 {
                let (one, two) = (vector(seed, dimension, 1), vector(seed + 1_000, dimension, 3));
                for (stored, question) in [(&one, &two), (&two, &one), (&one, &one), (&two, &two)] {
                    let (code, query) = (Code::of(stored), QueryCode::of(question));
                    let estimate = query.estimate(&code.numbers, code.scale);
                    let (far, margin) = ((estimate - dot(stored, question)).abs(), query.margin(code.error));
                    assert!(far <= margin, "dimension {dimension}, seed {seed}: {far} over {margin}");
                }
            }
        }
    }

    #[test]
    fn a_vector_of_zeros_has_a_code() {
        let (code, query) = (Code::of(&[0.0; 8]), QueryCode::of(&[0.0; 8]));
        assert_eq!((code.error, query.estimate(&code.numbers, code.scale)), (0.0, 0.0));
    }
}
