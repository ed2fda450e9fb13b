use std::borrow::Cow;

use azera_memory::Error;

use crate::code::dot;

/// How far the squared length of a vector may be from 1 before the vector is scaled to length 1.
const LENGTH_TOLERANCE: f32 = 1e-5;

/// What an index holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VectorConfig {
    /// Numbers in a vector.
    pub dimension: usize,
}

impl VectorConfig {
    /// An index of vectors of `dimension` numbers.
    pub fn new(dimension: usize) -> Self {
        Self { dimension }
    }

    /// Returns the vector at length 1, or [`Error::Invalid`] if this index cannot hold it.
    pub(crate) fn unit<'a>(&self, vector: &'a [f32]) -> Result<Cow<'a, [f32]>, Error> {
        if vector.len() != self.dimension {
            let (got, want) = (vector.len(), self.dimension);
            return Err(Error::Invalid(format!("a vector of {got} numbers for an index of vectors of {want}")));
        }
        if vector.iter().any(|number| !number.is_finite()) {
            return Err(Error::Invalid("a vector holds numbers that are not finite".into()));
        }
        let squared = dot(vector, vector);
        if squared == 0.0 || (squared - 1.0).abs() <= LENGTH_TOLERANCE {
            return Ok(Cow::Borrowed(vector));
        }
        let largest = vector.iter().fold(0.0_f32, |largest, number| largest.max(number.abs()));
        let scaled: Vec<f32> = vector.iter().map(|number| number / largest).collect();
        let length = dot(&scaled, &scaled).sqrt();
        Ok(Cow::Owned(scaled.into_iter().map(|number| number / length).collect()))
    }
}
