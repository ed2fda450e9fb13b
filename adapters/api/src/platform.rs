use async_trait::async_trait;
use azera_types::{ChatId, MessageId, PersonId, Place, PlatformId, ReadableScopes, RealmId, Timestamp};
use thiserror::Error;

use crate::{ConnectionHistory, Making, Outbound, Post, Questions, StreamEvent, VoiceChannels, VoiceMessages};

/// An error of a call to a platform.
#[derive(Debug, Error)]
pub enum PlatformError {
    /// The same call may succeed later: a lost connection, a rate limit, a fault of the server.
    #[error("the platform cannot do that now: {0}")]
    Transient(String),
    /// The call can never succeed: no such chat, no permission to write.
    #[error("the platform refused: {0}")]
    Refused(String),
}

impl PlatformError {
    /// Returns true if the same call may succeed later.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Transient(_))
    }
}

/// What a person may do in a chat, according to the platform.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Access {
    /// Talk, and manage their own data.
    Member,
    /// Also manage the settings and personas of the chat's realm.
    Admin,
    /// Also manage the bot itself: the person at the machine's own terminal.
    Operator,
}

/// A realm's own settings on its platform.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RealmPreferences {
    /// IANA name of its time zone.
    pub time_zone: Option<String>,
    /// The chat for dreams and journal entries, unless a command sets another.
    pub journal: Option<ChatId>,
}

/// The interface of a platform that the engine calls. Answers are valid at that moment only.
#[async_trait]
pub trait Platform: Send + Sync {
    /// Returns the platform's id.
    fn id(&self) -> &PlatformId;

    /// Returns what `chat` is; `None` if it does not exist or `asker` cannot read it now.
    async fn place(&self, chat: &ChatId, asker: &PersonId) -> Result<Option<Place>, PlatformError>;

    /// Returns what else `person` can read now, without DMs.
    async fn readable_scopes(&self, person: &PersonId) -> Result<ReadableScopes, PlatformError>;

    /// Returns what `person` may do in `chat` now.
    async fn access(&self, chat: &ChatId, person: &PersonId) -> Result<Access, PlatformError>;

    /// Shows a reply. Returns once the platform has accepted it. After a crash or a transient error it is called again
    /// with the same id, until it succeeds or is refused.
    async fn deliver(&self, outbound: &Outbound) -> Result<(), PlatformError>;

    /// Shows an earlier reply again, because a person chose it among others.
    async fn show_again(&self, outbound: &Outbound) -> Result<(), PlatformError>;

    /// Returns how the ids of all chats that a person can read begin, if the platform's ids say that. Lists then look at
    /// no other chats.
    fn chat_prefix(&self, _person: &PersonId) -> Option<String> {
        None
    }

    /// Returns what `chat` is for everyone who reads it, for posts without a question. `None` if it does not exist, or
    /// if the platform can answer for one person only.
    async fn place_for_all(&self, _chat: &ChatId) -> Result<Option<Place>, PlatformError> {
        Ok(None)
    }

    /// Returns the realm's own settings on the platform.
    async fn realm(&self, _realm: &RealmId) -> Result<RealmPreferences, PlatformError> {
        Ok(RealmPreferences::default())
    }

    /// Returns true if the platform marks the chat as one for adults alone.
    async fn is_for_adults(&self, _chat: &ChatId) -> Result<bool, PlatformError> {
        Ok(false)
    }

    /// Returns true if people hear the replies in a chat instead of reading them, as in a call.
    fn is_heard(&self, _chat: &ChatId) -> bool {
        false
    }

    /// Shows a post like [`Platform::deliver`] shows a reply.
    async fn post(&self, post: &Post) -> Result<(), PlatformError> {
        self.deliver(&post.outbound).await
    }

    /// Retracts a reply or post that was written at `at`, because it was forgotten. `Ok` if it does not exist any more.
    async fn retract(&self, chat: &ChatId, reply: &MessageId, at: Timestamp) -> Result<(), PlatformError>;

    /// Returns true if people get the files that come with the answer to a command.
    fn delivers_files(&self) -> bool {
        true
    }

    /// Returns the platform's interface for streaming replies, if it has one.
    fn streaming(&self) -> Option<&dyn Streaming> {
        None
    }

    /// Returns the platform's interface for voice messages, if it has some.
    fn voice_messages(&self) -> Option<&dyn VoiceMessages> {
        None
    }

    /// Returns the platform's voice channels, if it has some.
    fn voice(&self) -> Option<&dyn VoiceChannels> {
        None
    }

    /// Returns how to ask somebody; `None` where the bot asks nobody.
    fn questions(&self) -> Option<&dyn Questions> {
        None
    }

    /// Returns what the platform tells the operator about its places, if it does.
    fn place_names(&self) -> Option<&dyn PlaceNames> {
        None
    }
}

/// How a bot comes to further places.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Invitation {
    /// An admin opens this address in a browser.
    Link(String),
    /// Members invite this account.
    Account(String),
}

/// Tells the operator whether a platform is there, and what its places are called.
#[async_trait]
pub trait PlaceNames: Send + Sync {
    /// Returns true if the platform's server can be reached, as far as is known at this moment.
    async fn is_reachable(&self) -> bool;

    /// Returns since when it can be reached, or cannot, and what was wrong last.
    fn history(&self) -> ConnectionHistory;

    /// Returns how the bot comes to further places; `None` before the platform said who the bot is.
    async fn invitation(&self) -> Option<Invitation>;

    /// Returns the name that people see of a realm, if the platform knows it.
    async fn realm_name(&self, realm: &RealmId) -> Option<String>;

    /// Returns the name that people see of a chat, if the platform knows it and people chose it.
    async fn chat_name(&self, chat: &ChatId) -> Option<String>;
}

/// Shows a reply while it is generated. This is best effort: the final text comes with [`Platform::deliver`].
#[async_trait]
pub trait Streaming: Send + Sync {
    /// Handles the next event of a reply. Must not wait for the network; drop or merge events instead.
    async fn event(&self, making: Making<'_>, event: &StreamEvent);

    /// Shows how far a picture is, in the message that will show it. Must not wait for the network; drop older texts
    /// instead. [`Platform::post`] or [`Platform::retract`] with the same id ends it.
    async fn progress(&self, _making: Making<'_>, _progress: PictureProgress<'_>) {}
}

/// How far a picture is, for the message that will show it.
#[derive(Clone, Copy)]
pub struct PictureProgress<'a> {
    /// When it was asked for; the message did not exist before.
    pub since: Timestamp,
    /// The text of the message.
    pub text: &'a str,
    /// A small JPEG file of how it looks so far. It goes with the next text, and is no part of the finished message.
    pub preview: Option<&'a [u8]>,
}
