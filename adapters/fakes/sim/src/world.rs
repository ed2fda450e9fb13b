use std::collections::{BTreeMap, BTreeSet, HashMap};

use azera_adapter::Access;
use azera_types::{ChatId, MessageId, PersonId, Place, PlaceKind, ReadableScopes, RealmId, Timestamp};
use thiserror::Error;

use crate::members::Members;
use crate::{ChatKind, ChatLine, MessageLine, RealmLine, Target};

/// Why an event is impossible in the current world.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum WorldError {
    /// The realm does not exist.
    #[error("there is no realm {0}")]
    NoRealm(RealmId),
    /// The chat does not exist.
    #[error("there is no chat {0}")]
    NoChat(ChatId),
    /// The person cannot read the chat, and thus not write in it.
    #[error("{person} cannot read {chat}")]
    NotReadable {
        /// The person.
        person: PersonId,
        /// The chat.
        chat: ChatId,
    },
    /// A public chat can only be joined through its realm.
    #[error("{person} cannot join the public chat {chat} without joining its realm")]
    NotInRealm {
        /// The person.
        person: PersonId,
        /// The chat.
        chat: ChatId,
    },
    /// Nobody joins or leaves a direct message.
    #[error("nobody can join or leave the direct message {0}")]
    FixedMembers(ChatId),
    /// A second line of a chat changes more than its members.
    #[error("{0} cannot change its kind, realm or person")]
    Moved(ChatId),
}

/// A guild or a space.
#[derive(Debug, Clone, PartialEq)]
pub struct Realm {
    members: Members,
    admins: BTreeSet<PersonId>,
    /// IANA name of its time zone.
    pub time_zone: Option<String>,
    /// The chat for dreams and journal entries.
    pub journal: Option<ChatId>,
}

/// The members of realms and chats, and who may read what. It changes only through the timeline.
///
/// A person who leaves a realm loses its private chats and the admin role; returning restores neither. Guests in a
/// private chat, who never belonged to the realm, stay. Newcomers can read the history, unless the realm or private
/// chat says otherwise ([`crate::History`]).
#[derive(Debug, Clone, Default, PartialEq)]
pub struct World {
    realms: BTreeMap<RealmId, Realm>,
    chats: BTreeMap<ChatId, Chat>,
    said: HashMap<MessageId, Said>,
}

/// The current state of a chat.
#[derive(Debug, Clone, PartialEq)]
enum Chat {
    Public { realm: RealmId },
    Private { realm: Option<RealmId>, members: Members },
    Dm { person: PersonId },
}

/// Chat and author of a message.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Said {
    pub(crate) chat: ChatId,
    pub(crate) person: PersonId,
}

impl World {
    /// Creates or replaces a realm; members who are missing in the line leave.
    pub fn set_realm(&mut self, line: &RealmLine) {
        let admins: BTreeSet<_> = match &line.admins {
            Some(admins) => admins.iter().cloned().collect(),
            None => line.members.first().cloned().into_iter().collect(),
        };
        let people: BTreeSet<_> = line.members.iter().chain(&admins).cloned().collect();
        let known = self.realms.remove(&line.realm);
        let mut members = known.map_or_else(|| Members::new(line.history), |realm| realm.members);
        for person in members.set(&people, line.at) {
            self.leave_private_chats(&line.realm, &person);
        }
        let realm = Realm { members, admins, time_zone: line.time_zone.clone(), journal: line.journal.clone() };
        self.realms.insert(line.realm.clone(), realm);
    }

    /// Creates a chat, or sets the members of a private one.
    pub fn set_chat(&mut self, line: &ChatLine) -> Result<(), WorldError> {
        if let ChatKind::Public { realm } | ChatKind::Private { realm: Some(realm), .. } = &line.kind
            && !self.realms.contains_key(realm)
        {
            return Err(WorldError::NoRealm(realm.clone()));
        }
        let chat = match (self.chats.get_mut(&line.chat), &line.kind) {
            (None, ChatKind::Public { realm }) => Chat::Public { realm: realm.clone() },
            (None, ChatKind::Dm { person }) => Chat::Dm { person: person.clone() },
            (None, ChatKind::Private { realm, members: people, history }) => {
                let mut members = Members::new(*history);
                members.set(people, line.at);
                Chat::Private { realm: realm.clone(), members }
            }
            (Some(Chat::Public { realm: old }), ChatKind::Public { realm }) if old == realm => return Ok(()),
            (Some(Chat::Dm { person: old }), ChatKind::Dm { person }) if old == person => return Ok(()),
            (Some(Chat::Private { realm: old, members }), ChatKind::Private { realm, members: people, .. })
                if old == realm =>
            {
                members.set(people, line.at);
                return Ok(());
            }
            (Some(_), _) => return Err(WorldError::Moved(line.chat.clone())),
        };
        self.chats.insert(line.chat.clone(), chat);
        Ok(())
    }

    /// Adds a member; nothing changes for an existing one.
    pub fn join(&mut self, target: &Target, person: &PersonId, at: Timestamp) -> Result<(), WorldError> {
        match target {
            Target::Realm(id) => {
                let realm = self.realms.get_mut(id).ok_or_else(|| WorldError::NoRealm(id.clone()))?;
                realm.members.join(person, at);
            }
            Target::Chat(id) => match self.chats.get_mut(id) {
                None => return Err(WorldError::NoChat(id.clone())),
                Some(Chat::Dm { .. }) => return Err(WorldError::FixedMembers(id.clone())),
                Some(Chat::Private { members, .. }) => {
                    members.join(person, at);
                }
                Some(Chat::Public { realm }) => {
                    if !self.realms.get(realm).is_some_and(|realm| realm.members.has(person)) {
                        return Err(WorldError::NotInRealm { person: person.clone(), chat: id.clone() });
                    }
                }
            },
        }
        Ok(())
    }

    /// Removes a member, if they are one. Leaving a public chat changes nothing, because everyone in the realm can
    /// still read it.
    pub fn leave(&mut self, target: &Target, person: &PersonId) -> Result<(), WorldError> {
        match target {
            Target::Realm(id) => {
                let realm = self.realms.get_mut(id).ok_or_else(|| WorldError::NoRealm(id.clone()))?;
                realm.admins.remove(person);
                if realm.members.leave(person) {
                    self.leave_private_chats(id, person);
                }
            }
            Target::Chat(id) => match self.chats.get_mut(id) {
                None => return Err(WorldError::NoChat(id.clone())),
                Some(Chat::Dm { .. }) => return Err(WorldError::FixedMembers(id.clone())),
                Some(Chat::Private { members, .. }) => {
                    members.leave(person);
                }
                Some(Chat::Public { .. }) => {}
            },
        }
        Ok(())
    }

    fn leave_private_chats(&mut self, left: &RealmId, person: &PersonId) {
        for chat in self.chats.values_mut() {
            if let Chat::Private { realm: Some(realm), members } = chat
                && realm == left
            {
                members.leave(person);
            }
        }
    }

    /// Returns a realm.
    pub fn realm(&self, realm: &RealmId) -> Option<&Realm> {
        self.realms.get(realm)
    }

    /// Returns true if the chat exists.
    pub fn has_chat(&self, chat: &ChatId) -> bool {
        self.chats.contains_key(chat)
    }

    /// Returns true if a person can read, and thus write in, a chat now.
    pub fn can_read(&self, chat: &ChatId, person: &PersonId) -> bool {
        match self.chats.get(chat) {
            None => false,
            Some(Chat::Public { realm }) => self.is_member(realm, person),
            Some(Chat::Private { members, .. }) => members.has(person),
            Some(Chat::Dm { person: owner }) => owner == person,
        }
    }

    fn is_member(&self, realm: &RealmId, person: &PersonId) -> bool {
        self.realms.get(realm).is_some_and(|realm| realm.members.has(person))
    }

    /// Checks [`World::can_read`] and returns the reason if it is false.
    pub fn check_read(&self, chat: &ChatId, person: &PersonId) -> Result<(), WorldError> {
        if !self.chats.contains_key(chat) {
            return Err(WorldError::NoChat(chat.clone()));
        }
        if !self.can_read(chat, person) {
            return Err(WorldError::NotReadable { person: person.clone(), chat: chat.clone() });
        }
        Ok(())
    }

    /// Returns what a chat is for the asker; `None` if they cannot read it.
    pub fn place(&self, chat: &ChatId, asker: &PersonId) -> Option<Place> {
        self.place_for_all(chat).filter(|_| self.can_read(chat, asker))
    }

    /// Returns what a chat is for everyone who reads it.
    pub fn place_for_all(&self, chat: &ChatId) -> Option<Place> {
        let mut since = None;
        let kind = match self.chats.get(chat)? {
            Chat::Public { realm } => {
                since = self.realms.get(realm).and_then(|realm| realm.members.since_for_all(realm.members.people()));
                PlaceKind::Public(realm.clone())
            }
            Chat::Private { realm, members } => {
                since = members.since_for_all(members.people());
                let enclosing = realm.as_ref().and_then(|realm| self.realms.get(realm));
                PlaceKind::Private {
                    realm: realm.clone(),
                    all_in_realm: enclosing
                        .is_some_and(|realm| members.people().all(|member| realm.members.has(member))),
                    realm_since: enclosing.and_then(|realm| realm.members.since_for_all(members.people())),
                }
            }
            Chat::Dm { person } => PlaceKind::Dm(person.clone()),
        };
        Some(Place { chat: chat.clone(), kind, since })
    }

    /// Returns what else a person can read now.
    pub fn readable_scopes(&self, person: &PersonId) -> ReadableScopes {
        let realms = self.realms.iter().filter(|(_, realm)| realm.members.has(person));
        let private_chats = self.chats.iter().filter_map(|(id, chat)| match chat {
            Chat::Private { members, .. } if members.has(person) => Some((id.clone(), members.since(person))),
            _ => None,
        });
        ReadableScopes {
            realms: realms.map(|(id, realm)| (id.clone(), realm.members.since(person))).collect(),
            private_chats: private_chats.collect(),
            direct: Vec::new(),
        }
    }

    /// Returns what a person may do in a chat now. Direct messages, and private chats outside any realm, are managed by
    /// their members.
    pub fn access(&self, chat: &ChatId, person: &PersonId) -> Access {
        let manages = match self.chats.get(chat) {
            None => false,
            Some(Chat::Public { realm } | Chat::Private { realm: Some(realm), .. }) => {
                self.realms.get(realm).is_some_and(|realm| realm.admins.contains(person))
            }
            Some(Chat::Private { realm: None, .. } | Chat::Dm { .. }) => self.can_read(chat, person),
        };
        if manages { Access::Admin } else { Access::Member }
    }

    /// Records a message, if its author may write in the chat.
    pub fn say(&mut self, line: &MessageLine) -> Result<(), WorldError> {
        self.check_read(&line.chat, &line.person)?;
        let said = Said { chat: line.chat.clone(), person: line.person.clone() };
        // A message with a known id is the same message.
        self.said.entry(line.id.clone()).or_insert(said);
        Ok(())
    }

    /// Returns chat and author of a message, if its author can still read the chat. An unknown message from before this
    /// world is not an error.
    pub(crate) fn reachable(&self, id: &MessageId) -> Result<Option<&Said>, WorldError> {
        let said = self.said.get(id);
        if let Some(said) = said {
            self.check_read(&said.chat, &said.person)?;
        }
        Ok(said)
    }
}

#[cfg(test)]
mod tests;
