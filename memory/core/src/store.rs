//! The contract of the record's store: an ordered map of bytes with atomic, durable batches. Everything the record
//! knows is written once above it (`record`), so that a new store is a small thing to write and to prove: the
//! conformance suite in [`crate::conformance`] runs on every one.

use crate::Error;

/// The tables of the record. The number is part of the stored key and never changes its meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Table {
    /// Facts about the store itself: schema version, identity of the embedding model.
    Meta = 0,
    /// Messages by id.
    Messages = 1,
    /// Messages of a chat in order of arrival.
    ChatLog = 2,
    /// Messages by person.
    PersonLog = 3,
    /// Chats by id.
    Chats = 4,
    /// Branches of a chat by name.
    Branches = 5,
    /// Messages received and not yet settled.
    Inbox = 6,
    /// Replies not yet acknowledged by their platform.
    Outbox = 7,
    /// Memories by id.
    Memories = 8,
    /// Memories by the message they came from.
    MemoryByMessage = 9,
    /// Memories of a persona in a chat, in order.
    MemoryByChat = 10,
    /// Memories that the indexes do not yet reflect.
    IndexQueue = 11,
    /// What stood behind each reply.
    Why = 12,
    /// Personas by owner and id, every version.
    Personas = 13,
    /// Settings of realms, chats and people.
    Settings = 14,
    /// Replies by the messages and facts they were built on.
    Derived = 15,
    /// Replies by the message they answer, in order.
    Answers = 16,
    /// Who has spoken where: persona, scope, word of the name, memory.
    Names = 17,
    /// Ids of what was forgotten and may still stand in backups.
    Forgotten = 18,
    /// What personas wrote between messages: persona, scope, memory.
    Writings = 19,
    /// The working notes of a persona in a chat.
    Notes = 20,
    /// How personas are: persona, scope.
    Minds = 21,
    /// What personas feel towards people: person, persona, scope.
    Bonds = 22,
    /// What is worth keeping: person, scope, memory.
    Marks = 23,
}

impl Table {
    /// Every table, in key order.
    pub const ALL: [Self; 24] = [
        Self::Meta,
        Self::Messages,
        Self::ChatLog,
        Self::PersonLog,
        Self::Chats,
        Self::Branches,
        Self::Inbox,
        Self::Outbox,
        Self::Memories,
        Self::MemoryByMessage,
        Self::MemoryByChat,
        Self::IndexQueue,
        Self::Why,
        Self::Personas,
        Self::Settings,
        Self::Derived,
        Self::Answers,
        Self::Names,
        Self::Forgotten,
        Self::Writings,
        Self::Notes,
        Self::Minds,
        Self::Bonds,
        Self::Marks,
    ];

    /// The table of a number.
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }

    /// The name used in messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Meta => "meta",
            Self::Messages => "messages",
            Self::ChatLog => "chat_log",
            Self::PersonLog => "person_log",
            Self::Chats => "chats",
            Self::Branches => "branches",
            Self::Inbox => "inbox",
            Self::Outbox => "outbox",
            Self::Memories => "memories",
            Self::MemoryByMessage => "memory_by_message",
            Self::MemoryByChat => "memory_by_chat",
            Self::IndexQueue => "index_queue",
            Self::Why => "why",
            Self::Personas => "personas",
            Self::Settings => "settings",
            Self::Derived => "derived",
            Self::Answers => "answers",
            Self::Names => "names",
            Self::Forgotten => "forgotten",
            Self::Writings => "writings",
            Self::Notes => "notes",
            Self::Minds => "minds",
            Self::Bonds => "bonds",
            Self::Marks => "marks",
        }
    }
}

/// Bytes a key may have, without the table.
pub const MAX_KEY_BYTES: usize = 1_024;

/// Bytes a value may have.
pub const MAX_VALUE_BYTES: usize = 4 * 1024 * 1024;

/// One change of a [`Batch`].
#[derive(Clone, PartialEq, Eq)]
pub enum Change {
    /// Write the value, replacing what was there.
    Put(Table, Vec<u8>, Vec<u8>),
    /// Remove the key; nothing happens when it is not there.
    Remove(Table, Vec<u8>),
}

/// Changes that become visible and durable together or not at all. A later change of a key wins over an earlier one.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Batch {
    changes: Vec<Change>,
}

impl std::fmt::Debug for Batch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Batch[{} changes]", self.changes.len())
    }
}

impl Batch {
    /// An empty batch.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a write.
    pub fn put(&mut self, table: Table, key: impl Into<Vec<u8>>, value: impl Into<Vec<u8>>) -> &mut Self {
        self.changes.push(Change::Put(table, key.into(), value.into()));
        self
    }

    /// Adds a removal.
    pub fn remove(&mut self, table: Table, key: impl Into<Vec<u8>>) -> &mut Self {
        self.changes.push(Change::Remove(table, key.into()));
        self
    }

    /// Adds the changes of `other` behind these.
    pub fn append(&mut self, other: Batch) -> &mut Self {
        self.changes.extend(other.changes);
        self
    }

    /// The changes in order.
    pub fn changes(&self) -> &[Change] {
        &self.changes
    }

    /// The changes in order, to keep.
    pub fn into_changes(self) -> Vec<Change> {
        self.changes
    }

    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// Bytes of its keys and values.
    pub fn bytes(&self) -> usize {
        let bytes = |change: &Change| match change {
            Change::Put(_, key, value) => key.len() + value.len(),
            Change::Remove(_, key) => key.len(),
        };
        self.changes.iter().map(bytes).sum()
    }

    /// Checks keys and values against [`MAX_KEY_BYTES`] and [`MAX_VALUE_BYTES`]; every store calls it first.
    pub fn check(&self) -> Result<(), Error> {
        for change in &self.changes {
            let (Change::Put(table, key, _) | Change::Remove(table, key)) = change;
            if key.len() > MAX_KEY_BYTES {
                return Err(Error::Invalid(format!("a key of {} has {} bytes", table.name(), key.len())));
            }
            if let Change::Put(table, _, value) = change
                && value.len() > MAX_VALUE_BYTES
            {
                return Err(Error::Invalid(format!("a value of {} has {} bytes", table.name(), value.len())));
            }
        }
        Ok(())
    }
}

/// When a batch must have reached the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// Before `commit` returns. For everything that is acknowledged to somebody.
    Flushed,
    /// Soon. A crash may undo it together with everything committed after it, never half of it. For what is done
    /// again after a crash anyway.
    Soon,
}

/// Which way a scan goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// From the smallest key.
    Ascending,
    /// From the largest key.
    Descending,
}

/// A key and its value.
pub type Entry = (Vec<u8>, Vec<u8>);

/// The record's store. Calls block; they are made from blocking threads or take microseconds.
pub trait Store: Send + Sync {
    /// The value of a key.
    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>, Error>;

    /// Up to `limit` entries whose key starts with `prefix`, in `order`, beginning behind the key `after` (in that
    /// order; it need not exist).
    fn scan(
        &self,
        table: Table,
        prefix: &[u8],
        after: Option<&[u8]>,
        order: Order,
        limit: usize,
    ) -> Result<Vec<Entry>, Error>;

    /// Whether it takes in changes. Asked before what a change is built on is read: a store that goes on after a failure
    /// to write does so here, and what it lost with that is gone from what is read after.
    fn ready(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Applies a batch as one.
    fn commit(&self, batch: Batch, durability: Durability) -> Result<(), Error>;

    /// Makes everything applied so far durable. Whoever makes something elsewhere of what they read, durable by itself,
    /// does so after this: a store that goes on after a failure to write may take back the rest.
    fn flush(&self) -> Result<(), Error>;

    /// Rewrites what is on disk so that no byte of a removed or replaced value is left, and swaps it in. Readers and
    /// writers wait meanwhile.
    fn rewrite(&self) -> Result<(), Error>;

    /// Hands out everything as batches: applied in order to an empty store, they make it what this one was at one
    /// moment of the call. Others read and write meanwhile. Gives the revision of that moment; what `take` refuses ends
    /// it with that error.
    fn dump(&self, take: &mut dyn FnMut(Batch) -> Result<(), Error>) -> Result<u64, Error>;

    /// How many batches were ever applied; who saw the same number before knows that nothing changed since.
    fn revision(&self) -> u64;

    /// Bytes on disk; 0 for a store that has none.
    fn disk_bytes(&self) -> Result<u64, Error>;
}
