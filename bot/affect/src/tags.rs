use std::fmt;

use serde::{Deserialize, Serialize};

use crate::classify::{Care, Classifier, Error, Labels};
use crate::examples::{taught, texts};

/// Messages that people might write, with the tags of each.
pub(crate) const EXAMPLES: &str = include_str!("../examples/tags.jsonl");

macro_rules! tags {
    ($($(#[doc = $doc:literal])* $tag:ident = $name:literal,)*) => {
        /// What a message is, besides its content.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Tag {
            $($(#[doc = $doc])* $tag,)*
        }

        impl Tag {
            /// All tags.
            pub const ALL: &[Self] = &[$(Self::$tag),*];

            /// Returns the name.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$tag => $name,)*
                }
            }
        }
    };
}

tags! {
    /// Shows ill will towards the bot or the people present.
    Hostility = "hostility",
    /// Threatens consequences over a grievance.
    Escalation = "escalation",
    /// Calls the bot or somebody present names.
    Insult = "insult",
    /// Apologizes.
    Apology = "apology",
    /// Thanks somebody.
    Gratitude = "gratitude",
    /// Shows fondness.
    Affection = "affection",
    /// Flirts.
    Flirtation = "flirtation",
    /// Mourns.
    Grief = "grief",
    /// Expresses loneliness.
    Loneliness = "loneliness",
    /// Fears what may come.
    Anxiety = "anxiety",
    /// Shows anger at somebody absent.
    AngerAtOther = "anger_at_other",
    /// Is about self-harm, openly or not.
    SelfHarm = "self_harm",
    /// Announces harm to somebody.
    Threat = "threat",
    /// Says that the speaker is under 18.
    Minor = "minor",
    /// Asks or tells about health.
    Medical = "medical",
    /// Confesses something hidden.
    Confession = "confession",
    /// Tells of something good that happened.
    GoodNews = "good_news",
    /// Jokes.
    Joke = "joke",
    /// Asks for help with a program.
    CodeHelp = "code_help",
    /// Plays a story, or wants to.
    StoryPlay = "story_play",
}

impl Tag {
    /// Returns the tag with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|tag| tag.name() == name)
    }

    fn care(self) -> Care {
        let (beta, alarms) = match self {
            // Missing help that somebody needs is far worse than showing it without need, so as many cases are detected
            // as the limit allows. But people soon overlook help that appears in every other conversation.
            Self::SelfHarm => (10.0, 0.02),
            // Ordinary talk is hardly ever one of these, and a false accusation offends.
            Self::Threat => (2.0, 0.01),
            Self::Insult => (1.0, 0.01),
            Self::Escalation => (1.0, 0.005),
            Self::Hostility => (1.0, 0.02),
            Self::Flirtation => (1.0, 0.003),
            Self::Minor => (2.0, 1.0),
            _ => (1.0, 1.0),
        };
        Care { beta, alarms }
    }
}

impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Detects the tags of people's messages.
#[derive(Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TagClassifier(Classifier);

impl fmt::Debug for TagClassifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TagClassifier")
    }
}

impl TagClassifier {
    /// Returns the training messages, to be embedded.
    pub(crate) fn examples() -> Result<Vec<String>, Error> {
        texts(EXAMPLES)
    }

    /// Trains on the vectors of [`TagClassifier::examples`], in their order.
    ///
    /// # Errors
    ///
    /// [`Error::Vectors`] or [`Error::Lengths`] if there is not one vector of the same length for each example.
    pub(crate) fn learn(vectors: &[Vec<f32>]) -> Result<Self, Error> {
        let names: Vec<&str> = Tag::ALL.iter().map(|tag| tag.name()).collect();
        let examples = taught(EXAMPLES, &names, vectors)?;
        let care: Vec<Care> = Tag::ALL.iter().map(|tag| tag.care()).collect();
        Ok(Self(Classifier::learn(Labels::Any, Tag::ALL.len(), &care, &examples)))
    }

    pub(crate) fn fits(&self) -> bool {
        self.0.fits(Tag::ALL.len())
    }

    /// Returns the tags of a message with this vector; usually none.
    pub fn classify(&self, text: &str, vector: &[f32]) -> Vec<Tag> {
        self.0.holding(text, vector).into_iter().filter_map(|number| Tag::ALL.get(number).copied()).collect()
    }
}
