//! Forgetting in backups. The record keeps the ids of forgotten items, without their content, until every backup was
//! cleaned of them.

use std::collections::{BTreeMap, BTreeSet};

use azera_types::{Author, ChatId, MemoryId, MessageId, PersonId, PlatformId, RealmId, Scope, Timestamp};
use serde::{Deserialize, Serialize};

use crate::accounts::account_of;
use crate::files::BlobRow;
use crate::forget::emptied;
use crate::imports::ImportedChat;
use crate::links::{LinkRow, between};
use crate::minds::{BondRow, ForgottenScope, MindRow};
use crate::pictures::PictureRow;
use crate::ratings::RatingRow;
use crate::rows::{BranchRow, ChatRow, MemoryRow, MessageRow, OutboxRow};
use crate::settings::is_of;
use crate::vaults::VaultRow;
use crate::{Batch, Change, Error, Table, codec, keys};

/// Ids of forgotten items. People, chats, ranges of chats and realms come with the highest number given out when they
/// were forgotten. Rows with a larger number are newer and stay.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Forgotten {
    messages: BTreeSet<MessageId>,
    /// Those of the messages above that may be imported again, because their import was undone.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    undone: BTreeSet<MessageId>,
    /// Remaining replies that were built on these messages. They are no longer remembered.
    quoting: BTreeSet<MessageId>,
    memories: BTreeSet<MemoryId>,
    people: BTreeMap<PersonId, u64>,
    /// Those of the people above whose replies were forgotten, too.
    #[serde(default)]
    with_replies: BTreeSet<PersonId>,
    /// Accounts that were removed from their links.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    unlinked: BTreeMap<PersonId, u64>,
    chats: BTreeMap<ChatId, u64>,
    /// Those of the chats above that were forgotten with their realm.
    #[serde(default)]
    with_realm: BTreeSet<ChatId>,
    /// Those of the chats above that may be imported again, because their import was undone.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    undone_chats: BTreeSet<ChatId>,
    realms: BTreeMap<RealmId, u64>,
    #[serde(default)]
    spans: BTreeSet<Span>,
    /// Accounts that were removed: the platform and the person of each.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    accounts: BTreeSet<(PlatformId, PersonId)>,
    /// People whose vaults up to a number are gone.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    vaults: BTreeMap<PersonId, u64>,
}

/// A forgotten range of time in a chat. Its messages are listed by id. A writing from that range may already have been
/// replaced, so it needs the range.
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
    /// Returns true if nothing was forgotten.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    pub(crate) fn message(&mut self, id: MessageId) {
        self.messages.insert(id);
    }

    /// Notes that a message of this log may be imported again.
    pub(crate) fn undone(&mut self, id: MessageId) {
        self.undone.insert(id);
    }

    pub(crate) fn quoting(&mut self, id: MessageId) {
        self.quoting.insert(id);
    }

    /// Adds a memory; returns true if it was new.
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

    /// Notes that a chat of this log may be imported again.
    pub(crate) fn undone_chat(&mut self, id: ChatId) {
        self.undone_chats.insert(id);
    }

    pub(crate) fn account(&mut self, platform: PlatformId, of: PersonId) {
        self.accounts.insert((platform, of));
    }

    pub(crate) fn vault(&mut self, of: PersonId, number: u64) {
        self.vaults.insert(of, number);
    }

    pub(crate) fn realm(&mut self, id: RealmId, number: u64) {
        self.realms.insert(id, number);
    }

    pub(crate) fn span(&mut self, chat: ChatId, from: Timestamp, to: Timestamp, number: u64) {
        self.spans.insert(Span { chat, from, to, number });
    }

    pub(crate) fn absorb(&mut self, other: Self) {
        let (messages, more) = (&self.messages, &other.messages);
        join_undone(&mut self.undone, other.undone, |id| messages.contains(id), more.iter());
        let (chats, more) = (&self.chats, &other.chats);
        join_undone(&mut self.undone_chats, other.undone_chats, |id| chats.contains_key(id), more.keys());
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
        self.accounts.extend(other.accounts);
        latest(&mut self.vaults, other.vaults);
    }

    /// Returns true if a row was forgotten with its person, chat or realm. If an older backup was restored in between,
    /// another backup may hold rows whose ids this record never knew.
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

    /// Returns true if a persona's mind in a place, or its bond with a person there, was forgotten with the person or
    /// the place.
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

    /// Returns true if a link was removed, or was forgotten with one of its accounts.
    fn has_link(&self, number: u64, accounts: &[PersonId]) -> bool {
        let by = |last: Option<&u64>| last.is_some_and(|last| number <= *last);
        accounts.iter().any(|account| by(self.people.get(account)) || by(self.unlinked.get(account)))
    }

    /// Returns true if a vault was forgotten, or an entry of it.
    fn has_vault(&self, row: &VaultRow) -> bool {
        let by = |last: Option<&u64>| last.is_some_and(|last| row.seq <= *last);
        by(self.people.get(&row.person)) || by(self.vaults.get(&row.person))
    }

    /// Starts to clean a backup.
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

/// Merges what two logs call undone. `is_known` tells what the first log names, `named` is what the other names. An item
/// stays undone only if no log names it as forgotten.
fn join_undone<'a, T: Ord + 'a>(
    known: &mut BTreeSet<T>,
    more: BTreeSet<T>,
    is_known: impl Fn(&T) -> bool,
    named: impl Iterator<Item = &'a T>,
) {
    for id in named.filter(|id| !more.contains(*id)) {
        known.remove(id);
    }
    let joined: Vec<T> = more.into_iter().filter(|id| known.contains(id) || !is_known(id)).collect();
    known.extend(joined);
}

/// Merges two logs. If both name the same item, the later number counts.
fn latest<T: Ord>(known: &mut BTreeMap<T, u64>, more: BTreeMap<T, u64>) {
    for (id, number) in more {
        let latest = known.entry(id).or_default();
        *latest = number.max(*latest);
    }
}

/// Cleans one backup, from its first row to its last. The order of rows matters: messages come before their memories,
/// and memories before links to them. A message comes before its replies, whose ids begin with its own.
#[derive(Debug)]
pub struct BackupCleaner<'a> {
    what: &'a Forgotten,
    /// Messages that were forgotten with their person, chat or realm.
    gone: BTreeSet<MessageId>,
    /// Those of them whose replies are forgotten, too.
    replies_go: BTreeSet<MessageId>,
    /// Remaining replies to the other forgotten messages. They are no longer remembered.
    quoting: BTreeSet<MessageId>,
    /// Messages of forgotten chats that are newer and stay.
    newer: BTreeSet<MessageId>,
    dropped: BTreeSet<MemoryId>,
}

impl BackupCleaner<'_> {
    /// Returns the rows of the next batch that may stay, and whether any row was removed or changed.
    ///
    /// # Errors
    ///
    /// Fails if a row cannot be read.
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

    /// Returns true if a memory is known to be forgotten, from the log or from an earlier row.
    fn has_id(&self, id: MemoryId) -> bool {
        self.what.memories.contains(&id) || self.dropped.contains(&id)
    }

    /// Applies the forgetting to one row; returns the row that may stay, or `None`.
    pub(crate) fn row(&mut self, table: Table, key: &[u8], value: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        let what = self.what;
        match table {
            Table::Messages => return self.message(value),
            Table::Memories => return self.memory(value),
            _ => {}
        }
        let gone = |id: &MessageId| what.messages.contains(id) || self.gone.contains(id);
        let newer = |head: Option<&MessageId>| head.is_some_and(|head| self.newer.contains(head));
        let retained = match table {
            Table::Chats => return self.chat(value).map(Some),
            Table::PersonLog => !gone(&codec::decode(table, value)?),
            Table::Outbox => !gone(&codec::decode::<OutboxRow>(table, value)?.message),
            Table::Inbox | Table::Why => {
                let id = std::str::from_utf8(key).ok().and_then(|id| MessageId::new(id).ok());
                !id.is_some_and(|id| gone(&id))
            }
            Table::MemoryByMessage | Table::MemoryByChat => {
                !self.dropped.contains(&MemoryId(keys::number(table.name(), key)?))
            }
            Table::Writings | Table::Marks | Table::Graph | Table::Themes | Table::Kept => {
                !self.dropped.contains(&MemoryId(keys::number(table.name(), key)?))
            }
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
                None if account_of(key).is_some() => !account_of(key).is_some_and(|of| what.accounts.contains(&of)),
                None => {
                    let people = what.people.keys().map(ForgottenScope::Person);
                    let chats = what.chats.keys().map(ForgottenScope::Chat);
                    let realms = what.realms.keys().map(ForgottenScope::Realm);
                    !people.chain(chats).chain(realms).any(|gone| is_of(key, &gone))
                }
            },
            Table::Pictures => {
                let row: PictureRow = codec::decode(table, value)?;
                let author = Author::Person { id: row.person.clone(), name: String::new() };
                !gone(&row.message) && !what.has(row.number, &author, Some(&row.chat), &row.scope)
            }
            Table::Vaults => !what.has_vault(&codec::decode(table, value)?),
            Table::Blobs => !gone(&codec::decode::<BlobRow>(table, value)?.message),
            Table::Bonds => {
                let BondRow { person, scope, seq, .. } = codec::decode(table, value)?;
                !what.has_state(seq, Some(&person), &scope)
            }
            Table::Ratings => return self.rating(value),
            _ => true,
        };
        Ok(retained.then(|| value.to_vec()))
    }

    fn rating(&self, value: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        let (what, table) = (self.what, Table::Ratings);
        let row: RatingRow = codec::decode(table, value)?;
        if self.has_id(row.memory) || what.has_state(row.seq, Some(&row.person), &row.scope) {
            return Ok(None);
        }
        let mut left = row.clone();
        // Whatever was given in the chat since then stands in a row with a later number.
        if !left.forget_chats(|chat| what.chats.get(chat).is_some_and(|until| row.seq <= *until)) {
            return Ok(None);
        }
        if !left.forget_replies(|reply| what.messages.contains(reply) || self.gone.contains(reply)) {
            return Ok(None);
        }
        if left == row { Ok(Some(value.to_vec())) } else { codec::encode(table, &left).map(Some) }
    }

    /// Empties the row of a forgotten chat, unless somebody spoke there again since.
    fn chat(&self, value: &[u8]) -> Result<Vec<u8>, Error> {
        let (what, table) = (self.what, Table::Chats);
        let row: ChatRow = codec::decode(table, value)?;
        if !what.chats.contains_key(&row.id) || row.head.as_ref().is_some_and(|head| self.newer.contains(head)) {
            return Ok(value.to_vec());
        }
        let gone = |id: &MessageId| what.messages.contains(id) || self.gone.contains(id);
        let head = row.head.clone().filter(|head| !gone(head));
        let with_realm = what.with_realm.contains(&row.id);
        let was_imported = matches!(row.imported, Some(ImportedChat::Kept { .. } | ImportedChat::Undone));
        let undone = was_imported && what.undone_chats.contains(&row.id);
        let mut emptied = row.emptied(head, with_realm);
        if undone {
            emptied.imported = Some(ImportedChat::Undone);
        }
        codec::encode(table, &emptied)
    }

    fn memory(&mut self, value: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        let memory: MemoryRow = codec::decode(Table::Memories, value)?;
        if self.has_memory(&memory) {
            self.dropped.insert(memory.id);
            return Ok(None);
        }
        if memory.replaced.is_some_and(|by| self.has_id(by.memory)) {
            return codec::encode(Table::Memories, &MemoryRow { replaced: None, ..memory }).map(Some);
        }
        Ok(Some(value.to_vec()))
    }

    fn message(&mut self, value: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        let (what, table) = (self.what, Table::Messages);
        let row: MessageRow = codec::decode(table, value)?;
        let answers = |set: &BTreeSet<MessageId>| row.answers.as_ref().is_some_and(|question| set.contains(question));
        // The record listed these messages by id, and with them the replies that had to go.
        if what.messages.contains(&row.id) {
            let undone = what.undone.contains(&row.id) && (row.author != Author::Forgotten || row.undone);
            return codec::encode(table, &MessageRow { undone, ..emptied(row) }).map(Some);
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

    /// Returns true if a memory was forgotten. It may have left the record before, for example as the memory of an
    /// alternative reply that nobody chose. Then the log does not list its id.
    fn has_memory(&self, memory: &MemoryRow) -> bool {
        let what = self.what;
        let sets = [&what.messages, &what.quoting, &self.gone, &self.quoting];
        what.memories.contains(&memory.id)
            || memory.sources.iter().any(|source| sets.iter().any(|set| set.contains(source)))
            || what.has(memory.id.0, &memory.author, memory.chat.as_ref(), &memory.scope)
            || what.spans.iter().any(|span| span.has(memory))
    }
}

/// Items that backups still have to forget, read at one moment.
#[derive(Debug, Clone, Default)]
pub struct PendingBackupForgets {
    /// The items.
    pub what: Forgotten,
    /// The log rows that the items were read from.
    pub(crate) rows: BTreeMap<Vec<u8>, Forgotten>,
}

impl PendingBackupForgets {
    pub(crate) fn add(&mut self, key: Vec<u8>, what: Forgotten) {
        self.what.absorb(what.clone());
        self.rows.entry(key).or_default().absorb(what);
    }

    /// Adds the items that another record of the same history still has to forget.
    pub fn join(&mut self, other: Self) {
        other.rows.into_iter().for_each(|(key, what)| self.add(key, what));
    }
}
