//! Tools that read what the persona wrote: `episodes`, `reflections` and `reflection_insights`.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use azera_adapter::{ShownWriting, WritingKind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::paging::{self, List};
use crate::session::Caller;
use crate::texts::QUOTED;

/// Most writings that a list reaches back.
const REACH: usize = 1_000;

/// Most entries that are named for a word.
const MAX_SOURCES: usize = 10;

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

/// A word that reflections took up.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Insight {
    /// The word, as quoted data.
    pub(crate) word: String,
    /// How many entries took it up.
    pub(crate) entries: usize,
    /// When the newest of them was written (RFC 3339).
    pub(crate) last_at: String,
    /// The ids of the newest ones. `get` returns them.
    pub(crate) writings: Vec<String>,
}

/// A page of words, those of most entries first.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Insights {
    /// What the texts are.
    pub(crate) notice: &'static str,
    /// The words.
    pub(crate) insights: Vec<Insight>,
    /// Pass this as `cursor` for the next page. It is missing on the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next_cursor: Option<String>,
}

impl Caller {
    pub(crate) async fn reflection_insights(&self, page: Page) -> Result<Insights, Failure> {
        let list = List::new("reflection_insights", &[]);
        let (after, limit) = (list.after(page.cursor.as_deref())?, paging::limit(page.limit)?);
        let at = self.begin().await?;
        let written = self.engine.reader.writings(&self.session.platform, at, WritingKind::Journal, REACH).await?;
        let mut by_word: BTreeMap<&String, Vec<&ShownWriting>> = BTreeMap::new();
        for writing in written.iter().filter(|writing| writing.kind == "reflection") {
            for word in &writing.themes {
                by_word.entry(word).or_default().push(writing);
            }
        }
        let mut words: Vec<(&String, Vec<&ShownWriting>)> = by_word.into_iter().collect();
        words.sort_by_key(|(word, entries)| (Reverse(entries.len()), *word));
        let (words, next_cursor) = paging::page(&list, words, after, limit, |(word, _)| (*word).clone())?;
        let insight = |(word, entries): (&String, Vec<&ShownWriting>)| Insight {
            word: word.clone(),
            entries: entries.len(),
            last_at: entries.first().map(|newest| newest.at.to_string()).unwrap_or_default(),
            writings: entries.iter().take(MAX_SOURCES).map(|writing| writing.id.to_string()).collect(),
        };
        Ok(Insights { notice: QUOTED, insights: words.into_iter().map(insight).collect(), next_cursor })
    }

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
