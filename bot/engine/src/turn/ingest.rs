//! Stage *ingest*: a message is in the record, flushed, before anything else happens; then it waits for its turn in its chat.

use std::collections::{HashMap, HashSet};
use std::future::ready;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard, PoisonError};

use azera_adapter::{ChatInfo, Edit, IgnoreReason, Outcome, Platform, Recorded, SkipReason};
use azera_memory::{Forget, InboxRow, MessageRow, NewChat, Received};
use azera_types::{Inbound, MessageId, PersonId, PlatformId, Text, composed};
use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::context::TurnRequest;
use super::deliver::Asked;
use super::hearing::until_heard;
use crate::error::Error;
use crate::queue::Ticket;
use crate::turn::Turns;

/// An event that is in the record.
pub(crate) struct Submitted {
    pub(crate) recorded: Recorded,
    /// Waits for the answer. The answer goes on if this is dropped.
    pub(crate) ending: BoxFuture<'static, Result<Outcome, Error>>,
}

impl Submitted {
    /// An event that needs no turn.
    fn ended(recorded: Recorded, reason: SkipReason) -> Self {
        Self { recorded, ending: ready(Ok(Outcome::Skipped(reason))).boxed() }
    }

    fn answered_by(recorded: Recorded, turn: JoinHandle<Result<Outcome, Error>>) -> Self {
        Self { recorded, ending: ended(turn).boxed() }
    }
}

/// Returns the end of a turn that runs in a task of its own.
async fn ended(turn: JoinHandle<Result<Outcome, Error>>) -> Result<Outcome, Error> {
    turn.await?
}

/// Marks a turn as in progress. Dropping it removes the mark, also on panic.
struct UnderWay<'a> {
    turns: &'a Turns,
    message: MessageId,
}

impl<'a> UnderWay<'a> {
    fn begin(turns: &'a Turns, message: MessageId) -> Self {
        turns.under_way().insert(message.clone());
        Self { turns, message }
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.turns.under_way().remove(&self.message);
    }
}

/// Whether a text has nothing but blank and invisible characters.
fn says_nothing(text: &str) -> bool {
    text.chars()
        .all(|c| c.is_whitespace() || c.is_control() || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2060}' | '\u{feff}'))
}

impl Turns {
    /// Takes up messages whose turns are open and not under way.
    pub(crate) async fn take_up(self: &Arc<Self>, which: impl Fn(&MessageRow) -> bool) -> Result<(), Error> {
        for (message, inbox) in self.services.blocking(|memory| memory.turns().all_open()).await? {
            if self.is_under_way(&message.id) || !which(&message) {
                continue;
            }
            let Ok(platform) = self.services.platform(&inbox.platform) else { continue };
            let ticket = self.queues.enter_anyway(&message.chat);
            tracing::info!(message = %message.id, chat = %message.chat, "taking up a message left over");
            self.spawn_turn(ticket, TurnRequest::new(platform, message, inbox, false));
        }
        Ok(())
    }

    /// Whether a message's turn is waiting or under way.
    pub(crate) fn is_under_way(&self, message: &MessageId) -> bool {
        self.under_way().contains(message)
    }

    fn under_way(&self) -> MutexGuard<'_, HashSet<MessageId>> {
        self.progress.under_way.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Messages that were changed while they were answered, as they are now.
    pub(crate) fn changed_amid(&self) -> MutexGuard<'_, HashMap<MessageId, MessageRow>> {
        self.progress.changed_amid.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn spawn_turn(self: &Arc<Self>, ticket: Ticket, request: TurnRequest) -> JoinHandle<Result<Outcome, Error>> {
        let turns = Arc::clone(self);
        // A task of its own: an adapter that loses interest must not leave a turn half done.
        self.services.tasks.spawn(async move { turns.turn_of(ticket, request).await })
    }

    async fn turn_of(self: &Arc<Self>, ticket: Ticket, request: TurnRequest) -> Result<Outcome, Error> {
        let id = request.message.id.clone();
        let answered = {
            let _under_way = UnderWay::begin(self, request.message.id.clone());
            self.turn_in_turn(ticket, request).await
        };
        match &answered {
            // What failed for a reason that may have passed is tried again as soon as something succeeds, or after a while.
            Ok(_) if self.progress.stranded.swap(false, Ordering::AcqRel) => {
                let turns = Arc::clone(self);
                self.services.tasks.spawn(async move { turns.retry_leftovers().await });
            }
            Err(error) if error.is_transient() => {
                self.progress.stranded.store(true, Ordering::Release);
                self.progress.retry_wanted.notify_one();
            }
            _ => {}
        }
        if !answered.as_ref().is_err_and(Error::is_transient) {
            self.files.release(&id);
        }
        answered
    }

    /// Runs the turn. A panic in it, also in its blocking work, is an error of this turn alone, counted in the record: a
    /// message that always panics is not tried again at every start.
    async fn without_panic(self: &Arc<Self>, request: TurnRequest) -> Result<Outcome, Error> {
        let message = request.message.id.clone();
        match AssertUnwindSafe(self.take_turn(request)).catch_unwind().await {
            Err(_) | Ok(Err(Error::Defect)) => {
                let tries = self.services.blocking(move |memory| memory.turns().note_panic(&message)).await?;
                Err(Error::Panicked { tries })
            }
            Ok(answered) => answered,
        }
    }

    async fn turn_in_turn(self: &Arc<Self>, ticket: Ticket, request: TurnRequest) -> Result<Outcome, Error> {
        ticket.turn().await;
        let message = request.message.id.clone();
        let answered = self.without_panic(request).await;
        self.services.measurements.note_outcome(&answered);
        self.changed_amid().remove(&message);
        if let Err(error) = &answered {
            tracing::error!(message = %message, %error, "a turn failed");
            if !error.is_transient() {
                // It would fail the same way every time: the message is remembered, and nobody is answered.
                let left = message.clone();
                self.services.blocking(move |memory| memory.turns().leave(&left)).await?;
            }
        }
        if !answered.as_ref().is_err_and(Error::is_transient) {
            self.progress.forget_failed(&message);
        }
        answered
    }

    /// Records a message, and then answers it in a task of its own.
    pub(crate) async fn receive(
        self: &Arc<Self>,
        platform: &PlatformId,
        mut inbound: Inbound,
    ) -> Result<Submitted, Error> {
        let text = until_heard(Text::new(&*inbound.text), inbound.parts.iter().map(|inbound| &inbound.part));
        (inbound.name, inbound.text) = (composed(&inbound.name).into_owned(), text);
        let adapter = self.services.platform(platform)?;
        let place = self.services.place(adapter.as_ref(), &inbound.chat, &inbound.person).await?;
        let Some(place) = place else {
            if inbound.mentions_bot {
                let asked = Asked { question: &inbound.id, chat: &inbound.chat, person: &inbound.person };
                self.help_without_turn(adapter.as_ref(), asked, &inbound.text).await;
            }
            return Err(Error::NotAllowed);
        };
        let ticket = self.queues.enter(&inbound.chat).ok_or(Error::QueueFull)?;
        self.ensure_chat(platform, ChatInfo { chat: inbound.chat.clone(), title: None, persona: None }).await?;
        let (turns, platform) = (Arc::clone(self), platform.clone());
        let (tell, recorded) = oneshot::channel();
        // From here on the message is ours: recording it and answering it are one task.
        let turn = self.services.tasks.spawn(async move {
            let (now, scope) = (turns.services.clock.now(), place.scope());
            let called = turns.access.called(&place, &inbound).await?;
            let received = {
                let (platform, inbound) = (platform.clone(), inbound.clone());
                turns
                    .services
                    .blocking(move |memory| memory.turns().receive_for(&platform, &inbound, scope, called, now))
                    .await?
            };
            let is_new = matches!(received, Received::New(_));
            if is_new {
                // Before anybody can delete the message.
                turns.files.hold(&inbound.id, None, std::mem::take(&mut inbound.parts));
            }
            // Nobody needs to listen.
            tell.send(is_new).ok();
            let Received::New(message) = received else {
                // A crash may have kept its files from being fetched.
                turns.files.keep(inbound.id, None, inbound.parts);
                return Ok(Outcome::Skipped(SkipReason::Duplicate));
            };
            let inbox = InboxRow {
                message: inbound.id,
                platform,
                person: inbound.person,
                mentions_bot: inbound.mentions_bot,
                mentions: inbound.mentions,
                panics: 0,
            };
            turns.turn_of(ticket, TurnRequest::new(adapter, *message, inbox, false)).await
        });
        match recorded.await {
            Ok(true) => Ok(Submitted::answered_by(Recorded::New, turn)),
            Ok(false) => Ok(Submitted::answered_by(Recorded::Known, turn)),
            // The task ended before the message was in the record.
            Err(_) => Err(ended(turn).await.err().unwrap_or(Error::Interrupted)),
        }
    }

    pub(crate) async fn ensure_chat(&self, platform: &PlatformId, info: ChatInfo) -> Result<(), Error> {
        let new = NewChat {
            id: info.chat,
            platform: platform.clone(),
            title: info.title,
            persona: info.persona.unwrap_or_else(|| self.services.config.persona.clone()),
        };
        let now = self.services.clock.now();
        self.services.blocking(move |memory| memory.chats().open(new, now)).await.map(drop)
    }

    /// Records an edit. If the message was answered, its reply is generated again in a task of its own.
    pub(crate) async fn edit(
        self: &Arc<Self>,
        platform: &PlatformId,
        id: &MessageId,
        edit: Edit,
    ) -> Result<Submitted, Error> {
        let unknown = || Submitted::ended(Recorded::Ignored(IgnoreReason::UnknownMessage), SkipReason::Empty);
        let Edit { text, parts, at } = edit;
        if says_nothing(&text) && parts.is_empty() {
            let is_gone = self.edited_to_nothing(id).await?;
            return Ok(if is_gone { Submitted::ended(Recorded::New, SkipReason::Empty) } else { unknown() });
        }
        let text = until_heard(Text::new(text.as_str()), parts.iter().map(|inbound| &inbound.part));
        let edited = {
            let (id, parts) = (id.clone(), parts.iter().map(|inbound| inbound.part.clone()).collect());
            self.services.blocking(move |memory| memory.turns().edit_with_parts(&id, text, parts, at)).await?
        };
        let Some(message) = edited else { return Ok(unknown()) };
        self.indexer.wake();
        self.surprise.exchanges.changed(&message.id);
        self.learning.withdraw_unfounded(Some(&message.id)).await;
        let Some(person) = message.author.person().cloned() else { return Ok(unknown()) };
        let adapter = self.services.platform(platform)?;
        self.files.hold(id, Some(at), parts);
        let open = {
            let id = id.clone();
            self.services.blocking(move |memory| memory.turns().open(&id)).await?.is_some()
        };
        if open {
            // Its turn has yet to come, and will find the new text; or it is being answered, and is answered again then.
            if self.under_way().contains(id) {
                self.changed_amid().insert(id.clone(), message);
            }
            return Ok(Submitted::ended(Recorded::New, SkipReason::Duplicate));
        }
        Ok(match self.answer_again(adapter, platform, message, person) {
            Ok(turn) => Submitted::answered_by(Recorded::New, turn),
            Err(error) => {
                // No turn will release them.
                self.files.release(id);
                Submitted { recorded: Recorded::New, ending: ready(Err(error)).boxed() }
            }
        })
    }

    /// Deletes a message whose author took every word back, with its memory and its answer. Returns false if there is no
    /// such message of a person.
    async fn edited_to_nothing(&self, id: &MessageId) -> Result<bool, Error> {
        let owner = {
            let id = id.clone();
            self.services.blocking(move |memory| memory.messages().owner(&id)).await?
        };
        if owner.is_none_or(|owner| owner.by_persona) {
            return Ok(false);
        }
        self.forgetting.forget(Forget::Message(id.clone()), true, None).await?;
        Ok(true)
    }

    /// Answers a message again that was changed while it was answered.
    pub(crate) fn answer_what_it_says_now(self: &Arc<Self>, request: &TurnRequest, message: MessageRow) {
        let (turns, adapter, person) = (Arc::clone(self), request.platform.clone(), request.inbox.person.clone());
        self.services.tasks.spawn(async move {
            let (platform, id) = (adapter.id().clone(), message.id.clone());
            let answered = match turns.answer_again(adapter, &platform, message, person) {
                Ok(turn) => ended(turn).await,
                Err(error) => Err(error),
            };
            if let Err(error) = answered {
                tracing::warn!(message = %id, %error, "a message that was changed amid its answer is not answered again");
            }
        });
    }

    /// Begins to generate the reply to a message again.
    pub(crate) fn answer_again(
        self: &Arc<Self>,
        adapter: Arc<dyn Platform>,
        platform: &PlatformId,
        message: MessageRow,
        person: PersonId,
    ) -> Result<JoinHandle<Result<Outcome, Error>>, Error> {
        let inbox = InboxRow {
            message: message.id.clone(),
            platform: platform.clone(),
            person,
            mentions_bot: true,
            mentions: Vec::new(),
            panics: 0,
        };
        let ticket = self.queues.enter(&message.chat).ok_or(Error::QueueFull)?;
        let request = TurnRequest::new(adapter, message, inbox, true);
        Ok(self.spawn_turn(ticket, request))
    }
}
