//! A linear classifier: logistic regression over a sentence's vector, words and letters, with either one label or any
//! number of labels for each sentence.

use serde::{Deserialize, Serialize};

use crate::features::{Sparse, Vocabulary};

/// The inverse strength of regularization per example, like `C` in LIBLINEAR. In cross-validation, values from 3 to 30
/// make little difference.
const C: f32 = 10.0;

/// Passes over the examples.
const EPOCHS: usize = 30;

/// The first step size. It falls linearly to zero.
const STEP: f32 = 1.0;

/// The folds of the cross-validation that chooses thresholds.
const FOLDS: usize = 8;

/// The reasons why a classifier cannot be trained or read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A line is not a labelled sentence.
    #[error("line {line}: {why}")]
    Line {
        /// The line, counted from 1.
        line: usize,
        /// What is wrong with it.
        why: String,
    },
    /// A label does not exist.
    #[error("line {line}: there is no label {label:?}; there are {known}")]
    Label {
        /// The line, counted from 1.
        line: usize,
        /// The label.
        label: String,
        /// The labels that exist.
        known: String,
    },
    /// The number of vectors differs from the number of examples.
    #[error("{got} vectors for {want} examples")]
    Vectors {
        /// The number of vectors.
        got: usize,
        /// The number of examples.
        want: usize,
    },
    /// A stored classifier is damaged or of another version.
    #[error("what was learned cannot be read: {0}")]
    Stored(String),
    /// Vectors have different lengths.
    #[error("vectors of {one} and of {other} numbers")]
    Lengths {
        /// The length of the first vector.
        one: usize,
        /// The length of the other vector.
        other: usize,
    },
}

/// How many labels a sentence has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Labels {
    /// Each sentence has exactly one label.
    One,
    /// Each sentence has any number of labels.
    Any,
}

/// The cost of errors for a label of [`Labels::Any`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Care {
    /// How many times worse a miss is than a false alarm: the beta of an F-measure. 1 weighs both equally.
    pub(crate) beta: f32,
    /// The largest share of the examples without the label that may get it, whatever the F-measure says. An F-measure
    /// does not know how rare a label is outside the examples, where nearly all messages have none. 1 is no limit.
    pub(crate) alarms: f32,
}

/// A training example: a sentence, its vector, and the numbers of its labels.
pub(crate) struct Example {
    pub(crate) text: String,
    pub(crate) vector: Vec<f32>,
    pub(crate) labels: Vec<usize>,
}

struct Sample {
    /// The index of the example.
    number: usize,
    dense: Vec<f32>,
    sparse: Sparse,
    labels: Vec<usize>,
}

/// A trained classifier.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Classifier {
    relation: Labels,
    dimension: usize,
    vocabulary: Vocabulary,
    weights: Weights,
    /// The probability from which each label holds, for [`Labels::Any`].
    thresholds: Vec<f32>,
}

#[derive(Clone, Serialize, Deserialize)]
struct Weights {
    labels: usize,
    /// One weight per feature and label: first the features of the vector, then the words and letters, last the bias.
    values: Vec<f32>,
}

impl Classifier {
    /// Trains `count` labels on examples whose vectors have one length. `care` has an entry for each label of
    /// [`Labels::Any`].
    pub(crate) fn learn(relation: Labels, count: usize, care: &[Care], examples: &[Example]) -> Self {
        let (dimension, vocabulary, samples) = seen(examples);
        let features = dimension + vocabulary.len();
        let all: Vec<&Sample> = samples.iter().collect();
        let thresholds = match relation {
            Labels::One => Vec::new(),
            Labels::Any => thresholds(&all, features, care),
        };
        let weights = Weights::fitted(relation, &all, features, count);
        Self { relation, dimension, vocabulary, weights, thresholds }
    }

    /// Returns the probability of each label for each example, from a classifier that was trained without its fold.
    pub(crate) fn left_out(relation: Labels, count: usize, examples: &[Example]) -> Vec<Vec<f32>> {
        let (dimension, vocabulary, samples) = seen(examples);
        let all: Vec<&Sample> = samples.iter().collect();
        let mut cross_validated = cross_validated(relation, &all, dimension + vocabulary.len(), count);
        cross_validated.sort_by_key(|(sample, _)| sample.number);
        cross_validated.into_iter().map(|(_, probabilities)| probabilities).collect()
    }

    /// Returns true if the parts match each other and `count` labels. A stored classifier may be damaged.
    pub(crate) fn fits(&self, count: usize) -> bool {
        let features = self.dimension.checked_add(self.vocabulary.len());
        let values = features.and_then(|features| features.checked_add(1)?.checked_mul(count));
        let thresholds = if self.relation == Labels::Any { count } else { 0 };
        self.weights.labels == count
            && values == Some(self.weights.values.len())
            && self.thresholds.len() == thresholds
            && self.vocabulary.is_numbered()
    }

    /// Returns the probability of each label.
    pub(crate) fn probabilities(&self, text: &str, vector: &[f32]) -> Vec<f32> {
        let mut dense = vector.to_vec();
        dense.resize(self.dimension, 0.0);
        self.weights.probabilities(self.relation, &dense, &self.vocabulary.features(text))
    }

    /// Returns the labels that hold, for [`Labels::Any`].
    pub(crate) fn holding(&self, text: &str, vector: &[f32]) -> Vec<usize> {
        let probabilities = self.probabilities(text, vector);
        let held = probabilities.iter().zip(&self.thresholds).enumerate();
        held.filter(|(_, (probability, threshold))| probability >= threshold).map(|(label, _)| label).collect()
    }
}

impl Weights {
    /// Fits the weights by stochastic gradient descent. The result is deterministic.
    fn fitted(relation: Labels, samples: &[&Sample], features: usize, labels: usize) -> Self {
        let mut weights = Self { labels, values: vec![0.0; (features + 1) * labels] };
        let penalty = 1.0 / (C * samples.len().max(1) as f32);
        for epoch in 0..EPOCHS {
            let step = STEP * (1.0 - epoch as f32 / EPOCHS as f32);
            for sample in samples {
                let mut errors = weights.probabilities(relation, &sample.dense, &sample.sparse);
                for label in &sample.labels {
                    errors[*label] -= 1.0;
                }
                errors.iter_mut().for_each(|error| *error *= -step);
                weights.add(sample, &errors);
            }
            let shrink = (1.0 - step * penalty).powf(samples.len() as f32);
            let biases = features * labels;
            weights.values[..biases].iter_mut().for_each(|value| *value *= shrink);
        }
        weights
    }

    fn add(&mut self, sample: &Sample, change: &[f32]) {
        let labels = self.labels;
        let mut at = |feature: usize, value: f32| {
            let row = &mut self.values[feature * labels..(feature + 1) * labels];
            row.iter_mut().zip(change).for_each(|(weight, change)| *weight += value * change);
        };
        for (feature, value) in features(&sample.dense, &sample.sparse) {
            at(feature, value);
        }
        let bias = self.values.len() - labels;
        self.values[bias..].iter_mut().zip(change).for_each(|(weight, change)| *weight += change);
    }

    fn probabilities(&self, relation: Labels, dense: &[f32], sparse: &Sparse) -> Vec<f32> {
        let labels = self.labels;
        let mut sums = self.values[self.values.len() - labels..].to_vec();
        for (feature, value) in features(dense, sparse) {
            let row = &self.values[feature * labels..(feature + 1) * labels];
            sums.iter_mut().zip(row).for_each(|(sum, weight)| *sum += value * weight);
        }
        match relation {
            Labels::Any => sums.iter_mut().for_each(|sum| *sum = 1.0 / (1.0 + (-*sum).exp())),
            Labels::One => {
                let most = sums.iter().copied().fold(f32::MIN, f32::max);
                sums.iter_mut().for_each(|sum| *sum = (*sum - most).exp());
                let all: f32 = sums.iter().sum();
                sums.iter_mut().for_each(|sum| *sum /= all);
            }
        }
        sums
    }
}

/// Returns the length of the vectors, the vocabulary, and the samples in a fixed pseudorandom order.
fn seen(examples: &[Example]) -> (usize, Vocabulary, Vec<Sample>) {
    let dimension = examples.first().map_or(0, |example| example.vector.len());
    let vocabulary = Vocabulary::of(examples.iter().map(|example| example.text.as_str()));
    let sample = |(number, example): (usize, &Example)| Sample {
        number,
        dense: example.vector.clone(),
        sparse: vocabulary.features(&example.text),
        labels: example.labels.clone(),
    };
    let mut samples: Vec<Sample> = examples.iter().enumerate().map(sample).collect();
    shuffle(&mut samples);
    (dimension, vocabulary, samples)
}

/// Iterates over all features of a sentence with their values.
fn features<'a>(dense: &'a [f32], sparse: &'a Sparse) -> impl Iterator<Item = (usize, f32)> + 'a {
    let behind = dense.len();
    let sparse = sparse.iter().map(move |(number, value)| (behind + *number as usize, *value));
    dense.iter().copied().enumerate().chain(sparse)
}

/// The candidate thresholds, in twentieths.
const TRIED: std::ops::RangeInclusive<u8> = 1..=18;

/// Returns the probability of each label for each sample, from weights that were fitted without the sample's fold.
fn cross_validated<'a>(
    relation: Labels,
    samples: &[&'a Sample],
    features: usize,
    labels: usize,
) -> Vec<(&'a Sample, Vec<f32>)> {
    let mut cross_validated = Vec::with_capacity(samples.len());
    for fold in 0..FOLDS {
        let (mut taught, mut left_out) = (Vec::new(), Vec::new());
        for (index, sample) in samples.iter().enumerate() {
            if index % FOLDS == fold { left_out.push(*sample) } else { taught.push(*sample) }
        }
        let weights = Weights::fitted(relation, &taught, features, labels);
        cross_validated.extend(
            left_out.into_iter().map(|sample| (sample, weights.probabilities(relation, &sample.dense, &sample.sparse))),
        );
    }
    cross_validated
}

/// Returns the best threshold for each label, measured on samples that were left out of the training.
fn thresholds(samples: &[&Sample], features: usize, care: &[Care]) -> Vec<f32> {
    let cross_validated = cross_validated(Labels::Any, samples, features, care.len());
    let best = |(label, care): (usize, &Care)| {
        let measure = |threshold: f32| {
            let (mut right, mut seen, mut there) = (0.0_f32, 0.0_f32, 0.0_f32);
            for (sample, probabilities) in &cross_validated {
                let (sees, is) = (probabilities[label] >= threshold, sample.labels.contains(&label));
                right += f32::from(u8::from(sees && is));
                seen += f32::from(u8::from(sees));
                there += f32::from(u8::from(is));
            }
            let beta = care.beta * care.beta;
            (1.0 + beta) * right / (beta * there + seen).max(1.0)
        };
        let measures: Vec<(f32, f32)> = TRIED
            .map(|twentieth| f32::from(twentieth) / 20.0)
            .map(|threshold| (threshold, measure(threshold)))
            .collect();
        // The sum over three neighbours, because a single best threshold is often luck.
        let enclosing = |part: &[(f32, f32)]| part.iter().map(|(_, measure)| measure).sum::<f32>();
        let best = measures.windows(3).max_by(|a, b| enclosing(a).total_cmp(&enclosing(b)));
        let without = cross_validated.iter().filter(|(sample, _)| !sample.labels.contains(&label));
        let floor = least(without.map(|(_, probabilities)| probabilities[label]).collect(), care.alarms);
        best.map_or(0.5, |part| part[1].0).max(floor)
    };
    care.iter().enumerate().map(best).collect()
}

/// Returns the lowest threshold that at most `share` of the probabilities reach.
fn least(mut probabilities: Vec<f32>, share: f32) -> f32 {
    probabilities.sort_by(|a, b| b.total_cmp(a));
    let allowed = (share * probabilities.len() as f32).floor() as usize;
    probabilities.get(allowed).map_or(0.0, |first_refused| first_refused.next_up())
}

/// Shuffles with a fixed seed, so that the order is unrelated to the given one and always the same (xorshift, Marsaglia
/// 2003).
fn shuffle<T>(items: &mut [T]) {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    for last in (1..items.len()).rev() {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let at = usize::try_from(state % (last as u64 + 1)).unwrap_or(0);
        items.swap(last, at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_than_the_share_reach_the_least_threshold() {
        let probabilities = vec![0.9, 0.1, 0.5, 0.5, 0.3];
        let reach = |share: f32| {
            let threshold = least(probabilities.clone(), share);
            probabilities.iter().filter(|probability| **probability >= threshold).count()
        };
        assert_eq!([0.0, 0.2, 0.4, 0.6, 0.8, 1.0].map(reach), [0, 1, 1, 3, 4, 5]);
        assert_eq!(least(Vec::new(), 0.1), 0.0);
    }
}
