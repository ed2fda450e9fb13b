use std::fmt;

use crate::classify::{Classifier, Error, Example, Labels};
use crate::examples::labelled;

/// Messages people might write, and what each is.
const EXAMPLES: &str = include_str!("../examples/tags.jsonl");

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

    /// How many times worse it is to overlook it than to look twice.
    fn caution(self) -> f32 {
        match self {
            Self::SelfHarm => 10.0,
            Self::Minor | Self::Threat => 2.0,
            _ => 1.0,
        }
    }
}

impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Tells what people's messages are.
#[derive(Clone)]
pub struct TagSense(Classifier);

impl fmt::Debug for TagSense {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TagSense")
    }
}

impl TagSense {
    /// The messages it is learned from, to be embedded.
    pub fn examples() -> Result<Vec<String>, Error> {
        Ok(labelled(EXAMPLES)?.into_iter().map(|example| example.text).collect())
    }

    /// Learns from the vectors of [`TagSense::examples`], in their order.
    ///
    /// # Errors
    ///
    /// If there is not one vector for each of them.
    pub fn learn(vectors: &[Vec<f32>]) -> Result<Self, Error> {
        let examples = labelled(EXAMPLES)?;
        if vectors.len() != examples.len() {
            return Err(Error::Vectors { got: vectors.len(), want: examples.len() });
        }
        let mut taught = Vec::with_capacity(examples.len());
        for (index, (example, vector)) in examples.iter().zip(vectors).enumerate() {
            let mut labels = Vec::with_capacity(example.labels.len());
            for label in &example.labels {
                let number = Tag::ALL.iter().position(|tag| tag.name() == label);
                labels.push(number.ok_or_else(|| Error::Label {
                    line: index + 1,
                    label: label.clone(),
                    known: Tag::ALL.iter().map(|tag| tag.name()).collect::<Vec<_>>().join(", "),
                })?);
            }
            taught.push(Example { text: &example.text, vector, labels });
        }
        let caution: Vec<f32> = Tag::ALL.iter().map(|tag| tag.caution()).collect();
        Ok(Self(Classifier::learn(Labels::Any, Tag::ALL.len(), &caution, &taught)?))
    }

    /// What a message is, whose vector it is: nothing in particular, as a rule.
    pub fn sense(&self, text: &str, vector: &[f32]) -> Vec<Tag> {
        self.0.holding(text, vector).into_iter().filter_map(|number| Tag::ALL.get(number).copied()).collect()
    }
}
