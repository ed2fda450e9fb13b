//! Reads the messages of everyday chats, each under the read scope, and divides them into episodes.

use std::cmp::Reverse;

use azera_types::{Author, ChatId, PersonId, Scope, TimeZone, Timestamp};

use crate::domains::Episodes;
use crate::imports::{ImportedChat, project_name};
use crate::rows::{ChatRow, MessageRow};
use crate::{Error, MAX_HISTORY, ReadScope, Table, codec};

/// Seconds without a message after which a new episode begins: longer than a meal or a film, shorter than a night or a
/// day at work.
const QUIET_S: i64 = 3 * 3_600;

/// Seconds after which one begins on another day. A talk that goes on past midnight is one episode.
const OVERNIGHT_S: i64 = 3_600;

/// Most messages of an episode, where people never pause.
const MAX_LENGTH: usize = 500;

/// A part of a chat between two quiet times, the oldest message first.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) messages: Vec<MessageRow>,
}

impl Part {
    pub(super) fn first(&self) -> Option<&MessageRow> {
        self.messages.first()
    }

    pub(super) fn span(&self) -> Option<(Timestamp, Timestamp)> {
        let at = || self.messages.iter().map(|message| message.at);
        at().min().zip(at().max())
    }
}

/// Older messages of a chat that were not read.
#[derive(Debug)]
pub(super) struct Unread {
    /// When the oldest message was said that was read, or the newest one, if none was.
    pub(super) until: Timestamp,
    /// Who spoke in the part that was read; `None` if nothing was.
    pub(super) speakers: Option<Vec<PersonId>>,
}

/// What was read.
#[derive(Debug, Default)]
pub(super) struct ReadParts {
    /// In the order of their last messages.
    pub(super) parts: Vec<Part>,
    pub(super) unread: Vec<Unread>,
}

/// The messages of a chat, the oldest first.
struct Log {
    messages: Vec<MessageRow>,
    is_cut: bool,
}

impl Episodes<'_> {
    /// Reads the messages since a moment that `read_scope` allows: at most `limit`, those of the newest chats first, and of
    /// one chat at most [`MAX_HISTORY`].
    pub(super) fn parts(
        self,
        read_scope: &ReadScope,
        since: Timestamp,
        zone: &TimeZone,
        limit: usize,
    ) -> Result<ReadParts, Error> {
        let mut chats: Vec<ChatRow> = codec::rows(self.0.store.as_ref(), Table::Chats, b"")?;
        chats.retain(|chat| is_everyday(chat) && chat.last_at >= since);
        chats.sort_by(|one, other| (Reverse(one.last_at), &one.id).cmp(&(Reverse(other.last_at), &other.id)));
        let (mut found, mut left) = (ReadParts::default(), limit);
        for chat in chats {
            let log = self.log(read_scope, &chat, since, left.clamp(1, MAX_HISTORY))?;
            let Some(oldest) = log.messages.first() else { continue };
            if left == 0 {
                found.unread.push(Unread { until: oldest.at, speakers: None });
                continue;
            }
            left = left.saturating_sub(log.messages.len());
            if log.is_cut {
                let people = log.messages.iter().filter_map(|message| message.author.person()).cloned();
                found.unread.push(Unread { until: oldest.at, speakers: Some(people.collect()) });
            }
            found.parts.extend(divided(log.messages, zone));
        }
        found.parts.sort_by_key(|part| part.messages.last().map(|last| (last.at, last.seq)));
        Ok(found)
    }

    /// Returns the newest messages of a chat. Reading ends where the chat belonged to a place that `read_scope` does not
    /// grant, or lies before a horizon: what is older is not part of the same conversation.
    fn log(self, read_scope: &ReadScope, chat: &ChatRow, since: Timestamp, limit: usize) -> Result<Log, Error> {
        let mut log = Log { messages: Vec::new(), is_cut: false };
        let (mut next, mut steps) = (chat.head.clone(), 0);
        while let Some(id) = next {
            let Some(message) = self.0.messages().raw_message(&id)? else { break };
            if !is_granted(read_scope, &message.scope, message.at) || message.at < since {
                break;
            }
            steps += 1;
            if log.messages.len() == limit || steps > MAX_HISTORY {
                log.is_cut = true;
                break;
            }
            next = message.parent.clone();
            if is_said(&message)
                && read_scope.allows(&message.persona, &message.scope, &message.source_scopes, message.at)
            {
                log.messages.push(message);
            }
        }
        log.messages.reverse();
        Ok(log)
    }
}

/// Returns true for chats in which people talk. Imported coding sessions have episodes of their own.
fn is_everyday(chat: &ChatRow) -> bool {
    match &chat.imported {
        None => true,
        Some(ImportedChat::Kept { scope: Scope::Realm(realm), .. }) => project_name(realm).is_none(),
        Some(ImportedChat::Kept { .. }) => true,
        Some(_) => false,
    }
}

fn is_granted(read_scope: &ReadScope, scope: &Scope, at: Timestamp) -> bool {
    let grants = || read_scope.grants().iter();
    grants().any(|grant| grant.scope == *scope && grant.since.is_none_or(|since| at >= since))
}

/// Returns true for what was said in a conversation. Posts of writings were not.
fn is_said(message: &MessageRow) -> bool {
    message.author != Author::Forgotten && (message.author.person().is_some() || message.answers.is_some())
}

/// Divides the messages of a chat by quiet times. Parts in which no person speaks are left out.
fn divided(messages: Vec<MessageRow>, zone: &TimeZone) -> Vec<Part> {
    let day = |at: Timestamp| at.to_zoned(zone.clone()).date();
    let mut parts: Vec<Part> = Vec::new();
    for message in messages {
        let goes_on = parts.last().is_some_and(|part| {
            let last = part.messages.last().map_or(Timestamp::MIN, |last| last.at);
            let quiet = message.at.as_second().saturating_sub(last.as_second());
            quiet < QUIET_S && (quiet < OVERNIGHT_S || day(last) == day(message.at)) && part.messages.len() < MAX_LENGTH
        });
        match parts.last_mut().filter(|_| goes_on) {
            Some(part) => part.messages.push(message),
            None => parts.push(Part { messages: vec![message] }),
        }
    }
    parts.retain(|part| part.messages.iter().any(|message| message.author.person().is_some()));
    parts
}

/// Returns the chat of a part.
pub(super) fn chat_of(part: &Part) -> Option<&ChatId> {
    part.first().map(|first| &first.chat)
}
