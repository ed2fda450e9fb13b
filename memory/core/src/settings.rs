//! Settings of places, and how far what is done between messages has come: ids, times and counts, and the rules that people
//! wrote for a place. They go with the place, or with the person whose direct messages it is.

use azera_types::{ChatId, PersonId, PersonaId, PlatformId, Scope, Timestamp};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::links;
use crate::minds::ForgottenScope;
use crate::rows::{ChatRow, MessageRow};
use crate::surprise::USUAL;
use crate::{Batch, Durability, Error, Memory, Store, Table, codec, keys};

/// Messages looked through for the newest one of a person.
const LOOKED_BACK: usize = 64;

/// The first part of the keys of those who want to be looked in on.
const CHECK_INS: &str = "waking";

/// The first part of the keys of how much is kept of what people say.
const KEEPING: &str = "keeping";

/// The first part of the keys of those who want to be learnt from.
const LEARNING: &str = "learning";

/// How much is kept of what somebody says, wherever they say it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RetentionPreference {
    /// All that is read along.
    #[default]
    Everything,
    /// What is said to the bot alone.
    Addressed,
}

/// That a person wants what they say to be learnt from in the weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "StoredTrainingConsent")]
pub struct TrainingConsent {
    /// What they said before is not learnt from.
    pub since: Timestamp,
    /// Whether it may be learnt on another machine, too.
    #[serde(rename = "elsewhere")]
    pub offload: bool,
}

/// As it may lie in the record: a time alone knows of no other machine.
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

/// Where the dreams and journal entries of a place are posted, as somebody said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JournalChannel {
    /// The chat; `None` if nothing is to be posted.
    pub chat: Option<ChatId>,
}

/// What a persona did between messages in a place.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct BackgroundProgress {
    /// When it last dreamt.
    pub dreamt: Option<Timestamp>,
    /// When it last reflected.
    pub reflected: Option<Timestamp>,
    /// When it last looked at how it is doing.
    pub reviewed: Option<Timestamp>,
    /// When it last told of something learnt that came to nothing.
    pub set_back: Option<Timestamp>,
    /// When it last made something up.
    pub created: Option<Timestamp>,
    /// When it last posted something that it had made up.
    pub published: Option<Timestamp>,
    /// When it last went through what people told it.
    pub curated: Option<Timestamp>,
    /// The day of the count below, in the place's time zone, as `2026-03-01`.
    pub day: String,
    /// How often the model was asked on that day.
    #[serde(rename = "asked")]
    pub model_calls: u32,
}

/// That somebody wants to be looked in on in their direct messages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckInRequest {
    /// The chat.
    pub chat: ChatId,
    /// Days of silence after which to ask.
    pub days: u32,
    /// When it was asked for.
    pub since: Timestamp,
    /// When it was last tried to ask. There is no other question before they answer, and no other try on the same day.
    #[serde(default)]
    pub tried: Option<Timestamp>,
    /// When they were last asked.
    pub last: Option<Timestamp>,
}

/// How far a conversation was looked through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExtractionProgress {
    /// The number of the last message.
    pub seq: u64,
    /// When.
    pub at: Timestamp,
}

/// A chat in which somebody said something to a persona.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActiveChat {
    /// Which.
    pub chat: ChatId,
    /// To whom it was said.
    pub persona: PersonaId,
    /// The place the newest of it was said in.
    pub scope: Scope,
    /// When that was.
    pub last_at: Timestamp,
}

/// Takes back everybody's wish to be learnt from: a record that comes back does not know what they said since.
pub(crate) fn revoke_all_training_consent(store: &dyn Store, batch: &mut Batch) -> Result<(), Error> {
    codec::walk(store, Table::Settings, &keys::prefix(&[LEARNING]), |key, _| {
        batch.remove(Table::Settings, key);
        Ok(true)
    })
}

impl Memory {
    /// How much a person wants to be kept of what they say. A wish, no memory: it stays when they are forgotten.
    pub fn retention(&self, person: &PersonId) -> Result<RetentionPreference, Error> {
        Ok(self.read_setting(&keeping_key(person))?.unwrap_or_default())
    }

    /// Notes how much they want to be.
    pub fn set_retention(&self, person: &PersonId, keeping: RetentionPreference) -> Result<(), Error> {
        self.set(keeping_key(person), &keeping)
    }

    /// Whether a person wants what they say to be learnt from in the weights. Nobody does who did not say so.
    pub fn training_consent(&self, person: &PersonId) -> Result<Option<TrainingConsent>, Error> {
        self.read_setting(&learning_key(person))
    }

    /// Notes whether they do.
    pub fn set_training_consent(&self, person: &PersonId, willing: Option<TrainingConsent>) -> Result<(), Error> {
        let key = learning_key(person);
        if let Some(willing) = willing {
            return self.set(key, &willing);
        }
        self.store.ready()?;
        let mut batch = Batch::new();
        batch.remove(Table::Settings, key);
        self.store.commit(batch, Durability::Flushed)
    }

    /// What `persona` learnt in its weights in the place `home` and what came of it, in the host's form.
    pub fn training_log(
        &self,
        platform: &PlatformId,
        home: &Scope,
        persona: &PersonaId,
    ) -> Result<Option<serde_json::Value>, Error> {
        self.read_setting(&training_log_key(platform, home, persona))
    }

    /// Keeps that.
    pub fn set_training_log(
        &self,
        platform: &PlatformId,
        home: &Scope,
        persona: &PersonaId,
        log: &serde_json::Value,
    ) -> Result<(), Error> {
        self.set(training_log_key(platform, home, persona), log)
    }

    /// Where the journal of the place `home` is posted, if anybody said so.
    pub fn journal_channel(&self, platform: &PlatformId, home: &Scope) -> Result<Option<JournalChannel>, Error> {
        self.read_setting(&journal_key(platform, home))
    }

    /// Says where it is.
    pub fn set_journal_channel(
        &self,
        platform: &PlatformId,
        home: &Scope,
        channel: &JournalChannel,
    ) -> Result<(), Error> {
        self.set(journal_key(platform, home), channel)
    }

    /// What `persona` did between messages in the place `home`.
    pub fn background_progress(
        &self,
        platform: &PlatformId,
        home: &Scope,
        persona: &PersonaId,
    ) -> Result<BackgroundProgress, Error> {
        Ok(self.read_setting(&background_progress_key(platform, home, persona))?.unwrap_or_default())
    }

    /// Notes what it did.
    pub fn set_background_progress(
        &self,
        platform: &PlatformId,
        home: &Scope,
        persona: &PersonaId,
        tended: &BackgroundProgress,
    ) -> Result<(), Error> {
        self.set(background_progress_key(platform, home, persona), tended)
    }

    /// What people made of how personas are in the place `home`, in the host's form.
    pub fn overrides(&self, platform: &PlatformId, home: &Scope) -> Result<Option<serde_json::Value>, Error> {
        self.read_setting(&overrides_key(platform, home))
    }

    /// Keeps that.
    pub fn set_overrides(
        &self,
        platform: &PlatformId,
        home: &Scope,
        overrides: &serde_json::Value,
    ) -> Result<(), Error> {
        self.set(overrides_key(platform, home), overrides)
    }

    /// Whether the person of the direct messages `home` wants to be looked in on by `persona`.
    pub fn check_ins(
        &self,
        platform: &PlatformId,
        home: &Scope,
        persona: &PersonaId,
    ) -> Result<Option<CheckInRequest>, Error> {
        self.read_setting(&check_in_key(platform, home, persona))
    }

    /// Notes that somebody does, or with `None` does not.
    pub fn set_check_ins(
        &self,
        platform: &PlatformId,
        home: &Scope,
        persona: &PersonaId,
        wanted: Option<&CheckInRequest>,
    ) -> Result<(), Error> {
        let key = check_in_key(platform, home, persona);
        let before = self.read_setting::<CheckInRequest>(&key)?;
        let chats = before.iter().chain(wanted).map(|wanted| wanted.chat.clone()).collect();
        let _writing = self.writing_in(&chats)?;
        let mut batch = Batch::new();
        match wanted {
            Some(wanted) => codec::put(&mut batch, Table::Settings, key, wanted)?,
            None => {
                batch.remove(Table::Settings, key);
            }
        }
        self.store.commit(batch, Durability::Flushed)
    }

    /// Notes what came of looking in on somebody, if their wish is still the one it was done for: `false` if it is not.
    pub fn note_check_in(
        &self,
        platform: &PlatformId,
        home: &Scope,
        persona: &PersonaId,
        (before, then): (&CheckInRequest, &CheckInRequest),
    ) -> Result<bool, Error> {
        let key = check_in_key(platform, home, persona);
        // Nobody forgets, or wishes otherwise, in that chat meanwhile.
        let _writing = self.writing_in(&[before.chat.clone(), then.chat.clone()].into())?;
        if self.read_setting::<CheckInRequest>(&key)?.as_ref() != Some(before) {
            return Ok(false);
        }
        let mut batch = Batch::new();
        codec::put(&mut batch, Table::Settings, key, then)?;
        self.store.commit(batch, Durability::Flushed)?;
        Ok(true)
    }

    /// Everybody who wants to be looked in on: the place of their direct messages, and by whom.
    pub fn all_check_ins(&self, platform: &PlatformId) -> Result<Vec<(Scope, PersonaId, CheckInRequest)>, Error> {
        let mut found = Vec::new();
        codec::walk(
            self.store.as_ref(),
            Table::Settings,
            &keys::prefix(&[CHECK_INS, platform.as_str()]),
            |key, value| {
                let text = |part: &[u8]| std::str::from_utf8(part).ok().map(str::to_owned);
                let mut parts = keys::parts(key).skip(2);
                let home = parts.next().and_then(text).and_then(|scope| scope.parse::<Scope>().ok());
                let persona = parts.next().and_then(text).and_then(|id| PersonaId::new(id).ok());
                if let (Some(home), Some(persona)) = (home, persona) {
                    found.push((home, persona, codec::decode(Table::Settings, value)?));
                }
                Ok(true)
            },
        )?;
        Ok(found)
    }

    /// Counts everybody who wants to be looked in on as asked at `at`.
    pub(crate) fn restart_check_ins(&self, batch: &mut Batch, at: Timestamp) -> Result<(), Error> {
        codec::walk(self.store.as_ref(), Table::Settings, &keys::prefix(&[CHECK_INS]), |key, value| {
            let wanted: CheckInRequest = codec::decode(Table::Settings, value)?;
            codec::put(batch, Table::Settings, key.to_vec(), &CheckInRequest { last: Some(at), ..wanted })?;
            Ok(true)
        })
    }

    /// Up to when the conversation of a chat was gone through for the diary of `persona`.
    pub fn diary_until(&self, chat: &ChatId, persona: &PersonaId) -> Result<Option<Timestamp>, Error> {
        self.read_setting(&diary_key(chat, persona))
    }

    /// Notes up to when it was.
    pub fn set_diary_until(&self, chat: &ChatId, persona: &PersonaId, until: Timestamp) -> Result<(), Error> {
        self.set(diary_key(chat, persona), &until)
    }

    /// How far what was said in a chat to `persona` was looked through for what is worth keeping.
    pub fn extraction_progress(&self, chat: &ChatId, persona: &PersonaId) -> Result<Option<ExtractionProgress>, Error> {
        self.read_setting(&extraction_progress_key(chat, persona))
    }

    /// Notes how far it was.
    pub fn set_extraction_progress(
        &self,
        chat: &ChatId,
        persona: &PersonaId,
        progress: &ExtractionProgress,
    ) -> Result<(), Error> {
        self.set(extraction_progress_key(chat, persona), progress)
    }

    /// The chats of a platform in which something was said from `since` on, once for each persona that it was said to.
    pub fn active_chats(&self, platform: &PlatformId, since: Timestamp) -> Result<Vec<ActiveChat>, Error> {
        let mut active = Vec::new();
        for chat in self.chats(platform)?.into_iter().filter(|chat| chat.last_at >= since) {
            active.extend(self.said_in(chat, since)?);
        }
        Ok(active)
    }

    /// The newest message of a person to each persona of a chat, if it is not far back.
    fn said_in(&self, chat: ChatRow, since: Timestamp) -> Result<Vec<ActiveChat>, Error> {
        let mut found: Vec<ActiveChat> = Vec::new();
        let mut tip = chat.head;
        for _ in 0..LOOKED_BACK {
            let Some(message) = tip.map(|id| self.raw_message(&id)).transpose()?.flatten() else { break };
            let MessageRow { author, persona, scope, at, parent, .. } = message;
            if author.person().is_some() && at >= since && found.iter().all(|newer| newer.persona != persona) {
                found.push(ActiveChat { chat: chat.id.clone(), persona, scope, last_at: at });
            }
            tip = parent;
        }
        Ok(found)
    }

    /// Takes out the settings of somebody or somewhere that is forgotten.
    pub(crate) fn forget_settings(&self, batch: &mut Batch, gone: &ForgottenScope<'_>) -> Result<(), Error> {
        codec::walk(self.store.as_ref(), Table::Settings, b"", |key, _| {
            if is_of(key, gone) {
                batch.remove(Table::Settings, key.to_vec());
            }
            Ok(true)
        })
    }

    /// What a person made of how personas are in their direct messages.
    pub(crate) fn overrides_of(&self, person: &PersonId) -> Result<Vec<serde_json::Value>, Error> {
        let mut found = Vec::new();
        codec::walk(self.store.as_ref(), Table::Settings, &keys::prefix(&["customs"]), |key, value| {
            if is_of(key, &ForgottenScope::Person(person)) {
                found.push(codec::decode(Table::Settings, value)?);
            }
            Ok(true)
        })?;
        Ok(found)
    }

    /// By which personas a person wants to be looked in on.
    pub(crate) fn check_ins_of(&self, person: &PersonId) -> Result<Vec<serde_json::Value>, Error> {
        let mut found = Vec::new();
        codec::walk(self.store.as_ref(), Table::Settings, &keys::prefix(&[CHECK_INS]), |key, value| {
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

    fn read_setting<T: DeserializeOwned>(&self, key: &[u8]) -> Result<Option<T>, Error> {
        codec::get(self.store.as_ref(), Table::Settings, key)
    }

    fn set<T: Serialize>(&self, key: Vec<u8>, value: &T) -> Result<(), Error> {
        self.store.ready()?;
        let mut batch = Batch::new();
        codec::put(&mut batch, Table::Settings, key, value)?;
        self.store.commit(batch, Durability::Flushed)
    }
}

fn keeping_key(person: &PersonId) -> Vec<u8> {
    keys::prefix(&[KEEPING, person.as_str()])
}

fn learning_key(person: &PersonId) -> Vec<u8> {
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

/// Whether a setting belongs to somebody or somewhere that is forgotten.
pub(crate) fn is_of(key: &[u8], gone: &ForgottenScope<'_>) -> bool {
    if let Some(accounts) = links::between(key) {
        return matches!(gone, ForgottenScope::Person(person) if accounts.contains(person));
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
    let of_a_chat = what == b"diary" || what == b"sifted";
    match gone {
        // A person may be called like a place.
        _ if what == KEEPING.as_bytes() => false,
        ForgottenScope::Chat(chat) if of_a_chat => parts.next() == Some(chat.as_str().as_bytes()),
        _ => !of_a_chat && parts.any(|part| part == scope.as_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_agreed_before_there_was_another_machine_agreed_to_this_one() {
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
