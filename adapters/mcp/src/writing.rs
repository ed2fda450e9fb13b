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
        let text = keep.text.trim();
        if text.is_empty() {
            return Err(Failure::invalid("`text` is empty. Say what to keep."));
        }
        if text.len() > MAX_TEXT_BYTES {
            return Err(Failure::invalid(format!(
                "`text` has {} bytes, and a memory holds at most {MAX_TEXT_BYTES}. Keep it in several memories.",
                text.len()
            )));
        }
        self.begin().await?;
        let answer = self.command(&format!("/remember {text}")).await?;
        // The answer names the memory between backticks.
        let id = answer.split('`').nth(1).and_then(|id| id.parse::<MemoryId>().ok());
        id.map(|id| Kept { id: id.to_string() }).ok_or_else(|| Failure::refused(answer))
    }

    pub(crate) async fn forget(&self, forget: ToForget) -> Result<Forgotten, Failure> {
        let id = parse_id(&forget.id)?;
        self.begin().await?;
        let quotes = if forget.quotes { " quotes" } else { "" };
        let receipt = self.command(&format!("/forget {id}{quotes}")).await?;
        Ok(Forgotten { id: id.to_string(), receipt })
    }

    pub(crate) async fn create_reflection(&self) -> Result<Composed, Failure> {
        let at = self.begin().await?;
        let answer = self.command("/journal trigger").await?;
        let written = self.engine.reader.writings(&self.session.platform, at, WritingKind::Journal, 1).await?;
        Ok(Composed { notice: QUOTED, answer, newest: written.into_iter().next().map(Writing::from) })
    }
}
