use azera_adapter::{Hit, SkipReason, State, Turn};
use azera_types::{ChatId, MessageId, PersonId, PersonaId, Timestamp};
use serde::Serialize;

use crate::platform::Delivered;

/// What happened, as it is printed: one JSON object a line, `at` beside these fields.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Output<'a> {
    /// A reply was delivered.
    Reply {
        /// Its id.
        id: &'a MessageId,
        /// The message it answers.
        to: Option<&'a MessageId>,
        /// Where.
        chat: &'a ChatId,
        /// Who answers.
        persona: &'a PersonaId,
        /// What is said.
        text: &'a str,
        /// The mood's label; null until minds exist.
        mood: Option<&'a str>,
        /// 0 (low) to 1 (high); null until minds exist.
        mood_value: Option<f32>,
        /// 0 to 1; null until minds exist.
        energy: Option<f32>,
        /// Tokens of the prompt; null, like the three below, if the reply was made before the last start and delivered
        /// after it.
        prompt_tokens: Option<usize>,
        /// Of these, reused from the cache.
        cached_tokens: Option<usize>,
        /// Of these, evaluated for this reply.
        evaluated_tokens: Option<usize>,
        /// Tokens generated.
        completion_tokens: Option<usize>,
        /// The memories that stood in the prompt.
        recalled: &'a [Hit],
    },
    /// A reply told of before was shown again, because somebody chose it among others. No second `reply`: whoever counts
    /// those counts deliveries.
    ShownAgain {
        /// The reply's id.
        id: &'a MessageId,
        /// Where.
        chat: &'a ChatId,
    },
    /// Something a persona wrote unasked was posted.
    Post {
        /// Its id.
        id: &'a MessageId,
        /// Where.
        chat: &'a ChatId,
        /// Who wrote it.
        persona: &'a PersonaId,
        /// What it is: `dream`, `reflection`.
        kind: &'a str,
        /// What was written.
        text: &'a str,
        /// The messages it rests on.
        sources: &'a [MessageId],
    },
    /// A message was not answered.
    #[serde(rename = "silent")]
    Skipped {
        /// The message.
        to: &'a MessageId,
        /// Where; left out if the message was said before this replay.
        #[serde(skip_serializing_if = "Option::is_none")]
        chat: Option<&'a ChatId>,
        /// Why not, in words.
        why: &'static str,
    },
    /// A recall by hand.
    #[serde(rename = "probe")]
    Search {
        /// What was looked for.
        query: &'a str,
        /// Where.
        chat: &'a ChatId,
        /// By whom.
        person: &'a PersonId,
        /// What was found, best first.
        hits: &'a [Hit],
    },
    /// A command was answered.
    Command {
        /// Where.
        chat: &'a ChatId,
        /// By whom it was given.
        person: &'a PersonId,
        /// Whether it did what it was told.
        ok: bool,
        /// The answer.
        text: &'a str,
        /// The chat to go on in, if it made one.
        #[serde(skip_serializing_if = "Option::is_none")]
        go_to: Option<&'a ChatId>,
    },
    /// Something could not be done.
    Error {
        /// The message it is about.
        #[serde(skip_serializing_if = "Option::is_none")]
        to: Option<&'a MessageId>,
        /// Where.
        #[serde(skip_serializing_if = "Option::is_none")]
        chat: Option<&'a ChatId>,
        /// Whose doing it was.
        #[serde(skip_serializing_if = "Option::is_none")]
        person: Option<&'a PersonId>,
        /// What went wrong.
        text: String,
    },
}

/// A line of the output.
#[derive(Serialize)]
pub(crate) struct OutLine<'a> {
    /// The virtual time.
    pub(crate) at: Timestamp,
    #[serde(flatten)]
    pub(crate) output: Output<'a>,
}

impl<'a> Output<'a> {
    /// A turn whose reply was delivered.
    pub fn turn(turn: &'a Turn) -> Self {
        let State { mood, mood_value, energy } = &turn.state;
        Self::Reply {
            id: &turn.reply,
            to: Some(&turn.to),
            chat: &turn.chat,
            persona: &turn.persona,
            text: &turn.text,
            mood: mood.as_deref(),
            mood_value: *mood_value,
            energy: *energy,
            prompt_tokens: Some(turn.usage.prompt_tokens),
            cached_tokens: Some(turn.usage.cached_tokens),
            evaluated_tokens: Some(turn.usage.evaluated_tokens),
            completion_tokens: Some(turn.usage.completion_tokens),
            recalled: &turn.recalled,
        }
    }

    /// A reply that arrived apart from the turn that made it.
    pub(crate) fn delivered(delivered: &'a Delivered) -> Self {
        let outbound = &delivered.outbound;
        if delivered.again {
            return Self::ShownAgain { id: &outbound.id, chat: &outbound.chat };
        }
        if let Some((kind, sources)) = &delivered.post {
            return Self::Post {
                id: &outbound.id,
                chat: &outbound.chat,
                persona: &outbound.persona,
                kind,
                text: &outbound.text,
                sources,
            };
        }
        let State { mood, mood_value, energy } = &outbound.state;
        Self::Reply {
            id: &outbound.id,
            to: outbound.reply_to.as_ref(),
            chat: &outbound.chat,
            persona: &outbound.persona,
            text: &outbound.text,
            mood: mood.as_deref(),
            mood_value: *mood_value,
            energy: *energy,
            prompt_tokens: None,
            cached_tokens: None,
            evaluated_tokens: None,
            completion_tokens: None,
            recalled: &[],
        }
    }

    /// A message that was left unanswered.
    pub fn skipped(to: &'a MessageId, chat: Option<&'a ChatId>, reason: SkipReason) -> Self {
        Self::Skipped { to, chat, why: reason.why() }
    }
}
