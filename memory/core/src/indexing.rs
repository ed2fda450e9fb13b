//! Keeps both indexes equal to the record. A memory that is written, changed or removed stays in the index queue until
//! both indexes have flushed the change. After a crash the work is repeated, with the same result.

use std::collections::BTreeMap;
use std::time::Duration;

use azera_types::MemoryId;

use crate::domains::Indexing;
use crate::passages::{entry, passages};
use crate::rows::{Kind, MemoryRow};
use crate::{
    Batch, Durability, Error, IndexMetadata, Memory, Order, Point, Store, Table, TextDocument, TextIndexKind, audit,
    codec, keys,
};

/// Turns before a memory that its window in the vector index includes.
pub const VECTOR_WINDOW: usize = 1;

/// Turns before a memory that its window in the text index includes. Windows look back only, so that a memory is
/// indexed once, whatever is said after it.
pub const TEXT_WINDOW: usize = 2;

/// How far back in time the windows of a memory reach at most. Where a reader cannot scroll back beyond a horizon,
/// [`Recall::find`] ignores the windows of memories that lie less than this after it. The value is two turns of the
/// usual session gap: within one session, [`TEXT_WINDOW`] never reaches farther back.
pub const WINDOW_REACH: Duration = Duration::from_secs(2 * 3_600);

/// Key in [`Table::Meta`]: both indexes must be rebuilt.
const REBUILD: &[u8] = b"rebuild";

/// Key in [`Table::Meta`]: the version of what the indexes hold.
const VERSION: &[u8] = b"index_version";

/// The present version. Version 2 added the passages of long texts.
const INDEX_VERSION: u32 = 2;

/// Memories that one transaction queues.
const QUEUE_PAGE: usize = 4_096;

/// The texts of one memory to embed.
#[derive(Clone, PartialEq, Eq)]
pub struct IndexWork {
    /// The memory's id.
    pub id: MemoryId,
    /// The text of [`crate::Facet::Own`].
    pub own: String,
    /// The text of [`crate::Facet::Window`], if there are turns before the memory.
    pub window: Option<String>,
    /// The text's passages after the speaker's name, if it is long.
    pub passages: Vec<String>,
    /// The queue entries that this work was read from. Entries that come later stay queued.
    tickets: Vec<Vec<u8>>,
}

impl std::fmt::Debug for IndexWork {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "IndexWork({})", self.id)
    }
}

/// The vectors of one memory.
#[derive(Clone, PartialEq)]
pub struct Embedded {
    /// The work that the vectors belong to.
    pub work: IndexWork,
    /// Vector of the memory's own text.
    pub own: Vec<f32>,
    /// Vector of the window.
    pub window: Option<Vec<f32>>,
    /// Vectors of the passages.
    pub passages: Vec<Vec<f32>>,
}

impl IndexWork {
    /// Returns every text to embed: the memory's own, its window, its passages.
    pub fn to_embed(&self) -> impl Iterator<Item = &String> {
        std::iter::once(&self.own).chain(&self.window).chain(&self.passages)
    }

    /// Takes the vectors of [`IndexWork::to_embed`], in that order; `None` if there are too few.
    pub fn with_vectors(self, vectors: &mut impl Iterator<Item = Vec<f32>>) -> Option<Embedded> {
        let own = vectors.next()?;
        let window = if self.window.is_some() { Some(vectors.next()?) } else { None };
        let passages: Vec<Vec<f32>> = vectors.take(self.passages.len()).collect();
        (passages.len() == self.passages.len()).then_some(Embedded { work: self, own, window, passages })
    }
}

impl std::fmt::Debug for Embedded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Embedded({})", self.work.id)
    }
}

impl Indexing<'_> {
    /// Returns the next memories to embed, oldest first, at most `limit`. Removes memories that no longer exist from
    /// the indexes on the way.
    pub fn work(self, limit: usize) -> Result<Vec<IndexWork>, Error> {
        self.0.store.ready()?;
        let mut queued: BTreeMap<MemoryId, Vec<Vec<u8>>> = BTreeMap::new();
        for (key, _) in self.0.store.scan(Table::IndexQueue, b"", None, Order::Ascending, limit)? {
            queued.entry(queued_id(&key)?).or_default().push(key);
        }
        if queued.is_empty() {
            return Ok(Vec::new());
        }
        let (mut absent, mut work) = (Vec::new(), Vec::new());
        for (id, tickets) in queued {
            match self.0.memories().raw_memory(id)? {
                Some(memory) => work.push(IndexWork { tickets, ..self.texts(&memory)? }),
                None => absent.push((id, tickets)),
            }
        }
        // Without this flush, the record could lose a memory and its ticket after the indexes took the memory in.
        self.0.store.flush()?;
        let (mut gone, mut done) = (Vec::new(), Vec::new());
        for (id, tickets) in absent {
            if self.0.memories().raw_memory(id)?.is_none() {
                gone.push(id);
                done.extend(tickets);
            }
        }
        if !gone.is_empty() {
            let entries = self.entries_held(&gone)?;
            self.0.vectors.remove(&entries)?;
            self.0.text.remove(&entries)?;
            self.finish(done, &gone)?;
        }
        Ok(work)
    }

    /// Adds embedded memories to both indexes, flushes the indexes, and removes the memories from the queue. A memory
    /// stays queued if it was changed or removed since its texts were read.
    pub fn index(self, embedded: Vec<Embedded>) -> Result<(), Error> {
        let mut points = Vec::with_capacity(embedded.len());
        let mut docs = Vec::with_capacity(embedded.len());
        let mut done = Vec::with_capacity(embedded.len());
        let mut memories = Vec::with_capacity(embedded.len());
        for Embedded { work, own, window, passages } in embedded {
            let Some(memory) = self.0.memories().raw_memory(work.id)? else { continue };
            let now = self.texts(&memory)?;
            if !now.to_embed().eq(work.to_embed()) {
                continue;
            }
            let label = label(&memory);
            let point = |(number, own)| Point { id: entry(work.id, number), label: label.clone(), own, window: None };
            points.extend((1..).zip(passages).map(point));
            points.push(Point { id: work.id, label, own, window });
            docs.extend(self.docs(&memory)?);
            done.extend(work.tickets);
            memories.push(memory);
        }
        if done.is_empty() {
            return Ok(());
        }
        self.room_to_index()?;
        let stale = self.note_passages(&memories)?;
        if !stale.is_empty() {
            self.0.vectors.remove(&stale)?;
            self.0.text.remove(&stale)?;
        }
        self.0.vectors.upsert(points)?;
        self.0.text.upsert(docs)?;
        self.finish(done, &[])
    }

    /// Adds queued memories to the text index only, and leaves them queued. Lexical search then finds them while the
    /// embedding model is down. Handles at most `limit` entries after the ticket `after`; returns the last ticket, or
    /// `None` at the end of the queue.
    pub fn index_words(self, after: Option<&[u8]>, limit: usize) -> Result<Option<Vec<u8>>, Error> {
        self.0.store.ready()?;
        let tickets = self.0.store.scan(Table::IndexQueue, b"", after, Order::Ascending, limit)?;
        self.0.store.flush()?;
        let mut docs = Vec::with_capacity(tickets.len());
        let mut memories = Vec::with_capacity(tickets.len());
        for (ticket, _) in &tickets {
            if let Some(memory) = self.0.memories().raw_memory(queued_id(ticket)?)? {
                docs.extend(self.docs(&memory)?);
                memories.push(memory);
            }
        }
        if !docs.is_empty() {
            self.room_to_index()?;
            // The vectors of passages that are gone leave when the memory is embedded.
            self.0.text.remove(&self.note_passages(&memories)?)?;
            self.0.text.upsert(docs)?;
            self.0.text.commit()?;
        }
        Ok(tickets.into_iter().next_back().map(|(ticket, _)| ticket))
    }

    /// Returns the documents of a memory: of the whole text, and of each passage. A passage is its own window, as a
    /// message without turns before it.
    fn docs(self, memory: &MemoryRow) -> Result<Vec<TextDocument>, Error> {
        let document = |number, own: &str, window| TextDocument {
            id: entry(memory.id, number),
            text_index: index_kind(memory.kind),
            label: label(memory),
            own: own.to_owned(),
            window,
        };
        let mut docs = vec![document(0, &memory.text, self.text_window(memory)?)];
        for (number, bytes) in (1..).zip(passages(&memory.text)) {
            let passage = memory.text.get(bytes).unwrap_or_default();
            docs.push(document(number, passage, passage.to_owned()));
        }
        Ok(docs)
    }

    /// Removes tickets and the rows of memories that are gone, once the indexes are flushed.
    fn finish(self, done: Vec<Vec<u8>>, gone: &[MemoryId]) -> Result<(), Error> {
        self.0.vectors.flush()?;
        self.0.text.commit()?;
        self.0.store.ready()?;
        let mut batch = Batch::new();
        for ticket in done {
            batch.remove(Table::IndexQueue, ticket);
        }
        for id in gone {
            batch.remove(Table::Passages, keys::memory(*id));
        }
        self.0.store.commit(batch, Durability::Soon)
    }

    /// Fails if the disk has too little room for the indexes to grow. Forgetting goes on: the forgotten words leave the
    /// windows of other memories only when those are indexed anew.
    fn room_to_index(self) -> Result<(), Error> {
        if self.0.forgetting().scrub_due()? { Ok(()) } else { self.0.store.room() }
    }

    /// Returns how many passages of a memory the indexes may hold.
    pub(crate) fn passages_held(self, id: MemoryId) -> Result<u16, Error> {
        Ok(codec::get(self.0.store.as_ref(), Table::Passages, &keys::memory(id))?.unwrap_or(0))
    }

    /// Returns every index entry of these memories that the indexes may hold.
    fn entries_held(self, ids: &[MemoryId]) -> Result<Vec<MemoryId>, Error> {
        let mut entries = Vec::with_capacity(ids.len());
        for id in ids {
            entries.extend((0..=self.passages_held(*id)?).map(|number| entry(*id, number)));
        }
        Ok(entries)
    }

    /// Records the passages of memories before the indexes get them, so that none can be left behind in an index.
    /// Returns the entries of passages that a memory no longer has.
    fn note_passages(self, memories: &[MemoryRow]) -> Result<Vec<MemoryId>, Error> {
        let mut batch = Batch::new();
        let mut stale = Vec::new();
        for memory in memories {
            let has = u16::try_from(passages(&memory.text).len()).unwrap_or(u16::MAX);
            let held = self.passages_held(memory.id)?;
            // A row only ever grows while its memory exists: a crash may undo the removal from an index.
            if has > held {
                codec::put(&mut batch, Table::Passages, keys::memory(memory.id), &has)?;
            }
            stale.extend((has + 1..=held).map(|number| entry(memory.id, number)));
        }
        if !batch.is_empty() {
            self.0.store.commit(batch, Durability::Flushed)?;
        }
        Ok(stale)
    }

    /// Returns the number of memories in the queue.
    pub fn queued(self) -> Result<usize, Error> {
        count(self.0, Table::IndexQueue)
    }

    /// Returns the number of rows of every table of the record, with the table's name.
    pub fn row_counts(self) -> Result<Vec<(&'static str, usize)>, Error> {
        Table::ALL.into_iter().map(|table| Ok((table.name(), count(self.0, table)?))).collect()
    }

    /// Empties both indexes and queues every memory again; returns how many. If this fails, the request remains, and
    /// the next start removes the index files ([`rebuild_wanted`]).
    pub fn rebuild(self) -> Result<usize, Error> {
        self.0.store.ready()?;
        let mut batch = Batch::new();
        batch.put(Table::Meta, REBUILD, b"1");
        self.0.store.commit(batch, Durability::Flushed)?;
        let queued = self.index_anew(true)?;
        let mut batch = Batch::new();
        batch.remove(Table::Meta, REBUILD);
        batch.remove(Table::Meta, audit::SUSPECT);
        self.0.store.commit(batch, Durability::Flushed)?;
        Ok(queued)
    }

    fn index_anew(self, words_too: bool) -> Result<usize, Error> {
        let mut queued = 0;
        let mut batch = Batch::new();
        let mut pages = Vec::new();
        codec::walk(self.0.store.as_ref(), Table::Memories, b"", |key, _| {
            batch.put(Table::IndexQueue, [key, &0_u64.to_be_bytes()].concat(), []);
            queued += 1;
            if batch.changes().len() == QUEUE_PAGE {
                pages.push(std::mem::take(&mut batch));
            }
            Ok(true)
        })?;
        pages.push(batch);
        for page in pages {
            self.0.store.commit(page, Durability::Flushed)?;
        }
        self.0.vectors.clear()?;
        if words_too {
            self.0.text.clear()?;
        }
        Ok(queued)
    }

    /// Queues every memory again if the indexes were built with another embedding model; returns how many.
    pub fn follow_embedder(self) -> Result<Option<usize>, Error> {
        let was: Option<String> = codec::get(self.0.store.as_ref(), Table::Meta, b"embedder")?;
        if was.as_deref() == Some(self.0.config.embedder.as_str()) {
            return Ok(None);
        }
        // Lexical search continues to work while the vectors are rebuilt.
        let queued = self.index_anew(false)?;
        let mut batch = Batch::new();
        codec::put(&mut batch, Table::Meta, b"embedder".to_vec(), &self.0.config.embedder)?;
        self.0.store.commit(batch, Durability::Flushed)?;
        Ok(was.map(|_| queued))
    }

    /// Queues what indexes of an earlier version lack: memories with passages. Until they are indexed, they are found as
    /// before.
    pub(crate) fn follow_index_version(self) -> Result<(), Error> {
        if codec::get::<u32>(self.0.store.as_ref(), Table::Meta, VERSION)? == Some(INDEX_VERSION) {
            return Ok(());
        }
        let mut long = Vec::new();
        codec::walk(self.0.store.as_ref(), Table::Memories, b"", |_, value| {
            // A damaged row is a matter of the record's check.
            if let Ok(memory) = codec::decode::<MemoryRow>(Table::Memories, value)
                && !passages(&memory.text).is_empty()
            {
                long.push(memory.id);
            }
            Ok(true)
        })?;
        self.index_again(&long)?;
        if !long.is_empty() {
            tracing::info!(memories = long.len(), "indexing the passages of long messages");
        }
        let mut batch = Batch::new();
        codec::put(&mut batch, Table::Meta, VERSION.to_vec(), &INDEX_VERSION)?;
        self.0.store.commit(batch, Durability::Flushed)
    }

    /// Reorganises the vector index for fast search, if enough has changed since the last time. Searches continue
    /// meanwhile; indexing waits.
    pub fn optimize(self) -> Result<(), Error> {
        self.0.vectors.optimize()
    }

    /// Queues memories to be indexed again, whether they exist or not.
    pub fn index_again(self, ids: &[MemoryId]) -> Result<(), Error> {
        self.0.store.ready()?;
        for page in ids.chunks(QUEUE_PAGE) {
            let mut batch = Batch::new();
            for id in page {
                batch.put(Table::IndexQueue, self.ticket(*id)?, []);
            }
            self.0.store.commit(batch, Durability::Flushed)?;
        }
        Ok(())
    }

    /// Returns a new queue key for a memory.
    fn ticket(self, id: MemoryId) -> Result<Vec<u8>, Error> {
        let mut ticket = keys::memory(id);
        ticket.extend_from_slice(&self.0.next_number()?.to_be_bytes());
        Ok(ticket)
    }

    /// Queues a memory and the memories whose windows include it.
    pub(crate) fn queue_with_neighbours(self, batch: &mut Batch, memory: &MemoryRow) -> Result<(), Error> {
        for id in self.neighbours(memory, 0, TEXT_WINDOW)?.into_iter().chain([memory.id]) {
            batch.put(Table::IndexQueue, self.ticket(id)?, []);
        }
        Ok(())
    }

    /// Returns the ids of up to `before` memories before and `after` memories after a memory, in order, without the
    /// memory itself. All belong to the same persona, chat and conversation.
    pub(crate) fn neighbours(self, memory: &MemoryRow, before: usize, after: usize) -> Result<Vec<MemoryId>, Error> {
        // Facts and writings belong to no conversation. They have no neighbours, and forgetting an earlier message does
        // not queue them.
        let Some(chat) = memory.conversation() else { return Ok(Vec::new()) };
        let prefix = keys::prefix(&[memory.persona.as_str(), chat.as_str()]);
        let here = keys::memory_by_chat(&memory.persona, chat, memory.id);
        let mut ids = Vec::with_capacity(before + after);
        for (order, limit) in [(Order::Descending, before), (Order::Ascending, after)] {
            let mut side = Vec::with_capacity(limit);
            for (key, _) in self.0.store.scan(Table::MemoryByChat, &prefix, Some(&here), order, limit)? {
                side.push(MemoryId(keys::number("memory_by_chat", &key)?));
            }
            if order == Order::Descending {
                side.reverse();
            }
            ids.extend(side);
        }
        Ok(ids)
    }

    /// Returns the texts to embed: the memory's own text after its speaker's name, the same after the turn before it, and
    /// its passages after the name.
    pub(crate) fn texts(self, memory: &MemoryRow) -> Result<IndexWork, Error> {
        let own = line(memory);
        let before = self.turns_before(memory, VECTOR_WINDOW)?;
        let window =
            (!before.is_empty()).then(|| before.iter().map(line).chain([own.clone()]).collect::<Vec<_>>().join("\n"));
        let passage = |bytes| format!("{}: {}", memory.author.name(), memory.text.get(bytes).unwrap_or_default());
        let passages = passages(&memory.text).into_iter().map(passage).collect();
        Ok(IndexWork { id: memory.id, own, window, passages, tickets: Vec::new() })
    }

    /// Returns the text of the window in the text index: the turns before the memory, then the memory. Names are left
    /// out, because the speaker is a signal of its own.
    fn text_window(self, memory: &MemoryRow) -> Result<String, Error> {
        let before = self.turns_before(memory, TEXT_WINDOW)?;
        let texts: Vec<&str> = before.iter().chain([memory]).map(|turn| turn.text.as_str()).collect();
        Ok(texts.join("\n"))
    }

    /// Returns up to `turns` memories before a memory in its conversation. A search finds the memory through them, so
    /// each must be readable wherever the memory is. They have the same scope, no source scope that the memory lacks,
    /// and lie at most [`WINDOW_REACH`] back.
    fn turns_before(self, memory: &MemoryRow, turns: usize) -> Result<Vec<MemoryRow>, Error> {
        let mut before = Vec::with_capacity(turns);
        for id in self.neighbours(memory, turns, 0)? {
            before.extend(self.0.memories().raw_memory(id)?.filter(|other| {
                other.session == memory.session
                    && other.scope == memory.scope
                    && memory.at.duration_since(other.at).unsigned_abs() <= WINDOW_REACH
                    && other
                        .source_scopes
                        .iter()
                        .all(|source_scope| memory.source_scopes.iter().any(|own| own.implies(source_scope)))
            }));
        }
        Ok(before)
    }
}

/// Returns true if an attempt to empty the indexes failed. The caller that opens the indexes must then remove their
/// files and call [`Indexing::rebuild`].
pub fn rebuild_wanted(store: &dyn Store) -> Result<bool, Error> {
    Ok(store.get(Table::Meta, REBUILD)?.is_some())
}

fn label(memory: &MemoryRow) -> IndexMetadata {
    IndexMetadata { persona: memory.persona.clone(), scope: memory.scope.clone(), at: memory.at }
}

/// Returns the memory that a queue key is about.
pub(crate) fn queued_id(ticket: &[u8]) -> Result<MemoryId, Error> {
    let id = ticket.first_chunk::<8>();
    let id = id.ok_or_else(|| Error::Damaged { table: "index_queue", why: "a key is too short".into() })?;
    Ok(MemoryId(u64::from_be_bytes(*id)))
}

fn line(memory: &MemoryRow) -> String {
    format!("{}: {}", memory.author.name(), memory.text.as_str())
}

fn index_kind(kind: Kind) -> TextIndexKind {
    match kind {
        Kind::Message | Kind::Reply => TextIndexKind::Chats,
        Kind::Fact | Kind::Diary | Kind::Reflection | Kind::Dream | Kind::Note | Kind::Piece | Kind::CheckIn => {
            TextIndexKind::Memories
        }
    }
}

fn count(memory: &Memory, table: Table) -> Result<usize, Error> {
    let mut count = 0;
    codec::walk(memory.store.as_ref(), table, b"", |_, _| {
        count += 1;
        Ok(true)
    })?;
    Ok(count)
}
