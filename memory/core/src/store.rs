//! The trait of the record's store: an ordered map of bytes with atomic, durable batches. All logic of the record is
//! built on top of it. So a new store is small to write and to check: the conformance suite in [`crate::conformance`]
//! runs on each.

use crate::Error;

/// The tables of the record. The number is part of the stored key and never changes its meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Table {
    /// Data about the store itself: schema version, name of the embedding model.
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
    /// Received messages whose turn has not ended.
    Inbox = 6,
    /// Replies that their platforms have not acknowledged.
    Outbox = 7,
    /// Memories by id.
    Memories = 8,
    /// Memories by the message they came from.
    MemoryByMessage = 9,
    /// Memories of a persona in a chat, in order.
    MemoryByChat = 10,
    /// Memories that the indexes do not contain yet.
    IndexQueue = 11,
    /// The sources of each reply.
    Why = 12,
    /// Every version of personas, by owner and id.
    Personas = 13,
    /// Settings of realms, chats and people.
    Settings = 14,
    /// Replies, by the messages and facts they were built on.
    Derived = 15,
    /// Replies, by the message they answer, in order.
    Answers = 16,
    /// Index of speakers: persona, scope, word of the name, memory.
    Names = 17,
    /// Ids of forgotten items that backups may still contain.
    Forgotten = 18,
    /// Writings: persona, scope, memory.
    Writings = 19,
    /// Working notes, by persona and chat.
    Notes = 20,
    /// Minds: persona, scope.
    Minds = 21,
    /// Bonds: person, persona, scope.
    Bonds = 22,
    /// Salience marks: person, scope, memory.
    Marks = 23,
    /// How many passages of a long memory the indexes may hold: memory.
    Passages = 24,
    /// Kept bytes, by their digest and the message that they belong to.
    Blobs = 25,
    /// Pictures that people asked for, by the message that shows them.
    Pictures = 26,
    /// The knowledge graph: persona, scope, name, person, memory.
    Graph = 27,
    /// What people think of memories: memory, scope of the place, person.
    Ratings = 28,
    /// Sealed vaults of people: person.
    Vaults = 29,
    /// Themes: persona, scope, memory.
    Themes = 30,
    /// What people asked to keep: person, label, memory.
    Kept = 31,
}

impl Table {
    /// Every table, in key order.
    pub const ALL: [Self; 32] = [
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
        Self::Passages,
        Self::Blobs,
        Self::Pictures,
        Self::Graph,
        Self::Ratings,
        Self::Vaults,
        Self::Themes,
        Self::Kept,
    ];

    /// Returns the table with this number.
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }

    /// Returns the name used in messages.
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
            Self::Passages => "passages",
            Self::Blobs => "blobs",
            Self::Pictures => "pictures",
            Self::Graph => "graph",
            Self::Ratings => "ratings",
            Self::Themes => "themes",
            Self::Kept => "kept",
            Self::Vaults => "vaults",
        }
    }
}

/// Largest key in bytes, without the table.
pub const MAX_KEY_BYTES: usize = 1_024;

/// Largest value in bytes.
pub const MAX_VALUE_BYTES: usize = 4 * 1024 * 1024;

/// One change of a [`Batch`].
#[derive(Clone, PartialEq, Eq)]
pub enum Change {
    /// Writes the value and replaces the one before.
    Put(Table, Vec<u8>, Vec<u8>),
    /// Removes the key, if it exists.
    Remove(Table, Vec<u8>),
}

/// Changes that become visible and durable together or not at all. If two change the same key, the later one counts.
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
    /// Returns an empty batch.
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

    /// Appends the changes of `other`.
    pub fn append(&mut self, other: Batch) -> &mut Self {
        self.changes.extend(other.changes);
        self
    }

    /// Returns the changes in order.
    pub fn changes(&self) -> &[Change] {
        &self.changes
    }

    /// Returns the changes in order and consumes the batch.
    pub fn into_changes(self) -> Vec<Change> {
        self.changes
    }

    /// Returns true if there are no changes.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// Returns the size of all keys and values in bytes.
    pub fn bytes(&self) -> usize {
        let bytes = |change: &Change| match change {
            Change::Put(_, key, value) => key.len() + value.len(),
            Change::Remove(_, key) => key.len(),
        };
        self.changes.iter().map(bytes).sum()
    }

    /// Checks keys and values against [`MAX_KEY_BYTES`] and [`MAX_VALUE_BYTES`]. Every store calls it first.
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
    /// Before `commit` returns. Use it for everything that is acknowledged to somebody.
    Flushed,
    /// Soon. A crash may undo the batch, and everything committed after it, but never half of it. Use it for work that
    /// is repeated after a crash anyway.
    Soon,
}

/// The direction of a scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Smallest key first.
    Ascending,
    /// Largest key first.
    Descending,
}

/// A key and its value.
pub type Entry = (Vec<u8>, Vec<u8>);

/// The record's store. Calls block. Callers use blocking threads, unless the call takes only microseconds.
pub trait Store: Send + Sync {
    /// Returns the value of a key.
    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>, Error>;

    /// Returns up to `limit` entries whose key starts with `prefix`, in `order`. Starts after the key `after`, which
    /// need not exist.
    fn scan(
        &self,
        table: Table,
        prefix: &[u8],
        after: Option<&[u8]>,
        order: Order,
        limit: usize,
    ) -> Result<Vec<Entry>, Error>;

    /// Fails if the store takes no changes. Call it before reading the rows that a change is based on. After a failed
    /// write, a store recovers here, and rows lost in the failure are gone from later reads.
    fn ready(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Fails with [`Error::Full`] if the disk has too little room for new work. Call it before taking some; work that was
    /// begun is finished.
    fn room(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Applies a batch atomically.
    fn commit(&self, batch: Batch, durability: Durability) -> Result<(), Error>;

    /// Makes everything applied so far durable. Call it before writing to another store what depends on rows read here:
    /// after a failed write, this store may roll back the rest.
    fn flush(&self) -> Result<(), Error>;

    /// Rewrites the files on disk so that no byte of a removed or replaced value remains, and swaps them in. Readers
    /// and writers wait meanwhile.
    fn rewrite(&self) -> Result<(), Error>;

    /// Passes the whole contents to `take` as batches. Applied in order to an empty store, they reproduce this one at
    /// one moment of the call. Others read and write meanwhile. Returns the revision of that moment. An error of `take`
    /// ends the dump.
    fn dump(&self, take: &mut dyn FnMut(Batch) -> Result<(), Error>) -> Result<u64, Error>;

    /// Returns the number of batches applied so far. The same number as before means that nothing changed.
    fn revision(&self) -> u64;

    /// Returns the size on disk in bytes; 0 for a store in RAM.
    fn disk_bytes(&self) -> Result<u64, Error>;
}
