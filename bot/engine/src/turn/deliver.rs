//! Stage *deliver*: shows the committed reply, if everybody who would read it still may. Otherwise it is withdrawn.

use azera_adapter::{Platform, StreamEvent};
use azera_affect::{DangerLexicon, Help, Listener};
use azera_types::{ChatId, MessageId, PersonId};

use super::commit::Committed;
use super::compose::Composition;
use super::context::{TurnContext, TurnRequest};
use super::generate::{Draft, deliverable};
use crate::error::Error;
use crate::outbox::DELIVERY_ATTEMPTS;
use crate::turn::Turns;

/// A question, its chat, and who asked.
#[derive(Clone, Copy)]
pub(super) struct Asked<'a> {
    pub(super) question: &'a MessageId,
    pub(super) chat: &'a ChatId,
    pub(super) person: &'a PersonId,
}

impl TurnRequest {
    pub(super) fn asked(&self) -> Asked<'_> {
        Asked { question: &self.message.id, chat: &self.message.chat, person: &self.inbox.person }
    }
}

impl Turns {
    /// Sends help lines to a person whose reply is not made, because they left its chat or because somebody came who may
    /// not read it. The reply is lost all the same, so a failure is only logged.
    pub(super) async fn help_without_reply(&self, platform: &dyn Platform, asked: Asked<'_>, lines: &str) {
        let Some(voice) = platform.voice().filter(|_| !lines.is_empty()) else { return };
        if let Err(error) = voice.send_help(asked.question, asked.chat, asked.person, lines).await {
            tracing::error!(question = %asked.question, %error, "cannot send help lines");
        }
    }

    /// Sends help lines to a person who gets no turn, if their own words speak of danger.
    pub(super) async fn help_without_turn(&self, platform: &dyn Platform, asked: Asked<'_>, text: &str) {
        let found = DangerLexicon::builtin().find(text);
        let to = Listener { locale: self.services.config.locale.as_deref(), language: found.language };
        let help = match (found.self_harm, found.threat) {
            (true, _) => Help::Crisis,
            (false, true) => Help::Danger,
            (false, false) => return,
        };
        self.help_without_reply(platform, asked, &help.text(to)).await;
    }

    /// Delivers a committed reply; false if it had to be withdrawn. A reply that cannot be delivered now waits in the outbox.
    pub(super) async fn deliver_reply(
        &self,
        request: &TurnRequest,
        context: &TurnContext,
        composition: &Composition,
        draft: &Draft,
        committed: &Committed,
    ) -> Result<bool, Error> {
        let (platform, target) =
            (request.platform.as_ref(), self.stream_target(&draft.id, request, context, composition));
        let Committed { reply, outbox, state, .. } = committed;
        match self.outbox.may_be_shown(platform, &deliverable(request, composition)).await {
            Ok(true) => {
                target.event(StreamEvent::Done { state: state.clone() }).await;
                if let Err(error) = self.outbox.deliver(platform, reply, outbox, DELIVERY_ATTEMPTS).await {
                    tracing::warn!(reply = %reply.id, %error, "a reply waits in the outbox");
                }
            }
            Ok(false) => {
                // The turn may go on and answer with what everybody may read.
                target.event(StreamEvent::Withdrawn).await;
                self.outbox.withdraw(platform, reply, outbox).await?;
                return Ok(false);
            }
            Err(error) => tracing::warn!(reply = %reply.id, %error, "a reply waits in the outbox"),
        }
        Ok(true)
    }
}
