//! The worker of a room: passes its events to the engine in order, each once.

mod reactions;

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use azera_adapter::{ChatInfo, Edit, Host, HostError, InboundEvent, Recorded};
use azera_types::{ChatId, Inbound, InboundPart, MessageId, PersonId};
use matrix_sdk::deserialized_responses::TimelineEvent;
use matrix_sdk::room::MessagesOptions;
use matrix_sdk::ruma::api::client::receipt::create_receipt::v3::ReceiptType;
use matrix_sdk::ruma::events::receipt::ReceiptThread;
use matrix_sdk::ruma::{OwnedEventId, uint};
use matrix_sdk::{Room, RoomState};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::commands::{Names, line_in};
use crate::content::transaction;
use crate::events::{RoomEvent, Said, heard, is_beginning, said_at};
use crate::ids::{message_id, person_id};
use crate::media::part;
use crate::rate_limit::RateDecision;
use crate::rooms::Work;
use crate::slow_commands::is_slow;
use crate::{Error, Matrix};

/// Most events that a worker pages back to find the last handled one.
const MAX_MISSED: usize = 5_000;

/// Handled events that are remembered, because the sync and paging back may both return them.
const MAX_RECENT: usize = 1_000;

/// Attempts to submit a message that fails in the engine. After that, it is left to the engine's own record.
const ATTEMPTS: usize = 6;

/// Attempts to submit a message while a model, a platform or a store does not work. With the longest wait between them,
/// this takes about an hour.
const ATTEMPTS_WHILE_UNAVAILABLE: usize = 120;

/// First wait before another attempt; it doubles each time.
const FIRST_WAIT: Duration = Duration::from_millis(200);

/// Longest wait.
const LAST_WAIT: Duration = Duration::from_secs(30);

/// The worker of a room.
pub(crate) struct Worker {
    matrix: Arc<Matrix>,
    host: Arc<dyn Host>,
    room: Room,
    stop: CancellationToken,
    /// The last handled events.
    recent: VecDeque<OwnedEventId>,
    /// Chats of the room that the engine knows.
    opened: HashSet<ChatId>,
    /// Events up to this time may or may not have been handled, in milliseconds since 1970.
    lost_until: Option<i64>,
    /// True if the room was upgraded; messages in it are ignored.
    over: bool,
}

/// The worker must stop; unhandled events are handled after the next start.
struct Stopped;

impl Worker {
    pub(crate) fn new(matrix: Arc<Matrix>, host: Arc<dyn Host>, room: Room, stop: CancellationToken) -> Self {
        let (recent, opened) = (VecDeque::new(), HashSet::new());
        Self { matrix, host, room, stop, recent, opened, lost_until: None, over: false }
    }

    /// Works until it must stop.
    pub(crate) async fn work(mut self, mut receiver: mpsc::Receiver<Work>) {
        while let Some(work) = tokio::select! {
            work = receiver.recv() => work,
            () = self.stop.cancelled() => None,
        } {
            let done = match work {
                Work::Events(events) => self.news(events).await,
                Work::CatchUp => self.catch_up().await,
                Work::Retry => self.retry_late().await,
            };
            if done.is_err() {
                return;
            }
        }
    }

    async fn news(&mut self, events: Vec<TimelineEvent>) -> Result<(), Stopped> {
        let late = events.iter().any(|event| event.kind.is_utd());
        self.events(events, true).await?;
        // The keys may have arrived before the event was stored as undecryptable.
        if late { self.retry_late().await } else { Ok(()) }
    }

    /// Handles everything since the last handled event.
    async fn catch_up(&mut self) -> Result<(), Stopped> {
        self.log(self.matrix.succession.learn(&self.room).await);
        match self.matrix.sync_state.lost(self.room.room_id()).await {
            Ok(lost) => self.lost_until = lost,
            Err(error) => self.log(Err(error)),
        }
        let mut wait = FIRST_WAIT;
        // If the bot just joined, nothing was missed: all of it counts as new.
        let (missed, fresh) = loop {
            match self.missed().await {
                Ok(missed) => break missed,
                Err(error) if error.is_transient() => {
                    tracing::warn!(room = %self.room.room_id(), %error, "cannot read missed events; trying again");
                    self.pause(&mut wait).await?;
                }
                Err(error) => {
                    tracing::warn!(room = %self.room.room_id(), %error, "cannot read missed events");
                    return Ok(());
                }
            }
        };
        let ends = |event: &TimelineEvent| matches!(heard(event, self.room.room_id()), Some(RoomEvent::Upgraded(_)));
        self.over = self.room.successor_room().is_some() && !missed.iter().any(ends);
        self.events(missed, fresh).await?;
        self.retry_late().await
    }

    /// Returns the missed events, and whether nothing was handled in this room before.
    async fn missed(&self) -> Result<(Vec<TimelineEvent>, bool), Error> {
        let handled = self.matrix.sync_state.handled(self.room.room_id()).await?;
        if handled.is_none() {
            self.record_members().await?;
        }
        let mut missed = Vec::new();
        let mut from = None;
        'paging: loop {
            let mut options = MessagesOptions::backward().from(from.as_deref());
            options.limit = uint!(100);
            let page = self.room.messages(options).await?;
            for event in page.chunk {
                let id = event.event_id();
                if id.is_some() && id == handled || id.is_some_and(|id| self.recent.contains(&id)) {
                    break 'paging;
                }
                if handled.is_none() && is_beginning(&event, &self.matrix.own) {
                    break 'paging;
                }
                missed.push(event);
            }
            from = page.end;
            if from.is_none() {
                break;
            }
            if missed.len() >= MAX_MISSED {
                tracing::warn!(room = %self.room.room_id(), "too many missed events; ignoring older ones");
                break;
            }
        }
        missed.reverse();
        Ok((missed, handled.is_none() && self.lost_until.is_none()))
    }

    /// Records when the present members joined. Before the bot came they may have joined several times, and changed
    /// their names since.
    async fn record_members(&self) -> Result<(), Error> {
        let (people, _) = self.matrix.audience.people(&self.room).await?;
        for user in people {
            self.matrix.audience.note_came(&self.room, &user).await?;
        }
        Ok(())
    }

    async fn events(&mut self, events: Vec<TimelineEvent>, is_live: bool) -> Result<(), Stopped> {
        for event in events {
            let Some(id) = event.event_id() else { continue };
            if self.recent.contains(&id) {
                continue;
            }
            if self.stop.is_cancelled() {
                return Err(Stopped);
            }
            self.event(&event, &id, is_live).await?;
            if let Err(error) = self.matrix.sync_state.set_handled(self.room.room_id(), &id).await {
                // After a start it is handled again, and recognised as known.
                tracing::warn!(room = %self.room.room_id(), %error, "cannot store the last handled event of a room");
            }
            self.recent.push_back(id);
            if self.recent.len() > MAX_RECENT {
                self.recent.pop_front();
            }
        }
        Ok(())
    }

    async fn event(&mut self, event: &TimelineEvent, id: &OwnedEventId, is_live: bool) -> Result<(), Stopped> {
        let Some(heard) = heard(event, self.room.room_id()) else { return Ok(()) };
        let own = event.sender().is_some_and(|sender| sender == self.matrix.own);
        let lost = self.lost_until.is_some_and(|until| said_at(event) <= until);
        match heard {
            RoomEvent::Changed { .. } | RoomEvent::Reacted { .. } if lost => {}
            RoomEvent::Came { user, at } => {
                self.log(self.matrix.sync_state.set_came(self.room.room_id(), &user, at).await)
            }
            _ if own => {}
            RoomEvent::Undecryptable => match self.matrix.sync_state.add_late(self.room.room_id(), id).await {
                Ok(late) => {
                    tracing::warn!(room = %self.room.room_id(), event = %id, "cannot decrypt a message yet");
                    self.matrix.vitals.note_late(self.room.room_id(), late);
                }
                Err(error) => self.log(Err(error)),
            },
            RoomEvent::Upgraded(to) => {
                let via = event.sender().map(|sender| sender.server_name().to_owned()).into_iter().collect::<Vec<_>>();
                let joined = self.matrix.client.join_room_by_id_or_alias((&*to).into(), &via).await;
                match joined {
                    Ok(new) => self.log(self.matrix.succession.learn(&new).await),
                    // An invitation may follow.
                    Err(error) => self.log(Err(Error::Sdk(error))),
                }
                self.over = true;
            }
            RoomEvent::Said(said) => self.said(*said, is_live, lost).await?,
            RoomEvent::Changed { target, now } => self.once(id, self.changed(&target, *now)).await,
            RoomEvent::Redacted(target) => self.redacted(&target).await,
            RoomEvent::Reacted { target, key, by } => self.once(id, self.reacted(id, &target, &key, by)).await,
        }
        Ok(())
    }

    /// Runs an action that must not be repeated: it is recorded before it starts.
    async fn once(&self, id: &OwnedEventId, act: impl Future<Output = Result<(), Error>>) {
        match self.matrix.sync_state.is_done(id).await {
            Ok(true) => {}
            Ok(false) => {
                self.log(self.matrix.sync_state.set_done(id).await);
                self.log(act.await);
            }
            Err(error) => self.log(Err(error)),
        }
    }

    async fn said(&mut self, said: Said, is_live: bool, lost: bool) -> Result<(), Stopped> {
        self.matrix.authors.note(&said.event, &said.by);
        if self.over {
            return Ok(());
        }
        let direct = self.matrix.audience.is_direct(&self.room).await.unwrap_or(false);
        let names = Names { own: &self.matrix.own, display: self.matrix.replies.own_name() };
        let room = self.room.room_id().to_owned();
        if is_live {
            match self.matrix.rate_limiter.heed(&said.by, &room) {
                RateDecision::Yes => {}
                RateDecision::Tell => {
                    self.log(self.too_much(&said).await);
                    return Ok(());
                }
                RateDecision::No => return Ok(()),
            }
        } else {
            self.matrix.rate_limiter.missed(&said.by, &room);
        }
        let prefix = self.matrix.prefix_in(&self.room).await;
        if let Some(line) = line_in(said.spoken(), &prefix, &names, direct, self.matrix.settings.commands) {
            if lost {
                return Ok(());
            }
            let act = async {
                let about = self.replied_message(&said).await?;
                if is_slow(&line) {
                    self.matrix.clone().run_beside(self.host.clone(), said.clone(), line, about);
                    return Ok(());
                }
                self.matrix.run_command(self.host.as_ref(), &said, line, about).await
            };
            self.once(&said.event, act).await;
            return Ok(());
        }
        let inbound = match self.inbound(&said, &names).await {
            Ok(inbound) => inbound,
            Err(error) => {
                self.log(Err(error));
                return Ok(());
            }
        };
        let (chat, likely) = (inbound.chat.clone(), direct || inbound.mentions_bot);
        let new = self.hand_in(inbound).await?;
        if new {
            if likely {
                self.matrix.replies.begin_typing(&chat);
            }
            self.send_receipt(&said);
        }
        Ok(())
    }

    /// Returns the message that a command replies to.
    async fn replied_message(&self, said: &Said) -> Result<Option<MessageId>, Error> {
        let Some(target) = &said.reply_to else { return Ok(None) };
        Ok(Some(match self.matrix.sync_state.reply_in(target).await? {
            Some(reply) => reply,
            None => message_id(target)?,
        }))
    }

    async fn inbound(&self, said: &Said, names: &Names<'_>) -> Result<Inbound, Error> {
        let own = &self.matrix.own;
        let reply_to = self.replied_message(said).await?;
        let mentions: Result<Vec<PersonId>, _> =
            said.mentions.iter().filter(|user| *user != own).map(|user| person_id(user)).collect();
        Ok(Inbound {
            id: message_id(&said.event)?,
            chat: self.matrix.succession.chat(self.room.room_id(), said.thread.as_deref())?,
            person: person_id(&said.by)?,
            name: self.matrix.name_in(said).await,
            text: said.text.clone(),
            at: said.at,
            parts: self.parts(said),
            mentions_bot: said.mentions.contains(own) || names.are_in(said.spoken()),
            mentions: mentions?,
            reply_to,
        })
    }

    /// Returns the file of a message.
    fn parts(&self, said: &Said) -> Vec<InboundPart> {
        said.file.iter().map(|file| part(&self.matrix.client, file)).collect()
    }

    /// Submits a message until the engine has it; returns true if it was new.
    async fn hand_in(&mut self, inbound: Inbound) -> Result<bool, Stopped> {
        let mut wait = FIRST_WAIT;
        let mut failures = 0;
        loop {
            match self.try_hand_in(&inbound).await {
                Ok(new) => return Ok(new),
                Err(HostError::NotAllowed) => return Ok(false),
                Err(HostError::Stopping) => return Err(Stopped),
                Err(error) if attempts(&error).is_some_and(|most| failures >= most) => {
                    tracing::error!(message = %inbound.id, %error, "cannot submit a message");
                    return Ok(false);
                }
                Err(error) => {
                    failures += usize::from(attempts(&error).is_some());
                    tracing::debug!(message = %inbound.id, %error, "cannot submit a message now; trying again");
                    self.pause(&mut wait).await?;
                }
            }
        }
    }

    async fn try_hand_in(&mut self, inbound: &Inbound) -> Result<bool, HostError> {
        self.note_first(inbound).await.map_err(|error| HostError::Storage(error.into()))?;
        if !self.opened.contains(&inbound.chat) {
            let info = ChatInfo { chat: inbound.chat.clone(), title: self.room.name(), persona: None };
            self.host.submit(&self.matrix.id, InboundEvent::Chat(info)).await?;
            self.opened.insert(inbound.chat.clone());
        }
        let receipt = self.host.submit(&self.matrix.id, InboundEvent::Message(inbound.clone())).await?;
        Ok(receipt.recorded() == Recorded::New)
    }

    /// Records the first message of a room that may be an upgrade, because later members cannot read all of it.
    async fn note_first(&self, inbound: &Inbound) -> Result<(), Error> {
        let room = self.room.room_id();
        if self.room.predecessor_room().is_some() && self.matrix.sync_state.first(room).await?.is_none() {
            self.matrix.sync_state.set_first(room, inbound.at.as_millisecond()).await?;
        }
        Ok(())
    }

    /// Handles an edit; only the author can edit a message.
    async fn changed(&self, target: &OwnedEventId, now: Said) -> Result<(), Error> {
        let author = match self.matrix.authors.of(target) {
            Some(author) => Some(author),
            None => self.room.event(target, None).await?.sender(),
        };
        if author.as_ref() != Some(&now.by) {
            return Ok(());
        }
        let edit = Edit { parts: self.parts(&now), text: now.text, at: now.at };
        let event = InboundEvent::Edit { message: message_id(target)?, edit };
        self.host.submit(&self.matrix.id, event).await?.outcome().await?;
        Ok(())
    }

    /// Tries again to decrypt events.
    async fn retry_late(&mut self) -> Result<(), Stopped> {
        let late = match self.matrix.sync_state.late(self.room.room_id()).await {
            Ok(late) if !late.is_empty() => late,
            Ok(_) => {
                self.matrix.vitals.note_late(self.room.room_id(), 0);
                return Ok(());
            }
            Err(error) => {
                self.log(Err(error));
                return Ok(());
            }
        };
        let mut left = Vec::new();
        for id in &late {
            let event = match self.room.event(id, None).await {
                Ok(event) => event,
                Err(error) => {
                    let error = Error::Sdk(error);
                    // The homeserver no longer returns the event, so it can never be read.
                    if error.is_transient() {
                        left.push(id.clone());
                    }
                    continue;
                }
            };
            match heard(&event, self.room.room_id()) {
                Some(RoomEvent::Undecryptable) => left.push(id.clone()),
                _ => self.event(&event, id, false).await?,
            }
        }
        if left != late {
            self.log(self.matrix.sync_state.set_late(self.room.room_id(), &left).await);
        }
        self.matrix.vitals.note_late(self.room.room_id(), left.len());
        self.matrix.tell_health().await;
        Ok(())
    }

    async fn too_much(&self, said: &Said) -> Result<(), Error> {
        let (chat, about) =
            (self.matrix.succession.chat(self.room.room_id(), said.thread.as_deref())?, message_id(&said.event)?);
        let text = "That is more than I can follow. Give me a minute, then say it again.";
        self.matrix.replies.notice(&chat, Some(&about), text, &transaction("too-much", &about, 0)).await
    }

    fn send_receipt(&self, said: &Said) {
        let (room, event) = (self.room.clone(), said.event.clone());
        tokio::spawn(async move {
            if let Err(error) = room.send_single_receipt(ReceiptType::Read, ReceiptThread::Unthreaded, event).await {
                tracing::debug!(room = %room.room_id(), %error, "cannot send a read receipt");
            }
        });
    }

    async fn pause(&self, wait: &mut Duration) -> Result<(), Stopped> {
        tokio::select! {
            () = tokio::time::sleep(*wait) => {}
            () = self.stop.cancelled() => return Err(Stopped),
        }
        *wait = (*wait * 2).min(LAST_WAIT);
        if self.room.state() == RoomState::Joined { Ok(()) } else { Err(Stopped) }
    }

    fn log(&self, done: Result<(), Error>) {
        if let Err(error) = done {
            tracing::warn!(room = %self.room.room_id(), %error, "cannot handle an event of a room");
        }
    }
}

/// Returns how often a message is submitted again after this error; `None` means until it succeeds.
fn attempts(error: &HostError) -> Option<usize> {
    match error {
        HostError::Busy | HostError::Full => None,
        HostError::Unavailable(_) => Some(ATTEMPTS_WHILE_UNAVAILABLE),
        HostError::Interrupted | HostError::Storage(_) | HostError::Internal(_) => Some(ATTEMPTS),
        HostError::Stopping | HostError::NotAllowed | HostError::Refused(_) => Some(0),
    }
}
