//! Tools that read what the persona wrote: `episodes` and `reflections`.

use azera_adapter::{ShownWriting, WritingKind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::paging::{self, List};
use crate::session::Caller;
use crate::texts::QUOTED;

/// Most writings that a list reaches back.
const REACH: usize = 1_000;

/// A page of a list.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Page {
    /// Most items of this page, 1 to 100; 20 unless given.
    #[serde(default)]
    pub(crate) limit: Option<usize>,
    /// `next_cursor` of the page before.
    #[serde(default)]
    pub(crate) cursor: Option<String>,
}

/// A text that the persona wrote.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Writing {
    /// Its id, such as `m42`. `get` takes it.
    pub(crate) id: String,
    /// Its kind.
    pub(crate) kind: &'static str,
    /// When it was written (RFC 3339).
    pub(crate) at: String,
    /// The persona's mood at that time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) mood: Option<String>,
    /// Words from its sources.
    pub(crate) themes: Vec<String>,
    /// The text, as quoted data.
    pub(crate) text: String,
}

impl From<ShownWriting> for Writing {
    fn from(writing: ShownWriting) -> Self {
        Self {
            id: writing.id.to_string(),
            kind: writing.kind,
            at: writing.at.to_string(),
            mood: writing.mood,
            themes: writing.themes,
            text: writing.text.to_string(),
        }
    }
}

/// A page of writings, newest first.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Writings {
    /// What the texts are.
    pub(crate) notice: &'static str,
    /// The writings.
    pub(crate) writings: Vec<Writing>,
    /// Pass this as `cursor` for the next page. It is missing on the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next_cursor: Option<String>,
}

impl Caller {
    /// Returns a page of the journal's entries of a kind.
    pub(crate) async fn journal(&self, tool: &str, kind: &str, page: Page) -> Result<Writings, Failure> {
        let list = List::new(tool, &[]);
        let (after, limit) = (list.after(page.cursor.as_deref())?, paging::limit(page.limit)?);
        let at = self.begin().await?;
        let mut written = self.engine.reader.writings(&self.session.platform, at, WritingKind::Journal, REACH).await?;
        written.retain(|writing| writing.kind == kind);
        let (written, next_cursor) =
            paging::page(&list, written, after, limit, |writing: &ShownWriting| writing.id.to_string())?;
        Ok(Writings { notice: QUOTED, writings: written.into_iter().map(Writing::from).collect(), next_cursor })
    }
}
