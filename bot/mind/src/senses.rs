use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::classify::Error;
use crate::mood::{self, MoodSense};
use crate::tags::{self, TagSense};
use crate::worth::{self, WorthSense};

/// Rises whenever the same examples would be learned otherwise.
const VERSION: u32 = 3;

/// Everything that is learned from the examples, for one embedding model.
#[derive(Clone, Serialize, Deserialize)]
pub struct Senses {
    /// Moods.
    pub mood: MoodSense,
    /// Tags.
    pub tags: TagSense,
    /// What is worth keeping.
    pub worth: WorthSense,
}

impl fmt::Debug for Senses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Senses")
    }
}

impl Senses {
    /// The texts to be embedded to learn it.
    pub fn examples() -> Result<Vec<String>, Error> {
        let mut examples = MoodSense::examples()?;
        examples.extend(TagSense::examples()?);
        examples.extend(WorthSense::examples()?);
        Ok(examples)
    }

    /// Learns from the vectors of [`Senses::examples`], in their order. Takes seconds of a core.
    ///
    /// # Errors
    ///
    /// If there is not one vector of the same length for each of them.
    pub fn learn(vectors: &[Vec<f32>]) -> Result<Self, Error> {
        let (moods, tags) = (MoodSense::examples()?.len(), TagSense::examples()?.len());
        let wrong = |want: usize| move || Error::Vectors { got: vectors.len(), want };
        let (moods, others) = vectors.split_at_checked(moods).ok_or_else(wrong(moods))?;
        let (tags, worth) = others.split_at_checked(tags).ok_or_else(wrong(tags))?;
        Ok(Self { mood: MoodSense::learn(moods)?, tags: TagSense::learn(tags)?, worth: WorthSense::learn(worth)? })
    }

    /// What was learned, to be kept: JSON.
    pub fn to_json(&self) -> Result<Vec<u8>, Error> {
        serde_json::to_vec(self).map_err(|error| Error::Stored(error.to_string()))
    }

    /// What was kept.
    ///
    /// # Errors
    ///
    /// [`Error::Stored`] if it is damaged; then it has to be learned anew.
    pub fn from_json(json: &[u8]) -> Result<Self, Error> {
        let senses: Self = serde_json::from_slice(json).map_err(|error| Error::Stored(error.to_string()))?;
        if senses.mood.fits() && senses.tags.fits() && senses.worth.fits() {
            Ok(senses)
        } else {
            Err(Error::Stored("its parts do not fit each other".into()))
        }
    }

    /// A name for what is learned with the embedding model of the identity `embedder`: 16 hexadecimal digits that change
    /// with the model, the examples and how they are learned.
    pub fn name_for(embedder: &str) -> String {
        let mut hash = Sha256::new();
        for part in [&VERSION.to_string(), embedder, mood::EXAMPLES, tags::EXAMPLES, worth::EXAMPLES] {
            hash.update(part);
            hash.update([0]);
        }
        hash.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect()
    }
}
