use std::fmt;

use serde::{Deserialize, Serialize};

/// One of the feelings that a persona has towards a person, as a number from [`Dimension::least`] to 1; 0 is nothing in
/// particular.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Dimension {
    /// Liking; below 0 coldness.
    Warmth,
    /// Trust; below 0 distrust.
    Trust,
    /// Wish to play and joke.
    Playfulness,
    /// Strain between the two.
    Tension,
    /// Annoyance with the person.
    Irritation,
    /// Worry for the person.
    Concern,
}

impl Dimension {
    /// All there are.
    pub const ALL: [Self; 6] =
        [Self::Warmth, Self::Trust, Self::Playfulness, Self::Tension, Self::Irritation, Self::Concern];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Warmth => "warmth",
            Self::Trust => "trust",
            Self::Playfulness => "playfulness",
            Self::Tension => "tension",
            Self::Irritation => "irritation",
            Self::Concern => "concern",
        }
    }

    /// The dimension of a name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|dimension| dimension.name() == name)
    }

    /// The least it can be: -1 where there is an opposite, else 0.
    pub fn least(self) -> f64 {
        match self {
            Self::Warmth | Self::Trust => -1.0,
            Self::Playfulness | Self::Tension | Self::Irritation | Self::Concern => 0.0,
        }
    }
}

impl fmt::Display for Dimension {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
