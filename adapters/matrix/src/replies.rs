//! Replies in rooms: shows them while they are generated, completes, replaces and retracts them.
//!
//! The first reply to a message creates events. Alternative replies to the same message take their place through edits.
//! So each message has one reply in the room.

mod failed;
mod sound;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use azera_adapter::{NOT_ANSWERED, Outbound, StreamEvent, answered};
use azera_types::{ChatId, MessageId, Part};
use matrix_sdk::config::RequestConfig;
use matrix_sdk::deserialized_responses::TimelineEvent;
use matrix_sdk::ruma::api::client::typing::create_typing_event::v3 as typing;
use matrix_sdk::ruma::{OwnedEventId, OwnedTransactionId, OwnedUserId, TransactionId};
use matrix_sdk::{Client, Room};
use serde_json::{Map, Value};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::Error;
use crate::audience::Audience;
use crate::avatars::AvatarUploads;
use crate::content::{Kind, Message, Relation, Speaker, transaction};
use crate::ids::{event_of, place_of};
use crate::markdown::{PART_BYTES, parts};
use crate::matrix::Authors;
use crate::media::related_file;
use crate::reply_slot::{Showing, Slot, lock};
use crate::room_upgrades::RoomUpgrades;
use crate::sending::{EDIT_TIMEOUT, Stage, edits_of, redact, send};
use crate::sync_state::{Shown, SyncState};

/// Shortest time between two edits of a reply that is being generated.
const EDIT_EVERY: Duration = Duration::from_secs(1);

/// How long the typing notice lasts, unless it is renewed.
const TYPING: Duration = Duration::from_secs(30);

/// Most chats whose persona is cached.
const MAX_SPEAKERS: usize = 4_096;

/// Shows replies.
#[derive(Clone)]
pub(crate) struct Replies(Arc<Inner>);

struct Inner {
    client: Client,
    sync_state: SyncState,
    audience: Audience,
    succession: RoomUpgrades,
    authors: Arc<Authors>,
    gallery: AvatarUploads,
    /// The account's display name.
    own_name: OnceLock<String>,
    slots: Mutex<HashMap<MessageId, Arc<Slot>>>,
    /// The last speaker in a chat, because the persona of a reply is known only when it is complete.
    speakers: Mutex<HashMap<ChatId, Speaker>>,
}

impl Replies {
    pub(crate) fn new(
        client: Client,
        sync_state: SyncState,
        audience: Audience,
        succession: RoomUpgrades,
        authors: Arc<Authors>,
        gallery: AvatarUploads,
    ) -> Self {
        Self(Arc::new(Inner {
            client,
            sync_state,
            audience,
            succession,
            authors,
            gallery,
            own_name: OnceLock::new(),
            slots: Mutex::default(),
            speakers: Mutex::default(),
        }))
    }

    /// Sets the account's display name; personas with that name need no profile of their own.
    pub(crate) fn set_own_name(&self, name: String) {
        self.0.own_name.get_or_init(|| name);
    }

    /// Returns the account's display name, if known.
    pub(crate) fn own_name(&self) -> Option<&str> {
        self.0.own_name.get().map(String::as_str)
    }

    /// Handles an event while a reply is generated.
    pub(crate) fn event(&self, chat: &ChatId, reply: &MessageId, event: &StreamEvent) {
        let Some(to) = answered(reply) else { return };
        match event {
            StreamEvent::Content { text } => {
                let (slot, new) = self.0.slot(&to, chat);
                lock(&slot.text).push_str(text);
                if new {
                    tokio::spawn(self.0.clone().show_making(slot));
                } else {
                    slot.changed.notify_one();
                }
            }
            StreamEvent::Retracted => {
                if let Some(slot) = lock(&self.0.slots).get(&to) {
                    lock(&slot.text).clear();
                }
            }
            StreamEvent::Error { .. } => self.end_failed(chat, reply, to, Some(NOT_ANSWERED)),
            StreamEvent::Withdrawn => self.end_failed(chat, reply, to, None),
            StreamEvent::ThinkingStart
            | StreamEvent::Thinking { .. }
            | StreamEvent::ThinkingEnd
            | StreamEvent::Done { .. } => {}
        }
    }

    /// Shows how far a picture is, in the message that will show it.
    pub(crate) fn progress(&self, chat: &ChatId, picture: &MessageId, text: &str) {
        let (slot, new) = self.0.slot(picture, chat);
        text.clone_into(&mut lock(&slot.text));
        if new {
            tokio::spawn(self.0.clone().show_making(slot));
        } else {
            slot.changed.notify_one();
        }
    }

    /// Shows a complete reply.
    pub(crate) async fn deliver(&self, outbound: &Outbound) -> Result<(), Error> {
        self.finish(outbound, Stage::Whole(outbound)).await
    }

    /// Shows a reply in place of another reply to the same message.
    pub(crate) async fn show_again(&self, outbound: &Outbound) -> Result<(), Error> {
        self.finish(outbound, Stage::Again(outbound)).await
    }

    async fn finish(&self, outbound: &Outbound, stage: Stage<'_>) -> Result<(), Error> {
        let to = outbound.reply_to.as_ref().unwrap_or(&outbound.id);
        self.0.note_speaker(outbound).await;
        let (slot, _) = self.0.slot(to, &outbound.chat);
        slot.closed.cancel();
        let done = {
            let mut showing = slot.showing.lock().await;
            self.0.show(&slot, &mut showing, &outbound.text, stage).await
        };
        if done.is_ok() {
            self.0.take(to);
            let (inner, chat) = (self.0.clone(), outbound.chat.clone());
            tokio::spawn(async move { inner.typing(&chat, false).await });
        }
        done
    }

    /// Retracts a reply with its whole edit history.
    pub(crate) async fn retract(&self, chat: &ChatId, reply: &MessageId) -> Result<(), Error> {
        let to = answered(reply).unwrap_or_else(|| reply.clone());
        let slot = self.0.close(&to, chat);
        // This waits for running edits.
        let _showing = slot.showing.lock().await;
        let Some(shown) = self.0.sync_state.shown(&to).await? else { return Ok(()) };
        let room = self.0.room_of(chat, &shown)?;
        let stands = shown.reply.as_ref().filter(|stands| *stands != reply);
        let mut left = shown.taken_back();
        left.reply = stands.cloned();
        for (number, event) in shown.parts.iter().enumerate() {
            let edits = edits_of(&room, event).await?;
            if let Some(stands) = stands {
                // Another reply is shown in events whose edit history contains this one, so it moves to new events.
                let content = self.0.moved(&room, &slot, number, event, edits.first()).await?;
                let id = transaction(&left.making(), stands, number);
                left.parts.push(send(&room, content, &id, Stage::Moved).await?);
                left.attempted = left.parts.len();
            }
            redact(&room, event, &edits).await?;
        }
        self.0.remove_sound_if(&room, &to, |spoken| spoken == reply).await?;
        self.0.sync_state.replace_shown(&to, &shown, &left).await
    }

    /// Shows the typing notice.
    pub(crate) fn begin_typing(&self, chat: &ChatId) {
        let (inner, chat) = (self.0.clone(), chat.clone());
        tokio::spawn(async move { inner.typing(&chat, true).await });
    }

    /// Sends a notice in reply to a message.
    pub(crate) async fn notice(
        &self,
        chat: &ChatId,
        to: Option<&MessageId>,
        text: &str,
        transaction: &TransactionId,
    ) -> Result<(), Error> {
        self.0.notice(chat, to, text, transaction).await
    }

    /// Sends a question that mentions a person.
    pub(crate) async fn question(&self, chat: &ChatId, person: &OwnedUserId, text: &str) -> Result<(), Error> {
        let (room, thread) = self.0.place(chat)?;
        let (relation, mentions) = (Relation { reply_to: None, thread }, std::slice::from_ref(person));
        let message = Message { kind: Kind::Text, text, speaker: None, relation: &relation, mentions };
        room.send_raw("m.room.message", message.content()).await?;
        Ok(())
    }

    /// Sends a picture, a recording or a file.
    pub(crate) async fn file(
        &self,
        chat: &ChatId,
        to: Option<&MessageId>,
        part: &Part,
        bytes: &[u8],
        transaction: &TransactionId,
    ) -> Result<(), Error> {
        let (room, thread) = self.0.place(chat)?;
        let relation = Relation { reply_to: to.and_then(event_of), thread };
        let content = related_file(&self.0.client, &room, part, bytes, &relation).await?;
        room.send_raw("m.room.message", content).with_transaction_id(transaction).await?;
        Ok(())
    }
}

impl Inner {
    /// Returns the current room of a chat, and the root of its thread. A thread of a room before an upgrade has no root
    /// in the new one.
    fn place(&self, chat: &ChatId) -> Result<(Room, Option<OwnedEventId>), Error> {
        let (room, thread) = self.succession.room(chat).ok_or_else(|| Error::NoRoom(chat.to_string()))?;
        let moved = place_of(chat).is_none_or(|(origin, _)| origin != room.room_id());
        Ok((room, thread.filter(|_| !moved)))
    }

    /// Returns the room in which a reply is shown.
    fn room_of(&self, chat: &ChatId, shown: &Shown) -> Result<Room, Error> {
        let id = shown.room.clone().or_else(|| place_of(chat).map(|(room, _)| room));
        id.and_then(|id| self.client.get_room(&id)).ok_or_else(|| Error::NoRoom(chat.to_string()))
    }

    /// Returns the slot of the reply to a message, and whether it is new.
    fn slot(&self, to: &MessageId, chat: &ChatId) -> (Arc<Slot>, bool) {
        let mut slots = lock(&self.slots);
        let before = slots.get(to);
        if let Some(slot) = before.filter(|slot| !slot.closed.is_cancelled()) {
            return (slot.clone(), false);
        }
        let showing = before.map(|before| before.showing.clone()).unwrap_or_default();
        let slot = Arc::new(Slot {
            to: to.clone(),
            chat: chat.clone(),
            text: Mutex::default(),
            changed: Notify::new(),
            closed: CancellationToken::new(),
            showing,
        });
        slots.insert(to.clone(), slot.clone());
        (slot, true)
    }

    fn take(&self, to: &MessageId) {
        lock(&self.slots).remove(to);
    }

    /// Ends the generation of a reply and returns its slot, which nobody else gets any more.
    fn close(&self, to: &MessageId, chat: &ChatId) -> Arc<Slot> {
        let (slot, _) = self.slot(to, chat);
        slot.closed.cancel();
        self.take(to);
        slot
    }

    async fn note_speaker(&self, outbound: &Outbound) {
        if self.own_name.get().is_some_and(|own| own.eq_ignore_ascii_case(&outbound.persona_name)) {
            lock(&self.speakers).remove(&outbound.chat);
            return;
        }
        let picture = self.gallery.picture(&outbound.persona).await;
        let mut speakers = lock(&self.speakers);
        if speakers.len() >= MAX_SPEAKERS {
            speakers.clear();
        }
        let speaker = Speaker { id: outbound.persona.to_string(), name: outbound.persona_name.clone(), picture };
        speakers.insert(outbound.chat.clone(), speaker);
    }

    /// Shows a reply while it is generated, until it is complete. If another reply is shown, that one stays until then.
    async fn show_making(self: Arc<Self>, slot: Arc<Slot>) {
        let another = match self.sync_state.shown(&slot.to).await {
            Ok(shown) => shown.is_some_and(|shown| shown.reply.is_some()),
            Err(_) => true,
        };
        if another {
            return self.typing(&slot.chat, true).await;
        }
        loop {
            {
                let mut showing = slot.showing.lock().await;
                if slot.closed.is_cancelled() {
                    return;
                }
                let text = lock(&slot.text).clone();
                if let Err(error) = self.show(&slot, &mut showing, &text, Stage::Making).await {
                    // The complete reply follows anyway.
                    tracing::debug!(chat = %slot.chat, %error, "cannot show a piece of a reply");
                }
            }
            let next = Instant::now() + EDIT_EVERY;
            let more = async {
                slot.changed.notified().await;
                sleep_until(next).await;
            };
            tokio::select! {
                () = more => {}
                () = slot.closed.cancelled() => return,
            }
        }
    }

    /// Makes a reply's events show `text`. Events that are known to show their part already are not sent again.
    async fn show(&self, slot: &Slot, showing: &mut Showing, text: &str, stage: Stage<'_>) -> Result<(), Error> {
        let (room, _) = self.place(&slot.chat)?;
        let speaker = lock(&self.speakers).get(&slot.chat).cloned();
        let mut shown = self.sync_state.shown(&slot.to).await?.unwrap_or_default();
        let origin = place_of(&slot.chat).map(|(origin, _)| origin);
        let here = Some(room.room_id().to_owned()).filter(|here| origin.as_ref() != Some(here));
        if shown.room != here {
            // Events in a room that was upgraded stay as they are.
            shown = Shown { room: here, ..shown.taken_back() };
            showing.clear();
        }
        let parts = parts(text, PART_BYTES);
        for (number, part) in parts.iter().enumerate() {
            let saying = Some((speaker.clone(), part.clone()));
            let (kind, speaker, nowhere) = (Kind::Text, speaker.as_ref(), Relation::default());
            let message = Message { kind, text: part, speaker, relation: &nowhere, mentions: &[] };
            if showing.len() <= number {
                showing.push(None);
            }
            let event = match shown.parts.get(number) {
                Some(event) => event.clone(),
                None => {
                    // The event may have been created by an earlier attempt; then only its id is certain.
                    let first = shown.attempted <= number;
                    if first {
                        shown.attempted = number + 1;
                        self.sync_state.set_shown(&slot.to, &shown).await?;
                    }
                    let (relation, mentions) = self.relation(&room, slot, number).await?;
                    let message = Message { relation: &relation, mentions: &mentions, ..message.clone() };
                    let event =
                        send(&room, message.content(), &transaction(&shown.making(), &slot.to, number), stage).await?;
                    shown.parts.push(event.clone());
                    self.sync_state.set_shown(&slot.to, &shown).await?;
                    if first && let Some(says) = showing.get_mut(number) {
                        says.clone_from(&saying);
                    }
                    event
                }
            };
            if showing.get(number) == Some(&saying) {
                continue;
            }
            let id = match stage {
                // A post stands in the place of its own message: its edit must not have the id of the event that it changes.
                Stage::Whole(outbound) => transaction(&format!("{}-whole", shown.making()), &outbound.id, number),
                Stage::Making | Stage::Again(_) | Stage::Moved => TransactionId::new(),
            };
            send(&room, message.edit_of(&event), &id, stage).await?;
            if let Some(says) = showing.get_mut(number) {
                *says = saying;
            }
        }
        if let Stage::Whole(outbound) | Stage::Again(outbound) = stage {
            self.show_files(&room, slot, &mut shown, parts.len(), outbound).await?;
            let left = (parts.len() + outbound.files.len()).min(shown.parts.len());
            for event in shown.parts.drain(left..) {
                room.redact(&event, None, None).await?;
            }
            shown.reply = Some(outbound.id.clone());
            self.sync_state.set_shown(&slot.to, &shown).await?;
            self.remove_sound_if(&room, &slot.to, |spoken| *spoken != outbound.id).await?;
        }
        Ok(())
    }

    /// Shows the files of a complete reply behind its `texts` parts, each as an event of its own. Events that an earlier
    /// attempt sent stay.
    async fn show_files(
        &self,
        room: &Room,
        slot: &Slot,
        shown: &mut Shown,
        texts: usize,
        outbound: &Outbound,
    ) -> Result<(), Error> {
        for (number, file) in (texts..).zip(&outbound.files) {
            if shown.parts.get(number).is_some() {
                continue;
            }
            let (relation, _) = self.relation(room, slot, number).await?;
            let content = related_file(&self.client, room, &file.part, &file.content.0, &relation).await?;
            let id = transaction(&shown.making(), &slot.to, number);
            shown.parts.push(send(room, content, &id, Stage::Whole(outbound)).await?);
            self.sync_state.set_shown(&slot.to, shown).await?;
        }
        Ok(())
    }

    /// Returns relation and mentions of an event of a reply.
    async fn relation(&self, room: &Room, slot: &Slot, number: usize) -> Result<(Relation, Vec<OwnedUserId>), Error> {
        let (_, thread) = self.place(&slot.chat)?;
        let to = event_of(&slot.to);
        // In a direct chat it is clear what a reply answers.
        if thread.is_none() && self.audience.is_direct(room).await? {
            return Ok((Relation::default(), Vec::new()));
        }
        let author = to.as_ref().and_then(|to| self.authors.of(to)).filter(|_| number == 0);
        Ok((Relation { reply_to: to, thread }, author.into_iter().collect()))
    }

    /// Returns the content of an event after its newest edit, as a message of its own.
    async fn moved(
        &self,
        room: &Room,
        slot: &Slot,
        number: usize,
        event: &OwnedEventId,
        newest: Option<&TimelineEvent>,
    ) -> Result<Value, Error> {
        let content = |event: &TimelineEvent| event.raw().get_field::<Map<String, Value>>("content").ok().flatten();
        let edited = newest.and_then(content).and_then(|mut content| content.remove("m.new_content"));
        let mut said = match edited {
            Some(Value::Object(said)) => said,
            _ => content(&room.event(event, None).await?).unwrap_or_default(),
        };
        let (relation, _) = self.relation(room, slot, number).await?;
        said.remove("m.relates_to");
        said.extend(relation.content().map(|relation| ("m.relates_to".to_owned(), relation)));
        Ok(Value::Object(said))
    }

    async fn notice(
        &self,
        chat: &ChatId,
        to: Option<&MessageId>,
        text: &str,
        transaction: &TransactionId,
    ) -> Result<(), Error> {
        let (room, thread) = self.place(chat)?;
        let reply_to = to.and_then(event_of);
        for (number, part) in parts(text, PART_BYTES).iter().enumerate() {
            let relation = Relation { reply_to: reply_to.clone().filter(|_| number == 0), thread: thread.clone() };
            let message = Message { kind: Kind::Notice, text: part, speaker: None, relation: &relation, mentions: &[] };
            let id: OwnedTransactionId = format!("{transaction}.{number}").into();
            room.send_raw("m.room.message", message.content()).with_transaction_id(&id).await?;
        }
        Ok(())
    }

    async fn typing(&self, chat: &ChatId, on: bool) {
        let Ok((room, _)) = self.place(chat) else { return };
        let state = if on { typing::Typing::Yes(typing::TypingInfo::new(TYPING)) } else { typing::Typing::No };
        let (own, room) = (room.own_user_id().to_owned(), room.room_id().to_owned());
        let config = RequestConfig::new().disable_retry().timeout(EDIT_TIMEOUT);
        let sent = self.client.send(typing::Request::new(own, room, state)).with_request_config(config).await;
        if let Err(error) = sent {
            tracing::debug!(%chat, %error, "cannot send the typing notice");
        }
    }
}
