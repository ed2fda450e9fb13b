use azera_adapter::{AnswerFile, Hit, SkipReason, State, Turn};
use azera_types::{ChatId, MessageId, PersonId, PersonaId, Timestamp};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;

use crate::platform::Delivered;

/// An event of the output: one JSON object per line, with `at` added to these fields.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Output<'a> {
    /// A reply was delivered.
    Reply {
        /// Its id.
        id: &'a MessageId,
        /// The message that it answers.
        to: Option<&'a MessageId>,
        /// The chat.
        chat: &'a ChatId,
        /// The persona.
        persona: &'a PersonaId,
        /// The text.
        text: &'a str,
        /// Label of the mood; null without a mind.
        mood: Option<&'a str>,
        /// Value of the mood, from 0 (low) to 1 (high); null without a mind.
        mood_value: Option<f32>,
        /// Energy from 0 to 1; null without a mind.
        energy: Option<f32>,
        /// Tokens of the prompt. Null, like the three below, if the reply was generated before a restart and delivered
        /// after it.
        prompt_tokens: Option<usize>,
        /// Prompt tokens reused from the cache.
        cached_tokens: Option<usize>,
        /// Prompt tokens evaluated for this reply.
        evaluated_tokens: Option<usize>,
        /// Generated tokens.
        completion_tokens: Option<usize>,
        /// The memories in the prompt.
        recalled: &'a [Hit],
    },
    /// An earlier reply was shown again, because somebody chose it among others. This is not a second `reply`, so that
    /// counting those counts deliveries.
    ShownAgain {
        /// The reply's id.
        id: &'a MessageId,
        /// The chat.
        chat: &'a ChatId,
    },
    /// A writing was posted.
    Post {
        /// Its id.
        id: &'a MessageId,
        /// The chat.
        chat: &'a ChatId,
        /// The persona.
        persona: &'a PersonaId,
        /// Its kind: `dream`, `reflection`.
        kind: &'a str,
        /// The text.
        text: &'a str,
        /// Its source messages.
        sources: &'a [MessageId],
        /// Its files.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        files: Vec<OutFile<'a>>,
    },
    /// A message got no reply.
    #[serde(rename = "silent")]
    Skipped {
        /// The message.
        to: &'a MessageId,
        /// The chat; missing if the message is from before this replay.
        #[serde(skip_serializing_if = "Option::is_none")]
        chat: Option<&'a ChatId>,
        /// The reason in words.
        why: &'static str,
    },
    /// A search of the memories.
    #[serde(rename = "probe")]
    Search {
        /// The text searched for.
        query: &'a str,
        /// The chat.
        chat: &'a ChatId,
        /// The person.
        person: &'a PersonId,
        /// The hits, best first.
        hits: &'a [Hit],
    },
    /// A command was answered.
    Command {
        /// The chat.
        chat: &'a ChatId,
        /// The person.
        person: &'a PersonId,
        /// True if it succeeded.
        ok: bool,
        /// The answer.
        text: &'a str,
        /// The chat to continue in, if there is a new one.
        #[serde(skip_serializing_if = "Option::is_none")]
        go_to: Option<&'a ChatId>,
        /// Files that come with the answer.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        files: Vec<OutFile<'a>>,
    },
    /// An event failed.
    Error {
        /// The message.
        #[serde(skip_serializing_if = "Option::is_none")]
        to: Option<&'a MessageId>,
        /// The chat.
        #[serde(skip_serializing_if = "Option::is_none")]
        chat: Option<&'a ChatId>,
        /// The person.
        #[serde(skip_serializing_if = "Option::is_none")]
        person: Option<&'a PersonId>,
        /// The error.
        text: String,
    },
}

/// A file in the output.
#[derive(Serialize)]
pub struct OutFile<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its media type.
    pub mime: &'a str,
    /// Its content, in base64.
    pub content: String,
}

impl<'a> OutFile<'a> {
    pub(crate) fn of(file: &'a AnswerFile) -> Self {
        let content = STANDARD.encode(&file.content.0);
        Self { name: &file.part.name, mime: &file.part.mime, content }
    }
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
    /// Returns the output for a turn with a reply.
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

    /// Returns the output for a reply that was delivered outside a turn of this replay.
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
                files: outbound.files.iter().map(OutFile::of).collect(),
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

    /// Returns the output for a message without a reply.
    pub fn skipped(to: &'a MessageId, chat: Option<&'a ChatId>, reason: SkipReason) -> Self {
        Self::Skipped { to, chat, why: reason.why() }
    }
}
