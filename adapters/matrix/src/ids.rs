//! Converts Matrix ids to Azera's ids and back.

use azera_types::{ChatId, IdError, MessageId, PersonId, RealmId};
use matrix_sdk::ruma::{EventId, OwnedEventId, OwnedRoomId, OwnedUserId, RoomId, UserId};

/// Returns the chat of a room or a thread.
pub fn chat_id(room: &RoomId, thread: Option<&EventId>) -> Result<ChatId, IdError> {
    match thread {
        None => ChatId::new(room),
        Some(root) => ChatId::new(format!("{room}/{root}")),
    }
}

/// Returns the person of an account.
pub fn person_id(user: &UserId) -> Result<PersonId, IdError> {
    PersonId::new(user)
}

pub(crate) fn message_id(event: &EventId) -> Result<MessageId, IdError> {
    MessageId::new(event)
}

pub(crate) fn realm_id(room: &RoomId) -> Result<RealmId, IdError> {
    RealmId::new(room)
}

/// Returns the room of a chat, and the root if it is a thread; `None` if it is not a chat on Matrix.
pub(crate) fn place_of(chat: &ChatId) -> Option<(OwnedRoomId, Option<OwnedEventId>)> {
    // A homeserver's room id does not contain a slash followed by `$`.
    match chat.as_str().split_once("/$") {
        None => Some((RoomId::parse(chat.as_str()).ok()?, None)),
        Some((room, root)) => Some((RoomId::parse(room).ok()?, Some(EventId::parse(format!("${root}")).ok()?))),
    }
}

pub(crate) fn user_of(person: &PersonId) -> Option<OwnedUserId> {
    UserId::parse(person.as_str()).ok()
}

pub(crate) fn event_of(message: &MessageId) -> Option<OwnedEventId> {
    EventId::parse(message.as_str()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chat_ids_are_parsed_as_they_were_written() {
        #[track_caller]
        fn check(room: &str, root: Option<&str>, want: &str) {
            let (room, root) = (RoomId::parse(room).unwrap(), root.map(|root| EventId::parse(root).unwrap()));
            let chat = chat_id(&room, root.as_deref()).unwrap();
            assert_eq!(chat.as_str(), want);
            assert_eq!(place_of(&chat), Some((room, root)));
        }
        check("!a:example.org", None, "!a:example.org");
        check("!of-version-12", None, "!of-version-12");
        check("!a:example.org", Some("$root"), "!a:example.org/$root");
        check("!a/b:example.org", Some("$r/o-t_"), "!a/b:example.org/$r/o-t_");
    }

    #[test]
    fn ids_of_other_platforms_are_refused() {
        assert_eq!(place_of(&ChatId::new("console:ann:main").unwrap()), None);
        assert_eq!(user_of(&PersonId::new("console:ann").unwrap()), None);
        assert_eq!(event_of(&MessageId::new("m1~r0").unwrap()), None);
    }
}
