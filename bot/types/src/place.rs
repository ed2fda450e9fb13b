use jiff::Timestamp;

use crate::{ChatId, PersonId, RealmId, Scope};

/// The kinds of chat, by who can read them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlaceKind {
    /// Everybody in the realm can read it.
    Public(RealmId),
    /// Only its members can read it.
    Private {
        /// The realm that the chat belongs to, if any.
        realm: Option<RealmId>,
        /// True if every member of the chat can read the realm now. Only then may the realm's memories be shown in the
        /// chat.
        all_in_realm: bool,
        /// The time from which every member can read the realm's history, if one of them cannot scroll back to its
        /// beginning. This is the realm's horizon; in the chat itself they may see more or less.
        realm_since: Option<Timestamp>,
    },
    /// One person and the bot can read it.
    Dm(PersonId),
}

/// What a platform says about a chat at this moment, for the person who asks there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The chat.
    pub chat: ChatId,
    /// The kind of chat, which says who can read it.
    pub kind: PlaceKind,
    /// The time from which *every* reader of this place can read its history, if one of them cannot scroll back to the
    /// beginning. Nothing older from this chat (or from its realm, if it is public) is shown. A reader's horizon never
    /// lies before the moment they began to read here: for people who can see messages from between their invitation
    /// and their joining, it is the time they joined. Everything that is built on a place's past relies on this.
    pub since: Option<Timestamp>,
}

impl Place {
    /// Returns the scope of messages sent here.
    pub fn scope(&self) -> Scope {
        match &self.kind {
            PlaceKind::Public(realm) => Scope::Realm(realm.clone()),
            PlaceKind::Private { .. } => Scope::Chat(self.chat.clone()),
            PlaceKind::Dm(person) => Scope::Dm(person.clone()),
        }
    }

    /// Returns the realm that every reader of this place belongs to. Only if there is one may the realm's memories be
    /// shown.
    pub fn shared_realm(&self) -> Option<&RealmId> {
        match &self.kind {
            PlaceKind::Public(realm) => Some(realm),
            PlaceKind::Private { realm, all_in_realm, .. } => realm.as_ref().filter(|_| *all_in_realm),
            PlaceKind::Dm(_) => None,
        }
    }
}

/// The other places that one person can read at this moment, on this platform and, for linked accounts, on others. In a
/// direct message this decides which memories may be shown.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReadableScopes {
    /// The realms that the person belongs to. Each comes with the time from which they can scroll back, if not from its
    /// beginning.
    pub realms: Vec<(RealmId, Option<Timestamp>)>,
    /// The private chats that the person can read, each with the same time.
    pub private_chats: Vec<(ChatId, Option<Timestamp>)>,
    /// Other accounts that the person linked as their own. Each account reads only its own direct messages. No platform
    /// fills this in.
    pub direct: Vec<PersonId>,
}

impl ReadableScopes {
    /// Adds the places that another account of the same person can read.
    pub fn join(&mut self, other: Self) {
        self.realms.extend(other.realms);
        self.private_chats.extend(other.private_chats);
        self.direct.extend(other.direct);
    }
}
