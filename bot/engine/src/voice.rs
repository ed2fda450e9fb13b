//! The [`VoiceHost`] interface: consent to being heard, names to be called by, answers to prepare, and how much of a
//! reply was heard.

use async_trait::async_trait;
use azera_adapter::{CallPersona, ExpectedMessage, HostError, VoiceHost};
use azera_memory::{Forget, VoiceConsent};
use azera_types::{ChatId, MessageId, PersonId, PlatformId, Text};
use azera_voice_api::Manner;

use crate::engine::Engine;
use crate::error::Error;
use crate::turn::manner;

/// What stands for a reply of which nothing was heard, and behind one that was cut.
const CUT: &str = "\u{2026}";

impl Engine {
    async fn persona_in(&self, platform: &PlatformId, voice_chat: &ChatId) -> Result<CallPersona, Error> {
        let services = &self.0.services;
        let place = services.platform(platform)?.place_for_all(voice_chat).await?;
        let chat = {
            let chat = voice_chat.clone();
            services.blocking(move |memory| memory.chats().get(&chat)).await?
        };
        let persona = chat.map_or_else(|| services.config.persona.clone(), |chat| chat.persona);
        let realm = place.as_ref().and_then(|place| place.shared_realm());
        let wake_names = services.config.wake_names.iter().cloned();
        match services.persona(realm, &persona).await {
            Ok(loaded) => {
                let names = loaded.persona.answers_to().map(str::to_owned).chain(wake_names).collect();
                let Manner { voice, pace, liveliness, .. } = manner(&loaded.persona.voice);
                Ok(CallPersona { names, voice, pace, liveliness })
            }
            Err(Error::NoPersona(_)) => Ok(CallPersona { names: wake_names.collect(), ..CallPersona::default() }),
            Err(error) => Err(error),
        }
    }
}

#[async_trait]
impl VoiceHost for Engine {
    async fn call_persona(&self, platform: &PlatformId, voice_chat: &ChatId) -> Result<CallPersona, HostError> {
        Ok(self.persona_in(platform, voice_chat).await?)
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
