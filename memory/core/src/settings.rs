//! Settings of places and people, and the progress of background jobs: ids, times, counts, and the overrides that
//! people wrote. They are forgotten with the place, or with the person whose DM it is.

use azera_types::{ChatId, PersonId, PersonaId, PlatformId, Scope, Timestamp};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::accounts::account_of;
use crate::domains::{PlaceSettings, Progress};
use crate::extraction_progress::ExtractionProgress;
use crate::links;
use crate::minds::ForgottenScope;
use crate::rows::{ChatRow, MessageRow};
use crate::surprise::USUAL;
use crate::{Batch, Durability, Error, Memory, Store, Table, codec, keys};

/// Messages searched for a person's newest one.
const LOOKED_BACK: usize = 64;

// First parts of the stored keys.
const CHECK_INS: &str = "waking";
const RETENTION: &str = "keeping";
const LEARNING: &str = "learning";
pub(crate) const VOICE: &str = "voice";

/// How much Azera remembers of a person's messages, in all places.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RetentionPreference {
    /// Everything that the bot can read.
    #[default]
    Everything,
    /// Only messages addressed to the bot.
    Addressed,
}

/// A person's consent to training on their messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "StoredTrainingConsent")]
pub struct TrainingConsent {
    /// Messages before this time are never used.
    pub since: Timestamp,
    /// True if training may also run on another machine.
    #[serde(rename = "elsewhere")]
    pub offload: bool,
}

/// The stored forms. A bare time is older and allows training on this machine only.
#[derive(Deserialize)]
#[serde(untagged)]
enum StoredTrainingConsent {
    Since(Timestamp),
    Whole {
        since: Timestamp,
        #[serde(rename = "elsewhere")]
        offload: bool,
    },
}

impl From<StoredTrainingConsent> for TrainingConsent {
    fn from(written: StoredTrainingConsent) -> Self {
        match written {
            StoredTrainingConsent::Since(since) => Self { since, offload: false },
            StoredTrainingConsent::Whole { since, offload } => Self { since, offload },
        }
    }
}

/// Where the dreams and journal entries of a place are posted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JournalChannel {
    /// The chat; `None` if nothing is posted.
    pub chat: Option<ChatId>,
}

/// The background work of a persona in a place.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct BackgroundProgress {
    /// Time of the last dream.
    pub dreamt: Option<Timestamp>,
    /// Time of the last reflection.
    pub reflected: Option<Timestamp>,
    /// Time of the last review of itself.
    pub reviewed: Option<Timestamp>,
    /// Time of the last report about training that was rolled back.
    pub set_back: Option<Timestamp>,
    /// Time of the last creative piece.
    pub created: Option<Timestamp>,
    /// Time of the last published piece.
    pub published: Option<Timestamp>,
    /// Time of the last curation of its memories.
    pub curated: Option<Timestamp>,
    /// The day of the count below in the place's time zone, such as `2026-03-01`.
    pub day: String,
    /// Calls of the model on that day.
    #[serde(rename = "asked")]
    pub model_calls: u32,
}

/// A person's request for check-ins in a DM.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckInRequest {
    /// The chat.
    pub chat: ChatId,
    /// Days of silence before a check-in.
    pub days: u32,
    /// When the person asked for check-ins.
    pub since: Timestamp,
    /// Time of the last attempt. There is no second attempt on that day, and no check-in before the person answers.
    #[serde(default)]
    pub tried: Option<Timestamp>,
    /// Time of the last check-in.
    pub last: Option<Timestamp>,
}

/// A chat in which somebody recently wrote to a persona.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActiveChat {
    /// The chat.
    pub chat: ChatId,
    /// The persona.
    pub persona: PersonaId,
    /// The scope of the newest message.
    pub scope: Scope,
    /// The time of the newest message.
    pub last_at: Timestamp,
}

/// Revokes everyone's consent to training and to being heard, because a restored record does not know who revoked it
/// since.
pub(crate) fn revoke_all_consent(store: &dyn Store, batch: &mut Batch) -> Result<(), Error> {
    for kind in [LEARNING, VOICE] {
        codec::walk(store, Table::Settings, &keys::prefix(&[kind]), |key, _| {
            batch.remove(Table::Settings, key);
            Ok(true)
        })?;
    }
    Ok(())
}

impl PlaceSettings<'_> {
    /// Returns the training log of `persona` in the place `home`, in the host's format.
    pub fn training_log(
        self,
        platform: &PlatformId,
        home: &Scope,
        persona: &PersonaId,
    ) -> Result<Option<serde_json::Value>, Error> {
        self.0.read_setting(&training_log_key(platform, home, persona))
    }

    /// Stores the training log of `persona` in the place `home`.
    pub fn set_training_log(
        self,
        platform: &PlatformId,
        home: &Scope,
        persona: &PersonaId,
        log: &serde_json::Value,
    ) -> Result<(), Error> {
        self.0.set(training_log_key(platform, home, persona), log)
    }

    /// Returns where the journal of the place `home` is posted, if that was set.
    pub fn journal_channel(self, platform: &PlatformId, home: &Scope) -> Result<Option<JournalChannel>, Error> {
        self.0.read_setting(&journal_key(platform, home))
    }

    /// Stores where the journal of the place `home` is posted.
    pub fn set_journal_channel(
        self,
        platform: &PlatformId,
        home: &Scope,
        channel: &JournalChannel,
    ) -> Result<(), Error> {
        self.0.set(journal_key(platform, home), channel)
    }
}

impl Progress<'_> {
    /// Returns the background progress of `persona` in the place `home`.
    pub fn get(self, platform: &PlatformId, home: &Scope, persona: &PersonaId) -> Result<BackgroundProgress, Error> {
        Ok(self.0.read_setting(&background_progress_key(platform, home, persona))?.unwrap_or_default())
    }

    /// Stores the background progress of `persona` in the place `home`.
    pub fn set(
        self,
        platform: &PlatformId,
        home: &Scope,
        persona: &PersonaId,
        progress: &BackgroundProgress,
    ) -> Result<(), Error> {
        self.0.set(background_progress_key(platform, home, persona), progress)
    }
}

impl PlaceSettings<'_> {
    /// Returns the overrides of the place `home`, in the host's format.
    pub fn overrides(self, platform: &PlatformId, home: &Scope) -> Result<Option<serde_json::Value>, Error> {
        self.0.read_setting(&overrides_key(platform, home))
    }

    /// Stores the overrides of the place `home`.
    pub fn set_overrides(
        self,
        platform: &PlatformId,
        home: &Scope,
        overrides: &serde_json::Value,
    ) -> Result<(), Error> {
        self.0.set(overrides_key(platform, home), overrides)
    }

    /// Returns the check-in request of the person in the DM `home` for `persona`.
    pub fn check_ins(
        self,
        platform: &PlatformId,
        home: &Scope,
        persona: &PersonaId,
    ) -> Result<Option<CheckInRequest>, Error> {
        self.0.read_setting(&check_in_key(platform, home, persona))
    }

    /// Stores a check-in request, or removes it with `None`.
    pub fn set_check_ins(
        self,
        platform: &PlatformId,
        home: &Scope,
        persona: &PersonaId,
        wanted: Option<&CheckInRequest>,
    ) -> Result<(), Error> {
        let key = check_in_key(platform, home, persona);
        let before = self.0.read_setting::<CheckInRequest>(&key)?;
        let chats = before.iter().chain(wanted).map(|wanted| wanted.chat.clone()).collect();
        let _writing = self.0.writing_in(&chats)?;
        let mut batch = Batch::new();
        match wanted {
            Some(wanted) => codec::put(&mut batch, Table::Settings, key, wanted)?,
            None => {
                batch.remove(Table::Settings, key);
            }
        }
        self.0.store.commit(batch, Durability::Flushed)
    }

    /// Stores the result of a check-in. Returns `false` and stores nothing if the request changed meanwhile.
    pub fn note_check_in(
        self,
        platform: &PlatformId,
        home: &Scope,
        persona: &PersonaId,
        (before, then): (&CheckInRequest, &CheckInRequest),
    ) -> Result<bool, Error> {
        let key = check_in_key(platform, home, persona);
        // The lock keeps others from forgetting or changing the request meanwhile.
        let _writing = self.0.writing_in(&[before.chat.clone(), then.chat.clone()].into())?;
        if self.0.read_setting::<CheckInRequest>(&key)?.as_ref() != Some(before) {
            return Ok(false);
        }
        let mut batch = Batch::new();
        codec::put(&mut batch, Table::Settings, key, then)?;
        self.0.store.commit(batch, Durability::Flushed)?;
        Ok(true)
    }

    /// Returns all check-in requests with the scope of the DM and the persona.
    pub fn all_check_ins(self, platform: &PlatformId) -> Result<Vec<(Scope, PersonaId, CheckInRequest)>, Error> {
        let mut found = Vec::new();
        let prefix = keys::prefix(&[CHECK_INS, platform.as_str()]);
        codec::walk(self.0.store.as_ref(), Table::Settings, &prefix, |key, value| {
            let text = |part: &[u8]| std::str::from_utf8(part).ok().map(str::to_owned);
            let mut parts = keys::parts(key).skip(2);
            let home = parts.next().and_then(text).and_then(|scope| scope.parse::<Scope>().ok());
            let persona = parts.next().and_then(text).and_then(|id| PersonaId::new(id).ok());
            if let (Some(home), Some(persona)) = (home, persona) {
                found.push((home, persona, codec::decode(Table::Settings, value)?));
            }
            Ok(true)
        })?;
        Ok(found)
    }

    /// Sets the last check-in of every request to `at`.
    pub(crate) fn restart_check_ins(self, batch: &mut Batch, at: Timestamp) -> Result<(), Error> {
        codec::walk(self.0.store.as_ref(), Table::Settings, &keys::prefix(&[CHECK_INS]), |key, value| {
            let wanted: CheckInRequest = codec::decode(Table::Settings, value)?;
            codec::put(batch, Table::Settings, key.to_vec(), &CheckInRequest { last: Some(at), ..wanted })?;
            Ok(true)
        })
    }
}

impl Progress<'_> {
    /// Returns the time up to which the diary of `persona` covers a chat.
    pub fn diary_until(self, chat: &ChatId, persona: &PersonaId) -> Result<Option<Timestamp>, Error> {
        self.0.read_setting(&diary_key(chat, persona))
    }

    /// Stores the time up to which the diary of `persona` covers a chat.
    pub fn set_diary_until(self, chat: &ChatId, persona: &PersonaId, until: Timestamp) -> Result<(), Error> {
        self.0.set(diary_key(chat, persona), &until)
    }

    /// Returns how far the messages of a chat to `persona` were searched for salient statements.
    pub fn extraction_progress(self, chat: &ChatId, persona: &PersonaId) -> Result<Option<ExtractionProgress>, Error> {
        self.0.read_setting(&extraction_progress_key(chat, persona))
    }

    /// Stores how far the messages of a chat to `persona` were searched.
    pub fn set_extraction_progress(
        self,
        chat: &ChatId,
        persona: &PersonaId,
        progress: &ExtractionProgress,
    ) -> Result<(), Error> {
        self.0.set(extraction_progress_key(chat, persona), progress)
    }

    /// Returns the chats of a platform with messages since `since`, once for each persona that was addressed.
    pub fn active_chats(self, platform: &PlatformId, since: Timestamp) -> Result<Vec<ActiveChat>, Error> {
        let mut active = Vec::new();
        for chat in self.0.chats().list(platform)?.into_iter().filter(|chat| chat.last_at >= since) {
            active.extend(self.said_in(chat, since)?);
        }
        Ok(active)
    }

    /// Returns the newest message of a person to each persona of a chat, if it is among the last few.
    fn said_in(self, chat: ChatRow, since: Timestamp) -> Result<Vec<ActiveChat>, Error> {
        let mut found: Vec<ActiveChat> = Vec::new();
        let mut tip = chat.head;
        for _ in 0..LOOKED_BACK {
            let Some(message) = tip.map(|id| self.0.messages().raw_message(&id)).transpose()?.flatten() else { break };
            let MessageRow { author, persona, scope, at, parent, .. } = message;
            if author.person().is_some() && at >= since && found.iter().all(|newer| newer.persona != persona) {
                found.push(ActiveChat { chat: chat.id.clone(), persona, scope, last_at: at });
            }
            tip = parent;
        }
        Ok(found)
    }
}

impl PlaceSettings<'_> {
    /// Removes the settings of a forgotten person, chat or realm.
    pub(crate) fn forget_settings(self, batch: &mut Batch, gone: &ForgottenScope<'_>) -> Result<(), Error> {
        codec::walk(self.0.store.as_ref(), Table::Settings, b"", |key, _| {
            if is_of(key, gone) {
                batch.remove(Table::Settings, key.to_vec());
            }
            Ok(true)
        })
    }

    /// Returns the overrides that a person made in their DMs.
    pub(crate) fn overrides_of(self, person: &PersonId) -> Result<Vec<serde_json::Value>, Error> {
        let mut found = Vec::new();
        codec::walk(self.0.store.as_ref(), Table::Settings, &keys::prefix(&["customs"]), |key, value| {
            if is_of(key, &ForgottenScope::Person(person)) {
                found.push(codec::decode(Table::Settings, value)?);
            }
            Ok(true)
        })?;
        Ok(found)
    }

    /// Returns the check-in requests of a person.
    pub(crate) fn check_ins_of(self, person: &PersonId) -> Result<Vec<serde_json::Value>, Error> {
        let mut found = Vec::new();
        codec::walk(self.0.store.as_ref(), Table::Settings, &keys::prefix(&[CHECK_INS]), |key, value| {
            if is_of(key, &ForgottenScope::Person(person)) {
                let mut wish: serde_json::Value = codec::decode(Table::Settings, value)?;
                let persona = keys::parts(key).nth(3).map(String::from_utf8_lossy);
                wish["persona"] = persona.map(|name| name.into_owned()).into();
                found.push(wish);
            }
            Ok(true)
        })?;
        Ok(found)
    }
}

impl Memory {
    pub(crate) fn read_setting<T: DeserializeOwned>(&self, key: &[u8]) -> Result<Option<T>, Error> {
        codec::get(self.store.as_ref(), Table::Settings, key)
    }

    pub(crate) fn set<T: Serialize>(&self, key: Vec<u8>, value: &T) -> Result<(), Error> {
        self.store.ready()?;
        let mut batch = Batch::new();
        codec::put(&mut batch, Table::Settings, key, value)?;
        self.store.commit(batch, Durability::Flushed)
    }
}

pub(crate) fn retention_key(person: &PersonId) -> Vec<u8> {
    keys::prefix(&[RETENTION, person.as_str()])
}

pub(crate) fn learning_key(person: &PersonId) -> Vec<u8> {
    keys::prefix(&[LEARNING, person.as_str()])
}

fn training_log_key(platform: &PlatformId, home: &Scope, persona: &PersonaId) -> Vec<u8> {
    keys::prefix(&["lessons", platform.as_str(), &home.to_string(), persona.as_str()])
}

fn journal_key(platform: &PlatformId, home: &Scope) -> Vec<u8> {
    keys::prefix(&["journal", platform.as_str(), &home.to_string()])
}

pub(crate) fn background_progress_key(platform: &PlatformId, home: &Scope, persona: &PersonaId) -> Vec<u8> {
    keys::prefix(&["tended", platform.as_str(), &home.to_string(), persona.as_str()])
}

fn overrides_key(platform: &PlatformId, home: &Scope) -> Vec<u8> {
    keys::prefix(&["customs", platform.as_str(), &home.to_string()])
}

fn check_in_key(platform: &PlatformId, home: &Scope, persona: &PersonaId) -> Vec<u8> {
    keys::prefix(&[CHECK_INS, platform.as_str(), &home.to_string(), persona.as_str()])
}

fn diary_key(chat: &ChatId, persona: &PersonaId) -> Vec<u8> {
    keys::prefix(&["diary", chat.as_str(), persona.as_str()])
}

fn extraction_progress_key(chat: &ChatId, persona: &PersonaId) -> Vec<u8> {
    keys::prefix(&["sifted", chat.as_str(), persona.as_str()])
}

/// Returns true if a setting belongs to a forgotten person, chat or realm.
pub(crate) fn is_of(key: &[u8], gone: &ForgottenScope<'_>) -> bool {
    if let Some(accounts) = links::between(key) {
        return matches!(gone, ForgottenScope::Person(person) if accounts.contains(person));
    }
    // An account is forgotten when it is removed, not with what its person said.
    if account_of(key).is_some() {
        return false;
    }
    let scope = match gone {
        ForgottenScope::Person(person) => Scope::Dm((*person).clone()),
        ForgottenScope::Chat(chat) => Scope::Chat((*chat).clone()),
        ForgottenScope::Realm(realm) => Scope::Realm((*realm).clone()),
    };
    let scope = scope.to_string();
    let mut parts = keys::parts(key);
    let what = parts.next().unwrap_or_default();
    if what == USUAL.as_bytes() {
        let (person, place) = (parts.next(), parts.next());
        let is_theirs = matches!(gone, ForgottenScope::Person(gone) if person == Some(gone.as_str().as_bytes()));
        return is_theirs || place == Some(scope.as_bytes());
    }
    if what == LEARNING.as_bytes() {
        return matches!(gone, ForgottenScope::Person(gone) if parts.next() == Some(gone.as_str().as_bytes()));
    }
    if what == VOICE.as_bytes() {
        let (chat, person) = (parts.next(), parts.next());
        return match gone {
            ForgottenScope::Chat(gone) => chat == Some(gone.as_str().as_bytes()),
            ForgottenScope::Person(gone) => person == Some(gone.as_str().as_bytes()),
            ForgottenScope::Realm(_) => false,
        };
    }
    let of_a_chat = what == b"diary" || what == b"sifted";
    match gone {
        // A person's id may look like a scope.
        _ if what == RETENTION.as_bytes() => false,
        ForgottenScope::Chat(chat) if of_a_chat => parts.next() == Some(chat.as_str().as_bytes()),
        _ => !of_a_chat && parts.any(|part| part == scope.as_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_older_consent_covers_this_machine_only() {
        let since = "2026-03-01T10:00:00Z";
        let read = |written: &str| serde_json::from_str::<TrainingConsent>(written).unwrap();
        let willing = TrainingConsent { since: since.parse().unwrap(), offload: false };
        assert_eq!(read(&format!("\"{since}\"")), willing);
        let both = TrainingConsent { offload: true, ..willing };
        for willing in [willing, both] {
            assert_eq!(read(&serde_json::to_string(&willing).unwrap()), willing);
        }
    }
}
