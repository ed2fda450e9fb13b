//! The tools `themes`, `raptor_status` and `raptor_rebuild`: what is talked about most.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use azera_adapter::{ShownMemory, ShownTheme, ShownThemes, Steps};
use azera_types::Text;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::memories::Memory;
use crate::paging::{self, List};
use crate::session::Caller;
use crate::texts::QUOTED;

/// The most characters of a shown memory.
const MAX_CHARS: usize = 400;

/// Which themes to list.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Asked {
    /// Most themes of this page, 1 to 100; 20 unless given.
    #[serde(default)]
    pub(crate) limit: Option<usize>,
    /// `next_cursor` of the page before.
    #[serde(default)]
    pub(crate) cursor: Option<String>,
}

/// A theme within another one.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Part {
    /// Words that people use about it and not about other themes.
    pub(crate) words: Vec<String>,
    /// How many memories are about it.
    pub(crate) memories: usize,
}

/// Something that is talked about.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Theme {
    /// Words that people use about it and not about other themes.
    pub(crate) words: Vec<String>,
    /// Who may read it, such as `dm:PERSON`.
    pub(crate) scope: String,
    /// How many memories are about it.
    pub(crate) memories: usize,
    /// When it was talked about first (RFC 3339).
    pub(crate) since: String,
    /// When it was talked about last (RFC 3339).
    pub(crate) until: String,
    /// The memory closest to the middle of it, cut after 400 characters.
    pub(crate) typical: Memory,
    /// The newest memory about it, cut in the same way.
    pub(crate) newest: Memory,
    /// The themes that it is made of, if they are several.
    pub(crate) parts: Vec<Part>,
}

/// A page of themes, those with most memories first.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Themes {
    /// What the texts are.
    pub(crate) notice: &'static str,
    /// The themes. They are found in quiet times, so the newest memories may be missing.
    pub(crate) themes: Vec<Theme>,
    /// How many there are on all pages.
    pub(crate) total: usize,
    /// True if older memories were too many to count.
    pub(crate) is_cut: bool,
    /// Pass this as `cursor` for the next page. It is missing on the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next_cursor: Option<String>,
}

/// How far memories are grouped into themes.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Status {
    /// How many themes there are.
    pub(crate) themes: usize,
    /// How many smaller themes they are made of.
    pub(crate) parts: usize,
    /// How many memories that this session may read are in them.
    pub(crate) memories: usize,
    /// How many memories wait to be indexed. They are in no theme yet.
    pub(crate) waiting: usize,
    /// True if older memories were too many to count.
    pub(crate) is_cut: bool,
}

/// What grouping again did.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Rebuilt {
    /// In how many places memories were grouped again: those where anything was new, edited or forgotten since.
    pub(crate) places: usize,
    /// True if nothing was grouped because memories wait to be indexed. Try again in a minute.
    pub(crate) must_wait: bool,
    /// How many themes there were before.
    pub(crate) themes_before: usize,
    /// How far memories are grouped now.
    pub(crate) status: Status,
}

impl Caller {
    /// Groups again what the session may read, wherever anything is new. The same call twice does nothing more.
    pub(crate) async fn raptor_rebuild(&self, steps: Steps) -> Result<Rebuilt, Failure> {
        let before = self.raptor_status().await?;
        let at = self.begin().await?;
        // The themes are counted before the first place and behind the last one.
        let (told, places) = (Arc::clone(&steps), Arc::new(AtomicUsize::new(0)));
        let of_places = Arc::clone(&places);
        let places_done: Steps = Arc::new(move |done, all| {
            of_places.store(all, Ordering::Relaxed);
            told(done + 1, all + 2);
        });
        let grouped = self.engine.memories.group_themes(&self.session.platform, at, places_done).await?;
        let all = places.load(Ordering::Relaxed);
        steps(all + 1, all + 2);
        let status = self.raptor_status().await?;
        let (places, must_wait) = (grouped.unwrap_or(0), grouped.is_none());
        Ok(Rebuilt { places, must_wait, themes_before: before.themes, status })
    }

    pub(crate) async fn raptor_status(&self) -> Result<Status, Failure> {
        let at = self.begin().await?;
        let waiting = self.engine.memories.counts(&self.session.platform, at.clone()).await?.queued;
        let found = self.engine.memories.themes(&self.session.platform, at, 0, usize::MAX).await?;
        Ok(Status {
            themes: found.total,
            parts: found.themes.iter().map(|theme| theme.parts.len()).sum(),
            memories: found.themes.iter().map(|theme| theme.memories).sum(),
            waiting,
            is_cut: found.is_cut || found.total > found.themes.len(),
        })
    }

    pub(crate) async fn themes(&self, asked: Asked) -> Result<Themes, Failure> {
        let (list, limit) = (List::new("themes", &[]), paging::limit(asked.limit)?);
        let skip = list.skipped(asked.cursor.as_deref())?;
        let at = self.begin().await?;
        let ShownThemes { is_cut, themes, total } =
            self.engine.memories.themes(&self.session.platform, at, skip, limit).await?;
        let next = skip.saturating_add(limit);
        let next_cursor = (next < total).then(|| list.cursor(&next.to_string()));
        Ok(Themes { notice: QUOTED, themes: themes.into_iter().map(theme).collect(), total, is_cut, next_cursor })
    }
}

fn theme(theme: ShownTheme) -> Theme {
    let part = |part: ShownTheme| Part { words: part.words, memories: part.memories };
    Theme {
        words: theme.words,
        scope: theme.scope.to_string(),
        memories: theme.memories,
        since: theme.said.0.to_string(),
        until: theme.said.1.to_string(),
        typical: beginning(theme.typical).into(),
        newest: beginning(theme.newest).into(),
        parts: theme.parts.into_iter().map(part).collect(),
    }
}

/// Cuts the text of a memory: a page of whole texts could fill an assistant's context. `get` returns all of it.
fn beginning(mut memory: ShownMemory) -> ShownMemory {
    if memory.text.chars().count() > MAX_CHARS {
        let cut: String = memory.text.chars().take(MAX_CHARS).collect();
        memory.text = Text::new(format!("{}…", cut.trim_end()));
    }
    memory
}
