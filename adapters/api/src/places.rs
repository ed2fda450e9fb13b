use async_trait::async_trait;
use azera_types::{ChatId, PlatformId, RealmId};

use crate::HostError;

/// A platform with its shared places, for the operator. It holds names and counts, and nothing that people said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlatformPlaces {
    /// The platform.
    pub platform: PlatformId,
    /// Whether its server can be reached, as far as the adapter knows; `None` if it does not say.
    pub is_reachable: Option<bool>,
    /// Its servers, spaces and lone rooms, by their names.
    pub realms: Vec<RealmPlaces>,
    /// Number of direct messages. They are not listed: their names are those of people.
    pub direct: usize,
    /// Number of chats that the platform knows nothing about at this moment.
    pub unknown: usize,
}

/// A realm with its chats.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RealmPlaces {
    /// The realm; `None` for private chats outside of any.
    pub realm: Option<RealmId>,
    /// The name that people see.
    pub name: Option<String>,
    /// Its chats, by their names.
    pub chats: Vec<ChatPlace>,
}

/// A shared chat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChatPlace {
    /// The chat.
    pub chat: ChatId,
    /// The name that people see.
    pub name: Option<String>,
    /// Whether only its members can read it.
    pub is_private: bool,
    /// The name of the persona that answers.
    pub persona: String,
    /// The names of the personas that answer when they are called.
    pub invited: Vec<String>,
    /// When a persona answers.
    pub answers: AnswerMode,
    /// The chat in which dreams and journal entries of this place are posted.
    pub journal: Option<ChatId>,
}

/// When a persona answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerMode {
    /// When it is mentioned, replied to or called.
    Addressed,
    /// Everything that is not meant for somebody else.
    Always,
    /// Never.
    Never,
}

/// Lists the places in which the personas live. Only operators may see them.
#[async_trait]
pub trait PlaceHost: Send + Sync {
    /// Returns the shared places of every platform but one, as the platforms report them now. The platform that asks leaves
    /// itself out if each of its chats belongs to one person.
    async fn places(&self, but: &PlatformId) -> Result<Vec<PlatformPlaces>, HostError>;
}
