use std::collections::BTreeSet;

use azera_types::{ChatId, MAX_NAME_CHARS, MessageId, PersonId, PersonaId, RealmId, Text, Timestamp};
use serde::{Deserialize, Deserializer};

use crate::History;

/// What a line makes happen. Fields unknown here are ignored, for the format grows by adding.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Event {
    /// A realm comes to be, or is set anew.
    Realm(RealmLine),
    /// A chat comes to be, or gets other members.
    Chat(ChatLine),
    /// Somebody joins a realm or a private chat.
    Join(Membership),
    /// Somebody leaves a realm or a private chat.
    Leave(Membership),
    /// Somebody says something.
    Message(MessageLine),
    /// Somebody changes what they said.
    Edit(EditLine),
    /// Somebody deletes what they said.
    Delete(DeleteLine),
    /// Somebody gives a command.
    Command(CommandGiven),
    /// A recall is asked for by hand.
    #[serde(rename = "probe")]
    Search(SearchLine),
    /// Time passes.
    Wait(WaitLine),
    /// Everything is closed and opened again.
    Restart(RestartLine),
}

/// A realm and who is in it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct RealmLine {
    /// When.
    pub at: Timestamp,
    /// Which.
    pub realm: RealmId,
    /// Who belongs to it from now on.
    pub members: Vec<PersonId>,
    /// Who manages it; without a word about it its first member, for a realm has an owner.
    pub admins: Option<Vec<PersonId>>,
    /// The IANA name of its time zone.
    pub time_zone: Option<String>,
    /// The chat that dreams and journal entries go to.
    pub journal: Option<ChatId>,
    /// How far back newcomers can scroll in its public chats. Counts in the realm's first line.
    #[serde(default)]
    pub history: History,
}

/// A chat and who may read it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(try_from = "RawChat")]
pub struct ChatLine {
    /// When.
    pub at: Timestamp,
    /// Which.
    pub chat: ChatId,
    /// Who may read it.
    pub kind: ChatKind,
    /// Who answers there until somebody chooses another.
    pub persona: Option<PersonaId>,
}

/// Who may read a chat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChatKind {
    /// Everybody of a realm.
    Public {
        /// The realm.
        realm: RealmId,
    },
    /// Its members alone, who need not belong to the realm around it.
    Private {
        /// The realm around it.
        realm: Option<RealmId>,
        /// Who is in it.
        members: BTreeSet<PersonId>,
        /// How far back newcomers can scroll. Counts in the chat's first line.
        history: History,
    },
    /// One person and the bot.
    Dm {
        /// The person.
        person: PersonId,
    },
}

/// Somebody comes or goes.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(try_from = "RawMembership")]
pub struct Membership {
    /// When.
    pub at: Timestamp,
    /// What they join or leave.
    pub target: Target,
    /// Who.
    pub person: PersonId,
}

/// What can be joined and left.
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
    /// When.
    pub at: Timestamp,
    /// Its id; the same id again is the same message.
    pub id: MessageId,
    /// Where.
    pub chat: ChatId,
    /// Who says it.
    pub person: PersonId,
    /// The name shown; the person's id if there is none.
    pub name: Option<String>,
    /// What is said.
    #[serde(deserialize_with = "text")]
    pub text: Text,
    /// Whether the bot is mentioned.
    pub mentions_bot: Option<bool>,
    /// Other people mentioned.
    pub mentions: Option<Vec<PersonId>>,
    /// The message or reply it answers.
    pub reply_to: Option<MessageId>,
}

/// A changed message.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct EditLine {
    /// When.
    pub at: Timestamp,
    /// Which message.
    pub id: MessageId,
    /// What it says now.
    #[serde(deserialize_with = "text")]
    pub text: Text,
}

/// A deleted message.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct DeleteLine {
    /// When.
    pub at: Timestamp,
    /// Which message.
    pub id: MessageId,
}

/// A command.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct CommandGiven {
    /// When.
    pub at: Timestamp,
    /// Where.
    pub chat: ChatId,
    /// By whom.
    pub person: PersonId,
    /// The line as typed, with its slash.
    #[serde(deserialize_with = "text")]
    pub text: Text,
}

/// A recall by hand.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct SearchLine {
    /// When.
    pub at: Timestamp,
    /// In which chat.
    pub chat: ChatId,
    /// By whom.
    pub person: PersonId,
    /// What is looked for.
    #[serde(deserialize_with = "text")]
    pub query: Text,
    /// Hits at most.
    pub limit: Option<usize>,
}

/// Time that passes.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct WaitLine {
    /// Until when.
    pub until: Timestamp,
}

/// A restart.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct RestartLine {
    /// When; at once if it does not say.
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
            // Everybody of the realm reads a public chat; members named beside that say nothing new.
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

/// `Text` itself deserializes whatever it is given, for the record; what comes from outside is cut.
fn text<'de, D: Deserializer<'de>>(from: D) -> Result<Text, D::Error> {
    String::deserialize(from).map(Text::from)
}

impl Event {
    /// When it happens, if the line says so.
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
    /// The name shown, cut to [`MAX_NAME_CHARS`].
    pub fn shown_name(&self) -> String {
        let name = self.name.as_deref().filter(|name| !name.trim().is_empty()).unwrap_or(self.person.as_str());
        name.chars().take(MAX_NAME_CHARS).collect()
    }
}
