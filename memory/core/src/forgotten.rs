//! Forgetting in backups. A forgetting leaves behind the ids of what went, without a word of it, until every backup was
//! gone through with them.

use std::collections::{BTreeMap, BTreeSet};

use azera_types::{ChatId, MemoryId, MessageId, PersonId, RealmId, Scope};
use serde::{Deserialize, Serialize};

use crate::forget::emptied;
use crate::rows::{ChatRow, MAIN_BRANCH, MemoryRow, MessageRow, OutboxRow};
use crate::{Batch, Change, Error, Table, codec, keys};

/// Ids of what was forgotten. Those of people, chats and realms come with the number given out last when it was done:
/// what has a larger one came after it and stays.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Forgotten {
    messages: BTreeSet<MessageId>,
    /// Replies built on them that stand, and are remembered no more.
    quoting: BTreeSet<MessageId>,
    memories: BTreeSet<MemoryId>,
    people: BTreeMap<PersonId, u64>,
    chats: BTreeMap<ChatId, u64>,
    realms: BTreeMap<RealmId, u64>,
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

    pub(crate) fn memory(&mut self, id: MemoryId) {
        self.memories.insert(id);
    }

    pub(crate) fn person(&mut self, id: PersonId, number: u64) {
        self.people.insert(id, number);
    }

    pub(crate) fn chat(&mut self, id: ChatId, number: u64) {
        self.chats.insert(id, number);
    }

    pub(crate) fn realm(&mut self, id: RealmId, number: u64) {
        self.realms.insert(id, number);
    }

    pub(crate) fn absorb(&mut self, other: Self) {
        self.messages.extend(other.messages);
        self.quoting.extend(other.quoting);
        self.memories.extend(other.memories);
        latest(&mut self.people, other.people);
        latest(&mut self.chats, other.chats);
        latest(&mut self.realms, other.realms);
    }

    /// Whether a memory went. It may have left the record before the forgetting, as that of an answer nobody chose does,
    /// so that its own id is not among those known.
    fn has_memory(&self, memory: &MemoryRow) -> bool {
        let by = |number: Option<&u64>| number.is_some_and(|number| memory.id.0 <= *number);
        let realm = match &memory.scope {
            Scope::Realm(realm) => Some(realm),
            _ => None,
        };
        self.memories.contains(&memory.id)
            || memory.sources.iter().any(|source| self.messages.contains(source) || self.quoting.contains(source))
            || by(memory.author.person().and_then(|person| self.people.get(person)))
            || by(memory.chat.as_ref().and_then(|chat| self.chats.get(chat)))
            || by(realm.and_then(|realm| self.realms.get(realm)))
    }

    /// Begins to go through a backup.
    pub fn cleaning(&self) -> Cleaning<'_> {
        Cleaning { what: self, dropped: BTreeSet::new() }
    }
}

/// Of two forgettings of the same the later one counts.
fn latest<T: Ord>(known: &mut BTreeMap<T, u64>, more: BTreeMap<T, u64>) {
    for (id, number) in more {
        let latest = known.entry(id).or_default();
        *latest = number.max(*latest);
    }
}

/// A backup being gone through, from its first row to its last: memories come before what links to them.
#[derive(Debug)]
pub struct Cleaning<'a> {
    what: &'a Forgotten,
    dropped: BTreeSet<MemoryId>,
}

impl Cleaning<'_> {
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
                    let kept = self.row(*table, key, value)?;
                    changed |= kept.as_ref() != Some(value);
                    if let Some(kept) = kept {
                        cleaned.put(*table, key.clone(), kept);
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
        let gone = |id: &MessageId| what.messages.contains(id);
        let kept = match table {
            Table::Messages => {
                let row: MessageRow = codec::decode(table, value)?;
                if gone(&row.id) {
                    return codec::encode(table, &emptied(row)).map(Some);
                }
                true
            }
            Table::Chats => {
                let row: ChatRow = codec::decode(table, value)?;
                if what.chats.contains_key(&row.id) {
                    let head = row.head.clone().filter(|head| !gone(head));
                    return codec::encode(table, &ChatRow { head, branch: MAIN_BRANCH.into(), ..row }).map(Some);
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
                let gone = what.has_memory(&memory);
                if gone {
                    self.dropped.insert(memory.id);
                }
                !gone
            }
            Table::MemoryByMessage | Table::MemoryByChat => {
                !self.dropped.contains(&MemoryId(keys::number(table.name(), key)?))
            }
            Table::Branches => !what.chats.keys().any(|chat| key.starts_with(&keys::prefix(&[chat.as_str()]))),
            _ => true,
        };
        Ok(kept.then(|| value.to_vec()))
    }
}

/// What backups still have to forget, as it stood at one moment.
#[derive(Debug, Clone, Default)]
pub struct Unforgotten {
    /// What it is.
    pub what: Forgotten,
    /// The rows it was read from.
    pub(crate) rows: BTreeMap<Vec<u8>, Forgotten>,
}

impl Unforgotten {
    pub(crate) fn add(&mut self, key: Vec<u8>, what: Forgotten) {
        self.what.absorb(what.clone());
        self.rows.entry(key).or_default().absorb(what);
    }

    /// Adds what another record of the same history still has to forget.
    pub fn join(&mut self, other: Self) {
        other.rows.into_iter().for_each(|(key, what)| self.add(key, what));
    }
}
