use async_trait::async_trait;
use azera_types::{ChatId, MessageId, PersonId, Place, PlatformId, ReadableScopes, RealmId, Timestamp};
use thiserror::Error;

use crate::{Making, Outbound, Post, StreamEvent};

/// Why a platform could not do what it was asked.
#[derive(Debug, Error)]
pub enum PlatformError {
    /// It may work later: a lost connection, a rate limit, a server's fault.
    #[error("the platform cannot do that now: {0}")]
    Transient(String),
    /// It will not work: no such chat, no right to write.
    #[error("the platform refused: {0}")]
    Refused(String),
}

impl PlatformError {
    /// Whether the same call may succeed later.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Transient(_))
    }
}

/// What a person may do in a chat by the platform's word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Access {
    /// Talk, and manage what is their own.
    Member,
    /// Also manage the chat's realm: its settings and personas.
    Admin,
    /// Also manage the bot itself. The person at the machine's own terminal.
    Operator,
}

/// How a realm wants things, by its platform's own settings.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RealmPreferences {
    /// The IANA name of its time zone.
    pub time_zone: Option<String>,
    /// The chat that dreams and journal entries go to, as long as nobody says otherwise by command.
    pub journal: Option<ChatId>,
}

/// What the core asks of every platform. Answers are the platform's word at the time of asking.
#[async_trait]
pub trait Platform: Send + Sync {
    /// Which platform.
    fn id(&self) -> &PlatformId;

    /// What `chat` is; `None` if it does not exist or `asker` cannot read it now.
    async fn place(&self, chat: &ChatId, asker: &PersonId) -> Result<Option<Place>, PlatformError>;

    /// Where else `person` can read now, DMs apart.
    async fn readable_scopes(&self, person: &PersonId) -> Result<ReadableScopes, PlatformError>;

    /// What `person` may do in `chat` now.
    async fn access(&self, chat: &ChatId, person: &PersonId) -> Result<Access, PlatformError>;

    /// Shows a reply. Returns once the platform has it for good; called again with the same id after a crash or a
    /// transient error, until it succeeds or is refused.
    async fn deliver(&self, outbound: &Outbound) -> Result<(), PlatformError>;

    /// Shows a reply again that was shown before, because a person chose it among others.
    async fn show_again(&self, outbound: &Outbound) -> Result<(), PlatformError>;

    /// What `chat` is for all who read it, asked for nobody in particular: for what a persona writes unasked. `None` if it
    /// does not exist, or the platform can say so for a person alone.
    async fn place_for_all(&self, _chat: &ChatId) -> Result<Option<Place>, PlatformError> {
        Ok(None)
    }

    /// What the platform itself knows of how a realm wants things.
    async fn realm(&self, _realm: &RealmId) -> Result<RealmPreferences, PlatformError> {
        Ok(RealmPreferences::default())
    }

    /// Shows something a persona wrote unasked, as [`Platform::deliver`] shows a reply.
    async fn post(&self, post: &Post) -> Result<(), PlatformError> {
        self.deliver(&post.outbound).await
    }

    /// Takes a reply or a post back that was shown, for forgetting; `Ok` if it is gone or was never there. It was written at
    /// `at`.
    async fn retract(&self, chat: &ChatId, reply: &MessageId, at: Timestamp) -> Result<(), PlatformError>;

    /// The platform's way to show a reply while it is made, if it has one.
    fn streaming(&self) -> Option<&dyn Streaming> {
        None
    }
}

/// Showing a reply while it is made. Best effort: what matters comes with [`Platform::deliver`].
#[async_trait]
pub trait Streaming: Send + Sync {
    /// The next event of a reply. Must not wait for the network: drop or merge instead.
    async fn event(&self, making: Making<'_>, event: &StreamEvent);
}
