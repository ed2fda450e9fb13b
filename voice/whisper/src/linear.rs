//! Matrix products and the other arithmetic of both halves of the model. Matrices are row-major.

use azera_voice_api::Error;
use half::f16;
use half::slice::HalfFloatSliceExt;
use rayon::prelude::*;
use rten_gemm::{BiasVector, GemmExecutor, GemmInputA, GemmInputB, GemmOptions};
use rten_simd::{SimdOp, SimdUnaryOp};
use rten_tensor::Matrix;
use rten_vecmath::{Gelu, Softmax};

/// The term that keeps a layer's normalisation from dividing by zero.
const EPSILON: f32 = 1e-5;
/// Rows of a half-precision matrix that one task multiplies.
const ROWS_PER_TASK: usize = 64;

/// Returns an error of this engine.
pub(crate) fn failed(why: impl std::fmt::Display) -> Error {
    Error::Engine { engine: "whisper".into(), why: why.to_string() }
}

/// A view of a matrix whose rows begin `stride` elements apart. Rows may overlap.
#[derive(Clone, Copy)]
pub(crate) struct Strided<'a> {
    pub(crate) data: &'a [f32],
    pub(crate) rows: usize,
    pub(crate) columns: usize,
    pub(crate) stride: usize,
}

impl<'a> Strided<'a> {
    /// Returns a view of rows without gaps.
    pub(crate) fn whole(data: &'a [f32], columns: usize) -> Self {
        Self { data, rows: data.len() / columns.max(1), columns, stride: columns }
    }

    /// Returns a view of `columns` columns from `first` on.
    pub(crate) fn columns(self, first: usize, columns: usize) -> Self {
        Self { data: self.data.get(first..).unwrap_or(&[]), columns, ..self }
    }

    fn matrix(self) -> Result<Matrix<'a>, Error> {
        Matrix::from_slice_with_strides([self.rows, self.columns], self.data, [self.stride, 1]).map_err(failed)
    }
}

/// Multiplies matrices of 32-bit floats on the threads of the pool that calls it.
pub(crate) struct Gemm;

impl Gemm {
    /// Returns `a @ b`.
    pub(crate) fn product(&self, a: Strided<'_>, b: Strided<'_>) -> Result<Vec<f32>, Error> {
        self.multiply(a, b.matrix()?, GemmOptions::default())
    }

    /// Returns `scale * a @ transposed(b)`.
    pub(crate) fn scaled_by_transposed(&self, a: Strided<'_>, b: Strided<'_>, scale: f32) -> Result<Vec<f32>, Error> {
        self.multiply(a, b.matrix()?.transposed(), GemmOptions { alpha: scale, ..GemmOptions::default() })
    }

    fn multiply(
        &self,
        a: Strided<'_>,
        b: Matrix<'_>,
        options: GemmOptions<'_, f32, f32, f32>,
    ) -> Result<Vec<f32>, Error> {
        use rten_tensor::MatrixLayout;
        let mut out = vec![0.0; a.rows * b.cols()];
        // An executor belongs to one thread, and costs next to nothing.
        let executor = GemmExecutor::<f32>::new();
        executor.gemm(&mut out, GemmInputA::Unpacked(a.matrix()?), GemmInputB::Unpacked(b), options).map_err(failed)?;
        Ok(out)
    }
}

/// A layer `x @ transposed(weights) + bias` with 32-bit weights, for many rows at once.
pub(crate) struct Linear {
    pub(crate) inputs: usize,
    /// `[outputs, inputs]`.
    pub(crate) weights: Vec<f32>,
    /// One number for each output.
    pub(crate) bias: Vec<f32>,
}

impl Linear {
    /// Returns the layer's output for each row of `x`.
    pub(crate) fn apply(&self, x: Strided<'_>, gemm: &Gemm) -> Result<Vec<f32>, Error> {
        let weights = Strided::whole(&self.weights, self.inputs).matrix()?.transposed();
        let bias = Some(BiasVector::Row(&self.bias));
        gemm.multiply(x, weights, GemmOptions { bias, ..GemmOptions::default() })
    }
}

/// A layer with 16-bit weights, for one row. Reading the weights takes most of the time, so 16 bits halve it.
pub(crate) struct HalfLinear {
    pub(crate) inputs: usize,
    /// `[outputs, inputs]`.
    pub(crate) weights: Vec<f16>,
    /// One number for each output; empty for none.
    pub(crate) bias: Vec<f32>,
}

impl HalfLinear {
    /// Returns the layer's output for one row.
    pub(crate) fn apply(&self, x: &[f32]) -> Vec<f32> {
        let mut out = vec![0.0; self.weights.len() / self.inputs.max(1)];
        out.par_chunks_mut(ROWS_PER_TASK).zip(self.weights.par_chunks(ROWS_PER_TASK * self.inputs)).for_each(
            |(out, rows)| {
                let mut wide = vec![0.0; self.inputs];
                for (out, row) in out.iter_mut().zip(rows.chunks_exact(self.inputs)) {
                    row.convert_to_f32_slice(&mut wide);
                    *out = dot(&wide, x);
                }
            },
        );
        for (out, bias) in out.iter_mut().zip(&self.bias) {
            *out += bias;
        }
        out
    }

    /// Returns one row of the weights.
    pub(crate) fn row(&self, row: usize) -> Option<Vec<f32>> {
        let start = row.checked_mul(self.inputs)?;
        Some(self.weights.get(start..start.checked_add(self.inputs)?)?.to_f32_vec())
    }
}

/// Returns the sum of products. Sixteen sums side by side become vector code.
pub(crate) fn dot(a: &[f32], b: &[f32]) -> f32 {
    let (a_lanes, a_rest) = a.as_chunks::<16>();
    let (b_lanes, b_rest) = b.as_chunks::<16>();
    let mut sums = [0.0_f32; 16];
    for (a, b) in a_lanes.iter().zip(b_lanes) {
        for ((sum, a), b) in sums.iter_mut().zip(a).zip(b) {
            *sum = a.mul_add(*b, *sum);
        }
    }
    sums.iter().sum::<f32>() + a_rest.iter().zip(b_rest).map(|(a, b)| a * b).sum::<f32>()
}

/// Normalises each row to mean 0 and variance 1, then scales and shifts it.
pub(crate) struct LayerNorm {
    pub(crate) scale: Vec<f32>,
    pub(crate) shift: Vec<f32>,
}

impl LayerNorm {
    /// Returns the normalised rows.
    pub(crate) fn apply(&self, x: &[f32]) -> Vec<f32> {
        let width = self.scale.len().max(1);
        let mut out = Vec::with_capacity(x.len());
        for row in x.chunks_exact(width) {
            let mean = row.iter().sum::<f32>() / width as f32;
            let variance = row.iter().map(|value| (value - mean).powi(2)).sum::<f32>() / width as f32;
            let factor = (variance + EPSILON).sqrt().recip();
            let shaped = row.iter().zip(&self.scale).zip(&self.shift);
            out.extend(shaped.map(|((value, scale), shift)| (value - mean) * factor * scale + shift));
        }
        out
    }
}

/// Adds `b` to `a`.
pub(crate) fn add(a: &mut [f32], b: &[f32]) {
    for (a, b) in a.iter_mut().zip(b) {
        *a += b;
    }
}

/// Applies the Gaussian error unit to each number.
pub(crate) fn gelu(x: &mut [f32]) {
    x.par_chunks_mut(1 << 14).for_each(|part| Gelu {}.map_mut(part));
}

/// Turns one row into probabilities.
pub(crate) fn softmax(row: &mut [f32]) {
    if !row.is_empty() {
        Softmax::new_mut(row).dispatch();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_kinds_of_layers_agree() {
        let inputs = 37;
        let numbers = |count: usize| (0..count).map(|n| ((n * 7919 % 101) as f32 - 50.0) / 64.0).collect::<Vec<f32>>();
        let (weights, bias, x) = (numbers(inputs * 130), numbers(130), numbers(inputs));
        let halves = weights.iter().map(|weight| f16::from_f32(*weight)).collect();
        let half = HalfLinear { inputs, weights: halves, bias: bias.clone() }.apply(&x);
        let full = Linear { inputs, weights, bias }.apply(Strided::whole(&x, inputs), &Gemm).unwrap();
        assert_eq!(half.len(), full.len());
        assert!(half.iter().zip(&full).all(|(a, b)| (a - b).abs() < 1e-4), "{half:?} {full:?}");
    }

    #[test]
    fn a_normalised_row_has_mean_zero_and_variance_one() {
        let norm = LayerNorm { scale: vec![1.0; 4], shift: vec![0.0; 4] };
        let row = norm.apply(&[1.0, 2.0, 3.0, 6.0]);
        assert!(row.iter().sum::<f32>().abs() < 1e-5);
        assert!((row.iter().map(|value| value * value).sum::<f32>() / 4.0 - 1.0).abs() < 1e-4);
    }
}
