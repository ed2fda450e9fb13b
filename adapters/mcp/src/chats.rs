//! Tools about conversations: `sessions`, `timeline` and `why`.

use azera_adapter::{ChatSummary, Reading, ShownMessage};
use azera_types::{Author, MessageId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::memories::Quoting;
use crate::paging::{self, List};
use crate::session::Caller;
use crate::texts::QUOTED;
use crate::writings::Page;

/// Messages of a chat that a list reaches back.
pub(crate) const REACH: usize = 1_000;

/// A conversation.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Conversation {
    /// Its id. `timeline` and `why` take it.
    pub(crate) id: String,
    /// The name that people see.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) title: Option<String>,
    /// When it began (RFC 3339).
    pub(crate) created_at: String,
    /// When its newest message was said (RFC 3339).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) last_at: Option<String>,
    /// Its tags.
    pub(crate) tags: Vec<String>,
}

impl From<ChatSummary> for Conversation {
    fn from(chat: ChatSummary) -> Self {
        Self {
            id: chat.chat.to_string(),
            title: chat.title,
            created_at: chat.created_at.to_string(),
            last_at: chat.last_at.map(|at| at.to_string()),
            tags: chat.tags.into_iter().collect(),
        }
    }
}

/// A page of conversations, newest first.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Conversations {
    /// What the titles and tags are.
    pub(crate) notice: &'static str,
    /// The conversations.
    pub(crate) sessions: Vec<Conversation>,
    /// Pass this as `cursor` for the next page. It is missing on the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next_cursor: Option<String>,
}

/// Which messages to read.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct OfChat {
    /// The id of a conversation, from `sessions`. Leave it out for the one that was talked in last.
    #[serde(default)]
    pub(crate) session: Option<String>,
    /// Most messages of this page, 1 to 100; 20 unless given.
    #[serde(default)]
    pub(crate) limit: Option<usize>,
    /// `next_cursor` of the page before, with the same session.
    #[serde(default)]
    pub(crate) cursor: Option<String>,
}

/// A message of a conversation.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Said {
    /// Its id. `why` takes the id of a reply.
    pub(crate) id: String,
    /// Who said it.
    pub(crate) author: String,
    /// Whether the persona said it.
    pub(crate) is_reply: bool,
    /// When it was said (RFC 3339).
    pub(crate) at: String,
    /// The text, as quoted data.
    pub(crate) text: String,
}

impl From<ShownMessage> for Said {
    fn from(message: ShownMessage) -> Self {
        Self {
            id: message.id.to_string(),
            author: message.author.name().to_owned(),
            is_reply: matches!(message.author, Author::Persona { .. }),
            at: message.at.to_string(),
            text: message.text.to_string(),
        }
    }
}

/// A page of messages, newest first.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Timeline {
    /// What the texts are.
    pub(crate) notice: &'static str,
    /// The conversation.
    pub(crate) session: String,
    /// The messages of its current branch. A list reaches back 1000 messages.
    pub(crate) messages: Vec<Said>,
    /// Pass this as `cursor` for the next page. It is missing on the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next_cursor: Option<String>,
}

/// A reply to explain.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct OfReply {
    /// The id of a conversation, from `sessions`. Leave it out for the one that was talked in last.
    #[serde(default)]
    pub(crate) session: Option<String>,
    /// The id of a reply in it, from `timeline`. Leave it out for the last one.
    #[serde(default)]
    pub(crate) message: Option<String>,
}

impl Caller {
    /// Returns the person's chats in which the session's persona answers, newest first.
    async fn chats(&self) -> Result<Vec<ChatSummary>, Failure> {
        let at = self.begin().await?;
        let persona = self.persona(&at).await?;
        let mut chats = self.engine.reader.chats(&self.session.platform, at).await?;
        chats.retain(|chat| chat.persona == persona && (chat.title.is_some() || chat.last_at.is_some()));
        Ok(chats)
    }

    /// Returns where to read a chat of the person and the persona.
    pub(crate) async fn chat(&self, id: Option<&str>) -> Result<Reading, Failure> {
        let chats = self.chats().await?;
        let found = match id {
            Some(id) => chats.into_iter().find(|chat| chat.chat.as_str() == id),
            None => chats.into_iter().find(|chat| chat.last_at.is_some()),
        };
        match (found, id) {
            (Some(chat), _) => Ok(self.reading(chat.chat)),
            (None, Some(id)) => Err(Failure::refused(format!("There is no session {id:?}. `sessions` lists them."))),
            (None, None) => Err(Failure::refused("Nobody has talked with this persona yet.")),
        }
    }

    pub(crate) async fn sessions(&self, page: Page) -> Result<Conversations, Failure> {
        let list = List::new("sessions", &[]);
        let (after, limit) = (list.after(page.cursor.as_deref())?, paging::limit(page.limit)?);
        let chats = self.chats().await?;
        let (chats, next_cursor) =
            paging::page(&list, chats, after, limit, |chat: &ChatSummary| chat.chat.to_string())?;
        Ok(Conversations { notice: QUOTED, sessions: chats.into_iter().map(Conversation::from).collect(), next_cursor })
    }

    pub(crate) async fn timeline(&self, of: OfChat) -> Result<Timeline, Failure> {
        let list = List::new("timeline", &[of.session.as_deref().unwrap_or_default()]);
        let (after, limit) = (list.after(of.cursor.as_deref())?, paging::limit(of.limit)?);
        let at = self.chat(of.session.as_deref()).await?;
        let session = at.chat.to_string();
        let mut messages = self.engine.reader.messages(&self.session.platform, at, REACH).await?;
        messages.reverse();
        let (messages, next_cursor) =
            paging::page(&list, messages, after, limit, |message: &ShownMessage| message.id.to_string())?;
        let messages = messages.into_iter().map(Said::from).collect();
        Ok(Timeline { notice: QUOTED, session, messages, next_cursor })
    }

    pub(crate) async fn why(&self, of: OfReply) -> Result<Quoting, Failure> {
        let about = of.message.as_deref().map(MessageId::new).transpose();
        let about = about.map_err(|error| Failure::invalid(format!("`message` is no id: {error}.")))?;
        let at = self.chat(of.session.as_deref()).await?;
        Ok(Quoting { notice: QUOTED, text: self.command_in(at.chat, "/why", about).await? })
    }
}
