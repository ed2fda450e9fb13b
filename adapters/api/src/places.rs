use async_trait::async_trait;
use azera_types::{ChatId, PersonId, PlatformId, RealmId};

use crate::{ConnectionHistory, HostError, Invitation};

/// A platform with its shared places, for the operator. It holds names and counts, and nothing that people said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlatformPlaces {
    /// The platform.
    pub platform: PlatformId,
    /// Whether its server can be reached, as far as the adapter knows; `None` if it does not say.
    pub is_reachable: Option<bool>,
    /// Since when, and what was wrong last; `None` if the adapter does not say.
    pub connection: Option<ConnectionHistory>,
    /// How the bot comes to further places, if the adapter knows.
    pub invitation: Option<Invitation>,
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
    /// When replies are also spoken.
    pub spoken: SpokenReplies,
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

/// When replies in a place are also spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpokenReplies {
    /// Those to voice messages.
    Auto,
    /// All.
    Always,
    /// None.
    Never,
}

/// A change of a shared place. Each is what a command does there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlaceChange {
    /// Another persona answers, by its name or file name: `/persona use`.
    Persona(String),
    /// One more persona answers when it is called, or no more: `/persona invite` and `/persona dismiss`.
    Invited(String, bool),
    /// When the persona answers: `/answer`.
    Answers(AnswerMode),
    /// Whether the journal of this place is posted here, or nowhere: `/journal channel`.
    Journal(bool),
    /// When replies are also spoken: `/voice replies`.
    Spoken(SpokenReplies),
}

/// What became of the changes of a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlaceChanged {
    /// What was said to each change that was made.
    pub done: Vec<String>,
    /// Why the next one was refused. Those after it were not tried.
    pub refused: Option<String>,
}

/// Lists and changes the places in which the personas live. Only operators may do that.
#[async_trait]
pub trait PlaceHost: Send + Sync {
    /// Returns the shared places of every platform but one, as the platforms report them now. The platform that asks leaves
    /// itself out if each of its chats belongs to one person.
    async fn places(&self, but: &PlatformId) -> Result<Vec<PlatformPlaces>, HostError>;

    /// Changes a shared place in the name of an operator, one change after the other, by the rules of the commands.
    ///
    /// # Errors
    /// [`HostError::NotAllowed`] for a direct message, and for a chat that is unknown or that its platform does not have now.
    async fn change_place(
        &self,
        operator: &PersonId,
        chat: &ChatId,
        changes: Vec<PlaceChange>,
    ) -> Result<PlaceChanged, HostError>;
}
