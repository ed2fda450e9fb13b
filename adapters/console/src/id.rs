use azera_types::{ChatId, Clock, IdError, MAX_NAME_CHARS, MessageId, PersonId};
use uuid::{NoContext, Timestamp, Uuid};

use crate::PLATFORM;

/// Bytes of a person's id, so that the ids of their chats stay within [`azera_types::MAX_ID_BYTES`].
pub const MAX_PERSON_BYTES: usize = 160;

/// Somebody who speaks at the console.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Person {
    /// `console:` and the name in lower case, so that Ann and ann are one.
    pub id: PersonId,
    /// The name as given, at most [`MAX_NAME_CHARS`] characters.
    pub name: String,
}

impl Person {
    /// The person of a name, surrounding spaces apart. Fails if nothing is left, if it has control characters, or if it is
    /// longer than [`MAX_PERSON_BYTES`] as an id.
    pub fn new(name: &str) -> Result<Self, IdError> {
        let name: String = name.trim().chars().take(MAX_NAME_CHARS).collect();
        if name.is_empty() {
            return Err(IdError::Empty);
        }
        let id = format!("{PLATFORM}:{}", name.to_lowercase());
        if id.len() > MAX_PERSON_BYTES {
            return Err(IdError::TooLong(id.len()));
        }
        Ok(Self { id: PersonId::new(id)?, name })
    }
}

/// The chat of `person` that ends in `suffix`: `console:ann:1`. The suffix may not contain a colon, for [`owner`] finds
/// the person before the last one; a colon in it becomes a dash.
pub fn chat_id(person: &PersonId, suffix: &str) -> Result<ChatId, IdError> {
    if suffix.is_empty() {
        return Err(IdError::Empty);
    }
    ChatId::new(format!("{person}:{}", suffix.replace(':', "-")))
}

/// Whose chat it is; `None` if it is no chat of the console.
pub fn owner(chat: &ChatId) -> Option<PersonId> {
    let (person, suffix) = chat.as_str().rsplit_once(':')?;
    let name = person.strip_prefix(PLATFORM)?.strip_prefix(':')?;
    if name.is_empty() || suffix.is_empty() {
        return None;
    }
    PersonId::new(person).ok()
}

/// An id for a message typed now, unique over all consoles and in order of time.
pub(crate) fn message_id(clock: &dyn Clock) -> Result<MessageId, IdError> {
    let now = clock.now();
    let seconds = u64::try_from(now.as_second()).unwrap_or(0);
    let nanoseconds = u32::try_from(now.subsec_nanosecond()).unwrap_or(0);
    let unique = Uuid::new_v7(Timestamp::from_unix(NoContext, seconds, nanoseconds));
    MessageId::new(format!("{PLATFORM}:{unique}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chat_tells_its_owner() {
        for (name, suffix) in [("ann", "1"), ("Ann Lee", "01JABCDEF"), ("a:b", "1"), ("Ünï", "x y"), ("ann", "1:2")] {
            let person = Person::new(name).unwrap();
            let chat = chat_id(&person.id, suffix).unwrap();
            assert_eq!(owner(&chat), Some(person.id.clone()), "{chat}");
            // The core makes the ids of further chats out of those it has seen.
            assert_eq!(owner(&chat_id(&owner(&chat).unwrap(), "2").unwrap()), Some(person.id));
        }
    }

    #[test]
    fn what_is_no_chat_of_the_console_has_no_owner() {
        for id in ["hall", "console", "console:ann", "console::1", "console:ann:", "matrix:ann:1", "consoles:ann:1"] {
            assert_eq!(owner(&ChatId::new(id).unwrap()), None, "{id}");
        }
    }

    #[test]
    fn people_go_by_their_names() {
        #[track_caller]
        fn check(name: &str, want: Result<(&str, &str), IdError>) {
            let person = Person::new(name);
            assert_eq!(person.as_ref().map(|p| (p.id.as_str(), p.name.as_str())).map_err(Clone::clone), want);
        }
        check(" Ann ", Ok(("console:ann", "Ann")));
        check("", Err(IdError::Empty));
        check("  ", Err(IdError::Empty));
        check("a\u{1b}b", Err(IdError::Control));
        check(&"🦀".repeat(64), Err(IdError::TooLong(264)));
    }

    #[test]
    fn the_longest_person_can_have_chats() {
        let person = Person::new(&"é".repeat(64)).unwrap();
        assert!(chat_id(&person.id, "01JABCDEFGHJKMNPQRSTVWXYZ0").is_ok());
    }
}
