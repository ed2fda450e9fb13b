//! The web as a platform: every person has chats of their own, which nobody else reads.

use std::sync::Arc;

use async_trait::async_trait;
use azera_adapter::{Access, Making, Outbound, Platform, PlatformError, State, StreamEvent, Streaming, answered};
use azera_types::{
    ChatId, IdError, MessageId, PersonId, Place, PlaceKind, PlatformId, ReadableScopes, RealmId, Timestamp,
};
use serde_json::json;

use crate::accounts::Role;
use crate::web::Web;

/// The platform's name, and the first part of every id it creates.
pub const PLATFORM: &str = "web";

/// Longest last part of a chat's id, in bytes.
const MAX_SUFFIX_BYTES: usize = 64;

/// Returns the person of an account.
pub(crate) fn person_id(account: &str) -> Result<PersonId, IdError> {
    PersonId::new(format!("{PLATFORM}:{account}"))
}

/// Returns the account of a person of the web.
pub(crate) fn account_of(person: &PersonId) -> Option<&str> {
    person.as_str().strip_prefix(PLATFORM)?.strip_prefix(':')
}

/// Returns a chat of an account. `suffix` is all that clients see of the id, so they can name no chat of somebody else.
pub(crate) fn chat_id(account: &str, suffix: &str) -> Result<ChatId, IdError> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if suffix.is_empty() {
        return Err(IdError::Empty);
    }
    if suffix.len() > MAX_SUFFIX_BYTES || !suffix.chars().all(is_plain) {
        return Err(IdError::Control);
    }
    ChatId::new(format!("{PLATFORM}:{account}:{suffix}"))
}

/// Returns the part of a chat's id that clients see.
pub(crate) fn suffix_of(chat: &ChatId) -> &str {
    chat.as_str().rsplit_once(':').map_or(chat.as_str(), |(_, suffix)| suffix)
}

/// Returns the owner of a chat; `None` if it is no chat of the web.
pub(crate) fn owner(chat: &ChatId) -> Option<PersonId> {
    let (person, suffix) = chat.as_str().rsplit_once(':')?;
    let account = person.strip_prefix(PLATFORM)?.strip_prefix(':')?;
    if account.is_empty() || suffix.is_empty() || account.contains(':') {
        return None;
    }
    PersonId::new(person).ok()
}

/// Returns the realm that a person's chats count as when they are deleted.
pub(crate) fn realm_id(account: &str) -> Result<RealmId, IdError> {
    RealmId::new(format!("{PLATFORM}:{account}"))
}

fn direct(chat: &ChatId, owner: PersonId) -> Place {
    Place { chat: chat.clone(), kind: PlaceKind::Dm(owner), since: None }
}

#[async_trait]
impl Platform for Web {
    fn id(&self) -> &PlatformId {
        &self.shared.platform
    }

    async fn place(&self, chat: &ChatId, asker: &PersonId) -> Result<Option<Place>, PlatformError> {
        let mine = owner(chat).filter(|owner| owner == asker && self.shared.has(owner));
        Ok(mine.map(|owner| direct(chat, owner)))
    }

    async fn place_for_all(&self, chat: &ChatId) -> Result<Option<Place>, PlatformError> {
        Ok(owner(chat).filter(|owner| self.shared.has(owner)).map(|owner| direct(chat, owner)))
    }

    fn chat_prefix(&self, person: &PersonId) -> Option<String> {
        Some(format!("{person}:"))
    }

    async fn readable_scopes(&self, _person: &PersonId) -> Result<ReadableScopes, PlatformError> {
        Ok(ReadableScopes::default())
    }

    /// Owners administer Azera from their own chats. Everybody else manages their own chats.
    async fn access(&self, chat: &ChatId, person: &PersonId) -> Result<Access, PlatformError> {
        if owner(chat).as_ref() != Some(person) {
            return Ok(Access::Member);
        }
        let role = account_of(person).and_then(|account| self.shared.accounts.role_of(account));
        Ok(match role {
            Some(Role::Owner) => Access::Operator,
            Some(Role::Guest) => Access::Admin,
            None => Access::Member,
        })
    }

    /// The record holds the reply, and clients read it from there. So it is delivered as soon as it is recorded.
    async fn deliver(&self, outbound: &Outbound) -> Result<(), PlatformError> {
        self.tell("message", outbound)
    }

    async fn show_again(&self, outbound: &Outbound) -> Result<(), PlatformError> {
        self.tell("changed", outbound)
    }

    /// Clients read the record, which no longer has the reply.
    async fn retract(&self, chat: &ChatId, reply: &MessageId, _at: Timestamp) -> Result<(), PlatformError> {
        if let Some(owner) = owner(chat) {
            let data = json!({"chat_id": suffix_of(chat), "message_id": reply.as_str()});
            self.shared.events.of(&owner).push("removed", data);
        }
        Ok(())
    }

    /// Clients read the text of an answer alone.
    fn delivers_files(&self) -> bool {
        false
    }

    fn streaming(&self) -> Option<&dyn Streaming> {
        Some(self)
    }
}

#[async_trait]
impl Streaming for Web {
    async fn event(&self, Making { reply, .. }: Making<'_>, event: &StreamEvent) {
        if let Some(message) = answered(reply) {
            self.shared.live.push(&message, event);
        }
    }
}

impl Web {
    /// Tells the clients of a chat's owner of a message in it.
    fn tell(&self, name: &'static str, outbound: &Outbound) -> Result<(), PlatformError> {
        let chat = &outbound.chat;
        let owner = owner(chat).ok_or_else(|| PlatformError::Refused(format!("{chat} is no chat of the web")))?;
        let State { mood, mood_value, energy } = &outbound.state;
        let (chat_id, message_id) = (suffix_of(chat), outbound.id.as_str());
        let data = json!({"chat_id": chat_id, "message_id": message_id, "mood": mood, "mood_value": mood_value, "energy": energy});
        self.shared.events.of(&owner).push(name, data);
        Ok(())
    }

    /// Returns the web as the engine sees it.
    pub fn as_platform(self: &Arc<Self>) -> Arc<dyn Platform> {
        self.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_names_only_chats_of_its_own_account() {
        let chat = chat_id("a1", "0195-main").unwrap();
        assert_eq!(owner(&chat), person_id("a1").ok());
        assert_eq!(suffix_of(&chat), "0195-main");
        for suffix in ["", "b2:main", "../b2", "main\r\n", "m ain", &"x".repeat(65)] {
            assert!(chat_id("a1", suffix).is_err(), "{suffix:?}");
        }
        for other in ["web", "web:a1", "web::main", "web:a1:", "console:ann:main", "web:a1:b2:main"] {
            assert_eq!(owner(&ChatId::new(other).unwrap()), None, "{other}");
        }
    }
}
