use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::{ChatId, PersonId, RealmId};

/// The audience that a memory comes from. It decides who may be shown the memory.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Scope {
    /// A direct message with this person.
    Dm(PersonId),
    /// This private channel or room.
    Chat(ChatId),
    /// A place that everybody in this realm can read.
    Realm(RealmId),
    /// Text that the operator wrote for everyone.
    Global,
}

/// The error for a string that is not a scope.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("a scope is dm:PERSON, chat:ID, realm:ID or global")]
pub struct ScopeError;

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dm(person) => write!(f, "dm:{person}"),
            Self::Chat(chat) => write!(f, "chat:{chat}"),
            Self::Realm(realm) => write!(f, "realm:{realm}"),
            Self::Global => f.write_str("global"),
        }
    }
}

impl FromStr for Scope {
    type Err = ScopeError;

    fn from_str(text: &str) -> Result<Self, ScopeError> {
        if text == "global" {
            return Ok(Self::Global);
        }
        let (kind, id) = text.split_once(':').ok_or(ScopeError)?;
        match kind {
            "dm" => PersonId::new(id).map(Self::Dm).map_err(|_| ScopeError),
            "chat" => ChatId::new(id).map(Self::Chat).map_err(|_| ScopeError),
            "realm" => RealmId::new(id).map(Self::Realm).map_err(|_| ScopeError),
            _ => Err(ScopeError),
        }
    }
}

impl TryFrom<String> for Scope {
    type Error = ScopeError;

    fn try_from(text: String) -> Result<Self, ScopeError> {
        text.parse()
    }
}

impl From<Scope> for String {
    fn from(scope: Scope) -> Self {
        scope.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scope_parses_from_its_own_display() {
        for text in ["dm:ann", "chat:!room:example.org", "realm:guild", "global"] {
            assert_eq!(text.parse::<Scope>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn an_id_that_looks_like_a_scope_stays_an_id() {
        let sly = Scope::Chat(ChatId::new("dm:ann").unwrap());
        assert_eq!(sly.to_string().parse::<Scope>().unwrap(), sly);
        assert_ne!(sly, Scope::Dm(PersonId::new("ann").unwrap()));
    }

    #[test]
    fn other_strings_are_not_scopes() {
        for text in ["", "dm", "dm:", "everyone", "global:x", "DM:ann"] {
            assert_eq!(text.parse::<Scope>(), Err(ScopeError), "{text:?}");
        }
    }
}
