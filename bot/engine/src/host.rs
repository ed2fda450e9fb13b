//! What adapters may ask of the core.

use std::collections::{HashMap, HashSet};
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use async_trait::async_trait;
use azera_adapter::{
    AutocompleteOption, AutocompleteRequest, ChatInfo, CommandAnswer, CommandLine, Hit, Host, HostError, Outcome,
    Platform, SearchRequest, SkipReason,
};
use azera_memory::{Forget, NewChat, ReadScope, Received};
use azera_types::{ChatId, Inbound, MessageId, PersonId, PlatformId, RealmId, Text, Timestamp};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::engine::Engine;
use crate::error::Error;
use crate::queue::Ticket;
use crate::report::hit;
use crate::turn::TurnRequest;

/// Hits a probe may ask for.
const MAX_SEARCH_HITS: usize = 100;

impl From<Error> for HostError {
    fn from(error: Error) -> Self {
        match error {
            Error::NotAllowed => Self::NotAllowed,
            Error::QueueFull => Self::Busy,
            Error::Memory(azera_memory::Error::Full { .. }) => Self::Full,
            other => Self::Failed(other.to_string()),
        }
    }
}

/// A message that is being taken in.
struct Receiving {
    /// Whether it was new; nothing if it could not be recorded.
    recorded: oneshot::Receiver<bool>,
    turn: JoinHandle<Result<Outcome, Error>>,
}

impl Receiving {
    async fn recorded(self) -> Result<bool, Error> {
        match self.recorded.await {
            Ok(new) => Ok(new),
            Err(_) => self.turn.await.map_err(|_| Error::Interrupted)?.map(|_| false),
        }
    }

    async fn outcome(self) -> Result<Outcome, Error> {
        self.turn.await.map_err(|_| Error::Interrupted)?
    }
}

/// A turn that is waiting or under way, until this is dropped, which a panic does too.
struct UnderWay<'a> {
    core: &'a Engine,
    message: MessageId,
}

impl<'a> UnderWay<'a> {
    fn begin(core: &'a Engine, message: MessageId) -> Self {
        core.under_way().insert(message.clone());
        Self { core, message }
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.core.under_way().remove(&self.message);
    }
}

impl Engine {
    /// Takes up what an earlier run left over (replies not delivered, messages not answered) and begins the background
    /// work. Platforms must be attached.
    pub async fn start(&self) -> Result<(), Error> {
        self.wake().await?;
        self.withdraw_unfounded(None).await;
        self.0.tasks.spawn(self.clone().keep_indexed());
        self.0.tasks.spawn(self.clone().keep_delivering());
        self.hear_again().await?;
        self.start_jobs();
        self.deliver_outbox().await?;
        self.take_up(|_| true).await?;
        self.0.index_wanted.notify_one();
        Ok(())
    }

    /// Takes up messages whose turns are open and not under way.
    pub(crate) async fn take_up(&self, which: impl Fn(&azera_memory::MessageRow) -> bool) -> Result<(), Error> {
        for (message, inbox) in self.blocking(azera_memory::Memory::open_turns).await? {
            if self.is_under_way(&message.id) || !which(&message) {
                continue;
            }
            let Ok(platform) = self.platform(&inbox.platform) else { continue };
            let ticket = self.0.queues.enter_anyway(&message.chat);
            tracing::info!(message = %message.id, chat = %message.chat, "taking up a message left over");
            self.spawn_turn(ticket, TurnRequest::new(platform, message, inbox, false));
        }
        Ok(())
    }

    /// Whether a message's turn is waiting or under way.
    pub(crate) fn is_under_way(&self, message: &MessageId) -> bool {
        self.under_way().contains(message)
    }

    fn under_way(&self) -> std::sync::MutexGuard<'_, HashSet<MessageId>> {
        self.0.under_way.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Messages that were changed while they were answered, as they are now.
    pub(crate) fn changed_amid(&self) -> std::sync::MutexGuard<'_, HashMap<MessageId, azera_memory::MessageRow>> {
        self.0.changed_amid.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stops: turns under way are finished, the background work ends, and what was forgotten leaves the disk.
    pub async fn stop(&self) {
        self.0.stopping.cancel();
        self.0.tasks.close();
        self.0.tasks.wait().await;
        self.deliver_leftovers().await;
        if let Err(error) = self.scrub().await {
            tracing::warn!(%error, "forgotten bytes will be overwritten at the next start");
        }
        self.finish_jobs().await;
    }

    fn spawn_turn(&self, ticket: Ticket, request: TurnRequest) -> JoinHandle<Result<Outcome, Error>> {
        let core = self.clone();
        // A task of its own: an adapter that loses interest must not leave a turn half done.
        self.0.tasks.spawn(async move { core.turn_of(ticket, request).await })
    }

    async fn turn_of(&self, ticket: Ticket, request: TurnRequest) -> Result<Outcome, Error> {
        let answered = {
            let _under_way = UnderWay::begin(self, request.message.id.clone());
            self.turn_in_turn(ticket, request).await
        };
        match &answered {
            // What failed for a reason that may have passed is tried again as soon as something succeeds, or after a while.
            Ok(_) if self.0.stranded.swap(false, Ordering::AcqRel) => {
                let core = self.clone();
                self.0.tasks.spawn(async move { core.retry_leftovers().await });
            }
            Err(error) if error.is_transient() => {
                self.0.stranded.store(true, Ordering::Release);
                self.0.retry_wanted.notify_one();
            }
            _ => {}
        }
        answered
    }

    async fn turn_in_turn(&self, ticket: Ticket, request: TurnRequest) -> Result<Outcome, Error> {
        ticket.turn().await;
        let message = request.message.id.clone();
        let answered = self.take_turn(request).await;
        self.changed_amid().remove(&message);
        if let Err(error) = &answered {
            tracing::error!(message = %message, %error, "a turn failed");
            if !error.is_transient() {
                // It would fail the same way every time.
                self.blocking(move |memory| memory.leave(&message)).await?;
            }
        }
        answered
    }

    /// Takes in a message. What is told first is whether it was new, once it is in the record; then what became of it.
    async fn receive(&self, platform: &PlatformId, inbound: Inbound) -> Result<Receiving, Error> {
        let adapter = self.platform(platform)?;
        let place = self.place(adapter.as_ref(), &inbound.chat, &inbound.person).await?;
        let place = place.ok_or(Error::NotAllowed)?;
        let ticket = self.0.queues.enter(&inbound.chat).ok_or(Error::QueueFull)?;
        self.ensure_chat(platform, ChatInfo { chat: inbound.chat.clone(), title: None, persona: None }).await?;
        let (core, platform) = (self.clone(), platform.clone());
        let (tell, recorded) = oneshot::channel();
        // From here on the message is ours: recording it and answering it are one task.
        let turn = self.0.tasks.spawn(async move {
            let (now, scope) = (core.0.clock.now(), place.scope());
            let called = core.called(&place, &inbound).await?;
            let received = {
                let (platform, inbound) = (platform.clone(), inbound.clone());
                core.blocking(move |memory| memory.receive_for(&platform, &inbound, scope, called, now)).await?
            };
            // Nobody needs to listen.
            tell.send(matches!(received, Received::New(_))).ok();
            let Received::New(message) = received else { return Ok(Outcome::Skipped(SkipReason::Duplicate)) };
            let inbox = azera_memory::InboxRow {
                message: inbound.id,
                platform,
                person: inbound.person,
                mentions_bot: inbound.mentions_bot,
                mentions: inbound.mentions,
            };
            core.turn_of(ticket, TurnRequest::new(adapter, *message, inbox, false)).await
        });
        Ok(Receiving { recorded, turn })
    }

    async fn ensure_chat(&self, platform: &PlatformId, info: ChatInfo) -> Result<(), Error> {
        let new = NewChat {
            id: info.chat,
            platform: platform.clone(),
            title: info.title,
            persona: info.persona.unwrap_or_else(|| self.0.config.persona.clone()),
        };
        let now = self.0.clock.now();
        self.blocking(move |memory| memory.open_chat(new, now)).await.map(drop)
    }

    async fn edit(
        &self,
        platform: &PlatformId,
        id: &MessageId,
        text: Text,
        at: Timestamp,
    ) -> Result<Option<Outcome>, Error> {
        let edited = {
            let id = id.clone();
            self.blocking(move |memory| memory.edit(&id, text, at)).await?
        };
        let Some(message) = edited else { return Ok(None) };
        self.0.index_wanted.notify_one();
        self.0.exchanges.changed(&message.id);
        self.withdraw_unfounded(Some(&message.id)).await;
        let Some(person) = message.author.person().cloned() else { return Ok(None) };
        let adapter = self.platform(platform)?;
        let open = {
            let id = id.clone();
            self.blocking(move |memory| memory.open_turn(&id)).await?.is_some()
        };
        if open {
            // Its turn has yet to come, and will find the new text; or it is being answered, and is answered again then.
            if self.under_way().contains(id) {
                self.changed_amid().insert(id.clone(), message);
            }
            return Ok(Some(Outcome::Skipped(SkipReason::Duplicate)));
        }
        self.answer_again(adapter, platform, message, person).await.map(Some)
    }

    /// Answers a message again that was changed while it was answered.
    pub(crate) fn answer_what_it_says_now(&self, request: &TurnRequest, message: azera_memory::MessageRow) {
        let (core, adapter, person) = (self.clone(), request.platform.clone(), request.inbox.person.clone());
        self.0.tasks.spawn(async move {
            let (platform, id) = (adapter.id().clone(), message.id.clone());
            if let Err(error) = core.answer_again(adapter, &platform, message, person).await {
                tracing::warn!(message = %id, %error, "a message that was changed amid its answer is not answered again");
            }
        });
    }

    /// Makes the answer to a message anew, in the place of the one that stands; silent if there is none.
    pub(crate) async fn answer_again(
        &self,
        adapter: std::sync::Arc<dyn Platform>,
        platform: &PlatformId,
        message: azera_memory::MessageRow,
        person: PersonId,
    ) -> Result<Outcome, Error> {
        let inbox = azera_memory::InboxRow {
            message: message.id.clone(),
            platform: platform.clone(),
            person,
            mentions_bot: true,
            mentions: Vec::new(),
        };
        let ticket = self.0.queues.enter(&message.chat).ok_or(Error::QueueFull)?;
        let request = TurnRequest::new(adapter, message, inbox, true);
        self.spawn_turn(ticket, request).await.map_err(|_| Error::Interrupted)?
    }

    async fn look(&self, platform: &PlatformId, line: SearchRequest) -> Result<Vec<Hit>, Error> {
        let adapter = self.platform(platform)?;
        let Some(place) = self.place(adapter.as_ref(), &line.chat, &line.person).await? else {
            return Ok(Vec::new());
        };
        let chat = {
            let chat = line.chat.clone();
            self.blocking(move |memory| memory.chat(&chat)).await?
        };
        let persona = chat.map_or_else(|| self.0.config.persona.clone(), |chat| chat.persona);
        let name = self.persona(place.shared_realm(), &persona).await?.persona.name;
        let read_scope = self.read_scope(adapter.as_ref(), &place, &persona).await?;
        let results = line.limit.unwrap_or(self.default_results()).min(MAX_SEARCH_HITS);
        let recall = self.recall(&read_scope, &line.query, &line.person, &name, Default::default(), results).await?;
        Ok(recall.hits.iter().map(hit).collect())
    }

    /// Recalled lines a prompt of the present model holds.
    pub(crate) fn default_results(&self) -> usize {
        let form = azera_prompt::form_for(&self.model().info().family);
        self.0.config.recalled.unwrap_or(form.recalled_lines)
    }

    /// Forgets, drops what the model still holds of it, and takes back replies that went with it. With a right, the
    /// receipt is one to be shown under it.
    pub(crate) async fn forget(
        &self,
        what: Forget,
        quotes: bool,
        seen: Option<ReadScope>,
    ) -> Result<azera_memory::ForgetReceipt, Error> {
        if let Forget::Person(person) = &what {
            self.0.links.forget(person);
        }
        let minds_go = matches!(what, Forget::Person(_) | Forget::Chat(_) | Forget::Realm(..));
        let receipt = self
            .blocking(move |memory| match &seen {
                Some(read_scope) => memory.forget_as_seen(read_scope, &what, quotes),
                None => memory.forget(&what, quotes),
            })
            .await;
        if receipt.is_err() {
            // It goes page by page, and some may be done.
            self.withdraw_unfounded(None).await;
        }
        let receipt = receipt?;
        if minds_go {
            self.wake().await?;
        }
        self.carry_out(&receipt).await?;
        Ok(receipt)
    }

    /// Does outside the record what a forgetting asks for: evaluated tokens go, and replies are taken back.
    pub(crate) async fn carry_out(&self, receipt: &azera_memory::ForgetReceipt) -> Result<(), Error> {
        self.0.index_wanted.notify_one();
        if let Err(error) = self.let_go_of_exchanges().await {
            tracing::warn!(%error, "how surprising something was is not known");
        }
        self.withdraw_unfounded(None).await;
        let model = self.model();
        for (chat, persona) in &receipt.touched {
            if let Err(error) = model.forget_session(&Self::session(chat, persona)).await {
                tracing::error!(%chat, %error, "evaluated tokens could not be dropped");
            }
        }
        for (chat, reply, at) in &receipt.retract {
            let row = {
                let chat = chat.clone();
                self.blocking(move |memory| memory.chat(&chat)).await?
            };
            let Some(platform) = row.and_then(|row| self.platform(&row.platform).ok()) else { continue };
            if let Err(error) = platform.retract(chat, reply, *at).await {
                tracing::warn!(%reply, %error, "a forgotten reply could not be taken back");
            }
        }
        Ok(())
    }
}

#[async_trait]
impl Host for Engine {
    async fn open_chat(&self, platform: &PlatformId, info: ChatInfo) -> Result<(), HostError> {
        let chat = info.chat.clone();
        self.ensure_chat(platform, info).await?;
        // What could not be answered while its chat was unknown can be now.
        Ok(self.take_up(|message| message.chat == chat).await?)
    }

    async fn message(&self, platform: &PlatformId, inbound: Inbound) -> Result<Outcome, HostError> {
        Ok(self.receive(platform, inbound).await?.outcome().await?)
    }

    async fn take_in(&self, platform: &PlatformId, inbound: Inbound) -> Result<bool, HostError> {
        Ok(self.receive(platform, inbound).await?.recorded().await?)
    }

    async fn edited(
        &self,
        platform: &PlatformId,
        id: &MessageId,
        text: Text,
        at: Timestamp,
    ) -> Result<Option<Outcome>, HostError> {
        Ok(self.edit(platform, id, text, at).await?)
    }

    async fn deleted(&self, _platform: &PlatformId, id: &MessageId) -> Result<(), HostError> {
        self.forget(Forget::Message(id.clone()), true, None).await?;
        Ok(())
    }

    async fn attached(
        &self,
        _platform: &PlatformId,
        message: &MessageId,
        version: Option<Timestamp>,
        pieces: Vec<Text>,
    ) -> Result<(), HostError> {
        let message = message.clone();
        if self.blocking(move |memory| memory.store_chunks(&message, version, pieces)).await? > 0 {
            self.0.index_wanted.notify_one();
        }
        Ok(())
    }

    async fn left(&self, platform: &PlatformId, realm: &RealmId, chats: Vec<ChatId>) -> Result<(), HostError> {
        let platform = platform.clone();
        let own = self
            .blocking(move |memory| {
                let known: HashSet<ChatId> = memory.chats(&platform)?.into_iter().map(|chat| chat.id).collect();
                Ok(chats.into_iter().filter(|chat| known.contains(chat)).collect())
            })
            .await?;
        self.forget(Forget::Realm(realm.clone(), own), true, None).await?;
        Ok(())
    }

    async fn command(&self, platform: &PlatformId, line: CommandLine) -> Result<CommandAnswer, HostError> {
        Ok(self.run_command(platform, line).await?)
    }

    async fn autocomplete(
        &self,
        platform: &PlatformId,
        line: AutocompleteRequest,
    ) -> Result<Vec<AutocompleteOption>, HostError> {
        Ok(self.autocomplete_options(platform, line).await?)
    }

    async fn search(&self, platform: &PlatformId, line: SearchRequest) -> Result<Vec<Hit>, HostError> {
        Ok(self.look(platform, line).await?)
    }

    async fn settle(&self) -> Result<(), HostError> {
        self.0.classifiers.settled().await;
        self.0.queues.idle().await;
        self.deliver_outbox().await?;
        // A reply that was withdrawn is made anew.
        self.0.queues.idle().await;
        self.index_all().await?;
        self.scrub().await?;
        self.run_jobs().await;
        // What they wrote is found from now on, too.
        self.index_all().await?;
        Ok(())
    }
}
