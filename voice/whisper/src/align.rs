//! Finds the time of each word from the decoder's attention: each token looks at the sound that it tells. The cheapest
//! path that never goes back in time (dynamic time warping) gives each token its place.

use crate::greedy::Decoded;

/// Seconds of one of the encoder's vectors.
const SECONDS_PER_VECTOR: f32 = 0.02;
/// Vectors over which the attention is smoothed by their median.
const SMOOTHED: usize = 7;
/// The term that keeps a constant attention from dividing by zero.
const EPSILON: f32 = 1e-6;

/// Returns when each token begins, in seconds. Only the first `vectors` of the encoder are speech.
pub(crate) fn token_starts(decoded: &Decoded, vectors: usize) -> Vec<f32> {
    let tokens = decoded.tokens.len();
    let heads = decoded.attention.first().map_or(0, Vec::len);
    if tokens == 0 || heads == 0 || vectors == 0 {
        return vec![0.0; tokens];
    }
    let mut cost = vec![vec![0.0; vectors]; tokens];
    for head in 0..heads {
        let mut looked: Vec<Vec<f32>> = decoded
            .attention
            .iter()
            .map(|heads| heads[head].iter().copied().chain(std::iter::repeat(0.0)).take(vectors).collect())
            .collect();
        standardise(&mut looked, vectors);
        for (row, cost) in looked.iter().zip(&mut cost) {
            for (value, cost) in smooth(row).into_iter().zip(cost) {
                *cost -= value / heads as f32;
            }
        }
    }
    first_vectors(&cost).into_iter().map(|vector| vector as f32 * SECONDS_PER_VECTOR).collect()
}

/// Gives each column mean 0 and deviation 1, so that sound which all tokens look at counts for none.
fn standardise(rows: &mut [Vec<f32>], columns: usize) {
    let count = rows.len() as f32;
    for column in 0..columns {
        let mean = rows.iter().map(|row| row[column]).sum::<f32>() / count;
        let variance = rows.iter().map(|row| (row[column] - mean).powi(2)).sum::<f32>() / count;
        let deviation = variance.sqrt() + EPSILON;
        for row in rows.iter_mut() {
            row[column] = (row[column] - mean) / deviation;
        }
    }
}

/// Returns the median of each value and its neighbours.
fn smooth(row: &[f32]) -> Vec<f32> {
    let half = SMOOTHED / 2;
    let around = |index: usize| {
        let mut near = row[index.saturating_sub(half)..(index + half + 1).min(row.len())].to_vec();
        near.sort_by(f32::total_cmp);
        near[near.len() / 2]
    };
    (0..row.len()).map(around).collect()
}

/// Returns for each row the first column on the cheapest path from the first to the last corner.
fn first_vectors(cost: &[Vec<f32>]) -> Vec<usize> {
    let columns = cost.first().map_or(0, Vec::len);
    let mut total = vec![f32::INFINITY; columns];
    let mut came_down = Vec::with_capacity(cost.len());
    for (index, row) in cost.iter().enumerate() {
        let mut current = vec![f32::INFINITY; columns];
        let mut down = vec![false; columns];
        for column in 0..columns {
            let left = if column > 0 { current[column - 1] } else { f32::INFINITY };
            let above = match (index, column) {
                (0, 0) => 0.0,
                (0, _) => f32::INFINITY,
                (_, 0) => total[0],
                _ => total[column].min(total[column - 1]),
            };
            down[column] = above <= left;
            current[column] = row[column] + above.min(left);
        }
        // A step down may also be a diagonal one: remember which.
        let diagonal = |column: usize| index > 0 && column > 0 && total[column - 1] <= total[column];
        came_down.push((0..columns).map(|column| (down[column], diagonal(column))).collect::<Vec<_>>());
        total = current;
    }
    let mut first = vec![0; cost.len()];
    let mut column = columns.saturating_sub(1);
    for (index, row) in came_down.iter().enumerate().rev() {
        while column > 0 && !row[column].0 {
            column -= 1;
        }
        first[index] = column;
        if row[column].1 {
            column -= 1;
        }
    }
    first
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_begin_where_they_look_first() {
        let looks = |from: usize, to: usize| (0..30).map(|v| if (from..to).contains(&v) { 1.0 } else { 0.0 }).collect();
        let decoded = Decoded {
            tokens: vec![1, 2, 3],
            probabilities: vec![1.0; 3],
            attention: vec![vec![looks(0, 8)], vec![looks(8, 20)], vec![looks(20, 30)]],
            no_speech: 0.0,
        };
        let starts = token_starts(&decoded, 30);
        assert_eq!(starts.len(), 3);
        for (start, expected) in starts.iter().zip([0.0, 0.16, 0.4]) {
            assert!((start - expected).abs() <= 0.041, "{starts:?}");
        }
    }

    #[test]
    fn without_speech_or_attention_all_tokens_begin_at_once() {
        let decoded = Decoded { tokens: vec![1], probabilities: vec![1.0], attention: vec![vec![]], no_speech: 0.0 };
        assert_eq!(token_starts(&decoded, 30), [0.0]);
        assert_eq!(token_starts(&decoded, 0), [0.0]);
    }
}
