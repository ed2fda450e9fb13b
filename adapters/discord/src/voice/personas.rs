//! Who talks in a call: the personas of the voice channel's text chat, each in its own manner.

use std::collections::VecDeque;
use std::sync::Arc;

use azera_adapter::{CallManner, CallPersona, Making, VoiceError};
use azera_types::{ChatId, MessageId};
use azera_voice_discord::Manner;
use serenity::all::ChannelId;

use super::VoiceCalls;
use crate::id;

/// Most replies of a call whose speaker is remembered.
const MAX_REPLIES: usize = 64;

/// Who says the newest replies of a call.
#[derive(Default)]
pub(super) struct Speakers(VecDeque<(MessageId, String)>);

impl Speakers {
    /// Remembers who says a reply. Returns false if that was known.
    fn begin(&mut self, reply: &MessageId, name: &str) -> bool {
        if self.0.iter().any(|(known, _)| known == reply) {
            return false;
        }
        if self.0.len() >= MAX_REPLIES {
            self.0.pop_front();
        }
        self.0.push_back((reply.clone(), name.to_owned()));
        true
    }

    /// Forgets who says a reply that failed. It begins anew when it is tried again.
    fn forget(&mut self, reply: &MessageId) {
        self.0.retain(|(known, _)| known != reply);
    }
}

/// Returns how a persona speaks, as engines of speech take it.
pub(super) fn manner(manner: CallManner) -> Manner {
    let CallManner { voice, needs_voice, pace, pitch, liveliness, language } = manner;
    Manner { voice, needs_voice, pace, pitch, liveliness, language }
}

impl VoiceCalls {
    /// Returns the name of the persona that says a reply in a voice channel, or else of the one that usually talks there.
    pub(super) fn speaker_of(&self, channel: ChannelId, reply: &MessageId) -> String {
        let calls = self.calls();
        let Some(ongoing) = calls.values().find(|ongoing| ongoing.channel == channel) else { return String::new() };
        let known = ongoing.speakers.0.iter().find(|(known, _)| known == reply);
        known.map_or_else(|| ongoing.persona.clone(), |(_, name)| name.clone())
    }

    /// Lets a reply that begins be said in its persona's manner, as the answer to the person who asked.
    pub(super) async fn begin_reply(&self, making: Making<'_>) {
        let Making { chat, reply, persona, persona_name, asker, .. } = making;
        let (Some(channel), Some((_, host))) = (id::voice_channel_of(chat), self.speech.get()) else { return };
        let call = {
            let mut calls = self.calls();
            let Some(ongoing) = calls.values_mut().find(|ongoing| ongoing.channel == channel) else { return };
            if !ongoing.speakers.begin(reply, persona_name) {
                return;
            }
            ongoing.call.clone()
        };
        let own = host.call_manner(&self.platform, chat, persona).await;
        if let Some(asker) = asker {
            call.asked_by(reply, asker);
        }
        match own {
            Ok(own) => call.begin(reply, manner(own)),
            Err(error) => tracing::warn!(%error, "cannot read how a persona speaks; the usual voice says its reply"),
        }
    }

    /// Returns true if somebody speaks with a voice now.
    ///
    /// # Errors
    /// Speech does not work.
    pub(super) async fn has_voice(&self, voice: &str) -> Result<bool, VoiceError> {
        let (speech, _) = self.speech.get().ok_or(VoiceError::NotThere)?;
        let engines = speech.engines().await.map_err(VoiceError::Unavailable)?;
        Ok(engines.speaker.voices().iter().any(|known| known.id == voice))
    }

    /// Ends a reply that failed, so that its next try is said in its persona's manner again.
    pub(super) fn failed_reply(&self, channel: ChannelId, reply: &MessageId) {
        if let Some(ongoing) = self.calls().values_mut().find(|ongoing| ongoing.channel == channel) {
            ongoing.speakers.forget(reply);
        }
    }

    /// Takes in that the personas of a text chat, or how they speak, have changed.
    pub(super) async fn personas_changed(self: &Arc<Self>, text_chat: &ChatId) {
        let (Some(channel), Some((_, host))) = (id::channel_of(text_chat), self.speech.get()) else { return };
        let (Some(call), Ok(chat)) = (self.call_in(channel), id::voice_chat(channel)) else { return };
        let CallPersona { names, manner: own } = match host.call_persona(&self.platform, &chat).await {
            Ok(persona) => persona,
            Err(error) => {
                tracing::warn!(%error, "cannot read who talks in a voice channel; nothing changes there");
                return;
            }
        };
        if let Some(ongoing) = self.calls().values_mut().find(|ongoing| ongoing.channel == channel) {
            ongoing.persona = names.first().cloned().unwrap_or_default();
        }
        call.persona(names, manner(own));
    }
}
