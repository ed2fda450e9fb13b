//! Stage *decide*: whether a message is answered, and what becomes of one that is not.

use std::collections::HashSet;

use azera_adapter::SkipReason;
use azera_memory::{Answering, Forget, RetentionPreference};
use azera_types::{Author, PartKind, PlaceKind};

use super::addressing::{Addressing, calls, decide};
use super::context::{TurnContext, TurnRequest};
use super::hearing::as_written;
use super::seeing::without_descriptions;
use crate::error::Error;
use crate::turn::Turns;

/// Authors of this many latest messages count as participants.
const PARTICIPANT_MESSAGES: usize = 20;

impl Turns {
    /// Returns why a message is not answered; `None` if it is.
    pub(super) async fn skip_reason(
        &self,
        request: &TurnRequest,
        context: &TurnContext,
    ) -> Result<Option<SkipReason>, Error> {
        if request.again {
            return Ok(None);
        }
        if request.is_unseen {
            return Ok(Some(SkipReason::Empty));
        }
        Ok(decide(&self.addressing(request, context).await?))
    }

    /// Returns true if a message is for the persona itself, whatever the chat's setting says.
    pub(super) async fn is_addressed(&self, request: &TurnRequest, context: &TurnContext) -> Result<bool, Error> {
        let addressing = self.addressing(request, context).await?;
        Ok(decide(&Addressing { answering: Answering::Addressed, ..addressing }).is_none())
    }

    async fn addressing(&self, request: &TurnRequest, context: &TurnContext) -> Result<Addressing, Error> {
        let message = &request.message;
        let names = context.persona.answers_to().chain(self.services.config.wake_names.iter().map(String::as_str));
        let text = as_written(&without_descriptions(&message.text));
        let others = other_participants(request, context);
        let own = context.chat.as_ref().and_then(|chat| chat.answering);
        Ok(Addressing {
            dm: matches!(context.place.kind, PlaceKind::Dm(_)),
            mentions_bot: request.inbox.mentions_bot,
            mentions_others: !request.inbox.mentions.is_empty(),
            replies_to_bot: self.replies_to_bot(request, context).await?,
            called: calls(&text, names),
            calls_another: calls(&text, others.iter().map(String::as_str)),
            empty: text.trim().is_empty() && !message.parts.iter().any(|part| part.kind == PartKind::Image),
            answering: self.services.config.answering_in(&context.place, own),
        })
    }

    /// Whether the message replies to a persona's message; `None` if it replies to none, or to one that cannot be read here.
    async fn replies_to_bot(&self, request: &TurnRequest, context: &TurnContext) -> Result<Option<bool>, Error> {
        let Some(target) = request.message.reply_to.clone() else { return Ok(None) };
        let read_scope = context.read_scope.clone();
        let target = self.services.blocking(move |memory| memory.messages().get(&read_scope, &target)).await?;
        Ok(target.map(|target| matches!(target.author, Author::Persona { .. })))
    }

    /// Ends the turn of a message that is not answered. Returns true if the message is remembered. A person can choose
    /// that Azera remembers only messages addressed to it.
    pub(super) async fn end_unanswered(&self, request: &TurnRequest) -> Result<bool, Error> {
        let (id, person) = (request.message.id.clone(), request.inbox.person.clone());
        if self.services.blocking(move |memory| memory.consent().retention(&person)).await?
            == RetentionPreference::Addressed
        {
            self.forgetting.forget(Forget::Message(id), true, None).await?;
            return Ok(false);
        }
        self.services.blocking(move |memory| memory.turns().leave(&id)).await?;
        Ok(true)
    }
}

/// The names of the others who took part lately, in lower case.
fn other_participants(request: &TurnRequest, context: &TurnContext) -> HashSet<String> {
    let own_name = request.message.author.name().to_lowercase();
    let lately = context.recent.iter().rev().take(PARTICIPANT_MESSAGES);
    let people = lately.filter(|row| row.author.person().is_some());
    people.map(|row| row.author.name().to_lowercase()).filter(|name| *name != own_name).collect()
}
