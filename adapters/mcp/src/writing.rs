//! Tools that change memories: `remember`, `forget` and `create_reflection`.

use azera_adapter::WritingKind;
use azera_types::{MAX_TEXT_BYTES, MemoryId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::memories::parse_id;
use crate::session::Caller;
use crate::texts::QUOTED;
use crate::writings::Writing;

/// Something to keep.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ToKeep {
    /// What to keep, as one statement that is clear on its own: name people, things and days.
    pub(crate) text: String,
}

/// A memory that was kept.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Kept {
    /// The id of the new memory. `forget` takes it.
    pub(crate) id: String,
}

/// A statement that changed.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ToUpdate {
    /// The id of the memory that no longer holds, such as `m42`. It must be the person's own statement.
    pub(crate) id: String,
    /// What holds now, as one statement that is clear on its own.
    pub(crate) text: String,
}

/// Two statements of the person, of which one replaces the other.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ToSupersede {
    /// The id of the memory that no longer holds.
    pub(crate) older: String,
    /// The id of the memory that holds in its place. Leave it out to let the older one hold again.
    #[serde(default)]
    pub(crate) newer: Option<String>,
}

/// Whether a memory helped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Rating {
    /// It helped.
    Helpful,
    /// It did not help.
    Unhelpful,
    /// Takes an earlier rating back.
    None,
}

/// What the person thinks of a memory.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Feedback {
    /// The id of a memory that a search found, such as `m42`.
    pub(crate) id: String,
    /// Whether it helped.
    pub(crate) rating: Rating,
}

/// What was done.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Done {
    /// What Azera says about it.
    pub(crate) answer: String,
}

/// Something to forget.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ToForget {
    /// The id of a memory, such as `m42`.
    pub(crate) id: String,
    /// Also forget the replies that were built on it.
    #[serde(default)]
    pub(crate) quotes: bool,
}

/// What was forgotten.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Forgotten {
    /// The id that is gone.
    pub(crate) id: String,
    /// The receipt: how many messages, replies, memories and records are gone, and which replies still quote it.
    pub(crate) receipt: String,
}

/// A reflection that the persona wrote.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Composed {
    /// What the texts are.
    pub(crate) notice: &'static str,
    /// The persona's answer.
    pub(crate) answer: String,
    /// The newest entry of its journal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) newest: Option<Writing>,
}

impl Caller {
    pub(crate) async fn remember(&self, keep: ToKeep) -> Result<Kept, Failure> {
        let text = statement(&keep.text)?;
        self.begin().await?;
        kept(self.command(&format!("/remember {text}")).await?)
    }

    pub(crate) async fn update(&self, update: ToUpdate) -> Result<Kept, Failure> {
        let (id, text) = (parse_id(&update.id)?, statement(&update.text)?);
        self.begin().await?;
        kept(self.command(&format!("/memory update {id} {text}")).await?)
    }

    pub(crate) async fn supersede(&self, two: ToSupersede) -> Result<Done, Failure> {
        let older = parse_id(&two.older)?;
        let line = match two.newer.as_deref().map(parse_id).transpose()? {
            Some(newer) => format!("/memory replace {older} {newer}"),
            None => format!("/memory current {older}"),
        };
        self.begin().await?;
        Ok(Done { answer: self.command(&line).await? })
    }

    pub(crate) async fn search_feedback(&self, feedback: Feedback) -> Result<Done, Failure> {
        let id = parse_id(&feedback.id)?;
        let rating = match feedback.rating {
            Rating::Helpful => "helpful",
            Rating::Unhelpful => "unhelpful",
            Rating::None => "none",
        };
        self.begin().await?;
        Ok(Done { answer: self.command(&format!("/memory rate {id} {rating}")).await? })
    }

    pub(crate) async fn forget(&self, forget: ToForget) -> Result<Forgotten, Failure> {
        let id = parse_id(&forget.id)?;
        self.begin().await?;
        let quotes = if forget.quotes { " quotes" } else { "" };
        let receipt = self.command(&format!("/forget {id}{quotes}")).await?;
        Ok(Forgotten { id: id.to_string(), receipt })
    }

    pub(crate) async fn create_reflection(
        &self,
        steps: &(dyn Fn(usize, usize) + Send + Sync),
    ) -> Result<Composed, Failure> {
        let at = self.begin().await?;
        steps(1, 3);
        let answer = self.command("/journal trigger").await?;
        steps(2, 3);
        let written = self.engine.reader.writings(&self.session.platform, at, WritingKind::Journal, 1).await?;
        Ok(Composed { notice: QUOTED, answer, newest: written.into_iter().next().map(Writing::from) })
    }
}

/// Returns a statement to keep without the space around it.
fn statement(text: &str) -> Result<&str, Failure> {
    let text = text.trim();
    if text.is_empty() {
        return Err(Failure::invalid("`text` is empty. Say what to keep."));
    }
    if text.len() > MAX_TEXT_BYTES {
        return Err(Failure::invalid(format!(
            "`text` has {} bytes, and a memory holds at most {MAX_TEXT_BYTES}. Keep it in several memories.",
            text.len()
        )));
    }
    Ok(text)
}

/// Returns the memory that an answer names first, between backticks.
pub(crate) fn kept(answer: String) -> Result<Kept, Failure> {
    let id = answer.split('`').nth(1).and_then(|id| id.parse::<MemoryId>().ok());
    id.map(|id| Kept { id: id.to_string() }).ok_or_else(|| Failure::refused(answer))
}
