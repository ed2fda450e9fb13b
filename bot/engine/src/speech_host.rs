//! The [`SpeechHost`] interface: texts that people ask to hear.

use async_trait::async_trait;
use azera_adapter::{FileContent, HostError, Reading, SpeechAnswer, SpeechHost, SpeechRequest};
use azera_types::PlatformId;
use azera_voice_api::{CLONE_MARK, Manner, SpeakError};

use crate::clones::manner_in;
use crate::commands::{VOICE_FAILS, log_silence};
use crate::engine::Engine;
use crate::error::Error;

/// Said where nothing speaks.
const NO_VOICE: &str = "I cannot speak: no voice is on this machine. `azera models pull piper-en-us-joe` fetches one, and \
                        `[speech_server]` in the configuration names a server that speaks.";

/// Said to somebody who would get another person's recorded voice with any words in it.
const NOT_THEIR_VOICE: &str = "I cannot say that: it is somebody's recorded voice. Only that person, or the operator who keeps \
                               the voice, gets recordings with it. Another voice can say it.";

/// Said where nothing hears.
const NO_LISTENER: &str = "I cannot hear voice messages: no speech model is on this machine. `azera models pull whisper-base` \
                           fetches one, and `[recognition_server]` in the configuration names a server that recognises \
                           speech.";

impl Engine {
    async fn say_text(
        &self,
        platform: &PlatformId,
        at: Reading,
        request: SpeechRequest,
    ) -> Result<SpeechAnswer, Error> {
        let services = &self.0.services;
        let Some(here) = self.here(platform, &at).await? else { return Err(Error::NotAllowed) };
        let Some(speaker) = services.voice().speaker else { return Ok(SpeechAnswer::Unavailable(NO_VOICE.to_owned())) };
        let persona = request.persona.as_ref().unwrap_or(&here.persona);
        let loaded = services.persona(here.place.shared_realm(), persona).await?;
        let id = at.chat.clone();
        let chat = services.blocking(move |memory| memory.chats().get(&id)).await?;
        let own = manner_in(chat.as_ref(), persona, &loaded.persona.voice);
        let adapter = services.platform(platform)?;
        let own = services.as_owner_allows(adapter.as_ref(), &at.chat, own, &loaded.persona.voice).await;
        let manner = match request.voice {
            // What somebody recorded in a chat speaks only where it was chosen.
            Some(voice) if voice.starts_with(CLONE_MARK) => {
                return Ok(SpeechAnswer::Refused(format!("I cannot say that: {}.", SpeakError::NoVoice)));
            }
            Some(voice) => Manner { voice: Some(voice), needs_voice: true, ..own },
            None => own,
        };
        let access = adapter.access(&at.chat, &at.person).await?;
        if !services.may_record_with(access, &at.person, &manner).await? {
            return Ok(SpeechAnswer::Refused(NOT_THEIR_VOICE.to_owned()));
        }
        let sound = tokio::select! {
            sound = speaker.record(&request.text, &manner) => sound,
            () = services.stopping.cancelled() => return Err(Error::Interrupted),
        };
        let error = match sound {
            Ok(sound) => return Ok(SpeechAnswer::Sound { wav: FileContent(sound.wav), duration: sound.duration }),
            Err(error) => error,
        };
        log_silence(&error);
        Ok(match error {
            SpeakError::Busy => SpeechAnswer::Busy,
            SpeakError::Unavailable(_) => SpeechAnswer::Unavailable(VOICE_FAILS.to_owned()),
            SpeakError::VoiceAway(_) => SpeechAnswer::Unavailable(format!("I cannot say that: {error}.")),
            error => SpeechAnswer::Refused(format!("I cannot say that: {error}.")),
        })
    }
}

#[async_trait]
impl SpeechHost for Engine {
    fn silence(&self) -> Option<String> {
        self.0.services.voice().speaker.is_none().then(|| NO_VOICE.to_owned())
    }

    fn deafness(&self) -> Option<String> {
        self.0.services.voice().listener.is_none().then(|| NO_LISTENER.to_owned())
    }

    async fn say(&self, platform: &PlatformId, at: Reading, request: SpeechRequest) -> Result<SpeechAnswer, HostError> {
        self.for_adapter(self.say_text(platform, at, request).await)
    }
}
