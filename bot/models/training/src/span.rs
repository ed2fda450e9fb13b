//! What rows span: orthonormal bases of them, and the singular values of a product of two thin matrices. All of it in 64-bit
//! floats and in one order, so that it is the same whoever computes it.

/// The share of a row that is its own rather than what rounding left of those before, in 64-bit floats.
pub(crate) const ROUNDED: f64 = 1e-12;

/// Cosine of two vectors that are at right angles but for rounding.
const RIGHT_ANGLE: f64 = 1e-13;

/// Turns of all pairs after which it is left as it is; about ten are needed.
const SWEEPS: usize = 40;

/// Rows, written by an orthonormal basis: row `i` is the sum over `j` of `coefficients[i][j]` times `basis[j]`.
#[derive(Debug)]
pub(crate) struct OrthonormalBasis {
    pub(crate) basis: Vec<Vec<f64>>,
    pub(crate) coefficients: Vec<Vec<f64>>,
}

impl OrthonormalBasis {
    /// Modified Gram-Schmidt, twice for each row, after which the basis is orthonormal to working precision (Giraud, Langou
    /// and Rozložník 2005). A row of which no more than the share `least` lies outside of those before adds nothing to it.
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

/// Turns the vectors of `left` by pairs until all of them are at right angles, and those of `right` with them; the sum of
/// their outer products stays what it is. With `right` orthonormal that is the singular value decomposition: the lengths on
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
                turn(left, (first, second), (cos, cos * tangent));
                turn(right, (first, second), (cos, cos * tangent));
            }
        }
        if !turned {
            break;
        }
    }
}

fn turn(vectors: &mut [Vec<f64>], (first, second): (usize, usize), (cos, sin): (f64, f64)) {
    let (before, after) = vectors.split_at_mut(second);
    for (one, other) in before[first].iter_mut().zip(&mut after[0]) {
        (*one, *other) = (cos * *one - sin * *other, sin * *one + cos * *other);
    }
}

/// The sum of `rows`, each times its weight; `width` numbers.
pub(crate) fn combined(weights: &[f64], rows: &[Vec<f64>], width: usize) -> Vec<f64> {
    let mut out = vec![0.0; width];
    for (weight, row) in weights.iter().zip(rows) {
        out.iter_mut().zip(row).for_each(|(out, value)| *out += weight * value);
    }
    out
}

/// Its Euclidean norm.
pub(crate) fn length(vector: &[f64]) -> f64 {
    dot(vector, vector).sqrt()
}

/// Sums of products in eight lanes, which processors add at once.
pub(crate) fn dot(left: &[f64], right: &[f64]) -> f64 {
    let mut lanes = [0.0_f64; 8];
    let ((left, left_rest), (right, right_rest)) = (left.as_chunks::<8>(), right.as_chunks::<8>());
    for (left, right) in left.iter().zip(right) {
        lanes.iter_mut().zip(left.iter().zip(right)).for_each(|(lane, (left, right))| *lane += left * right);
    }
    let rest: f64 = left_rest.iter().zip(right_rest).map(|(left, right)| left * right).sum();
    lanes.iter().sum::<f64>() + rest
}
