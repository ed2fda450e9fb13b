//! The span of rows: orthonormal bases, and the singular values of a product of two thin matrices. Everything is
//! computed in 64-bit floats and in a fixed order, so the result is the same on every machine.

/// In 64-bit floats, the share of a row below which it is only the rounding error of the rows before it.
pub(crate) const ROUNDED: f64 = 1e-12;

/// The cosine of two vectors that are orthogonal except for rounding.
const RIGHT_ANGLE: f64 = 1e-13;

/// The most sweeps over all pairs; about ten are needed.
const SWEEPS: usize = 40;

/// Rows in terms of an orthonormal basis: row `i` is the sum over `j` of `coefficients[i][j]` times `basis[j]`.
#[derive(Debug)]
pub(crate) struct OrthonormalBasis {
    pub(crate) basis: Vec<Vec<f64>>,
    pub(crate) coefficients: Vec<Vec<f64>>,
}

impl OrthonormalBasis {
    /// Computes the basis by modified Gram-Schmidt, twice for each row, after which it is orthonormal to working
    /// precision (Giraud, Langou and Rozložník 2005). A row adds nothing to the basis if at most the share `least` of
    /// it lies outside of the rows before it.
    pub(crate) fn of(rows: impl IntoIterator<Item = Vec<f64>>, least: f64) -> Self {
        let (mut basis, mut coefficients): (Vec<Vec<f64>>, Vec<Vec<f64>>) = (Vec::new(), Vec::new());
        for mut row in rows {
            let whole = length(&row);
            let mut of_row = vec![0.0; basis.len()];
            for _ in 0..2 {
                for (direction, of_row) in basis.iter().zip(&mut of_row) {
                    let along = dot(&row, direction);
                    *of_row += along;
                    row.iter_mut().zip(direction).for_each(|(value, direction)| *value -= along * direction);
                }
            }
            let rest = length(&row);
            if rest > least * whole {
                row.iter_mut().for_each(|value| *value /= rest);
                basis.push(row);
                of_row.push(rest);
            }
            coefficients.push(of_row);
        }
        coefficients.iter_mut().for_each(|of_row| of_row.resize(basis.len(), 0.0));
        Self { basis, coefficients }
    }
}

/// Rotates the vectors of `left` in pairs until all are orthogonal, and those of `right` with them. The sum of their
/// outer products stays the same. If `right` is orthonormal, this is the singular value decomposition: the lengths on
/// the left are the singular values (one-sided Jacobi, Hestenes 1958).
pub(crate) fn separate(left: &mut [Vec<f64>], right: &mut [Vec<f64>]) {
    for _ in 0..SWEEPS {
        let mut turned = false;
        for second in 1..left.len() {
            for first in 0..second {
                let along = dot(&left[first], &left[second]);
                let (one, other) = (length(&left[first]), length(&left[second]));
                if along.abs() <= RIGHT_ANGLE * one * other {
                    continue;
                }
                turned = true;
                let ratio = (other - one) * (other + one) / (2.0 * along);
                let tangent = ratio.signum() / (ratio.abs() + ratio.hypot(1.0));
                let cos = 1.0 / tangent.hypot(1.0);
                rotate_pair(left, (first, second), (cos, cos * tangent));
                rotate_pair(right, (first, second), (cos, cos * tangent));
            }
        }
        if !turned {
            break;
        }
    }
}

fn rotate_pair(vectors: &mut [Vec<f64>], (first, second): (usize, usize), (cos, sin): (f64, f64)) {
    let (before, after) = vectors.split_at_mut(second);
    for (one, other) in before[first].iter_mut().zip(&mut after[0]) {
        (*one, *other) = (cos * *one - sin * *other, sin * *one + cos * *other);
    }
}

/// Returns the sum of `rows`, each multiplied by its weight, as `width` numbers.
pub(crate) fn combined(weights: &[f64], rows: &[Vec<f64>], width: usize) -> Vec<f64> {
    let mut out = vec![0.0; width];
    for (weight, row) in weights.iter().zip(rows) {
        out.iter_mut().zip(row).for_each(|(out, value)| *out += weight * value);
    }
    out
}

/// Returns the Euclidean norm.
pub(crate) fn length(vector: &[f64]) -> f64 {
    dot(vector, vector).sqrt()
}

/// Computes the dot product in eight lanes, which processors add at once.
pub(crate) fn dot(left: &[f64], right: &[f64]) -> f64 {
    let mut lanes = [0.0_f64; 8];
    let ((left, left_rest), (right, right_rest)) = (left.as_chunks::<8>(), right.as_chunks::<8>());
    for (left, right) in left.iter().zip(right) {
        lanes.iter_mut().zip(left.iter().zip(right)).for_each(|(lane, (left, right))| *lane += left * right);
    }
    let rest: f64 = left_rest.iter().zip(right_rest).map(|(left, right)| left * right).sum();
    lanes.iter().sum::<f64>() + rest
}
