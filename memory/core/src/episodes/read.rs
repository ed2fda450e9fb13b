//! Reads the messages of everyday chats, each under the read scope, and divides them into episodes.

use std::cmp::Reverse;

use azera_types::{Author, ChatId, MessageId, PersonId, Scope, TimeZone, Timestamp};
use jiff::SignedDuration;
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

/// Most messages outside the wanted time that one call reads, in all chats together.
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
    /// Where the wanted time ends. An episode that goes on behind it is read for as long as an episode may pause. `None`
    /// reads the newest messages.
    pub(super) until: Option<Timestamp>,
}

impl Stretch {
    /// Returns the moment from which nothing is read.
    fn end(self) -> Option<Timestamp> {
        self.until.map(|until| until.checked_add(SignedDuration::from_secs(QUIET_S)).unwrap_or(Timestamp::MAX))
    }
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
    /// How many of them lie in the wanted time.
    wanted: usize,
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
        let (mut found, mut left, mut skipped) = (ReadParts::default(), limit, 0);
        for chat in chats {
            let Some(head) = self.head(read_scope, &chat)? else { continue };
            if left == 0 {
                found.unread.push(Unread { until: head.at, speakers: None });
                continue;
            }
            let log = self.log(read_scope, (&chat, &head), stretch, left.min(MAX_HISTORY), &mut skipped)?;
            let Some(newest) = log.messages.last().map(|newest| newest.at) else {
                if log.is_cut {
                    found.unread.push(Unread { until: head.at, speakers: None });
                }
                continue;
            };
            left = left.saturating_sub(log.wanted);
            let people = speakers(&log.messages);
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

    /// Returns the newest message of a chat, if `read_scope` grants its place now. Nothing is read of another chat.
    fn head(self, read_scope: &ReadScope, chat: &ChatRow) -> Result<Option<MessageRow>, Error> {
        let Some(head) = &chat.head else { return Ok(None) };
        let head = self.0.messages().raw_message(head)?;
        Ok(head.filter(|head| is_granted(read_scope, &head.scope, head.at)))
    }

    /// Returns the newest messages of a chat in a stretch of time. Each is checked by itself: what was said while the chat
    /// belonged to a place that `read_scope` does not grant is left out. Reading ends at a message before the horizon of
    /// its place, because those behind it are older.
    fn log(
        self,
        read_scope: &ReadScope,
        (chat, head): (&ChatRow, &MessageRow),
        stretch: Stretch,
        limit: usize,
        skipped: &mut usize,
    ) -> Result<Log, Error> {
        let mut log = Log { messages: Vec::new(), wanted: 0, is_cut: false };
        let (mut next, mut steps, end) = (self.start(chat, head, stretch.end())?, 0, stretch.end());
        while let Some(id) = next {
            let Some(message) = self.0.messages().raw_message(&id)? else { break };
            next = message.parent.clone();
            let is_older = message.at < stretch.since;
            // Files may be imported in any order.
            let may_end = chat.imported.is_none();
            if may_end && (is_older || is_before_horizon(read_scope, &message.scope, message.at)) {
                break;
            }
            let is_behind = stretch.until.is_some_and(|until| message.at >= until);
            if is_older || is_behind {
                *skipped += 1;
                if *skipped > MAX_SKIPPED {
                    log.is_cut = true;
                    break;
                }
            }
            if is_older || end.is_some_and(|end| message.at >= end) {
                continue;
            }
            steps += usize::from(!is_behind);
            if log.wanted == limit || steps > MAX_HISTORY {
                // What may not be read is not missing.
                log.is_cut = is_granted(read_scope, &message.scope, message.at);
                break;
            }
            if is_said(&message)
                && read_scope.allows(&message.persona, &message.scope, &message.source_scopes, message.at)
            {
                log.wanted += usize::from(!is_behind);
                log.messages.push(message);
            }
        }
        log.messages.reverse();
        if chat.imported.is_some() {
            log.messages.sort_by_key(|message| (message.at, message.seq));
        }
        Ok(log)
    }

    /// Returns the message at which reading begins: the newest one, or one soon after `end`, which is found by halving
    /// the chat's log. Where a chat has several branches, the log does not tell which of them a message is on; and the
    /// log of an imported chat is not in the order of time.
    fn start(self, chat: &ChatRow, head: &MessageRow, end: Option<Timestamp>) -> Result<Option<MessageId>, Error> {
        let newest = || Ok(Some(head.id.clone()));
        let Some(end) = end.filter(|end| *end <= chat.last_at && chat.imported.is_none()) else { return newest() };
        let (store, log) = (self.0.store.as_ref(), keys::prefix(&[chat.id.as_str()]));
        if !store.scan(Table::Branches, &log, None, Order::Ascending, 1)?.is_empty() {
            return newest();
        }
        let after = self.newest_before(chat, end, head.seq)?;
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

/// Returns true if a place is granted, but not from so early on.
fn is_before_horizon(read_scope: &ReadScope, scope: &Scope, at: Timestamp) -> bool {
    read_scope.grants().iter().any(|grant| grant.scope == *scope) && !is_granted(read_scope, scope, at)
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
