//! Tools that return as much as fits into an assistant's context: `optimize_context` and `compact_restore`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::chats::{REACH, Said};
use crate::coding::tokens;
use crate::failure::Failure;
use crate::search::Found;
use crate::session::Caller;
use crate::texts::QUOTED;

/// Bytes of a token. An estimate for English; other languages need more tokens.
const BYTES_PER_TOKEN: usize = 3;

/// Tokens of the fields around a text.
const FIELDS_TOKENS: usize = 60;

/// A question, and how much to tell for it.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct OfQuestion {
    /// What the context is for: a question, or what is to be done.
    query: String,
    /// About how many tokens to return at most, up to 32,000; 2,000 unless given.
    #[serde(default)]
    tokens: Option<usize>,
}

/// The memories that help most, best first.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Optimized {
    /// What the texts are.
    notice: &'static str,
    /// The memories.
    memories: Vec<Found>,
    /// About how many tokens they take.
    tokens: usize,
    /// How many of the 100 best ones did not fit.
    left_out: usize,
    /// Parts of the search that did not work just now.
    missing: Vec<String>,
}

/// A conversation to go on with, and how much to tell of it.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ToContinue {
    /// The id of a conversation, from `sessions`. Leave it out for the one that was talked in last.
    #[serde(default)]
    session: Option<String>,
    /// About how many tokens to return at most, up to 32,000; 2,000 unless given.
    #[serde(default)]
    tokens: Option<usize>,
}

/// The newest messages of a conversation, the oldest of them first.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Continued {
    /// What the texts are.
    notice: &'static str,
    /// The conversation.
    session: String,
    /// The messages of its current branch.
    messages: Vec<Said>,
    /// About how many tokens they take.
    tokens: usize,
    /// True if something is missing: older messages, or the end of the newest one, if that alone did not fit.
    is_cut: bool,
}

/// What is left of a number of tokens.
struct Room {
    tokens: usize,
    used: usize,
}

impl Room {
    fn of(tokens: usize) -> Self {
        Self { tokens, used: 0 }
    }

    /// Returns true if a text fits, and takes its room.
    fn takes(&mut self, text: &str) -> bool {
        let used = self.used + FIELDS_TOKENS + text.len().div_ceil(BYTES_PER_TOKEN);
        let fits = used <= self.tokens;
        if fits {
            self.used = used;
        }
        fits
    }

    /// Takes all room that is left for the beginning of a text that does not fit, and returns it.
    fn beginning_of(&mut self, text: &str) -> String {
        let tokens = self.tokens.saturating_sub(self.used + FIELDS_TOKENS).max(1);
        self.used = self.tokens;
        let end = text.floor_char_boundary(tokens * BYTES_PER_TOKEN);
        let mark = if end < text.len() { "…" } else { "" };
        format!("{}{mark}", text.get(..end).unwrap_or_default())
    }
}

impl Caller {
    pub(crate) async fn optimize_context(&self, of: OfQuestion) -> Result<Optimized, Failure> {
        let mut room = Room::of(tokens(of.tokens)?);
        let (mut memories, missing) = self.found(&of.query).await?;
        let all = memories.len();
        // A long one that does not fit makes room for shorter ones behind it.
        memories.retain(|found| room.takes(&found.memory.text));
        Ok(Optimized { notice: QUOTED, left_out: all - memories.len(), memories, tokens: room.used, missing })
    }

    pub(crate) async fn compact_restore(&self, of: ToContinue) -> Result<Continued, Failure> {
        let mut room = Room::of(tokens(of.tokens)?);
        let at = self.chat(of.session.as_deref()).await?;
        let session = at.chat.to_string();
        let said = self.engine.reader.messages(&self.session.platform, at, REACH).await?;
        // Nothing is left out in between.
        let first = said.iter().rposition(|message| !room.takes(&message.text)).map_or(0, |last| last + 1);
        let is_cut = first > 0 || said.len() == REACH;
        let newest = said.last().filter(|_| first == said.len()).cloned();
        let mut messages: Vec<Said> = said.into_iter().skip(first).map(Said::from).collect();
        if let Some(newest) = newest {
            let text = room.beginning_of(&newest.text);
            messages.push(Said { text, ..Said::from(newest) });
        }
        Ok(Continued { notice: QUOTED, session, messages, tokens: room.used, is_cut })
    }
}
