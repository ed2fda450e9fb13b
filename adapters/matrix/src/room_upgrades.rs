//! Rooms that were upgraded: the chat of the old room goes on in the new one, under its old name.
//!
//! A room is believed to go on in another only if both say so: the old one by its tombstone, the new one by its creation.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use azera_types::{ChatId, IdError};
use matrix_sdk::ruma::{EventId, OwnedEventId, OwnedRoomId, RoomId};
use matrix_sdk::{Client, Room, RoomState};

use crate::Error;
use crate::ids::{chat_id, place_of};
use crate::sync_state::SyncState;

/// Upgrades in a row that are followed.
const MAX_STEPS: usize = 32;

/// Which room goes on in which.
#[derive(Debug, Clone)]
pub(crate) struct RoomUpgrades {
    client: Client,
    sync_state: SyncState,
    links: Arc<RwLock<Links>>,
    /// Held while something is learned.
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
    /// Knows what was learned before.
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

    /// The first of the rooms that a room goes on from; itself, if it was never upgraded. Its id is the chat's.
    pub(crate) fn origin(&self, room: &RoomId) -> OwnedRoomId {
        self.links(|links| last(&links.before, room))
    }

    /// The room that a room goes on in; itself, as a rule.
    pub(crate) fn newest(&self, room: &RoomId) -> OwnedRoomId {
        self.links(|links| last(&links.after, room))
    }

    /// The room before this one.
    pub(crate) fn before(&self, room: &RoomId) -> Option<Room> {
        let old = self.links(|links| links.before.get(room).cloned())?;
        self.client.get_room(&old)
    }

    /// Whether a room goes on in another.
    pub(crate) fn is_over(&self, room: &RoomId) -> bool {
        self.links(|links| links.after.contains_key(room))
    }

    /// The chat of a room, or of a thread in it.
    pub(crate) fn chat(&self, room: &RoomId, thread: Option<&EventId>) -> Result<ChatId, IdError> {
        chat_id(&self.origin(room), thread)
    }

    /// The room in which a chat goes on, and the thread's root, if the bot is in it.
    pub(crate) fn room(&self, chat: &ChatId) -> Option<(Room, Option<OwnedEventId>)> {
        let (room, thread) = place_of(chat)?;
        let room = self.client.get_room(&self.newest(&room))?;
        (room.state() == RoomState::Joined).then_some((room, thread))
    }

    /// Learns that a room goes on from another, if it does and nothing was said in it yet.
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
        tracing::info!(old = %old.room_id(), new = %new.room_id(), "a room was upgraded: its chat goes on");
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chains_are_followed_and_circles_end() {
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
