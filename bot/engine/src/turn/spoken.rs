//! Stage *speak*: the sound of a delivered reply. The text is the reply; the sound is extra. It is made after the text
//! was shown, once, and a restart does not make up for a sound that was missed.

use std::sync::Arc;

use azera_adapter::{Outbound, Platform, VoiceMessages};
use azera_memory::{MessageRow, ReadScope, SourceScope, VoiceReplies};
use azera_personas::VoiceSettings;
use azera_types::{Author, Part, PersonId, Timestamp};
use azera_voice_api::{Manner, Speaker};
use tokio_util::task::TaskTracker;

use super::commit::Committed;
use super::compose::Composition;
use super::context::{TurnContext, TurnRequest};
use crate::clones::{in_mood, manner_in};
use crate::error::Error;
use crate::outbox::DeliverableReply;
use crate::turn::Turns;

/// The sounds that are being made.
#[derive(Default)]
pub(crate) struct SpokenReplies {
    tasks: TaskTracker,
}

impl SpokenReplies {
    /// Waits until all sounds asked for so far are sent or given up.
    pub(crate) async fn idle(&self) {
        self.tasks.close();
        self.tasks.wait().await;
        self.tasks.reopen();
    }
}

/// A reply to speak, and what must still hold when its sound is sent.
struct SpokenReply {
    platform: Arc<dyn Platform>,
    reply: MessageRow,
    outbound: Outbound,
    asker: PersonId,
    from: Timestamp,
    source_scopes: Vec<SourceScope>,
    read_scope: ReadScope,
    manner: Manner,
    /// How the persona speaks by its file.
    own: VoiceSettings,
}

impl Turns {
    /// Begins to speak a reply in the background, if it is to be spoken.
    pub(super) fn speak_reply(
        self: &Arc<Self>,
        request: &TurnRequest,
        context: &TurnContext,
        composition: &Composition,
        committed: &Committed,
    ) {
        let Some(speaker) = self.services.voice().speaker else { return };
        // Help for somebody in danger is text alone.
        if !self.is_spoken(request, context) || composition.style.is_in_danger() {
            return;
        }
        let reply = committed.reply.clone();
        let Author::Persona { id, name } = &reply.author else { return };
        let outbound = Outbound {
            id: reply.id.clone(),
            chat: reply.chat.clone(),
            persona: id.clone(),
            persona_name: name.clone(),
            text: reply.text.clone(),
            reply_to: reply.reply_to.clone(),
            asker: Some(request.inbox.person.clone()),
            state: committed.state.clone(),
            help: String::new(),
            files: Vec::new(),
            can_upscale: false,
        };
        let manner = manner_in(context.chat.as_ref(), id, &context.persona.voice);
        let manner = in_mood(manner, self.minds.stir(id, &context.place.scope()));
        let spoken = SpokenReply {
            platform: Arc::clone(&request.platform),
            reply,
            outbound,
            asker: request.inbox.person.clone(),
            from: composition.sources.from,
            source_scopes: composition.sources.source_scopes.clone(),
            read_scope: context.read_scope.clone(),
            manner,
            own: context.persona.voice.clone(),
        };
        let turns = Arc::clone(self);
        self.spoken.tasks.spawn(async move {
            let id = spoken.reply.id.clone();
            if let Err(error) = turns.speak_and_send(speaker.as_ref(), spoken).await {
                tracing::warn!(reply = %id, %error, "a reply is not spoken");
            }
        });
    }

    /// Whether a reply is heard and not read: in a call, or as the voice message that answers one.
    pub(super) fn is_heard(&self, request: &TurnRequest, context: &TurnContext) -> bool {
        let is_answered_aloud = || {
            let voice = self.services.voice();
            voice.speaker.is_some() && is_voice_message(request) && self.is_spoken(request, context)
        };
        request.platform.is_heard(&request.message.chat) || is_answered_aloud()
    }

    /// Whether a reply gets a sound: by the setting of its chat, or else of the configuration. Fixed sentences are text alone.
    fn is_spoken(&self, request: &TurnRequest, context: &TurnContext) -> bool {
        let chat = &request.message.chat;
        let speaks = request.platform.voice_messages().is_some_and(|voice| voice.speaks_in(chat));
        let setting = context.chat.as_ref().and_then(|chat| chat.voice_replies);
        let is_wanted = match setting.unwrap_or(self.services.voice().replies) {
            VoiceReplies::Auto => is_voice_message(request),
            VoiceReplies::Always => true,
            VoiceReplies::Never => false,
        };
        speaks && is_wanted && request.missed.is_none()
    }

    async fn speak_and_send(&self, speaker: &dyn Speaker, mut spoken: SpokenReply) -> Result<(), Error> {
        let (platform, chat) = (spoken.platform.as_ref(), &spoken.reply.chat);
        spoken.manner = self.services.as_owner_allows(platform, chat, spoken.manner, &spoken.own).await;
        let note = tokio::select! {
            note = speaker.speak(&spoken.reply.text, &spoken.manner) => note,
            () = self.services.stopping.cancelled() => return Ok(()),
        };
        let note = match note {
            Ok(note) => note,
            Err(error) => {
                tracing::info!(reply = %spoken.reply.id, %error, "a reply is text alone");
                return Ok(());
            }
        };
        let platform = spoken.platform.as_ref();
        if !self.still_stands(&spoken).await? || !self.outbox.may_be_shown(platform, &spoken.permission()).await? {
            return Ok(());
        }
        match platform.voice_messages() {
            Some(voice) => Ok(VoiceMessages::speak(voice, &spoken.outbound, &note).await?),
            None => Ok(()),
        }
    }

    /// Whether the reply is delivered, and neither forgotten nor replaced.
    async fn still_stands(&self, spoken: &SpokenReply) -> Result<bool, Error> {
        let (read_scope, reply) = (spoken.read_scope.clone(), spoken.reply.clone());
        let stands = self.services.blocking(move |memory| {
            let Some(to) = &reply.answers else { return Ok(false) };
            let present = memory.messages().present_answer(&read_scope, to)?;
            Ok(present.is_some_and(|present| present.id == reply.id) && !memory.outbox().is_undelivered(&reply)?)
        });
        stands.await
    }
}

fn is_voice_message(request: &TurnRequest) -> bool {
    request.message.parts.iter().any(Part::is_voice_message)
}

impl SpokenReply {
    fn permission(&self) -> DeliverableReply<'_> {
        DeliverableReply {
            chat: &self.reply.chat,
            asker: Some(&self.asker),
            persona: &self.reply.persona,
            scope: &self.reply.scope,
            from: self.from,
            source_scopes: &self.source_scopes,
        }
    }
}
