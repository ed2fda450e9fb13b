use std::fmt;

use serde::{Deserialize, Serialize};

use crate::classify::{Classifier, Error, Labels};
use crate::examples::{LabelledSentence, labelled, taught, texts};

/// Sentences that a persona might say, with the mood of each.
pub(crate) const EXAMPLES: &str = include_str!("../examples/mood.jsonl");

/// The mood that a persona's words show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mood {
    /// Glad about something good.
    Happy,
    /// Full of energy and expectation.
    Excited,
    /// At ease with how things are.
    Content,
    /// Composed.
    Calm,
    /// Eager to know.
    Curious,
    /// Weighing and reflecting.
    Thoughtful,
    /// Sad, wistful.
    Melancholy,
    /// Worried about somebody.
    Concerned,
}

impl Mood {
    /// All moods.
    pub const ALL: [Self; 8] = [
        Self::Happy,
        Self::Excited,
        Self::Content,
        Self::Calm,
        Self::Curious,
        Self::Thoughtful,
        Self::Melancholy,
        Self::Concerned,
    ];

    /// Returns the name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Happy => "happy",
            Self::Excited => "excited",
            Self::Content => "content",
            Self::Calm => "calm",
            Self::Curious => "curious",
            Self::Thoughtful => "thoughtful",
            Self::Melancholy => "melancholy",
            Self::Concerned => "concerned",
        }
    }

    /// Returns the mood with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mood| mood.name() == name)
    }

    /// Returns how pleasant the mood is, -1 to 1: its place on the circumplex model of affect (Russell 1980), rounded.
    pub fn valence(self) -> f32 {
        match self {
            Self::Happy | Self::Excited => 0.8,
            Self::Content => 0.6,
            Self::Calm | Self::Curious => 0.4,
            Self::Thoughtful => 0.1,
            Self::Concerned => -0.4,
            Self::Melancholy => -0.6,
        }
    }

    /// Returns how strong the mood is, 0 to 1: its place on the circumplex model of affect (Russell 1980), rounded.
    pub fn arousal(self) -> f32 {
        match self {
            Self::Excited => 0.9,
            Self::Happy | Self::Curious | Self::Concerned => 0.6,
            Self::Content | Self::Thoughtful => 0.3,
            Self::Melancholy => 0.2,
            Self::Calm => 0.1,
        }
    }
}

impl fmt::Display for Mood {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The mood of a text.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DetectedMood {
    /// The likeliest mood.
    pub mood: Mood,
    /// The probability of the likeliest mood.
    pub probability: f32,
    /// The mean valence of all moods, weighted by their probabilities.
    pub valence: f32,
    /// The mean arousal of all moods, weighted by their probabilities.
    pub arousal: f32,
}

/// Detects the mood of what a persona says.
#[derive(Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub struct MoodClassifier(Classifier);

impl fmt::Debug for MoodClassifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MoodClassifier")
    }
}

impl MoodClassifier {
    /// Returns the training sentences, to be embedded.
    pub(crate) fn examples() -> Result<Vec<String>, Error> {
        texts(EXAMPLES)
    }

    /// Returns the training sentences with their moods, for comparisons.
    pub fn labelled_examples() -> Result<Vec<LabelledSentence>, Error> {
        labelled(EXAMPLES)
    }

    /// Returns the probability of each of [`Mood::ALL`] for each of [`MoodClassifier::labelled_examples`], by
    /// cross-validation in eight folds. `vectors` are the embeddings of these examples. Takes seconds on one core.
    ///
    /// # Errors
    ///
    /// [`Error::Vectors`] or [`Error::Lengths`] if there is not one vector of the same length for each example.
    pub fn left_out(vectors: &[Vec<f32>]) -> Result<Vec<Vec<f32>>, Error> {
        let examples = taught(EXAMPLES, &Mood::ALL.map(Mood::name), vectors)?;
        Ok(Classifier::left_out(Labels::One, Mood::ALL.len(), &examples))
    }

    /// Trains on the vectors of [`MoodClassifier::examples`], in their order.
    ///
    /// # Errors
    ///
    /// [`Error::Vectors`] or [`Error::Lengths`] if there is not one vector of the same length for each example.
    pub(crate) fn learn(vectors: &[Vec<f32>]) -> Result<Self, Error> {
        let examples = taught(EXAMPLES, &Mood::ALL.map(Mood::name), vectors)?;
        Ok(Self(Classifier::learn(Labels::One, Mood::ALL.len(), &[], &examples)))
    }

    pub(crate) fn fits(&self) -> bool {
        self.0.fits(Mood::ALL.len())
    }

    /// Returns the probability of each of [`Mood::ALL`] for a text with this vector.
    pub fn probabilities(&self, text: &str, vector: &[f32]) -> Vec<f32> {
        self.0.probabilities(text, vector)
    }

    /// Detects the mood of a text with this vector.
    pub fn classify(&self, text: &str, vector: &[f32]) -> DetectedMood {
        let probabilities = self.probabilities(text, vector);
        let likely = || Mood::ALL.into_iter().zip(&probabilities);
        let (mood, probability) =
            likely().max_by(|(_, a), (_, b)| a.total_cmp(b)).map_or((Mood::Calm, 0.0), |(mood, share)| (mood, *share));
        DetectedMood {
            mood,
            probability,
            valence: likely().map(|(mood, share)| share * mood.valence()).sum(),
            arousal: likely().map(|(mood, share)| share * mood.arousal()).sum(),
        }
    }
}
