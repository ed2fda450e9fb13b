//! Chats: lists, messages, search, and what belongs to a chat.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use axum::extract::State;
use axum::http::Method;
use azera_adapter::{BranchSummary, ChatInfo, ChatSummary, InboundEvent, PictureSearch, Reading, ShownMessage};
use azera_types::{Author, ChatId, Text};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::images::url_of;
use super::{Done, List, Page};
use crate::accounts::{Caller, Scope};
use crate::endpoint::{Endpoint, Json, Need, Parameter, Params, Parted};
use crate::platform::{chat_id, realm_id, suffix_of};
use crate::problem::Problem;
use crate::web::Shared;

/// Title of a chat that nobody named.
const NEW_TITLE: &str = "New chat";

/// Longest title, in characters.
const MAX_TITLE_CHARS: usize = 200;

/// Most messages of a chat that are shown.
const MAX_MESSAGES: usize = 1_000;

/// Name of the first branch for people.
const MAIN: &str = "Main";

/// A chat.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Chat {
    /// Its id.
    pub(super) id: String,
    /// Its title.
    pub(super) title: String,
    /// The id of its group.
    group_id: Option<String>,
    /// The ids of its tags.
    tags: BTreeSet<String>,
    /// The id of the current branch.
    current_branch_id: String,
    /// The id of the persona that answers.
    ai_persona_id: String,
    /// When it was made (RFC 3339).
    created_at: String,
    /// When the newest message was said (RFC 3339).
    updated_at: String,
}

/// A branch.
#[derive(Debug, Serialize, JsonSchema)]
struct Branch {
    /// Its id.
    id: String,
    /// Its name.
    name: String,
    /// The message after which it begins.
    forked_from_message_id: Option<String>,
    /// When it was made (RFC 3339).
    created_at: String,
}

/// A message.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Message {
    /// Its id.
    id: String,
    /// `user` or `assistant`.
    role: &'static str,
    /// The author's name.
    name: String,
    /// The text.
    content: String,
    /// When it was said (RFC 3339).
    created_at: String,
    /// The address of the picture that it shows.
    picture: Option<String>,
    /// Whether it was said aloud.
    spoken: bool,
}

/// A chat with its branches and the messages of the current one.
#[derive(Debug, Serialize, JsonSchema)]
struct WholeChat {
    #[serde(flatten)]
    chat: Chat,
    /// Its branches, oldest first.
    branches: Vec<Branch>,
    /// The messages of the current branch, oldest first.
    messages: Vec<Message>,
}

/// A chat to make.
#[derive(Deserialize, JsonSchema)]
struct NewChat {
    /// The title.
    #[serde(default)]
    title: Option<String>,
    /// The id of a group.
    #[serde(default)]
    group_id: Option<String>,
}

/// Changes of a chat. What is left out stays.
#[derive(Deserialize, JsonSchema)]
struct ChatChanges {
    /// The title.
    #[serde(default)]
    title: Option<String>,
    /// The id of a group; null takes the chat out of its group.
    #[serde(default, deserialize_with = "present")]
    #[schemars(with = "Option<String>")]
    group_id: Option<Option<String>>,
    /// The ids of all its tags.
    #[serde(default)]
    tags: Option<BTreeSet<String>>,
    /// The branch to continue on.
    #[serde(default)]
    current_branch_id: Option<String>,
}

/// Tells a null from a field that is left out.
fn present<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<Option<String>>, D::Error> {
    Option::deserialize(from).map(Some)
}

/// A search.
#[derive(Deserialize)]
struct Query {
    q: String,
}

pub(super) fn endpoints() -> Vec<Endpoint> {
    let chat = Need::Scope(Scope::Chat);
    const Q: &[Parameter] = &[Parameter { name: "q", help: "The words to find.", required: true }];
    vec![
        Endpoint::new(Method::GET, "/api/chats", chat, "List one's chats", list)
            .asks(Page::ASKS)
            .answers::<List<Chat>>(),
        Endpoint::new(Method::POST, "/api/chats", chat, "Make a chat", create)
            .takes::<NewChat>()
            .answers::<WholeChat>(),
        Endpoint::new(Method::GET, "/api/chats/search", chat, "Search titles and messages of one's chats", search)
            .asks(Q)
            .answers::<List<Chat>>(),
        Endpoint::new(Method::GET, "/api/chats/{id}", chat, "Show a chat with its messages", show)
            .answers::<WholeChat>(),
        Endpoint::new(Method::PUT, "/api/chats/{id}", chat, "Change a chat", change)
            .takes::<ChatChanges>()
            .answers::<WholeChat>(),
        Endpoint::new(Method::DELETE, "/api/chats/{id}", chat, "Delete a chat, and forget what was said there", delete)
            .answers::<Done>(),
    ]
}

/// Returns the id of a branch for people's clients.
fn branch_name(name: &str) -> String {
    if name == "main" { MAIN.to_owned() } else { name.to_owned() }
}

impl From<ChatSummary> for Chat {
    fn from(chat: ChatSummary) -> Self {
        Self {
            id: suffix_of(&chat.chat).to_owned(),
            title: chat.title.unwrap_or_else(|| NEW_TITLE.to_owned()),
            group_id: chat.group,
            tags: chat.tags,
            current_branch_id: chat.branch,
            ai_persona_id: chat.persona.to_string(),
            created_at: chat.created_at.to_string(),
            updated_at: chat.last_at.unwrap_or(chat.created_at).to_string(),
        }
    }
}

impl From<ShownMessage> for Message {
    fn from(message: ShownMessage) -> Self {
        Self {
            id: message.id.to_string(),
            role: if matches!(message.author, Author::Persona { .. }) { "assistant" } else { "user" },
            name: message.author.name().to_owned(),
            spoken: message.spoken.is_some(),
            content: message.spoken.unwrap_or(message.text).to_string(),
            created_at: message.at.to_string(),
            picture: None,
        }
    }
}

impl From<BranchSummary> for Branch {
    fn from(branch: BranchSummary) -> Self {
        Self {
            name: branch_name(&branch.name),
            id: branch.name,
            forked_from_message_id: branch.forked_from.map(|id| id.to_string()),
            created_at: branch.created_at.to_string(),
        }
    }
}

impl Shared {
    /// Returns where a caller reads one of their chats.
    pub(super) fn reading(&self, caller: &Caller, id: &str) -> Result<Reading, Problem> {
        Ok(Reading { chat: own_chat(caller, id)?, person: caller.person()? })
    }

    /// Returns the chats of a caller, newest first.
    pub(super) async fn chats(&self, caller: &Caller) -> Result<Vec<ChatSummary>, Problem> {
        let mut chats = self.reader()?.chats(&self.platform, self.reading(caller, "main")?).await?;
        chats.retain(is_there);
        Ok(chats)
    }

    pub(super) async fn chat(&self, caller: &Caller, id: &str) -> Result<ChatSummary, Problem> {
        let chat = self.reader()?.chat(&self.platform, self.reading(caller, id)?).await?;
        chat.filter(is_there).ok_or_else(|| Problem::not_found("chat"))
    }

    pub(super) async fn messages_of(&self, caller: &Caller, id: &str) -> Result<Vec<Message>, Problem> {
        let at = self.reading(caller, id)?;
        let messages = self.reader()?.messages(&self.platform, at, MAX_MESSAGES).await?;
        Ok(messages.into_iter().map(Message::from).collect())
    }

    /// Returns the messages of a chat with the addresses of the pictures that may be shown there.
    pub(super) async fn messages_with_pictures(&self, caller: &Caller, id: &str) -> Result<Vec<Message>, Problem> {
        let mut messages = self.messages_of(caller, id).await?;
        let pictures =
            self.pictures()?.pictures(&self.platform, self.reading(caller, id)?, &PictureSearch::default()).await?;
        let urls: HashMap<&str, String> =
            pictures.iter().map(|picture| (picture.message.as_str(), url_of(picture))).collect();
        for message in &mut messages {
            message.picture = urls.get(message.id.as_str()).cloned();
        }
        Ok(messages)
    }

    async fn whole(&self, caller: &Caller, id: &str) -> Result<axum::Json<WholeChat>, Problem> {
        let chat = self.chat(caller, id).await?;
        let branches = self.reader()?.branches(&self.platform, self.reading(caller, id)?).await?;
        Ok(axum::Json(WholeChat {
            chat: chat.into(),
            branches: branches.into_iter().map(Branch::from).collect(),
            messages: self.messages_with_pictures(caller, id).await?,
        }))
    }

    async fn set_group(&self, caller: &Caller, chat: &ChatId, group: Option<&str>) -> Result<(), Problem> {
        let line = match group {
            Some(group) => {
                self.accounts.check_group(&caller.account, group)?;
                format!("/group join {group}")
            }
            None => "/group leave".to_owned(),
        };
        self.perform(caller, chat.clone(), &line).await.map(drop)
    }

    /// Forgets a chat with its title.
    pub(super) async fn delete_chat(&self, caller: &Caller, id: &str) -> Result<(), Problem> {
        let chat = self.chat(caller, id).await?;
        let left = InboundEvent::Left { realm: realm_id(&caller.account)?, chats: vec![chat.chat] };
        self.host()?.submit(&self.platform, left).await?;
        Ok(())
    }
}

/// Returns true for a chat that has a title or messages. Another one was deleted, or never begun.
fn is_there(chat: &ChatSummary) -> bool {
    chat.title.is_some() || chat.last_at.is_some()
}

fn own_chat(caller: &Caller, id: &str) -> Result<ChatId, Problem> {
    chat_id(&caller.account, id).map_err(|_| Problem::not_found("chat"))
}

fn checked_title(title: Option<String>) -> Result<String, Problem> {
    let title = title.map(|title| title.trim().to_owned()).filter(|title| !title.is_empty());
    let title = title.unwrap_or_else(|| NEW_TITLE.to_owned());
    if title.chars().count() > MAX_TITLE_CHARS || title.chars().any(char::is_control) {
        return Err(Problem::invalid(format!("A title has at most {MAX_TITLE_CHARS} characters, on one line.")));
    }
    Ok(title)
}

async fn list(
    State(shared): State<Arc<Shared>>,
    caller: Caller,
    Params(page): Params<Page>,
) -> Result<axum::Json<List<Chat>>, Problem> {
    let chats: Vec<Chat> = shared.chats(&caller).await?.into_iter().map(Chat::from).collect();
    Ok(axum::Json(page.of(chats)))
}

async fn create(
    State(shared): State<Arc<Shared>>,
    caller: Caller,
    Json(new): Json<NewChat>,
) -> Result<axum::Json<WholeChat>, Problem> {
    let id = crate::secrets::id()?.to_string();
    let chat = own_chat(&caller, &id)?;
    let info = ChatInfo { chat: chat.clone(), title: Some(checked_title(new.title)?), persona: None };
    shared.host()?.submit(&shared.platform, InboundEvent::Chat(info)).await?;
    if let Some(group) = &new.group_id {
        shared.set_group(&caller, &chat, Some(group)).await?;
    }
    shared.whole(&caller, &id).await
}

async fn search(
    State(shared): State<Arc<Shared>>,
    caller: Caller,
    Params(query): Params<Query>,
) -> Result<axum::Json<List<Chat>>, Problem> {
    if query.q.trim().is_empty() {
        return Err(Problem::invalid("`q` names the words to find."));
    }
    let at = shared.reading(&caller, "main")?;
    let mut found = shared.reader()?.find_chats(&shared.platform, at, &Text::new(&query.q)).await?;
    found.retain(is_there);
    let found: Vec<Chat> = found.into_iter().map(Chat::from).collect();
    Ok(axum::Json(found.into()))
}

async fn show(
    State(shared): State<Arc<Shared>>,
    caller: Caller,
    Parted(id): Parted<String>,
) -> Result<axum::Json<WholeChat>, Problem> {
    shared.whole(&caller, &id).await
}

async fn change(
    State(shared): State<Arc<Shared>>,
    caller: Caller,
    Parted(id): Parted<String>,
    Json(changes): Json<ChatChanges>,
) -> Result<axum::Json<WholeChat>, Problem> {
    let before = shared.chat(&caller, &id).await?;
    if let Some(title) = changes.title {
        let info = ChatInfo { chat: before.chat.clone(), title: Some(checked_title(Some(title))?), persona: None };
        shared.host()?.submit(&shared.platform, InboundEvent::Chat(info)).await?;
    }
    if let Some(group) = changes.group_id.filter(|group| *group != before.group) {
        shared.set_group(&caller, &before.chat, group.as_deref()).await?;
    }
    if let Some(tags) = changes.tags {
        for tag in &tags {
            shared.accounts.check_tag(&caller.account, tag)?;
        }
        for tag in tags.difference(&before.tags) {
            shared.perform(&caller, before.chat.clone(), &format!("/tag add {tag}")).await?;
        }
        for tag in before.tags.difference(&tags) {
            shared.perform(&caller, before.chat.clone(), &format!("/tag remove {tag}")).await?;
        }
    }
    if let Some(branch) = changes.current_branch_id.filter(|branch| *branch != before.branch) {
        let name = if branch == MAIN { "main" } else { branch.as_str() };
        shared.perform(&caller, before.chat.clone(), &format!("/branch switch {name}")).await?;
    }
    shared.whole(&caller, &id).await
}

async fn delete(
    State(shared): State<Arc<Shared>>,
    caller: Caller,
    Parted(id): Parted<String>,
) -> Result<axum::Json<Done>, Problem> {
    shared.delete_chat(&caller, &id).await?;
    Ok(axum::Json(Done { status: "deleted" }))
}
