//! Recordings of calls: the engine lists, gives, removes and forgets them. It makes none.

use std::io;
use std::sync::Arc;

use azera_memory::Forget;
use azera_types::{PersonId, Timestamp};
use azera_voice_api::{CallRecording, CallRecordings, ForgottenCalls};
use serde_json::{Value, json};
use tokio::sync::Mutex;

use crate::engine::Engine;
use crate::error::Error;
use crate::services::Services;

/// The recordings that are kept.
pub(crate) struct KeptRecordings {
    recordings: Arc<dyn CallRecordings>,
    /// Held while one is on its way to a person, so that no more than one is in memory.
    pub(crate) sending: Mutex<()>,
}

impl Engine {
    /// Gives the engine the recordings of calls. Call it once, before [`Engine::start`]; later calls change nothing.
    pub fn give_recordings(&self, recordings: Arc<dyn CallRecordings>) {
        self.0.services.recordings.get_or_init(|| KeptRecordings { recordings, sending: Mutex::default() });
    }
}

impl Services {
    /// Works on the recordings of calls outside the async threads; returns `None` if there are none.
    pub(crate) async fn in_recordings<T: Send + 'static>(
        &self,
        work: impl FnOnce(&dyn CallRecordings) -> io::Result<T> + Send + 'static,
    ) -> Result<Option<T>, Error> {
        let Some(kept) = self.recordings.get() else { return Ok(None) };
        let recordings = kept.recordings.clone();
        let done = tokio::task::spawn_blocking(move || work(recordings.as_ref())).await;
        Ok(Some(done??))
    }

    /// Returns the recordings that a person is in, the newest first.
    pub(crate) async fn recordings_of(&self, person: &PersonId) -> Result<Vec<CallRecording>, Error> {
        let person = person.clone();
        Ok(self.in_recordings(move |recordings| recordings.of(&person)).await?.unwrap_or_default())
    }

    /// Removes the recordings of what is forgotten. People who are forgotten agree to no recording any more.
    pub(crate) async fn forget_recordings(&self, what: &Forget) -> Result<(), Error> {
        if let Forget::Person(person) = what {
            for platform in self.platform_ids() {
                if let Ok(platform) = self.platform(&platform)
                    && let Some(voice) = platform.voice()
                {
                    voice.forgotten(person).await;
                }
            }
        }
        if let Some(calls) = forgotten_calls(what) {
            self.in_recordings(move |recordings| recordings.forget(&calls)).await?;
        }
        Ok(())
    }
}

/// Returns which recordings go with what is forgotten; `None` if none do.
pub fn forgotten_calls(what: &Forget) -> Option<ForgottenCalls> {
    match what {
        Forget::Person(person) => Some(ForgottenCalls::Person(person.clone())),
        Forget::Chat(chat) => Some(ForgottenCalls::Chat(chat.clone(), Timestamp::MIN, Timestamp::MAX)),
        Forget::Span { chat, from, to } => Some(ForgottenCalls::Chat(chat.clone(), *from, *to)),
        Forget::Realm(realm, _) => Some(ForgottenCalls::Realm(realm.clone())),
        // A recording does not know what was said in it.
        Forget::Message(_) | Forget::Memory(_) | Forget::Import(_) => None,
    }
}

/// Returns what is known about the recordings that a person is in, for their export.
pub fn exported_recordings(recordings: &[CallRecording]) -> Value {
    let exported = recordings.iter().map(|recording| {
        let names: Vec<&str> = recording.people.iter().map(|(_, name)| name.as_str()).collect();
        json!({
            "number": recording.number,
            "place": recording.place,
            "began": recording.began,
            "seconds": recording.duration.as_secs(),
            "people": names,
        })
    });
    exported.collect()
}
