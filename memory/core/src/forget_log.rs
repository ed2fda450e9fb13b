//! Forgetting in backups. A forgetting leaves behind the ids of what went, without a word of it, until every backup was
//! gone through with them.

use std::collections::{BTreeMap, BTreeSet};

use azera_types::{Author, ChatId, MemoryId, MessageId, PersonId, RealmId, Scope, Timestamp};
use serde::{Deserialize, Serialize};

use crate::forget::emptied;
use crate::links::{LinkRow, between};
use crate::minds::{BondRow, ForgottenScope, MindRow};
use crate::rows::{BranchRow, ChatRow, MemoryRow, MessageRow, OutboxRow};
use crate::settings::is_of;
use crate::{Batch, Change, Error, Table, codec, keys};

/// Ids of what was forgotten. Those of people, chats, times of chats and realms come with the number given out last when
/// it was done: what has a larger one came after it and stays.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Forgotten {
    messages: BTreeSet<MessageId>,
    /// Replies built on them that stand, and are remembered no more.
    quoting: BTreeSet<MessageId>,
    memories: BTreeSet<MemoryId>,
    people: BTreeMap<PersonId, u64>,
    /// Those of them who were forgotten with the replies to them.
    #[serde(default)]
    with_replies: BTreeSet<PersonId>,
    /// Accounts that were taken out of their links.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    unlinked: BTreeMap<PersonId, u64>,
    chats: BTreeMap<ChatId, u64>,
    /// Those of them that were forgotten with their realm.
    #[serde(default)]
    with_realm: BTreeSet<ChatId>,
    realms: BTreeMap<RealmId, u64>,
    #[serde(default)]
    spans: BTreeSet<Span>,
}

/// A time of a chat that was forgotten. Its messages are known by their ids; what the persona wrote in it may have made
/// way for something newer before.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct Span {
    chat: ChatId,
    from: Timestamp,
    to: Timestamp,
    number: u64,
}

impl Span {
    fn has(&self, memory: &MemoryRow) -> bool {
        memory.stands_alone()
            && memory.id.0 <= self.number
            && memory.chat.as_ref() == Some(&self.chat)
            && (self.from..=self.to).contains(&memory.at)
    }
}

impl Forgotten {
    /// Whether nothing was.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    pub(crate) fn message(&mut self, id: MessageId) {
        self.messages.insert(id);
    }

    pub(crate) fn quoting(&mut self, id: MessageId) {
        self.quoting.insert(id);
    }

    /// Gives whether it was not among them yet.
    pub(crate) fn memory(&mut self, id: MemoryId) -> bool {
        self.memories.insert(id)
    }

    pub(crate) fn person(&mut self, id: PersonId, number: u64, with_replies: bool) {
        if with_replies {
            self.with_replies.insert(id.clone());
        }
        self.people.insert(id, number);
    }

    pub(crate) fn unlinked(&mut self, id: PersonId, number: u64) {
        self.unlinked.insert(id, number);
    }

    pub(crate) fn chat(&mut self, id: ChatId, number: u64, with_realm: bool) {
        if with_realm {
            self.with_realm.insert(id.clone());
        }
        self.chats.insert(id, number);
    }

    pub(crate) fn realm(&mut self, id: RealmId, number: u64) {
        self.realms.insert(id, number);
    }

    pub(crate) fn span(&mut self, chat: ChatId, from: Timestamp, to: Timestamp, number: u64) {
        self.spans.insert(Span { chat, from, to, number });
    }

    pub(crate) fn absorb(&mut self, other: Self) {
        self.messages.extend(other.messages);
        self.quoting.extend(other.quoting);
        self.memories.extend(other.memories);
        self.with_replies.extend(other.with_replies);
        self.with_realm.extend(other.with_realm);
        latest(&mut self.people, other.people);
        latest(&mut self.unlinked, other.unlinked);
        latest(&mut self.chats, other.chats);
        latest(&mut self.realms, other.realms);
        self.spans.extend(other.spans);
    }

    /// Whether what somebody said somewhere went by its person, chat or realm. A backup may hold some of it that the record
    /// never knew by id, where an older backup was restored in between.
    fn has(&self, number: u64, author: &Author, chat: Option<&ChatId>, scope: &Scope) -> bool {
        let by = |last: Option<&u64>| last.is_some_and(|last| number <= *last);
        let realm = match scope {
            Scope::Realm(realm) => Some(realm),
            _ => None,
        };
        by(author.person().and_then(|person| self.people.get(person)))
            || by(chat.and_then(|chat| self.chats.get(chat)))
            || by(realm.and_then(|realm| self.realms.get(realm)))
    }

    /// Whether how a persona is in a place, or what it feels towards somebody there, went with the person or the place.
    fn has_state(&self, number: u64, towards: Option<&PersonId>, scope: &Scope) -> bool {
        let by = |last: Option<&u64>| last.is_some_and(|last| number <= *last);
        let place = match scope {
            Scope::Dm(person) => self.people.get(person),
            Scope::Chat(chat) => self.chats.get(chat),
            Scope::Realm(realm) => self.realms.get(realm),
            Scope::Global => None,
        };
        by(place) || by(towards.and_then(|person| self.people.get(person)))
    }

    /// Whether a link was taken apart, or went with one of its accounts.
    fn has_link(&self, number: u64, accounts: &[PersonId]) -> bool {
        let by = |last: Option<&u64>| last.is_some_and(|last| number <= *last);
        accounts.iter().any(|account| by(self.people.get(account)) || by(self.unlinked.get(account)))
    }

    /// Begins to go through a backup.
    pub fn cleaning(&self) -> BackupCleaner<'_> {
        BackupCleaner {
            what: self,
            gone: BTreeSet::new(),
            replies_go: BTreeSet::new(),
            quoting: BTreeSet::new(),
            newer: BTreeSet::new(),
            dropped: BTreeSet::new(),
        }
    }
}

/// Of two forgettings of the same the later one counts.
fn latest<T: Ord>(known: &mut BTreeMap<T, u64>, more: BTreeMap<T, u64>) {
    for (id, number) in more {
        let latest = known.entry(id).or_default();
        *latest = number.max(*latest);
    }
}

/// A backup being gone through, from its first row to its last: messages come before the memories of them, and those
/// before what links to them; a message comes before the replies to it, whose ids begin with its own.
#[derive(Debug)]
pub struct BackupCleaner<'a> {
    what: &'a Forgotten,
    /// Messages that went by their person, chat or realm.
    gone: BTreeSet<MessageId>,
    /// Those of them whose replies go too.
    replies_go: BTreeSet<MessageId>,
    /// Replies to the others of them, which stand and are remembered no more.
    quoting: BTreeSet<MessageId>,
    /// Messages of forgotten chats that came later.
    newer: BTreeSet<MessageId>,
    dropped: BTreeSet<MemoryId>,
}

impl BackupCleaner<'_> {
    /// What may stay of the next batch, and whether that is less than all of it.
    ///
    /// # Errors
    ///
    /// If a row cannot be read.
    pub fn clean(&mut self, batch: &Batch) -> Result<(Batch, bool), Error> {
        let (mut cleaned, mut changed) = (Batch::new(), false);
        for change in batch.changes() {
            match change {
                Change::Put(table, key, value) => {
                    let retained = self.row(*table, key, value)?;
                    changed |= retained.as_ref() != Some(value);
                    if let Some(retained) = retained {
                        cleaned.put(*table, key.clone(), retained);
                    }
                }
                Change::Remove(table, key) => {
                    cleaned.remove(*table, key.clone());
                }
            }
        }
        Ok((cleaned, changed))
    }

    /// Does to a row what the forgetting did to the record: gives the row as it may stay, if it may.
    pub(crate) fn row(&mut self, table: Table, key: &[u8], value: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        let what = self.what;
        if table == Table::Messages {
            return self.message(value);
        }
        let gone = |id: &MessageId| what.messages.contains(id) || self.gone.contains(id);
        let newer = |head: Option<&MessageId>| head.is_some_and(|head| self.newer.contains(head));
        let retained = match table {
            Table::Chats => {
                let row: ChatRow = codec::decode(table, value)?;
                if what.chats.contains_key(&row.id) && !newer(row.head.as_ref()) {
                    let head = row.head.clone().filter(|head| !gone(head));
                    let with_realm = what.with_realm.contains(&row.id);
                    return codec::encode(table, &row.emptied(head, with_realm)).map(Some);
                }
                true
            }
            Table::PersonLog => !gone(&codec::decode(table, value)?),
            Table::Outbox => !gone(&codec::decode::<OutboxRow>(table, value)?.message),
            Table::Inbox | Table::Why => {
                let id = std::str::from_utf8(key).ok().and_then(|id| MessageId::new(id).ok());
                !id.is_some_and(|id| gone(&id))
            }
            Table::Memories => {
                let memory: MemoryRow = codec::decode(table, value)?;
                let gone = self.has_memory(&memory);
                if gone {
                    self.dropped.insert(memory.id);
                }
                !gone
            }
            Table::MemoryByMessage | Table::MemoryByChat => {
                !self.dropped.contains(&MemoryId(keys::number(table.name(), key)?))
            }
            Table::Writings | Table::Marks => !self.dropped.contains(&MemoryId(keys::number(table.name(), key)?)),
            Table::Notes => !self.dropped.contains(&codec::decode(table, value)?),
            Table::Branches => {
                let of_gone = what.chats.keys().any(|chat| key.starts_with(&keys::prefix(&[chat.as_str()])));
                !of_gone || newer(codec::decode::<BranchRow>(table, value)?.head.as_ref())
            }
            Table::Minds => {
                let MindRow { scope, seq, .. } = codec::decode(table, value)?;
                !what.has_state(seq, None, &scope)
            }
            Table::Settings => match between(key) {
                Some(accounts) => !what.has_link(codec::decode::<LinkRow>(table, value)?.seq, &accounts),
                None => {
                    let people = what.people.keys().map(ForgottenScope::Person);
                    let chats = what.chats.keys().map(ForgottenScope::Chat);
                    let realms = what.realms.keys().map(ForgottenScope::Realm);
                    !people.chain(chats).chain(realms).any(|gone| is_of(key, &gone))
                }
            },
            Table::Bonds => {
                let BondRow { person, scope, seq, .. } = codec::decode(table, value)?;
                !what.has_state(seq, Some(&person), &scope)
            }
            _ => true,
        };
        Ok(retained.then(|| value.to_vec()))
    }

    fn message(&mut self, value: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        let (what, table) = (self.what, Table::Messages);
        let row: MessageRow = codec::decode(table, value)?;
        let answers = |set: &BTreeSet<MessageId>| row.answers.as_ref().is_some_and(|question| set.contains(question));
        // What the record knew by id, it knew with the replies that were to go.
        if what.messages.contains(&row.id) {
            return codec::encode(table, &emptied(row)).map(Some);
        }
        if !what.has(row.seq, &row.author, Some(&row.chat), &row.scope) && !answers(&self.replies_go) {
            if answers(&self.gone) {
                self.quoting.insert(row.id);
            } else if what.chats.contains_key(&row.chat) {
                self.newer.insert(row.id);
            }
            return Ok(Some(value.to_vec()));
        }
        if row.author.person().is_some_and(|person| what.with_replies.contains(person)) {
            self.replies_go.insert(row.id.clone());
        }
        self.gone.insert(row.id.clone());
        codec::encode(table, &emptied(row)).map(Some)
    }

    /// Whether a memory went. It may have left the record before the forgetting, as that of an answer nobody chose does,
    /// so that its own id is not among those known.
    fn has_memory(&self, memory: &MemoryRow) -> bool {
        let what = self.what;
        let sets = [&what.messages, &what.quoting, &self.gone, &self.quoting];
        what.memories.contains(&memory.id)
            || memory.sources.iter().any(|source| sets.iter().any(|set| set.contains(source)))
            || what.has(memory.id.0, &memory.author, memory.chat.as_ref(), &memory.scope)
            || what.spans.iter().any(|span| span.has(memory))
    }
}

/// What backups still have to forget, as it stood at one moment.
#[derive(Debug, Clone, Default)]
pub struct PendingBackupForgets {
    /// What it is.
    pub what: Forgotten,
    /// The rows it was read from.
    pub(crate) rows: BTreeMap<Vec<u8>, Forgotten>,
}

impl PendingBackupForgets {
    pub(crate) fn add(&mut self, key: Vec<u8>, what: Forgotten) {
        self.what.absorb(what.clone());
        self.rows.entry(key).or_default().absorb(what);
    }

    /// Adds what another record of the same history still has to forget.
    pub fn join(&mut self, other: Self) {
        other.rows.into_iter().for_each(|(key, what)| self.add(key, what));
    }
}
