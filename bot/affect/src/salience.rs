use std::fmt;

use serde::{Deserialize, Serialize};

use crate::classify::{Classifier, Error, Labels};
use crate::examples::{taught, texts};

/// Sentences people might write, and what kind of memory each is worth.
pub(crate) const EXAMPLES: &str = include_str!("../examples/salience.jsonl");

/// The label of what no person would call worth keeping.
const NOTHING: &str = "none";

/// What a memory is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// What somebody likes, cannot stand, or wants done in some way.
    Preference,
    /// What holds for a long time: work, home, health, possessions, habits, numbers.
    Fact,
    /// What has happened.
    Event,
    /// What is to come: appointments, promises, intentions.
    Plan,
    /// What people are to each other.
    Relationship,
    /// What was settled.
    Decision,
}

impl Kind {
    /// All there are.
    pub const ALL: [Self; 6] =
        [Self::Preference, Self::Fact, Self::Event, Self::Plan, Self::Relationship, Self::Decision];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Preference => "preference",
            Self::Fact => "fact",
            Self::Event => "event",
            Self::Plan => "plan",
            Self::Relationship => "relationship",
            Self::Decision => "decision",
        }
    }

    /// The kind of a name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// How much a memory of this kind matters, 0 to 1, when nothing else is known of it; numbers of our own
    /// choice.
    pub(crate) fn importance(self) -> f32 {
        match self {
            Self::Relationship => 0.8,
            Self::Fact | Self::Event | Self::Decision => 0.7,
            Self::Preference => 0.65,
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
    /// The likeliest kind, if it is kept.
    pub kind: Kind,
    /// The probability that it is worth keeping, of whatever kind.
    pub probability: f32,
}

/// Tells which sentences of people are worth keeping as memories, and of what kind they are.
#[derive(Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SalienceClassifier(Classifier);

impl fmt::Debug for SalienceClassifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SalienceClassifier")
    }
}

impl SalienceClassifier {
    /// The sentences it is learned from, to be embedded.
    pub(crate) fn examples() -> Result<Vec<String>, Error> {
        texts(EXAMPLES)
    }

    /// Learns from the vectors of [`SalienceClassifier::examples`], in their order.
    ///
    /// # Errors
    ///
    /// If there is not one vector of the same length for each of them.
    pub(crate) fn learn(vectors: &[Vec<f32>]) -> Result<Self, Error> {
        let mut names = vec![NOTHING];
        names.extend(Kind::ALL.map(Kind::name));
        let examples = taught(EXAMPLES, &names, vectors)?;
        Ok(Self(Classifier::learn(Labels::One, names.len(), &[], &examples)))
    }

    pub(crate) fn fits(&self) -> bool {
        self.0.fits(1 + Kind::ALL.len())
    }

    /// How much a sentence is worth keeping, whose vector it is.
    pub fn classify(&self, sentence: &str, vector: &[f32]) -> SalienceScore {
        let probabilities = self.0.probabilities(sentence, vector);
        let kinds = Kind::ALL.into_iter().zip(probabilities.iter().skip(1));
        let kind = kinds.max_by(|(_, a), (_, b)| a.total_cmp(b)).map_or(Kind::Fact, |(kind, _)| kind);
        SalienceScore { kind, probability: 1.0 - probabilities.first().copied().unwrap_or(1.0) }
    }
}
