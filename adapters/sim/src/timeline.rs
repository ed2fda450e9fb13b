use std::collections::BTreeSet;
use std::io::{BufRead, Read};

use azera_types::{ChatId, MAX_NAME_CHARS, MessageId, PersonId, PersonaId, RealmId, Text, Timestamp};
use serde::{Deserialize, Deserializer};
use thiserror::Error;

use crate::Error;

/// Bytes a line may have. Longer than any message that is taken in, so that such a message is cut and not refused.
pub const MAX_LINE_BYTES: usize = 16 * 1024 * 1024;

/// Lines a timeline may have.
pub const MAX_LINES: usize = 1_000_000;

/// What is wrong with a line.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum LineError {
    /// Not UTF-8.
    #[error("not UTF-8")]
    NotUtf8,
    /// More than [`MAX_LINE_BYTES`].
    #[error("longer than {MAX_LINE_BYTES} bytes")]
    TooLong,
    /// More than [`MAX_LINES`] lines.
    #[error("more than {MAX_LINES} lines")]
    TooMany,
    /// Not JSON.
    #[error("not JSON: {0}")]
    NotJson(String),
    /// JSON, but no event of a timeline.
    #[error("{0}")]
    NotAnEvent(String),
    /// Its time lies before the time of a line above.
    #[error("time runs backwards: {at} after {before}")]
    Backwards {
        /// The line's time.
        at: Timestamp,
        /// The latest time above it.
        before: Timestamp,
    },
}

/// What happens in a replay, in order.
#[derive(Debug, Clone, PartialEq)]
pub struct Timeline {
    lines: Vec<Line>,
}

/// One line of a timeline.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// Its number in the file, counted from 1, empty lines included.
    pub number: usize,
    /// What happens.
    pub event: Event,
}

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
    Probe(ProbeGiven),
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
pub struct ProbeGiven {
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
            (RawKind::Private, realm) => ChatKind::Private { realm, members },
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
            Self::Probe(line) => Some(line.at),
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

impl Timeline {
    /// Reads a whole timeline. The first bad line is an error that names it; empty lines count but say nothing.
    pub fn read(mut from: impl BufRead) -> Result<Self, Error> {
        let mut lines = Vec::new();
        let mut latest: Option<Timestamp> = None;
        for number in 1.. {
            let Some(bytes) = next_line(&mut from, number)? else { break };
            let event = parse(&bytes).map_err(|what| Error::Line { number, what })?;
            let Some(event) = event else { continue };
            if let Some(at) = event.at() {
                if let Some(before) = latest.filter(|before| at < *before) {
                    return Err(Error::Line { number, what: LineError::Backwards { at, before } });
                }
                latest = Some(at);
            }
            if lines.len() == MAX_LINES {
                return Err(Error::Line { number, what: LineError::TooMany });
            }
            lines.push(Line { number, event });
        }
        Ok(Self { lines })
    }

    /// Its lines, in order.
    pub fn lines(&self) -> &[Line] {
        &self.lines
    }

    /// The first time it names: where the clock stands at the beginning.
    pub fn start(&self) -> Option<Timestamp> {
        self.lines.iter().find_map(|line| line.event.at())
    }
}

/// The next line with its end cut off, `None` at the end of the file.
fn next_line(from: &mut impl BufRead, number: usize) -> Result<Option<Vec<u8>>, Error> {
    let mut bytes = Vec::new();
    let limit = MAX_LINE_BYTES as u64 + 1;
    if from.take(limit).read_until(b'\n', &mut bytes).map_err(Error::Read)? == 0 {
        return Ok(None);
    }
    if bytes.len() > MAX_LINE_BYTES {
        return Err(Error::Line { number, what: LineError::TooLong });
    }
    Ok(Some(bytes))
}

/// The event a line holds, `None` if it is empty.
fn parse(bytes: &[u8]) -> Result<Option<Event>, LineError> {
    let line = std::str::from_utf8(bytes).map_err(|_| LineError::NotUtf8)?;
    let line = line.trim_start_matches('\u{feff}').trim();
    if line.is_empty() {
        return Ok(None);
    }
    // In two steps, so that what is no JSON and what is no event are told apart.
    let value: serde_json::Value = serde_json::from_str(line).map_err(|e| LineError::NotJson(within_line(&e)))?;
    Event::deserialize(value).map(Some).map_err(|e| LineError::NotAnEvent(e.to_string()))
}

/// The parser counts the one line it sees as line 1, which would contradict the number shown before it.
fn within_line(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let what = text.rsplit_once(" at line ").map_or(text.as_str(), |(what, _)| what);
    format!("{what} in column {}", error.column())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_lines_are_named_with_what_is_wrong() {
        #[track_caller]
        fn check(text: &str, want: &str) {
            assert_eq!(Timeline::read(text.as_bytes()).unwrap_err().to_string(), want);
        }
        let at = r#""at":"2026-01-01T00:00:00Z""#;
        check("{oops}", "line 1: not JSON: key must be a string in column 2");
        check("\n\n3", "line 3: invalid type: integer `3`, expected internally tagged enum Event");
        check(&format!(r#"{{{at},"chat":"c"}}"#), "line 1: missing field `type`");
        check(r#"{"type":"wait"}"#, "line 1: missing field `until`");
        check(&format!(r#"{{"type":"delete",{at},"id":""}}"#), "line 1: an id may not be empty");
        check(
            &format!(r#"{{"type":"chat",{at},"chat":"c","kind":"public"}}"#),
            "line 1: a public chat needs a `realm`",
        );
        check(
            &format!(r#"{{"type":"chat",{at},"chat":"c","kind":"dm","realm":"r","members":["ann"]}}"#),
            "line 1: a dm has no `realm`",
        );
        check(
            &format!(r#"{{"type":"chat",{at},"chat":"c","kind":"dm","members":["ann","bob"]}}"#),
            "line 1: a dm has exactly one of `members`",
        );
        check(&format!(r#"{{"type":"join",{at},"person":"ann"}}"#), "line 1: either `realm` or `chat` must be named");
        check(
            "{\"type\":\"wait\",\"until\":\"2026-01-02T00:00:00Z\"}\n{\"type\":\"restart\"}\n\
             {\"type\":\"restart\",\"at\":\"2026-01-01T23:59:59Z\"}",
            "line 3: time runs backwards: 2026-01-01T23:59:59Z after 2026-01-02T00:00:00Z",
        );
        let unknown = Timeline::read(format!(r#"{{"type":"dance",{at}}}"#).as_bytes()).unwrap_err().to_string();
        assert!(unknown.starts_with("line 1: unknown variant `dance`, expected one of `realm`"), "{unknown}");
        let zoneless = Timeline::read(r#"{"type":"wait","until":"2026-01-02T00:00:00"}"#.as_bytes());
        assert!(zoneless.unwrap_err().to_string().starts_with("line 1: "));
    }

    #[test]
    fn bytes_that_are_no_text_are_refused() {
        let error = Timeline::read(&b"\n\xff\n"[..]).unwrap_err();
        assert!(matches!(error, Error::Line { number: 2, what: LineError::NotUtf8 }), "{error}");
    }

    #[test]
    fn fields_may_be_added_and_optional_ones_null() {
        let line =
            r#"{"type":"message","at":"2026-01-01T01:00:00+01:00","id":"m1","chat":"c","person":"ann","name":null,
            "text":"hi","mentions_bot":null,"mentions":null,"reply_to":null,"mood":"later"}"#
                .replace('\n', " ");
        let timeline = Timeline::read(line.as_bytes()).unwrap();
        let Event::Message(message) = &timeline.lines()[0].event else { panic!("{timeline:?}") };
        assert_eq!((message.shown_name().as_str(), message.text.as_str()), ("ann", "hi"));
        assert_eq!(timeline.start().unwrap().to_string(), "2026-01-01T00:00:00Z");
    }

    #[test]
    fn a_text_too_long_is_cut_and_not_refused() {
        let text = "x".repeat(azera_types::MAX_TEXT_BYTES + 1);
        let line = format!(r#"{{"type":"edit","at":"2026-01-01T00:00:00Z","id":"m","text":"{text}"}}"#);
        let timeline = Timeline::read(line.as_bytes()).unwrap();
        let Event::Edit(edit) = &timeline.lines()[0].event else { panic!("{timeline:?}") };
        assert_eq!(edit.text.len(), azera_types::MAX_TEXT_BYTES);
    }
}
