//! The tools `known` and `set_known`: what counts as known in a whole place because it was said in many chats.

use azera_adapter::{ShownKnown, ShownKnowns};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::memories::{Memory, parse_id};
use crate::paging::{self, List};
use crate::session::Caller;
use crate::texts::QUOTED;
use crate::writing::Done;

/// Which statements to list.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct KnownPage {
    /// Most statements of this page, 1 to 100; 20 unless given.
    #[serde(default)]
    pub(crate) limit: Option<usize>,
    /// `next_cursor` of the page before.
    #[serde(default)]
    pub(crate) cursor: Option<String>,
}

/// A statement that counts as known in a whole place.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Known {
    /// Its newest memory.
    pub(crate) memory: Memory,
    /// The ids of the other memories that say it, newest first. `get` returns them.
    pub(crate) also: Vec<String>,
    /// How many chats it was said in.
    pub(crate) chats: usize,
    /// How many people said it.
    pub(crate) people: usize,
    /// False if too few are left of those who want their words to count.
    pub(crate) counts: bool,
    /// True if the person of this session said it, so that `set_known` can change it.
    pub(crate) is_own: bool,
    /// False if one does not want one's own words to count.
    pub(crate) own_counts: bool,
}

/// A page of statements, those in most chats first.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Knowns {
    /// What the texts are.
    pub(crate) notice: &'static str,
    /// The statements.
    pub(crate) known: Vec<Known>,
    /// How many there are on all pages.
    pub(crate) total: usize,
    /// Pass this as `cursor` for the next page. It is missing on the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next_cursor: Option<String>,
}

/// Whether one's own words count.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Counting {
    /// The id of a memory of the statement, such as `m42`. The person must have said the same.
    pub(crate) id: String,
    /// False lets the person's own words count only where they were said; true undoes that.
    pub(crate) counts: bool,
}

impl Caller {
    pub(crate) async fn known(&self, asked: KnownPage) -> Result<Knowns, Failure> {
        let (list, limit) = (List::new("known", &[]), paging::limit(asked.limit)?);
        let skip = list.skipped(asked.cursor.as_deref())?;
        let at = self.begin().await?;
        let ShownKnowns { known, total } = self.engine.known.known(&self.session.platform, at, skip, limit).await?;
        let next = skip.saturating_add(limit);
        let next_cursor = (next < total).then(|| list.cursor(&next.to_string()));
        Ok(Knowns { notice: QUOTED, known: known.into_iter().map(Known::from).collect(), total, next_cursor })
    }

    pub(crate) async fn set_known(&self, counting: Counting) -> Result<Done, Failure> {
        let id = parse_id(&counting.id)?;
        let word = if counting.counts { "on" } else { "off" };
        self.begin().await?;
        Ok(Done { answer: self.command(&format!("/memory known {id} {word}")).await? })
    }
}

impl From<ShownKnown> for Known {
    fn from(known: ShownKnown) -> Self {
        Self {
            memory: known.memory.into(),
            also: known.also.iter().map(ToString::to_string).collect(),
            chats: known.chats,
            people: known.people,
            counts: known.counts,
            is_own: known.is_own,
            own_counts: known.own_counts,
        }
    }
}
