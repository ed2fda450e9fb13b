//! Recordings of people's voices: whose they are, how long they wait for an answer, and that they go with the person.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use azera_memory::ChatRow;
use azera_personas::VoiceSettings;
use azera_types::{PersonId, PersonaId, Timestamp};
use azera_voice_api::{Manner, Sample};

use crate::error::Error;
use crate::jobs::{Job, JobError};
use crate::services::Services;

/// The most recordings that one person may give.
pub(crate) const MAX_OF_ONE_PERSON: usize = 3;

/// How long a recording waits for the person whose voice it is.
pub(crate) const KEPT_UNANSWERED: Duration = Duration::from_secs(24 * 3_600);

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
        pace: own.pace.map(|pace| pace as f32),
        liveliness: own.liveliness.map(|liveliness| liveliness as f32),
        needs_voice: false,
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

    /// Returns what is known about the recordings of a person's voice, and about those that they gave.
    pub(crate) async fn exported_samples(&self, person: &PersonId) -> Result<serde_json::Value, Error> {
        let samples = self.samples().await?;
        let theirs = samples.iter().filter_map(|sample| {
            let given = sample.given.as_ref().filter(|given| given.whose == *person || given.by == *person)?;
            Some(serde_json::json!({
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
        Ok(theirs.collect())
    }

    /// Removes the recordings of a person's voice, and those that they gave.
    pub(crate) async fn forget_samples_of(&self, person: &PersonId) -> Result<(), Error> {
        for sample in self.samples().await? {
            let is_theirs = |given: &azera_voice_api::Given| given.whose == *person || given.by == *person;
            if sample.given.as_ref().is_some_and(is_theirs) {
                self.remove_sample(&sample.id).await?;
            }
        }
        Ok(())
    }
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
