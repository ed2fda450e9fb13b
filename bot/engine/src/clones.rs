//! Recordings of people's voices: whose they are, how long they wait for an answer, and that they go with the person.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use azera_adapter::{Access, Platform};
use azera_memory::{ChatRow, Forget};
use azera_personas::VoiceSettings;
use azera_types::{ChatId, PersonId, PersonaId, Scope, Timestamp};
use azera_voice_api::{CLONE_MARK, Given, Manner, Sample, Style};
use serde_json::{Value, json};

use crate::error::Error;
use crate::jobs::{Job, JobError};
use crate::services::Services;

/// The most recordings that one person may give.
pub(crate) const MAX_OF_ONE_PERSON: usize = 3;

/// How long a recording waits for the person whose voice it is.
pub(crate) const KEPT_UNANSWERED: Duration = Duration::from_secs(24 * 3_600);

/// How long somebody waits before they ask the same person about a recording again.
pub(crate) const ASKED_AGAIN_AFTER: Duration = Duration::from_secs(24 * 3_600);

/// The most questions that are held for it.
const MAX_ASKED_OWNERS: usize = 1_000;

/// When the next recording has waited long enough.
#[derive(Default)]
pub(crate) struct Unanswered(Mutex<Option<Timestamp>>);

impl Unanswered {
    fn set(&self, due: Option<Timestamp>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = due;
    }

    fn get(&self) -> Option<Timestamp> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Who asked whom about a recording of their voice, and when. It is held in memory alone.
#[derive(Default)]
pub(crate) struct AskedOwners(Mutex<Vec<AskedOwner>>);

struct AskedOwner {
    by: PersonId,
    whose: PersonId,
    at: Timestamp,
}

impl AskedOwners {
    /// Notes a question. The oldest ones are dropped.
    pub(crate) fn note(&self, by: PersonId, whose: PersonId, at: Timestamp) {
        let mut asked = self.lock();
        if asked.len() >= MAX_ASKED_OWNERS {
            asked.remove(0);
        }
        asked.push(AskedOwner { by, whose, at });
    }

    /// Returns true if one of these accounts asked the person less than [`ASKED_AGAIN_AFTER`] ago.
    pub(crate) fn lately(&self, by: &Accounts, whose: &PersonId, now: Timestamp) -> bool {
        let mut asked = self.lock();
        asked.retain(|asked| asked.at.checked_add(ASKED_AGAIN_AFTER).is_ok_and(|until| until > now));
        asked.iter().any(|asked| asked.whose == *whose && by.has(&asked.by))
    }

    fn forget(&self, person: &PersonId) {
        self.lock().retain(|asked| asked.by != *person && asked.whose != *person);
    }

    fn lock(&self) -> MutexGuard<'_, Vec<AskedOwner>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The accounts of one human.
pub(crate) struct Accounts(BTreeSet<PersonId>);

impl Accounts {
    pub(crate) fn has(&self, person: &PersonId) -> bool {
        self.0.contains(person)
    }
}

/// Returns how a persona speaks in a chat: as its file says, with the voice that was chosen for it there.
pub(crate) fn manner_in(chat: Option<&ChatRow>, persona: &PersonaId, own: &VoiceSettings) -> Manner {
    let chosen = chat.and_then(|chat| chat.voices.get(persona));
    Manner {
        voice: chosen.or(own.name.as_ref()).cloned(),
        needs_voice: false,
        pace: own.pace.map(|pace| pace as f32),
        pitch: own.pitch.map(|pitch| pitch as f32),
        liveliness: own.liveliness.map(|liveliness| liveliness as f32),
        language: own.language.clone(),
    }
}

/// The most that a mood changes the pace of a voice, as a share.
const MOOD_PACE: f32 = 0.08;
/// The most that a mood changes the pitch of a voice, as a share.
const MOOD_PITCH: f32 = 0.04;
/// The most that a mood changes the liveliness of a voice, as a share.
const MOOD_LIVELINESS: f32 = 0.2;

/// Returns a manner as a mood changes it, which stirs the persona by this much, from -1 to 1: an excited persona talks
/// faster, livelier and a little higher.
pub(crate) fn in_mood(manner: Manner, stir: f32) -> Manner {
    if stir == 0.0 {
        return manner;
    }
    let changed = |own: Option<f32>, most: f32| Some(own.unwrap_or(1.0) * (1.0 + most * stir));
    Manner {
        pace: changed(manner.pace, MOOD_PACE),
        pitch: changed(manner.pitch, MOOD_PITCH),
        liveliness: changed(manner.liveliness, MOOD_LIVELINESS),
        ..manner
    }
}

/// Returns when a recording is deleted if nobody answers; `None` if somebody did.
fn due(sample: &Sample) -> Option<Timestamp> {
    let given = sample.given.as_ref().filter(|given| given.agreed_at.is_none())?;
    given.at.checked_add(KEPT_UNANSWERED).ok()
}

impl Services {
    /// Returns the accounts that a human linked with this one, and this one.
    pub(crate) async fn accounts_of(&self, person: &PersonId) -> Result<Accounts, Error> {
        let of = person.clone();
        let linked = self.blocking(move |memory| memory.links().of(&of)).await?;
        Ok(Accounts(linked.into_iter().map(|account| account.person).chain([person.clone()]).collect()))
    }

    /// Returns the recordings that exist now. Those that waited too long are deleted first.
    pub(crate) async fn samples(&self) -> Result<Vec<Sample>, Error> {
        let Some(store) = self.voice().samples else { return Ok(Vec::new()) };
        let samples = store.list().await.map_err(|error| Error::Voice(error.to_string()))?;
        let now = self.clock.now();
        let (late, kept): (Vec<Sample>, Vec<Sample>) =
            samples.into_iter().partition(|sample| due(sample).is_some_and(|due| due <= now));
        for sample in &late {
            self.remove_sample(&sample.id).await?;
        }
        self.unanswered.set(kept.iter().filter_map(due).min());
        Ok(kept)
    }

    /// Takes into account that a recording waits for an answer.
    pub(crate) fn note_unanswered(&self, sample: &Sample) {
        self.unanswered.set(due(sample).into_iter().chain(self.unanswered.get()).min());
    }

    /// Returns how a persona speaks in a chat after the owner of the voice was looked for: without a recorded voice whose owner
    /// cannot read the chat any more, or agreed to another place.
    pub(crate) async fn as_owner_allows(
        &self,
        platform: &dyn Platform,
        chat: &ChatId,
        manner: Manner,
        own: &VoiceSettings,
    ) -> Manner {
        let Some(voice) = manner.voice.as_deref().filter(|voice| voice.starts_with(CLONE_MARK)) else { return manner };
        match self.owner_is_there(platform, chat, voice).await {
            Ok(true) => return manner,
            Ok(false) => tracing::debug!(%chat, "the owner of a recorded voice is not there; the usual voice speaks"),
            Err(error) => tracing::warn!(%chat, %error, "cannot look for the owner of a recorded voice"),
        }
        Manner { voice: own.name.clone().filter(|voice| !voice.starts_with(CLONE_MARK)), ..manner }
    }

    /// Returns true if the person whose voice it is agreed to it and can read the chat now.
    pub(crate) async fn owner_is_there(
        &self,
        platform: &dyn Platform,
        chat: &ChatId,
        voice: &str,
    ) -> Result<bool, Error> {
        let samples = self.samples().await?;
        let Some(sample) = samples.into_iter().find(|sample| sample.id == voice) else {
            // It was removed at the command line.
            let gone = voice.to_owned();
            self.blocking(move |memory| memory.chats().drop_voice(&gone)).await?;
            return Ok(false);
        };
        let Some(given) = sample.given.filter(|given| given.agreed_at.is_some()) else { return Ok(false) };
        for account in self.accounts_of(&given.whose).await?.0 {
            // A platform knows nothing of accounts elsewhere.
            let Ok(Some(place)) = self.place(platform, chat, &account).await else { continue };
            if given.place.as_ref().is_none_or(|only| *only == place.scope().to_string()) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns the recording with which a manner speaks, also where it names no voice and the usual one is a recording;
    /// `None` if it speaks with another voice.
    pub(crate) async fn sample_of(&self, manner: &Manner) -> Result<Option<Sample>, Error> {
        let samples = self.samples().await?;
        if samples.is_empty() {
            return Ok(None);
        }
        let voices = match self.voice().speaker {
            Some(speaker) => speaker.voices().await.unwrap_or_default(),
            None => Vec::new(),
        };
        let usual = voices.iter().find(|voice| !voice.id.starts_with(CLONE_MARK));
        let speaks = usual.map(|usual| manner.style(&voices, &Style::of(usual.id.as_str())).voice);
        let is_it = |sample: &Sample| manner.voice.as_ref() == Some(&sample.id) || speaks.as_ref() == Some(&sample.id);
        Ok(samples.into_iter().find(is_it))
    }

    /// Returns true if a person may get recordings of any text in this manner: not with the voice of somebody else, also
    /// not with one that they gave, and with a voice that the operator keeps only as the operator.
    pub(crate) async fn may_record_with(
        &self,
        access: Access,
        person: &PersonId,
        manner: &Manner,
    ) -> Result<bool, Error> {
        let Some(sample) = self.sample_of(manner).await? else { return Ok(true) };
        Ok(match &sample.given {
            Some(given) => self.accounts_of(person).await?.has(&given.whose),
            None => access >= Access::Operator,
        })
    }

    /// Returns true if a person can read a chat now, by one of their accounts; in the chat of a call: if they are in it.
    pub(crate) async fn can_read(
        &self,
        platform: &dyn Platform,
        chat: &ChatId,
        person: &PersonId,
    ) -> Result<bool, Error> {
        for account in self.accounts_of(person).await?.0 {
            // A platform knows nothing of accounts elsewhere.
            if let Ok(Some(_)) = self.place(platform, chat, &account).await {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Removes a recording, and lets nothing speak with it any more.
    pub(crate) async fn remove_sample(&self, id: &str) -> Result<(), Error> {
        let Some(store) = self.voice().samples else { return Ok(()) };
        store.remove(id).await.map_err(|error| Error::Voice(error.to_string()))?;
        let voice = id.to_owned();
        for chat in self.blocking(move |memory| memory.chats().drop_voice(&voice)).await? {
            let Ok(platform) = self.platform(&chat.platform) else { continue };
            if let Some(voice) = platform.voice() {
                voice.personas_changed(&chat.id).await;
            }
        }
        Ok(())
    }

    /// Removes the recordings of voices that go with what is forgotten. Returns how many those are.
    pub(crate) async fn forget_samples(&self, what: &Forget) -> Result<usize, Error> {
        if let Forget::Person(person) = what {
            self.asked_owners.forget(person);
        }
        let mut removed = 0;
        for sample in self.samples().await? {
            if sample.given.as_ref().is_some_and(|given| goes_with(given, what)) {
                self.remove_sample(&sample.id).await?;
                removed += 1;
            }
        }
        Ok(removed)
    }
}

/// Returns true if a recording goes with what is forgotten: of the person's voice, given by them, or kept for that place.
fn goes_with(given: &Given, what: &Forget) -> bool {
    let is_kept_for = |scope: Scope| given.place.as_ref().is_some_and(|place| *place == scope.to_string());
    match what {
        Forget::Person(person) => given.whose == *person || given.by == *person,
        Forget::Chat(chat) => is_kept_for(Scope::Chat(chat.clone())),
        Forget::Realm(realm, chats) => {
            is_kept_for(Scope::Realm(realm.clone())) || chats.iter().any(|chat| is_kept_for(Scope::Chat(chat.clone())))
        }
        Forget::Message(_) | Forget::Memory(_) | Forget::Span { .. } | Forget::Import(_) => false,
    }
}

/// Returns what is known about the recordings of a person's voice, and about those that they gave, for their export.
pub fn exported_samples(samples: &[Sample], person: &PersonId) -> Value {
    let theirs = samples.iter().filter_map(|sample| {
        let given = sample.given.as_ref().filter(|given| given.whose == *person || given.by == *person)?;
        Some(json!({
            "id": sample.id,
            "name": sample.name,
            "seconds": sample.seconds,
            "is_your_voice": given.whose == *person,
            "given_by_you": given.by == *person,
            "place": given.place,
            "at": given.at.to_string(),
            "agreed_at": given.agreed_at.map(|at| at.to_string()),
        }))
    });
    theirs.collect()
}

/// Deletes recordings that waited too long for an answer.
pub(crate) struct UnansweredSamples(pub(crate) Arc<Services>);

#[async_trait]
impl Job for UnansweredSamples {
    fn name(&self) -> &'static str {
        "unanswered voice samples"
    }

    fn next_due(&self) -> Option<Timestamp> {
        self.0.unanswered.get()
    }

    async fn run(&self, now: Timestamp) -> Result<(), JobError> {
        if self.0.unanswered.get().is_some_and(|due| due <= now) {
            self.0.samples().await?;
        }
        Ok(())
    }

    async fn finish(&self, _now: Timestamp) -> Result<(), JobError> {
        Ok(())
    }
}
