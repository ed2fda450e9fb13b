use std::fmt;

use data_encoding::HEXLOWER;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::classify::Error;
use crate::mood::{self, MoodClassifier};
use crate::salience::{self, SalienceClassifier};
use crate::tags::{self, TagClassifier};

/// The version of the training. Increase it whenever the same examples would give other classifiers.
const VERSION: u32 = 3;

/// All classifiers, trained for one embedding model.
#[derive(Clone, Serialize, Deserialize)]
pub struct Classifiers {
    /// The mood classifier.
    pub mood: MoodClassifier,
    /// The tag classifier.
    pub tags: TagClassifier,
    /// The salience classifier.
    #[serde(rename = "worth")]
    pub salience: SalienceClassifier,
}

impl fmt::Debug for Classifiers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Classifiers")
    }
}

impl Classifiers {
    /// Returns the training texts of all classifiers, to be embedded.
    pub fn examples() -> Result<Vec<String>, Error> {
        let mut examples = MoodClassifier::examples()?;
        examples.extend(TagClassifier::examples()?);
        examples.extend(SalienceClassifier::examples()?);
        Ok(examples)
    }

    /// Trains on the vectors of [`Classifiers::examples`], in their order. Takes seconds on one core.
    ///
    /// # Errors
    ///
    /// [`Error::Vectors`] or [`Error::Lengths`] if there is not one vector of the same length for each example.
    pub fn learn(vectors: &[Vec<f32>]) -> Result<Self, Error> {
        let (moods, tags) = (MoodClassifier::examples()?.len(), TagClassifier::examples()?.len());
        let wrong = |want: usize| move || Error::Vectors { got: vectors.len(), want };
        let (moods, others) = vectors.split_at_checked(moods).ok_or_else(wrong(moods))?;
        let (tags, salience) = others.split_at_checked(tags).ok_or_else(wrong(tags))?;
        Ok(Self {
            mood: MoodClassifier::learn(moods)?,
            tags: TagClassifier::learn(tags)?,
            salience: SalienceClassifier::learn(salience)?,
        })
    }

    /// Returns the classifiers as JSON, to be stored.
    pub fn to_json(&self) -> Result<Vec<u8>, Error> {
        serde_json::to_vec(self).map_err(|error| Error::Stored(error.to_string()))
    }

    /// Reads stored classifiers.
    ///
    /// # Errors
    ///
    /// [`Error::Stored`] if the JSON is damaged. Then the classifiers must be trained again.
    pub fn from_json(json: &[u8]) -> Result<Self, Error> {
        let classifiers: Self = serde_json::from_slice(json).map_err(|error| Error::Stored(error.to_string()))?;
        if classifiers.mood.fits() && classifiers.tags.fits() && classifiers.salience.fits() {
            Ok(classifiers)
        } else {
            Err(Error::Stored("its parts do not fit each other".into()))
        }
    }

    /// Returns a name for the classifiers of the embedding model with the identity `embedder`: 16 hexadecimal digits
    /// that change with the model, the examples and the version of the training.
    pub fn name_for(embedder: &str) -> String {
        let mut hash = Sha256::new();
        for part in [&VERSION.to_string(), embedder, mood::EXAMPLES, tags::EXAMPLES, salience::EXAMPLES] {
            hash.update(part);
            hash.update([0]);
        }
        HEXLOWER.encode(&hash.finalize()[..8])
    }
}
