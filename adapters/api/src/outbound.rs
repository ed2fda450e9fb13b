use azera_types::{ChatId, MessageId, PersonaId, Text, Timestamp};
use serde::{Deserialize, Serialize};

/// The persona's state of mind as told to the outside; `None` until minds exist.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// The mood's label.
    pub mood: Option<String>,
    /// 0 (low) to 1 (high).
    pub mood_value: Option<f32>,
    /// 0 to 1.
    pub energy: Option<f32>,
}

/// A reply to be shown.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outbound {
    /// The reply's id; delivering the same id again must not show it again.
    pub id: MessageId,
    /// Where.
    pub chat: ChatId,
    /// Who speaks.
    pub persona: PersonaId,
    /// The name to show.
    pub persona_name: String,
    /// What is said; never empty.
    pub text: Text,
    /// The message it answers.
    pub reply_to: Option<MessageId>,
    /// The mind after the reply.
    pub state: State,
}

/// Something a persona wrote unasked, to be shown.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Post {
    /// What is shown, where and by whom.
    pub outbound: Outbound,
    /// What it is: `dream`, `reflection`.
    pub kind: String,
    /// The messages it rests on.
    pub sources: Vec<MessageId>,
    /// When it was written: nothing of it stood anywhere before.
    pub at: Timestamp,
}
/// What stands between the id of a message and the number of a reply to it in the reply's id.
pub const REPLY_MARK: &str = "~r";

/// The message that a reply of this id answers. `None` where the message's id was too long to stand whole in the reply's.
pub fn answered(reply: &MessageId) -> Option<MessageId> {
    let (to, number) = reply.as_str().rsplit_once(REPLY_MARK)?;
    let whole = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()) && !to.contains(CUT_MARK);
    MessageId::new(to).ok().filter(|_| whole)
}

/// What stands in a reply's id in the place of what was cut off its message's.
pub const CUT_MARK: &str = "~~";
