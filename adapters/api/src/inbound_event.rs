use std::future::{Future, ready};
use std::pin::Pin;

use azera_types::{ChatId, Inbound, MessageId, PersonId, RealmId, Text, Timestamp};

use crate::{ChatInfo, Edit, HostError, Outcome, SkipReason};

/// Something that happened on a platform, for [`crate::Host::submit`]. The engine asks for members and rights itself
/// when it needs them, so a change of those is no event. A reaction that means a command is a
/// [`crate::CommandLine`].
#[derive(Debug, Clone)]
pub enum InboundEvent {
    /// A chat exists. A known one keeps its settings. Messages that waited for it are answered now.
    Chat(ChatInfo),
    /// Somebody wrote a message.
    Message(Inbound),
    /// Somebody edited a message. If it was answered, the reply is generated again.
    Edit {
        /// The message.
        message: MessageId,
        /// What it says now.
        edit: Edit,
    },
    /// A message was deleted. The replies built on it are forgotten, too.
    Deletion {
        /// The message.
        message: MessageId,
    },
    /// Chunks of a long file came with a message. They have the message's scope and are forgotten with it. After an edit
    /// they must be sent again.
    Chunks {
        /// The message, which must be known.
        message: MessageId,
        /// The time of the edit that the chunks came with. Chunks of an older version than the stored one are ignored,
        /// because the person withdrew those words.
        version: Option<Timestamp>,
        /// The chunks.
        pieces: Vec<Text>,
    },
    /// Reactions below a reply are gone: their person took them back, or somebody who looks after the place removed them.
    /// Thumbs among them count no longer.
    ReactionsRemoved {
        /// The reply.
        reply: MessageId,
        /// Whose they were; `None` for everybody's.
        person: Option<PersonId>,
        /// Which ones.
        reactions: Removed,
    },
    /// The bot left a realm. Everything said in its public chats and in `chats` is forgotten.
    Left {
        /// The realm.
        realm: RealmId,
        /// Chats that belong to it.
        chats: Vec<ChatId>,
    },
}

/// Reactions that are gone, by the names that [`thumb_command`](crate::thumb_command) was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Removed {
    /// One reaction.
    One {
        /// Its name.
        name: String,
        /// Whether it is a thumb up.
        is_up: bool,
    },
    /// All whose names begin so.
    All(String),
}

impl Removed {
    /// Returns true if a thumb is one of them. An older version kept no names, so only its direction tells then.
    pub fn has(&self, reaction: Option<&str>, is_up: bool) -> bool {
        match (self, reaction) {
            (Self::One { name, .. }, Some(reaction)) => reaction == name,
            (Self::One { is_up: gone, .. }, None) => is_up == *gone,
            (Self::All(beginning), Some(reaction)) => reaction.starts_with(beginning),
            (Self::All(_), None) => true,
        }
    }
}

/// What the record did with an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recorded {
    /// The event is stored and flushed.
    New,
    /// The same message was received before.
    Known,
    /// Nothing was stored.
    Ignored(IgnoreReason),
}

/// Why an event changed nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IgnoreReason {
    /// No such message is stored, or it is not a person's.
    UnknownMessage,
    /// The chunks are stored already, their message is unknown, or it was edited since.
    NothingNew,
}

/// The end of an event, once the engine has answered it.
type Ending = Pin<Box<dyn Future<Output = Result<Outcome, HostError>> + Send>>;

/// Says what happened to an event. The work of the event goes on if the receipt is dropped.
pub struct Receipt {
    recorded: Recorded,
    ending: Ending,
}

impl std::fmt::Debug for Receipt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Receipt").field("recorded", &self.recorded).finish_non_exhaustive()
    }
}

impl Receipt {
    /// Returns a receipt for an event whose answer `ending` waits for. Dropping `ending` must not stop the answer.
    pub fn new(recorded: Recorded, ending: impl Future<Output = Result<Outcome, HostError>> + Send + 'static) -> Self {
        Self { recorded, ending: Box::pin(ending) }
    }

    /// Returns a receipt for an event that nobody answers.
    pub fn unanswered(recorded: Recorded) -> Self {
        Self::new(recorded, ready(Ok(Outcome::Skipped(SkipReason::Empty))))
    }

    /// Returns what the record did with the event.
    pub fn recorded(&self) -> Recorded {
        self.recorded
    }

    /// Waits until the reply is delivered, or until it is clear that there is none.
    pub async fn outcome(self) -> Result<Outcome, HostError> {
        self.ending.await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thumb_without_a_name_is_known_by_its_direction() {
        let one = Removed::One { name: "1 👍".to_owned(), is_up: true };
        let check = |removed: &Removed, name, is_up, want| assert_eq!(removed.has(name, is_up), want, "{removed:?}");
        check(&one, Some("1 👍"), true, true);
        check(&one, Some("1 👍🏽"), true, false);
        check(&one, None, true, true);
        check(&one, None, false, false);
        let all = Removed::All("1 ".to_owned());
        check(&all, Some("1 👎"), false, true);
        check(&all, Some("2 👎"), false, false);
        check(&all, None, false, true);
    }
}
