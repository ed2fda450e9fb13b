//! Prepares the answer to what somebody is saying in a voice channel: runs the stages up to the prompt on the words so far,
//! and lets the model evaluate it. Nothing is stored or shown. The turn itself runs all stages again on what was said.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use azera_adapter::{ExpectedMessage, Platform};
use azera_memory::{InboxRow, MessageRow};
use azera_types::{Author, ChatId, MessageId, PlatformId};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::context::TurnRequest;
use super::generation::chat_request;
use crate::error::Error;
use crate::foreground_gate::ForegroundGuard;
use crate::recall::{Recall, Trace};
use crate::turn::Turns;

/// How long what somebody is saying is expected to lead to a turn. While they go on, further words renew it.
const EXPECTED_FOR: Duration = Duration::from_secs(10);

/// The rehearsals under way, at most one in a chat. Dropping a guard ends its rehearsal.
#[derive(Default)]
pub(crate) struct Rehearsals(Mutex<HashMap<ChatId, DropGuard>>);

impl Rehearsals {
    /// Begins a rehearsal, and ends the one before in the same chat.
    fn begin(&self, chat: &ChatId) -> CancellationToken {
        let token = CancellationToken::new();
        self.lock().insert(chat.clone(), token.clone().drop_guard());
        token
    }

    /// Ends the rehearsal in a chat.
    pub(super) fn end(&self, chat: &ChatId) {
        self.lock().remove(chat);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ChatId, DropGuard>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Holds background requests back until the turn begins, or until it is no longer expected. A request that begins while the
/// person speaks would delay the answer.
async fn hold_back(foreground: ForegroundGuard, ended: CancellationToken, stopping: CancellationToken) {
    tokio::select! {
        () = ended.cancelled() => {}
        () = stopping.cancelled() => {}
        () = tokio::time::sleep(EXPECTED_FOR) => {}
    }
    drop(foreground);
}

impl Turns {
    /// Prepares the answer to a message that is not said to its end, unless the chat is busy.
    pub(crate) async fn rehearse(&self, platform: &PlatformId, expected: ExpectedMessage) -> Result<(), Error> {
        if self.queues.is_busy(&expected.chat) {
            return Ok(());
        }
        // Entered before the rehearsal before it ends, so that no background request begins between the two.
        let foreground = self.services.foreground.enter();
        let ended = self.rehearsals.begin(&expected.chat);
        // A turn that began just before ended the rehearsal before this one.
        if self.queues.is_busy(&expected.chat) {
            self.rehearsals.end(&expected.chat);
            return Ok(());
        }
        let held = ended.child_token();
        tokio::spawn(hold_back(foreground, held.clone(), self.services.stopping.clone()));
        let adapter = self.services.platform(platform);
        let rehearsed = tokio::select! {
            biased;
            () = ended.cancelled() => Ok(true),
            () = self.services.stopping.cancelled() => Ok(true),
            rehearsed = async { self.evaluate_ahead(adapter?, expected).await } => rehearsed,
        };
        if !matches!(rehearsed, Ok(true)) {
            // No turn of the model comes of it.
            held.cancel();
        }
        rehearsed.map(drop)
    }

    /// Returns false if no turn of the model will come of it.
    async fn evaluate_ahead(&self, platform: Arc<dyn Platform>, expected: ExpectedMessage) -> Result<bool, Error> {
        let has_words = !expected.text.trim().is_empty();
        let Some(mut request) = self.expected_request(platform, expected).await? else { return Ok(false) };
        let Some(context) = self.load_context(&request).await? else { return Ok(false) };
        request.message.depth = context.recent.last().map_or(0, |row| row.depth + 1);
        let history = self.load_history(&request, &context).await?;
        let recall = match has_words {
            true => self.recall_for_turn(&request, &context, &history, Trace::None).await?,
            false => Recall::default(),
        };
        let judgement = self.judge.judge(&request.message, &context.recent, &recall, Trace::None).await;
        let style = self.minds.reply_style(&request, &context, &judgement).await?;
        if style.is_in_danger() {
            return Ok(false);
        }
        let composition = self.compose_prompt(&request, &context, history, recall, style)?;
        let asking = self.generation_request(&request, &context, &composition, 0);
        context.model.warm(chat_request(&composition.prompt, &asking, 0)).await?;
        Ok(true)
    }

    /// Returns the request for the turn that is expected; `None` if nobody spoke in the chat yet.
    async fn expected_request(
        &self,
        platform: Arc<dyn Platform>,
        expected: ExpectedMessage,
    ) -> Result<Option<TurnRequest>, Error> {
        let ExpectedMessage { chat, person, name, text } = expected;
        let Some(place) = self.services.place(platform.as_ref(), &chat, &person).await? else { return Ok(None) };
        let wanted = chat.clone();
        let known = self.services.blocking(move |memory| memory.chats().get(&wanted)).await?;
        let persona = known.map_or_else(|| self.services.config.persona.clone(), |chat| chat.persona);
        let Ok(id) = MessageId::new(format!("{chat}:expected")) else { return Ok(None) };
        let message = MessageRow {
            id: id.clone(),
            chat,
            // It comes behind everything that was said.
            seq: u64::MAX,
            parent: None,
            depth: 0,
            author: Author::Person { id: person.clone(), name },
            text,
            at: self.services.clock.now(),
            reply_to: None,
            answers: None,
            persona,
            scope: place.scope(),
            source_scopes: Vec::new(),
            memorable: false,
            edited_at: None,
            came_at: None,
            parts: Vec::new(),
            undone: false,
            ran: Vec::new(),
        };
        let platform_id = platform.id().clone();
        let inbox = InboxRow {
            message: id,
            platform: platform_id,
            person,
            mentions_bot: true,
            mentions: Vec::new(),
            panics: 0,
        };
        Ok(Some(TurnRequest::new(platform, message, inbox, false)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::foreground_gate::ForegroundGate;

    #[tokio::test(start_paused = true)]
    async fn background_requests_wait_while_somebody_speaks() {
        let (foreground, rehearsals, stopping) =
            (ForegroundGate::new(), Rehearsals::default(), CancellationToken::new());
        let chat = ChatId::new("sim:voice:1").unwrap();
        let begin = || tokio::spawn(hold_back(foreground.enter(), rehearsals.begin(&chat), stopping.clone()));
        let first = begin();
        assert!(!foreground.until_idle(EXPECTED_FOR / 2).await, "the words so far are evaluated, and more are coming");
        let second = begin();
        first.await.unwrap();
        assert!(!foreground.until_idle(EXPECTED_FOR / 2).await, "each word renews it");
        rehearsals.end(&chat);
        second.await.unwrap();
        assert!(foreground.until_idle(Duration::ZERO).await, "the turn counts by itself");
        begin();
        assert!(foreground.until_idle(2 * EXPECTED_FOR).await, "nothing came of it");
    }
}
