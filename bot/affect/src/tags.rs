use std::fmt;

use serde::{Deserialize, Serialize};

use crate::classify::{Care, Classifier, Error, Labels};
use crate::examples::{taught, texts};

/// Messages people might write, and what each is.
pub(crate) const EXAMPLES: &str = include_str!("../examples/tags.jsonl");

macro_rules! tags {
    ($($(#[doc = $doc:literal])* $tag:ident = $name:literal,)*) => {
        /// What a message is, besides its content.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Tag {
            $($(#[doc = $doc])* $tag,)*
        }

        impl Tag {
            /// All there are.
            pub const ALL: &[Self] = &[$(Self::$tag),*];

            /// Its name.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$tag => $name,)*
                }
            }
        }
    };
}

tags! {
    /// Ill will towards the bot or the people present.
    Hostility = "hostility",
    /// Threatens consequences over a grievance.
    Escalation = "escalation",
    /// Names the bot or somebody present something.
    Insult = "insult",
    /// Asks to be excused.
    Apology = "apology",
    /// Thanks.
    Gratitude = "gratitude",
    /// Fondness.
    Affection = "affection",
    /// Courts.
    Flirtation = "flirtation",
    /// Mourns.
    Grief = "grief",
    /// Misses company.
    Loneliness = "loneliness",
    /// Fears what may come.
    Anxiety = "anxiety",
    /// Anger at somebody absent.
    AngerAtOther = "anger_at_other",
    /// Is about harming oneself, openly or not.
    SelfHarm = "self_harm",
    /// Announces harm to somebody.
    Threat = "threat",
    /// Says that the speaker is under 18.
    Minor = "minor",
    /// Asks or tells about health.
    Medical = "medical",
    /// Owns up to something hidden.
    Confession = "confession",
    /// Tells of something good that happened.
    GoodNews = "good_news",
    /// Jokes.
    Joke = "joke",
    /// Asks for help with a program.
    CodeHelp = "code_help",
    /// Plays a story or wants to.
    StoryPlay = "story_play",
}

impl Tag {
    /// The tag of a name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|tag| tag.name() == name)
    }

    fn care(self) -> Care {
        let (beta, alarms) = match self {
            // Not to be shown help is far worse than to be shown it without need, so as much is seen as the limit allows;
            // but help that comes up in every other talk is soon overlooked.
            Self::SelfHarm => (10.0, 0.02),
            // Ordinary talk is hardly ever any of these, and to be taken for it offends.
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

/// Tells what people's messages are.
#[derive(Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TagClassifier(Classifier);

impl fmt::Debug for TagClassifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TagClassifier")
    }
}

impl TagClassifier {
    /// The messages it is learned from, to be embedded.
    pub(crate) fn examples() -> Result<Vec<String>, Error> {
        texts(EXAMPLES)
    }

    /// Learns from the vectors of [`TagClassifier::examples`], in their order.
    ///
    /// # Errors
    ///
    /// If there is not one vector of the same length for each of them.
    pub(crate) fn learn(vectors: &[Vec<f32>]) -> Result<Self, Error> {
        let names: Vec<&str> = Tag::ALL.iter().map(|tag| tag.name()).collect();
        let examples = taught(EXAMPLES, &names, vectors)?;
        let care: Vec<Care> = Tag::ALL.iter().map(|tag| tag.care()).collect();
        Ok(Self(Classifier::learn(Labels::Any, Tag::ALL.len(), &care, &examples)))
    }

    pub(crate) fn fits(&self) -> bool {
        self.0.fits(Tag::ALL.len())
    }

    /// What a message is, whose vector it is: nothing in particular, as a rule.
    pub fn classify(&self, text: &str, vector: &[f32]) -> Vec<Tag> {
        self.0.holding(text, vector).into_iter().filter_map(|number| Tag::ALL.get(number).copied()).collect()
    }
}
