//! Settings of places, and how far what is done between messages has come: ids, times and counts, and the rules that people
//! wrote for a place. They go with the place, or with the person whose direct messages it is.

use azera_types::{ChatId, PersonId, PersonaId, PlatformId, Scope, Timestamp};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::links;
use crate::minds::Gone;
use crate::rows::{ChatRow, MessageRow};
use crate::surprise::USUAL;
use crate::{Batch, Durability, Error, Memory, Store, Table, codec, keys};

/// Messages looked through for the newest one of a person.
const LOOKED_BACK: usize = 64;

/// The first part of the keys of those who want to be looked in on.
const WAKING: &str = "waking";

/// The first part of the keys of how much is kept of what people say.
const KEEPING: &str = "keeping";

/// The first part of the keys of those who want to be learnt from.
const LEARNING: &str = "learning";

/// How much is kept of what somebody says, wherever they say it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Keeping {
    /// All that is read along.
    #[default]
    Everything,
    /// What is said to the bot alone.
    Addressed,
}

/// That a person wants what they say to be learnt from in the weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "WrittenWilling")]
pub struct Willing {
    /// What they said before is not learnt from.
    pub since: Timestamp,
    /// Whether it may be learnt on another machine, too.
    pub elsewhere: bool,
}

/// As it may lie in the record: a time alone knows of no other machine.
#[derive(Deserialize)]
#[serde(untagged)]
enum WrittenWilling {
    Since(Timestamp),
    Whole { since: Timestamp, elsewhere: bool },
}

impl From<WrittenWilling> for Willing {
    fn from(written: WrittenWilling) -> Self {
        match written {
            WrittenWilling::Since(since) => Self { since, elsewhere: false },
            WrittenWilling::Whole { since, elsewhere } => Self { since, elsewhere },
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
pub struct Tended {
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
    pub asked: u32,
}

/// That somebody wants to be looked in on in their direct messages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckIns {
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
pub struct Sifted {
    /// The number of the last message.
    pub seq: u64,
    /// When.
    pub at: Timestamp,
}

/// A chat in which somebody said something to a persona.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stirred {
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
pub(crate) fn nobody_may_be_learnt_from(store: &dyn Store, batch: &mut Batch) -> Result<(), Error> {
    codec::walk(store, Table::Settings, &keys::prefix(&[LEARNING]), |key, _| {
        batch.remove(Table::Settings, key);
        Ok(true)
    })
}

impl Memory {
    /// How much a person wants to be kept of what they say. A wish, no memory: it stays when they are forgotten.
    pub fn keeping(&self, person: &PersonId) -> Result<Keeping, Error> {
        Ok(self.setting(&keeping_key(person))?.unwrap_or_default())
    }

    /// Notes how much they want to be.
    pub fn set_keeping(&self, person: &PersonId, keeping: Keeping) -> Result<(), Error> {
        self.set(keeping_key(person), &keeping)
    }

    /// Whether a person wants what they say to be learnt from in the weights. Nobody does who did not say so.
    pub fn willing(&self, person: &PersonId) -> Result<Option<Willing>, Error> {
        self.setting(&learning_key(person))
    }

    /// Notes whether they do.
    pub fn set_willing(&self, person: &PersonId, willing: Option<Willing>) -> Result<(), Error> {
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
    pub fn lessons(
        &self,
        platform: &PlatformId,
        home: &Scope,
        persona: &PersonaId,
    ) -> Result<Option<serde_json::Value>, Error> {
        self.setting(&lessons_key(platform, home, persona))
    }

    /// Keeps that.
    pub fn set_lessons(
        &self,
        platform: &PlatformId,
        home: &Scope,
        persona: &PersonaId,
        lessons: &serde_json::Value,
    ) -> Result<(), Error> {
        self.set(lessons_key(platform, home, persona), lessons)
    }

    /// Where the journal of the place `home` is posted, if anybody said so.
    pub fn journal_channel(&self, platform: &PlatformId, home: &Scope) -> Result<Option<JournalChannel>, Error> {
        self.setting(&journal_key(platform, home))
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
    pub fn tended(&self, platform: &PlatformId, home: &Scope, persona: &PersonaId) -> Result<Tended, Error> {
        Ok(self.setting(&tended_key(platform, home, persona))?.unwrap_or_default())
    }

    /// Notes what it did.
    pub fn set_tended(
        &self,
        platform: &PlatformId,
        home: &Scope,
        persona: &PersonaId,
        tended: &Tended,
    ) -> Result<(), Error> {
        self.set(tended_key(platform, home, persona), tended)
    }

    /// What people made of how personas are in the place `home`, in the host's form.
    pub fn customs(&self, platform: &PlatformId, home: &Scope) -> Result<Option<serde_json::Value>, Error> {
        self.setting(&customs_key(platform, home))
    }

    /// Keeps that.
    pub fn set_customs(&self, platform: &PlatformId, home: &Scope, customs: &serde_json::Value) -> Result<(), Error> {
        self.set(customs_key(platform, home), customs)
    }

    /// Whether the person of the direct messages `home` wants to be looked in on by `persona`.
    pub fn check_ins(
        &self,
        platform: &PlatformId,
        home: &Scope,
        persona: &PersonaId,
    ) -> Result<Option<CheckIns>, Error> {
        self.setting(&waking_key(platform, home, persona))
    }

    /// Notes that somebody does, or with `None` does not.
    pub fn set_check_ins(
        &self,
        platform: &PlatformId,
        home: &Scope,
        persona: &PersonaId,
        wanted: Option<&CheckIns>,
    ) -> Result<(), Error> {
        let key = waking_key(platform, home, persona);
        let before = self.setting::<CheckIns>(&key)?;
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
        (before, then): (&CheckIns, &CheckIns),
    ) -> Result<bool, Error> {
        let key = waking_key(platform, home, persona);
        // Nobody forgets, or wishes otherwise, in that chat meanwhile.
        let _writing = self.writing_in(&[before.chat.clone(), then.chat.clone()].into())?;
        if self.setting::<CheckIns>(&key)?.as_ref() != Some(before) {
            return Ok(false);
        }
        let mut batch = Batch::new();
        codec::put(&mut batch, Table::Settings, key, then)?;
        self.store.commit(batch, Durability::Flushed)?;
        Ok(true)
    }

    /// Everybody who wants to be looked in on: the place of their direct messages, and by whom.
    pub fn all_check_ins(&self, platform: &PlatformId) -> Result<Vec<(Scope, PersonaId, CheckIns)>, Error> {
        let mut found = Vec::new();
        codec::walk(
            self.store.as_ref(),
            Table::Settings,
            &keys::prefix(&[WAKING, platform.as_str()]),
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
    pub(crate) fn check_ins_were_made(&self, batch: &mut Batch, at: Timestamp) -> Result<(), Error> {
        codec::walk(self.store.as_ref(), Table::Settings, &keys::prefix(&[WAKING]), |key, value| {
            let wanted: CheckIns = codec::decode(Table::Settings, value)?;
            codec::put(batch, Table::Settings, key.to_vec(), &CheckIns { last: Some(at), ..wanted })?;
            Ok(true)
        })
    }

    /// Up to when the conversation of a chat was gone through for the diary of `persona`.
    pub fn diary_until(&self, chat: &ChatId, persona: &PersonaId) -> Result<Option<Timestamp>, Error> {
        self.setting(&diary_key(chat, persona))
    }

    /// Notes up to when it was.
    pub fn set_diary_until(&self, chat: &ChatId, persona: &PersonaId, until: Timestamp) -> Result<(), Error> {
        self.set(diary_key(chat, persona), &until)
    }

    /// How far what was said in a chat to `persona` was looked through for what is worth keeping.
    pub fn sifted(&self, chat: &ChatId, persona: &PersonaId) -> Result<Option<Sifted>, Error> {
        self.setting(&sifted_key(chat, persona))
    }

    /// Notes how far it was.
    pub fn set_sifted(&self, chat: &ChatId, persona: &PersonaId, sifted: &Sifted) -> Result<(), Error> {
        self.set(sifted_key(chat, persona), sifted)
    }

    /// The chats of a platform in which something was said from `since` on, once for each persona that it was said to.
    pub fn stirred(&self, platform: &PlatformId, since: Timestamp) -> Result<Vec<Stirred>, Error> {
        let mut stirred = Vec::new();
        for chat in self.chats(platform)?.into_iter().filter(|chat| chat.last_at >= since) {
            stirred.extend(self.stirred_in(chat, since)?);
        }
        Ok(stirred)
    }

    /// The newest message of a person to each persona of a chat, if it is not far back.
    fn stirred_in(&self, chat: ChatRow, since: Timestamp) -> Result<Vec<Stirred>, Error> {
        let mut found: Vec<Stirred> = Vec::new();
        let mut tip = chat.head;
        for _ in 0..LOOKED_BACK {
            let Some(message) = tip.map(|id| self.raw_message(&id)).transpose()?.flatten() else { break };
            let MessageRow { author, persona, scope, at, parent, .. } = message;
            if author.person().is_some() && at >= since && found.iter().all(|newer| newer.persona != persona) {
                found.push(Stirred { chat: chat.id.clone(), persona, scope, last_at: at });
            }
            tip = parent;
        }
        Ok(found)
    }

    /// Takes out the settings of somebody or somewhere that is forgotten.
    pub(crate) fn forget_settings(&self, batch: &mut Batch, gone: &Gone<'_>) -> Result<(), Error> {
        codec::walk(self.store.as_ref(), Table::Settings, b"", |key, _| {
            if is_of(key, gone) {
                batch.remove(Table::Settings, key.to_vec());
            }
            Ok(true)
        })
    }

    /// What a person made of how personas are in their direct messages.
    pub(crate) fn customs_of(&self, person: &PersonId) -> Result<Vec<serde_json::Value>, Error> {
        let mut found = Vec::new();
        codec::walk(self.store.as_ref(), Table::Settings, &keys::prefix(&["customs"]), |key, value| {
            if is_of(key, &Gone::Person(person)) {
                found.push(codec::decode(Table::Settings, value)?);
            }
            Ok(true)
        })?;
        Ok(found)
    }

    /// By which personas a person wants to be looked in on.
    pub(crate) fn check_ins_of(&self, person: &PersonId) -> Result<Vec<serde_json::Value>, Error> {
        let mut found = Vec::new();
        codec::walk(self.store.as_ref(), Table::Settings, &keys::prefix(&[WAKING]), |key, value| {
            if is_of(key, &Gone::Person(person)) {
                let mut wish: serde_json::Value = codec::decode(Table::Settings, value)?;
                let persona = keys::parts(key).nth(3).map(String::from_utf8_lossy);
                wish["persona"] = persona.map(|name| name.into_owned()).into();
                found.push(wish);
            }
            Ok(true)
        })?;
        Ok(found)
    }

    fn setting<T: DeserializeOwned>(&self, key: &[u8]) -> Result<Option<T>, Error> {
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

fn lessons_key(platform: &PlatformId, home: &Scope, persona: &PersonaId) -> Vec<u8> {
    keys::prefix(&["lessons", platform.as_str(), &home.to_string(), persona.as_str()])
}

fn journal_key(platform: &PlatformId, home: &Scope) -> Vec<u8> {
    keys::prefix(&["journal", platform.as_str(), &home.to_string()])
}

pub(crate) fn tended_key(platform: &PlatformId, home: &Scope, persona: &PersonaId) -> Vec<u8> {
    keys::prefix(&["tended", platform.as_str(), &home.to_string(), persona.as_str()])
}

fn customs_key(platform: &PlatformId, home: &Scope) -> Vec<u8> {
    keys::prefix(&["customs", platform.as_str(), &home.to_string()])
}

fn waking_key(platform: &PlatformId, home: &Scope, persona: &PersonaId) -> Vec<u8> {
    keys::prefix(&[WAKING, platform.as_str(), &home.to_string(), persona.as_str()])
}

fn diary_key(chat: &ChatId, persona: &PersonaId) -> Vec<u8> {
    keys::prefix(&["diary", chat.as_str(), persona.as_str()])
}

fn sifted_key(chat: &ChatId, persona: &PersonaId) -> Vec<u8> {
    keys::prefix(&["sifted", chat.as_str(), persona.as_str()])
}

/// Whether a setting belongs to somebody or somewhere that is forgotten.
pub(crate) fn is_of(key: &[u8], gone: &Gone<'_>) -> bool {
    if let Some(accounts) = links::between(key) {
        return matches!(gone, Gone::Person(person) if accounts.contains(person));
    }
    let scope = match gone {
        Gone::Person(person) => Scope::Dm((*person).clone()),
        Gone::Chat(chat) => Scope::Chat((*chat).clone()),
        Gone::Realm(realm) => Scope::Realm((*realm).clone()),
    };
    let scope = scope.to_string();
    let mut parts = keys::parts(key);
    let what = parts.next().unwrap_or_default();
    if what == USUAL.as_bytes() {
        let (person, place) = (parts.next(), parts.next());
        let is_theirs = matches!(gone, Gone::Person(gone) if person == Some(gone.as_str().as_bytes()));
        return is_theirs || place == Some(scope.as_bytes());
    }
    if what == LEARNING.as_bytes() {
        return matches!(gone, Gone::Person(gone) if parts.next() == Some(gone.as_str().as_bytes()));
    }
    let of_a_chat = what == b"diary" || what == b"sifted";
    match gone {
        // A person may be called like a place.
        _ if what == KEEPING.as_bytes() => false,
        Gone::Chat(chat) if of_a_chat => parts.next() == Some(chat.as_str().as_bytes()),
        _ => !of_a_chat && parts.any(|part| part == scope.as_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_agreed_before_there_was_another_machine_agreed_to_this_one() {
        let since = "2026-03-01T10:00:00Z";
        let read = |written: &str| serde_json::from_str::<Willing>(written).unwrap();
        let willing = Willing { since: since.parse().unwrap(), elsewhere: false };
        assert_eq!(read(&format!("\"{since}\"")), willing);
        let both = Willing { elsewhere: true, ..willing };
        for willing in [willing, both] {
            assert_eq!(read(&serde_json::to_string(&willing).unwrap()), willing);
        }
    }
}
