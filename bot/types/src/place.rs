use jiff::Timestamp;

use crate::{ChatId, PersonId, RealmId, Scope};

/// Who can read a chat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlaceKind {
    /// Everybody of its realm.
    Public(RealmId),
    /// Its members alone. The realm it lies in, if any, comes with whether every member of the chat may read that
    /// realm now: only then may the realm's memories be shown there.
    Private {
        /// The realm around it.
        realm: Option<RealmId>,
        /// Whether all who can read the chat can read the realm.
        all_in_realm: bool,
        /// Where one of them cannot scroll back to the beginning in the realm, the time from which all of them can. The
        /// realm's own horizon: in the chat they may see more, or less.
        realm_since: Option<Timestamp>,
    },
    /// One person and the bot.
    Dm(PersonId),
}

/// What a platform says about a chat at this moment, for one person who asks there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Which chat.
    pub chat: ChatId,
    /// Who can read it.
    pub kind: PlaceKind,
    /// Where somebody who reads here cannot scroll back to the beginning, the time from which *everybody* who reads
    /// here can; nothing older from this chat (or, if it is public, from its realm) is shown. Nobody's horizon lies
    /// before the moment they began to read here: who may see what was said between an invitation and their coming is
    /// counted from their coming. What is built on a place's past relies on it.
    pub since: Option<Timestamp>,
}

impl Place {
    /// The scope of what is said here.
    pub fn scope(&self) -> Scope {
        match &self.kind {
            PlaceKind::Public(realm) => Scope::Realm(realm.clone()),
            PlaceKind::Private { .. } => Scope::Chat(self.chat.clone()),
            PlaceKind::Dm(person) => Scope::Dm(person.clone()),
        }
    }

    /// The realm that everybody who reads here belongs to: what is the realm's alone may be shown.
    pub fn shared_realm(&self) -> Option<&RealmId> {
        match &self.kind {
            PlaceKind::Public(realm) => Some(realm),
            PlaceKind::Private { realm, all_in_realm, .. } => realm.as_ref().filter(|_| *all_in_realm),
            PlaceKind::Dm(_) => None,
        }
    }
}

/// Where else one person may read at this moment, by the platform's word, and by that of other platforms for accounts that the
/// person linked. Asked for DMs, where it decides what may be shown.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReadableScopes {
    /// Realms the person belongs to, each with the time from which they can scroll back, if not from its beginning.
    pub realms: Vec<(RealmId, Option<Timestamp>)>,
    /// Private chats the person can read, likewise.
    pub private_chats: Vec<(ChatId, Option<Timestamp>)>,
    /// Other accounts of the same human, as they said themselves: each reads what was said to it alone. No platform fills this in.
    pub direct: Vec<PersonId>,
}

impl ReadableScopes {
    /// Adds where another account of the same human may read.
    pub fn join(&mut self, other: Self) {
        self.realms.extend(other.realms);
        self.private_chats.extend(other.private_chats);
        self.direct.extend(other.direct);
    }
}
