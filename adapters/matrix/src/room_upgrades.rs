//! Upgraded rooms: the chat of the old room continues in the new one, under its old id.
//!
//! An upgrade counts only if both rooms confirm it: the old one with its tombstone, the new one with its creation
//! event.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use azera_types::{ChatId, IdError};
use matrix_sdk::ruma::{EventId, OwnedEventId, OwnedRoomId, RoomId};
use matrix_sdk::{Client, Room, RoomState};

use crate::Error;
use crate::ids::{chat_id, place_of};
use crate::sync_state::SyncState;

/// Most consecutive upgrades that are followed.
const MAX_STEPS: usize = 32;

/// Upgrades between rooms.
#[derive(Debug, Clone)]
pub(crate) struct RoomUpgrades {
    client: Client,
    sync_state: SyncState,
    links: Arc<RwLock<Links>>,
    /// Locked while an upgrade is recorded.
    learning: Arc<tokio::sync::Mutex<()>>,
}

#[derive(Debug, Default)]
struct Links {
    /// From the old room to the new one.
    after: HashMap<OwnedRoomId, OwnedRoomId>,
    before: HashMap<OwnedRoomId, OwnedRoomId>,
}

impl Links {
    fn add(&mut self, old: OwnedRoomId, new: OwnedRoomId) {
        self.after.insert(old.clone(), new.clone());
        self.before.insert(new, old);
    }
}

fn last(links: &HashMap<OwnedRoomId, OwnedRoomId>, room: &RoomId) -> OwnedRoomId {
    let mut room = room.to_owned();
    for _ in 0..MAX_STEPS {
        match links.get(&room) {
            Some(next) => room = next.clone(),
            None => break,
        }
    }
    room
}

impl RoomUpgrades {
    /// Loads the recorded upgrades.
    pub(crate) async fn load(client: Client, sync_state: SyncState) -> Result<Self, Error> {
        let mut links = Links::default();
        for (old, new) in sync_state.upgrades().await? {
            links.add(old, new);
        }
        Ok(Self { client, sync_state, links: Arc::new(RwLock::new(links)), learning: Arc::default() })
    }

    fn links<T>(&self, read: impl FnOnce(&Links) -> T) -> T {
        read(&self.links.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns the first room in a chain of upgrades, which gives the chat its id; the room itself without upgrades.
    pub(crate) fn origin(&self, room: &RoomId) -> OwnedRoomId {
        self.links(|links| last(&links.before, room))
    }

    /// Returns the newest room in a chain of upgrades; usually the room itself.
    pub(crate) fn newest(&self, room: &RoomId) -> OwnedRoomId {
        self.links(|links| last(&links.after, room))
    }

    /// Returns the room before this one.
    pub(crate) fn before(&self, room: &RoomId) -> Option<Room> {
        let old = self.links(|links| links.before.get(room).cloned())?;
        self.client.get_room(&old)
    }

    /// Returns true if the room was upgraded to another.
    pub(crate) fn is_over(&self, room: &RoomId) -> bool {
        self.links(|links| links.after.contains_key(room))
    }

    /// Returns the chat of a room or a thread.
    pub(crate) fn chat(&self, room: &RoomId, thread: Option<&EventId>) -> Result<ChatId, IdError> {
        chat_id(&self.origin(room), thread)
    }

    /// Returns the current room of a chat and its thread's root, if the bot is in the room.
    pub(crate) fn room(&self, chat: &ChatId) -> Option<(Room, Option<OwnedEventId>)> {
        let (room, thread) = place_of(chat)?;
        let room = self.client.get_room(&self.newest(&room))?;
        (room.state() == RoomState::Joined).then_some((room, thread))
    }

    /// Records that a room continues another, if both confirm it and it has no messages yet.
    pub(crate) async fn learn(&self, new: &Room) -> Result<(), Error> {
        let _learning = self.learning.lock().await;
        let Some(old) = new.predecessor_room().and_then(|before| self.client.get_room(&before.room_id)) else {
            return Ok(());
        };
        let both = old.successor_room().is_some_and(|after| after.room_id == new.room_id());
        let known =
            self.links(|links| links.before.contains_key(new.room_id()) || links.after.contains_key(old.room_id()));
        if !both
            || known
            || self.origin(old.room_id()) == new.room_id()
            || self.sync_state.first(new.room_id()).await?.is_some()
        {
            return Ok(());
        }
        let mut upgrades = self.sync_state.upgrades().await?;
        upgrades.push((old.room_id().to_owned(), new.room_id().to_owned()));
        self.sync_state.set_upgrades(&upgrades).await?;
        self.links
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .add(old.room_id().to_owned(), new.room_id().to_owned());
        tracing::info!(old = %old.room_id(), new = %new.room_id(), "the chat of an upgraded room continues");
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chains_are_followed_and_cycles_end() {
        let room = |name: &str| RoomId::parse(format!("!{name}:a")).unwrap();
        let mut links = Links::default();
        links.add(room("a"), room("b"));
        links.add(room("b"), room("c"));
        assert_eq!((last(&links.after, &room("a")), last(&links.before, &room("c"))), (room("c"), room("a")));
        assert_eq!(last(&links.after, &room("x")), room("x"));
        links.add(room("c"), room("a"));
        last(&links.after, &room("a"));
    }
}
