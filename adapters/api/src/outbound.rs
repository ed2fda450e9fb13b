use azera_types::{ChatId, MessageId, PersonId, PersonaId, Text, Timestamp};
use serde::{Deserialize, Serialize};

use crate::AnswerFile;

/// The persona's state of mind as shown to the outside; `None` without a mind.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// Label of the mood.
    pub mood: Option<String>,
    /// Value of the mood, from 0 (low) to 1 (high).
    pub mood_value: Option<f32>,
    /// Energy from 0 to 1.
    pub energy: Option<f32>,
}

/// A reply to show.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outbound {
    /// The reply's id. Delivering the same id again must not show it again.
    pub id: MessageId,
    /// The chat.
    pub chat: ChatId,
    /// The persona that speaks.
    pub persona: PersonaId,
    /// The displayed name.
    pub persona_name: String,
    /// The text; never empty.
    pub text: Text,
    /// The message that it answers.
    pub reply_to: Option<MessageId>,
    /// The person whom it answers; `None` for a post that nobody asked for.
    #[serde(skip)]
    pub asker: Option<PersonId>,
    /// The mind after the reply.
    pub state: State,
    /// The help lines at the end of the text, if the reply is help for somebody in danger; otherwise empty. Such a reply
    /// is text, and is never spoken.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub help: String,
    /// Files that come with the text. A picture among them makes the message one that can be drawn again.
    #[serde(skip)]
    pub files: Vec<AnswerFile>,
    /// True if a picture among the files can be drawn larger.
    #[serde(skip)]
    pub can_upscale: bool,
}

/// A writing to post without a question.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Post {
    /// The text, the chat and the persona.
    pub outbound: Outbound,
    /// Its kind: `dream`, `reflection`.
    pub kind: String,
    /// Its source messages.
    pub sources: Vec<MessageId>,
    /// When it was written. It was posted nowhere before that time.
    pub at: Timestamp,
}
/// Separates the message's id from the reply's number in the id of a reply.
pub const REPLY_MARK: &str = "~r";

/// Returns the message that a reply answers. `None` if the message's id was too long to be contained in the reply's id.
pub fn answered(reply: &MessageId) -> Option<MessageId> {
    let (to, number) = reply.as_str().rsplit_once(REPLY_MARK)?;
    let whole = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()) && !to.contains(CUT_MARK);
    MessageId::new(to).ok().filter(|_| whole)
}

/// Marks in a reply's id that the message's id was cut.
pub const CUT_MARK: &str = "~~";
