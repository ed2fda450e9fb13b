//! The signs of a vector's numbers, one bit a dimension: enough to leave most of a large group aside.
//!
//! The share of signs in which two vectors differ grows with the angle between them (Charikar 2002). Only the order that
//! follows from it is used, and only to choose rows that are then compared by their codes.

use rayon::prelude::*;

const WORD_BITS: usize = u64::BITS as usize;

/// Distance of a row that must not be found. No sketch has as many bits.
pub(crate) const HIDDEN: u16 = u16::MAX;

/// Words of the sketch of a vector.
pub(crate) fn words(dimension: usize) -> usize {
    dimension.div_ceil(WORD_BITS)
}

/// Returns the signs of a vector's numbers.
pub(crate) fn sketch(vector: &[f32]) -> Vec<u64> {
    let bits = |numbers: &[f32]| {
        let bits = numbers.iter().enumerate().map(|(bit, number)| u64::from(*number > 0.0) << bit);
        bits.fold(0, |word, bit| word | bit)
    };
    let (words, rest) = vector.as_chunks::<WORD_BITS>();
    let words = words.iter().map(|numbers| bits(numbers));
    words.chain((!rest.is_empty()).then(|| bits(rest))).collect()
}

/// Returns in how many signs a vector differs from each of many, given their sketches one after the other.
pub(crate) fn distances(sketches: &[u64], query: &[u64]) -> Vec<u16> {
    // The usual dimensions, 384, 768 and 1,024, so that the compiler knows the number of words.
    match query.len() {
        6 => distances_of::<6>(sketches, query),
        12 => distances_of::<12>(sketches, query),
        16 => distances_of::<16>(sketches, query),
        words => sketches.chunks_exact(words.max(1)).map(|sketch| distance(sketch.iter().zip(query))).collect(),
    }
}

fn distances_of<const WORDS: usize>(sketches: &[u64], query: &[u64]) -> Vec<u16> {
    let Some(query) = query.first_chunk::<WORDS>() else { return Vec::new() };
    sketches.as_chunks::<WORDS>().0.iter().map(|sketch| distance(sketch.iter().zip(query))).collect()
}

#[inline(always)]
fn distance<'a>(words: impl Iterator<Item = (&'a u64, &'a u64)>) -> u16 {
    let differing = words.fold(0_u32, |sum, (one, two)| sum.wrapping_add((one ^ two).count_ones()));
    u16::try_from(differing).map_or(HIDDEN - 1, |differing| differing.min(HIDDEN - 1))
}

/// Returns the distance up to which at least `wanted` rows lie, or all that may be found, given the distances of the rows
/// by block.
pub(crate) fn radius(distances: &[Vec<u16>], wanted: usize, dimension: usize) -> u16 {
    let count = |mut counts: Vec<usize>, block: &Vec<u16>| {
        for distance in block {
            if let Some(count) = counts.get_mut(usize::from(*distance)) {
                *count += 1;
            }
        }
        counts
    };
    let none = || vec![0_usize; dimension + 1];
    let join = |mut one: Vec<usize>, other: Vec<usize>| {
        one.iter_mut().zip(other).for_each(|(one, other)| *one += other);
        one
    };
    let counts = distances.par_iter().fold(none, count).reduce(none, join);
    let mut within = 0;
    for (distance, count) in counts.into_iter().enumerate() {
        within += count;
        if within >= wanted {
            return u16::try_from(distance).unwrap_or(HIDDEN - 1);
        }
    }
    HIDDEN - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sketch_tells_in_how_many_signs_vectors_differ() {
        for dimension in [1, 64, 130, 384, 768, 1_024] {
            let one: Vec<f32> = (0..dimension).map(|number| if number % 3 == 0 { 1.0 } else { -1.0 }).collect();
            let mut two = one.clone();
            let places: Vec<usize> = [0, 63, 64, 129].into_iter().filter(|place| *place < dimension).collect();
            places.iter().for_each(|place| two[*place] = -two[*place]);
            let (one, two) = (sketch(&one), sketch(&two));
            assert_eq!(one.len(), words(dimension));
            let found = distances(&[one.as_slice(), &two, &one].concat(), &one);
            assert_eq!(found, [0, u16::try_from(places.len()).unwrap(), 0], "dimension {dimension}");
        }
    }

    #[test]
    fn the_radius_takes_in_as_many_rows_as_wanted_and_no_hidden_ones() {
        let distances = [vec![5, 1, HIDDEN], vec![3, 3, 7]];
        assert_eq!(radius(&distances, 1, 8), 1);
        assert_eq!(radius(&distances, 2, 8), 3);
        assert_eq!(radius(&distances, 5, 8), 7);
        assert_eq!(radius(&distances, 6, 8), HIDDEN - 1, "all that may be found");
    }
}
