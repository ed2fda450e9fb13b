use std::fmt;

use serde::{Deserialize, Serialize};

/// One feeling of a persona towards a person: a number from [`Dimension::least`] to 1, where 0 is neutral.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Dimension {
    /// Liking; below 0, coldness.
    Warmth,
    /// Trust; below 0, distrust.
    Trust,
    /// The wish to play and joke.
    Playfulness,
    /// Strain between the two.
    Tension,
    /// Annoyance with the person.
    Irritation,
    /// Worry for the person.
    Concern,
}

impl Dimension {
    /// All dimensions.
    pub const ALL: [Self; 6] =
        [Self::Warmth, Self::Trust, Self::Playfulness, Self::Tension, Self::Irritation, Self::Concern];

    /// Returns the name, as it is written in rules and stored.
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

    /// Returns the dimension with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|dimension| dimension.name() == name)
    }

    /// Returns the lowest value: -1 if the feeling has an opposite, else 0.
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
