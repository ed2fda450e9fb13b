use std::collections::BTreeSet;
use std::sync::Arc;

use azera_types::{
    ChatId, InboundPart, MAX_NAME_CHARS, MessageId, Part, PersonId, PersonaId, RealmId, Text, Timestamp,
};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Deserializer};

use crate::History;

/// The event of a line. Unknown fields are ignored, so that the format can grow.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Event {
    /// Creates or replaces a realm.
    Realm(RealmLine),
    /// Creates a chat, or changes its members.
    Chat(ChatLine),
    /// A person joins a realm or a private chat.
    Join(Membership),
    /// A person leaves a realm or a private chat.
    Leave(Membership),
    /// A person sends a message.
    Message(MessageLine),
    /// A person edits a message.
    Edit(EditLine),
    /// A person deletes a message.
    Delete(DeleteLine),
    /// A person runs a command.
    Command(CommandGiven),
    /// A person searches the memories.
    #[serde(rename = "probe")]
    Search(SearchLine),
    /// Time passes.
    Wait(WaitLine),
    /// Everything closes and opens again.
    Restart(RestartLine),
}

/// A realm and its members.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct RealmLine {
    /// The time.
    pub at: Timestamp,
    /// The realm.
    pub realm: RealmId,
    /// Its members from now on.
    pub members: Vec<PersonId>,
    /// Its admins; without this field, its first member, because a realm needs an owner.
    pub admins: Option<Vec<PersonId>>,
    /// IANA name of its time zone.
    pub time_zone: Option<String>,
    /// The chat for dreams and journal entries.
    pub journal: Option<ChatId>,
    /// How far back newcomers can read in its public chats. Only the realm's first line counts.
    #[serde(default)]
    pub history: History,
}

/// A chat and its readers.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(try_from = "RawChat")]
pub struct ChatLine {
    /// The time.
    pub at: Timestamp,
    /// The chat.
    pub chat: ChatId,
    /// Who may read it.
    pub kind: ChatKind,
    /// Its persona, until somebody chooses another.
    pub persona: Option<PersonaId>,
}

/// Who may read a chat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChatKind {
    /// Everyone in a realm.
    Public {
        /// The realm.
        realm: RealmId,
    },
    /// Its members only, who need not belong to the realm.
    Private {
        /// The realm it belongs to.
        realm: Option<RealmId>,
        /// Its members.
        members: BTreeSet<PersonId>,
        /// How far back newcomers can read. Only the chat's first line counts.
        history: History,
    },
    /// One person and the bot.
    Dm {
        /// The person.
        person: PersonId,
    },
}

/// A person joins or leaves.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(try_from = "RawMembership")]
pub struct Membership {
    /// The time.
    pub at: Timestamp,
    /// What they join or leave.
    pub target: Target,
    /// The person.
    pub person: PersonId,
}

/// A realm or chat that people join and leave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// A realm.
    Realm(RealmId),
    /// A chat.
    Chat(ChatId),
}

/// A message.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct MessageLine {
    /// The time.
    pub at: Timestamp,
    /// Its id; the same id again means the same message.
    pub id: MessageId,
    /// The chat.
    pub chat: ChatId,
    /// The person.
    pub person: PersonId,
    /// The displayed name; the person's id if missing.
    pub name: Option<String>,
    /// The text.
    #[serde(deserialize_with = "text")]
    pub text: Text,
    /// True if it mentions the bot.
    pub mentions_bot: Option<bool>,
    /// Other people whom it mentions.
    pub mentions: Option<Vec<PersonId>>,
    /// The message or reply that it replies to.
    pub reply_to: Option<MessageId>,
    /// Its files.
    #[serde(default)]
    pub files: Vec<FileLine>,
}

/// A file of a message.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct FileLine {
    /// Its name.
    pub name: String,
    /// Its media type.
    pub mime: Option<String>,
    /// A description in words, which is also part of the message's text.
    pub alt: Option<String>,
    /// Its content, in base64.
    #[serde(deserialize_with = "base64")]
    pub content: Vec<u8>,
}

impl FileLine {
    /// Returns the file as an adapter hands it in.
    pub fn inbound(&self) -> InboundPart {
        let part = Part::new(&self.name, self.mime.as_deref(), self.content.len() as u64);
        InboundPart { part: part.described(self.alt.as_deref()), source: Arc::new(self.content.clone()) }
    }
}

fn base64<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u8>, D::Error> {
    STANDARD.decode(String::deserialize(from)?).map_err(serde::de::Error::custom)
}

/// An edit.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct EditLine {
    /// The time.
    pub at: Timestamp,
    /// The message.
    pub id: MessageId,
    /// The new text.
    #[serde(deserialize_with = "text")]
    pub text: Text,
    /// Its files after the edit.
    #[serde(default)]
    pub files: Vec<FileLine>,
}

/// A deletion.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct DeleteLine {
    /// The time.
    pub at: Timestamp,
    /// The message.
    pub id: MessageId,
}

/// A command.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct CommandGiven {
    /// The time.
    pub at: Timestamp,
    /// The chat.
    pub chat: ChatId,
    /// The person.
    pub person: PersonId,
    /// The line as typed, with its slash.
    #[serde(deserialize_with = "text")]
    pub text: Text,
}

/// A search of the memories.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct SearchLine {
    /// The time.
    pub at: Timestamp,
    /// The chat.
    pub chat: ChatId,
    /// The person.
    pub person: PersonId,
    /// The text to search for.
    #[serde(deserialize_with = "text")]
    pub query: Text,
    /// Most hits.
    pub limit: Option<usize>,
}

/// A pause.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct WaitLine {
    /// The end of the pause.
    pub until: Timestamp,
}

/// A restart.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct RestartLine {
    /// The time; at once if missing.
    pub at: Option<Timestamp>,
}

#[derive(Deserialize)]
struct RawChat {
    at: Timestamp,
    realm: Option<RealmId>,
    chat: ChatId,
    kind: RawKind,
    members: Option<Vec<PersonId>>,
    persona: Option<PersonaId>,
    #[serde(default)]
    history: History,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum RawKind {
    Public,
    Private,
    Dm,
}

impl TryFrom<RawChat> for ChatLine {
    type Error = &'static str;

    fn try_from(raw: RawChat) -> Result<Self, Self::Error> {
        let mut members = raw.members.unwrap_or_default().into_iter().collect::<BTreeSet<_>>();
        let kind = match (raw.kind, raw.realm) {
            // Everyone in the realm reads a public chat, so its `members` are ignored.
            (RawKind::Public, Some(realm)) => ChatKind::Public { realm },
            (RawKind::Public, None) => return Err("a public chat needs a `realm`"),
            (RawKind::Private, realm) => ChatKind::Private { realm, members, history: raw.history },
            (RawKind::Dm, Some(_)) => return Err("a dm has no `realm`"),
            (RawKind::Dm, None) => match (members.pop_first(), members.is_empty()) {
                (Some(person), true) => ChatKind::Dm { person },
                _ => return Err("a dm has exactly one of `members`"),
            },
        };
        Ok(Self { at: raw.at, chat: raw.chat, kind, persona: raw.persona })
    }
}

#[derive(Deserialize)]
struct RawMembership {
    at: Timestamp,
    realm: Option<RealmId>,
    chat: Option<ChatId>,
    person: PersonId,
}

impl TryFrom<RawMembership> for Membership {
    type Error = &'static str;

    fn try_from(raw: RawMembership) -> Result<Self, Self::Error> {
        let target = match (raw.realm, raw.chat) {
            (Some(realm), None) => Target::Realm(realm),
            (None, Some(chat)) => Target::Chat(chat),
            _ => return Err("either `realm` or `chat` must be named"),
        };
        Ok(Self { at: raw.at, target, person: raw.person })
    }
}

/// Reads a text and cuts it if it is too long. `Text` itself accepts any length, because the record uses it.
fn text<'de, D: Deserializer<'de>>(from: D) -> Result<Text, D::Error> {
    String::deserialize(from).map(Text::from)
}

impl Event {
    /// Returns the time of the line, if it has one.
    pub fn at(&self) -> Option<Timestamp> {
        match self {
            Self::Realm(line) => Some(line.at),
            Self::Chat(line) => Some(line.at),
            Self::Join(line) | Self::Leave(line) => Some(line.at),
            Self::Message(line) => Some(line.at),
            Self::Edit(line) => Some(line.at),
            Self::Delete(line) => Some(line.at),
            Self::Command(line) => Some(line.at),
            Self::Search(line) => Some(line.at),
            Self::Wait(line) => Some(line.until),
            Self::Restart(line) => line.at,
        }
    }
}

impl MessageLine {
    /// Returns the displayed name, cut to [`MAX_NAME_CHARS`].
    pub fn shown_name(&self) -> String {
        let name = self.name.as_deref().filter(|name| !name.trim().is_empty()).unwrap_or(self.person.as_str());
        name.chars().take(MAX_NAME_CHARS).collect()
    }
}
