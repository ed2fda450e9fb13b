//! Reads the messages of everyday chats, each under the read scope, and divides them into episodes.

use std::cmp::Reverse;

use azera_types::{Author, ChatId, MessageId, PersonId, Scope, TimeZone, Timestamp};
use sha2::{Digest, Sha256};

use crate::domains::Episodes;
use crate::imports::{ImportedChat, project_name};
use crate::rows::{ChatRow, MessageRow};
use crate::{Error, MAX_HISTORY, Order, ReadScope, Table, codec, keys};

/// Seconds without a message after which a new episode begins: longer than a meal or a film, shorter than a night or a
/// day at work.
const QUIET_S: i64 = 3 * 3_600;

/// Seconds after which one begins on another day. A talk that goes on past midnight is one episode.
const OVERNIGHT_S: i64 = 3_600;

/// Messages of an episode after which it may be divided, where people never pause.
const LONG: usize = 300;

/// Where it may be divided, one message of this many begins a new episode.
const ONE_OF: u64 = 200;

/// Most messages behind the wanted time that are read, where a chat has several branches.
const MAX_SKIPPED: usize = 20_000;

/// Messages that are read behind the wanted time, because not all arrive in the order in which they were said.
const SLACK: usize = 64;

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

/// The time of which messages are read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stretch {
    /// Nothing that was said before is read.
    pub(super) since: Timestamp,
    /// Nothing that was said at this moment or later is read. `None` reads the newest messages.
    pub(super) until: Option<Timestamp>,
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
    /// Reads the messages of a stretch of time that `read_scope` allows: at most `limit`, those of the newest chats first,
    /// and of one chat at most [`MAX_HISTORY`].
    pub(super) fn parts(
        self,
        read_scope: &ReadScope,
        stretch: Stretch,
        zone: &TimeZone,
        limit: usize,
    ) -> Result<ReadParts, Error> {
        let mut chats: Vec<ChatRow> = codec::rows(self.0.store.as_ref(), Table::Chats, b"")?;
        chats.retain(|chat| is_everyday(chat) && chat.last_at >= stretch.since);
        chats.sort_by(|one, other| (Reverse(one.last_at), &one.id).cmp(&(Reverse(other.last_at), &other.id)));
        let (mut found, mut left) = (ReadParts::default(), limit);
        for chat in chats {
            let log = self.log(read_scope, &chat, stretch, left.clamp(1, MAX_HISTORY))?;
            let (Some(oldest), Some(newest)) = (log.messages.first(), log.messages.last()) else { continue };
            if left == 0 {
                found.unread.push(Unread { until: oldest.at, speakers: None });
                continue;
            }
            left = left.saturating_sub(log.messages.len());
            let (newest, people) = (newest.at, speakers(&log.messages));
            let parts = divided(log.messages, log.is_cut, zone);
            if log.is_cut {
                let until = parts.first().and_then(Part::first).map_or(newest, |oldest| oldest.at);
                found.unread.push(Unread { until, speakers: Some(people) });
            }
            found.parts.extend(parts);
        }
        found.parts.sort_by_key(|part| part.messages.last().map(|last| (last.at, last.seq)));
        Ok(found)
    }

    /// Returns the newest messages of a chat in a stretch of time. Reading ends where the chat belonged to a place that
    /// `read_scope` does not grant, or lies before a horizon: what is older is not part of the same conversation.
    fn log(self, read_scope: &ReadScope, chat: &ChatRow, stretch: Stretch, limit: usize) -> Result<Log, Error> {
        let mut log = Log { messages: Vec::new(), is_cut: false };
        let (mut next, mut steps, mut skipped) = (self.start(read_scope, chat, stretch.until)?, 0, 0);
        while let Some(id) = next {
            let Some(message) = self.0.messages().raw_message(&id)? else { break };
            if !is_granted(read_scope, &message.scope, message.at) || message.at < stretch.since {
                break;
            }
            next = message.parent.clone();
            if stretch.until.is_some_and(|until| message.at >= until) && skipped < MAX_SKIPPED {
                skipped += 1;
                continue;
            }
            steps += 1;
            if log.messages.len() == limit || steps > MAX_HISTORY {
                log.is_cut = true;
                break;
            }
            if is_said(&message)
                && read_scope.allows(&message.persona, &message.scope, &message.source_scopes, message.at)
            {
                log.messages.push(message);
            }
        }
        log.messages.reverse();
        Ok(log)
    }

    /// Returns the message at which reading begins: the newest one, or one soon after `until`, which is found by halving the
    /// chat's log. Where a chat has several branches, the log does not tell which of them a message is on.
    fn start(
        self,
        read_scope: &ReadScope,
        chat: &ChatRow,
        until: Option<Timestamp>,
    ) -> Result<Option<MessageId>, Error> {
        let newest = || Ok(chat.head.clone());
        let (Some(until), Some(head)) = (until.filter(|until| *until <= chat.last_at), &chat.head) else {
            return newest();
        };
        let (store, log) = (self.0.store.as_ref(), keys::prefix(&[chat.id.as_str()]));
        let has_branches = !store.scan(Table::Branches, &log, None, Order::Ascending, 1)?.is_empty();
        let Some(head) = self.0.messages().raw_message(head)? else { return newest() };
        // Where the reader may not read now, nothing older is read either.
        if has_branches || !is_granted(read_scope, &head.scope, head.at) {
            return newest();
        }
        let after = self.newest_before(chat, until, head.seq)?;
        let after = keys::numbered(&[chat.id.as_str()], after);
        let later = store.scan(Table::ChatLog, &log, Some(&after), Order::Ascending, SLACK)?;
        if later.len() < SLACK {
            return newest();
        }
        for (_, id) in later.iter().rev() {
            let id: MessageId = codec::decode(Table::ChatLog, id)?;
            // One of several replies to a message may not be the one that the chat went on with.
            if self.0.messages().raw_message(&id)?.is_some_and(|message| message.author.person().is_some()) {
                return Ok(Some(id));
            }
        }
        newest()
    }

    /// Returns the number of the newest message of a chat that was said before a moment; 0 if there is none.
    fn newest_before(self, chat: &ChatRow, until: Timestamp, newest: u64) -> Result<u64, Error> {
        let log = keys::prefix(&[chat.id.as_str()]);
        let (mut before, mut later) = (0, newest);
        while before < later {
            let middle = before + (later - before) / 2;
            let after = keys::numbered(&[chat.id.as_str()], middle);
            let next = self.0.store.scan(Table::ChatLog, &log, Some(&after), Order::Ascending, 1)?;
            let Some((key, id)) = next.first() else {
                later = middle;
                continue;
            };
            let id: MessageId = codec::decode(Table::ChatLog, id)?;
            if self.0.messages().raw_message(&id)?.is_some_and(|message| message.at >= until) {
                later = middle;
            } else {
                before = keys::number("chat_log", key)?;
            }
        }
        Ok(before)
    }
}

fn speakers(messages: &[MessageRow]) -> Vec<PersonId> {
    messages.iter().filter_map(|message| message.author.person()).cloned().collect()
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

/// Divides the messages of a chat by quiet times, and long talks at certain messages. Parts in which no person speaks are
/// left out. If older messages were not read, the part that they belong to is left out, too: an episode keeps its first
/// message while new ones come.
fn divided(messages: Vec<MessageRow>, is_cut: bool, zone: &TimeZone) -> Vec<Part> {
    let day = |at: Timestamp| at.to_zoned(zone.clone()).date();
    let mut parts: Vec<Part> = Vec::new();
    // Messages since the last pause.
    let mut since_pause = 0;
    for message in messages {
        let last = parts.last().and_then(|part| part.messages.last());
        let goes_on = last.is_some_and(|last| {
            let quiet = message.at.as_second().saturating_sub(last.at.as_second());
            quiet < QUIET_S && (quiet < OVERNIGHT_S || day(last.at) == day(message.at))
        });
        since_pause = if goes_on { since_pause + 1 } else { 0 };
        let divides = since_pause >= LONG && divides(&message.id);
        match parts.last_mut().filter(|_| goes_on && !divides) {
            Some(part) => part.messages.push(message),
            None => parts.push(Part { messages: vec![message] }),
        }
    }
    if is_cut && parts.len() > 1 {
        parts.remove(0);
    }
    parts.retain(|part| part.messages.iter().any(|message| message.author.person().is_some()));
    parts
}

/// Returns true if a long talk is divided before a message. It depends on nothing but its id, so that other messages change
/// nothing.
fn divides(id: &MessageId) -> bool {
    let digest = Sha256::digest(id.as_str().as_bytes());
    digest.first_chunk().is_some_and(|first| u64::from_be_bytes(*first).is_multiple_of(ONE_OF))
}

/// Returns the chat of a part.
pub(super) fn chat_of(part: &Part) -> Option<&ChatId> {
    part.first().map(|first| &first.chat)
}
