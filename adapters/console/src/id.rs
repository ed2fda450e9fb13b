use azera_types::{ChatId, Clock, IdError, MAX_NAME_CHARS, MessageId, PersonId};
use uuid::{NoContext, Timestamp, Uuid};

use crate::PLATFORM;

/// Longest id of a person in bytes, so that the ids of their chats stay within [`azera_types::MAX_ID_BYTES`].
pub const MAX_PERSON_BYTES: usize = 160;

/// A person at the console.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Person {
    /// `console:` and the name in lower case, so that Ann and ann are the same.
    pub id: PersonId,
    /// The name as given, at most [`MAX_NAME_CHARS`] characters.
    pub name: String,
}

impl Person {
    /// Returns the person with this name, without surrounding spaces. Fails if nothing is left, if the name has control
    /// characters, or if its id is longer than [`MAX_PERSON_BYTES`].
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

/// Returns the chat of `person` with a suffix, such as `console:ann:1`. A colon in the suffix becomes a dash, because
/// [`owner`] takes the part before the last colon.
pub fn chat_id(person: &PersonId, suffix: &str) -> Result<ChatId, IdError> {
    if suffix.is_empty() {
        return Err(IdError::Empty);
    }
    ChatId::new(format!("{person}:{}", suffix.replace(':', "-")))
}

/// Returns the owner of a chat; `None` if it is not a chat of the console.
pub fn owner(chat: &ChatId) -> Option<PersonId> {
    let (person, suffix) = chat.as_str().rsplit_once(':')?;
    let name = person.strip_prefix(PLATFORM)?.strip_prefix(':')?;
    if name.is_empty() || suffix.is_empty() {
        return None;
    }
    PersonId::new(person).ok()
}

/// Returns an id for a new message, unique over all consoles and ordered by time.
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
            // The engine derives the ids of further chats from known ones.
            assert_eq!(owner(&chat_id(&owner(&chat).unwrap(), "2").unwrap()), Some(person.id));
        }
    }

    #[test]
    fn other_chats_have_no_owner() {
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
