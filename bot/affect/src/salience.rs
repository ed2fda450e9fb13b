use std::fmt;

use serde::{Deserialize, Serialize};

use crate::classify::{Classifier, Error, Labels};
use crate::examples::{taught, texts};

/// Sentences that people might write, with the kind of memory that each deserves.
pub(crate) const EXAMPLES: &str = include_str!("../examples/salience.jsonl");

/// The label of sentences that are not worth keeping.
const NOTHING: &str = "none";

/// The kind of a memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// Something that a person likes, dislikes, or wants done in a certain way.
    Preference,
    /// Something that holds for a long time: work, home, health, possessions, numbers.
    Fact,
    /// Something that has happened.
    Event,
    /// Something that is to come: appointments, promises, intentions.
    Plan,
    /// How people are related to each other.
    Relationship,
    /// Something that was settled.
    Decision,
    /// What somebody does again and again, or always in the same way: a habit, a routine, a convention.
    Pattern,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 7] =
        [Self::Preference, Self::Fact, Self::Event, Self::Plan, Self::Relationship, Self::Decision, Self::Pattern];

    /// Returns the name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Preference => "preference",
            Self::Fact => "fact",
            Self::Event => "event",
            Self::Plan => "plan",
            Self::Relationship => "relationship",
            Self::Decision => "decision",
            Self::Pattern => "pattern",
        }
    }

    /// Returns the kind with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Returns how important a memory of this kind is, 0 to 1, if nothing else is known about it. The values are our
    /// own choice.
    pub(crate) fn importance(self) -> f32 {
        match self {
            Self::Relationship => 0.8,
            Self::Fact | Self::Event | Self::Decision => 0.7,
            Self::Preference | Self::Pattern => 0.65,
            Self::Plan => 0.6,
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// How much a sentence is worth keeping.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SalienceScore {
    /// The likeliest kind, if the sentence is kept.
    pub kind: Kind,
    /// The probability that the sentence is worth keeping, whatever its kind.
    pub probability: f32,
}

/// Rates which sentences of people are worth keeping as memories, and of which kind they are.
#[derive(Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SalienceClassifier(Classifier);

impl fmt::Debug for SalienceClassifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SalienceClassifier")
    }
}

impl SalienceClassifier {
    /// Returns the training sentences, to be embedded.
    pub(crate) fn examples() -> Result<Vec<String>, Error> {
        texts(EXAMPLES)
    }

    /// Trains on the vectors of [`SalienceClassifier::examples`], in their order.
    ///
    /// # Errors
    ///
    /// [`Error::Vectors`] or [`Error::Lengths`] if there is not one vector of the same length for each example.
    pub(crate) fn learn(vectors: &[Vec<f32>]) -> Result<Self, Error> {
        let mut names = vec![NOTHING];
        names.extend(Kind::ALL.map(Kind::name));
        let examples = taught(EXAMPLES, &names, vectors)?;
        Ok(Self(Classifier::learn(Labels::One, names.len(), &[], &examples)))
    }

    pub(crate) fn fits(&self) -> bool {
        self.0.fits(1 + Kind::ALL.len())
    }

    /// Rates how much a sentence with this vector is worth keeping.
    pub fn classify(&self, sentence: &str, vector: &[f32]) -> SalienceScore {
        let probabilities = self.0.probabilities(sentence, vector);
        let kinds = Kind::ALL.into_iter().zip(probabilities.iter().skip(1));
        let kind = kinds.max_by(|(_, a), (_, b)| a.total_cmp(b)).map_or(Kind::Fact, |(kind, _)| kind);
        SalienceScore { kind, probability: 1.0 - probabilities.first().copied().unwrap_or(1.0) }
    }
}
