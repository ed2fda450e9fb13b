use std::fmt;

use serde::{Deserialize, Serialize};

use crate::classify::{Classifier, Error, Labels};
use crate::examples::{LabelledSentence, labelled, taught, texts};

/// Sentences a persona might say, and the mood in each.
pub(crate) const EXAMPLES: &str = include_str!("../examples/mood.jsonl");

/// How a persona feels, as far as what it says shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mood {
    /// Glad of something good.
    Happy,
    /// Full of energy and expectation.
    Excited,
    /// At ease with how things are.
    Content,
    /// Composed.
    Calm,
    /// Wants to know.
    Curious,
    /// Weighs and reflects.
    Thoughtful,
    /// Sad, wistful.
    Melancholy,
    /// Worried for somebody.
    Concerned,
}

impl Mood {
    /// All there are.
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

    /// Its name.
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

    /// The mood of a name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mood| mood.name() == name)
    }

    /// How pleasant it is, -1 to 1: its place on the circumplex of affect (Russell 1980), rounded.
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

    /// How much it stirs, 0 to 1: likewise.
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

/// The mood in a text.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DetectedMood {
    /// The likeliest mood.
    pub mood: Mood,
    /// Its probability.
    pub probability: f32,
    /// Valence over all moods, each as far as it is likely.
    pub valence: f32,
    /// Arousal over all moods, each as far as it is likely.
    pub arousal: f32,
}

/// Tells moods from what a persona says.
#[derive(Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub struct MoodClassifier(Classifier);

impl fmt::Debug for MoodClassifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MoodClassifier")
    }
}

impl MoodClassifier {
    /// The sentences it is learned from, to be embedded.
    pub(crate) fn examples() -> Result<Vec<String>, Error> {
        texts(EXAMPLES)
    }

    /// The same sentences with the mood in each, for those who compare.
    pub fn labelled_examples() -> Result<Vec<LabelledSentence>, Error> {
        labelled(EXAMPLES)
    }

    /// The probability of each of [`Mood::ALL`] for each of [`MoodClassifier::labelled_examples`], whose vectors these are, by what
    /// those of seven other parts of eight teach. Takes seconds of a core.
    ///
    /// # Errors
    ///
    /// If there is not one vector of the same length for each of them.
    pub fn left_out(vectors: &[Vec<f32>]) -> Result<Vec<Vec<f32>>, Error> {
        let examples = taught(EXAMPLES, &Mood::ALL.map(Mood::name), vectors)?;
        Ok(Classifier::left_out(Labels::One, Mood::ALL.len(), &examples))
    }

    /// Learns from the vectors of [`MoodClassifier::examples`], in their order.
    ///
    /// # Errors
    ///
    /// If there is not one vector of the same length for each of them.
    pub(crate) fn learn(vectors: &[Vec<f32>]) -> Result<Self, Error> {
        let examples = taught(EXAMPLES, &Mood::ALL.map(Mood::name), vectors)?;
        Ok(Self(Classifier::learn(Labels::One, Mood::ALL.len(), &[], &examples)))
    }

    pub(crate) fn fits(&self) -> bool {
        self.0.fits(Mood::ALL.len())
    }

    /// The probability of each of [`Mood::ALL`] in a text, whose vector it is.
    pub fn probabilities(&self, text: &str, vector: &[f32]) -> Vec<f32> {
        self.0.probabilities(text, vector)
    }

    /// The mood in a text, whose vector it is.
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
