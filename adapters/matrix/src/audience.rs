//! Who can read what, according to the homeserver: the state of rooms as the sync stores it.
//!
//! A room that anyone can read without joining (`world_readable`, not encrypted) is public. By Matrix's rules, messages
//! from that time stay readable by everyone. Any other room can be read only by its members; a room of the bot and one
//! person is a DM of that person. A thread has the readers of its room.

use azera_adapter::Access;
use azera_types::{ChatId, PersonId, Place, PlaceKind, ReadableScopes, RealmId, Timestamp};
use futures::StreamExt;
use matrix_sdk::deserialized_responses::RawMemberEvent;
use matrix_sdk::room::ParentSpace;
use matrix_sdk::ruma::events::StateEventType;
use matrix_sdk::ruma::events::room::create::RoomCreateEventContent;
use matrix_sdk::ruma::events::room::history_visibility::{HistoryVisibility, RoomHistoryVisibilityEventContent};
use matrix_sdk::ruma::events::room::member::MembershipState;
use matrix_sdk::ruma::events::room::power_levels::UserPowerLevel;
use matrix_sdk::ruma::events::room::tombstone::RoomTombstoneEventContent;
use matrix_sdk::ruma::{OwnedUserId, UserId};
use matrix_sdk::{Client, Room, RoomMemberships, RoomState};
use matrix_sdk_base::deserialized_responses::RawSyncOrStrippedState;

use crate::Error;
use crate::ids::{realm_id, user_of};
use crate::room_upgrades::RoomUpgrades;
use crate::sync_state::SyncState;

/// Power level from which a person manages a room; by convention that of moderators.
const MANAGES: i64 = 50;

/// Answers who can read what.
#[derive(Debug, Clone)]
pub(crate) struct Audience {
    client: Client,
    sync_state: SyncState,
    succession: RoomUpgrades,
    own: OwnedUserId,
}

/// How far back newcomers of a room can read.
#[derive(Debug, Clone, Copy)]
enum Past {
    /// Everything.
    Open,
    /// Messages since they joined, or since this time if that is earlier.
    Since(Option<Timestamp>),
}

impl Audience {
    pub(crate) fn new(client: Client, sync_state: SyncState, succession: RoomUpgrades, own: OwnedUserId) -> Self {
        Self { client, sync_state, succession, own }
    }

    fn room(&self, chat: &ChatId) -> Option<Room> {
        self.succession.room(chat).map(|(room, _)| room)
    }

    /// Implements [`azera_adapter::Platform::place`].
    pub(crate) async fn place(&self, chat: &ChatId, asker: &PersonId) -> Result<Option<Place>, Error> {
        let (Some(room), Some(asker)) = (self.room(chat), user_of(asker)) else { return Ok(None) };
        let (people, invited) = self.people(&room).await?;
        if asker == self.own || !people.contains(&asker) {
            return Ok(None);
        }
        self.place_of(&room, &people, invited).await
    }

    /// Implements [`azera_adapter::Platform::place_for_all`]. A room without people has no readers.
    pub(crate) async fn place_for_all(&self, chat: &ChatId) -> Result<Option<Place>, Error> {
        let Some(room) = self.room(chat) else { return Ok(None) };
        let (people, invited) = self.people(&room).await?;
        if people.is_empty() { Ok(None) } else { self.place_of(&room, &people, invited).await }
    }

    /// Returns the name that people gave a room or space. A name that is made of its members' names is none.
    pub(crate) fn name_of(&self, chat: &ChatId) -> Option<String> {
        self.room(chat)?.name()
    }

    async fn place_of(&self, room: &Room, people: &[OwnedUserId], invited: usize) -> Result<Option<Place>, Error> {
        // Threads have the readers of their room, so their messages are remembered as the room's.
        let chat = self.succession.chat(room.room_id(), None)?;
        if self.is_public(room).await? {
            return Ok(Some(Place { chat, kind: PlaceKind::Public(self.realm(room).await?.0), since: None }));
        }
        let kind = match people {
            [person] if invited == 0 => PlaceKind::Dm(PersonId::new(person)?),
            _ => {
                let (realm, space) = self.realm(room).await?;
                let all_in_realm = match &space {
                    None => true,
                    Some(space) => {
                        let (within, _) = self.people(space).await?;
                        people.iter().all(|person| within.contains(person))
                    }
                };
                let realm_since = match &space {
                    // The room is its own realm, so its public messages can be read as far back as the others.
                    None => self.since(room, people).await?,
                    // A space's public messages can be read by everyone from the beginning.
                    Some(_) => None,
                };
                PlaceKind::Private { realm: Some(realm), all_in_realm, realm_since }
            }
        };
        let since = match kind {
            // In a DM, all messages with the bot alone, in this room or another, are from the person who reads here.
            PlaceKind::Dm(_) => None,
            _ => self.since(room, people).await?,
        };
        Ok(Some(Place { chat, kind, since }))
    }

    /// Implements [`azera_adapter::Platform::readable_scopes`].
    pub(crate) async fn readable_scopes(&self, person: &PersonId) -> Result<ReadableScopes, Error> {
        let mut reach = ReadableScopes::default();
        let Some(user) = user_of(person).filter(|user| *user != self.own) else { return Ok(reach) };
        for room in self.client.joined_rooms() {
            if self.succession.is_over(room.room_id()) || !self.is_in(&room, &user).await? {
                continue;
            }
            let since = self.since(&room, std::slice::from_ref(&user)).await?;
            let realm = realm_id(&self.succession.origin(room.room_id()))?;
            if room.is_space() {
                reach.realms.push((realm, None));
                continue;
            }
            let public = self.is_public(&room).await?;
            // This covers messages from a time when the room is or was public.
            reach.realms.push((realm, if public { None } else { since }));
            reach.private_chats.push((self.succession.chat(room.room_id(), None)?, since));
        }
        Ok(reach)
    }

    /// Implements [`azera_adapter::Platform::access`].
    pub(crate) async fn access(&self, chat: &ChatId, person: &PersonId) -> Result<Access, Error> {
        let (Some(room), Some(user)) = (self.room(chat), user_of(person)) else { return Ok(Access::Member) };
        let (people, invited) = self.people(&room).await?;
        if !people.contains(&user) {
            return Ok(Access::Member);
        }
        if people.len() == 1 && invited == 0 {
            return Ok(Access::Admin);
        }
        Ok(match room.get_user_power_level(&user).await? {
            UserPowerLevel::Infinite => Access::Admin,
            UserPowerLevel::Int(level) if i64::from(level) >= MANAGES => Access::Admin,
            _ => Access::Member,
        })
    }

    /// Returns true if a room has one person besides the bot.
    pub(crate) async fn is_direct(&self, room: &Room) -> Result<bool, Error> {
        let (people, invited) = self.people(room).await?;
        Ok(people.len() == 1 && invited == 0 && !self.is_public(room).await?)
    }

    /// Returns the members of a room without the bot, and the number of invited people.
    pub(crate) async fn people(&self, room: &Room) -> Result<(Vec<OwnedUserId>, usize), Error> {
        if !room.are_members_synced() {
            room.sync_members().await?;
        }
        let store = self.client.state_store();
        let mut people = store.get_user_ids(room.room_id(), RoomMemberships::JOIN).await?;
        people.retain(|user| *user != self.own);
        let invited = store.get_user_ids(room.room_id(), RoomMemberships::INVITE).await?;
        Ok((people, invited.iter().filter(|user| **user != self.own).count()))
    }

    async fn member(&self, room: &Room, user: &UserId) -> Result<Option<RawMemberEvent>, Error> {
        let store = self.client.state_store();
        let found = store.get_state_event(room.room_id(), StateEventType::RoomMember, user.as_str()).await?;
        Ok(found.map(|raw| raw.cast()))
    }

    async fn is_in(&self, room: &Room, user: &UserId) -> Result<bool, Error> {
        let Some(RawSyncOrStrippedState::Sync(raw)) = self.member(room, user).await? else { return Ok(false) };
        let member = raw.deserialize().ok();
        Ok(member.is_some_and(|member| *member.membership() == MembershipState::Join))
    }

    async fn is_public(&self, room: &Room) -> Result<bool, Error> {
        let open = room.history_visibility_or_default() == HistoryVisibility::WorldReadable;
        Ok(open && !room.latest_encryption_state().await?.is_encrypted())
    }

    /// Returns the room's realm: its space, if both name each other and the bot is in the space; otherwise the room
    /// itself.
    async fn realm(&self, room: &Room) -> Result<(RealmId, Option<Room>), Error> {
        let mut spaces = Vec::new();
        let mut parents = std::pin::pin!(room.parent_spaces().await?);
        while let Some(parent) = parents.next().await {
            if let Ok(ParentSpace::Reciprocal(space)) = parent
                && space.state() == RoomState::Joined
                && space.is_space()
            {
                spaces.push(space);
            }
        }
        // Sorted, so that the result is always the same.
        spaces.sort_by(|a, b| a.room_id().cmp(b.room_id()));
        match spaces.into_iter().next() {
            Some(space) => Ok((realm_id(&self.succession.origin(space.room_id()))?, Some(space))),
            None => Ok((realm_id(&self.succession.origin(room.room_id()))?, None)),
        }
    }

    /// Returns the time from which all of these people can read a room and the rooms before it; `None` is the
    /// beginning.
    async fn since(&self, room: &Room, people: &[OwnedUserId]) -> Result<Option<Timestamp>, Error> {
        let past = self.past(room).await?;
        let before = self.succession.before(room.room_id());
        let first = match &before {
            Some(_) => self.sync_state.first(room.room_id()).await?.map(time),
            None => None,
        };
        let (mut latest, mut were_there) = (None, Vec::new());
        for person in people {
            let since = match past {
                Past::Open => None,
                Past::Since(opened) => {
                    let came = self.came(room, person).await?;
                    Some(opened.map_or(came, |opened| came.min(opened)))
                }
            };
            let since = match &before {
                None => since,
                // There are messages from before they joined.
                Some(_) if since > first.or(Some(Timestamp::MAX)) => since,
                Some(old) if self.was_there(old, person).await? => {
                    were_there.push(person.clone());
                    None
                }
                Some(_) => Some(since.unwrap_or(Timestamp::MIN).max(self.began(room).await?)),
            };
            latest = latest.max(since);
        }
        match before {
            Some(old) if latest.is_none() => Box::pin(self.since(&old, &were_there)).await,
            _ => Ok(latest),
        }
    }

    /// Returns true if a person can read an upgraded room: they are a member, or left on their own after the upgrade.
    async fn was_there(&self, old: &Room, user: &UserId) -> Result<bool, Error> {
        let Some(RawSyncOrStrippedState::Sync(raw)) = self.member(old, user).await? else { return Ok(false) };
        let Ok(member) = raw.deserialize() else { return Ok(false) };
        if *member.membership() == MembershipState::Join {
            return Ok(true);
        }
        let Some(left) = member.as_original().filter(|left| left.content.membership == MembershipState::Leave) else {
            return Ok(false);
        };
        let was_in = left.prev_content().is_some_and(|before| before.membership == MembershipState::Join);
        let over = old.get_state_event_static::<RoomTombstoneEventContent>().await?;
        let Some(RawSyncOrStrippedState::Sync(over)) = over else { return Ok(false) };
        let over = over.deserialize().ok().map(|event| event.origin_server_ts());
        Ok(was_in && left.sender == left.state_key && over.is_some_and(|over| left.origin_server_ts >= over))
    }

    /// Returns when a room was created.
    async fn began(&self, room: &Room) -> Result<Timestamp, Error> {
        let made = room.get_state_event_static::<RoomCreateEventContent>().await?;
        let Some(RawSyncOrStrippedState::Sync(raw)) = made else { return Ok(Timestamp::MAX) };
        Ok(raw.deserialize().map_or(Timestamp::MAX, |made| time(made.origin_server_ts().get().into())))
    }

    /// Returns how far back a room can be read. A message keeps the rule of its time; so a room that became more open
    /// shows messages since then.
    async fn past(&self, room: &Room) -> Result<Past, Error> {
        // Newcomers of an encrypted room have no keys to earlier messages.
        if room.latest_encryption_state().await?.is_encrypted() {
            return Ok(Past::Since(None));
        }
        if matches!(room.history_visibility_or_default(), HistoryVisibility::Joined | HistoryVisibility::Invited) {
            return Ok(Past::Since(None));
        }
        let Some(RawSyncOrStrippedState::Sync(raw)) =
            room.get_state_event_static::<RoomHistoryVisibilityEventContent>().await?
        else {
            return Ok(Past::Open);
        };
        let Ok(event) = raw.deserialize() else { return Ok(Past::Since(None)) };
        let replaced = event.as_original().is_none_or(|event| event.unsigned.prev_content.is_some());
        let at = Timestamp::from_millisecond(event.origin_server_ts().get().into()).ok();
        Ok(if replaced { Past::Since(at) } else { Past::Open })
    }

    /// Records when a person joined a room, unless it is known.
    pub(crate) async fn note_came(&self, room: &Room, user: &UserId) -> Result<(), Error> {
        if self.sync_state.came(room.room_id(), user).await?.is_none() {
            let came = self.came(room, user).await?;
            self.sync_state.set_came(room.room_id(), user, came.as_millisecond()).await?;
        }
        Ok(())
    }

    /// Returns when a person joined a room, as far as the bot knows; rather too late than too early.
    async fn came(&self, room: &Room, user: &UserId) -> Result<Timestamp, Error> {
        let Some(RawSyncOrStrippedState::Sync(raw)) = self.member(room, user).await? else { return Ok(Timestamp::MAX) };
        let Ok(member) = raw.deserialize() else { return Ok(Timestamp::MAX) };
        let before = member.as_original().and_then(|member| member.prev_content());
        let seen = match before {
            // This event is a change of name; the person joined earlier.
            Some(before) if before.membership == MembershipState::Join => {
                self.sync_state.came(room.room_id(), user).await?
            }
            _ => None,
        };
        let at = seen.unwrap_or_else(|| member.origin_server_ts().get().into());
        Ok(time(at))
    }
}

/// Converts a time from the homeserver. An invalid one becomes the latest possible, so that nothing is shown because of
/// it.
fn time(milliseconds: i64) -> Timestamp {
    Timestamp::from_millisecond(milliseconds).unwrap_or(Timestamp::MAX)
}
