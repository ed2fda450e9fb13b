//! What people allow: how much is remembered of them, whether their words are trained on, and where they may be heard.

use azera_types::{ChatId, PersonId};
use serde::{Deserialize, Serialize};

use crate::domains::Consent;
use crate::settings::{VOICE, learning_key, retention_key};
use crate::{Batch, Durability, Error, RetentionPreference, Table, TrainingConsent, keys};

/// Whether a person may be heard in a voice channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VoiceConsent {
    /// They were asked and did not answer.
    Asked,
    /// They may be heard.
    Given,
    /// They may not be heard.
    Refused,
}

impl Consent<'_> {
    /// Returns how much of their messages a person wants to be remembered. It stays when the person is forgotten.
    pub fn retention(self, person: &PersonId) -> Result<RetentionPreference, Error> {
        Ok(self.0.read_setting(&retention_key(person))?.unwrap_or_default())
    }

    /// Stores a person's retention preference.
    pub fn set_retention(self, person: &PersonId, retention: RetentionPreference) -> Result<(), Error> {
        self.0.set(retention_key(person), &retention)
    }

    /// Returns a person's consent to training; `None` unless they gave it.
    pub fn training(self, person: &PersonId) -> Result<Option<TrainingConsent>, Error> {
        self.0.read_setting(&learning_key(person))
    }

    /// Stores or revokes a person's consent to training.
    pub fn set_training(self, person: &PersonId, consent: Option<TrainingConsent>) -> Result<(), Error> {
        let key = learning_key(person);
        if let Some(consent) = consent {
            return self.0.set(key, &consent);
        }
        self.0.store.ready()?;
        let mut batch = Batch::new();
        batch.remove(Table::Settings, key);
        self.0.store.commit(batch, Durability::Flushed)
    }

    /// Returns whether a person may be heard in a voice channel; `None` if they were never asked there.
    pub fn voice(self, chat: &ChatId, person: &PersonId) -> Result<Option<VoiceConsent>, Error> {
        self.0.read_setting(&voice_key(chat, person))
    }

    /// Stores whether a person may be heard in a voice channel.
    pub fn set_voice(self, chat: &ChatId, person: &PersonId, consent: VoiceConsent) -> Result<(), Error> {
        let _writing = self.0.writing(chat)?;
        self.0.set(voice_key(chat, person), &consent)
    }
}

fn voice_key(chat: &ChatId, person: &PersonId) -> Vec<u8> {
    keys::prefix(&[VOICE, chat.as_str(), person.as_str()])
}
