use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The longest id, in bytes.
pub const MAX_ID_BYTES: usize = 255;

/// The reasons to reject a string as an id.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum IdError {
    /// The string is empty.
    #[error("an id may not be empty")]
    Empty,
    /// The string is longer than [`MAX_ID_BYTES`].
    #[error("an id may have {MAX_ID_BYTES} bytes at most, this one has {0}")]
    TooLong(usize),
    /// The string contains a control character; NUL counts as one.
    #[error("an id may not contain control characters")]
    Control,
    /// The string does not have the form of a memory id.
    #[error("a memory id looks like m42")]
    NotAMemory,
    /// The string is not the SHA-256 of a file.
    #[error("a file's id has 64 hexadecimal digits")]
    NotABlob,
}

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(Arc<str>);

        impl $name {
            /// Creates an id from any string of 1 to [`MAX_ID_BYTES`] bytes without control characters.
            pub fn new(id: impl AsRef<str>) -> Result<Self, IdError> {
                let id = id.as_ref();
                if id.is_empty() {
                    return Err(IdError::Empty);
                }
                if id.len() > MAX_ID_BYTES {
                    return Err(IdError::TooLong(id.len()));
                }
                if id.chars().any(char::is_control) {
                    return Err(IdError::Control);
                }
                Ok(Self(id.into()))
            }

            /// Returns the id as a string.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}({})", stringify!($name), &self.0)
            }
        }

        impl FromStr for $name {
            type Err = IdError;

            fn from_str(id: &str) -> Result<Self, IdError> {
                Self::new(id)
            }
        }

        impl TryFrom<String> for $name {
            type Error = IdError;

            fn try_from(id: String) -> Result<Self, IdError> {
                Self::new(id)
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> Self {
                id.as_str().to_owned()
            }
        }
    };
}

id!(
    /// A platform that an adapter connects, such as `console` or `sim`.
    PlatformId
);
id!(
    /// A realm: a server, a space, or the local machine.
    RealmId
);
id!(
    /// One conversation: a channel, thread, direct message, room or console session.
    ChatId
);
id!(
    /// A human.
    PersonId
);
id!(
    /// An AI character.
    PersonaId
);
id!(
    /// One message of a person or a persona. Message ids are unique across all chats.
    MessageId
);

/// One memory. The record hands out the numbers in ascending order and never reuses one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct MemoryId(pub u64);

impl fmt::Display for MemoryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "m{}", self.0)
    }
}

impl FromStr for MemoryId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        let number = text.strip_prefix('m').ok_or(IdError::NotAMemory)?;
        number.parse().map(Self).map_err(|_| IdError::NotAMemory)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_checked() {
        #[track_caller]
        fn check(text: &str, want: Result<(), IdError>) {
            assert_eq!(ChatId::new(text).map(|_| ()), want, "{text:?}");
        }
        check("!room:example.org", Ok(()));
        check("ünï çødé", Ok(()));
        check("", Err(IdError::Empty));
        check("a\0b", Err(IdError::Control));
        check(&"x".repeat(256), Err(IdError::TooLong(256)));
    }

    #[test]
    fn an_invalid_id_does_not_deserialize() {
        assert!(serde_json::from_str::<PersonId>(r#""""#).is_err());
        assert_eq!(serde_json::from_str::<PersonId>(r#""ann""#).unwrap().as_str(), "ann");
    }

    #[test]
    fn a_memory_id_parses_from_its_own_display() {
        assert_eq!("m42".parse(), Ok(MemoryId(42)));
        assert_eq!(MemoryId(7).to_string(), "m7");
        assert_eq!("42".parse::<MemoryId>(), Err(IdError::NotAMemory));
    }
}
