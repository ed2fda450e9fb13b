//! The [`VoiceHost`] interface: consent to being heard, names to be called by, answers to prepare, and how much of a
//! reply was heard.

use async_trait::async_trait;
use azera_adapter::{CallManner, CallPersona, ExpectedMessage, HostError, VoiceHost};
use azera_memory::{ChatChange, ChatRow, Forget, NewChat, VoiceConsent};
use azera_types::{ChatId, MessageId, PersonId, PersonaId, Place, PlatformId, Text};
use azera_voice_api::Manner;

use crate::clones::{in_mood, manner_in};
use crate::engine::Engine;
use crate::error::Error;
use crate::services::LoadedPersona;

/// What stands for a reply of which nothing was heard, and behind one that was cut.
const CUT: &str = "\u{2026}";

impl Engine {
    /// Returns the personas of a voice channel, after those of its text chat were taken over.
    async fn personas_in(&self, platform: &PlatformId, voice_chat: &ChatId) -> Result<CallPersona, Error> {
        let services = &self.0.services;
        let chat = self.follow_text_chat(platform, voice_chat).await?;
        let place = self.place_of_call(platform, voice_chat).await?;
        let realm = place.as_ref().and_then(|place| place.shared_realm());
        let usual = chat.as_ref().map_or_else(|| services.config.persona.clone(), |chat| chat.persona.clone());
        let (mut names, manner) = match services.persona(realm, &usual).await {
            Ok(loaded) => {
                let names: Vec<String> = loaded.persona.answers_to().map(str::to_owned).collect();
                let manner = self.checked_manner(platform, voice_chat, chat.as_ref(), &loaded, &usual).await?;
                let manner = self.mooded(manner, place.as_ref(), &usual);
                (names, in_call(manner))
            }
            Err(Error::NoPersona(_)) => (Vec::new(), CallManner::default()),
            Err(error) => return Err(error),
        };
        names.extend(services.config.wake_names.iter().cloned());
        if let (Some(place), Some(chat)) = (&place, &chat) {
            let invited = self.0.access.invited_here(place, chat).await?;
            names.extend(invited.iter().flat_map(|(_, loaded)| loaded.persona.answers_to().map(str::to_owned)));
        }
        Ok(CallPersona { names, manner })
    }

    /// Lets the personas of a voice channel's text chat talk in the voice channel. Returns the chat of the voice channel,
    /// if it is known.
    async fn follow_text_chat(&self, platform: &PlatformId, voice_chat: &ChatId) -> Result<Option<ChatRow>, Error> {
        let services = &self.0.services;
        let text_chat = services.platform(platform)?.voice().and_then(|voice| voice.text_chat_of(voice_chat));
        let new = NewChat {
            id: voice_chat.clone(),
            platform: platform.clone(),
            title: None,
            persona: services.config.persona.clone(),
        };
        let now = services.clock.now();
        services
            .blocking(move |memory| {
                let (id, chats) = (new.id.clone(), memory.chats());
                let text = text_chat.map(|chat| chats.get(&chat)).transpose()?.flatten();
                let Some(text) = text else { return chats.get(&id) };
                let voice = chats.open(new, now)?;
                if voice.persona != text.persona {
                    chats.change(&id, ChatChange::Persona(text.persona.clone()))?;
                }
                for persona in voice.voices.keys().chain(text.voices.keys()) {
                    let chosen = text.voices.get(persona).cloned();
                    if voice.voices.get(persona) != chosen.as_ref() {
                        chats.change(&id, ChatChange::Voice(persona.clone(), chosen))?;
                    }
                }
                for gone in voice.invited.difference(&text.invited) {
                    chats.change(&id, ChatChange::Invited(gone.clone(), false))?;
                }
                for new in text.invited.difference(&voice.invited) {
                    chats.change(&id, ChatChange::Invited(new.clone(), true))?;
                }
                chats.get(&id)
            })
            .await
    }

    /// Returns the place of a voice channel. Before the call begins, it is that of the channel's text chat.
    async fn place_of_call(&self, platform: &PlatformId, voice_chat: &ChatId) -> Result<Option<Place>, Error> {
        let adapter = self.0.services.platform(platform)?;
        if let Some(place) = adapter.place_for_all(voice_chat).await? {
            return Ok(Some(place));
        }
        match adapter.voice().and_then(|voice| voice.text_chat_of(voice_chat)) {
            Some(text_chat) => Ok(adapter.place_for_all(&text_chat).await?),
            None => Ok(None),
        }
    }

    async fn manner_of(
        &self,
        platform: &PlatformId,
        voice_chat: &ChatId,
        persona: &PersonaId,
    ) -> Result<CallManner, Error> {
        let place = self.place_of_call(platform, voice_chat).await?;
        let realm = place.as_ref().and_then(|place| place.shared_realm());
        let loaded = self.0.services.persona(realm, persona).await?;
        let id = voice_chat.clone();
        let chat = self.0.services.blocking(move |memory| memory.chats().get(&id)).await?;
        let manner = self.checked_manner(platform, voice_chat, chat.as_ref(), &loaded, persona).await?;
        Ok(in_call(self.mooded(manner, place.as_ref(), persona)))
    }

    /// Returns a manner as the persona's mood in the place changes it.
    fn mooded(&self, manner: Manner, place: Option<&Place>, persona: &PersonaId) -> Manner {
        let stir = place.map_or(0.0, |place| self.0.minds.stir(persona, &place.scope()));
        in_mood(manner, stir)
    }

    /// Returns how a persona speaks in a voice channel. The owner of a recorded voice must be able to read its text chat.
    async fn checked_manner(
        &self,
        platform: &PlatformId,
        voice_chat: &ChatId,
        chat: Option<&ChatRow>,
        loaded: &LoadedPersona,
        persona: &PersonaId,
    ) -> Result<Manner, Error> {
        let services = &self.0.services;
        let adapter = services.platform(platform)?;
        let text_chat = adapter.voice().and_then(|voice| voice.text_chat_of(voice_chat));
        let read = text_chat.as_ref().unwrap_or(voice_chat);
        let own = &loaded.persona.voice;
        Ok(services.as_owner_allows(adapter.as_ref(), read, manner_in(chat, persona, own), own).await)
    }
}

/// Returns a manner in the form that calls take.
pub(crate) fn in_call(manner: Manner) -> CallManner {
    let Manner { voice, needs_voice, pace, pitch, liveliness, language } = manner;
    CallManner { voice, needs_voice, pace, pitch, liveliness, language }
}

#[async_trait]
impl VoiceHost for Engine {
    async fn call_persona(&self, platform: &PlatformId, voice_chat: &ChatId) -> Result<CallPersona, HostError> {
        Ok(self.personas_in(platform, voice_chat).await?)
    }

    async fn call_manner(
        &self,
        platform: &PlatformId,
        voice_chat: &ChatId,
        persona: &PersonaId,
    ) -> Result<CallManner, HostError> {
        Ok(self.manner_of(platform, voice_chat, persona).await?)
    }

    async fn may_be_heard(&self, voice_chat: &ChatId, person: &PersonId) -> Result<Option<bool>, HostError> {
        let (chat, person) = (voice_chat.clone(), person.clone());
        let consent = self.0.services.blocking(move |memory| memory.consent().voice(&chat, &person)).await?;
        Ok(consent.map(|consent| consent == VoiceConsent::Given))
    }

    async fn was_asked(&self, voice_chat: &ChatId, person: &PersonId) -> Result<(), HostError> {
        let (chat, person) = (voice_chat.clone(), person.clone());
        self.0
            .services
            .blocking(move |memory| match memory.consent().voice(&chat, &person)? {
                Some(_) => Ok(()),
                None => memory.consent().set_voice(&chat, &person, VoiceConsent::Asked),
            })
            .await?;
        Ok(())
    }

    async fn heard(&self, reply: &MessageId, heard: Text, is_whole: bool) -> Result<(), HostError> {
        let heard = heard.trim_end();
        let text = Text::new(if is_whole { heard.to_owned() } else { format!("{heard}{CUT}") });
        // A reply that is not stored yet is stored with what is noted here.
        if !self.0.services.interruptions.note(reply, text.clone(), heard.is_empty()) {
            return Ok(());
        }
        let stored = reply.clone();
        if self.0.services.blocking(move |memory| memory.turns().cut_reply(&stored, text)).await? {
            self.0.services.interruptions.recorded(reply);
            self.0.indexer.wake();
        }
        Ok(())
    }

    async fn stands(&self, message: &MessageId) -> Result<Option<bool>, HostError> {
        let message = message.clone();
        Ok(self.0.services.blocking(move |memory| memory.messages().stands(&message)).await?)
    }

    async fn forget_said(&self, person: &PersonId, said: &[MessageId]) -> Result<usize, HostError> {
        // All of them first: a reply is theirs only as long as its question stands.
        let mut theirs = Vec::new();
        for message in said {
            let (of, who) = (message.clone(), person.clone());
            if self.0.services.blocking(move |memory| memory.messages().is_theirs(&of, &who)).await? {
                theirs.push(message);
            }
        }
        for message in &theirs {
            let gone = self.0.forgetting.forget(Forget::Message((*message).clone()), false, None).await;
            self.for_adapter(gone)?;
        }
        Ok(theirs.len())
    }

    async fn expect(&self, platform: &PlatformId, message: ExpectedMessage) {
        if let Err(error) = self.0.turns.rehearse(platform, message).await {
            tracing::debug!(%error, "an answer is not prepared");
        }
    }
}
