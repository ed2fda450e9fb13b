//! The adapter's state across restarts: received events, where replies are shown, and events that could not be
//! decrypted. It contains only ids and times, in the encrypted store of matrix-sdk. Each entry is written before it is
//! relied on.

use azera_adapter::{TAKE_BACK, command_of, takes_back};
use azera_types::{MessageId, PersonaId};
use matrix_sdk::Client;
use matrix_sdk::ruma::{EventId, OwnedEventId, OwnedRoomId, OwnedUserId, RoomId, UserId};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::avatars::Uploaded;
use crate::ids::event_of;

/// Most undecryptable events stored per room; the oldest are given up first.
const MAX_LATE: usize = 500;

/// A reply as shown in a room. Alternative replies to a message share the same events.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Shown {
    /// The reply shown; `None` while the first one is being generated.
    pub(crate) reply: Option<MessageId>,
    /// Its events, in order.
    pub(crate) parts: Vec<OwnedEventId>,
    /// The room, if it is not the one that its chat is named after.
    #[serde(default)]
    pub(crate) room: Option<OwnedRoomId>,
    /// Number of events that were started; written before each is sent.
    pub(crate) attempted: usize,
    /// How often its events were retracted. Later ones are different events.
    pub(crate) generation: usize,
}

impl Shown {
    /// Returns the state after its events are retracted.
    pub(crate) fn taken_back(&self) -> Self {
        Self { generation: self.generation + 1, ..Self::default() }
    }

    /// Returns the part of the transaction id that names this generation.
    pub(crate) fn making(&self) -> String {
        format!("reply {}", self.generation)
    }
}

/// The sound of a reply as sent to a room.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Sound {
    /// The reply that it is of.
    pub(crate) reply: MessageId,
    /// Its event.
    pub(crate) event: OwnedEventId,
}

/// A thumb of a person below a reply. A redaction names only its event.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Thumb {
    /// The event that shows the reply.
    pub(crate) target: OwnedEventId,
    /// The person.
    pub(crate) by: OwnedUserId,
    /// True if it is up.
    pub(crate) is_up: bool,
}

/// The state in a client's store.
#[derive(Debug, Clone)]
pub(crate) struct SyncState(Client);

impl SyncState {
    pub(crate) fn new(client: Client) -> Self {
        Self(client)
    }

    async fn get<T: DeserializeOwned>(&self, kind: &str, id: &str) -> Result<Option<T>, Error> {
        let found = self.0.state_store().get_custom_value(&key(kind, id)).await?;
        Ok(found.map(|bytes| serde_json::from_slice(&bytes)).transpose()?)
    }

    async fn put<T: Serialize>(&self, kind: &str, id: &str, value: &T) -> Result<(), Error> {
        let value = serde_json::to_vec(value)?;
        Ok(self.0.state_store().set_custom_value_no_read(&key(kind, id), value).await?)
    }

    async fn remove(&self, kind: &str, id: &str) -> Result<(), Error> {
        self.0.state_store().remove_custom_value(&key(kind, id)).await?;
        Ok(())
    }

    /// Returns true if the account was used before. Messages in its rooms from before the first start are not answered.
    pub(crate) async fn has_begun(&self) -> Result<bool, Error> {
        Ok(self.get("begun", "").await?.unwrap_or(false))
    }

    pub(crate) async fn begin(&self) -> Result<(), Error> {
        self.put("begun", "", &true).await
    }

    /// Returns the last received event of a room.
    pub(crate) async fn handled(&self, room: &RoomId) -> Result<Option<OwnedEventId>, Error> {
        self.get("handled", room.as_str()).await
    }

    pub(crate) async fn set_handled(&self, room: &RoomId, event: &EventId) -> Result<(), Error> {
        self.put("handled", room.as_str(), &event).await
    }

    /// Returns true if an action that must not be repeated was done: a command, an edit, a button.
    pub(crate) async fn is_done(&self, event: &EventId) -> Result<bool, Error> {
        Ok(self.get("done", event.as_str()).await?.unwrap_or(false))
    }

    pub(crate) async fn set_done(&self, event: &EventId) -> Result<(), Error> {
        self.put("done", event.as_str(), &true).await
    }

    /// Returns where the reply to a message is shown.
    pub(crate) async fn shown(&self, to: &MessageId) -> Result<Option<Shown>, Error> {
        self.get("shown", to.as_str()).await
    }

    /// Stores where the reply to a message is shown, and for each of its events the answered message.
    pub(crate) async fn set_shown(&self, to: &MessageId, shown: &Shown) -> Result<(), Error> {
        for event in &shown.parts {
            self.put("answers", event.as_str(), to).await?;
        }
        self.put("shown", to.as_str(), shown).await
    }

    /// Stores that the reply to a message moved to other events.
    pub(crate) async fn replace_shown(&self, to: &MessageId, shown: &Shown, left: &Shown) -> Result<(), Error> {
        for event in &shown.parts {
            self.remove("answers", event.as_str()).await?;
        }
        self.set_shown(to, left).await
    }

    /// Returns the sound of the reply to a message.
    pub(crate) async fn sound(&self, to: &MessageId) -> Result<Option<Sound>, Error> {
        self.get("sound", to.as_str()).await
    }

    /// Stores the sound of the reply to a message. An answer to its event answers the reply.
    pub(crate) async fn set_sound(&self, to: &MessageId, sound: &Sound) -> Result<(), Error> {
        self.put("answers", sound.event.as_str(), to).await?;
        self.put("sound", to.as_str(), sound).await
    }

    /// Removes the sound of the reply to a message.
    pub(crate) async fn forget_sound(&self, to: &MessageId, sound: &Sound) -> Result<(), Error> {
        self.remove("answers", sound.event.as_str()).await?;
        self.remove("sound", to.as_str()).await
    }

    /// Returns the reply shown in one of the bot's events.
    pub(crate) async fn reply_in(&self, event: &EventId) -> Result<Option<MessageId>, Error> {
        let Some(to) = self.get::<MessageId>("answers", event.as_str()).await? else { return Ok(None) };
        Ok(self.shown(&to).await?.and_then(|shown| shown.reply))
    }

    /// Stores a thumb by its event.
    pub(crate) async fn set_thumb(&self, event: &EventId, thumb: &Thumb) -> Result<(), Error> {
        self.put("thumb", event.as_str(), thumb).await
    }

    /// Returns the thumb of an event.
    pub(crate) async fn thumb(&self, event: &EventId) -> Result<Option<Thumb>, Error> {
        self.get("thumb", event.as_str()).await
    }

    /// Removes the thumb of an event.
    pub(crate) async fn forget_thumb(&self, event: &EventId) -> Result<(), Error> {
        self.remove("thumb", event.as_str()).await
    }

    /// Returns the command that a reaction to one of the bot's events means, with the reply or the picture in that event.
    pub(crate) async fn meant_by(
        &self,
        key: &str,
        event: &EventId,
    ) -> Result<Option<(&'static str, MessageId)>, Error> {
        Ok(match command_of(key) {
            Some(line) => self.reply_in(event).await?.map(|reply| (line, reply)),
            None if takes_back(key) => self.picture_made_in(event).await?.map(|picture| (TAKE_BACK, picture)),
            None => None,
        })
    }

    /// Returns the picture whose progress one of the bot's events shows.
    async fn picture_made_in(&self, event: &EventId) -> Result<Option<MessageId>, Error> {
        let Some(to) = self.get::<MessageId>("answers", event.as_str()).await? else { return Ok(None) };
        let is_made = self.shown(&to).await?.is_some_and(|shown| shown.reply.is_none());
        // A reply that is being written stands in the place of the event that it answers. It cannot be taken back.
        Ok(Some(to).filter(|to| is_made && event_of(to).is_none()))
    }

    /// Returns the undecryptable events of a room, oldest first.
    pub(crate) async fn late(&self, room: &RoomId) -> Result<Vec<OwnedEventId>, Error> {
        Ok(self.get("late", room.as_str()).await?.unwrap_or_default())
    }

    /// Adds an undecryptable event; returns how many there are.
    pub(crate) async fn add_late(&self, room: &RoomId, event: &EventId) -> Result<usize, Error> {
        let mut late = self.late(room).await?;
        if late.iter().any(|known| known == event) {
            return Ok(late.len());
        }
        late.push(event.to_owned());
        let too_many = late.len().saturating_sub(MAX_LATE);
        late.drain(..too_many);
        self.put("late", room.as_str(), &late).await?;
        if too_many > 0 {
            self.put("given-up", "", &(self.given_up().await? + too_many as u64)).await?;
        }
        Ok(late.len())
    }

    /// Returns the number of events that were given up.
    pub(crate) async fn given_up(&self) -> Result<u64, Error> {
        Ok(self.get("given-up", "").await?.unwrap_or(0))
    }

    pub(crate) async fn set_late(&self, room: &RoomId, late: &[OwnedEventId]) -> Result<(), Error> {
        self.put("late", room.as_str(), &late).await
    }

    /// Returns the room upgrades, old and new room, in the order they were recorded.
    pub(crate) async fn upgrades(&self) -> Result<Vec<(OwnedRoomId, OwnedRoomId)>, Error> {
        Ok(self.get("upgrades", "").await?.unwrap_or_default())
    }

    pub(crate) async fn set_upgrades(&self, upgrades: &[(OwnedRoomId, OwnedRoomId)]) -> Result<(), Error> {
        self.put("upgrades", "", &upgrades).await
    }

    /// Returns when the first message of a room after an upgrade was received, in milliseconds since 1970.
    pub(crate) async fn first(&self, room: &RoomId) -> Result<Option<i64>, Error> {
        self.get("first", room.as_str()).await
    }

    pub(crate) async fn set_first(&self, room: &RoomId, at: i64) -> Result<(), Error> {
        self.put("first", room.as_str(), &at).await
    }

    /// Returns the command prefix of a room, if somebody set one.
    pub(crate) async fn prefix(&self, room: &RoomId) -> Result<Option<String>, Error> {
        self.get("prefix", room.as_str()).await
    }

    /// Stores the command prefix of a room; `None` removes it.
    pub(crate) async fn set_prefix(&self, room: &RoomId, prefix: Option<&str>) -> Result<(), Error> {
        match prefix {
            Some(prefix) => self.put("prefix", room.as_str(), &prefix).await,
            None => self.remove("prefix", room.as_str()).await,
        }
    }

    /// Returns the uploaded picture of a persona.
    pub(crate) async fn picture(&self, persona: &PersonaId) -> Result<Option<Uploaded>, Error> {
        self.get("picture", persona.as_str()).await
    }

    pub(crate) async fn set_picture(&self, persona: &PersonaId, picture: &Uploaded) -> Result<(), Error> {
        self.put("picture", persona.as_str(), picture).await
    }

    /// Returns the time up to which a room's state is lost, in milliseconds since 1970.
    pub(crate) async fn lost(&self, room: &RoomId) -> Result<Option<i64>, Error> {
        self.get("lost", room.as_str()).await
    }

    pub(crate) async fn set_lost(&self, room: &RoomId, until: i64) -> Result<(), Error> {
        self.put("lost", room.as_str(), &until).await
    }

    /// Returns when a person joined a room, in milliseconds since 1970, if the bot saw it.
    pub(crate) async fn came(&self, room: &RoomId, user: &UserId) -> Result<Option<i64>, Error> {
        self.get("came", &format!("{room}/{user}")).await
    }

    pub(crate) async fn set_came(&self, room: &RoomId, user: &UserId, at: i64) -> Result<(), Error> {
        self.put("came", &format!("{room}/{user}"), &at).await
    }
}

fn key(kind: &str, id: &str) -> Vec<u8> {
    format!("azera/{kind}/{id}").into_bytes()
}
